//! What is asked, whole.

use serde_json::{Map, Value, json};

use crate::approvals::HIDDEN;
use crate::audit::Redactor;
use crate::broker::Destroys;
use crate::call::request::Decided;
use crate::sandbox::streams::Source;

/// The most bytes of a question. A person does not read more, so a longer question is not asked.
const SHOWN: usize = 8 << 10;

/// What is shown of a long description, and of each value of a question that is too long to be answered.
const VALUE_SHOWN: usize = 400;

/// The call of a tool that a question comes from.
#[derive(Debug, Clone)]
pub struct About {
    /// The tool's name.
    pub tool: String,
    /// What it says it does.
    pub description: String,
    /// Its arguments.
    pub args: Value,
    /// How far it reaches.
    pub tier: &'static str,
    /// How risky its author says it is.
    pub risk: &'static str,
    /// How long it takes and what it costs, as its author says.
    pub estimates: Vec<(&'static str, String)>,
}

/// What is asked.
#[derive(Debug, Clone)]
pub enum Question {
    /// May this tool run?
    Tool {
        /// What is called.
        about: About,
        /// What it will do, as far as its arguments tell: commands with their effects, paths, requests.
        does: Vec<(&'static str, String)>,
        /// Its file.
        file: String,
        /// Where it runs.
        folder: String,
        /// The image that the caller names.
        image: Option<String>,
        /// The policy that decides what it does.
        policy: String,
        /// What it asks for, as its permissions have it: `run`, `write`, `reach`, `set`, and of what.
        asks: Vec<(&'static str, String)>,
    },
    /// May this command run, or this request of a tool be made? The policy asks.
    Command {
        /// The tool that wants it, if one does.
        tool: Option<String>,
        /// The command, or method and URL.
        command: String,
        /// Where it runs; nothing for a request.
        folder: String,
        /// The image that the caller names.
        image: Option<String>,
        /// What it does, as the policy has read it.
        effects: Vec<String>,
        /// The headers of a request, without secrets.
        headers: Vec<String>,
        /// What it is given that is not shown: standard input, or a body.
        fed: Option<String>,
        /// The rule's reason.
        reason: Option<String>,
        /// The rule.
        rule: Option<String>,
        /// What of the code that it runs the answer holds for.
        holds: Option<String>,
    },
    /// May this tool destroy something? Its tier lets it write, not destroy.
    Destroys {
        /// The call that wants to.
        about: About,
        /// What.
        what: Destroys,
    },
}

impl About {
    /// With the lines of `from` after the tool's name.
    fn lines(&self, from: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
        let mut lines = vec![("tool", self.tool.clone())];
        lines.extend(from);
        lines.push(("says", cut(&self.description)));
        match &self.args {
            Value::Object(map) => {
                let values = map.iter().map(|(name, value)| format!("{name} = {value}"));
                lines.extend(values.map(|value| ("argument", value)));
            }
            other => lines.push(("argument", other.to_string())),
        }
        lines.push(("risk", format!("{} ({})", self.risk, self.tier)));
        lines.extend(self.estimates.iter().cloned());
        lines
    }
}

/// What a command does, for who is asked: itself, and each of its effects.
pub(in crate::call) fn effects(decided: &Decided) -> Vec<String> {
    let effects = decided.decision.effects.iter();
    effects.map(|line| format!("{} {}", line.effect, line.object).trim_end().to_owned()).collect()
}

/// Whether a command is given input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::call) enum Fed {
    /// It is left out: the person does not see it.
    Input,
    /// It has the null device.
    Nothing,
}

impl Fed {
    /// Of what a command would read.
    pub(in crate::call) fn of(source: &Source) -> Self {
        if source.is_some() { Self::Input } else { Self::Nothing }
    }
}

impl Question {
    /// About a command that a policy asks about, and what its answer is bound to.
    pub(in crate::call) fn of_command(
        tool: Option<&str>,
        decided: &Decided,
        fed: Fed,
        holds: Option<String>,
    ) -> (Self, Map<String, Value>) {
        let (command, folder) =
            (decided.request.shown(), decided.workspace.cwd().display().to_string());
        let question = Self::Command {
            tool: tool.map(str::to_owned),
            command: command.clone(),
            folder: folder.clone(),
            image: decided.request.image.clone(),
            effects: effects(decided),
            headers: Vec::new(),
            fed: match fed {
                Fed::Input => Some("standard input, which is not shown here".to_owned()),
                Fed::Nothing => None,
            },
            reason: decided.decision.reason.clone(),
            rule: decided.decision.rule.as_ref().map(|rule| rule.id.clone()),
            holds,
        };
        // The words themselves: what is shown may join them in another way.
        let words = decided.request.argv_bound();
        let bound = [
            ("command", json!(command)),
            ("words", words),
            ("folder", json!(folder)),
            ("input", json!(fed == Fed::Input)),
        ];
        (question, bound.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }

    /// Everything that the answer is about, line by line.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match self {
            Self::Tool { about, does, file, folder, image, policy, asks } => {
                let mut from = vec![("from", file.clone()), ("in", folder.clone())];
                from.extend(image.iter().map(|image| ("image", image.clone())));
                lines = about.lines(from);
                lines.extend(does.iter().cloned());
                lines.push(("policy", policy.clone()));
                for (word, entry) in asks {
                    let name = match *word {
                        "run" => "may run",
                        "write" => "may write",
                        "reach" => "may reach",
                        _ => "may set",
                    };
                    lines.push((name, entry.clone()));
                }
            }
            Self::Command {
                tool,
                command,
                folder,
                image,
                effects,
                headers,
                fed,
                reason,
                rule,
                holds,
            } => {
                lines.extend(tool.iter().map(|tool| ("tool", tool.clone())));
                lines.push(("command", command.clone()));
                if !folder.is_empty() {
                    lines.push(("in", folder.clone()));
                }
                lines.extend(image.iter().map(|image| ("image", image.clone())));
                lines.extend(effects.iter().map(|effect| ("does", effect.clone())));
                lines.extend(headers.iter().map(|header| ("header", header.clone())));
                lines.extend(fed.iter().map(|fed| ("is given", fed.clone())));
                lines.extend(rule.iter().map(|rule| ("rule", rule.clone())));
                lines.extend(reason.iter().map(|reason| ("reason", reason.clone())));
                lines.extend(holds.iter().map(|holds| ("holds for", holds.clone())));
            }
            Self::Destroys { about, what } => {
                lines = about.lines(Vec::new());
                match what {
                    Destroys::Removed { path, recursive } => {
                        lines.push(("removes", path.clone()));
                        if *recursive {
                            lines.push(("", "and everything below it".to_owned()));
                        }
                    }
                    Destroys::Moved { from, to, loses } => {
                        lines.push(("moves", format!("{from} -> {to}")));
                        if loses.contains(to) {
                            lines.push(("replaces", to.clone()));
                        }
                    }
                }
            }
        }
        lines
    }

