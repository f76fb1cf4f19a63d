//! What a decision lets run, in the form in which it was judged.
//!
//! Only a decision holds a [`Plan`], and only reading a command makes one: its fields are private. The host turns it
//! into the order for the guest, which executes it. A line in it is executed by the guest and by no shell. Where a real
//! shell gets text, that shell is a program with arguments in the plan, and the reading has the effect `code` there.

use crate::shell::{Script, SimpleCommand};

/// The shells within each other that a plan can have. A command in more of them is for a real shell. The guest reads
/// nested plans recursively.
pub(crate) const MAX_SHELLS: usize = 8;

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    argv: Vec<Vec<u8>>,
    line: Option<PlannedLine>,
}

/// A line that the guest executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLine {
    script: Script,
    /// For each command of the script, in order: the line that its last words are.
    inner: Vec<Option<Inner>>,
    options: LineOptions,
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
}

impl Plan {
    /// A program with its arguments; the last of them can be a line.
    pub(crate) fn argv(argv: &[Vec<u8>], inner: Option<Inner>) -> Self {
        match inner {
            Some(Inner { words, line }) => {
                Self { argv: argv.iter().take(words).cloned().collect(), line: Some(line) }
            }
            None => Self { argv: argv.to_vec(), line: None },
        }
    }

    /// A line, or a real shell for what only a shell can read.
    pub(crate) fn line_or_shell(line: Option<PlannedLine>, text: &str) -> Self {
        match line {
            Some(line) => Self { argv: Vec::new(), line: Some(line) },
            None => Self {
                argv: ["sh", "-c", text].map(|word| word.as_bytes().to_vec()).to_vec(),
                line: None,
            },
        }
    }

    /// The program and its arguments, before the line if there is one. Empty if the line is all.
    #[must_use]
    pub fn words(&self) -> &[Vec<u8>] {
        &self.argv
    }

    /// The line that the guest executes, started by the words if there are any.
    #[must_use]
    pub fn line(&self) -> Option<&PlannedLine> {
        self.line.as_ref()
    }
}

impl PlannedLine {
    /// `inner` has an entry for each command of the script.
    pub(crate) fn new(script: Script, inner: Vec<Option<Inner>>) -> Self {
        Self { script, inner, options: LineOptions::default() }
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

    /// Which commands have a line in place of their last words, in the order of the script's commands.
    pub fn inner(&self) -> impl Iterator<Item = Option<&Inner>> {
        self.inner.iter().map(Option::as_ref)
    }

    /// Every command, with its inner line.
    pub fn commands(&self) -> impl Iterator<Item = (&SimpleCommand, Option<&Inner>)> {
        self.script.commands().zip(self.inner())
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
