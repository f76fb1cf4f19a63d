//! A tool's permissions, as a policy within which its calls are kept.
//!
//! Permissions never grant: the caller's policy decides, and the tool's own may only take away from
//! it. They are read by the policy's own loader, so both formats mean the same by a pattern, and
//! rules and findings point into the tool's file.
//!
//! | what a tool leaves out | what it gets |
//! | --- | --- |
//! | `files.read` | whatever the policy lets read |
//! | `files.write` | nothing for itself; its commands write what the policy lets them write |
//! | `permissions.allowlist`, `net`, `env` | nothing |
//! | `limits`, `timeout` | the policy's |

use std::sync::Arc;

use runner_policy::effective::Effective;
use runner_policy::finding::{At, Report};
use runner_policy::limits::{Limit, TABLE, Unit};
use runner_policy::load::{Origin, Source, from_tree};
use runner_policy::model::Policy;
use runner_policy::net::FIGURES;
use runner_policy::paths::{List, Meaning};
use runner_policy::variables;
use runner_policy::yaml::{Entry, Node, Style, Value};
use serde::Serialize;

use super::words::Tier;
use crate::ids::{PERMISSIONS, ToolName};

/// Most entries of one list: each is compared with every command, path or peer.
const MAX_ENTRIES: usize = 500;

/// What a tool asks for.
#[derive(Debug, Clone, Serialize)]
pub struct Permissions {
    /// Commands, as written.
    pub allowlist: Vec<String>,
    /// Files to read; `None` for whatever the policy lets read.
    pub read: Option<Vec<String>>,
    /// Files to write.
    pub write: Vec<String>,
    /// What its commands may write.
    pub commands_write: CommandsWrite,
    /// Peers.
    pub net: Vec<String>,
    /// Variables that its commands may get.
    pub env: Vec<String>,
    /// Figures, as a policy writes them.
    pub limits: Vec<(&'static str, String)>,
    /// The same, able to decide.
    #[serde(skip)]
    policy: Arc<Policy>,
    /// The same for its commands.
    #[serde(skip)]
    commands: Arc<Policy>,
}

/// What the commands of a tool may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandsWrite {
    /// What the tool may write: it has a list, which can be empty.
    AsTheTool,
    /// What the policy lets them write: the tool says nothing of it.
    AsThePolicy,
}

/// The parts of a definition that are permissions, as they stand in its file.
#[derive(Debug, Default)]
pub(super) struct Parts<'n> {
    pub allowlist: Option<&'n Node>,
    pub files: Option<&'n Node>,
    pub net: Option<&'n Node>,
    pub env: Option<&'n Node>,
    pub limits: Option<&'n Node>,
    pub timeout: Option<&'n Node>,
}

impl Permissions {
    /// The least tier that covers them.
    #[must_use]
    pub fn tier(&self) -> Tier {
        if !self.net.is_empty() {
            Tier::ExternalApi
        } else if !self.allowlist.is_empty() {
            Tier::Execute
        } else if !self.write.is_empty() {
            Tier::Write
        } else {
            Tier::ReadOnly
        }
    }

    /// The caller's policy, never more than these permissions.
    #[must_use]
    pub fn narrow(&self, policy: &Effective) -> Effective {
        policy.narrowed(Arc::clone(&self.policy))
    }

    /// The same for the commands that it runs.
    #[must_use]
    pub fn narrow_commands(&self, policy: &Effective) -> Effective {
        policy.narrowed(Arc::clone(&self.commands))
    }

    /// Whether it runs commands and none of them may write anything in the workspace.
    #[must_use]
    pub fn has_read_only_commands(&self, policy: &Effective) -> bool {
        !self.allowlist.is_empty() && !self.narrow_commands(policy).writes_anything()
    }

