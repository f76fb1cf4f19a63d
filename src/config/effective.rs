//! The configuration in force: one value for each key, and where it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::figure::{self, Figure, NONE};
use super::flag::{self, Flag};
use super::layer::{Layer, Source};
use super::server::{ServerName, ServerSettings};
use crate::engine;
use crate::ids::ToolName;
use crate::policy_files::{self, Choice, Configured, Named};

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

/// The configuration in force. [`load`](super::load) makes it; without any file it is the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub(super) figures: [Sourced<u64>; figure::TABLE.len()],
    pub(super) flags: [Sourced<bool>; flag::TABLE.len()],
    pub(super) scan_skip: Sourced<Vec<String>>,
    pub(super) approval_clients: Sourced<Vec<String>>,
    pub(super) team_folder: Option<Sourced<PathBuf>>,
    pub(super) policy: Option<Sourced<String>>,
    pub(super) project_policy: Option<Sourced<String>>,
    pub(super) engine: Option<Sourced<engine::Choice>>,
    pub(super) workspaces: Vec<(PathBuf, Sourced<String>)>,
    pub(super) ceilings: Vec<(Figure, Sourced<u64>)>,
    pub(super) tools: BTreeMap<ToolName, ToolSettings>,
    pub(super) servers: BTreeMap<ServerName, ServerSettings>,
}

/// What is said of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether it is switched on or off by hand.
    pub enabled: Option<Sourced<bool>>,
    /// Whether its own `autoAccept: true` counts, wherever it comes from.
    pub auto_accept: Option<Sourced<bool>>,
    /// The figures that it has of its own.
    pub figures: BTreeMap<Figure, Sourced<u64>>,
}

/// Sandboxes that wait for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// How many wait at most; 0 turns it off, and so does a time in which none could be handed out.
    pub size: usize,
    /// How long one waits before it ends itself.
    pub ttl: Duration,
    /// Bytes that all of them take together at most.
    pub memory: u64,
}

impl Pool {
    /// A sandbox that is this close to its end is not handed out: its guest may end before it is asked.
    pub const MARGIN: Duration = Duration::from_secs(2);

    fn of(figure: impl Fn(Figure) -> u64) -> Self {
        let ttl = Duration::from_millis(figure(Figure::PoolTtl));
        let wanted = if ttl > Self::MARGIN { figure(Figure::PoolSize) } else { 0 };
        Self { size: size(wanted), ttl, memory: figure(Figure::PoolMemory) }
    }
}

/// What holds for the calls of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest run.
    pub max_execution_time: Option<Duration>,
    /// Calls in a minute.
    pub calls_per_minute: Option<u64>,
    /// Calls that run at once.
    pub concurrency: usize,
    /// Calls that wait for their turn.
    pub queue: usize,
    /// Time of a call with its waiting and its retries.
    pub total_time: Option<Duration>,
    /// Millionths of a US dollar that all calls of a day may cost, of all tools together.
    pub daily_cost: Option<u64>,
    /// When it is not called any more.
    pub breaker: Breaker,
}

/// When a tool that keeps failing is not called any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// The part of calls that fail, in hundredths.
    pub errors: u64,
    /// Calls in the window before that part counts.
    pub calls: u64,
    /// How far back calls are counted.
    pub window: Duration,
    /// Pause before one call is let through to try.
    pub pause: Duration,
}

/// What is kept to undo changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undo {
    /// Bytes of all calls together.
    pub size: u64,
    /// How long.
    pub age: Duration,
}

/// How long questions wait and approvals hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approvals {
    /// How long a question waits for its answer.
    pub pending: Duration,
    /// How long an approval for a time holds if no time is said.
    pub grant: Duration,
    /// How long an approval for the session holds at most.
    pub session: Duration,
    /// The longest time that an approval can be given for.
    pub longest: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let default = Source::default;
        Self {
            figures: figure::TABLE.map(|row| Sourced { value: row.default, source: default() }),
            flags: flag::TABLE.map(|row| Sourced { value: row.default, source: default() }),
            scan_skip: Sourced { value: Vec::new(), source: default() },
            approval_clients: Sourced { value: Vec::new(), source: default() },
            team_folder: None,
            policy: None,
            project_policy: None,
            engine: None,
            workspaces: Vec::new(),
            ceilings: Vec::new(),
            tools: BTreeMap::new(),
            servers: BTreeMap::new(),
        }
    }
}

