//! The tables in `tests/cases/decisions`: every row is one question to a shipped policy.

use std::collections::HashMap;
use std::path::Path;
use std::{fmt, fs};

use jiff::Timestamp;
use runner::policy_files::shipped;
use runner_policy::{Effective, Query, What, decide, explain};

use crate::words;

/// The folder and workspace in which every question is asked.
const PLACE: &str = "/w/project";

/// One row.
struct Case {
    place: String,
    policy: String,
    decision: String,
    code: String,
    question: Question,
}

enum Question {
    Argv(Vec<String>),
    Line(String),
    Read(String),
    Write(String),
    Net(String),
    Env(String),
}

impl Case {
    fn parse(place: String, row: &str) -> Self {
        let mut columns = row.splitn(5, '|').map(str::trim);
        let mut column =
            || columns.next().unwrap_or_else(|| panic!("{place}: five columns, please"));
        let (policy, decision, code) =
            (column().to_owned(), column().to_owned(), column().to_owned());
        let (kind, what) = (column(), column());
        let question = match kind {
            "argv" => {
                Question::Argv(words::split(what).unwrap_or_else(|why| panic!("{place}: {why}")))
            }
            "line" => Question::Line(what.to_owned()),
            "lines" => Question::Line(what.replace("\\n", "\n")),
            "read" => Question::Read(what.to_owned()),
            "write" => Question::Write(what.to_owned()),
            "net" => Question::Net(what.to_owned()),
            "env" => Question::Env(what.to_owned()),
            other => panic!("{place}: unknown kind {other}"),
        };
        Self { place, policy, decision, code, question }
    }
}

/// Every row of every table.
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/decisions");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    files.sort();
    let rows = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let row = |(at, line): (usize, &str)| {
            let counts = !line.is_empty() && !line.starts_with('#');
            counts.then(|| Case::parse(format!("{name}:{}", at + 1), line))
        };
        text.lines().enumerate().filter_map(row).collect::<Vec<_>>()
    };
    files.iter().flat_map(rows).collect()
}

impl Question {
    fn what(&self) -> What<'_> {
        match self {
            Self::Argv(argv) => What::Argv(argv),
            Self::Line(line) => What::Line(line),
            Self::Read(path) => What::Read(path),
            Self::Write(path) => What::Write(path),
            Self::Net(target) => What::Net(target),
            Self::Env(name) => What::Env(name),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argv(argv) => write!(f, "{argv:?}"),
            Self::Line(text)
            | Self::Read(text)
            | Self::Write(text)
            | Self::Net(text)
            | Self::Env(text) => {
                write!(f, "{text:?}")
            }
        }
    }
}

#[test]
fn every_row_is_decided_as_it_says() {
    let policies: HashMap<String, Effective> =
        shipped().into_iter().map(|policy| (policy.name().to_owned(), policy)).collect();
    let cases = cases();
    let mut wrong = Vec::new();
    for Case { place, policy, decision, code, question } in &cases {
        let policy = policies.get(policy).unwrap_or_else(|| panic!("{place}: no policy {policy}"));
        let query = Query {
            workspace: PLACE,
            cwd: PLACE,
            now: Timestamp::UNIX_EPOCH,
            what: question.what(),
        };
        let got = decide(policy, &query);
        let same = got.decision.word() == decision && (code == "-" || got.code.word() == code);
        if !same {
            let (word, why) = (got.decision.word(), got.code.word());
            wrong.push(format!(
                "{place}: {decision} {code}, but {word} {why}: {question}: {}",
                got.message
            ));
        }
        let explained = explain(policy, &query, &[]).decision;
        assert_eq!(explained, got, "{place}: explain and decide differ");
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(cases.len() > 500, "only {} rows were found", cases.len());
}
