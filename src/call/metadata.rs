//! How a call ran, as its result and its record tell it.
//!
//! Duty: the facts as types, and their form as JSON, whose keys and order are stable. Non-goals: finding them
//! out. Nothing in this program reads the JSON back.

use std::borrow::Cow;
use std::time::Duration;

use runner_policy::limits::{Isolation, Limit, Limits};
use runner_wire::{Bytes, Ran};
use serde::Serialize;
use serde_json::{Map, Value};

use super::result::{ErrorObject, ToolRef};
use super::tool::Attempt;
use crate::audit::Redactor;
use crate::broker::{BrokerUsage, Brokered};
use crate::call::launch::outcome::Outcome;
use crate::codes::Code;
use crate::engine::plan::{Note, ProtectionStatus, SandboxPlan};
use crate::ids::ToolName;
use crate::mcp_client::{Attachment, Peer};
use crate::sandbox::outcome::Phases;

/// Everything about how a call ran.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Metadata {
    /// Where it ran, if it did.
    #[serde(flatten)]
    pub ran: Option<Box<Where>>,
    /// The MCP server that offers the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Box<OfServer>>,
    /// What the tool asked the broker for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker: Option<Box<OfBroker>>,
    /// Every attempt, if there was more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Attempt>>,
    /// The tool in whose place this one was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_of: Option<Box<FallbackOf>>,
    /// The tool that could not be called in place of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<Fallback>>,
}

/// Where a call ran.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Where {
    /// In a sandbox.
    Sandbox(InSandbox),
    /// In this process: a built-in tool.
    Here(Here),
}

/// A call in a sandbox.
#[derive(Debug, Clone, Serialize)]
pub struct InSandbox {
    duration_ms: Durations,
    warm: bool,
    waited_ms: Option<u64>,
    discarded: usize,
    engine: String,
    runtime: Option<String>,
    image_digest: Option<String>,
    isolation: Isolation,
    user: User,
    programs: Option<Vec<Program>>,
    programs_left_out: Option<u64>,
    limits: Limits,
    limits_met: Vec<String>,
    usage: Option<Usage>,
    protections: Vec<Protection>,
    notes: Vec<Note>,
}

/// A built-in tool: no sandbox held it. What held it is the broker.
#[derive(Debug, Clone, Serialize)]
pub struct Here {
    duration_ms: DurationsHere,
    engine: (),
    isolation: (),
    limits: Map<String, Value>,
    protections: [Protection; 3],
    notes: [Note; 1],
}

/// Milliseconds by phase, to a tenth of a microsecond.
#[derive(Debug, Clone, Serialize)]
struct Durations {
    plan: f64,
    prepare: f64,
    claim: f64,
    attach: f64,
    create: f64,
    start: f64,
    check: f64,
    run: f64,
    end: f64,
    apply: f64,
    total: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
struct DurationsHere {
    run: f64,
    total: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<f64>,
}

/// The user that the command ran as.
#[derive(Debug, Clone, Serialize)]
pub(super) struct User {
    uid: u32,
    gid: u32,
    why: &'static str,
}

/// A program that ran. Both are words of the command, which may hold a secret, or come from them.
#[derive(Debug, Clone, Serialize)]
struct Program {
    name: String,
    path: String,
}

#[derive(Debug, Clone, Serialize)]
struct Usage {
    peak_memory_bytes: Option<u64>,
    cpu_us: Option<u64>,
    peak_pids: Option<u64>,
    wall_us: u64,
    stdout_bytes: u64,
    stderr_bytes: u64,
}

/// A protection, what enforces it, and whether it holds.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Protection {
    name: &'static str,
    enforced_by: Option<&'static str>,
    status: &'static str,
    why: Option<&'static str>,
}

/// What a tool asked the broker for.
#[derive(Debug, Clone, Serialize)]
pub struct OfBroker {
    /// How much.
    pub usage: Used,
    /// Each request; none in the record of the call's end, because requests have records of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Vec<BrokerRequest>>,
}

/// How much a tool asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Used {
    /// What the broker counted.
    #[serde(flatten)]
    pub counted: BrokerUsage,
    /// How many requests are recorded; in the record of the call's end alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u64>,
}

/// One request of a tool.
#[derive(Debug, Clone, Serialize)]
pub struct BrokerRequest {
    /// `file.read`, `exec.run`, …
    pub method: &'static str,
    /// What it was about, without secrets.
    pub object: String,
    /// Why it was not done, if it was not.
    pub refused: Option<Code>,
    /// `policy/id` of the rule that decided, if one is known.
    pub rule: Option<String>,
    /// Bytes of its body.
    pub bytes_in: u64,
    /// Bytes of its answer.
    pub bytes_out: u64,
    /// Microseconds.
    pub us: u64,
    /// The call that it became, for a command.
    pub call: Option<String>,
}

