//! The gate in a real store.

use super::*;
use crate::config::Breaker as Figures;

fn limits() -> Limits {
    Limits {
        max_execution_time: None,
        calls_per_minute: None,
        concurrency: 10,
        queue: 100,
        total_time: None,
        daily_cost: None,
        breaker: Figures { errors: 50, calls: 4, window: Duration::from_secs(3_600), pause: PAUSE },
    }
}

struct Case {
    _folder: tempfile::TempDir,
    store: Store,
    tool: ToolName,
    /// What time it is.
    now: Duration,
}

/// A minute before the end of a day.
const LATE: Duration = Duration::from_secs(86_400 * 20_000 - 60);

/// As limits have it.
const PAUSE: Duration = Duration::from_secs(30);

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(folder.path())).unwrap();
        Self { _folder: folder, store, tool: "t".parse().unwrap(), now: LATE }
    }

    fn call(&self, limits: Limits, went: Went) -> Result<(), Why> {
        self.call_or_shut(limits, went).map_err(|shut| shut.why)
    }

    fn call_or_shut(&self, limits: Limits, went: Went) -> Result<(), Shut> {
        let (gate, id) = (Gate::new(&self.store, &self.tool, limits), CallId::fresh().unwrap());
        gate.enter(&id, 1_000, self.now).unwrap()?;
        gate.leave(&id, went, 0, self.now).unwrap();
        Ok(())
    }

    fn standing(&self, limits: Limits) -> Standing {
        Gate::new(&self.store, &self.tool, limits).standing(self.now).unwrap()
    }

    fn stands(&self, limits: Limits) -> Breaker {
        self.standing(limits).breaker
    }

    /// Goes on to this time, in milliseconds since 1970.
    fn wait_until(&mut self, moment: i64) {
        self.now = Duration::from_millis(u64::try_from(moment).unwrap());
    }
}

#[test]
fn so_many_calls_a_minute() {
    let mut case = Case::new();
    let limits = Limits { calls_per_minute: Some(2), ..limits() };
    assert_eq!(case.call(limits, Went::Well), Ok(()));
    case.now += Duration::from_secs(20);
    assert_eq!(case.call(limits, Went::Neither), Ok(()));
    case.now += Duration::from_secs(20);
    let shut = case.call_or_shut(limits, Went::Well).unwrap_err();
    assert_eq!(shut, Shut { why: Why::Rate { most: 2 }, retry_at: millis(LATE) + MINUTE });
    // It holds until then; then one call is older than a minute, and the other is not.
    case.wait_until(shut.retry_at - 1);
    assert_eq!(case.call(limits, Went::Well), Err(Why::Rate { most: 2 }));
    case.wait_until(shut.retry_at);
    assert_eq!(case.call(limits, Went::Well), Ok(()));
    assert_eq!(case.call(limits, Went::Well), Err(Why::Rate { most: 2 }));
    // Another tool has its own.
    let other = Case { tool: "u".parse().unwrap(), ..case };
    assert_eq!(other.call(limits, Went::Well), Ok(()));
}

#[test]
fn a_day_costs_no_more_than_it_may() {
    let mut case = Case::new();
    let limits = Limits { daily_cost: Some(2_500), ..limits() };
    assert_eq!(case.call(limits, Went::Well), Ok(()));
    assert_eq!(case.call(limits, Went::Badly), Ok(()));
    let why = Why::Cost { spent: 2_000, more: 1_000, most: 2_500 };
    let shut = case.call_or_shut(limits, Went::Well).unwrap_err();
    assert_eq!(shut, Shut { why, retry_at: millis(LATE) + MINUTE });
    // What costs nothing may go on; what did cost something is expected to do so again.
    let free = "free".parse().unwrap();
    let (gate, id) = (Gate::new(&case.store, &free, limits), CallId::fresh().unwrap());
    assert_eq!(gate.enter(&id, 0, case.now).unwrap(), Ok(()));
    gate.leave(&id, Went::Neither, 600, case.now).unwrap();
    let refused =
        |cost| gate.enter(&CallId::fresh().unwrap(), cost, case.now).unwrap().unwrap_err().why;
    assert_eq!(refused(0), Why::Cost { spent: 2_600, more: 600, most: 2_500 });
    // An absurd cost is kept, and does not break the sum.
    gate.leave(&id, Went::Well, u64::MAX, case.now).unwrap();
    let why = refused(u64::MAX);
    assert!(matches!(why, Why::Cost { spent, .. } if spent >= 1 << 62), "{why:?}");
    // The next day begins with nothing spent.
    case.wait_until(shut.retry_at - 1);
    assert!(matches!(case.call(limits, Went::Well), Err(Why::Cost { .. })));
    case.wait_until(shut.retry_at);
    assert_eq!(case.call(limits, Went::Well), Ok(()));
}