impl Config {
    /// A figure and where it came from.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> &Sourced<u64> {
        &self.figures[figure as usize]
    }

    /// A figure for one tool: its own before the one for all.
    #[must_use]
    pub fn figure_of(&self, tool: &ToolName, figure: Figure) -> &Sourced<u64> {
        let own = self.tools.get(tool).and_then(|tool| tool.figures.get(&figure));
        own.unwrap_or_else(|| self.figure(figure))
    }

    /// A switch and where it came from.
    #[must_use]
    pub fn flag(&self, flag: Flag) -> &Sourced<bool> {
        &self.flags[flag as usize]
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, flag: Flag) -> bool {
        self.flag(flag).value
    }

    /// Sandboxes that wait.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool::of(|figure| self.figure(figure).value)
    }

    /// The same for the sandboxes of all projects together: what a project's own file says is about its own.
    #[must_use]
    pub fn whole_pool(&self) -> Pool {
        Pool::of(|figure| {
            let found = self.figure(figure);
            if found.source.layer != Layer::Project {
                return found.value;
            }
            let ceiling = self.ceilings.iter().find(|(bounded, _)| *bounded == figure);
            ceiling.map_or(figure.row().default, |(_, most)| most.value.min(figure.row().default))
        })
    }

    /// What holds for the calls of a tool; its own figures before those for all, which a weaker layer can
    /// only have tightened for it.
    #[must_use]
    pub fn limits(&self, tool: &ToolName) -> Limits {
        let figure = |figure: Figure| self.figure_of(tool, figure).value;
        let some = |figure: u64| (figure != NONE).then_some(figure);
        Limits {
            max_execution_time: some(figure(Figure::MaxExecutionTime)).map(Duration::from_millis),
            calls_per_minute: some(figure(Figure::CallsPerMinute)),
            concurrency: size(figure(Figure::Concurrency)),
            queue: size(figure(Figure::Queue)),
            total_time: some(figure(Figure::TotalTime)).map(Duration::from_millis),
            daily_cost: some(figure(Figure::DailyCost)),
            breaker: Breaker {
                errors: figure(Figure::BreakerErrors),
                calls: figure(Figure::BreakerCalls),
                window: self.time(Figure::BreakerWindow),
                pause: self.time(Figure::BreakerPause),
            },
        }
    }

    /// How long questions wait and approvals hold.
    #[must_use]
    pub fn approvals(&self) -> Approvals {
        Approvals {
            pending: self.time(Figure::ApprovalPending),
            grant: self.time(Figure::ApprovalGrant),
            session: self.time(Figure::ApprovalSession),
            longest: self.time(Figure::ApprovalLongest),
        }
    }

    /// What is kept to undo changes.
    #[must_use]
    pub fn undo(&self) -> Undo {
        Undo { size: self.figure(Figure::UndoSize).value, age: self.time(Figure::UndoAge) }
    }

    /// Folders of the workspace, from its root, that are not looked through for denied files.
    #[must_use]
    pub fn scan_skip(&self) -> &Sourced<Vec<String>> {
        &self.scan_skip
    }

    /// Clients of the MCP server that may put a question to their user and answer it: `stdio`, `socket`, names of tokens.
    #[must_use]
    pub fn approval_clients(&self) -> &Sourced<Vec<String>> {
        &self.approval_clients
    }

    /// The folder of the team's tools.
    #[must_use]
    pub fn team_folder(&self) -> Option<&Path> {
        self.team_folder.as_ref().map(|folder| folder.value.as_path())
    }

    /// The same, and where it came from.
    #[must_use]
    pub fn team(&self) -> Option<&Sourced<PathBuf>> {
        self.team_folder.as_ref()
    }

    /// The policy of a call in a workspace: what the caller chose; else the default that is set for the workspace or for
    /// all, within the policy that the project names. Without either it is `readonly`.
    #[must_use]
    pub fn choice(&self, wanted: &Choice, workspace: &Path) -> Choice {
        if *wanted != Choice::Default {
            return wanted.clone();
        }
        let default = self.default_policy(workspace).map(named);
        let within = self.project_policy.as_ref().map(named);
        match (&default, &within) {
            (None, None) => Choice::Default,
            _ => Choice::Configured(Box::new(Configured { default, within })),
        }
    }

    /// The default policy in a workspace: that of the nearest folder that the managed file names, else that of all.
    #[must_use]
    pub fn default_policy(&self, workspace: &Path) -> Option<&Sourced<String>> {
        // A link in the path of a folder must not lead past what is said of it.
        let lies_below = |folder: &PathBuf| {
            let real = folder.canonicalize();
            workspace.starts_with(folder) || real.is_ok_and(|real| workspace.starts_with(real))
        };
        let held = self.workspaces.iter().filter(|(folder, _)| lies_below(folder));
        let nearest = held.max_by_key(|(folder, _)| folder.components().count());
        nearest.map(|(_, policy)| policy).or(self.policy.as_ref())
    }

    /// The default policy of all workspaces.
    #[must_use]
    pub fn policy(&self) -> Option<&Sourced<String>> {
        self.policy.as_ref()
    }

    /// The policy that the project's own file names.
    #[must_use]
    pub fn project_policy(&self) -> Option<&Sourced<String>> {
        self.project_policy.as_ref()
    }

    /// What makes sandboxes, if a file says so.
    #[must_use]
    pub fn engine(&self) -> Option<&Sourced<engine::Choice>> {
        self.engine.as_ref()
    }

    /// The engines of a call: those that its caller wants, else those that are set. Where the managed file names engines,
    /// there are no others; `None` if the caller wants one of those.
    #[must_use]
    pub fn engines(&self, wanted: Option<&engine::Choice>) -> Option<engine::Choice> {
        let Some(set) = &self.engine else { return Some(wanted.cloned().unwrap_or_default()) };
        match (wanted, set.source.layer) {
            (None, _) => Some(set.value.clone()),
            (Some(wanted), Layer::Managed) => wanted.within(&set.value),
            (Some(wanted), _) => Some(wanted.clone()),
        }
    }

    /// The default policies of single workspaces.
    #[must_use]
    pub fn workspaces(&self) -> &[(PathBuf, Sourced<String>)] {
        &self.workspaces
    }

    /// What is said of single tools.
    pub fn tools(&self) -> impl Iterator<Item = (&ToolName, &ToolSettings)> {
        self.tools.iter()
    }

    /// Servers of the Model Context Protocol, by name, also those that are only spoken of.
    pub fn servers(&self) -> impl Iterator<Item = (&ServerName, &ServerSettings)> {
        self.servers.iter()
    }

    /// What is said of one of them.
    #[must_use]
    pub fn server(&self, name: &ServerName) -> Option<&ServerSettings> {
        self.servers.get(name)
    }

    /// Whether a tool is switched on or off by hand.
    #[must_use]
    pub fn enabled(&self, tool: &ToolName) -> Option<&Sourced<bool>> {
        self.tools.get(tool)?.enabled.as_ref()
    }

    /// Whether the `autoAccept: true` of a tool counts, if the user or the managed file says so.
    #[must_use]
    pub fn auto_accept(&self, tool: &ToolName) -> Option<bool> {
        self.tools.get(tool)?.auto_accept.as_ref().map(|said| said.value)
    }

    /// The bounds that the managed layer sets for all users.
    #[must_use]
    pub fn ceilings(&self) -> &[(Figure, Sourced<u64>)] {
        &self.ceilings
    }

    fn time(&self, figure: Figure) -> Duration {
        Duration::from_millis(self.figure(figure).value)
    }
}

/// A policy as its file names it, and how far down it may be looked for: a file cannot make a policy the default that is
/// trusted less than the file.
fn named(policy: &Sourced<String>) -> Named {
    let Source { layer, file, line } = &policy.source;
    let deepest = match layer {
        Layer::Managed | Layer::Default => policy_files::Layer::Managed,
        Layer::User => policy_files::Layer::User,
        Layer::Project => policy_files::Layer::Project,
    };
    Named {
        name: policy.value.clone(),
        deepest,
        file: file.clone().unwrap_or_default(),
        line: line.unwrap_or_default(),
    }
}

/// A count as `usize`, or the largest.
fn size(figure: u64) -> usize {
    usize::try_from(figure).unwrap_or(usize::MAX)
}