    /// As a policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// Reads the parts.
pub(super) fn read(
    parts: &Parts<'_>,
    name: Option<&ToolName>,
    root: At,
    source: (&str, &str),
    report: &mut Report<'_>,
) -> Option<Permissions> {
    let allowlist = texts(parts.allowlist, "allowlist", report);
    let net = texts(parts.net, "net", report);
    let env = texts(parts.env, "env", report);
    let (read, write) = files(parts.files, report);
    let wall = parts.timeout.and_then(|node| timeout(node, report));
    let tree = map(
        root,
        vec![
            ("policy", scalar("1", root)),
            ("name", scalar("tool", root)),
            ("sandbox", sandbox(parts.limits, wall, root)),
            ("files", file_lists(parts.files, root)),
            ("commands", commands(&allowlist, root)),
            ("net", list(root, net.iter().map(|(text, at)| rule(text, *at)).collect())),
            ("env", variables_of(&env, root)),
        ],
    );
    let (file, text) = source;
    let build = |report: &mut Report<'_>| {
        let mut policy = from_tree(&tree, Source { file, text, origin: Origin::Tool }, report)?;
        // No policy's name holds a colon, so records cannot mistake a tool for one.
        policy.name = format!("{PERMISSIONS}{}", name.map_or("?", ToolName::as_str));
        if read.is_none() {
            policy.files.read = everything(root);
        }
        if let Some((figure, _)) = wall {
            let own = policy.sandbox.limits.iter_mut();
            own.filter(|(limit, _)| *limit == Limit::Wall).for_each(|it| it.1 = it.1.min(figure));
        }
        Some(policy)
    };
    let policy = build(report)?;
    // What there is to say of the file was said above.
    let mut commands = build(&mut Report::new(file, text))?;
    let limits = own_limits(&policy, parts, wall);
    let commands_write = match write {
        Some(_) => CommandsWrite::AsTheTool,
        None => CommandsWrite::AsThePolicy,
    };
    if commands_write == CommandsWrite::AsThePolicy {
        commands.files.write = everything(root);
        // Two policies that hold other paths have other digests.
        commands.digest = blake3::hash(&[policy.digest.as_bytes(), &b"commands"[..]].concat());
    }
    let plain = |texts: Vec<(String, At)>| texts.into_iter().map(|(text, _)| text).collect();
    Some(Permissions {
        allowlist: plain(allowlist),
        read,
        write: write.unwrap_or_default(),
        commands_write,
        net: plain(net),
        env: plain(env),
        limits,
        policy: Arc::new(policy),
        commands: Arc::new(commands),
    })
}

/// Every path.
fn everything(at: At) -> List {
    let all = ["**", "/**"].map(|pattern| (pattern.to_owned(), at));
    List::new(Meaning::Grants, all.to_vec())
}

/// A list of texts, in bounds.
fn texts(node: Option<&Node>, what: &str, report: &mut Report<'_>) -> Vec<(String, At)> {
    let Some(node) = node else { return Vec::new() };
    let texts = report.patterns(node).unwrap_or_default();
    if texts.len() > MAX_ENTRIES {
        report.add(
            "too_large",
            node.at,
            format!("more than {MAX_ENTRIES} entries in `{what}`"),
            None,
        );
        return Vec::new();
    }
    texts.into_iter().map(|(text, at)| (text.to_owned(), at)).collect()
}

/// The patterns as written; the loader judges them.
fn files(
    node: Option<&Node>,
    report: &mut Report<'_>,
) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let (mut read, mut write) = (None, None);
    let entries = node.and_then(|node| report.keys(node, &["read", "write"]));
    for entry in entries.unwrap_or_default() {
        let texts: Vec<String> = match &entry.value.value {
            // One pattern may stand alone, as in a policy.
            Value::Scalar { text, .. } => vec![text.clone()],
            // The loader says what is wrong with one of them.
            Value::List(items) if items.len() <= MAX_ENTRIES => {
                let text = |item: &Node| match &item.value {
                    Value::Scalar { text, .. } => Some(text.clone()),
                    Value::List(_) | Value::Map(_) => None,
                };
                items.iter().filter_map(text).collect()
            }
            Value::List(_) | Value::Map(_) => {
                texts(Some(&entry.value), &entry.key, report).into_iter().map(|it| it.0).collect()
            }
        };
        match entry.key.as_str() {
            "read" => read = Some(texts),
            "write" => write = Some(texts),
            _ => {}
        }
    }
    (read, write)
}

/// The same lists for the loader; other keys were reported already.
fn file_lists(node: Option<&Node>, root: At) -> Node {
    let entries = match node.map(|node| &node.value) {
        Some(Value::Map(entries)) => {
            let known = |entry: &&Entry| ["read", "write"].contains(&entry.key.as_str());
            entries.iter().filter(known).cloned().collect()
        }
        _ => Vec::new(),
    };
    Node { at: root, value: Value::Map(entries) }
}

/// Every figure is at its ceiling but those that the tool sets: only these take anything away.
fn sandbox(limits: Option<&Node>, wall: Option<(u64, At)>, root: At) -> Node {
    let own: &[Entry] = match limits.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries,
        _ => &[],
    };
    let mut entries: Vec<Entry> = own.to_vec();
    for row in &TABLE {
        if own.iter().any(|entry| entry.key == row.key) {
            continue;
        }
        let (figure, at) = match wall {
            Some((figure, at)) if row.limit == Limit::Wall => (figure, at),
            _ => (row.ceiling, root),
        };
        let value = scalar(&row.unit.show(figure), at);
        entries.push(Entry { key: row.key.to_owned(), at, value });
    }
    // What is no mapping at all is passed on as it is, for the loader to say so.
    let limits = match limits {
        Some(node) if !matches!(node.value, Value::Map(_)) => node.clone(),
        _ => Node { at: limits.map_or(root, |node| node.at), value: Value::Map(entries) },
    };
    map(root, vec![("isolation", scalar("basic", root)), ("limits", limits)])
}

