//! The ledger and the commands over it: what was asked, decided, and how it ended; nothing is left out.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Home, Ran, engine_under_test, needs_engine};

/// A caller with a policy that lets Python run.
fn caller() -> Home {
    let home = Home::new();
    home.user_policy(
        "code",
        "policy: 1\nname: code\nextends: [readonly]\nsandbox: { limits: { wall: 10m } }\ncommands:\n  - id: python\n    allow: \"python3 ...\"\n    effects: [read, code]\n  - id: node\n    ask: \"node ...\"\n    reason: Others see it.\n",
    );
    fs::write(home.path("project/a.txt"), "one\n").expect("a file");
    home
}

fn events(home: &Home, call: &str) -> Vec<Value> {
    let shown = home.run(["audit", "show", call, "--json"]).json();
    shown["events"].as_array().expect("events").clone()
}

fn calls(home: &Home, options: &[&str]) -> Vec<Value> {
    let args = ["audit", "list", "--json"].iter().chain(options);
    home.run(args).json()["calls"].as_array().expect("calls").clone()
}

/// A call that runs for a while, when its command has begun to run.
fn running(home: &Home) -> (Child, String) {
    let mut child = home
        .runner()
        .args([
            "exec",
            "--policy",
            "code",
            "--",
            "python3",
            "-uc",
            "print('up'); import time; time.sleep(600)",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut first = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut first).expect("a word");
    assert_eq!(&first, b"up\n");
    let shown = home.run(["ps", "--json"]).json();
    let rows = shown["calls"].as_array().expect("calls");
    let row = rows.iter().find(|row| row["pid"] == child.id()).expect("this process");
    (child, row["call"].as_str().expect("an id").to_owned())
}

/// Waits for something that must come soon.
fn soon<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_call_has_a_start_and_an_end() {
    needs_engine();
    let home = caller();
    let result = home.run(["exec", "--json", "--", "cat", "a.txt", "nosuch"]).json();
    let call = result["call"].as_str().expect("an id");
    let events = events(&home, call);
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap_or("")).collect();
    assert_eq!(kinds, ["start", "end"]);
    let start = &events[0]["body"];
    assert_eq!(start["command"], "cat a.txt nosuch");
    assert_eq!(start["argv"], serde_json::json!(["cat", "a.txt", "nosuch"]));
    assert_eq!(start["workspace"], home.path("project").to_str().expect("text"));
    assert_eq!(
        (&start["decision"], &start["rule"]["id"]),
        (&"allow".into(), &"readonly/look".into())
    );
    assert_eq!(start["effects"], serde_json::json!(["read a.txt", "read nosuch"]));
    assert!(start["digest"].as_str().is_some_and(|digest| digest.len() == 64));
    let end = &events[1]["body"];
    assert_eq!((&end["status"], &end["exit"]), (&"failed".into(), &1.into()));
    assert_eq!(end["detail"]["engine"], engine_under_test().as_str());
    assert!(events[0]["seq"].as_i64() < events[1]["seq"].as_i64());
}

#[test]
fn refusals_are_recorded_with_rule_and_code() {
    let home = caller();
    let denied = home.run(["exec", "--json", "--", "rm", "a.txt"]);
    assert_eq!(denied.code, Some(126), "{}", denied.err);
    let denied = denied.json();
    let asked = home.run(["exec", "--json", "--policy", "code", "--", "node", "x.js"]);
    assert_eq!(asked.code, Some(77), "{}", asked.err);
    let found = calls(&home, &["--since", "1h"]);
    assert_eq!(found.len(), 2);
    let only = calls(&home, &["--denied", "--since", "1h"]);
    assert_eq!((only.len(), &only[0]["call"]), (1, &found[1]["call"]), "not what needs approval");
    assert_eq!(
        (&found[0]["status"], &found[0]["rule"]),
        (&"needs_approval".into(), &"code/node".into())
    );
    assert_eq!(
        (&found[1]["status"], &found[1]["rule"]),
        (&"denied".into(), &"readonly/look".into())
    );
    assert_eq!(found[1]["code"], "effect_not_granted");
    let events = events(&home, denied["call"].as_str().expect("an id"));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["kind"], "refused");
    assert_eq!(events[0]["body"]["rule"]["file"], "policies/readonly.yml");
    assert!(home.path("project/a.txt").exists());
    // Moments and times ago; what is none is wrong usage.
    assert_eq!(calls(&home, &["--since", "2020-01-01"]).len(), 2);
    assert_eq!(calls(&home, &["--since", "2099-01-01T00:00:00Z"]).len(), 0);
    assert_eq!(calls(&home, &["-n", "1"]).len(), 1);
    for wrong in ["soon", "", "5x", "\u{e9}"] {
        assert_eq!(home.run(["audit", "list", "--since", wrong]).code, Some(2), "{wrong:?}");
    }
    assert_eq!((&found[0]["exit"], &found[1]["exit"]), (&77.into(), &126.into()));
    // An id by its beginning, if only one call has it.
    for (id, why) in [("nosuch", "there is no call"), ("", "there is no call")] {
        let ran = home.run(["audit", "show", id]);
        assert!(ran.code == Some(2) && ran.err.contains(why), "{id:?}: {}", ran.err);
    }
    let ids = [0, 1].map(|at| found[at]["call"].as_str().expect("an id"));
    let same = ids[0].chars().zip(ids[1].chars()).take_while(|(a, b)| a == b).count();
    if same > 0 {
        let ran = home.run(["audit", "show", &ids[0][..same]]);
        assert!(ran.code == Some(2) && ran.err.contains("several calls"), "{}", ran.err);
    }
    assert_eq!(home.run(["audit", "show", &ids[0][..=same]]).code, Some(0));
    let text = home.run(["audit", "list", "--denied"]);
    assert!(text.out.contains("readonly/look") && text.out.contains("rm a.txt"), "{}", text.out);
}

