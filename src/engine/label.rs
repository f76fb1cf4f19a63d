//! Names and labels: how a sandbox says whose it is, in characters that nothing has to quote.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::traits::State;

/// Every label of ours begins with this.
const PREFIX: &str = "runner.";

/// The longest id: as part of a container's name it must stay readable.
const CALL_ID_MAX: usize = 40;

/// A sandbox may outlive its deadline by this much before a sweep takes it: ending takes a moment.
const SWEEP_GRACE: Duration = Duration::from_secs(10);

/// The id of a call: lowercase letters, digits and inner hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(String);

impl CallId {
    /// Takes an id of safe characters; `None` for anything else.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends = !text.starts_with('-') && !text.ends_with('-');
        (!text.is_empty() && text.len() <= CALL_ID_MAX && ends && text.bytes().all(safe))
            .then(|| Self(text.to_owned()))
    }

    /// A new id: the time in milliseconds, then chance. Ids sort by time.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn fresh() -> io::Result<Self> {
        let chance: [u8; 8] = crate::sys::random()?;
        let millis = now().as_millis();
        Ok(Self(format!("{millis:011x}-{:016x}", u64::from_le_bytes(chance))))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Time since 1970.
#[must_use]
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The process that a sandbox belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its user.
    pub uid: u32,
    /// The machine, its boot and the process namespace, in which `pid` means something.
    pub place: String,
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's own count: numbers are used again.
    pub started: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn this() -> io::Result<Self> {
        // It is asked once for every call that runs, and is the same for the life of a process.
        static THIS: std::sync::OnceLock<Owner> = std::sync::OnceLock::new();
        match THIS.get() {
            Some(known) => Ok(known.clone()),
            None => Self::of(std::process::id()).map(|found| THIS.get_or_init(|| found).clone()),
        }
    }

    /// A process of this user.
    ///
    /// # Errors
    /// There is none of this number, or `/proc` cannot be read.
    pub fn of(pid: u32) -> io::Result<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let namespace = std::fs::metadata("/proc/self/ns/pid")?.ino();
        let place = format!("{}-{namespace}", boot.trim());
        let started = started(pid).ok_or_else(|| io::Error::other("/proc/PID/stat"))?;
        Ok(Self { uid: rustix::process::getuid().as_raw(), place, pid, started })
    }
}

impl Owner {
    /// Whether this process is known to be dead: its number is free or another's, or the machine was
    /// started anew. Of another process namespace nothing is known.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let Ok(me) = Self::this() else { return false };
        if me.place == self.place {
            return started(self.pid) != Some(self.started);
        }
        let boot = |place: &str| place.rsplit_once('-').map(|(boot, _)| boot.to_owned());
        boot(&me.place) != boot(&self.place)
    }
}

/// When a process started, or `None` if there is none of that number.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; what follows its end does not.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The labels of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The call.
    pub call: CallId,
    /// Whose it is.
    pub owner: Owner,
    /// When it must be gone, since 1970.
    pub deadline: Duration,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a sandbox is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// One call of the process that made it; it goes with that process.
    Call,
    /// Whichever call claims it: it outlives the process that made it.
    Waiting,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Waiting => "waiting",
        }
    }
}

impl Labels {
    /// The name of the container.
    #[must_use]
    pub fn name(&self) -> String {
        Self::name_of(&self.call)
    }

    /// The name of a call's container.
    #[must_use]
    pub fn name_of(call: &CallId) -> String {
        format!("runner-{call}")
    }

    /// As the engine keeps them.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let rows = [
            ("call", self.call.to_string()),
            ("owner", self.owner.uid.to_string()),
            ("deadline", self.deadline.as_secs().to_string()),
            ("place", self.owner.place.clone()),
            ("pid", self.owner.pid.to_string()),
            ("started", self.owner.started.to_string()),
            ("purpose", self.purpose.word().to_owned()),
        ];
        rows.into_iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect()
    }

    /// The key of a label.
    #[must_use]
    pub fn key(name: &str) -> String {
        format!("{PREFIX}{name}")
    }

    /// Keeps what is ours of an engine's labels.
    pub fn ours<I: IntoIterator<Item = (String, String)>>(all: I) -> BTreeMap<String, String> {
        all.into_iter().filter(|(key, _)| key.starts_with(PREFIX)).collect()
    }
}

