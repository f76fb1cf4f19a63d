//! `audit list`, `tail`, `stats`, `export` and their filters.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::{assert_sound, refused};
use crate::support::{Home, Ran};

fn lines(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn count(home: &Home, options: &[&str]) -> usize {
    let words = ["audit", "list", "--json"].iter().chain(options);
    let ran = home.run(words);
    assert_eq!(ran.code, Some(0), "{options:?}: {}", ran.err);
    ran.json()["calls"].as_array().expect("calls").len()
}

#[test]
fn calls_are_chosen_by_decision_actor_and_time() {
    let home = Home::new();
    home.user_policy(
        "asks",
        "policy: 1\nname: asks\ncommands:\n  - id: node\n    ask: \"node ...\"\n    reason: Others see it.\n",
    );
    refused(&home, 2);
    assert_eq!(home.run(["exec", "--policy", "asks", "--", "node", "x"]).code, Some(77));
    let uid = rustix::process::getuid().as_raw().to_string();
    for (options, expected) in [
        (&["--decision", "deny"][..], 2),
        (&["--decision", "ask"], 1),
        (&["--decision", "allow"], 0),
        (&["--denied"], 2),
        (&["--actor", &uid], 3),
        (&["--actor", "nobody-of-this-name"], 0),
        (&["--tool", "t"], 0),
        (&["--since", "2h"], 3),
        (&["--since", "1w", "--until", "1h"], 0),
        (&["--until", "2099-01-01"], 3),
        (&["-n", "2"], 2),
    ] {
        assert_eq!(count(&home, options), expected, "{options:?}");
    }
    for wrong in
        [&["--decision", "maybe"][..], &["--until", "soon"], &["--denied", "--decision", "ask"]]
    {
        let ran = home.run(["audit", "list"].iter().chain(wrong));
        assert_eq!(ran.code, Some(2), "{wrong:?}");
    }
    let listed = home.run(["audit", "list", "--json"]).json();
    assert_eq!(listed["calls"][0]["actor"]["uid"].to_string(), uid);
}

#[test]
fn secrets_of_commands_stand_neither_in_records_nor_in_questions() {
    let home = Home::new();
    home.user_policy(
        "asks",
        "policy: 1\nname: asks\ncommands:\n  - { id: all, ask: [\"tool-a ...\", \"tool-b ...\"], reason: Others see it. }\n",
    );
    // The control is the rest of each command, which is there.
    let lines = [
        ("curl -u ann:canary-7 h.example/1", "curl -u ann:[redacted] h.example/1"),
        ("curl -b sid=canary-7 h.example/2", "curl -b [redacted] h.example/2"),
        ("mysql -uann -pcanary-7 db3", "mysql -uann -p[redacted] db3"),
        ("sshpass -p canary-7 ssh -p 22 host4", "sshpass -p [redacted] ssh -p 22 host4"),
        ("docker login -p canary-7 host5", "docker login -p [redacted] host5"),
        ("openssl rsa -passin pass:canary-7 -in k6", "openssl rsa -passin pass:[redacted] -in k6"),
        (
            "curl -H Private-Token:canary-7 h.example/7",
            "curl -H Private-Token:[redacted] h.example/7",
        ),
        ("mkdir -p canary/8", "mkdir -p canary/8"),
    ];
    for (line, _) in lines {
        let words = ["exec", "--"].into_iter().chain(line.split(' '));
        assert_eq!(home.run(words).code, Some(126), "{line}");
        assert_eq!(home.run(["exec", "--shell", line]).code, Some(126), "{line}");
    }
    let question = "tool-a --proxy-user ann:canary-7 --oauth2-bearer canary-7 x9";
    let asked = ["exec", "--policy", "asks", "--"].into_iter().chain(question.split(' '));
    assert_eq!(home.run(asked).code, Some(77));
    let list = home.run(["--json", "audit", "list"]).json();
    let commands: Vec<&str> = list["calls"]
        .as_array()
        .expect("calls")
        .iter()
        .filter_map(|call| call["command"].as_str())
        .collect();
    for (_, shown) in lines {
        assert_eq!(commands.iter().filter(|it| **it == shown).count(), 2, "{shown}: {commands:?}");
    }
    let waiting = home.run(["--json", "approvals"]).out;
    assert!(waiting.contains("ann:[redacted] --oauth2-bearer [redacted] x9"), "{waiting}");
    for entry in std::fs::read_dir(home.path("state/runner")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("canary-7"), "{}", path.display());
    }
}

