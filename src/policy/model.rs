//! A valid policy: what the loader lets through, now or when the program was built ([`crate::packed`]), and the rules in it.

use jiff::Timestamp;

use crate::effect::Classes;
use crate::finding::At;
use crate::grammar::{Kind, Program};
use crate::limits::{Isolation, Limit};
use crate::net::{Audience, Figures, ForCommands, Reach, Secret, Send, Target};
use crate::paths::List;
use crate::pattern::Pattern;

/// One policy file.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    /// Its name, which others refer to.
    pub name: String,
    /// Where it came from, as shown in messages.
    pub file: String,
    /// Who answers for it.
    pub owner: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Policies whose rules it adds to its own.
    pub extends: Vec<(String, At)>,
    /// Policies that it never exceeds.
    pub within: Vec<(String, At)>,
    /// Whether it is a `within` for everyone; only a managed policy can be.
    pub ceiling: bool,
    /// Until when it only observes.
    pub observe_until: Option<Timestamp>,
    /// What the sandbox is like.
    pub sandbox: Sandbox,
    /// Which files.
    pub files: Files,
    /// Which commands.
    pub commands: Vec<Rule>,
    /// Grammars for its own grants.
    pub programs: Vec<Program>,
    /// Which peers.
    pub net: Vec<NetRule>,
    /// Which variables.
    pub env: Env,
    /// Secrets that its own `net` rules send, by name and source; each with its place.
    pub secrets: Vec<(Secret, At)>,
    /// What must hold whenever it is loaded.
    pub tests: Vec<Expectation>,
    /// Digest of its text.
    pub digest: blake3::Hash,
}

/// What a policy says about the sandbox; what it leaves open comes from those it extends.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Sandbox {
    /// `host`, or an OCI reference.
    pub image: Option<String>,
    /// The container runtime.
    pub runtime: Option<String>,
    /// How strongly it is closed.
    pub isolation: Option<Isolation>,
    /// Engines that may run it.
    pub engines: Option<Vec<String>>,
    /// Protections that must hold in full.
    pub demand: Vec<String>,
    /// When changes of a command are applied.
    pub writes: Option<Writes>,
    /// Figures that differ from the preset.
    pub limits: Vec<(Limit, u64)>,
}

/// Protections that a policy can demand in full, where an engine may give them in part: the names of the host program's
/// own table.
pub const PROTECTIONS: [&str; 10] = [
    "cpus",
    "denied-files",
    "file-grants",
    "inodes",
    "memory",
    "own-kernel",
    "pids",
    "result-channel",
    "setuid-bits",
    "system-calls",
];

/// When what a command changed in the workspace is applied. A later value is the stricter one.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// When the call is over, however it ended.
    #[default]
    Apply,
    /// When the command ended with exit code 0; else everything is held back.
    OnSuccess,
    /// When a person says so (`runner stage apply`).
    Review,
}

impl Writes {
    /// Every value, from the loosest to the strictest.
    pub const ALL: [Self; 3] = [Self::Apply, Self::OnSuccess, Self::Review];

    /// The word it is written as.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::OnSuccess => "on-success",
            Self::Review => "review",
        }
    }
}

/// Which files, as lists of patterns.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Files {
    /// Readable.
    pub read: List,
    /// Writable.
    pub write: List,
    /// May be made where nothing is; what is there stays as it is.
    pub create: Vec<Companion>,
    /// Writable beside a manifest, wherever in the workspace it lies.
    pub packages: Vec<Package>,
    /// Readable, never writable.
    pub readonly: List,
    /// Neither.
    pub deny: List,
}

/// A file that may be made beside another: a lock file beside its manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Companion {
    /// The file, below the workspace.
    pub file: String,
    /// What must be there, below the workspace.
    pub beside: String,
    /// Where it stands.
    pub at: At,
}

/// What builds write in every folder that has a manifest: `dist` beside a `package.json`.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Package {
    /// The manifest's name.
    pub manifest: String,
    /// Patterns from the manifest's folder on.
    pub write: List,
    /// Where it stands.
    pub at: At,
}

/// Which variables.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Env {
    /// Passed from the caller.
    pub pass: Vec<String>,
    /// Set to a value.
    pub set: Vec<(String, String)>,
    /// May be set by a command for what it executes; `*` may end a name.
    pub accept: Vec<String>,
}

/// The verb of a rule.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may run if someone approves.
    Ask,
    /// It may not run.
    Deny,
}

impl Verdict {
    /// The word it is written as.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One entry of `commands:`.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    /// Its name inside the policy.
    pub id: Option<String>,
    /// What it answers.
    pub verb: Verdict,
    /// Which commands it is about.
    pub subject: Subject,
    /// The most that a command may do under it.
    pub effects: Classes,
    /// Whether its `effects` are written and list `net`: only then its commands get a network.
    pub network: bool,
    /// Conditions on arguments.
    pub args: Vec<Condition>,
    /// Figures that differ from the policy's.
    pub limits: Vec<(Limit, u64)>,
    /// When it ends.
    pub until: Option<Timestamp>,
    /// Why it is there.
    pub reason: Option<String>,
    /// Commands that it must match, and must not.
    pub examples: Vec<Expectation>,
    /// Where it stands.
    pub at: At,
    /// What it says, in one line.
    pub text: String,
}

/// Which commands a rule is about.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub enum Subject {
    /// Every program that the catalog knows.
    Catalog,
    /// What one of these matches.
    Patterns(Vec<Pattern>),
}

/// `args: { ref: [main, "!dev"] }`
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Condition {
    /// Which arguments.
    pub kind: Kind,
    /// Values that are meant; empty for any.
    pub only: Vec<String>,
    /// Values that are not.
    pub not: Vec<String>,
}

/// One entry of `net:`.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct NetRule {
    /// Its name inside the policy.
    pub id: Option<String>,
    /// What it answers.
    pub verb: Verdict,
    /// Which peers.
    pub targets: Vec<Target>,
    /// The most that a request may take.
    pub figures: Figures,
    /// Which addresses the names may lead to.
    pub reach: Reach,
    /// What the host adds to a request.
    pub send: Vec<Send>,
    /// What it says of connections of commands; `None` for a rule that is for tools.
    pub commands: Option<ForCommands>,
    /// Why it is there.
    pub reason: Option<String>,
    /// When it ends.
    pub until: Option<Timestamp>,
    /// Where it stands.
    pub at: At,
    /// What it says.
    pub text: String,
}

impl NetRule {
    /// Whether it has a say. A deny that does not say whom it is for holds for tools and commands.
    #[must_use]
    pub fn is_for(&self, audience: Audience) -> bool {
        match audience {
            Audience::Arguments => true,
            Audience::Commands => self.commands.is_some() || self.verb == Verdict::Deny,
            Audience::Tools => self.commands.is_none(),
        }
    }
}

/// A line and what must come of it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Expectation {
    /// The command, as a shell line.
    pub line: String,
    /// What is expected.
    pub expected: Expected,
    /// Where it stands.
    pub at: At,
}

/// What is expected of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Expected {
    /// The policy decides so.
    Verdict(Verdict),
    /// The rule matches and covers it.
    Match,
    /// The rule does not.
    Reject,
}
