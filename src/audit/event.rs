//! What is recorded. Commands are recorded as they were asked for, but for secrets in them: programs, options, paths
//! and rules stay, so that a record is found by what was done.

use runner_policy::Effective;
use runner_policy::decide::{Decision, RuleRef};
use runner_policy::model::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Redactor;
use super::actor::Actor;

use crate::caller::Caller;
use crate::codes::Code;
use crate::exit::{Ending, ExitCode, Status};
use crate::ids::CallId;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A call was decided and is about to run.
    Start,
    /// It ended.
    End,
    /// It was denied, or lacks a needed approval.
    Refused,
    /// Its process died before it ended.
    Aborted,
    /// A tool asked the broker for something.
    Request,
    /// A person, or who speaks for one, was asked.
    Approval,
    /// The head named records that are not in the chain; see `seal`.
    Gap,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::End,
        Self::Refused,
        Self::Aborted,
        Self::Request,
        Self::Approval,
        Self::Gap,
    ];

    /// The word in the ledger.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Refused => "refused",
            Self::Aborted => "aborted",
            Self::Request => "request",
            Self::Approval => "approval",
            Self::Gap => "gap",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A tool, as results and records name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolRef {
    /// Its name.
    pub name: String,
    /// The digest of all that it was made from.
    pub digest: String,
}

/// The body of `start` and `refused`: what was asked and what was decided.
#[derive(Debug, Clone, Serialize)]
pub struct Started {
    /// `exec`, `tool`, `undo`, `stage` or `doctor`.
    pub kind: &'static str,
    /// The call that asked for this one, where a tool did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The command as one shell line.
    pub command: String,
    /// The words, where it was not a shell line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The workspace.
    pub workspace: String,
    /// The folder it runs in.
    pub cwd: String,
    /// Who called.
    pub actor: Actor,
    /// The policy.
    pub policy: String,
    /// Its digest.
    pub digest: String,
    /// What was decided.
    pub decision: Verdict,
    /// Why.
    pub code: Code,
    /// Why, in a sentence.
    pub message: String,
    /// The rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
    /// What `mode: observe` let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Verdict>,
    /// What it does, in words.
    pub effects: Vec<String>,
    /// The tool, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
    /// The arguments of the tool, without secrets.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub args: Value,
    /// How it ended for its caller, if it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The exit code that the caller saw, if it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitCode>,
}

impl Started {
    /// From a decision. Secrets in the command are masked.
    #[must_use]
    pub fn new(
        command: String,
        argv: Option<Vec<String>>,
        workspace: &str,
        cwd: &str,
        decision: &Decision,
        parent: Option<&CallId>,
        caller: &Caller,
    ) -> Self {
        let redactor = Redactor::new();
        // An effect may name the value of an option without the option.
        let secrets = redactor.secrets(&command);
        let hidden = |text: &str| redactor.line_about(text, &secrets);
        Self {
            kind: "exec",
            parent: parent.map(ToString::to_string),
            command: redactor.line(&command),
            argv: argv.map(|argv| redactor.argv(&argv)),
            workspace: workspace.to_owned(),
            cwd: cwd.to_owned(),
            actor: Actor::of(caller),
            policy: decision.policy.clone(),
            digest: decision.digest.clone(),
            decision: decision.decision,
            code: decision.code.into(),
            message: hidden(&decision.message),
            rule: decision.rule.clone(),
            would: decision.would.map(|(verdict, _)| verdict),
            effects: decision
                .effects
                .iter()
                .map(|line| hidden(format!("{} {}", line.effect, line.object).trim_end()))
                .collect(),
            tool: None,
            args: Value::Null,
            status: None,
            exit: None,
        }
    }

    /// Of a tool that is to `run`, or to be looked at otherwise. What it does is decided request by request, while it runs.
    #[must_use]
    pub fn of_tool(
        verb: &str,
        tool: ToolRef,
        args: Value,
        (workspace, cwd): (&str, &str),
        policy: &Effective,
        caller: &Caller,
    ) -> Self {
        Self {
            kind: "tool",
            parent: None,
            command: format!("tool {verb} {}", tool.name),
            argv: None,
            workspace: workspace.to_owned(),
            cwd: cwd.to_owned(),
            actor: Actor::of(caller),
            policy: policy.name().to_owned(),
            digest: policy.digest.to_hex().to_string(),
            decision: Verdict::Allow,
            code: Code::Allowed,
            message: "a tool has nothing but the broker, which decides each request".to_owned(),
            rule: None,
            would: None,
            effects: Vec::new(),
            tool: Some(tool),
            args,
            status: None,
            exit: None,
        }
    }

    /// Of an undo. Who may write the files may put back what was in them; no policy is asked.
    #[must_use]
    pub fn of_undo(call: &str, workspace: &str, caller: &Caller) -> Self {
        Self {
            kind: "undo",
            parent: None,
            command: format!("undo {call}"),
            argv: None,
            workspace: workspace.to_owned(),
            cwd: workspace.to_owned(),
            actor: Actor::of(caller),
            policy: String::new(),
            digest: String::new(),
            decision: Verdict::Allow,
            code: Code::Allowed,
            message: "what was kept of that call's changes comes back".to_owned(),
            rule: None,
            would: None,
            effects: Vec::new(),
            tool: None,
            args: Value::Null,
            status: None,
            exit: None,
        }
    }