/// The MCP server that offers a tool.
#[derive(Debug, Clone, Serialize)]
pub struct OfServer {
    /// The server's name.
    pub server: String,
    /// The tool's name, as the server has it.
    pub tool: String,
    /// The call of the server's command.
    pub call: Option<String>,
    /// What the server says of itself.
    pub says: Option<Peer>,
    /// What it sent beside the tool's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Attachments>,
}

/// What a server sent beside a value.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Attachments {
    /// As it came.
    Whole(Vec<Attachment>),
    /// How much it was: what a server sent is the caller's, and the ledger does not keep it.
    Counted {
        /// How many.
        count: usize,
        /// How long they are as JSON.
        bytes: usize,
    },
}

/// A tool that failed, so that another one was called.
#[derive(Debug, Clone, Serialize)]
pub struct FallbackOf {
    /// The tool.
    pub tool: Option<ToolRef>,
    /// Its call.
    pub call: String,
    /// Why it failed.
    pub error: Option<ErrorObject>,
    /// Its attempts, if there was more than one.
    pub attempts: Option<Vec<Attempt>>,
}

/// A tool that could not be called in place of another one.
#[derive(Debug, Clone, Serialize)]
pub struct Fallback {
    /// The tool.
    pub tool: Named,
    /// Why not.
    pub error: Option<ErrorObject>,
}

/// A tool of which the name alone is known.
#[derive(Debug, Clone, Serialize)]
pub struct Named {
    /// Its name.
    pub name: ToolName,
}

impl Metadata {
    /// Of a call in a sandbox.
    #[must_use]
    pub(super) fn of_sandbox(plan: &SandboxPlan, engine: &str, outcome: &Outcome) -> Self {
        let programs = outcome.programs.as_ref();
        Self::of(Where::Sandbox(InSandbox {
            duration_ms: Durations::of(&outcome.phases),
            warm: outcome.waited.is_some(),
            waited_ms: outcome
                .waited
                .map(|waited| u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)),
            discarded: outcome.discarded,
            engine: engine.to_owned(),
            runtime: plan.runtime.as_ref().map(ToString::to_string),
            image_digest: outcome.image_digest.clone(),
            isolation: plan.isolation,
            user: User::of(plan),
            programs: programs.map(|programs| programs.ran.iter().map(Program::of).collect()),
            programs_left_out: programs.map(|programs| programs.left_out),
            limits: plan.limits,
            limits_met: outcome.hits.iter().map(|hit| format!("{hit:?}").to_lowercase()).collect(),
            usage: outcome.usage.as_ref().map(|usage| Usage {
                peak_memory_bytes: usage.peak_memory,
                cpu_us: usage.cpu_us,
                peak_pids: usage.peak_pids,
                wall_us: usage.wall_us,
                stdout_bytes: usage.written.stdout,
                stderr_bytes: usage.written.stderr,
            }),
            protections: Protection::all(plan),
            notes: plan.notes.clone(),
        }))
    }

    /// Of a built-in tool.
    #[must_use]
    pub(super) fn of_built_in(limits: &Limits, duration: Duration) -> Self {
        let by_broker = |name| Protection {
            name,
            enforced_by: Some("the broker"),
            status: "enforced",
            why: None,
        };
        let shown = |limit: Limit| {
            let row = limit.row();
            (row.key.to_owned(), Value::from(row.unit.show(limits.get(limit))))
        };
        let ms = milliseconds(duration.as_secs_f64());
        Self::of(Where::Here(Here {
            duration_ms: DurationsHere { run: ms, total: ms, queued: None },
            engine: (),
            isolation: (),
            limits: HOLDING.map(shown).into_iter().collect(),
            protections: [
                by_broker("policy of each request"),
                by_broker("limits of requests, bytes and time"),
                Protection {
                    name: "sandbox of the tool",
                    enforced_by: None,
                    status: "absent",
                    why: Some("the tool is part of runner"),
                },
            ],
            notes: [Note {
                code: "built_in",
                text: "a built-in tool is part of runner and has no sandbox of its own; its commands have"
                    .to_owned(),
            }],
        }))
    }

    fn of(ran: Where) -> Self {
        Self { ran: Some(Box::new(ran)), ..Self::default() }
    }

    /// What a server sent beside the tool's value.
    #[must_use]
    pub(super) fn attachments(&self) -> Option<&Attachments> {
        self.mcp.as_ref()?.attachments.as_ref()
    }

    /// The same without them.
    #[must_use]
    pub(super) fn without_attachments(&self) -> Cow<'_, Self> {
        if self.attachments().is_none() {
            return Cow::Borrowed(self);
        }
        let mut without = self.clone();
        if let Some(mcp) = &mut without.mcp {
            mcp.attachments = None;
        }
        Cow::Owned(without)
    }

    /// Adds what is worth knowing.
    pub(super) fn note(&mut self, notes: &[Note]) {
        if let Some(Where::Sandbox(ran)) = self.ran.as_deref_mut() {
            ran.notes.extend_from_slice(notes);
        }
    }

    /// Adds the wait in the queue: it is a part of what the call took.
    pub(super) fn queued(&mut self, queued: Duration) {
        let seconds = queued.as_secs_f64();
        if let Some((total, told)) = self.times() {
            *told = Some(milliseconds(seconds));
            *total = milliseconds(*total / 1e3 + seconds);
        }
    }

    /// Sets what the call took in all.
    pub(super) fn took(&mut self, time: Duration) {
        if let Some((total, _)) = self.times() {
            *total = milliseconds(time.as_secs_f64());
        }
    }

    fn times(&mut self) -> Option<(&mut f64, &mut Option<f64>)> {
        Some(match self.ran.as_deref_mut()? {
            Where::Sandbox(ran) => (&mut ran.duration_ms.total, &mut ran.duration_ms.queued),
            Where::Here(ran) => (&mut ran.duration_ms.total, &mut ran.duration_ms.queued),
        })
    }

    /// The same as the record of a tool call's end keeps it, of which so many requests are recorded.
    #[must_use]
    pub(super) fn recorded(&self, requests: u64) -> Self {
        let mut recorded = self.clone();
        if let Some(attachments) = recorded.mcp.as_mut().and_then(|mcp| mcp.attachments.as_mut()) {
            attachments.count();
        }
        if let Some(broker) = recorded.broker.as_mut() {
            broker.requests = None;
            broker.usage.recorded = Some(requests);
        }
        recorded
    }
}

