//! A tool as it is known: what it is, what it takes, what it gives, and what it asks for.
//!
//! Only the readers make one ([`read`](super::read) from YAML, [`describe`](super::describe) from what a module says of
//! itself), so every name, figure and schema in it was checked.

use std::sync::Arc;

use serde_json::{Value, json};

use super::builtin::BuiltIn;
use super::code::Code;
use super::mcp::FromServer;
use super::metadata::Metadata;
use super::permissions::Permissions;
use super::retry::RetryPolicy;
use super::schema::Schema;
use super::words::{Category, Removal, Risk, Runtime, Tier, Waiver};
use crate::ids::ToolName;

/// A valid tool.
#[derive(Debug)]
pub struct Definition {
    /// Its name; the name of its file too.
    pub name: ToolName,
    /// What it does, for people and agents.
    pub description: String,
    /// Whether its author wants it used.
    pub enabled: bool,
    /// What its description and schema cost in an agent's context.
    pub tokens: Tokens,
    /// Its version, by the rules of semantic versions.
    pub version: Option<String>,
    /// What it is about.
    pub category: Category,
    /// How far it reaches; never less than its permissions need.
    pub tier: Tier,
    /// How much harm its author sees in a call.
    pub risk: Risk,
    /// Whether a call needs no approval, as far as the tool is concerned.
    pub auto_accept: bool,
    /// What becomes of its own `autoAccept: true`.
    pub waiver: Waiver,
    /// Whether it may remove what it may write without asking.
    pub removal: Removal,
    /// What it takes.
    pub schema: Schema,
    /// What it gives, if it says so.
    pub returns: Option<Schema>,
    /// What it asks for.
    pub permissions: Permissions,
    /// How long a call may take, in milliseconds.
    pub timeout: Option<u64>,
    /// When a call that failed is tried again.
    pub retry: RetryPolicy,
    /// What it says of itself beyond that.
    pub metadata: Metadata,
    /// The keys that its author wrote: what is not written has a default.
    pub written: Vec<String>,
    /// What runs.
    pub body: Body,
}

/// What runs.
#[derive(Debug)]
pub enum Body {
    /// The code in a YAML file.
    Yaml {
        /// What it is written in.
        runtime: Runtime,
        /// The code and its place.
        code: Code,
    },
    /// A module, which the file is.
    Module(Described),
    /// A function of this program.
    BuiltIn(&'static BuiltIn),
    /// A tool of an MCP server.
    Mcp(Arc<FromServer>),
}

/// What a module says of itself beyond what both forms have.
#[derive(Debug, Default)]
pub struct Described {
    /// The optional functions that it has.
    pub hooks: Vec<String>,
    /// How it retries and what it says of its health: shown, never obeyed here.
    pub notes: Value,
}

/// Tokens in an agent's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// As its author says.
    Said(u32),
    /// As the tokenizer counts.
    Counted(u32),
    /// As we estimate.
    Estimated(u32),
}

/// Characters of English and JSON that make a token, as a rule of thumb.
const CHARACTERS_A_TOKEN: usize = 4;

impl Tokens {
    /// An estimate from what an agent is shown.
    #[must_use]
    pub fn estimate(name: &ToolName, description: &str, schema: &Schema) -> Self {
        let shown = name.as_str().len() + description.len() + schema.json().to_string().len();
        Self::Estimated(u32::try_from(shown.div_ceil(CHARACTERS_A_TOKEN)).unwrap_or(u32::MAX))
    }

    /// The figure.
    #[must_use]
    pub fn figure(self) -> u32 {
        match self {
            Self::Said(figure) | Self::Counted(figure) | Self::Estimated(figure) => figure,
        }
    }
}

impl Definition {
    /// Asked about as its tier, its risk and its capabilities have it, whatever it says of itself.
    pub(super) fn by_tier(self) -> Self {
        Self {
            // A capability that wants confirmation takes the default back.
            auto_accept: self.tier.runs(self.risk) && !self.metadata.wants_confirmation(),
            removal: if self.tier == Tier::Write { Removal::Asked } else { Removal::Free },
            ..self
        }
    }

    /// Without its own `autoAccept: true`, for this reason.
    #[must_use]
    pub fn without_waiver(self, why: Waiver) -> Self {
        match self.waiver {
            Waiver::Counts => Self { waiver: why, ..self }.by_tier(),
            Waiver::NotSaid | Waiver::Risk | Waiver::Stranger | Waiver::Configured => self,
        }
    }

    /// Whether a call with these arguments needs an approval, as far as the tool is concerned. A built-in tool
    /// with several operations says so for each: looking at a history is not asked about because changing it is.
    #[must_use]
    pub fn asks(&self, args: &Value) -> bool {
        let operation = args.get("operation").and_then(Value::as_str);
        match (&self.body, operation.and_then(|it| self.metadata.capability(it))) {
            (Body::BuiltIn(_), Some(capability)) => capability.requires_confirmation,
            _ => !self.auto_accept,
        }
    }

    /// Everything about it, for machines.
    #[must_use]
    pub fn record(&self) -> Value {
        let mut record = json!({
            "name": self.name,
            "description": self.description,
            "enabled": self.enabled,
            "version": self.version,
            "category": self.category,
            "securityTier": self.tier,
            "riskLevel": self.risk,
            "autoAccept": self.auto_accept,
            "autoAcceptNotHonoured": self.waiver.why_not(),
            "tokenCost": self.tokens.figure(),
            "tokenCostEstimated": matches!(self.tokens, Tokens::Estimated(_)),
            "timeoutMs": self.timeout,
            "retry": self.retry,
            "schema": self.schema.json(),
            "returns": self.returns.as_ref().map(Schema::json),
            "permissions": self.permissions,
            "documentation": self.metadata.documentation,
            "capabilities": self.metadata.capabilities,
            "requiredAuth": self.metadata.required_auth,
            "costInfo": self.metadata.cost_info,
            "tags": self.metadata.tags,
        });
        match (&self.body, record.as_object_mut()) {
            (Body::Yaml { runtime, .. }, Some(record)) => {
                record.insert("runtime".to_owned(), json!(runtime));
            }
            (Body::Module(described), Some(record)) => {
                record.insert("hooks".to_owned(), json!(described.hooks));
                record.insert("notes".to_owned(), described.notes.clone());
            }
            (Body::Mcp(from), Some(record)) => {
                let (server, tool) = (&from.name, &from.offered.name);
                record.insert("mcp".to_owned(), json!({ "server": server, "tool": tool }));
            }
            (Body::BuiltIn(_), Some(_)) | (_, None) => {}
        }
        record
    }
}
