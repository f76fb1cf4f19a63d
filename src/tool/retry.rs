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

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::name::ToolName;

/// Most retries that anybody gets.
pub const MOST: u32 = 10;

/// Longest pause before one of them.
pub const LONGEST: Duration = Duration::from_secs(60);

/// When a call is tried again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RetryPolicy {
    /// How often.
    pub retries: u32,
    /// After which pause.
    pub backoff: Backoff,
    /// After these codes; `None` for whatever can pass by itself.
    pub only: Option<Vec<String>>,
    /// Never after these.
    pub never: Vec<String>,
    /// The tool that is called instead when nothing helped.
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
    pub fn read(value: &Value) -> Result<Self, String> {
        if let Value::String(word) = value {
            let unknown = || format!("`{word}` is no retry policy; known: {}", WORDS.join(", "));
            return Self::by_word(word).ok_or_else(unknown);
        }
        let raw: Raw = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        raw.resolve()
    }

    /// The pause before retry number `retry`, counted from 1. `random` is between 0 and 1.
    #[must_use]
    pub fn pause(&self, retry: u32, random: f64) -> Duration {
        self.backoff.pause(retry, random).min(LONGEST)
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

/// A time, longer or shorter by a factor; what cannot be expressed is the longest.
fn scaled(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(LONGEST)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Raw {
    policy: Option<String>,
    max_retries: Option<u32>,
    max_attempts: Option<u32>,
    backoff: Option<RawBackoff>,
    backoff_ms: Option<u64>,
    backoff_multiplier: Option<f64>,
    retryable_errors: Option<Vec<String>>,
    non_retryable_errors: Option<Vec<String>>,
    fallback: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", tag = "type")]
enum RawBackoff {
    None {},
    Fixed {
        delay: u64,
    },
    #[serde(rename_all = "camelCase")]
    Linear {
        base_delay: u64,
        increment: u64,
    },
    #[serde(rename_all = "camelCase")]
    Exponential {
        base_delay: u64,
        max_delay: u64,
        multiplier: f64,
    },
    Jittered {
        base: Box<Self>,
        jitter: f64,
    },
}

impl Raw {
    fn resolve(self) -> Result<RetryPolicy, String> {
        let mut policy = match &self.policy {
            Some(word) => RetryPolicy::read(&Value::from(word.as_str()))?,
            None => RetryPolicy::default(),
        };
        policy.retries = match (self.max_retries, self.max_attempts) {
            (Some(_), Some(_)) => return Err("write `maxRetries` or `maxAttempts`".to_owned()),
            (Some(retries), None) => retries,
            (None, Some(attempts)) => attempts.saturating_sub(1),
            (None, None) => policy.retries,
        };
        if policy.retries > MOST {
            return Err(format!("more than {MOST} retries"));
        }
        let millis = Duration::from_millis;
        policy.backoff = match (self.backoff, self.backoff_ms) {
            (Some(_), Some(_)) => return Err("write `backoff` or `backoffMs`".to_owned()),
            (Some(raw), None) => raw.resolve(0)?,
            (None, Some(base)) => Backoff::Exponential {
                base: millis(base),
                most: LONGEST,
                multiplier: factor(self.backoff_multiplier.unwrap_or(1.0))?,
            },
            (None, None) => policy.backoff,
        };
        if let Some(codes) = self.retryable_errors {
            policy.only = Some(codes);
        }
        policy.never = self.non_retryable_errors.unwrap_or(policy.never);
        policy.fallback = match self.fallback {
            Some(name) => Some(name.parse().map_err(|_| format!("`{name}` is no name of a tool"))?),
            None => policy.fallback,
        };
        Ok(policy)
    }
}

impl RawBackoff {
    fn resolve(self, depth: u32) -> Result<Backoff, String> {
        let millis = Duration::from_millis;
        Ok(match self {
            Self::None {} => Backoff::None,
            Self::Fixed { delay } => Backoff::Fixed(millis(delay)),
            Self::Linear { base_delay, increment } => {
                Backoff::Linear(millis(base_delay), millis(increment))
            }
            Self::Exponential { base_delay, max_delay, multiplier } => Backoff::Exponential {
                base: millis(base_delay),
                most: millis(max_delay),
                multiplier: factor(multiplier)?,
            },
            Self::Jittered { .. } if depth > 0 => {
                return Err("a jittered backoff has one of the others as its base".to_owned());
            }
            Self::Jittered { base, jitter } if (0.0..=1.0).contains(&jitter) => {
                Backoff::Jittered(Box::new(base.resolve(depth + 1)?), jitter)
            }
            Self::Jittered { .. } => return Err("`jitter` is a part between 0 and 1".to_owned()),
        })
    }
}

fn factor(multiplier: f64) -> Result<f64, String> {
    if (1.0..=100.0).contains(&multiplier) {
        Ok(multiplier)
    } else {
        Err("the multiplier is between 1 and 100".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        for value in [
            json!("OFTEN"),
            json!(3),
            json!({"maxRetries": 11}),
            json!({"maxRetries": 1, "maxAttempts": 2}),
            json!({"retries": 1}),
            json!({"backoff": {"type": "fixed"}}),
            json!({"backoff": {"type": "exponential", "baseDelay": 1, "maxDelay": 1, "multiplier": 0.5}}),
            json!({"backoff": {"type": "jittered", "base": {"type": "none"}, "jitter": 2}}),
            json!({"fallback": "not a name"}),
        ] {
            assert!(RetryPolicy::read(&value).is_err(), "{value}");
        }
    }
}
