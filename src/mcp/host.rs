//! What the person who started the server chose, and what the server keeps while it runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runner_policy::decide::Explanation;

use super::calls::Calls;
use super::history::History;
use super::seal::Seal;
use super::who::Who;
use crate::call::{CallError, Context, Notices};
use crate::config::{self, Config};
use crate::engine;
use crate::policy_files::{Choice, Configured, Loaded, Places, Trust, load};
use crate::workspace::Workspace;

/// How long a request waits for its call: clients give up after a minute.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(50);

/// Chosen when the server is started. No client changes any of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The environment of the server, and its watchdog. Each call gets the caller of its client.
    pub context: Context,
    /// The folder of the calls: its workspace is the only one.
    pub folder: Option<PathBuf>,
    /// The policy.
    pub policy: Choice,
    /// The engines.
    pub engine: Option<engine::Choice>,
    /// The image instead of the policy's.
    pub image: Option<String>,
    /// Further folders with tools.
    pub tools: Vec<PathBuf>,
    /// How long a request waits for its call.
    pub answer_within: Duration,
    /// How policies and decisions are told.
    pub words: Words,
}

/// Policies and decisions in words, as the command line has them.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// A whole policy.
    pub policy: fn(&Loaded) -> String,
    /// A decision about this command.
    pub decision: fn(&str, &Explanation, Option<&Configured>) -> String,
}

/// A server.
pub struct Host {
    /// What was chosen.
    pub settings: Settings,
    /// The root of its workspace.
    pub root: PathBuf,
    /// The folder in it where calls start.
    pub cwd: PathBuf,
    pub(super) calls: Calls,
    pub(super) seal: Seal,
    pub(super) history: History,
}

impl Host {
    /// A server for the workspace of the chosen folder. The policy is looked at once, so that a wrong one is known at the
    /// start.
    ///
    /// # Errors
    /// There is no workspace, no configuration or no policy that can be used.
    pub fn new(settings: Settings) -> Result<Arc<Self>, CallError> {
        let workspace = Workspace::find(settings.folder.as_deref(), &settings.context.environment)?;
        let (root, cwd) = (workspace.root().to_owned(), workspace.cwd().to_owned());
        let random = |error| CallError::Local("make a key", error);
        let host = Self {
            settings,
            root,
            cwd,
            calls: Calls::default(),
            seal: Seal::new().map_err(random)?,
            history: History::default(),
        };
        host.policy()?;
        Ok(Arc::new(host))
    }

    /// Where policies, tools and records are.
    #[must_use]
    pub fn places(&self) -> Places {
        Places::of(&self.settings.context.environment, Some(&self.root))
    }

    /// The configuration, as it is now.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn config(&self) -> Result<Config, CallError> {
        Ok(config::load(&self.places())?)
    }

    /// The policy, as it is now.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn policy(&self) -> Result<Loaded, CallError> {
        let choice = self.config()?.choice(&self.settings.policy, &self.root);
        Ok(load(&choice, &self.places(), Trust::Required)?)
    }

    /// What the calls of a client are made with.
    pub(super) fn context(&self, who: &Who, claimed: Option<String>) -> Context {
        // No call adds to a list that grows as long as the server runs.
        let notices = Notices::default();
        Context { caller: who.caller(claimed), notices, ..self.settings.context.clone() }
    }

    /// A client has left: its calls end.
    pub fn leave(&self, who: &Who) {
        self.calls.leave(who.owner());
    }

    /// Ends every call and waits until they are over.
    pub async fn end(&self) {
        self.calls.end_all().await;
    }
}
