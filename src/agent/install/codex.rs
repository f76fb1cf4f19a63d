//! Codex's `config.toml`: a block of text at its end.
//!
//! Duty: tables can be written at the end of any TOML file, so that nothing of it changes; the whole is parsed before and
//! after. Codex runs a hook of a user or of a project only if its digest is recorded as trusted; the person who installs
//! the hook is asked for that with the rest of the change, and the record stands in the user's file. Hooks of
//! `/etc/codex` need none.

use std::path::Path;

use ring::digest::{SHA256, digest};
use serde_json::json;

use super::edits::{SECONDS, wrong_at};
use super::jsonc::Wrong;
use crate::agent::error::AgentError;
use crate::agent::kind::Layer;

/// The first line of our block.
const BEGIN: &str =
    "# Written by `runner agent install codex`; `runner agent uninstall codex` removes it.";
/// The last.
const END: &str = "# The end of what runner wrote.";
/// The tools that run shell lines, as Codex names them to hooks.
const MATCHER: &str = "^Bash$";

/// The text with our hook.
pub(super) fn with_hook(
    text: &str,
    path: &Path,
    command: &str,
    layer: Layer,
) -> Result<String, AgentError> {
    let before = parsed(text, path)?;
    if text.contains(BEGIN) {
        let at = text.find(BEGIN).unwrap_or_default();
        let why = "a hook of runner stands here already; remove it first".to_owned();
        return Err(wrong_at(path, text, Wrong { at, why }));
    }
    let groups = before.get("hooks").and_then(|hooks| hooks.get("PreToolUse"));
    let index = match groups {
        None => 0,
        Some(toml::Value::Array(groups)) => groups.len(),
        Some(_) => return Err(not_tables(text, path)),
    };
    let gap = if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let after = format!("{text}{gap}{}", block(path, command, index, layer));
    // An array or a table that is written in one line cannot be gone on with.
    parsed(&after, path).map_err(|_| not_tables(text, path))?;
    Ok(after)
}

/// The text without our block.
pub(super) fn without_hook(
    text: &str,
    path: &Path,
    _command: &str,
    _layer: Layer,
) -> Result<String, AgentError> {
    let changed = || AgentError::Changed(path.to_owned());
    let start = text.find(BEGIN).ok_or_else(changed)?;
    let end = text[start..].find(END).map(|at| start + at + END.len()).ok_or_else(changed)?;
    let rest = text[end..].strip_prefix('\n').unwrap_or(&text[end..]);
    let left = format!("{}{rest}", text[..start].strip_suffix('\n').unwrap_or(&text[..start]));
    parsed(&left, path)?;
    Ok(left)
}

/// Our block.
fn block(path: &Path, command: &str, index: usize, layer: Layer) -> String {
    // A JSON string is a basic string of TOML.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut block = format!(
        "{BEGIN}\n[[hooks.PreToolUse]]\nmatcher = {}\n\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\n\
         command = {}\ntimeout = {SECONDS}\n",
        text(MATCHER),
        text(command),
    );
    if layer != Layer::Managed {
        let key = format!("{}:pre_tool_use:{index}:0", path.display());
        block.push_str(&format!(
            "\n[hooks.state.{}]\ntrusted_hash = {}\n",
            text(&key),
            text(&trusted_hash(command)),
        ));
    }
    block.push_str(END);
    block.push('\n');
    block
}

/// The digest by which Codex knows a hook that was trusted: of its settings as JSON with sorted keys.
fn trusted_hash(command: &str) -> String {
    // Written in the order of the keys.
    let identity = json!({
        "event_name": "pre_tool_use",
        "hooks": [{
            "async": false,
            "command": command,
            "timeout": SECONDS,
            "type": "command",
        }],
        "matcher": MATCHER,
    });
    let hash = digest(&SHA256, identity.to_string().as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn not_tables(text: &str, path: &Path) -> AgentError {
    let at = text.find("hooks").unwrap_or_default();
    let why =
        "hooks are written in one line here; write them as [[hooks.PreToolUse]] tables".to_owned();
    wrong_at(path, text, Wrong { at, why })
}

fn parsed(text: &str, path: &Path) -> Result<toml::Table, AgentError> {
    text.parse::<toml::Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong_at(path, text, Wrong { at, why: error.message().to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_added_and_taken_away_and_nothing_else_changes() {
        let path = Path::new("/h/.codex/config.toml");
        for text in [
            "",
            "# mine\nmodel = \"x\" # why\n",
            "model = \"x\"",
            "[[hooks.PreToolUse]]\nmatcher = \"a\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"b\"\n",
            "[hooks.state.\"k\"]\nenabled = true\n",
        ] {
            let after = with_hook(text, path, "'/r' hook codex", Layer::User).unwrap();
            assert!(after.starts_with(text), "{after}");
            let table: toml::Table = after.parse().unwrap();
            let groups = table["hooks"]["PreToolUse"].as_array().unwrap().len();
            let key = format!("/h/.codex/config.toml:pre_tool_use:{}:0", groups - 1);
            assert!(table["hooks"]["state"].get(&key).is_some(), "{after}");
            assert!(with_hook(&after, path, "x", Layer::User).is_err());
            let later = format!("{after}[later]\nx = 1\n");
            let left = without_hook(&later, path, "", Layer::User).unwrap();
            assert!(left.starts_with(text.trim_end()) && left.ends_with("[later]\nx = 1\n"));
            assert!(!left.contains("runner"), "{left}");
        }
        let managed = with_hook("", path, "x", Layer::Managed).unwrap();
        assert!(!managed.contains("trusted_hash"));
    }

    #[test]
    fn what_cannot_be_gone_on_with_is_refused_at_its_place() {
        let path = Path::new("/c.toml");
        for text in ["a = 1\nhooks = { PreToolUse = [] }\n", "a = 1\nhooks.PreToolUse = []\n"] {
            let error = with_hook(text, path, "x", Layer::User).unwrap_err().to_string();
            assert!(error.starts_with("/c.toml:2:1:"), "{error}");
        }
        let error = with_hook("a = \n", path, "x", Layer::User).unwrap_err().to_string();
        assert!(error.starts_with("/c.toml:1:"), "{error}");
    }
}
