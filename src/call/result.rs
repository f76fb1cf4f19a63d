//! The result of a call. [`result_json`](super::result_json) is its form for machines.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use runner_policy::decide::{Decision, Explanation, NO_NETWORK, RuleRef};
use runner_policy::limits::Limits;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::details::Details;
use super::metadata::{Metadata, Protection, User};
use super::request::OnHeld;
use super::run::DryRun;
use super::shortfall::Shortfall;
use super::stage::{Changes, StagedError};
use crate::audit::Redactor;
pub use crate::audit::ToolRef;
use crate::call::launch::farewell::Farewell;
use crate::codes::Code;
use crate::engine::plan::{Image, OverlayWrites};
use crate::error::Failure as _;
use crate::exit::{Ending, Kind, Status};
use crate::sandbox::kept::Kept;
use crate::sandbox::outcome::{CancelCause, Verdict};

/// What a call came to.
#[derive(Debug)]
pub struct CallResult {
    /// Its id.
    pub call: String,
    /// How it ended.
    pub status: Status,
    /// The exit code.
    pub exit: crate::exit::ExitCode,
    /// The tool, if it was one.
    pub tool: Option<ToolRef>,
    /// What the tool returned.
    pub value: Option<Value>,
    /// Standard output, as far as it was kept.
    pub stdout: Option<Stream>,
    /// Standard error, as far as it was kept.
    pub stderr: Option<Stream>,
    /// What went wrong, if it was not the command's own exit code.
    pub error: Option<ErrorObject>,
    /// What was decided.
    pub decision: CallDecision,
    /// What came of its changes, if it could write.
    pub changes: Option<Changes>,
    /// How it ran; `None` if it did not.
    pub metadata: Option<Metadata>,
    /// What the sandbox kept from it.
    pub sandbox: Vec<Shortfall>,
    /// For the process.
    pub ending: Ending,
    /// Its sandbox, to be let go of once this was told.
    pub farewell: Option<Farewell>,
}

impl CallResult {
    /// Adds what came of its changes.
    pub(super) fn with_changes(&mut self, changes: Changes, on_held: OnHeld) {
        if let (OnHeld::Fail, Some(line), None) = (on_held, changes.held_line(), &self.error) {
            self.fail(Kind::Denied, ErrorObject::new(Code::ChangesHeld, line, None));
        }
        self.changes = Some(changes);
    }

    /// Its changes could not be applied: whatever the command said, the call has failed.
    pub(super) fn without_changes(&mut self, error: &StagedError) {
        let object = ErrorObject::new(error.code(), error.to_string(), error.hint());
        self.fail(Kind::Broken, object);
    }

    fn fail(&mut self, kind: Kind, error: ErrorObject) {
        self.ending = Ending::of_kind(kind, error.code);
        (self.status, self.exit) = (self.ending.status, self.ending.exit);
        self.error = Some(error);
    }

    /// What its end record tells of it, with the metadata as `recorded` has them.
    pub(super) fn detail(&self, recorded: impl FnOnce(&Metadata) -> Metadata) -> Value {
        let mut detail = json!(self.metadata.as_ref().map(recorded));
        if let Some(object) = detail.as_object_mut() {
            if let Some(changes) = &self.changes {
                object.insert("changes".to_owned(), json!(changes));
            }
            if !self.sandbox.is_empty() {
                object.insert("sandbox".to_owned(), json!(self.sandbox));
            }
        }
        detail
    }
}

/// What was decided about a call.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum CallDecision {
    /// About a command that was let through.
    Command(Box<Decision>),
    /// About a command that was refused, with the ways out.
    Refused(Box<Explanation>),
    /// A tool: under which policy each of its requests is decided.
    Tool {
        /// The policy's name.
        policy: String,
        /// Its digest.
        digest: String,
    },
}

impl CallDecision {
    /// The ways out of a refusal, for people.
    #[must_use]
    pub fn refused(&self) -> Option<&Explanation> {
        match self {
            Self::Refused(explanation) => Some(explanation),
            Self::Command(_) | Self::Tool { .. } => None,
        }
    }
}

/// One kept output stream.
#[derive(Debug)]
pub struct Stream {
    kept: Kept,
    /// Hides secrets in what is shown of it.
    redactor: Option<Redactor>,
}

impl Stream {
    /// What was kept of it.
    #[must_use]
    pub fn new(kept: Kept) -> Self {
        Self { kept, redactor: None }
    }

