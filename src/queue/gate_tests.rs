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
        breaker: Figures {
            errors: 50,
            calls: 4,
            window: Duration::from_secs(3_600),
            pause: Duration::from_secs(3_600),
        },
    }
}

struct Case {
    _folder: tempfile::TempDir,
    store: Store,
    tool: ToolName,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(folder.path())).unwrap();
        Self { _folder: folder, store, tool: "t".parse().unwrap() }
    }

    fn call(&self, limits: Limits, went: Went) -> Result<(), Why> {
        let (gate, id) = (Gate::new(&self.store, &self.tool, limits), CallId::fresh().unwrap());
        gate.enter(&id, 1_000).unwrap().map_err(|shut| shut.why)?;
        gate.leave(&id, went, 0).unwrap();
        Ok(())
    }

    fn stands(&self, limits: Limits) -> Breaker {
        Gate::new(&self.store, &self.tool, limits).standing().unwrap().breaker
    }
}

#[test]
fn so_many_calls_a_minute() {
    let case = Case::new();
    let limits = Limits { calls_per_minute: Some(2), ..limits() };
    assert_eq!(case.call(limits, Went::Well), Ok(()));
    assert_eq!(case.call(limits, Went::Neither), Ok(()));
    assert_eq!(case.call(limits, Went::Well), Err(Why::Rate { most: 2 }));
    // Another tool has its own.
    let other = Case { tool: "u".parse().unwrap(), ..case };
    assert_eq!(other.call(limits, Went::Well), Ok(()));
}

#[test]
fn a_day_costs_no_more_than_it_may() {
    let case = Case::new();
    let limits = Limits { daily_cost: Some(2_500), ..limits() };
    assert_eq!(case.call(limits, Went::Well), Ok(()));
    assert_eq!(case.call(limits, Went::Badly), Ok(()));
    let why = Why::Cost { spent: 2_000, more: 1_000, most: 2_500 };
    assert_eq!(case.call(limits, Went::Well), Err(why));
    // What costs nothing may go on; what did cost something is expected to do so again.
    let free = Case { tool: "free".parse().unwrap(), ..case };
    let (gate, id) = (Gate::new(&free.store, &free.tool, limits), CallId::fresh().unwrap());
    assert_eq!(gate.enter(&id, 0).unwrap(), Ok(()));
    gate.leave(&id, Went::Neither, 600).unwrap();
    let shut = gate.enter(&CallId::fresh().unwrap(), 0).unwrap().unwrap_err();
    assert_eq!(shut.why, Why::Cost { spent: 2_600, more: 600, most: 2_500 });
    // An absurd cost is kept, and does not break the sum.
    gate.leave(&id, Went::Well, u64::MAX).unwrap();
    let shut = gate.enter(&CallId::fresh().unwrap(), u64::MAX).unwrap().unwrap_err();
    assert!(matches!(shut.why, Why::Cost { spent, .. } if spent >= 1 << 62), "{shut:?}");
}

#[test]
fn what_fails_too_often_pauses_and_is_tried_once() {
    let case = Case::new();
    let closed = limits();
    for went in [Went::Well, Went::Badly, Went::Badly, Went::Neither] {
        assert_eq!(case.call(closed, went), Ok(()));
    }
    assert_eq!(case.stands(closed), Breaker::Closed);
    assert_eq!(case.call(closed, Went::Badly), Ok(()));
    assert_eq!(case.stands(closed), Breaker::Open);
    assert_eq!(case.call(closed, Went::Well), Err(Why::Open));
    // The pause is over.
    let over = Limits { breaker: Figures { pause: Duration::ZERO, ..closed.breaker }, ..closed };
    assert_eq!(case.stands(over), Breaker::HalfOpen);
    assert_eq!(case.call(over, Went::Badly), Ok(()));
    assert_eq!(case.call(closed, Went::Well), Err(Why::Open), "the probe failed");
    let (gate, id) = (Gate::new(&case.store, &case.tool, over), CallId::fresh().unwrap());
    assert_eq!(gate.enter(&id, 0).unwrap(), Ok(()));
    assert_eq!(case.call(closed, Went::Well), Err(Why::Open), "one probe at a time");
    gate.leave(&id, Went::Well, 0).unwrap();
    assert_eq!(case.stands(closed), Breaker::Closed);
    assert_eq!(case.call(closed, Went::Well), Ok(()));
}

#[test]
fn a_day_has_an_end() {
    let now = 1_790_000_000_123;
    let (today, tomorrow) = day(now);
    assert!(today <= now && now < tomorrow && tomorrow - today == 86_400_000);
}
