//! What a decision lets run, in the form in which it was judged.
//!
//! Only a decision holds a [`Plan`], and only reading a command makes one: its fields are private. The host turns it
//! into the order for the guest, which executes it. A line in it is executed by the guest and by no shell. Where a real
//! shell gets text, that shell is a program with arguments in the plan, and the reading has the effect `code` there.

use std::collections::{BTreeMap, BTreeSet};

use crate::shell::{Command, Part, Script, SimpleCommand};

/// The shells within each other that a plan can have. A command in more of them is for a real shell. The guest reads
/// nested plans recursively.
pub(crate) const MAX_SHELLS: usize = 8;

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    argv: Vec<Vec<u8>>,
    line: Option<PlannedLine>,
    /// A line that only a shell reads.
    shell: Option<String>,
}

/// A line that the guest executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLine {
    script: Script,
    notes: Notes,
    options: LineOptions,
}

/// What judging found out about the commands and words of a line, by where they begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Commands whose last words are a line.
    pub inner: BTreeMap<u32, Inner>,
    /// What was assumed of words that are not known before the line runs.
    pub assumed: BTreeMap<u32, Assumed>,
    /// Variables that were judged as if an assignment alone put them into the environment.
    pub exported: BTreeSet<(u32, String)>,
}

/// What was assumed of a word that is expanded when the line runs. The guest starts nothing with a word of which this is
/// not true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assumed {
    /// Nothing: whatever it becomes, the command does no harm.
    Nothing,
    /// It becomes one of these lists of words, each spelled as by [`crate::shell::Word::spelling`].
    Exactly(BTreeSet<Vec<String>>),
    /// It becomes words of which none begins with `-`, and more if there is a demand.
    NoOption {
        /// How many.
        many: bool,
        /// What else.
        demand: Option<Demand>,
    },
}

/// What else a word must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// A path of the workspace, or of the sandbox's scratch.
    Inside,
    /// The same, without a colon, behind which programs read something else.
    InsideWithoutColon,
}

/// `timeout 5 sh -c LINE`: some words, and a line in place of the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    words: usize,
    line: PlannedLine,
}

/// Options of a shell that change how its line runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineOptions {
    /// `-e`: the line ends at the first list that fails.
    pub errexit: bool,
    /// `-o pipefail`: a pipeline fails with any of its commands.
    pub pipefail: bool,
    /// `-u`: the line ends at a variable that is not set.
    pub nounset: bool,
}

impl Plan {
    /// A program with its arguments; the last of them can be a line.
    pub(crate) fn argv(argv: &[Vec<u8>], inner: Option<Inner>) -> Self {
        match inner {
            Some(Inner { words, line }) => {
                let argv = argv.iter().take(words).cloned().collect();
                Self { argv, line: Some(line), shell: None }
            }
            None => Self { argv: argv.to_vec(), line: None, shell: None },
        }
    }

    /// A line, or a real shell for what only a shell can read.
    pub(crate) fn line_or_shell(line: Option<PlannedLine>, text: &str) -> Self {
        match line {
            Some(line) => Self { argv: Vec::new(), line: Some(line), shell: None },
            None => Self {
                argv: ["sh", "-c", text].map(|word| word.as_bytes().to_vec()).to_vec(),
                line: None,
                shell: Some(text.to_owned()),
            },
        }
    }

    /// The program and its arguments, before the line if there is one. Empty if the line is all.
    #[must_use]
    pub fn words(&self) -> &[Vec<u8>] {
        &self.argv
    }

    /// The line that only a shell reads: it runs in `bash` where the sandbox has one, else in `sh`, and
    /// then the words are the plan. Text that the caller gave to `sh -c` is not such a line.
    #[must_use]
    pub fn shell(&self) -> Option<&str> {
        self.shell.as_deref()
    }

    /// The line that the guest executes, started by the words if there are any.
    #[must_use]
    pub fn line(&self) -> Option<&PlannedLine> {
        self.line.as_ref()
    }
}

impl PlannedLine {
    pub(crate) fn new(script: Script, notes: Notes) -> Self {
        Self { script, notes, options: LineOptions::default() }
    }

    pub(crate) fn with(mut self, options: LineOptions) -> Self {
        self.options = options;
        self
    }

    /// How it runs.
    #[must_use]
    pub fn options(&self) -> LineOptions {
        self.options
    }

    /// The lists, pipelines and commands.
    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// The line that the last words of a command of this script are.
    #[must_use]
    pub fn inner(&self, command: &SimpleCommand) -> Option<&Inner> {
        self.notes.inner.get(&command.at.start)
    }

    /// What was assumed of a word of this script that is expanded when it runs.
    #[must_use]
    pub fn assumed(&self, word: &crate::shell::Word) -> Option<&Assumed> {
        self.notes.assumed.get(&word.at.start)
    }

    /// Whether setting this variable was judged as a change of the environment, in the command that begins there.
    #[must_use]
    pub fn is_exported(&self, at: crate::shell::Span, name: &str) -> bool {
        self.notes.exported.contains(&(at.start, name.to_owned()))
    }

    /// Every command, with its inner line.
    pub fn commands(&self) -> impl Iterator<Item = (&SimpleCommand, Option<&Inner>)> {
        self.script.commands().map(|command| (command, self.inner(command)))
    }

    /// Whether it is no more than pipelines of simple commands whose words are known, or are patterns. The guest
    /// executes such a line in a simpler way.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let plain = |command: &Command| {
            let Some(simple) = command.simple() else { return false };
            let stateful = |name| {
                // `cd` among them: `..` takes away the last name of where the line is, also that of a symlink.
                matches!(
                    name,
                    "cd" | "read" | "set" | "unset" | "exit" | "break" | "continue" | "command"
                )
            };
            let first = simple.words.first();
            let bare_export = || {
                let text =
                    |word: &crate::shell::Word| word.literal().is_some_and(|it| !it.contains('='));
                simple.words.iter().skip(1).any(text)
            };
            let name = first.and_then(|word| word.literal());
            let assigns = first.is_none() && !simple.assignments.is_empty();
            let held = |word: &crate::shell::Word| {
                word.parts.iter().any(|part| matches!(part, Part::Expansion { .. }))
            };
            let needs_state = assigns
                || name.is_some_and(stateful)
                || (name == Some("export") && bare_export())
                || command.words().any(held);
            !needs_state && self.inner(simple).is_none_or(|inner| inner.line.is_plain())
        };
        self.script
            .pipelines()
            .all(|pipeline| !pipeline.timed && pipeline.commands.iter().all(plain))
    }
}

impl Inner {
    pub(crate) fn new(line: PlannedLine) -> Self {
        Self { words: 0, line }
    }

    /// The same, behind more words.
    pub(crate) fn behind(mut self, words: usize) -> Self {
        self.words += words;
        self
    }

    /// How many words of the command are executed as they are. The others are this line.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The line.
    #[must_use]
    pub fn line(&self) -> &PlannedLine {
        &self.line
    }
}