/// Whether a sandbox with these labels should be gone: past its deadline, or its process is dead. One that waits needs
/// its process only until it is started.
#[must_use]
pub fn is_left_over(
    labels: &BTreeMap<String, String>,
    state: State,
    me: &Owner,
    now: Duration,
) -> bool {
    let get = |name: &str| labels.get(&Labels::key(name));
    let number = |name: &str| get(name).and_then(|value| value.parse::<u64>().ok());
    if number("owner") != Some(u64::from(me.uid)) {
        return false;
    }
    let expired = number("deadline")
        .is_some_and(|deadline| now > Duration::from_secs(deadline) + SWEEP_GRACE);
    let orphaned = get("place") == Some(&me.place)
        && number("pid")
            .and_then(|pid| u32::try_from(pid).ok())
            .is_some_and(|pid| started(pid) != number("started"));
    let needed = state == State::Created
        || get("purpose").is_none_or(|purpose| purpose != Purpose::Waiting.word());
    expired || (needed && orphaned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(owner: Owner, deadline: Duration) -> BTreeMap<String, String> {
        let call = CallId::new("c1").unwrap();
        Labels { call, owner, deadline, purpose: Purpose::Call }.to_map()
    }

    #[test]
    fn an_id_has_safe_characters_only() {
        for good in ["a", "0198-ab", "x".repeat(40).as_str()] {
            assert!(CallId::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a b", "a/b", "a=b", "ä", "a\n", "x".repeat(41).as_str()]
        {
            assert!(CallId::new(bad).is_none(), "{bad:?}");
        }
        let fresh = CallId::fresh().unwrap();
        assert_eq!(CallId::new(fresh.as_str()), Some(fresh));
    }

    #[test]
    fn a_sandbox_is_left_over_past_its_deadline_or_without_its_process() {
        let me = Owner::this().unwrap();
        let later = now() + Duration::from_secs(60);
        assert!(!is_left_over(&labels(me.clone(), later), State::Running, &me, now()));
        assert!(is_left_over(
            &labels(me.clone(), Duration::from_secs(1)),
            State::Running,
            &me,
            now()
        ));
        let dead = Owner { started: me.started + 1, ..me.clone() };
        assert!(is_left_over(&labels(dead, later), State::Running, &me, now()));
        let gone = Owner { pid: 4_000_000_000, ..me.clone() };
        assert!(is_left_over(&labels(gone, later), State::Running, &me, now()));
    }

    #[test]
    fn a_waiting_sandbox_outlives_its_maker_once_it_was_started() {
        let me = Owner::this().unwrap();
        let dead = Owner { started: me.started + 1, ..me.clone() };
        let call = CallId::new("c1").unwrap();
        let deadline = now() + Duration::from_secs(60);
        let labels = Labels { call, owner: dead, deadline, purpose: Purpose::Waiting }.to_map();
        assert!(!is_left_over(&labels, State::Running, &me, now()));
        assert!(is_left_over(&labels, State::Created, &me, now()), "nobody is inside to end it");
        let late = deadline + Duration::from_secs(60);
        assert!(is_left_over(&labels, State::Running, &me, late));
    }

    #[test]
    fn what_another_user_or_machine_owns_is_left_alone() {
        let me = Owner::this().unwrap();
        let other = Owner { uid: me.uid + 1, ..me.clone() };
        assert!(!is_left_over(&labels(other, Duration::ZERO), State::Running, &me, now()));
        let away = Owner { place: "elsewhere".to_owned(), pid: 4_000_000_000, ..me.clone() };
        assert!(!is_left_over(
            &labels(away, now() + Duration::from_secs(60)),
            State::Running,
            &me,
            now()
        ));
        assert!(!is_left_over(&BTreeMap::new(), State::Running, &me, now()));
    }
}