#[test]
fn one_event_is_one_line_whatever_was_asked() {
    let home = caller();
    let evil = "a\nb\r\u{1b}[2J\u{202e}\u{0}".replace('\u{0}', "");
    let ran = home.run(["exec", "--json", "--", "rm", &evil, "{\"kind\":\"end\"}"]);
    assert_eq!(ran.code, Some(126), "{}", ran.err);
    let call = ran.json()["call"].as_str().expect("an id").to_owned();
    let raw = home.run(["audit", "show", &call, "--json"]).out;
    assert_eq!(raw.lines().count(), 1);
    assert!(!raw.trim_end().contains(|c: char| c.is_control()), "{raw:?}");
    let shown = &events(&home, &call)[0];
    assert_eq!(shown["body"]["argv"][1], evil.as_str(), "nothing is lost");
    for args in [&["audit", "list"][..], &["audit", "show", &call]] {
        let text = home.run(args).out;
        let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(odd), "{text:?}");
    }
    assert_eq!(home.run(["audit", "list"]).out.lines().count(), 2, "a head and one call");
    // In the file itself too.
    let state = home.path("state/runner");
    let bytes: Vec<u8> = ["store.db", "store.db-wal"]
        .iter()
        .flat_map(|name| fs::read(state.join(name)).unwrap_or_default())
        .collect();
    assert!(!bytes.windows(4).any(|window| window == b"\x1b[2J"));
}

#[test]
fn a_killed_process_is_found_aborted() {
    needs_engine();
    let home = caller();
    let (mut child, call) = running(&home);
    child.kill().expect("killed");
    child.wait().expect("reaped");
    let gone = home.run(["gc", "--json"]).json();
    assert!(
        gone["aborted"].as_array().is_some_and(|all| all.iter().any(|id| *id == call.as_str())),
        "{gone}"
    );
    let events = events(&home, &call);
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap_or("")).collect();
    assert_eq!(kinds, ["start", "aborted"]);
    assert_eq!(calls(&home, &[])[0]["status"], "aborted");
    assert_eq!(home.run(["ps", "--json"]).json()["calls"], serde_json::json!([]));
    let again = home.run(["gc", "--json"]).json();
    assert_eq!(again["aborted"], serde_json::json!([]), "once is enough");
}

#[test]
fn what_runs_is_shown_without_a_look_at_what_ever_ran() {
    /// Records of calls that nobody can read: whoever looks at one of them fails.
    const UNREADABLE: &str = "
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 5000)
        INSERT INTO events (seq, at, call, kind, body)
        SELECT (SELECT max(seq) FROM events) + n, n, 'old-' || n, 'start', CAST(x'ff' AS TEXT)
        FROM numbers";
    needs_engine();
    let home = caller();
    assert_eq!(home.run(["exec", "--", "rm", "a.txt"]).code, Some(126), "the first record");
    let store = rusqlite::Connection::open(home.path("state/runner/store.db")).expect("a store");
    assert_eq!(store.execute(UNREADABLE, []).expect("records"), 5000);
    let (mut child, call) = running(&home);
    let rows = home.run(["ps", "--json"]).json()["calls"].as_array().expect("calls").clone();
    let [row] = rows.as_slice() else { panic!("one call runs: {rows:?}") };
    assert_eq!((&row["call"], &row["pid"]), (&call.as_str().into(), &child.id().into()));
    assert!(row["command"].as_str().is_some_and(|text| text.starts_with("python3 -uc")), "{row}");
    assert!(row["workspace"].as_str().is_some_and(|text| text.ends_with("project")), "{row}");
    let listed = home.run(["audit", "list"]);
    assert_ne!(listed.code, Some(0), "a list of all looks at all");
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

#[test]
fn a_running_call_is_shown_and_cancelled_by_id() {
    needs_engine();
    let home = caller();
    let (child, call) = running(&home);
    let text = home.run(["ps"]);
    assert!(text.out.contains(&call) && text.out.contains("python3 -uc"), "{}", text.out);
    assert_eq!(home.run(["cancel", "nosuch"]).code, Some(2));
    let asked = home.run(["cancel", &call[..call.len() - 4]]);
    assert_eq!(asked.code, Some(0), "{}", asked.err);
    let ended = Ran::from(child.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(143), "{}", ended.err);
    assert_eq!(calls(&home, &[])[0]["status"], "cancelled");
    soon("an empty list", || {
        home.run(["ps", "--json"]).json()["calls"].as_array()?.is_empty().then_some(())
    });
    assert_eq!(home.run(["cancel", &call]).code, Some(2), "it does not run any more");
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let home = caller();
    let children: Vec<Child> = (0..40)
        .map(|at| {
            home.runner()
                .args(["exec", "--json", "--", "rm", &format!("file-{at}")])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("starts")
        })
        .collect();
    for child in children {
        let ran = Ran::from(child.wait_with_output().expect("ends"));
        assert_eq!(ran.code, Some(126), "{} {}", ran.out, ran.err);
    }
    let mut names: Vec<String> = calls(&home, &["-n", "1000"])
        .iter()
        .map(|call| call["command"].as_str().expect("text").to_owned())
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 40);
}
