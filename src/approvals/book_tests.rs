//! Questions and answers in a real store.

use super::*;
use crate::audit::{Filter, Kind, Ledger};
use crate::caller::{Credential, Front};
use crate::store::Store;
use serde_json::json;

fn book(folder: &std::path::Path) -> Book {
    let times = crate::config::Config::default().approvals();
    Book::new(ledger(folder), times, caller(Some("this")))
}

fn caller(leader: Option<&str>) -> Caller {
    let credential = Credential::Terminal(leader.map(str::to_owned));
    Caller { uid: 0, front: Front::CommandLine, credential, claimed: None }
}

fn ledger(folder: &std::path::Path) -> Ledger {
    Ledger::new(Store::open(Some(folder)).unwrap())
}

fn asked(digest: &str, arguments: Value) -> Asked {
    Asked {
        subject: "tool:t".to_owned(),
        digest: digest.to_owned(),
        inputs: vec![("t.yml".to_owned(), digest.to_owned())],
        terms: terms("p"),
        arguments: arguments.as_object().unwrap().clone(),
        deeds: Vec::new(),
        files: Vec::new(),
        workspace: "/w".to_owned(),
    }
}

fn terms(policy: &str) -> crate::approvals::Terms {
    crate::approvals::Terms { policy: policy.to_owned(), image: None, cwd: "/w".to_owned() }
}

fn given(scope: Scope) -> Given {
    Given { scope, time: None, patterns: Vec::new() }
}

fn granted(book: &Book, asked: &Asked, only: Option<&ApprovalId>) -> Option<ApprovalId> {
    match book.look(asked, only, &CallId::fresh().unwrap()).unwrap() {
        Ruling::Granted(id) => Some(id),
        Ruling::Never(_) | Ruling::Nothing => None,
    }
}

#[test]
fn a_question_is_written_once_answered_once_and_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let first = asked("d", json!({"a": 1}));
    let id = book.wait(&first, json!([]), &call).unwrap().id;
    assert_eq!(book.wait(&first, json!([]), &call).unwrap().id, id);
    assert!(matches!(book.look(&first, Some(&id), &call), Err(ApprovalError::NotYet(_))));
    assert_eq!(granted(&book, &first, None), None);
    book.answer(&id, &given(Scope::Once)).unwrap();
    let other = asked("d", json!({"a": 2}));
    assert!(matches!(book.look(&other, Some(&id), &call), Err(ApprovalError::Differs(_))));
    assert_eq!(granted(&book, &first, Some(&id)), Some(id.clone()));
    let again = book.look(&first, Some(&id), &call).unwrap_err();
    assert!(matches!(again, ApprovalError::Over { state: "used", .. }), "{again}");
    assert_eq!(granted(&book, &first, None), None);
}

#[test]
fn an_approval_for_a_time_holds_for_its_pattern_until_the_tool_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let id = book.wait(&asked("d", json!({"p": "src/a"})), json!([]), &call).unwrap().id;
    let wrong = Given { patterns: vec![("q".to_owned(), "*".to_owned())], ..given(Scope::Time) };
    assert!(matches!(book.answer(&id, &wrong), Err(ApprovalError::BadOption(_))));
    let like = Given { patterns: vec![("p".to_owned(), "src/*".to_owned())], ..given(Scope::Time) };
    book.answer(&id, &like).unwrap();
    for _ in 0..3 {
        assert_eq!(granted(&book, &asked("d", json!({"p": "src/b"})), None), Some(id.clone()));
    }
    assert_eq!(granted(&book, &asked("d", json!({"p": "etc/b"})), None), None);
    let changed = book.look(&asked("e", json!({"p": "src/b"})), None, &call).unwrap_err();
    assert!(
        matches!(&changed, ApprovalError::Changed { file, .. } if file == "t.yml"),
        "{changed}"
    );
    // It is void from then on, also for the old content.
    assert_eq!(granted(&book, &asked("d", json!({"p": "src/b"})), None), None);
}

#[test]
fn never_holds_until_it_is_taken_back_and_a_session_is_not_anothers() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let it = asked("d", json!({}));
    let never = book.answered(&it, json!([]), &call, &given(Scope::Never)).unwrap().id;
    assert!(matches!(book.look(&it, None, &call).unwrap(), Ruling::Never(_)));
    book.answer(&never, &given(Scope::Once)).unwrap();
    assert_eq!(granted(&book, &it, None), Some(never));
    let session = book.answered(&it, json!([]), &call, &given(Scope::Session)).unwrap();
    assert_eq!(granted(&book, &it, None), Some(session.id.clone()));
    let mut elsewhere = session.row.clone();
    elsewhere.session = Some("another".to_owned());
    ApprovalRows::new(book.recorder.store()).replace("granted", &elsewhere).unwrap();
    assert_eq!(granted(&book, &it, None), None);
    // Where no session can be told from another, nothing is granted for one and nothing is covered by one.
    let nowhere = Book { caller: caller(None), ..book };
    assert!(nowhere.answered(&it, json!([]), &call, &given(Scope::Session)).is_err());
    elsewhere.session = None;
    ApprovalRows::new(nowhere.recorder.store()).replace("granted", &elsewhere).unwrap();
    assert_eq!(granted(&nowhere, &it, None), None);
}

