//! When a tool that failed is called again, and when.
//!
//! | word | retries | pause | after |
//! | --- | --- | --- | --- |
//! | `NONE` | 0 | | nothing; the default |
//! | `QUICK` | 3 | 1 s | timeout, rate limit, network |
//! | `STANDARD` | 3 | 1 s, doubled each time, at most 30 s | the same, and errors of a service |
//! | `AGGRESSIVE` | 5 | 0.5 s, doubled, at most 60 s, a tenth at random | the same, and what is locked |
//!
//! Non-goals: what may never be tried again; the call knows. Trust boundary: what a tool asks for is bounded here.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::ids::ToolName;

/// Most retries of one call.
pub const MOST: u32 = 10;

/// Longest pause before one of them.
pub const LONGEST: Duration = Duration::from_secs(60);

/// When a call is tried again.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RetryPolicy {
    /// How often.
    #[serde(rename = "maxRetries")]
    pub retries: u32,
    /// After which pause.
    pub backoff: Backoff,
    /// After these codes; `None` for whatever can pass by itself.
    #[serde(rename = "retryableErrors", skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// Never after these.
    #[serde(rename = "nonRetryableErrors")]
    pub never: Vec<String>,
    /// The tool that is called instead when nothing helped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ToolName>,
}

/// How long to wait.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Backoff {
    /// Not at all.
    #[default]
    None,
    /// The same each time.
    Fixed(Duration),
    /// Longer by the same each time.
    Linear(Duration, Duration),
    /// Longer by the same factor each time, up to a bound.
    Exponential {
        /// The first.
        base: Duration,
        /// The longest.
        most: Duration,
        /// The factor.
        multiplier: f64,
    },
    /// Another, shorter or longer by up to this part at random: so that many do not come back at once.
    Jittered(Box<Self>, f64),
}

/// The words for policies.
pub const WORDS: &[&str] = &["NONE", "QUICK", "STANDARD", "AGGRESSIVE"];

impl RetryPolicy {
    /// The policy with this word, in capitals or not.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        let exponential = |base, most| Backoff::Exponential {
            base: Duration::from_millis(base),
            most: Duration::from_secs(most),
            multiplier: 2.0,
        };
        let (retries, backoff, only): (_, _, &[&str]) = match word.to_ascii_uppercase().as_str() {
            "NONE" => return Some(Self::default()),
            "QUICK" => {
                (3, Backoff::Fixed(Duration::from_secs(1)), &["TIMEOUT", "RATE_LIMIT", "NETWORK"])
            }
            "STANDARD" => {
                (3, exponential(1_000, 30), &["TIMEOUT", "RATE_LIMIT", "NETWORK", "SERVER_ERROR"])
            }
            "AGGRESSIVE" => (
                5,
                Backoff::Jittered(Box::new(exponential(500, 60)), 0.1),
                &["TIMEOUT", "RATE_LIMIT", "NETWORK", "SERVER_ERROR", "LOCK"],
            ),
            _ => return None,
        };
        let only = Some(only.iter().map(|code| (*code).to_owned()).collect());
        Some(Self { retries, backoff, only, never: Vec::new(), fallback: None })
    }

    /// Reads a word, or the form `{maxRetries, backoff, retryableErrors, nonRetryableErrors, fallback}`, or the form
    /// `{maxAttempts, backoffMs, backoffMultiplier, retryableErrors}`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &Value) -> Result<Self, BadRetry> {
        match value {
            Value::String(word) => by_known_word(word, ""),
            value => read_map(value),
        }
    }

    /// The pause before retry number `retry`, counted from 1. `random` is between 0 and 1.
    #[must_use]
    pub fn pause(&self, retry: u32, random: f64) -> Duration {
        self.backoff.pause(retry, random).min(LONGEST)
    }
}

/// For people.
impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |time: &Duration| format!("{} ms", time.as_millis());
        match self {
            Self::None => f.write_str("at once"),
            Self::Fixed(time) => write!(f, "{} apart", shown(time)),
            Self::Linear(base, more) => {
                write!(f, "{} apart, each {} more", shown(base), shown(more))
            }
            Self::Exponential { base, most, multiplier } => write!(
                f,
                "{} apart, each {multiplier} times longer, at most {}",
                shown(base),
                shown(most)
            ),
            Self::Jittered(base, part) => write!(f, "{base}, {:.0} % at random", part * 100.0),
        }
    }
}

