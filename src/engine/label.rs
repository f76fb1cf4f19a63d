//! Names and labels: how a sandbox says whose it is, in characters that nothing has to quote.

use std::collections::BTreeMap;
use std::time::Duration;

use super::traits::State;
use crate::ids::{CallId, Owner};

/// Every label of ours begins with this.
const PREFIX: &str = "runner.";

/// A sandbox may outlive its deadline by this much before a sweep takes it: ending takes a moment.
const SWEEP_GRACE: Duration = Duration::from_secs(10);

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
            .is_some_and(|pid| Owner::started(pid) != number("started"));
    let needed = state == State::Created
        || get("purpose").is_none_or(|purpose| purpose != Purpose::Waiting.word());
    expired || (needed && orphaned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::now;

    fn labels(owner: Owner, deadline: Duration) -> BTreeMap<String, String> {
        let call = CallId::new("c1").unwrap();
        Labels { call, owner, deadline, purpose: Purpose::Call }.to_map()
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
