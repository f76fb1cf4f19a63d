//! The server's entry in the configuration of clients.
//!
//! Entries of others stay as they are. A file that cannot be read strictly is not touched: its owner is told what to add.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::error::InstallError;
use crate::environment::Environment;
use crate::json;

/// The name of the entry.
const NAME: &str = "runner";
/// The largest file that is changed.
const MAX_BYTES: u64 = 16 << 20;

/// A client that can start the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Agent {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// GitHub Copilot CLI
    Copilot,
    /// OpenCode
    Opencode,
    /// Qwen Code
    Qwen,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
}

/// Whose configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's.
    User,
    /// The workspace's.
    Project,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The file.
    pub path: PathBuf,
    /// Its new text.
    pub text: String,
    /// Whether it was another before.
    pub changed: bool,
}

/// The form of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Below this key: `command` and `args`.
    Plain(&'static str),
    /// The same with `type: stdio`.
    Typed(&'static str),
    /// The same with `type: local` and the tools that may be used.
    Copilot,
    /// One list for the command.
    Opencode,
    /// A table of TOML.
    Codex,
}

impl Agent {
    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::Opencode => "OpenCode",
            Self::Qwen => "Qwen Code",
            Self::Cursor => "Cursor",
            Self::Vscode => "Visual Studio Code",
        }
    }

    fn form(self) -> Form {
        match self {
            Self::Claude => Form::Typed("mcpServers"),
            Self::Gemini | Self::Qwen | Self::Cursor => Form::Plain("mcpServers"),
            Self::Vscode => Form::Typed("servers"),
            Self::Copilot => Form::Copilot,
            Self::Opencode => Form::Opencode,
            Self::Codex => Form::Codex,
        }
    }

    /// Its file, from the home folder or from the workspace.
    fn file(self, scope: Scope) -> Option<&'static str> {
        match (self, scope) {
            (Self::Claude, Scope::User) => Some(".claude.json"),
            (Self::Claude, Scope::Project) => Some(".mcp.json"),
            (Self::Codex, _) => Some(".codex/config.toml"),
            (Self::Gemini, _) => Some(".gemini/settings.json"),
            (Self::Qwen, _) => Some(".qwen/settings.json"),
            (Self::Copilot, Scope::User) => Some(".copilot/mcp-config.json"),
            (Self::Copilot, Scope::Project) | (Self::Vscode, Scope::User) => None,
            (Self::Opencode, Scope::User) => Some(".config/opencode/opencode.json"),
            (Self::Opencode, Scope::Project) => Some("opencode.json"),
            (Self::Cursor, _) => Some(".cursor/mcp.json"),
            (Self::Vscode, Scope::Project) => Some(".vscode/mcp.json"),
        }
    }
}

/// Writes the entry of the server that these words start, or only makes the text.
///
/// # Errors
/// The client has no such file, or it cannot be changed.
pub fn install(
    agent: Agent,
    scope: Scope,
    words: &[OsString],
    (environment, workspace): (&Environment, &Path),
    write_it: bool,
) -> Result<Installed, InstallError> {
    let place = match scope {
        Scope::User => "of the user",
        Scope::Project => "in a project",
    };
    let file = agent.file(scope).ok_or(InstallError::NoFile { agent: agent.name(), place })?;
    let base = match scope {
        Scope::User => environment.home().ok_or(InstallError::NoHome)?,
        Scope::Project => workspace.to_owned(),
    };
    let path = base.join(file);
    // A link of a folder of dot files stays a link: what it leads to is changed.
    let path = fs::canonicalize(&path).unwrap_or(path);
    let before = read(&path)?;
    let unreadable = |why: String| InstallError::Unreadable { path: path.clone(), why };
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text = match agent.form() {
        Form::Codex => toml_with(&before, &words).map_err(unreadable)?,
        form => json_with(&before, form, &words).map_err(unreadable)?,
    };
    let changed = text != before;
    if changed && write_it {
        write(&path, &text).map_err(|source| InstallError::Io { path: path.clone(), source })?;
    }
    Ok(Installed { path, text, changed })
}

fn read(path: &Path) -> Result<String, InstallError> {
    let failed = |source| InstallError::Io { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if meta.len() > MAX_BYTES || !meta.is_file() => {
            let why = "it is too large, or no file".to_owned();
            return Err(InstallError::Unreadable { path: path.to_owned(), why });
        }
        Ok(_) => {}
    }
    fs::read_to_string(path).map_err(failed)
}