/// For machines, in the form that is read.
impl Serialize for Backoff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = |time: &Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::None => json!({ "type": "none" }),
            Self::Fixed(time) => json!({ "type": "fixed", "delay": millis(time) }),
            Self::Linear(base, more) => {
                json!({ "type": "linear", "baseDelay": millis(base), "increment": millis(more) })
            }
            Self::Exponential { base, most, multiplier } => json!({
                "type": "exponential", "baseDelay": millis(base), "maxDelay": millis(most),
                "multiplier": multiplier,
            }),
            Self::Jittered(base, part) => {
                json!({ "type": "jittered", "base": base, "jitter": part })
            }
        }
        .serialize(serializer)
    }
}

impl Backoff {
    fn pause(&self, retry: u32, random: f64) -> Duration {
        let before = retry.saturating_sub(1);
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(time) => *time,
            Self::Linear(base, more) => base.saturating_add(more.saturating_mul(before)),
            Self::Exponential { base, most, multiplier } => {
                let factor = multiplier.powi(i32::try_from(before).unwrap_or(i32::MAX));
                scaled(*base, factor).min(*most)
            }
            Self::Jittered(base, part) => {
                scaled(base.pause(retry, random), 1.0 + part * (2.0 * random - 1.0))
            }
        }
    }
}

fn by_known_word(word: &str, pointer: &str) -> Result<RetryPolicy, BadRetry> {
    let unknown = || format!("`{word}` is not a retry policy; known: {}", WORDS.join(", "));
    RetryPolicy::by_word(word).ok_or_else(|| BadRetry::at(pointer, unknown()))
}

/// A time, longer or shorter by a factor; what cannot be expressed is the longest.
fn scaled(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(LONGEST)
}

/// What is wrong with a policy for retries, and at which JSON pointer of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRetry {
    /// Where.
    pub pointer: String,
    /// What.
    pub why: String,
}

impl BadRetry {
    /// At this place.
    pub fn at(pointer: &str, why: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), why: why.into() }
    }
}

const KEYS: &[&str] = &[
    "policy",
    "maxRetries",
    "maxAttempts",
    "backoff",
    "backoffMs",
    "backoffMultiplier",
    "retryableErrors",
    "nonRetryableErrors",
    "fallback",
];

/// A map of a policy, at its place.
struct Part<'v> {
    map: &'v Map<String, Value>,
    pointer: String,
}