#[test]
fn figures_are_told() {
    let home = Home::new();
    refused(&home, 3);
    let stats = home.run(["audit", "stats", "--json"]).json();
    assert_eq!(stats["calls"], 3);
    assert_eq!(stats["statuses"], json!([["denied", 3]]));
    assert_eq!(stats["denials"], json!([["readonly/look", 3]]));
    assert_eq!((&stats["denials_without_rule"], &stats["held"]), (&json!([]), &json!([])));
    assert_eq!((&stats["success"], &stats["duration_ms"]), (&Value::Null, &Value::Null));
    let text = home.run(["audit", "stats", "--since", "1h"]);
    assert!(text.out.contains("readonly/look"), "{}", text.out);
    let none = home.run(["audit", "stats", "--until", "1h", "--json"]).json();
    assert_eq!(none["calls"], 0);
}

#[test]
fn what_a_tool_was_denied_counts_by_its_rule_and_its_arguments_are_listed() {
    let home = Home::new();
    std::fs::write(home.path("project/.env"), "A=1\n").expect("written");
    std::fs::write(home.path("project/a.txt"), "one\n").expect("written");
    let read = |path: &str| {
        let path = format!("path={path}");
        home.run(["tool", "run", "file_operations", "--arg", "operation=read", "--arg", &path]).code
    };
    assert_eq!((read("a.txt"), read(".env")), (Some(0), Some(126)));
    let stats = home.run(["audit", "stats", "--json"]).json();
    assert_eq!(stats["denials"], json!([["base/files.deny", 1]]), "{stats}");
    assert_eq!(stats["denials_without_rule"], json!([]), "{stats}");
    assert_eq!(
        (&stats["tools"][0]["tool"], &stats["tools"][0]["calls"]),
        (&json!("file_operations"), &json!(2))
    );
    let text = home.run(["audit", "stats"]).out;
    assert!(text.contains("file_operations") && text.contains("base/files.deny"), "{text}");
    // Without a subcommand the newest calls are listed.
    let listed = home.run(["audit"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(
        listed.out.contains("tool run file_operations") && listed.out.contains("path=a.txt"),
        "{}",
        listed.out
    );
    assert!(listed.out.contains("base/files.deny"), "{}", listed.out);
}

#[test]
fn records_are_exported_whole_and_as_ocsf() {
    let home = Home::new();
    refused(&home, 2);
    let records = lines(&home.run(["audit", "export"]));
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(record["kind"], "refused");
        assert_eq!(record["link"].as_str().map(str::len), Some(64));
        assert_eq!(record["signature"].as_str().map(str::len), Some(128));
    }
    assert_eq!(lines(&home.run(["audit", "export", "--decision", "allow"])).len(), 0);
    let events = lines(&home.run(["audit", "export", "--format", "ocsf"]));
    let event = &events[0];
    assert_eq!(event["metadata"]["version"], "1.6.0");
    assert_eq!(
        (&event["class_uid"], &event["category_uid"], &event["activity_id"], &event["type_uid"]),
        (&1007.into(), &1.into(), &1.into(), &100_701.into())
    );
    assert_eq!((&event["action_id"], &event["disposition"]), (&2.into(), &"Blocked".into()));
    assert_eq!(event["process"]["cmd_line"], "rm file-0");
    assert_eq!(event["policy"]["uid"], "readonly/look");
    for needed in ["severity_id", "time", "actor", "device", "status_id"] {
        assert!(!event[needed].is_null(), "{needed}");
    }
    assert_eq!(home.run(["audit", "export", "--format", "xml"]).code, Some(2));
}

#[test]
fn the_newest_records_are_followed() {
    let home = Home::new();
    refused(&home, 3);
    let ran = home.run(["audit", "tail", "-n", "2"]);
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    assert!(ran.out.contains("rm file-2 (readonly/look)"), "{}", ran.out);
    let mut child = home
        .runner()
        .args(["audit", "tail", "-f", "-n", "1", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        serde_json::from_str(&out.next().expect("a line").expect("text")).expect("JSON")
    };
    assert_eq!(next()["seq"], 3);
    refused(&home, 1);
    assert_eq!(next()["seq"], 4);
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

#[test]
fn lists_fit_the_terminal_and_show_no_control_characters() {
    let home = Home::new();
    let evil = format!("a\u{1b}[2J\u{202e}{}", "long ".repeat(40));
    assert_eq!(home.run(["exec", "--", "rm", &evil]).code, Some(126));
    for command in ["audit list", "audit tail"] {
        let shown = home.at_terminal(&format!("{command} --color never"), "");
        // The terminal of `script` has no size of its own: then nothing is cut, and nothing obeyed.
        assert!(
            !shown.out.contains("\u{1b}[2J") && !shown.out.contains('\u{202e}'),
            "{:?}",
            shown.out
        );
        assert!(shown.out.contains("\\x1b[2J"), "{:?}", shown.out);
    }
    for format in ["jsonl", "ocsf"] {
        let ran = home.run(["audit", "export", "--format", format]);
        assert_eq!(ran.out.lines().count(), 1);
        assert!(!ran.out.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'));
    }
    assert_sound(&home);
}