    /// Whether a person can be shown all of it.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.lines().iter().map(|(_, value)| value.len()).sum::<usize>() <= SHOWN
    }

    /// The same for the book, without secrets. What is more than a person reads, or would have more hidden than a
    /// secret, says so: it cannot be answered by its id.
    pub(super) fn record(&self, redactor: &Redactor) -> Value {
        let fits = self.fits();
        let mut whole = fits;
        let mut record = Vec::new();
        let lines = self.lines();
        let commands = lines.iter().filter(|(name, _)| matches!(*name, "command" | "runs"));
        let secrets: Vec<String> = commands.flat_map(|(_, line)| redactor.secrets(line)).collect();
        for (name, value) in lines {
            let (clean, hides) = match name {
                "command" | "does" | "runs" => {
                    (redactor.line_about(&value, &secrets), redactor.hides_words_of_line(&value))
                }
                _ => (redactor.text(&value).into_owned(), redactor.hides_words(&value)),
            };
            whole &= !hides;
            record.push(json!([name, if fits { clean } else { cut(&clean) }]));
        }
        if !whole {
            let why =
                "parts of it are not shown here: it is answered at the terminal of the call itself";
            record.push(json!([HIDDEN, why]));
        }
        Value::Array(record)
    }
}

/// A text without its middle, if it is long.
fn cut(text: &str) -> String {
    if text.len() <= VALUE_SHOWN {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(VALUE_SHOWN / 2);
    let tail = text.ceil_char_boundary(text.len() - VALUE_SHOWN / 2);
    format!("{} [... {} bytes ...] {}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_behind_a_long_argument() {
        let question = |long: usize| Question::Tool {
            about: About {
                tool: "t".to_owned(),
                description: "d".to_owned(),
                args: json!({"a": format!("{} && git push {}", "x".repeat(long), "y".repeat(long)), "z": "delete everything"}),
                tier: "execute",
                risk: "high",
                estimates: vec![("takes", "45s".to_owned()), ("costs", "$0.30".to_owned())],
            },
            does: Vec::new(),
            file: "/w/t.yml".to_owned(),
            folder: "/w".to_owned(),
            image: Some("other:1".to_owned()),
            policy: "develop".to_owned(),
            asks: vec![("run", "npm test*".to_owned()), ("write", "out/**".to_owned())],
        };
        // What fits is shown whole, at a terminal and by its id.
        let it = question(2_000);
        let record = it.record(&Redactor::new()).to_string();
        assert!(it.fits() && !record.contains(HIDDEN));
        for text in [format!("{:?}", it.lines()), record] {
            assert!(text.contains("x && git push y") && text.contains("delete everything"));
        }
        // What does not is not asked, and what is kept of it says so.
        let it = question(9_000);
        let text = it.record(&Redactor::new()).to_string();
        assert!(!it.fits() && text.contains(&format!("[\"{HIDDEN}\",")), "{text}");
        for part in
            ["delete everything", "npm test*", "out/**", "/w/t.yml", "develop", "other:1", "$0.30"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.len() < 2_000);
    }

    #[test]
    fn what_a_secret_hides_beside_itself_is_told() {
        let record = |command: &str| {
            let question = Question::Command {
                tool: None,
                command: command.to_owned(),
                folder: "/w".to_owned(),
                image: None,
                effects: Vec::new(),
                headers: Vec::new(),
                fed: None,
                reason: None,
                rule: None,
                holds: None,
            };
            question.record(&Redactor::new()).to_string()
        };
        for (command, shown) in [
            ("git commit -m authorization:x && git push --force", "&& git push --force"),
            (
                "curl -H 'Authorization: Bearer abc' https://h.example",
                "'Authorization: [redacted]' h",
            ),
            ("PGPASSWORD=hunter2 psql", "psql"),
            ("x TOKEN=\"$(git push --force)\"", "git push --force"),
        ] {
            let text = record(command).replace("https://", "");
            assert!(text.contains(shown) && !text.contains(HIDDEN), "{text}");
            assert!(!text.contains("abc") && !text.contains("hunter2"), "{text}");
        }
        for command in [
            "x 'cookie: a; git push --force'",
            "x '[redacted] [redacted] authorization: a b'",
            "x 'authorization: a b c'",
        ] {
            assert!(record(command).contains(HIDDEN), "{command}");
        }
    }
}