    /// The same without secrets: a tool's prints are shown as its log is.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        Self { redactor: Some(redactor.clone()), ..self }
    }

    /// What is shown of the beginning and of the end. They are one text where nothing was left out.
    fn shown(&self) -> (Vec<u8>, Vec<u8>) {
        let (head, tail) = (self.kept.head().to_vec(), self.kept.tail());
        match &self.redactor {
            None => (head, tail),
            Some(redactor) if self.kept.dropped() == 0 => {
                (redactor.bytes(&[head, tail].concat()), Vec::new())
            }
            Some(redactor) => (redactor.bytes(&head), redactor.bytes(&tail)),
        }
    }

    /// What was kept, with a visible mark where something was left out; and whether something was.
    #[must_use]
    pub fn into_bytes(self) -> (Vec<u8>, bool) {
        let dropped = self.kept.dropped();
        let (mut bytes, tail) = self.shown();
        if dropped > 0 {
            bytes.extend_from_slice(mark(dropped).as_bytes());
        }
        bytes.extend_from_slice(&tail);
        (bytes, dropped > 0)
    }
}

/// What stands where bytes were left out.
fn mark(dropped: u64) -> String {
    format!("\n[... {dropped} bytes left out ...]\n")
}

/// A stream as JSON tells it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToldStream {
    /// Its content as one text.
    pub text: String,
    /// `base64` if the text is that of bytes that are no text.
    pub encoding: Option<&'static str>,
    /// How many bytes there were, if some are left out.
    pub bytes: Option<u64>,
    /// How many of them are left out, if some are.
    pub dropped: Option<u64>,
}

