//! What a request wants to run, and the task that runs it.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use rmcp::model::JsonObject;
use runner_policy::limits::Limit;
use serde_json::Value;

use super::answer;
use super::arguments::Run;
use super::calls::{Ended, Entry};
use super::command;
use super::host::Host;
use super::registry;
use super::who::Who;
use crate::approvals::ApprovalId;
use crate::call::{Command, Context};
use crate::ids::ToolName;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::streams::Source;

/// What runs.
#[derive(Debug, Clone)]
pub enum Work {
    /// A command.
    Command(CommandWork),
    /// A tool of the registry.
    Tool(ToolName, JsonObject),
}

/// A command, valid.
#[derive(Debug, Clone)]
pub struct CommandWork {
    /// What to run.
    pub command: Command,
    /// Where, below the folder of the server.
    pub cwd: Option<String>,
    /// A tighter wall limit.
    pub tighten: Vec<(Limit, u64)>,
    /// Its standard input.
    pub stdin: Option<String>,
}

impl CommandWork {
    /// From its arguments.
    ///
    /// # Errors
    /// What is wrong with them, for the model.
    pub fn new(run: Run) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("invalid_arguments: run_command: {why}"));
        let command = match (run.command, run.argv) {
            (Some(line), None) => Command::Line(line),
            (None, Some(argv)) if !argv.is_empty() => {
                if argv.iter().any(|word| word.contains('\0')) {
                    return wrong("a word of argv holds a NUL character");
                }
                Command::Argv(argv.into_iter().map(Into::into).collect())
            }
            (None, Some(_)) => return wrong("argv is empty"),
            (Some(_), Some(_)) => return wrong("give command or argv, not both"),
            (None, None) => return wrong("give command (a shell line) or argv (a list of words)"),
        };
        let mut tighten = Vec::new();
        if let Some(seconds) = run.timeout {
            if !(seconds > 0.0 && seconds.is_finite()) {
                return wrong("timeout is a number of seconds above 0");
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a float becomes the nearest whole number, and the largest at most"
            )]
            tighten.push((Limit::Wall, ((seconds * 1_000.0) as u64).max(1)));
        }
        Ok(Self { command, cwd: run.cwd, tighten, stdin: run.stdin })
    }

    /// Its standard input.
    pub fn source(&self) -> Source {
        let stdin = self.stdin.clone()?;
        Some(Box::pin(Cursor::new(stdin.into_bytes())))
    }

    /// Where it starts: below `base`, or absolute.
    pub fn folder(&self, base: &Path) -> std::path::PathBuf {
        self.cwd.as_ref().map_or_else(|| base.to_owned(), |cwd| base.join(cwd))
    }
}

/// Why nothing was started.
#[derive(Debug)]
pub enum NotBegun {
    /// This client has as many calls as it may.
    Busy,
    /// The operating system refused something.
    Local(std::io::Error),
}

/// Begins a call in a task of its own. `named` is the approval that its client has brought for it.
///
/// # Errors
/// Nothing was begun.
pub fn begin(
    host: &Arc<Host>,
    who: &Who,
    claimed: Option<String>,
    work: Work,
    named: Option<ApprovalId>,
) -> Result<Arc<Entry>, NotBegun> {
    let (canceller, cancel) = Cancel::pair();
    let entry = host.calls.begin(who.owner(), canceller).map_err(NotBegun::Local)?;
    let entry = entry.ok_or(NotBegun::Busy)?;
    let started = Started {
        host: Arc::clone(host),
        owner: who.owner().to_owned(),
        context: host.context(who, claimed),
        entry: Arc::clone(&entry),
        named,
    };
    tokio::spawn(async move {
        let guard = Unfinished(Arc::clone(&started.entry));
        let ended = match work {
            Work::Command(work) => command::run(&started, work, cancel).await,
            Work::Tool(name, arguments) => {
                registry::run(&started, name, Value::Object(arguments), cancel).await
            }
        };
        guard.0.finish(ended);
        if guard.0.is_left() {
            started.host.calls.forget(&guard.0.handle);
        }
    });
    Ok(entry)
}

/// A call that was begun.
pub struct Started {
    pub host: Arc<Host>,
    pub owner: String,
    pub context: Context,
    pub entry: Arc<Entry>,
    /// An approval that counts for it.
    pub named: Option<ApprovalId>,
}

/// Says that a call is over if its task dies.
struct Unfinished(Arc<Entry>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.0.ended().is_none() {
            self.0.finish(answer::broken());
        }
    }
}

impl Ended {
    /// An error in words.
    pub fn error(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            is_error: true,
            structured: None,
            meta: JsonObject::new(),
            waits: None,
        }
    }
}
