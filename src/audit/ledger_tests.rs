//! Lists of calls: what was refused, by whom, and which call an id means.

use serde_json::json;

use super::*;
use crate::audit::{Ended, Event, Started, ToolRef};
use crate::caller::{Caller, Front};
use crate::codes::Code;
use crate::exit::{ExitCode, Status};
use crate::ids::{CallId, Owner};
use crate::store::Store;
use runner_policy::model::Verdict;

const REFUSED: &[Outcome] = &[Outcome::Denied, Outcome::NeedsApproval];

/// A tool's call, which started.
fn started() -> Started {
    let policy = crate::policy_files::shipped().into_iter().next().unwrap();
    let tool = ToolRef { name: "t".to_owned(), digest: "d".to_owned() };
    Started::of_tool(
        "run",
        tool,
        json!({}),
        ("/w", "/w"),
        &policy,
        &Caller::of_process(Front::CommandLine),
    )
}

#[test]
fn a_tool_that_was_refused_while_it_ran_is_listed_as_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(Store::open(Some(dir.path())).unwrap());
    let owner = Owner::this().unwrap();
    let call = |status, exit, code: Option<Code>| {
        let id = CallId::fresh().unwrap();
        ledger.append(&id, &[Event::Start(&started())], &owner).unwrap();
        let ended = Ended {
            status,
            exit: ExitCode::of_command(exit),
            code,
            rule: None,
            cost_microdollars: None,
            duration_ms: 1,
            detail: Value::Null,
        };
        ledger.append(&id, &[Event::End(&ended)], &owner).unwrap();
        id.to_string()
    };
    let denied = call(Status::Denied, 126, Some(Code::PathDenied));
    let asked = call(Status::NeedsApproval, 77, Some(Code::Ask));
    // The controls: a command's own 126 is no refusal, and what still runs was not refused.
    call(Status::Failed, 126, None);
    ledger.append(&CallId::fresh().unwrap(), &[Event::Start(&started())], &owner).unwrap();
    let id = CallId::fresh().unwrap();
    let refused = started().refused(Verdict::Deny, Code::NoRule, "x".to_owned());
    ledger.append(&id, &[Event::Refused(&refused)], &owner).unwrap();

    let all = ledger.list(&Filter::default()).unwrap();
    assert_eq!(all.len(), 5);
    let found = ledger.list(&Filter { outcomes: Some(REFUSED), ..Filter::default() }).unwrap();
    let told: Vec<_> = found
        .iter()
        .map(|it| (it.call.clone(), it.status.as_str(), it.exit, it.error.as_deref()))
        .collect();
    let expected = [
        (id.to_string(), "denied", Some(126), None),
        (asked, "needs_approval", Some(77), Some("ask")),
        (denied.clone(), "denied", Some(126), Some("path_denied")),
    ];
    assert_eq!(told, expected);

    assert_eq!(ledger.beginning(&denied).unwrap(), [denied.as_str()]);
    assert_eq!(ledger.beginning("").unwrap().len(), 2, "enough to know that they are many");
    assert!(ledger.beginning("nosuch").unwrap().is_empty());
    assert_eq!(ledger.show(&denied).unwrap().len(), 2);
}

#[test]
fn an_empty_head_that_was_put_back_is_a_gap_and_one_that_lags_is_none() {
    for (appends, changed, sound) in
        [(1, "", true), (16, "", true), (17, "", false), (3, CUT, false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let head = dir.path().join("ledger.head");
        crate::audit::seal::Seal::open_or_make(dir.path(), crate::audit::seal::Recorded::Nothing)
            .unwrap();
        let empty = std::fs::read(&head).unwrap();
        let ledger = Ledger::new(Store::open(Some(dir.path())).unwrap());
        let owner = Owner::this().unwrap();
        let append = || {
            let refused = started().refused(Verdict::Deny, Code::NoRule, "x".to_owned());
            ledger.append(&CallId::fresh().unwrap(), &[Event::Refused(&refused)], &owner).unwrap();
        };
        for _ in 0..appends {
            append();
        }
        ledger.store().connection().execute_batch(changed).unwrap();
        std::fs::write(&head, &empty).unwrap();
        append();
        let report = ledger.verify(0, None).unwrap();
        assert_eq!(report.findings.is_empty(), sound, "{appends} {changed} {:?}", report.findings);
        let gaps = if sound { 0 } else { 1 };
        assert_eq!(report.records, appends + 1 + gaps, "{appends} {changed}");
    }
}

/// What whoever changes records would do to have them linked and signed anew.
const CUT: &str = "UPDATE events SET at = at + 1, link = NULL, vouches = NULL, signature = NULL";

#[test]
fn nothing_is_vouched_for_where_nothing_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(Store::open(Some(dir.path())).unwrap());
    let (id, head) = (CallId::fresh().unwrap(), dir.path().join("ledger.head"));
    ledger.append(&id, &[Event::Start(&started())], &Owner::this().unwrap()).unwrap();
    let before = std::fs::read(&head).unwrap();
    ledger.append_all(&id, &[]).unwrap();
    assert_eq!(std::fs::read(&head).unwrap(), before);
    let count = "SELECT count(*) FROM events";
    let rows: i64 = ledger.store().connection().query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}