#[test]
fn a_question_under_one_policy_is_another_under_another() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let first = asked("d", json!({"a": 1}));
    let other = Asked { terms: terms("q"), ..first.clone() };
    let id = book.wait(&first, json!([["policy", "p"]]), &call).unwrap().id;
    assert_ne!(book.wait(&other, json!([["policy", "q"]]), &call).unwrap().id, id);
    book.answer(&id, &given(Scope::Time)).unwrap();
    assert!(matches!(book.look(&other, Some(&id), &call), Err(ApprovalError::Differs(_))));
    assert_eq!(granted(&book, &other, None), None);
    assert_eq!(granted(&book, &first, None), Some(id));
}

#[test]
fn a_never_stands_above_every_yes_and_each_use_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let (it, other) = (asked("d", json!({"p": "src/a"})), asked("d", json!({"p": "src/b"})));
    let never = book.answered(&it, json!([]), &call, &given(Scope::Never)).unwrap().id;
    let yes = book.wait(&other, json!([]), &call).unwrap().id;
    let like = Given { patterns: vec![("p".to_owned(), "src/*".to_owned())], ..given(Scope::Time) };
    book.answer(&yes, &like).unwrap();
    for named in [None, Some(&yes)] {
        let found = book.look(&it, named, &call).unwrap();
        assert!(matches!(found, Ruling::Never(it) if it.id == never && it.said > 0));
    }
    // The control: what nobody said never to. Each use is in the ledger, by the call that uses it.
    for _ in 0..2 {
        let user = CallId::fresh().unwrap();
        assert!(matches!(book.look(&other, None, &user).unwrap(), Ruling::Granted(_)));
        let rows = ledger(folder.path()).show(user.as_str()).unwrap();
        let used: Vec<_> = rows.iter().map(|row| (&row.body["answer"], &row.body["id"])).collect();
        assert_eq!(used, [(&json!("used"), &json!(yes))]);
    }
}

#[test]
fn a_command_and_a_digest_are_approved_only_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let arguments = json!({"command": "x", "words": ["x"], "folder": "/w", "body": "d", "request": "GET x", "path": "a"});
    for (subject, name, may) in [
        ("exec", "command", false),
        ("exec", "folder", false),
        ("tool:t/exec", "command", false),
        ("tool:t/exec", "words", false),
        ("tool:t/net", "body", false),
        ("tool:t/net", "request", true),
        ("tool:t/remove", "path", true),
        ("tool:t", "path", true),
    ] {
        let asked = Asked { subject: subject.to_owned(), ..asked("d", arguments.clone()) };
        let id = book.wait(&asked, json!([]), &call).unwrap().id;
        let like =
            Given { patterns: vec![(name.to_owned(), "*".to_owned())], ..given(Scope::Time) };
        assert_eq!(book.answer(&id, &like).is_ok(), may, "{subject} {name}");
    }
}

#[test]
fn what_waited_too_long_is_over_and_everything_is_in_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let (book, call) = (book(folder.path()), CallId::fresh().unwrap());
    let it = asked("d", json!({}));
    let waiting = book.wait(&it, json!([["tool", "t"]]), &call).unwrap();
    let late = ApprovalRow { ends: waiting.asked - 1, ..waiting.row.clone() };
    ApprovalRows::new(book.recorder.store()).replace("pending", &late).unwrap();
    assert!(book.answer(&waiting.id, &given(Scope::Once)).is_err());
    assert!(book.list(false).unwrap().is_empty());
    let fresh = book.wait(&it, json!([]), &call).unwrap();
    assert_ne!(fresh.id, waiting.id);
    book.deny(&fresh.id).unwrap();
    assert!(book.deny(&fresh.id).is_err());
    assert_eq!(book.list(true).unwrap().len(), 2);
    let ledger = ledger(folder.path());
    let rows = ledger.show(call.as_str()).unwrap();
    assert!(rows.iter().all(|row| row.kind == Kind::Approval), "{rows:?}");
    let answers: Vec<_> = rows.iter().map(|row| row.body["answer"].clone()).collect();
    assert_eq!(answers, ["asked", "asked", "denied"]);
    assert!(ledger.list(&Filter::default()).unwrap().is_empty(), "a question is no call");
}