/// `30s`, or a plain count of milliseconds.
fn timeout(node: &Node, report: &mut Report<'_>) -> Option<(u64, At)> {
    let text = report.figure(node)?;
    let figure = match text.parse::<u64>() {
        Ok(milliseconds) if milliseconds > 0 => Some(milliseconds),
        _ => Unit::Time.parse(text).ok(),
    };
    let ceiling = Limit::Wall.row().ceiling;
    match figure {
        Some(figure) if figure <= ceiling => Some((figure, node.at)),
        Some(_) => {
            let help = format!("at most {}", Unit::Time.show(ceiling));
            report.add("over_ceiling", node.at, "`timeout` is beyond the ceiling", help);
            None
        }
        None => {
            let help = "a time such as `30s` or `2m`, or milliseconds such as `30000`".to_owned();
            report.add("bad_figure", node.at, format!("`{text}` is not a time"), help);
            None
        }
    }
}

/// The figures that the tool itself sets, for people.
fn own_limits(
    policy: &Policy,
    parts: &Parts<'_>,
    wall: Option<(u64, At)>,
) -> Vec<(&'static str, String)> {
    let named = |key: &str| match parts.limits.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.iter().any(|entry| entry.key == key),
        _ => false,
    };
    let own = |limit: Limit| named(limit.row().key) || (limit == Limit::Wall && wall.is_some());
    let figures = policy.sandbox.limits.iter().filter(|(limit, _)| own(*limit));
    figures.map(|(limit, figure)| (limit.row().key, limit.row().unit.show(*figure))).collect()
}

/// One rule: what the allowlist names, whatever it does inside a sandbox.
fn commands(allowlist: &[(String, At)], root: At) -> Node {
    let Some((_, first)) = allowlist.first() else { return list(root, Vec::new()) };
    let patterns = allowlist.iter().map(|(text, at)| scalar(&pattern(text), *at)).collect();
    let rule = map(
        *first,
        vec![
            ("id", scalar("allowlist", *first)),
            ("allow", list(*first, patterns)),
            ("effects", scalar("any", *first)),
        ],
    );
    list(root, vec![rule])
}

/// An entry as a pattern. A star at the end covers further words: `yarn test*` is `yarn test* ...`, `git *` is
/// `git ...`. Without one the words are all there is.
fn pattern(entry: &str) -> String {
    let entry = entry.trim();
    match entry.strip_suffix(" *") {
        Some(words) if !words.trim().is_empty() => format!("{} ...", words.trim_end()),
        _ if entry.ends_with('*') => format!("{entry} ..."),
        // The one reserved word of a policy is the name of a program here.
        _ if entry == "catalog" => "catalog ...".to_owned(),
        _ => entry.to_owned(),
    }
}

/// Its figures are at their ceilings: a tool says which peers, and those who grant them how much.
fn rule(text: &str, at: At) -> Node {
    let figures = FIGURES.iter().map(|row| (row.key, scalar(&row.unit.show(row.ceiling), at)));
    map(at, vec![("allow", scalar(text, at)), ("limits", map(at, figures.collect()))])
}

/// Its commands may get these variables, from the caller or from the tool. One that makes programs load code
/// is never passed from the caller.
fn variables_of(names: &[(String, At)], root: At) -> Node {
    let nodes = |kept: &dyn Fn(&str) -> bool| {
        let kept = names.iter().filter(|(name, _)| kept(name));
        list(root, kept.map(|(name, at)| scalar(name, *at)).collect())
    };
    let passes = |name: &str| {
        !name.contains('*') && variables::is_name(name) && !variables::loads_code(name)
    };
    map(root, vec![("accept", nodes(&|_| true)), ("pass", nodes(&passes))])
}

fn scalar(text: &str, at: At) -> Node {
    Node { at, value: Value::Scalar { text: text.to_owned(), style: Style::Quoted } }
}

fn list(at: At, items: Vec<Node>) -> Node {
    Node { at, value: Value::List(items) }
}

fn map(at: At, entries: Vec<(&str, Node)>) -> Node {
    let entries = entries.into_iter();
    let entries = entries.map(|(key, value)| Entry { key: key.to_owned(), at, value }).collect();
    Node { at, value: Value::Map(entries) }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
