//! Switching a tool on or off in a file that people write: comments, order and layout stay as they are.
//!
//! The text is changed at the place that the strict reader names, and the result is read again: unless it says what
//! it said before and the switch, nothing is written.

use runner_policy::finding::{At, Finding, Report};
use runner_policy::yaml::{self, Entry, Node, Style, Value};

use super::layer::Layer;
use super::read::{OfTool, Read, read};
use crate::ids::ToolName;

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditError {
    /// It cannot be read as it is, or the layer may not say this.
    Refused(Vec<Finding>),
    /// It is written in a way that cannot be changed at one place.
    ByHand {
        /// What to write.
        line: String,
    },
}

/// The text with `tools.NAME.enabled` set.
///
/// # Errors
/// The text is broken, would become so, or is laid out too unusually to be changed.
pub fn switched(
    layer: Layer,
    file: &str,
    text: &str,
    name: &ToolName,
    on: bool,
) -> Result<String, EditError> {
    let before = read(layer, file, text).map_err(EditError::Refused)?;
    let changed = Layout::of(text).set(text, name, on);
    let by_hand =
        || EditError::ByHand { line: format!("tools: {{ {name}: {{ enabled: {on} }} }}") };
    let changed = changed.ok_or_else(by_hand)?;
    let after = read(layer, file, &changed).map_err(EditError::Refused)?;
    if said(&after, name).and_then(|tool| tool.enabled.map(|it| it.0)) == Some(on)
        && others(&before, name) == others(&after, name)
    {
        Ok(changed)
    } else {
        Err(by_hand())
    }
}

fn said<'r>(read: &'r Read, name: &ToolName) -> Option<&'r OfTool> {
    read.tools.iter().find(|(other, _)| other == name).map(|(_, tool)| tool)
}

/// Everything that a file says but the one switch, without places.
fn others(read: &Read, name: &ToolName) -> String {
    let values = |figures: &[(super::Figure, u64, At)]| {
        figures.iter().map(|(figure, value, _)| (*figure, *value)).collect::<Vec<_>>()
    };
    let mut tools: Vec<_> = read
        .tools
        .iter()
        .map(|(other, tool)| {
            let enabled = tool.enabled.map(|it| it.0).filter(|_| other != name);
            (other, enabled, tool.auto_accept.map(|it| it.0), values(&tool.figures))
        })
        .filter(|(_, enabled, auto, figures)| {
            enabled.is_some() || auto.is_some() || !figures.is_empty()
        })
        .collect();
    tools.sort();
    let flags: Vec<_> = read.flags.iter().map(|(flag, value, _)| (*flag, *value)).collect();
    let skip = read.scan_skip.as_ref().map(|it| &it.0);
    let clients = read.approval_clients.as_ref().map(|it| &it.0);
    let team = read.team_folder.as_ref().map(|it| &it.0);
    let mut servers: Vec<_> = read
        .servers
        .iter()
        .map(|(name, it)| (name, it.enabled.map(|it| it.0), it.server.as_ref().map(|it| &it.0)))
        .collect();
    servers.sort_by_key(|it| it.0);
    let ceilings = values(&read.ceilings);
    let policy = read.policy.as_ref().map(|it| &it.0);
    let workspaces: Vec<_> = read.workspaces.iter().map(|it| (&it.0, &it.1)).collect();
    let skip = (skip, clients);
    let policies = (policy, workspaces, read.engine.as_ref().map(|it| &it.0));
    format!("{:?}", (values(&read.figures), flags, skip, team, policies, ceilings, tools, servers))
}

/// What has to be known of a text's form.
struct Layout {
    root: Option<Node>,
    newline: &'static str,
}

impl Layout {
    fn of(text: &str) -> Self {
        let mut report = Report::new("", text);
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { root: yaml::read(text, &mut report), newline }
    }

