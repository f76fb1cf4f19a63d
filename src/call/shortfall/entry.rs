//! One thing that the sandbox kept from a command.

use serde::Serialize;

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A limit was met, or there is too little of something.
    Limit,
    /// There is no network.
    NoNetwork,
    /// A name that the command wants to reach, and no rule allows or nothing answers.
    NotReached,
    /// A place that cannot be written.
    ReadOnly,
    /// Something of the host that the sandbox does not show.
    OutsideSandbox,
    /// A denied path, which lies under a cover.
    Covered,
    /// Credentials of a toolchain, which lie under a cover.
    HiddenCredentials,
    /// A folder whose files cannot be executed.
    NoPrograms,
    /// Processes that ran on when the command had ended.
    Background,
    /// Output that the result does not hold.
    OutputCut,
}

impl Kind {
    /// Every kind with its word and what it means. A test holds the table of `docs/reference` equal to it.
    pub const TABLE: [(Self, &str, &str); 10] = [
        (Self::Limit, "limit", "A limit was met, or the command says that it has too little."),
        (Self::NoNetwork, "no_network", "The command wants the network; a sandbox has none."),
        (
            Self::NotReached,
            "not_reached",
            "A name and port that the command asked for and did not reach.",
        ),
        (Self::ReadOnly, "read_only", "The command wants to write where nothing can be written."),
        (
            Self::OutsideSandbox,
            "outside_sandbox",
            "A file or program of the host that the sandbox does not show.",
        ),
        (
            Self::Covered,
            "covered",
            "A denied path: it reads as empty, or cannot be opened. Told also if nothing failed.",
        ),
        (
            Self::HiddenCredentials,
            "hidden_credentials",
            "Credentials in a folder of a toolchain, which no command can read.",
        ),
        (Self::NoPrograms, "no_programs", "A scratch folder in which no program can be started."),
        (
            Self::Background,
            "background",
            "Processes that still ran when the command had ended; they ended with the call.",
        ),
        (Self::OutputCut, "output_cut", "Output that is not in the result."),
    ];
}

/// One thing that the sandbox kept from a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortfall {
    /// What kind of thing.
    pub code: Kind,
    /// The path that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its name, if it is no path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port that the command asked for, if it is about a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Why, as what is said of the path or the name.
    pub why: String,
    /// `policy/id` of the rule behind it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What the caller can do.
    pub next: String,
}

impl Shortfall {
    /// About a path.
    pub(super) fn of_path(code: Kind, path: impl Into<String>, why: String, next: String) -> Self {
        Self { code, path: Some(path.into()), name: None, port: None, why, rule: None, next }
    }

    /// About something with a name.
    pub(super) fn of_name(code: Kind, name: impl Into<String>, why: String, next: String) -> Self {
        Self { code, path: None, name: Some(name.into()), port: None, why, rule: None, next }
    }

    /// By this rule.
    pub(super) fn by(self, rule: Option<String>) -> Self {
        Self { rule, ..self }
    }

    /// For people.
    #[must_use]
    pub fn sentence(&self) -> String {
        if self.code == Kind::NotReached {
            return format!("{}; {}", self.why, self.next);
        }
        let subject = self.path.as_deref().or(self.name.as_deref()).unwrap_or_default();
        format!("{subject} {}; {}", self.why, self.next)
    }
}

/// A name, and the port if it is known, that a command did not reach.
pub(in crate::call) fn not_reached(
    (name, port): (&str, Option<u16>),
    why: String,
    rule: Option<String>,
    next: String,
) -> Shortfall {
    let entry = Shortfall::of_name(Kind::NotReached, name, why, next).by(rule);
    Shortfall { port, ..entry }
}

/// One line for people: the first entry, and how many more there are. `told` says of an entry that something else has
/// told it already.
#[must_use]
pub fn line(entries: &[Shortfall], told: impl Fn(&Shortfall) -> bool) -> Option<String> {
    let mut untold = entries.iter().filter(|entry| !told(entry));
    let first = untold.next()?.sentence();
    Some(match untold.count() {
        0 => first,
        more => format!("{first} (and {more} more; --json has all)"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Shortfall {
        let (why, next) = ("is not there".to_owned(), "do without".to_owned());
        Shortfall::of_name(Kind::NoNetwork, name, why, next)
    }

    #[test]
    fn a_kind_has_the_word_of_its_row() {
        for (kind, word, _) in Kind::TABLE {
            assert_eq!(serde_json::to_value(kind).unwrap(), word);
        }
    }

    #[test]
    fn a_line_has_the_first_that_is_not_told_and_counts_the_rest() {
        let entries = [entry("a"), entry("b"), entry("c")];
        let none = |_: &Shortfall| false;
        let all = line(&entries, none).unwrap();
        assert_eq!(all, "a is not there; do without (and 2 more; --json has all)");
        assert_eq!(line(&entries[..1], none).unwrap(), "a is not there; do without");
        let but_a = line(&entries[..2], |entry| entry.name.as_deref() == Some("a"));
        assert_eq!(but_a.unwrap(), "b is not there; do without");
        assert_eq!(line(&entries, |_| true), None);
    }
}