impl OfServer {
    /// Hides secrets in what the server sent.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let Some(Attachments::Whole(all)) = &mut self.attachments {
            let hidden = redactor.json(&Value::Array(std::mem::take(all)));
            if let Value::Array(hidden) = hidden {
                *all = hidden;
            }
        }
    }
}

impl Attachments {
    fn count(&mut self) {
        if let Self::Whole(all) = self {
            let bytes = serde_json::to_string(all).map_or(0, |text| text.len());
            *self = Self::Counted { count: all.len(), bytes };
        }
    }
}

impl OfBroker {
    /// What a tool asked for.
    #[must_use]
    pub(super) fn new(usage: &BrokerUsage, requests: &[Brokered], redactor: &Redactor) -> Self {
        let asked = requests.iter().map(|request| BrokerRequest {
            method: request.method,
            object: redactor.text(&request.object).into_owned(),
            refused: request.refused,
            rule: request.rule.as_ref().map(|rule| rule.id.clone()),
            bytes_in: request.bytes_in,
            bytes_out: request.bytes_out,
            us: u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX),
            call: request.call.clone(),
        });
        Self { usage: Used { counted: *usage, recorded: None }, requests: Some(asked.collect()) }
    }
}

impl Durations {
    fn of(phases: &Phases) -> Self {
        let ms = |duration: Duration| milliseconds(duration.as_secs_f64());
        Self {
            plan: ms(phases.plan),
            prepare: ms(phases.prepare),
            claim: ms(phases.claim),
            attach: ms(phases.attach),
            create: ms(phases.create),
            start: ms(phases.start),
            check: ms(phases.check),
            run: ms(phases.run),
            end: ms(phases.end),
            apply: ms(phases.apply),
            total: ms(phases.total),
            queued: None,
        }
    }
}

impl User {
    pub(super) fn of(plan: &SandboxPlan) -> Self {
        Self { uid: plan.user.uid, gid: plan.user.gid, why: plan.user.why.words() }
    }
}

impl Program {
    fn of(ran: &Ran) -> Self {
        let redactor = Redactor::new();
        let shown = |bytes: &Bytes| redactor.text(&bytes.as_os().to_string_lossy()).into_owned();
        Self { name: shown(&ran.name), path: shown(&ran.path) }
    }
}

impl Protection {
    /// Each protection of a plan.
    pub(super) fn all(plan: &SandboxPlan) -> Vec<Self> {
        let all = plan.protections.iter().map(|protection| {
            let (status, why) = match protection.status {
                ProtectionStatus::Enforced => ("enforced", None),
                ProtectionStatus::BestEffort(why) => ("best_effort", Some(why)),
                ProtectionStatus::Absent(why) => ("absent", Some(why)),
            };
            Self { name: protection.name, enforced_by: Some(protection.enforced_by), status, why }
        });
        all.collect()
    }
}

/// The limits that hold without a sandbox: those of the broker.
const HOLDING: [Limit; 5] =
    [Limit::Wall, Limit::BrokerCalls, Limit::BrokerBytes, Limit::FileSize, Limit::FreeSpace];

/// Milliseconds, to a tenth of a microsecond.
fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1e7).round() / 1e4
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