    fn set(&self, text: &str, name: &ToolName, on: bool) -> Option<String> {
        let inline = format!("{name}: {{ enabled: {on} }}");
        let Some(root) = &self.root else {
            return Some(self.appended(text, &format!("tools:{}  {inline}", self.newline)));
        };
        let Some((tools, end)) = find(root, "tools") else {
            if is_flow(text, root) {
                return insert_in_flow(text, root, &format!("tools: {{ {inline} }}"));
            }
            return Some(self.appended(text, &format!("tools:{}  {inline}", self.newline)));
        };
        let Some((tool, _)) = find(&tools.value, name.as_str()) else {
            if is_flow(text, &tools.value) {
                return insert_in_flow(text, &tools.value, &inline);
            }
            let indent = first(&tools.value)?.at.column.saturating_sub(1);
            return self.insert_line(text, self.end_of(text, end, indent), indent, &inline);
        };
        let enabled = format!("enabled: {on}");
        match find(&tool.value, "enabled") {
            Some((entry, _)) => replace(text, &entry.value, if on { "true" } else { "false" }),
            None if is_flow(text, &tool.value) => insert_in_flow(text, &tool.value, &enabled),
            None => {
                let indent = first(&tool.value)?.at.column.saturating_sub(1);
                self.insert_line(text, tool.at.line, indent, &enabled)
            }
        }
    }

    fn appended(&self, text: &str, lines: &str) -> String {
        let newline = self.newline;
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
        format!("{text}{gap}{lines}{newline}")
    }

    /// The last line of a block that ends before line `end` (from 1; `None` is the end of the text): blank lines and
    /// comments that are indented less belong to what follows.
    fn end_of(&self, text: &str, end: Option<u32>, indent: u32) -> u32 {
        let lines: Vec<&str> = text.lines().collect();
        let mut last = end.map_or(lines.len(), |end| end.saturating_sub(1) as usize);
        while let Some(line) = last.checked_sub(1).and_then(|at| lines.get(at)) {
            let rest = line.trim_start();
            let inside = line.len() - rest.len() >= indent as usize;
            if !(rest.is_empty() || (rest.starts_with('#') && !inside)) {
                break;
            }
            last -= 1;
        }
        u32::try_from(last).unwrap_or(u32::MAX)
    }

    /// Adds a line after line `after` (from 1).
    fn insert_line(&self, text: &str, after: u32, indent: u32, line: &str) -> Option<String> {
        let at = match text.match_indices('\n').nth(after.checked_sub(1)? as usize) {
            Some((at, _)) => at + 1,
            None => text.len(),
        };
        let (head, tail) = text.split_at_checked(at)?;
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { self.newline };
        let indent = " ".repeat(indent as usize);
        Some(format!("{head}{gap}{indent}{line}{}{tail}", self.newline))
    }
}

/// The entry of this key, and the line of the one after it.
fn find<'n>(node: &'n Node, key: &str) -> Option<(&'n Entry, Option<u32>)> {
    let Value::Map(entries) = &node.value else { return None };
    let at = entries.iter().position(|entry| entry.key == key)?;
    Some((&entries[at], entries.get(at + 1).map(|next| next.at.line)))
}

fn first(node: &Node) -> Option<&Entry> {
    match &node.value {
        Value::Map(entries) => entries.first(),
        Value::List(_) | Value::Scalar { .. } => None,
    }
}

/// Whether a mapping is written in braces.
fn is_flow(text: &str, node: &Node) -> bool {
    offset(text, node.at).is_some_and(|at| text[at..].starts_with('{'))
}

fn insert_in_flow(text: &str, node: &Node, entry: &str) -> Option<String> {
    let (head, tail) = text.split_at_checked(offset(text, node.at)? + 1)?;
    let empty = first(node).is_none();
    Some(format!("{head} {entry}{}{tail}", if empty { " " } else { "," }))
}