#[test]
fn what_fails_too_often_pauses_and_is_tried_once() {
    let mut case = Case::new();
    let limits = limits();
    for went in [Went::Well, Went::Badly, Went::Badly, Went::Neither] {
        assert_eq!(case.call(limits, went), Ok(()));
    }
    assert_eq!(case.stands(limits), Breaker::Closed);
    assert_eq!(case.call(limits, Went::Badly), Ok(()));
    let opened = millis(case.now);
    let standing = case.standing(limits);
    assert_eq!((standing.breaker, standing.opened), (Breaker::Open, Some(opened)));
    assert_eq!(standing.retry_at, Some(opened + millis(PAUSE)));
    // It stays shut until the pause is over, and says when that is.
    case.now += PAUSE - Duration::from_millis(1);
    let shut = case.call_or_shut(limits, Went::Well).unwrap_err();
    assert_eq!(shut, Shut { why: Why::Open, retry_at: opened + millis(PAUSE) });
    case.wait_until(shut.retry_at);
    assert_eq!(case.stands(limits), Breaker::HalfOpen);
    // The probe fails: another pause.
    assert_eq!(case.call(limits, Went::Badly), Ok(()));
    let shut = case.call_or_shut(limits, Went::Well).unwrap_err();
    assert_eq!(shut, Shut { why: Why::Open, retry_at: opened + 2 * millis(PAUSE) });
    // One probe at a time; one that went well closes it.
    case.wait_until(shut.retry_at);
    let (gate, id) = (Gate::new(&case.store, &case.tool, limits), CallId::fresh().unwrap());
    assert_eq!(gate.enter(&id, 0, case.now).unwrap(), Ok(()));
    assert_eq!(case.call(limits, Went::Well), Err(Why::Open), "one probe at a time");
    gate.leave(&id, Went::Well, 0, case.now).unwrap();
    assert_eq!(case.stands(limits), Breaker::Closed);
    assert_eq!(case.call(limits, Went::Well), Ok(()));
}

#[test]
fn a_probe_whose_process_died_does_not_shut_the_gate_for_ever() {
    let mut case = Case::new();
    let limits = limits();
    for _ in 0..4 {
        assert_eq!(case.call(limits, Went::Badly), Ok(()));
    }
    case.now += PAUSE;
    let gate = Gate::new(&case.store, &case.tool, limits);
    assert_eq!(gate.enter(&CallId::fresh().unwrap(), 0, case.now).unwrap(), Ok(()));
    assert_eq!(case.stands(limits), Breaker::Open);
    case.now += PAUSE;
    assert_eq!(case.stands(limits), Breaker::HalfOpen);
    assert_eq!(case.call(limits, Went::Well), Ok(()));
}

#[test]
fn failures_before_the_window_do_not_count() {
    let mut case = Case::new();
    let limits = limits();
    for _ in 0..3 {
        assert_eq!(case.call(limits, Went::Badly), Ok(()));
    }
    case.now += limits.breaker.window + Duration::from_millis(1);
    assert_eq!(case.call(limits, Went::Badly), Ok(()));
    let standing = case.standing(limits);
    assert_eq!((standing.breaker, standing.calls, standing.failed), (Breaker::Closed, 1, 1));
}

#[test]
fn a_day_has_an_end() {
    let now = 1_790_000_000_123;
    let (today, tomorrow) = day(now);
    assert!(today <= now && now < tomorrow && tomorrow - today == 86_400_000);
}
