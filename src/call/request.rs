//! What is asked, where, and what the policy says.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use runner_policy::Effective;
use runner_policy::decide::{Decision, Explanation, Query, What, decide, explain};
use runner_policy::limits::{Limit, Limits};
use runner_policy::model::{Verdict, Writes};
use runner_policy::word::quoted;
use runner_wire::Work;
use serde_json::{Value, json};

use super::context::Context;
use super::error::CallError;
use super::line;
use super::supply::Warmth;
use crate::config::{self, Config};
use crate::engine;
use crate::policy_files::{Choice, Configured, Loaded, Places, Trust, choosable, load};
use crate::sandbox::synthetic::HOME;
use crate::workspace::Workspace;

/// What to run.
#[derive(Debug, Clone)]
pub enum Command {
    /// A program and its arguments.
    Argv(Vec<OsString>),
    /// A shell line.
    Line(String),
}

impl Command {
    /// A program with variables of its own, judged like those of `env NAME=VALUE CMD`.
    pub(super) fn with_variables<'v>(
        argv: impl IntoIterator<Item = String>,
        env: impl IntoIterator<Item = (&'v String, &'v String)>,
    ) -> Self {
        let mut assignments =
            env.into_iter().map(|(name, value)| format!("{name}={value}")).peekable();
        let env = assignments.peek().is_some().then(|| "env".to_owned());
        let words = env.into_iter().chain(assignments).chain(argv);
        Self::Argv(words.map(OsString::from).collect())
    }
}

/// A call as it was asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to run.
    pub command: Command,
    /// Where; the current folder if `None`.
    pub cwd: Option<PathBuf>,
    /// Under which policy.
    pub policy: Choice,
    /// In which image, instead of the policy's.
    pub image: Option<String>,
    /// Which engines may make the sandbox.
    pub engine: Option<engine::Choice>,
    /// Limits that are tighter than the policy's.
    pub tighten: Vec<(Limit, u64)>,
    /// Whether a sandbox that waits may be used.
    pub warmth: Warmth,
    /// Whether the values of its leading variables may be told.
    pub variables: Variables,
    /// When its changes are applied; the policy may be stricter.
    pub writes: Writes,
    /// What a change that is held back means.
    pub on_held: OnHeld,
}

/// What it means for a call that a change was held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnHeld {
    /// The result names it.
    #[default]
    Tell,
    /// The call has failed.
    Fail,
}

/// Whether values of variables before a command are for records and questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Variables {
    /// They are part of what was typed.
    #[default]
    Told,
    /// They are settings, and may be secrets: only their names are told.
    Hidden,
}

/// Whether there is an approval for what a policy asks about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Approval {
    /// There is none.
    #[default]
    None,
    /// The person at the command line approved it.
    Given,
}

/// A call that was decided.
#[derive(Debug)]
pub struct Decided {
    /// As it was asked for.
    pub request: Request,
    /// Where it runs.
    pub workspace: Arc<Workspace>,
    /// Where policies and records are.
    pub places: Places,
    /// The configuration.
    pub config: Arc<Config>,
    /// The policy.
    pub policy: Arc<Effective>,
    /// The configuration that made it the default, if one did.
    pub configured: Option<Configured>,
    /// What it says.
    pub decision: Decision,
    /// Whether it is approved.
    pub approval: Approval,
    /// On whose behalf.
    pub context: Context,
}

impl Request {
    /// Decides the call.
    ///
    /// # Errors
    /// There is no workspace, or no policy that can decide.
    pub fn decide(self, context: &Context) -> Result<Decided, CallError> {
        let workspace = Workspace::find(self.cwd.as_deref(), &context.environment)?;
        let places = Places::of(&context.environment, Some(workspace.root()));
        let config = Arc::new(config::load(&places)?);
        self.decide_at(workspace, places, config, context)
    }

    /// Decides the call in a workspace that is already found, with policies and records in these places. Only a host that
    /// runs nothing but its own program may leave the managed layer out of them.
    ///
    /// # Errors
    /// There is no policy that can decide.
    pub fn decide_at(
        self,
        workspace: Workspace,
        places: Places,
        config: Arc<Config>,
        context: &Context,
    ) -> Result<Decided, CallError> {
        let choice = config.choice(&self.policy, workspace.root());
        let Loaded { policy, configured, .. } = load(&choice, &places, Trust::Required)?;
        let decided =
            self.decide_under(Arc::new(policy), workspace, places, config, context.clone())?;
        Ok(Decided { configured, ..decided })
    }

    /// Decides the call under a policy that is already known, in a workspace that is already found.
    ///
    /// # Errors
    /// The workspace's path is not text.
    pub(super) fn decide_under(
        self,
        policy: Arc<Effective>,
        workspace: Workspace,
        places: Places,
        config: Arc<Config>,
        context: Context,
    ) -> Result<Decided, CallError> {
        let decision = {
            let words = self.words();
            let query = query(&self, &words, &workspace)?;
            decide(&policy, &query)
        };
        let approval = Approval::None;
        let workspace = Arc::new(workspace);
        Ok(Decided {
            request: self,
            workspace,
            places,
            config,
            policy,
            configured: None,
            decision,
            approval,
            context,
        })
    }

