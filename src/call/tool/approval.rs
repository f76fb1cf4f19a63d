//! Who is asked before something runs that a tool's author or a policy wants a person to see.

use std::sync::Arc;

use serde_json::Value;

use crate::broker::{Asked, Boxed, NetApproval};
use crate::call::request::Approval;

/// What is asked.
#[derive(Debug, Clone)]
pub enum Question {
    /// May this tool run? Its author wants to be asked for each call (`autoAccept: false`).
    Tool {
        /// Its name.
        tool: String,
        /// What it says it does.
        description: String,
        /// Its arguments.
        args: Value,
        /// How risky its author says it is.
        risk: &'static str,
        /// Its file.
        file: String,
        /// The policy that decides what it does.
        policy: String,
        /// What it asks for, as its permissions have it: `run`, `write`, `reach`, `set`, and of what.
        asks: Vec<(&'static str, String)>,
    },
    /// May this command of a tool run, or this request of a tool be made? The policy asks.
    Command {
        /// The tool.
        tool: String,
        /// The command, or method and URL.
        command: String,
        /// Where it runs; nothing for a request.
        folder: String,
        /// What it does, as the policy has read it.
        effects: Vec<String>,
        /// Whether the tool gives it something that is not shown: standard input, or a body.
        fed: bool,
        /// The rule's reason.
        reason: Option<String>,
        /// The rule.
        rule: Option<String>,
    },
}

impl Question {
    /// About a request that a tool wants to make.
    fn of_request(tool: &str, asked: &Asked) -> Self {
        Self::Command {
            tool: tool.to_owned(),
            command: format!("{} {}", asked.method, asked.url),
            folder: String::new(),
            effects: Vec::new(),
            fed: asked.method != "GET" && asked.method != "HEAD",
            reason: asked.decision.reason.clone(),
            rule: asked.decision.rule.as_ref().map(|rule| rule.id.clone()),
        }
    }
}

/// Answers questions.
pub trait Approver: Send + Sync {
    /// Answers; it may wait for a person.
    fn approve(&self, question: &Question) -> Approval;
}

/// The same answer to everything.
#[derive(Debug, Clone, Copy)]
pub struct Always(pub Approval);

impl Approver for Always {
    fn approve(&self, _: &Question) -> Approval {
        self.0
    }
}

/// Asks about requests to the net.
pub(super) struct ToolNet {
    /// Who answers.
    pub approver: Arc<dyn Approver>,
    /// The tool's name, for the question.
    pub tool: String,
}

impl NetApproval for ToolNet {
    fn approve(&self, asked: Asked) -> Boxed<'_, bool> {
        let question = Question::of_request(&self.tool, &asked);
        let answer = put(Arc::clone(&self.approver), question);
        Box::pin(async { answer.await == Approval::Given })
    }
}

/// Puts a question. A person may take their time, so it has a thread of its own; a question that nobody lived
/// to answer is not approved.
pub(super) async fn put(approver: Arc<dyn Approver>, question: Question) -> Approval {
    let answer = tokio::task::spawn_blocking(move || approver.approve(&question)).await;
    answer.unwrap_or(Approval::None)
}
