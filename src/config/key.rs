//! The tree of keys: which words may stand where, made from the tables.

use super::figure::{self, Figure};
use super::flag::{self, Flag};
use super::server::MCP;

/// A key with a value of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    /// A figure.
    Figure(Figure),
    /// A switch.
    Flag(Flag),
    /// Folders of the workspace that are not looked through.
    ScanSkip,
    /// Clients of the MCP server whose users may answer questions.
    ApprovalClients,
    /// The folder of the team's tools.
    TeamFolder,
    /// The policy of calls that choose none.
    Policy,
    /// What makes the sandboxes.
    Engine,
}

/// What a word below a section is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It has a value.
    Leaf(Leaf),
    /// It has keys of its own.
    Section,
    /// There is no such key.
    Unknown,
}

/// The key of the folders that are not looked through.
pub(super) const SCAN_SKIP: &str = "scan.skip";
/// The key of the clients whose users may answer.
pub(super) const APPROVAL_CLIENTS: &str = "approvals.clients";
/// The key of the team's folder.
pub(super) const TEAM_FOLDER: &str = "team.folder";
/// The key of the default policy.
pub(super) const POLICY: &str = "policy";
/// The key of the engine.
pub(super) const ENGINE: &str = "engine";
/// The section of single workspaces, for the managed layer.
pub(super) const WORKSPACES: &str = "workspaces";
/// The section of single tools.
pub(super) const TOOLS: &str = "tools";
/// The section of ceilings, for the managed layer.
pub(super) const CEILING: &str = "ceiling";

/// The key of a single tool that says whether its own `autoAccept` counts.
pub(super) const AUTO_ACCEPT: &str = "autoAccept";

/// The figures that a single tool can have of its own, with their keys below it.
pub(super) const OF_A_TOOL: [(&str, Figure); 4] = [
    ("maxExecutionTime", Figure::MaxExecutionTime),
    ("callsPerMinute", Figure::CallsPerMinute),
    ("concurrency", Figure::Concurrency),
    ("queue", Figure::Queue),
];

/// Every key with a value, from the top of the file.
pub(super) fn leaves() -> impl Iterator<Item = (&'static str, Leaf)> {
    let figures = figure::TABLE.iter().map(|row| (row.key, Leaf::Figure(row.figure)));
    let flags = flag::TABLE.iter().map(|row| (row.key, Leaf::Flag(row.flag)));
    let others = [
        (SCAN_SKIP, Leaf::ScanSkip),
        (APPROVAL_CLIENTS, Leaf::ApprovalClients),
        (TEAM_FOLDER, Leaf::TeamFolder),
        (POLICY, Leaf::Policy),
        (ENGINE, Leaf::Engine),
    ];
    figures.chain(flags).chain(others)
}

/// What `path` is.
pub(super) fn find(path: &str) -> Found {
    let below = |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    match leaves().find(|(key, _)| *key == path) {
        Some((_, leaf)) => Found::Leaf(leaf),
        None if leaves().any(|(key, _)| below(key)) => Found::Section,
        None => Found::Unknown,
    }
}

/// The words that may stand below a section; `""` is the top.
pub(super) fn words(section: &str) -> Vec<&'static str> {
    let mut words = Vec::new();
    for (key, _) in leaves() {
        let rest = match section {
            "" => Some(key),
            _ => key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')),
        };
        let word = rest.map(|rest| rest.split_once('.').map_or(rest, |(word, _)| word));
        words.extend(word.filter(|word| !words.contains(word)));
    }
    if section.is_empty() {
        words.extend([WORKSPACES, TOOLS, MCP, CEILING]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_the_tables() {
        assert_eq!(words("pool"), ["size", "ttl", "memory"]);
        assert_eq!(words("limits.breaker"), ["errors", "calls", "window", "pause"]);
        assert!(words("").contains(&"limits") && words("").contains(&"ceiling"));
        assert_eq!(find("limits.breaker"), Found::Section);
        assert_eq!(find("scan.skip"), Found::Leaf(Leaf::ScanSkip));
        assert_eq!((find("poo"), find("pool.sizes")), (Found::Unknown, Found::Unknown));
    }
}