    /// Of a person's apply of changes that were held back. The person was asked, no policy is.
    #[must_use]
    pub fn of_stage_apply(call: &str, workspace: &str, caller: &Caller) -> Self {
        Self {
            kind: "stage",
            command: format!("stage apply {call}"),
            message: "a person applies what was held back of that call's changes".to_owned(),
            ..Self::of_undo(call, workspace, caller)
        }
    }

    /// Of a run of the doctor. It runs this program alone, so no policy is asked.
    #[must_use]
    pub fn of_doctor(caller: &Caller) -> Self {
        Self {
            kind: "doctor",
            command: "doctor".to_owned(),
            message: "runner tries its own protections, with a program of its own".to_owned(),
            ..Self::of_undo("", "", caller)
        }
    }

    /// Whether the policy asks about it.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.decision == Verdict::Ask
    }

    /// The same call, refused.
    #[must_use]
    pub fn refused(mut self, verdict: Verdict, code: Code, message: String) -> Self {
        self.decision = verdict;
        self.code = code;
        self.message = message;
        self
    }

    /// With what its caller sees of the refusal: a limit that is met is no denial.
    #[must_use]
    pub fn ending(self, ending: &Ending) -> Self {
        Self { status: Some(ending.status), exit: Some(ending.exit), ..self }
    }
}

/// The body of `end`.
#[derive(Debug, Clone, Serialize)]
pub struct Ended {
    /// `completed`, `failed`, `timeout`, …
    pub status: Status,
    /// The exit code that the caller saw.
    pub exit: ExitCode,
    /// The stable code of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// `policy/id` of the rule that ended it, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Milliseconds from the decision to the end.
    pub duration_ms: u64,
    /// What it cost, in millionths of a US dollar, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_microdollars: Option<u64>,
    /// Engine, image, user, usage.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// The body of `request`: what a tool asked the broker for.
#[derive(Debug, Clone, Serialize)]
pub struct Requested {
    /// Its number in the tool's talk.
    pub request: u32,
    /// `file.read`, `exec.run`, …
    pub method: &'static str,
    /// The resolved path, the command, the URL; without secrets.
    pub object: String,
    /// Where a connection led.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What was decided.
    pub decision: Verdict,
    /// Why it was not done, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// `policy/id` of the rule, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Bytes of its body.
    pub bytes_in: u64,
    /// Bytes of its answer.
    pub bytes_out: u64,
    /// Microseconds.
    pub us: u64,
    /// The call that it became, for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

/// The body of `approval`: a question, or an answer to one.
#[derive(Debug, Clone, Serialize)]
pub struct Answered {
    /// The question.
    pub id: String,
    /// `asked`, `approved`, `used`, `--yes`, `denied`, `never`, `void`.
    pub answer: &'static str,
    /// How long it holds: `once`, `session`, `time`, `never`.
    pub scope: String,
    /// Until when, in milliseconds since 1970.
    pub until: i64,
    /// What is asked about: `exec`, `tool:NAME`, `tool:NAME/exec`, …
    pub subject: String,
    /// Where.
    pub workspace: String,
    /// Who asked or answered.
    pub actor: Actor,
    /// What was shown, line by line, without secrets.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub question: Value,
}

/// One event to append.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// See [`Kind::Start`].
    Start(&'a Started),
    /// See [`Kind::Refused`].
    Refused(&'a Started),
    /// See [`Kind::End`].
    End(&'a Ended),
    /// See [`Kind::Request`].
    Request(&'a Requested),
    /// See [`Kind::Approval`].
    Approval(&'a Answered),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Front;
    use runner_policy::{Origin, PolicySet, Query, Source, What, decide, parse};

    #[test]
    fn a_record_of_a_command_holds_no_secret_and_is_found_by_the_rest() {
        let text = "policy: 1\nname: p\n";
        let mut set = PolicySet::default();
        set.add(parse(Source { file: "p.yml", text, origin: Origin::User }).unwrap()).unwrap();
        let policy = set.effective("p").unwrap();
        let argv =
            ["mytool", "--password", "hunter2", "--url=https://u:hunter2@h.example/x", "src/a"]
                .map(str::to_owned);
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        let query = Query { workspace: "/w", cwd: "/w", now, what: What::Argv(&argv) };
        let decision = decide(&policy, &query);
        let started = Started::new(
            argv.join(" "),
            Some(argv.to_vec()),
            "/w",
            "/w",
            &decision,
            None,
            &Caller::of_process(Front::CommandLine),
        );
        let written = serde_json::to_string(&started).unwrap();
        assert!(!written.contains("hunter2"), "{written}");
        for kept in ["mytool", "--password", "h.example/x", "src/a", "unknown_program"] {
            assert!(written.contains(kept), "{kept} {written}");
        }
    }
}
