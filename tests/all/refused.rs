//! The files in `tests/cases/refused`: policies that must not load, with the finding marked on its line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::support::{Home, Ran, run, runner};

/// Line and code of a finding; line 0 is the whole file.
type Marks = BTreeSet<(u64, String)>;

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/refused");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "yml"));
    files.sort();
    files
}

/// What the comments in a file say.
fn marked(text: &str) -> Marks {
    let mark = |(at, line): (usize, &str)| {
        line.split_once("# <- ").map(|(_, code)| (at as u64 + 1, code.trim().to_owned()))
    };
    text.lines().enumerate().filter_map(mark).collect()
}

/// What `policy check` says.
fn found(ran: &Ran) -> Marks {
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| {
            (finding["line"].as_u64().unwrap(), finding["code"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn every_file_is_refused_where_it_is_marked() {
    let mut wrong = Vec::new();
    let files = files();
    for path in &files {
        let expected = marked(&fs::read_to_string(path).unwrap());
        let ran = run(["policy", "check", "--json", path.to_str().unwrap()]);
        let mut got = found(&ran);
        // A finding about the whole file is marked on its first line.
        if got.len() == 1 && got.iter().all(|(line, _)| *line == 0) {
            got = got.into_iter().map(|(_, code)| (1, code)).collect();
        }
        let name = path.file_name().unwrap();
        if got != expected || ran.code != Some(125) || expected.is_empty() {
            wrong
                .push(format!("{name:?}: marked {expected:?}, found {got:?}, exit {:?}", ran.code));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), files.len(), wrong.join("\n"));
    assert!(files.len() >= 40);
}

#[test]
fn the_same_files_stop_every_decision() {
    for path in files() {
        let ran =
            run(["policy", "explain", "--json", "--policy", path.to_str().unwrap(), "--", "true"]);
        assert_eq!(ran.code, Some(125), "{path:?}: {}", ran.out);
        assert_eq!(ran.json()["error"]["code"], "policy_refused", "{path:?}");
    }
}

#[test]
fn files_that_are_no_policy_are_refused() {
    let home = Home::new();
    for (name, bytes, code) in [
        ("empty", &b""[..], "empty"),
        ("blank", b"\n\n# only a comment\n", "empty"),
        ("latin", b"policy: 1\nname: latin\nowner: \xe9\n", "not_utf8"),
        ("nul", b"policy: 1\nname: nul\nowner: \"a\0b\"\n", "bad_yaml"),
    ] {
        let path = home.path(&format!("{name}.yml"));
        fs::write(&path, bytes).unwrap();
        let ran = run(["policy", "check", "--json", path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(125), "{name}");
        assert!(found(&ran).iter().any(|(_, found)| found == code), "{name}: {:?}", found(&ran));
    }
}

#[test]
fn a_finding_shows_place_excerpt_and_right_form() {
    let path = PathBuf::from("tests/cases/refused/unknown-key.yml");
    let ran = Ran::from(
        runner()
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["policy", "check"])
            .arg(&path)
            .output()
            .unwrap(),
    );
    for part in [
        "error[unknown_key]",
        " --> tests/cases/refused/unknown-key.yml:3:1",
        "3 | comands: []",
        "^^^^^^^",
        "commands",
    ] {
        assert!(ran.err.contains(part), "{part:?} is not in\n{}", ran.err);
    }
}

#[test]
fn bombs_are_refused_at_once_and_in_little_memory() {
    let home = Home::new();
    let aliases: String = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, at| {
        let before = at - 1;
        format!("{text}a{at}: &a{at} [*a{before}, *a{before}]\n")
    });
    let deep = format!("policy: {}1{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let wide = format!("policy: 1\nname: wide\nfiles:\n  read: [{}]\n", "a, ".repeat(300_000));
    let keys: String = (0..90_000).map(|at| format!("k{at}: 1\n")).collect();
    let long = format!("policy: 1\nname: {}\n", "x".repeat(1_000_000));
    for (name, text) in
        [("aliases", aliases), ("deep", deep), ("wide", wide), ("keys", keys), ("long", long)]
    {
        let path = home.path(&format!("{name}.yml"));
        fs::write(&path, text).unwrap();
        let start = Instant::now();
        // A limit of 50 MiB on the memory that it takes, heap and mappings: more would end it. Its own code, which
        // an unoptimised build has more of, is not taken by a bomb.
        let line = "ulimit -d 51200; exec \"$0\" policy check --json \"$1\"";
        let out = std::process::Command::new("bash")
            .args(["-c", line, env!("CARGO_BIN_EXE_runner")])
            .arg(&path)
            .env("HOME", home.path(""))
            .output()
            .unwrap();
        let took = start.elapsed();
        let ran = Ran::from(out);
        assert_eq!(ran.code, Some(125), "{name}: {}", ran.err);
        // A tenth of a second is promised, of an optimised build on a machine that has the time; a bomb takes for ever.
        let most = Duration::from_secs(60);
        assert!(took < most, "{name} took {took:?}");
    }
}
