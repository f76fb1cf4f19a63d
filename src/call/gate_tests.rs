//! Each way in which a question ends.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Map;
use tempfile::TempDir;

use super::*;
use crate::approvals::{Asked, Book, Given, Scope, Terms};
use crate::audit::{Ledger, Redactor};
use crate::call::approval::{Action, Always, Approver, Question, Reply, Spent};
use crate::caller::{Caller, Front};
use crate::config::Config;
use crate::environment::Environment;
use crate::policy_files::Places;
use crate::store::Store;

/// Somebody who answers when the test says so, or dies.
struct Slow(Mutex<Receiver<Reply>>);

impl Approver for Slow {
    fn ask(&self, _: &Question) -> Reply {
        self.0.lock().unwrap().recv().expect("nobody will answer")
    }
}

fn yes() -> Reply {
    Reply::Given(Given { scope: Scope::Once, time: None, patterns: Vec::new() })
}

fn places(state: &std::path::Path) -> Places {
    Places::of(&Environment::from_iter([("XDG_STATE_HOME", state)]), None)
}

fn pending(state: &std::path::Path, approver: Arc<dyn Approver>, most: Duration) -> Pending {
    let mut times = Config::default().approvals();
    times.pending = most;
    let asking = Asking {
        approver,
        named: Vec::new(),
        places: places(state),
        times,
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: Caller::of_process(Front::CommandLine),
    };
    let question = Question::Command {
        holds: None,
        tool: None,
        command: "echo hi".to_owned(),
        folder: "/w".to_owned(),
        image: None,
        effects: Vec::new(),
        headers: Vec::new(),
        fed: None,
        reason: None,
        rule: None,
    };
    let asked = Asked {
        files: Vec::new(),
        subject: "exec".to_owned(),
        digest: String::new(),
        inputs: Vec::new(),
        terms: Terms { policy: String::new(), image: None, cwd: "/w".to_owned() },
        arguments: Map::new(),
        deeds: Vec::new(),
        workspace: "/w".to_owned(),
    };
    let call = CallId::fresh().unwrap();
    Pending::new(Arc::new(asking), Inquiry { question, asked, call, action: Action::default() })
}

const LONG: Duration = Duration::from_secs(3_600);

async fn put(pending: Pending) -> Consent {
    pending.put(&mut Cancel::pair().1).await
}

fn refused(consent: Consent) -> NotApproved {
    match consent {
        Consent::Refused(why) => why,
        Consent::NotAsked | Consent::Given => panic!("it was approved"),
    }
}

fn exit(why: &NotApproved) -> u8 {
    why.ending().exit.get()
}

#[tokio::test]
async fn only_a_yes_is_one() {
    let state = TempDir::new().unwrap();
    let answered = |reply| put(pending(state.path(), Arc::new(Always(reply)), LONG));
    assert!(matches!(answered(yes()).await, Consent::Given));
    assert!(matches!(answered(Reply::Option).await, Consent::Given));
    assert_eq!(exit(&refused(answered(Reply::No).await)), 77);
    let waits = refused(answered(Reply::Nobody).await);
    assert!(matches!(waits, NotApproved::Answer(Unapproved::Waits(_))), "{waits:?}");
    assert_eq!(exit(&waits), 77);
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_no_yes_whatever_a_person_says() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    for reply in [yes(), Reply::Option, Reply::No, Reply::Nobody] {
        let why = refused(put(pending(&file, Arc::new(Always(reply)), LONG)).await);
        assert!(matches!(why, NotApproved::Failed(ApprovalError::Store(_))), "{why:?}");
        assert_eq!(exit(&why), 125);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_counts_for_nothing_when_it_comes() {
    let state = TempDir::new().unwrap();
    let (answers, slow) = channel();
    let slow = Arc::new(Slow(Mutex::new(slow)));
    let late = pending(state.path(), Arc::clone(&slow) as _, Duration::from_millis(50));
    let why = refused(put(late).await);
    assert!(matches!(why, NotApproved::Answer(Unapproved::Unanswered(_))), "{why:?}");
    assert_eq!((exit(&why), why.error("it").code.as_str()), (77, "approval_needed"));
    let given = Given { scope: Scope::Time, time: Some(LONG), patterns: Vec::new() };
    answers.send(Reply::Given(given)).unwrap();
    // The thread that heard it lets go of the one who asked.
    while Arc::strong_count(&slow) > 1 {
        tokio::task::yield_now().await;
    }
    let store = Store::open(places(state.path()).state.as_deref()).unwrap();
    let book = Book::new(
        Ledger::new(store),
        Config::default().approvals(),
        Caller::of_process(Front::CommandLine),
    );
    assert!(book.list(true).unwrap().is_empty(), "nothing is kept of it");
}

#[tokio::test]
async fn one_who_dies_over_a_question_has_not_said_yes() {
    let state = TempDir::new().unwrap();
    let (answers, slow) = channel();
    drop(answers);
    let slow = Arc::new(Slow(Mutex::new(slow)));
    assert_eq!(exit(&refused(put(pending(state.path(), slow, LONG)).await)), 77);
}

#[tokio::test]
async fn who_cancels_does_not_wait_for_an_answer() {
    let state = TempDir::new().unwrap();
    let (_answers, slow) = channel();
    let slow = Arc::new(Slow(Mutex::new(slow)));
    let (canceller, mut cancel) = Cancel::pair();
    canceller.cancel(CancelCause::Interrupt);
    let why = refused(pending(state.path(), slow, LONG).put(&mut cancel).await);
    assert!(matches!(why, NotApproved::Cancelled(CancelCause::Interrupt)), "{why:?}");
    assert_eq!(exit(&why), 130);
    // The runtime would wait for the thread that asks.
    drop(_answers);
}