fn replace(text: &str, node: &Node, word: &str) -> Option<String> {
    let Value::Scalar { text: old, style: Style::Plain } = &node.value else { return None };
    let (head, tail) = text.split_at_checked(offset(text, node.at)?)?;
    Some(format!("{head}{word}{}", tail.strip_prefix(old.as_str())?))
}

/// The byte at a place.
fn offset(text: &str, at: At) -> Option<usize> {
    let line = at.line.checked_sub(1)? as usize;
    let start = match line.checked_sub(1) {
        None => 0,
        Some(before) => text.match_indices('\n').nth(before)?.0 + 1,
    };
    let column = at.column.checked_sub(1)? as usize;
    let rest = &text[start..];
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, on: bool) -> String {
        switched(Layer::User, "c.yml", text, &"probe".parse().unwrap(), on).unwrap()
    }

    #[test]
    fn every_layout_keeps_its_comments_and_order() {
        for (before, after) in [
            ("", "tools:\n  probe: { enabled: true }\n"),
            ("# mine", "# mine\ntools:\n  probe: { enabled: true }\n"),
            (
                "pool: { size: 1 } # few\n",
                "pool: { size: 1 } # few\ntools:\n  probe: { enabled: true }\n",
            ),
            (
                "tools:\n  # why\n  probe:  {enabled: false} # off\npool: {size: 1}\n",
                "tools:\n  # why\n  probe:  {enabled: true} # off\npool: {size: 1}\n",
            ),
            (
                "tools:\n    probe:\n        # few\n        concurrency: 1\n",
                "tools:\n    probe:\n        enabled: true\n        # few\n        concurrency: 1\n",
            ),
            (
                "tools:\n  a: { queue: 1 }\n  # last of a\n\n# the pool\npool: { size: 1 }\n",
                "tools:\n  a: { queue: 1 }\n  # last of a\n  probe: { enabled: true }\n\n# the pool\npool: { size: 1 }\n",
            ),
            (
                "tools:\n  a:\n    queue: 1",
                "tools:\n  a:\n    queue: 1\n  probe: { enabled: true }\n",
            ),
            ("tools: {}\n", "tools: { probe: { enabled: true } }\n"),
            (
                "tools: { a: { queue: 1 } }\n",
                "tools: { probe: { enabled: true }, a: { queue: 1 } }\n",
            ),
            ("tools: { probe: {} }\n", "tools: { probe: { enabled: true } }\n"),
            (
                "{ pool: { size: 1 } }\n",
                "{ tools: { probe: { enabled: true } }, pool: { size: 1 } }\n",
            ),
            (
                "pool: { size: 1 }\r\n# ü\r\ntools:\r\n  a: { queue: 1 }\r\n",
                "pool: { size: 1 }\r\n# ü\r\ntools:\r\n  a: { queue: 1 }\r\n  probe: { enabled: true }\r\n",
            ),
        ] {
            let expected = after.replace(" }  }", " } }");
            let found = set(before, true).replace(" }  }", " } }").replace(", }", " }");
            assert_eq!(found, expected, "{before:?}");
            assert_eq!(set(&set(before, true), true), set(before, true), "{before:?}");
            let off = set(&set(before, true), false);
            assert_eq!(off, set(before, true).replace("enabled: true", "enabled: false"));
        }
    }

    #[test]
    fn what_cannot_be_changed_safely_is_left_alone() {
        let name = "probe".parse().unwrap();
        let broken = switched(Layer::User, "c", "poool: 1\n", &name, true);
        assert!(matches!(broken, Err(EditError::Refused(_))), "{broken:?}");
        let ended = switched(Layer::User, "c", "pool: { size: 1 }\n...\n", &name, true);
        assert!(ended.is_err(), "{ended:?}");
        let project = switched(Layer::Project, "c", "", &name, true);
        assert!(matches!(project, Err(EditError::Refused(_))), "a project cannot switch on");
        assert!(switched(Layer::Project, "c", "", &name, false).is_ok());
    }
}
