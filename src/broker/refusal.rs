//! What a tool gets instead of an answer: a stable code, a sentence, the rule, the next step.

use std::fmt;

use runner_policy::decide::RuleRef;
use runner_policy::{Code as Why, Decision, Verdict};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::ids::PERMISSIONS;

macro_rules! codes {
    ($($name:ident $word:literal $about:literal)*) => {
        /// Why a request was not done. The words are stable: tools compare `error.code` with them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $about] $name),* }

        impl Code {
            /// Every code with its word and what it means.
            pub const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$name, $word, $about)),*];

            /// The stable word.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// The one with this word.
            #[must_use]
            pub fn by_word(word: &str) -> Option<Self> {
                [$(Self::$name),*].into_iter().find(|code| code.word() == word)
            }
        }
    };
}

codes! {
    AccessDenied "access_denied" "The policy, or the tool's own permissions, do not allow it."
    ApprovalNeeded "approval_needed" "The policy, the tool or its tier wants somebody's approval first."
    ApprovalDenied "approval_denied" "A person said never to it."
    ApprovalOver "approval_over" "The approval that was named was used up, taken back, or waited too long."
    ApprovalDiffers "approval_differs" "The approval that was named is about something else."
    ApprovalUnknown "approval_unknown" "There is no question with the id that was named."
    ApprovalFailed "approval_failed" "It needs an approval, and the question could not be put."
    ToolChanged "tool_digest_mismatch" "The tool is not what was approved."
    PathEscape "path_escape" "The path leads out of the workspace, or its content may belong elsewhere."
    ProtectedPath "protected_path" "The path is never writable, whatever a policy says."
    SpecialFile "special_file" "The path is a device, pipe, socket or something of the kernel's."
    NotFound "not_found" "Nothing is there."
    AlreadyExists "already_exists" "Something is there already."
    NotADirectory "not_a_directory" "A folder is needed and something else is there."
    IsADirectory "is_a_directory" "A file is needed and a folder is there."
    NotEmpty "not_empty" "The folder is not empty."
    TooLarge "too_large" "It is larger than may be moved or written."
    LimitReached "limit_reached" "The call has used up what it may use."
    Busy "busy" "Too much is going on at once; later may work."
    InvalidArgument "invalid_argument" "The request cannot be meant like this."
    NoSpace "no_space" "There is no room left on the disk, or too little to go on."
    IoError "io_error" "The operating system failed."
    Timeout "timeout" "It took longer than it may."
    Cancelled "cancelled" "The tool cancelled it, or the call is ending."
    ProgramNotFound "program_not_found" "There is no such program in the sandbox."
    EngineError "engine_error" "The sandbox of a command could not be made or broke."
    NetDenied "net_denied" "No `net` rule allows the request."
    NetAddress "net_address" "The name leads to an address that must not be reached."
    NetDns "net_dns" "The name cannot be resolved."
    NetConnect "net_connect" "The peer cannot be reached."
    NetTls "net_tls" "There is no trusted connection to the peer."
    NetProtocol "net_protocol" "The peer does not speak HTTP as it should."
    NetRedirect "net_redirect" "The answer leads elsewhere, and that is not allowed."
}

impl Code {
    /// What was decided about a request that ended so: a request that was allowed can fail too.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::ApprovalNeeded | Self::ApprovalOver => Verdict::Ask,
            Self::AccessDenied
            | Self::ApprovalDenied
            | Self::ApprovalDiffers
            | Self::ApprovalUnknown
            | Self::ApprovalFailed
            | Self::ToolChanged
            | Self::PathEscape
            | Self::ProtectedPath
            | Self::SpecialFile
            | Self::NetDenied
            | Self::NetAddress
            | Self::NetRedirect => Verdict::Deny,
            Self::NotFound
            | Self::AlreadyExists
            | Self::NotADirectory
            | Self::IsADirectory
            | Self::NotEmpty
            | Self::TooLarge
            | Self::LimitReached
            | Self::Busy
            | Self::InvalidArgument
            | Self::NoSpace
            | Self::IoError
            | Self::Timeout
            | Self::Cancelled
            | Self::ProgramNotFound
            | Self::EngineError
            | Self::NetDns
            | Self::NetConnect
            | Self::NetTls
            | Self::NetProtocol => Verdict::Allow,
        }
    }

    /// Whether the same request can succeed later without a change.
    #[must_use]
    pub fn can_pass(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Timeout | Self::EngineError | Self::NetDns | Self::NetConnect
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What became of the question whether a request may be done. It is the caller's: a tool learns only that there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// Which question: what the result has as `details.approval`.
    pub details: Option<Value>,
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
        map.serialize_entry("code", self.code.word())?;
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
    fn words_are_unique_and_in_snake_case() {
        let mut words: Vec<&str> = Code::ALL.iter().map(|(_, word, _)| *word).collect();
        assert!(words.iter().all(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

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