/// Replaces a file as a whole, with the mode that it had.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(path).map(|meta| meta.permissions()).ok();
    let new = folder.join(format!(".runner-mcp-{}", std::process::id()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

fn json_with(before: &str, form: Form, words: &[String]) -> Result<String, String> {
    let mut root = match before.trim() {
        "" => Value::Object(Map::new()),
        text => json::read_as(text.as_bytes(), json::Limits::USUAL)
            .map_err(|error| format!("it is not plain JSON ({error})"))?,
    };
    let (program, args) = words.split_first().ok_or("there is no command")?;
    let (key, entry) = match form {
        Form::Plain(key) => (key, json!({ "command": program, "args": args })),
        Form::Typed(key) => (key, json!({ "type": "stdio", "command": program, "args": args })),
        Form::Copilot => (
            "mcpServers",
            json!({ "type": "local", "command": program, "args": args, "tools": ["*"] }),
        ),
        Form::Opencode => ("mcp", json!({ "type": "local", "command": words, "enabled": true })),
        Form::Codex => return Err("it is TOML".to_owned()),
    };
    let top = root.as_object_mut().ok_or("it holds no object")?;
    let held = top.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let servers = held.as_object_mut().ok_or_else(|| format!("`{key}` in it is no object"))?;
    if servers.get(NAME) == Some(&entry) {
        return Ok(before.to_owned());
    }
    servers.insert(NAME.to_owned(), entry);
    let text = serde_json::to_string_pretty(&root).map_err(|error| error.to_string())?;
    Ok(format!("{text}\n"))
}

fn toml_with(before: &str, words: &[String]) -> Result<String, String> {
    let table: toml::Table = toml::from_str(before).map_err(|error| error.message().to_owned())?;
    let (program, args) = words.split_first().ok_or("there is no command")?;
    let known = table.get("mcp_servers").and_then(|servers| servers.get(NAME));
    if let Some(known) = known {
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        let listed = known.get("args").and_then(toml::Value::as_array);
        let listed: Option<Vec<String>> = listed.map(|args| args.iter().filter_map(text).collect());
        let same = known.get("command").and_then(text).as_ref() == Some(program)
            && listed.as_deref() == Some(args);
        return match same {
            true => Ok(before.to_owned()),
            false => Err("it has another entry `mcp_servers.runner`; remove that one".to_owned()),
        };
    }
    // A string of JSON without control characters is one of TOML.
    let quoted = |text: &String| Value::String(text.clone()).to_string();
    let args: Vec<String> = args.iter().map(quoted).collect();
    let gap = if before.is_empty() || before.ends_with("\n\n") {
        ""
    } else if before.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let text = format!(
        "{before}{gap}[mcp_servers.{NAME}]\ncommand = {}\nargs = [{}]\n",
        quoted(program),
        args.join(", ")
    );
    match toml::from_str::<toml::Table>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("the entry does not fit in it: {}", error.message())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<OsString> {
        ["/usr/bin/runner", "mcp", "serve", "--policy", "develop"].map(Into::into).into()
    }

    #[test]
    fn entries_of_others_stay_and_a_second_time_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::from_iter([("HOME", home.path().as_os_str())]);
        let place = (&environment, Path::new("/w"));
        for agent in [Agent::Claude, Agent::Gemini, Agent::Copilot, Agent::Opencode, Agent::Cursor]
        {
            let path = home.path().join(agent.file(Scope::User).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, r#"{"b": 1, "mcpServers": {"x": {}}, "a": 0.10}"#).unwrap();
            let first = install(agent, Scope::User, &words(), place, true).unwrap();
            assert!(first.changed, "{agent:?}");
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text, first.text);
            assert!(text.contains("\"x\": {}") && text.contains("0.10"), "{text}");
            assert!(text.contains("develop") && text.find("\"b\"") < text.find("\"a\""), "{text}");
            assert!(!install(agent, Scope::User, &words(), place, true).unwrap().changed);
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::from_iter([("HOME", home.path().as_os_str())]);
        let path = home.path().join(".claude.json");
        for text in ["{ // a comment\n}", "[]", r#"{"mcpServers": []}"#, r#"{"a": 1, "a": 2}"#] {
            fs::write(&path, text).unwrap();
            let done =
                install(Agent::Claude, Scope::User, &words(), (&environment, home.path()), true);
            assert!(matches!(done, Err(InstallError::Unreadable { .. })), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_table_is_added_to_toml() {
        let list: Vec<String> =
            words().iter().map(|it| it.to_string_lossy().into_owned()).collect();
        let text = toml_with("model = \"x\"", &list).unwrap();
        assert!(text.starts_with("model = \"x\"\n\n[mcp_servers.runner]\ncommand = "), "{text}");
        assert_eq!(toml_with(&text, &list).unwrap(), text);
        assert!(toml_with(&text, &list[..3]).is_err());
        assert!(toml_with("a = ", &list).is_err());
    }
}