impl<'v> Part<'v> {
    fn of(value: &'v Value, pointer: &str, keys: &[&str]) -> Result<Self, BadRetry> {
        let map = value.as_object();
        let map = map.ok_or_else(|| BadRetry::at(pointer, "a word or a map is wanted here"))?;
        match map.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => {
                let why = format!("`{key}` is not a key here; known: {}", keys.join(", "));
                Err(BadRetry { pointer: format!("{pointer}/{key}"), why })
            }
            None => Ok(Self { map, pointer: pointer.to_owned() }),
        }
    }

    fn wrong(&self, key: &str, why: impl Into<String>) -> BadRetry {
        BadRetry { pointer: format!("{}/{key}", self.pointer), why: why.into() }
    }

    /// The value of a key, if it is there and of this kind.
    fn get<T>(
        &self,
        key: &str,
        kind: &str,
        read: impl Fn(&'v Value) -> Option<T>,
    ) -> Result<Option<T>, BadRetry> {
        let Some(value) = self.map.get(key) else { return Ok(None) };
        let wrong = || self.wrong(key, format!("`{key}` is {kind}, and this is `{value}`"));
        read(value).map(Some).ok_or_else(wrong)
    }

    /// The same of a key that has to be there.
    fn needs<T>(
        &self,
        key: &str,
        kind: &str,
        read: impl Fn(&'v Value) -> Option<T>,
    ) -> Result<T, BadRetry> {
        let missing = || BadRetry::at(&self.pointer, format!("`{key}` is missing: {kind}"));
        self.get(key, kind, read)?.ok_or_else(missing)
    }

    fn millis(&self, key: &str) -> Result<Duration, BadRetry> {
        let millis = self.needs(key, "a number of milliseconds", Value::as_u64)?;
        Ok(Duration::from_millis(millis))
    }

    fn factor(&self, key: &str) -> Result<Option<f64>, BadRetry> {
        let factor = |value: &Value| value.as_f64().filter(|it| (1.0..=100.0).contains(it));
        self.get(key, "a factor between 1 and 100", factor)
    }

    fn count(&self, key: &str) -> Result<Option<u32>, BadRetry> {
        self.get(key, "a whole number", |value| u32::try_from(value.as_u64()?).ok())
    }

    fn codes(&self, key: &str) -> Result<Option<Vec<String>>, BadRetry> {
        self.get(key, "a list of codes", |value| {
            value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
        })
    }
}

fn read_map(value: &Value) -> Result<RetryPolicy, BadRetry> {
    let part = Part::of(value, "", KEYS)?;
    let mut policy = match part.get("policy", "a word", Value::as_str)? {
        Some(word) => by_known_word(word, "/policy")?,
        None => RetryPolicy::default(),
    };
    policy.retries = match (part.count("maxRetries")?, part.count("maxAttempts")?) {
        (Some(_), Some(_)) => {
            return Err(part.wrong("maxAttempts", "write `maxRetries` or `maxAttempts`"));
        }
        (Some(retries), None) => retries,
        (None, Some(attempts)) => attempts.saturating_sub(1),
        (None, None) => policy.retries,
    };
    if policy.retries > MOST {
        let key = if part.map.contains_key("maxRetries") { "maxRetries" } else { "maxAttempts" };
        return Err(part.wrong(key, format!("more than {MOST} retries")));
    }
    let base = part.get("backoffMs", "a number of milliseconds", Value::as_u64)?;
    policy.backoff = match (part.map.get("backoff"), base) {
        (Some(_), Some(_)) => return Err(part.wrong("backoffMs", "write `backoff` or `backoffMs`")),
        (Some(value), None) => backoff(value, "/backoff")?,
        (None, Some(base)) => Backoff::Exponential {
            base: Duration::from_millis(base),
            most: LONGEST,
            multiplier: part.factor("backoffMultiplier")?.unwrap_or(1.0),
        },
        (None, None) => policy.backoff,
    };
    if let Some(codes) = part.codes("retryableErrors")? {
        policy.only = Some(codes);
    }
    policy.never = part.codes("nonRetryableErrors")?.unwrap_or(policy.never);
    let name = |value: &Value| value.as_str()?.parse().ok();
    policy.fallback = part.get("fallback", "the name of a tool", name)?.or(policy.fallback);
    Ok(policy)
}

/// A kind of pause. A jittered one has one of the others as its base.
fn backoff(value: &Value, pointer: &str) -> Result<Backoff, BadRetry> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let part = |keys: &[&str]| Part::of(value, pointer, &[&["type"], keys].concat());
    Ok(match kind {
        "none" => part(&[]).map(|_| Backoff::None)?,
        "fixed" => Backoff::Fixed(part(&["delay"])?.millis("delay")?),
        "linear" => {
            let part = part(&["baseDelay", "increment"])?;
            Backoff::Linear(part.millis("baseDelay")?, part.millis("increment")?)
        }
        "exponential" => {
            let part = part(&["baseDelay", "maxDelay", "multiplier"])?;
            let kind = "a factor between 1 and 100";
            Backoff::Exponential {
                base: part.millis("baseDelay")?,
                most: part.millis("maxDelay")?,
                multiplier: part
                    .factor("multiplier")?
                    .map_or_else(|| part.needs("multiplier", kind, Value::as_f64), Ok)?,
            }
        }
        "jittered" => {
            let part = part(&["base", "jitter"])?;
            let share = |value: &Value| value.as_f64().filter(|it| (0.0..=1.0).contains(it));
            let jitter = part.needs("jitter", "a part between 0 and 1", share)?;
            let base =
                backoff(part.needs("base", "another backoff", Some)?, &format!("{pointer}/base"))?;
            if matches!(base, Backoff::Jittered(..)) {
                return Err(
                    part.wrong("base", "a jittered backoff has one of the others as its base")
                );
            }
            Backoff::Jittered(Box::new(base), jitter)
        }
        _ => {
            let known = "none, fixed, linear, exponential, jittered";
            let place = if value.get("type").is_some() { "/type" } else { "" };
            let why = format!("a backoff has a `type`: {known}");
            return Err(BadRetry { pointer: format!("{pointer}{place}"), why });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(policy: &RetryPolicy, random: f64) -> Vec<u128> {
        (1..=policy.retries).map(|retry| policy.pause(retry, random).as_millis()).collect()
    }

    #[test]
    fn the_words_are_the_policies_of_the_table() {
        let named = |word| RetryPolicy::by_word(word).unwrap();
        assert_eq!(pauses(&named("NONE"), 0.5), []);
        assert_eq!(pauses(&named("quick"), 0.5), [1_000, 1_000, 1_000]);
        assert_eq!(pauses(&named("STANDARD"), 0.5), [1_000, 2_000, 4_000]);
        assert_eq!(pauses(&named("AGGRESSIVE"), 0.5), [500, 1_000, 2_000, 4_000, 8_000]);
        assert_eq!(pauses(&named("AGGRESSIVE"), 0.0)[0], 450);
        assert_eq!(pauses(&named("AGGRESSIVE"), 1.0)[4], 8_800);
        assert!(RetryPolicy::by_word("SOMETIMES").is_none());
    }

    #[test]
    fn both_forms_are_read_and_every_kind_of_pause() {
        let read = |value| RetryPolicy::read(&value).unwrap();
        for word in WORDS {
            let policy = RetryPolicy::by_word(word).unwrap();
            assert_eq!(read(json!(policy)), policy, "what is written is read again");
        }
        let old = read(
            json!({"maxAttempts": 3, "backoffMs": 1000, "backoffMultiplier": 2, "retryableErrors": ["TIMEOUT"]}),
        );
        assert_eq!(pauses(&old, 0.5), [1_000, 2_000]);
        let with = |backoff| read(json!({"maxRetries": 3, "backoff": backoff}));
        assert_eq!(pauses(&with(json!({"type": "none"})), 0.5), [0, 0, 0]);
        assert_eq!(pauses(&with(json!({"type": "fixed", "delay": 7})), 0.5), [7, 7, 7]);
        let linear = with(json!({"type": "linear", "baseDelay": 10, "increment": 5}));
        assert_eq!(pauses(&linear, 0.5), [10, 15, 20]);
        let bounded =
            with(json!({"type": "exponential", "baseDelay": 10, "maxDelay": 25, "multiplier": 3}));
        assert_eq!(pauses(&bounded, 0.5), [10, 25, 25]);
        let jittered = with(
            json!({"type": "jittered", "base": {"type": "fixed", "delay": 100}, "jitter": 0.5}),
        );
        assert_eq!((pauses(&jittered, 0.0)[0], pauses(&jittered, 1.0)[0]), (50, 150));
        let long = with(json!({"type": "fixed", "delay": 10_000_000}));
        assert_eq!(pauses(&long, 0.5)[0], LONGEST.as_millis());
        assert_eq!(
            read(json!({"policy": "QUICK", "fallback": "other"})).fallback.unwrap().as_str(),
            "other"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let exponential =
            json!({"type": "exponential", "baseDelay": 1, "maxDelay": 1, "multiplier": 0.5});
        let jittered = json!({"type": "jittered", "base": {"type": "none"}, "jitter": 2});
        let twice = json!({"type": "jittered", "base": {"type": "jittered", "base": {"type": "none"}, "jitter": 1}, "jitter": 1});
        for (value, place) in [
            (json!("OFTEN"), ""),
            (json!(3), ""),
            (json!({"policy": "OFTEN"}), "/policy"),
            (json!({"maxRetries": 11}), "/maxRetries"),
            (json!({"maxRetries": -1}), "/maxRetries"),
            (json!({"maxAttempts": "three"}), "/maxAttempts"),
            (json!({"maxRetries": 1, "maxAttempts": 2}), "/maxAttempts"),
            (json!({"backoff": {"type": "none"}, "backoffMs": 2}), "/backoffMs"),
            (json!({"retries": 1}), "/retries"),
            (json!({"retryableErrors": "TIMEOUT"}), "/retryableErrors"),
            (json!({"backoff": {"type": "fixed"}}), "/backoff"),
            (json!({"backoff": {"type": "often"}}), "/backoff/type"),
            (json!({"backoff": {"delay": 1}}), "/backoff"),
            (json!({"backoff": {"type": "fixed", "delay": 1, "most": 2}}), "/backoff/most"),
            (json!({"backoff": exponential}), "/backoff/multiplier"),
            (json!({"backoff": jittered}), "/backoff/jitter"),
            (json!({"backoff": twice}), "/backoff/base"),
            (json!({"fallback": "not a name"}), "/fallback"),
        ] {
            let wrong = RetryPolicy::read(&value).unwrap_err();
            assert_eq!(wrong.pointer, place, "{value}: {}", wrong.why);
        }
    }
}