    /// The words of a command, which need not be text.
    fn words(&self) -> Vec<Vec<u8>> {
        let Command::Argv(argv) = &self.command else { return Vec::new() };
        argv.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// The command as one line, for records and messages.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.command {
            Command::Line(line) => line.clone(),
            Command::Argv(argv) => {
                self.told(argv).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The words that may be told, as text.
    fn told(&self, argv: &[OsString]) -> Vec<String> {
        let mut leading = self.variables == Variables::Hidden;
        let told = argv.iter().enumerate().map(|(at, word)| {
            let word = word.to_string_lossy();
            match word.split_once('=') {
                Some((name, _)) if leading && at > 0 => format!("{name}=***"),
                _ => {
                    leading &= at == 0 && word == "env";
                    word.into_owned()
                }
            }
        });
        told.collect()
    }

    /// The words for what an approval is bound to: also those are told apart that are no text.
    pub(super) fn argv_bound(&self) -> Value {
        let Command::Argv(argv) = &self.command else { return Value::Null };
        let word = |word: &OsString| match word.to_str() {
            Some(text) => json!(text),
            None => json!({ "bytes": word.as_bytes() }),
        };
        argv.iter().map(word).collect()
    }

    /// The words as text, for the record.
    #[must_use]
    pub fn argv_text(&self) -> Option<Vec<String>> {
        match &self.command {
            Command::Line(_) => None,
            Command::Argv(argv) => Some(self.told(argv)),
        }
    }
}

fn query<'a>(
    request: &'a Request,
    words: &'a [Vec<u8>],
    workspace: &'a Workspace,
) -> Result<Query<'a>, CallError> {
    let what = match &request.command {
        Command::Argv(_) => What::Bytes(words),
        Command::Line(line) => What::Line(line),
    };
    Ok(Query {
        workspace: path_text(workspace.root())?,
        cwd: path_text(workspace.cwd())?,
        now: Timestamp::now(),
        what,
    })
}

/// Rules speak of text, so a path that is none cannot be judged.
pub(super) fn path_text(path: &Path) -> Result<&str, CallError> {
    path.to_str().ok_or_else(|| CallError::PathNotText(path.to_owned()))
}

impl Decided {
    /// The ways out of a refusal.
    ///
    /// # Errors
    /// The workspace's path is not text.
    pub fn explain(&self) -> Result<Explanation, CallError> {
        let words = self.request.words();
        let query = query(&self.request, &words, &self.workspace)?;
        Ok(explain(&self.policy, &query, &choosable(&self.places)))
    }

    /// Reads the command in another way, as it was decided.
    ///
    /// # Errors
    /// The workspace's path is not text.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Effective, &Query<'_>) -> T,
    ) -> Result<T, CallError> {
        let words = self.request.words();
        let query = query(&self.request, &words, &self.workspace)?;
        Ok(read(&self.policy, &query))
    }

    /// Whether it needs an approval first.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.decision.approvable && self.approval == Approval::None
    }

    /// Decides once more, as the first time.
    ///
    /// # Errors
    /// The workspace's path is not text.
    pub fn decide_again(&self) -> Result<Decision, CallError> {
        let words = self.request.words();
        let query = query(&self.request, &words, &self.workspace)?;
        Ok(decide(&self.policy, &query))
    }

    /// Whether it may run.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        match self.decision.decision {
            Verdict::Allow => true,
            Verdict::Ask => self.decision.approvable && self.approval == Approval::Given,
            Verdict::Deny => false,
        }
    }

    /// The figures in force: the decision's, and tighter ones of the caller.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let mut limits = self.decision.grant.limits;
        for (limit, figure) in &self.request.tighten {
            limits.tighten(*limit, *figure);
        }
        limits
    }

    /// What the guest executes: exactly the plan that was judged.
    ///
    /// # Errors
    /// The decision has no plan: nothing may run.
    pub fn work(&self) -> Result<Work, CallError> {
        let plan = self.decision.plan.as_ref().filter(|_| self.is_allowed());
        let root = self.workspace.root().as_os_str();
        let roots = [root.into(), "/tmp".into(), HOME.into()];
        Ok(line::for_guest(plan.ok_or(CallError::NoPlan)?, HOME, &roots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_settings_are_not_told() {
        let env = [("PAT".to_owned(), "x=y".to_owned())];
        let argv = ["node".to_owned(), "a=b".to_owned()];
        let request = |variables| Request {
            command: Command::with_variables(argv.clone(), env.iter().map(|(a, b)| (a, b))),
            cwd: None,
            policy: Choice::default(),
            image: None,
            engine: None,
            tighten: Vec::new(),
            warmth: Warmth::default(),
            variables,
            writes: Writes::default(),
            on_held: OnHeld::default(),
        };
        assert_eq!(request(Variables::Told).shown(), "env PAT=x=y node a=b");
        let hidden = request(Variables::Hidden);
        assert_eq!(hidden.argv_text().unwrap(), ["env", "PAT=***", "node", "a=b"]);
        assert!(hidden.argv_bound().to_string().contains("x=y"), "it is still this call");
    }

    #[test]
    fn words_that_are_no_text_are_told_apart() {
        use std::os::unix::ffi::OsStringExt as _;
        let bound = |bytes: &[u8]| {
            let argv = vec!["rm".into(), OsString::from_vec(bytes.to_vec())];
            let request = Request {
                command: Command::Argv(argv),
                cwd: None,
                policy: Choice::default(),
                image: None,
                engine: None,
                tighten: Vec::new(),
                warmth: Warmth::default(),
                variables: Variables::Told,
                writes: Writes::default(),
                on_held: OnHeld::default(),
            };
            (request.shown(), request.argv_bound())
        };
        let (one, other) = (bound(b"a\xff"), bound(b"a\xfe"));
        assert_eq!(one.0, other.0, "they look alike");
        assert_ne!(one.1, other.1);
        assert_eq!(bound(b"a").1, json!(["rm", "a"]));
    }
}