impl Stream {
    /// For JSON. Lossless: text as text, anything else as base64. A cut is visible in both.
    #[must_use]
    pub fn told(&self) -> ToldStream {
        let dropped = self.kept.dropped();
        let (head, tail) = self.shown();
        let whole = [head.as_slice(), &tail].concat();
        let (text, encoding) = match (String::from_utf8(whole), dropped) {
            (Ok(text), 0) => (text, None),
            (_, _) => match (cut_text(&head, Cut::End), cut_text(&tail, Cut::Start)) {
                (Some(head), Some(tail)) if dropped > 0 => {
                    (format!("{head}{}{tail}", mark(dropped)), None)
                }
                _ => (BASE64_STANDARD.encode([head.as_slice(), &tail].concat()), Some("base64")),
            },
        };
        let cut = dropped > 0;
        let bytes = cut.then(|| self.kept.total());
        ToldStream { text, encoding, bytes, dropped: cut.then_some(dropped) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Start,
    End,
}

/// Text whose one end may have been cut inside a character; that character's rest goes too.
fn cut_text(bytes: &[u8], cut: Cut) -> Option<&str> {
    (0..4.min(bytes.len() + 1)).find_map(|taken| {
        let part = match cut {
            Cut::Start => &bytes[taken..],
            Cut::End => &bytes[..bytes.len() - taken],
        };
        std::str::from_utf8(part).ok()
    })
}

/// What went wrong.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorObject {
    /// Stable name; never a word of a tool.
    pub code: Code,
    /// For people.
    pub message: String,
    /// Whether trying again can help.
    pub recoverable: bool,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The rule that denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
    /// Where a tool threw it, in the author's own source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// What else is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

impl ErrorObject {
    /// Whether a person said no, once or for good. A question that waits carries its id.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.code == Code::ApprovalDenied
            || (self.code == Code::ApprovalNeeded && self.details.is_none())
    }

    /// With what its code says of it.
    #[must_use]
    pub fn new(code: Code, message: String, suggestion: Option<String>) -> Self {
        let row = code.row();
        Self {
            code,
            message,
            recoverable: code.can_pass(),
            suggestion: suggestion.or_else(|| Some(row.suggestion.to_owned())),
            rule: None,
            stack: None,
            details: None,
        }
    }

    /// Of a refused call.
    #[must_use]
    pub fn of_decision(told: &Explanation) -> Self {
        let Explanation { decision, nearest, allowed_by, .. } = told;
        let suggestion = match (nearest.first(), allowed_by.first()) {
            _ if decision.approvable => Some("it can run once someone approves it".to_owned()),
            (Some(form), _) => Some(format!("this form is allowed: {form}")),
            _ if decision.reaches_out => Some(NO_NETWORK.to_owned()),
            (None, Some(policy)) => {
                Some(format!("the policy `{policy}` would allow it: --policy {policy}"))
            }
            (None, None) => None,
        };
        Self {
            code: decision.code.into(),
            message: decision.message.clone(),
            recoverable: decision.approvable,
            suggestion,
            rule: decision.rule.clone(),
            stack: None,
            details: None,
        }
    }

    /// Of a call that ran and did not end by itself.
    #[must_use]
    pub fn of_verdict(verdict: &Verdict, limits: &Limits) -> Option<Self> {
        use runner_policy::limits::Limit;
        let figure = |limit: Limit| limit.row().unit.show(limits.get(limit));
        let (code, message, suggestion) = match verdict {
            Verdict::Completed | Verdict::Failed { .. } => return None,
            Verdict::Signalled { signal } => {
                (Code::Signalled, format!("the command was ended by signal {signal}"), None)
            }
            Verdict::Timeout => (
                Code::Timeout,
                format!("the call ran longer than {}", figure(Limit::Wall)),
                Some("use a policy with a longer `wall` limit"),
            ),
            Verdict::Oom => (
                Code::Oom,
                format!("the call wanted more memory than {}", figure(Limit::Memory)),
                Some("use a policy with a larger `memory` limit"),
            ),
            Verdict::Limit(limit) => (
                Code::Limit,
                format!("the call met its limit `{}` of {}", limit.row().key, figure(*limit)),
                Some("use a policy with a larger limit"),
            ),
            Verdict::Cancelled(CancelCause::OutputClosed) => {
                (Code::OutputClosed, "the reader of the output closed it".to_owned(), None)
            }
            Verdict::Cancelled(CancelCause::BrokerEnded) => {
                (Code::BrokerEnded, "the broker ended the call".to_owned(), None)
            }
            Verdict::Cancelled(CancelCause::Interrupt | CancelCause::Terminate) => {
                (Code::Cancelled, "the call was cancelled".to_owned(), None)
            }
            Verdict::NotFound { program } => (
                Code::ProgramNotFound,
                format!("there is no program {program:?} in the sandbox"),
                Some(
                    "the sandbox has the system's folders and the toolchains on your PATH; `--dry-run` shows them",
                ),
            ),
            Verdict::NotExecutable { program, errno } => (
                Code::NotExecutable,
                format!("{program:?} cannot be executed: {}", errno_text(*errno)),
                None,
            ),
            Verdict::NoCwd { errno } => {
                (Code::NoCwd, format!("the folder cannot be entered: {}", errno_text(*errno)), None)
            }
            Verdict::Assumption(broken) => {
                let (why, next) = assumption(broken.why);
                (
                    Code::AssumptionFailed,
                    format!("the line ended at the word {:?}, which {why}", broken.word),
                    Some(next),
                )
            }
        };
        Some(Self {
            code,
            message,
            recoverable: false,
            suggestion: suggestion.map(str::to_owned),
            rule: None,
            stack: None,
            details: None,
        })
    }
}

fn errno_text(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

/// How a verdict ends the process.
#[must_use]
pub fn ending(verdict: &Verdict) -> Ending {
    use crate::exit::Kind;
    match verdict {
        Verdict::Completed => Ending::ok(),
        Verdict::Failed { status } => Ending::of_command(u8::try_from(*status & 0xff).unwrap_or(1)),
        // As shells have it.
        Verdict::Signalled { signal } => {
            Ending::of_command(u8::try_from(128 + (*signal & 0x7f)).unwrap_or(255))
        }
        Verdict::Timeout => Ending::of_kind(Kind::Timeout, Code::Timeout),
        Verdict::Oom => Ending::of_kind(Kind::OutOfMemory, Code::Oom),
        Verdict::Limit(_) => Ending::of_kind(Kind::Limit, Code::Limit),
        Verdict::Cancelled(CancelCause::Interrupt) => {
            Ending::of_kind(Kind::Interrupted, Code::Cancelled)
        }
        Verdict::Cancelled(CancelCause::Terminate) => {
            Ending::of_kind(Kind::Terminated, Code::Cancelled)
        }
        // The reader closed the output: as quiet as any program that a closed pipe ends.
        Verdict::Cancelled(CancelCause::OutputClosed) => Ending::of_command(141),
        Verdict::Cancelled(CancelCause::BrokerEnded) => {
            Ending::of_kind(Kind::Broken, Code::BrokerEnded)
        }
        Verdict::NotFound { .. } => Ending::of_kind(Kind::ProgramNotFound, Code::ProgramNotFound),
        Verdict::NotExecutable { .. } => Ending::of_kind(Kind::Broken, Code::NotExecutable),
        Verdict::NoCwd { .. } => Ending::of_kind(Kind::Broken, Code::NoCwd),
        Verdict::Assumption(_) => Ending::of_kind(Kind::Denied, Code::AssumptionFailed),
    }
}

/// What was wrong with a word that was expanded when a line ran, and the next step.
fn assumption(why: runner_wire::Why) -> (&'static str, &'static str) {
    use runner_wire::Why;
    match why {
        Why::Other => ("is not what was judged", "write the value itself"),
        Why::Option => {
            ("begins with `-` and could be an option", "write `./` before it, or the value itself")
        }
        Why::Outside => {
            ("leads out of the workspace", "write the path itself, so that it can be judged")
        }
        Why::Colon => ("has a colon where a path must stand", "write the value itself"),
        Why::Count => ("is not the one word that was judged", "put it into double quotes"),
        Why::Pattern => ("holds a pattern that is not read", "put it into double quotes"),
        Why::Builtin => ("names something that only a shell does", "write the command itself"),
        Why::Environment => ("is a variable of the environment", "use `export`"),
        Why::Number => ("is not a number", "use `[ … = … ]` to compare text"),
        Why::Nul => ("holds a NUL character", "filter it, as by `tr -d '\\0'`"),
    }
}

/// The decision and the plan, for `--dry-run`.
#[must_use]
pub fn plan_object(decision: &Explanation, dry: Option<&DryRun>) -> Value {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let container = dry.map(|dry| &dry.container);
    let plan = dry.map(|dry| &dry.plan).map(|plan| {
        json!({
            "image": match &plan.image { Image::Host => "host", Image::Reference(name) => name },
            "runtime": plan.runtime.as_ref().map(ToString::to_string),
            "isolation": plan.isolation,
            "user": User::of(plan),
            "workspace": text(&plan.workspace),
            "cwd": text(&plan.cwd),
            "overlays": plan.overlays.iter().map(|overlay| json!({
                "target": text(&overlay.target),
                "covers": text(&overlay.covers.path),
                "writes": match overlay.writes { OverlayWrites::Refused => "refused", OverlayWrites::Staged => "staged" },
                "role": format!("{:?}", overlay.role).to_lowercase(),
            })).collect::<Vec<_>>(),
            "covered": plan.covered.iter().map(|path| text(path)).collect::<Vec<_>>(),
            "mounts": plan.mounts.iter().map(|mount| json!({
                "target": text(&mount.target),
                "source": text(&mount.source),
                "role": format!("{:?}", mount.role).to_lowercase(),
            })).collect::<Vec<_>>(),
            "masks": plan.masks.iter().map(|mask| text(&mask.target)).collect::<Vec<_>>(),
            "scratch": plan.tmpfs.iter().map(|tmpfs| text(&tmpfs.target)).collect::<Vec<_>>(),
            "env": plan.env.iter().map(|(name, value)| (name.to_string_lossy().into_owned(), Value::from(value.to_string_lossy()))).collect::<Map<_, _>>(),
            "limits": plan.limits,
            "protections": Protection::all(plan),
            "notes": plan.notes,
        })
    });
    json!({ "decision": decision, "plan": plan, "container": container })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: &[u8], limit: u64) -> ToldStream {
        let mut kept = Kept::new(limit);
        kept.push(bytes);
        Stream::new(kept).told()
    }

    #[test]
    fn text_is_text_and_bytes_are_base64() {
        let text = ToldStream { text: "añb".to_owned(), ..ToldStream::default() };
        assert_eq!(stream("añb".as_bytes(), 100), text);
        let binary = stream(&[0xff, 0, 1], 100);
        assert_eq!((binary.text.as_str(), binary.encoding), ("/wAB", Some("base64")));
    }

    #[test]
    fn prints_of_tools_are_shown_without_secrets() {
        let mut kept = Kept::new(100);
        kept.push(b"TOKEN=abcdef and on");
        let masked = Stream::new(kept.clone()).redacted(&Redactor::new());
        assert_eq!(masked.told().text, "TOKEN=[redacted] and on");
        // A command's output is the caller's, as it is.
        assert_eq!(Stream::new(kept).told().text, "TOKEN=abcdef and on");
    }

    #[test]
    fn a_cut_is_visible_and_counted() {
        let cut = stream("ééééééééééééééé".as_bytes(), 9);
        assert_eq!(cut.bytes, Some(30));
        assert!(cut.text.contains("bytes left out"));
    }
}
