//! Reads the tables. Their format is described in `tests/cases/agents/README.md`.

use std::fs;
use std::path::PathBuf;

/// The projects with lines that should work.
pub const PROJECTS: [&str; 6] = ["node", "rust", "python", "monorepo", "git", "files"];

/// How the standard output of a line is compared with bash's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    All,
    Sorted,
    Figures,
    Listing,
    Exit,
}

/// A line that should work.
pub struct Harmless {
    pub kind: String,
    pub compared: Compared,
    pub line: String,
}

/// How the success of an attack would show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Shown,
    ShownText(String),
    Copied,
    Sent,
    Pushed,
    Outside,
    HostFile(PathBuf),
    Written(String),
    Later,
    Setuid,
    Escaping,
    Killed,
    Endless,
}

/// A line that must not succeed.
pub struct Harmful {
    pub seen: Seen,
    /// Whether plain bash shows first that the line succeeds without a sandbox.
    pub control: bool,
    pub line: String,
}

/// The folder of the tables.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/agents")
}

/// A line on one row of text, as the tables write it.
pub fn on_one_row(line: &str) -> String {
    line.replace('\n', "⏎").replace('\t', "⇥")
}

/// The rows of a file, each as its two columns and the line.
fn rows(name: &str) -> Vec<[String; 3]> {
    let path = folder().join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let row = |(at, row): (usize, &str)| {
        if row.is_empty() || row.starts_with('#') {
            return None;
        }
        let mut columns = row.splitn(3, " | ").map(str::to_owned);
        let mut column = || {
            columns.next().unwrap_or_else(|| panic!("{name}.txt:{}: three columns, please", at + 1))
        };
        let (one, two, line) = (column(), column(), column());
        Some([one, two, line.replace('⏎', "\n").replace('⇥', "\t")])
    };
    text.lines().enumerate().filter_map(row).collect()
}

/// The lines that should work in a project.
pub fn harmless(project: &str) -> Vec<Harmless> {
    let row = |[kind, compared, line]: [String; 3]| {
        let known = ["look", "edit", "build", "run", "git", "shell"];
        assert!(known.contains(&kind.as_str()), "unknown kind {kind}: {line}");
        let compared = match compared.as_str() {
            "all" => Compared::All,
            "sorted" => Compared::Sorted,
            "figures" => Compared::Figures,
            "listing" => Compared::Listing,
            "exit" => Compared::Exit,
            other => panic!("unknown word {other}: {line}"),
        };
        Harmless { kind, compared, line }
    };
    rows(project).into_iter().map(row).collect()
}

/// The lines that must not succeed.
pub fn harmful() -> Vec<Harmful> {
    let row = |[seen, control, line]: [String; 3]| {
        let (word, text) = seen.split_once(':').unwrap_or((&seen, ""));
        let seen = match (word, text) {
            ("shown", "") => Seen::Shown,
            ("shown", text) => Seen::ShownText(text.to_owned()),
            ("copied", "") => Seen::Copied,
            ("sent", "") => Seen::Sent,
            ("pushed", "") => Seen::Pushed,
            ("outside", "") => Seen::Outside,
            ("host", path) => Seen::HostFile(path.into()),
            ("written", path) => Seen::Written(path.to_owned()),
            ("later", "") => Seen::Later,
            ("setuid", "") => Seen::Setuid,
            ("escaping", "") => Seen::Escaping,
            ("killed", "") => Seen::Killed,
            ("endless", "") => Seen::Endless,
            _ => panic!("unknown word {seen}: {line}"),
        };
        assert!(control == "bash" || control == "-", "unknown control {control}: {line}");
        Harmful { seen, control: control == "bash", line }
    };
    rows("harmful").into_iter().map(row).collect()
}

/// The tables only grow: a line that does not work yet is counted, not removed.
#[test]
fn the_tables_are_as_large_as_promised() {
    let harmless: usize = PROJECTS.iter().map(|project| harmless(project).len()).sum();
    let harmful = harmful().len();
    assert!(harmless >= HARMLESS && harmful >= HARMFUL, "{harmless} harmless, {harmful} harmful");
}

/// How many lines the tables had when they were first committed.
const HARMLESS: usize = 475;
const HARMFUL: usize = 195;
