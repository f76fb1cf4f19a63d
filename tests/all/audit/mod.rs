//! The ledger through the real command line: what it tells, and that nobody changes it unseen.

mod commands;
mod deaths;
mod programs;
mod tampering;
mod undo;

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::Value;

use crate::support::{Home, Ran};

/// The database of a caller.
fn database(home: &Home) -> Connection {
    Connection::open(home.path("state/runner/store.db")).expect("the database")
}

fn state(home: &Home, name: &str) -> PathBuf {
    home.path(&format!("state/runner/{name}"))
}

/// As many refused calls, without an engine: each is one record.
fn refused(home: &Home, count: usize) {
    for at in 0..count {
        let ran = home.run(["exec", "--", "rm", &format!("file-{at}")]);
        assert_eq!(ran.code, Some(126), "{}", ran.err);
    }
}

fn verify(home: &Home) -> (Value, Ran) {
    let ran = home.run(["audit", "verify", "--json"]);
    (ran.json(), ran)
}

/// The ledger is as it was recorded.
fn assert_sound(home: &Home) -> Value {
    let (report, ran) = verify(home);
    assert_eq!(ran.code, Some(0), "{report:#}");
    assert_eq!((&report["ok"], &report["findings"]), (&true.into(), &serde_json::json!([])));
    report
}

/// The first thing that is wrong: the record and the problem.
fn first_problem(home: &Home) -> (i64, String) {
    let (report, ran) = verify(home);
    assert_eq!(ran.code, Some(65), "{report:#}");
    let first = &report["findings"][0];
    (
        first["seq"].as_i64().expect("a record"),
        first["problem"].as_str().expect("a word").to_owned(),
    )
}
