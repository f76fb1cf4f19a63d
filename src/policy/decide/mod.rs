//! Deciding: what a policy says of a command, a path, a peer or a variable.
//!
//! Deny beats ask beats allow, wherever they stand; nothing matched means deny. An allow needs
//! proof, a deny needs only doubt. The engine is a function of its arguments: the moment is one of them.

mod code;
mod connect;
#[cfg(test)]
mod connect_tests;
mod explain;
mod files;
mod grant;
mod inside;
mod instead;
mod judge;
#[cfg(test)]
mod peer_tests;
mod peers;
mod request;
mod rules;
#[cfg(test)]
mod tests;

pub use code::Code;
pub use connect::{ConnectRefused, Reachable, connect, dial_connection, reachable};
pub use explain::{Explanation, NETWORK_WITHHELD, Note, explain, granting};
pub use inside::{NO_NETWORK, NO_NETWORK_CODE};
pub(crate) use judge::reading;
pub use peers::{DialRefused, dial};
pub use request::{RequestRefused, Sending, send};

use jiff::Timestamp;

use crate::effect::{Classes, Effect};
use crate::effective::Effective;
use crate::limits::Limits;
use crate::model::Verdict;
use crate::net::RegistryHost;
use crate::net::Terms;
use crate::plan::Plan;
use crate::reading::Refusal;

