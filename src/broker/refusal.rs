//! What a tool gets instead of an answer: a stable code, a sentence, the rule, the next step.

use runner_policy::decide::RuleRef;
use runner_policy::{Code as Why, Decision, Verdict};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::approvals::QuestionRef;
use crate::codes::Code;
use crate::ids::PERMISSIONS;

/// What was decided about a request that ended so: a request that was allowed can fail too. A code that no request ends with
/// counts as denied: the records never say of it that something was allowed.
#[must_use]
pub fn verdict(code: Code) -> Verdict {
    match code {
        Code::ApprovalNeeded | Code::ApprovalOver => Verdict::Ask,
        Code::NotFound
        | Code::AlreadyExists
        | Code::NotADirectory
        | Code::IsADirectory
        | Code::NotEmpty
        | Code::TooLarge
        | Code::LimitReached
        | Code::Busy
        | Code::InvalidArgument
        | Code::NoSpace
        | Code::IoError
        | Code::Timeout
        | Code::Cancelled
        | Code::ProgramNotFound
        | Code::EngineError
        | Code::NetDns
        | Code::NetConnect
        | Code::NetTls
        | Code::NetProtocol => Verdict::Allow,
        _ => Verdict::Deny,
    }
}

/// What became of the question whether a request may be done. It is the caller's: a tool learns only that there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// Which question: what the result has as `details.approval`.
    pub question: Option<QuestionRef>,
    /// The next step of whoever called the tool.
    pub suggestion: Option<String>,
}

/// A request that was not done.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// Why, as a stable word.
    pub code: Code,
    /// Why, in a sentence.
    pub message: String,
    /// The path that it is about, below the workspace.
    pub path: Option<String>,
    /// The rule that decided.
    pub rule: Option<Box<RuleRef>>,
    /// The question that it waits for, or the answer that it did not get.
    pub approval: Option<Box<Unanswered>>,
    /// The next step.
    pub suggestion: Option<String>,
    /// Whether the same request can succeed later without a change.
    pub recoverable: bool,
}

impl Refusal {
    /// A refusal with this code and sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            path: None,
            rule: None,
            approval: None,
            suggestion: None,
            recoverable: code.can_pass(),
        }
    }

    /// With the path that it is about.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// With the next step.
    #[must_use]
    pub fn hint(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// What a policy's decision says, with its rule and reason.
    #[must_use]
    pub fn of_decision(code: Code, decision: &Decision) -> Self {
        let message = match &decision.reason {
            Some(reason) => format!("{}: {reason}", decision.message),
            None => decision.message.clone(),
        };
        let mut refusal = Self::new(code, message);
        refusal.rule = decision.rule.clone().map(Box::new);
        refusal.suggestion = advice(code, decision);
        refusal
    }
}

/// The list that would have to hold it, and whose; `None` where a rule denies it, which no list undoes.
fn advice(code: Code, decision: &Decision) -> Option<String> {
    let list = match decision.code {
        Why::NoRule if code == Code::NetDenied => "net",
        Why::PathNotReadable => "files.read",
        Why::PathNotWritable => "files.write",
        Why::EnvDenied => "env.accept",
        Why::NoRule | Why::UnknownProgram => "commands",
        _ => return None,
    };
    let whose = &decision.said_by;
    Some(match whose.strip_prefix(PERMISSIONS) {
        Some(tool) => {
            let list = if list == "commands" { "permissions.allowlist" } else { list };
            format!("the tool {tool} does not ask for it: its `{list}` must hold it")
        }
        None => format!("`{list}` of the policy `{whose}` must hold it; --policy chooses another"),
    })
}

/// As the talk carries it. A rule travels as `policy/id`: where its file lies is not the tool's matter.
impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code.as_str())?;
        map.serialize_entry("message", &self.message)?;
        if let Some(path) = &self.path {
            map.serialize_entry("path", path)?;
        }
        if let Some(rule) = &self.rule {
            map.serialize_entry("rule", &rule.id)?;
        }
        if let Some(suggestion) = &self.suggestion {
            map.serialize_entry("suggestion", suggestion)?;
        }
        map.serialize_entry("recoverable", &self.recoverable)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_travels_with_its_rule_by_name() {
        let mut refusal = Refusal::new(Code::AccessDenied, "no").at("a/.env").hint("ask");
        refusal.rule = Some(Box::new(RuleRef {
            id: "project/files.deny".to_owned(),
            file: "/somewhere/project.yml".to_owned(),
            line: 3,
            text: "**/.env".to_owned(),
        }));
        assert_eq!(
            serde_json::to_string(&refusal).unwrap(),
            r#"{"code":"access_denied","message":"no","path":"a/.env","rule":"project/files.deny","suggestion":"ask","recoverable":false}"#
        );
    }
}