/// A question.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The workspace; absolute.
    pub workspace: &'a str,
    /// The folder the command runs in; absolute.
    pub cwd: &'a str,
    /// The moment.
    pub now: Timestamp,
    /// What is asked.
    pub what: What<'a>,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// May this command run?
    Argv(&'a [String]),
    /// The same, of arguments that need not be text.
    Bytes(&'a [Vec<u8>]),
    /// May this shell line run?
    Line(&'a str),
    /// May this path be read?
    Read(&'a str),
    /// May this path be written?
    Write(&'a str),
    /// May this peer be reached? `GET https://…`, a URL, or `HOST:PORT`.
    Net(&'a str),
    /// May a command connect to this? `HOST:PORT`, and the hosts that `registry` rules stand for.
    Connect(&'a str, &'a [RegistryHost]),
    /// May a command set this variable?
    Env(&'a str),
}

impl<'a> What<'a> {
    /// The question about a peer: a request is a tool's, a connection a command's.
    #[must_use]
    pub fn of_peer(text: &'a str, registries: &'a [RegistryHost]) -> Self {
        let request =
            text.contains("://") || text.split_once(' ').is_some_and(|(verb, _)| verb != "connect");
        if request { Self::Net(text) } else { Self::Connect(text, registries) }
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Decision {
    /// Allow, ask or deny.
    pub decision: Verdict,
    /// Why, as a stable word.
    pub code: Code,
    /// Why, in a sentence.
    pub message: String,
    /// Everything that it does, in the order of its levels.
    pub effects: Vec<EffectLine>,
    /// The rule that decided.
    pub rule: Option<RuleRef>,
    /// The rule's own reason.
    pub reason: Option<String>,
    /// Who answers for the policy.
    pub owner: Option<String>,
    /// Whether an approval can unlock it.
    pub approvable: bool,
    /// In `mode: observe`: what it would have been.
    pub would: Option<(Verdict, Code)>,
    /// The policy that was asked.
    pub policy: String,
    /// Its digest.
    pub digest: String,
    /// On what terms a request is let through; only of a request that is not denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// What a sandbox for it needs.
    #[serde(skip)]
    pub grant: Grant,
    /// Whether the command wants to reach something outside its sandbox, which has no network.
    #[serde(skip)]
    pub reaches_out: bool,
    /// What runs, exactly as it was judged; none for a denial and for questions that are not about a command.
    #[serde(skip)]
    pub plan: Option<Plan>,
    /// Whose answer it is: the policy that was asked, or one that it stays within.
    #[serde(skip)]
    pub said_by: String,
}

/// What a decision grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Classes of effects that the command may have.
    pub classes: Classes,
    /// Figures.
    pub limits: Limits,
    /// Whether its sandbox may reach what rules for commands allow.
    pub network: Network,
}

/// Whether the rules that grant a command grant it a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// It does nothing that could use one.
    #[default]
    Unneeded,
    /// Every part that could use one is granted `net` by its own rule.
    Granted,
    /// Some part runs code or wants to reach something without a rule that lists `net`.
    Withheld,
}

/// One effect, for people and machines.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EffectLine {
    /// The command that has it; nested ones have their own.
    pub command: String,
    /// `read`, `write`, `net`, `env`, `code`, `system`, `unknown`.
    pub effect: &'static str,
    /// What it is about.
    pub object: String,
    /// The argument it comes from.
    pub by: String,
    /// Whether it was too much.
    pub refused: bool,
}

/// A rule, as records and messages name it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RuleRef {
    /// `policy/id`, which survives edits.
    pub id: String,
    /// The file.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// What it says.
    pub text: String,
}

/// Decides. The strictest of the policy and all that it stays within.
#[must_use]
pub fn decide(policy: &Effective, query: &Query<'_>) -> Decision {
    let own = decide_alone(policy, query);
    policy.within.iter().map(|other| decide(other, query)).fold(own, |own, other| {
        let classes = own.grant.classes.intersection(other.grant.classes);
        let limits = own.grant.limits.tightest(&other.grant.limits);
        let network = own.grant.network.max(other.grant.network);
        let (policy, digest) = (own.policy.clone(), own.digest.clone());
        // What one of them would have said is evidence, whoever decides.
        let would = own.would.max(other.would);
        let reaches_out = own.reaches_out || other.reaches_out;
        let (mut own, mut other) = (own, other);
        let terms = own.terms.take().zip(other.terms.take()).map(|(own, other)| own.within(other));
        let (plan, other_plan) = (own.plan.take(), other.plan.take());
        let stricter = if other.decision > own.decision { said_by(other) } else { own };
        let grant = Grant { classes, limits, network };
        // All of them read the same. What they would read differently has no plan, and so does not run.
        let plan = plan.zip(other_plan).and_then(|(own, other)| (own == other).then_some(own));
        Decision { policy, digest, would, terms, grant, reaches_out, plan, ..stricter }
    })
}

/// An answer without a rule says whose it is: the policy that was asked for may well allow it.
fn said_by(mut answer: Decision) -> Decision {
    if answer.rule.is_none() {
        answer.message = format!("`{}` says: {}", answer.policy, answer.message);
    }
    answer
}

fn decide_alone(policy: &Effective, query: &Query<'_>) -> Decision {
    match query.what {
        What::Argv(_) | What::Bytes(_) | What::Line(_) => judge::command(policy, query),
        What::Read(path) => files::question(policy, query, path, files::Access::Read),
        What::Write(path) => files::question(policy, query, path, files::Access::Write),
        What::Net(target) => peers::question(policy, query, target),
        What::Connect(target, registries) => connect::question(policy, query, target, registries),
        What::Env(name) => judge::variable(policy, name),
    }
}

/// Whether a path below the workspace may be read or written, as the broker and the mount planner ask.
/// `path` is absolute. All that the policy stays within must agree.
#[must_use]
pub fn may(policy: &Effective, workspace: &str, path: &str, write: bool) -> bool {
    let access = if write { files::Access::Write } else { files::Access::Read };
    files::judge(policy, workspace, path, access).is_ok()
        && policy.within.iter().all(|other| may(other, workspace, path, write))
}

impl Decision {
    fn new(policy: &Effective, decision: Verdict, code: Code, message: String) -> Self {
        Self {
            decision,
            code,
            message,
            effects: Vec::new(),
            rule: None,
            reason: None,
            owner: policy.owner().map(str::to_owned),
            approvable: false,
            would: None,
            terms: None,
            policy: policy.name().to_owned(),
            digest: policy.digest.to_hex().to_string(),
            said_by: policy.name().to_owned(),
            reaches_out: false,
            grant: Grant {
                classes: Classes::default(),
                limits: policy.limits(&[]),
                network: Network::default(),
            },
            plan: None,
        }
    }

    fn refused(policy: &Effective, refusal: Refusal) -> Self {
        let (code, message) = match refusal {
            Refusal::Empty => (Code::EmptyCommand, "there is no command"),
            Refusal::Nul => (Code::BadArgument, "an argument holds a NUL byte"),
            Refusal::TooLarge => (Code::TooLarge, "the command is too large to be judged"),
            Refusal::TooDeep => (Code::TooDeep, "commands are nested too deep to be judged"),
        };
        Self::new(policy, Verdict::Deny, code, message.to_owned())
    }
}

/// The word of an effect and what it is about.
fn shown(effect: &Effect, workspace: &str) -> (&'static str, String) {
    use crate::effect::{Peer, Place};
    let place = |place: &Place| {
        let short = |path: &str| {
            crate::paths::below(workspace, path).map_or_else(|| path.to_owned(), str::to_owned)
        };
        match place {
            Place::Exact(path) | Place::Glob(path) => short(path),
            Place::Tree(path) | Place::Below(path) => match short(path).as_str() {
                "." => "**".to_owned(),
                path => format!("{path}/**"),
            },
            Place::Prefix(path) => format!("{}*", short(path)),
            Place::Any => "?".to_owned(),
        }
    };
    match effect {
        Effect::Read(of) => ("read", place(of)),
        Effect::Write(of) => ("write", place(of)),
        Effect::Net(Peer::Request { method, url }) => ("net", format!("{method} {url}")),
        Effect::Net(Peer::Connect(host)) => ("net", format!("connect {host}")),
        Effect::Net(Peer::Any) => ("net", "?".to_owned()),
        Effect::Env(name) => ("env", name.clone()),
        Effect::Code => ("code", String::new()),
        Effect::System => ("system", String::new()),
        Effect::Unknown => ("unknown", String::new()),
    }
}
