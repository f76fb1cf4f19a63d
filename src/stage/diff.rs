//! A readable difference between what the host has under a name and what a stage has.
//!
//! Duty: lines for people, each of a kind, with hunks as in a unified diff. Non-goals: reading
//! files (the caller does, and bounds them), colours (the command line does), patches for programs.
//! Trust boundary: contents, targets and paths are the adversary's. What a terminal obeys or a
//! reader does not see becomes an escape. No line of a file looks like a heading or a note: those
//! never begin with the marks of lines, as the `---` of patches does.

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use crate::text::{counted, is_deceptive, push_escaped};

/// Longest content that is compared.
pub const MAX_CONTENT: usize = 1024 * 1024;

/// Most lines of one side. The time of a comparison grows faster than their number.
const MAX_LINES: usize = 50_000;

/// Lines around a change.
const CONTEXT: usize = 3;

/// A NUL within these makes a file binary, as in git.
const BINARY_WITHIN: usize = 8000;

/// What one side has under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side<'a> {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// What is known of its content.
        content: Content<'a>,
        /// Permission bits.
        mode: u32,
    },
    /// A symlink.
    Link {
        /// Its target, as written.
        target: &'a [u8],
    },
    /// A folder.
    Folder {
        /// Permission bits.
        mode: u32,
    },
    /// A pipe, a socket or a device.
    Special,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// All of it.
    Bytes(&'a [u8]),
    /// Not read, because it is longer than [`MAX_CONTENT`].
    TooLong {
        /// Its length.
        size: u64,
    },
}

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its kind.
    pub kind: Kind,
    /// Without mark and line end. Nothing in it is obeyed by a terminal; tabs stay.
    pub text: String,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The path.
    Heading,
    /// About the whole file: its kind, its permissions, why no lines are shown.
    Note,
    /// Where the next lines are: `@@ -1,3 +1,4 @@`.
    Hunk,
    /// The same on both sides.
    Context,
    /// Only the host has it.
    Removed,
    /// Only the stage has it.
    Added,
    /// The line above has no line end.
    NoLineEnd,
}

impl Kind {
    /// What stands before the text.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Heading => "=== ",
            Self::Hunk => "",
            Self::Note => "= ",
            Self::Context => " ",
            Self::Removed => "-",
            Self::Added => "+",
            Self::NoLineEnd => "\\ ",
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}{}", self.kind.mark(), self.text)
    }
}

/// The difference under one path; nothing if there is none. After `deadline` the comparison becomes
/// coarse: more lines are shown as changed than need be.
#[must_use]
pub fn diff(path: &[u8], host: Side<'_>, staged: Side<'_>, deadline: Instant) -> Vec<Line> {
    let mut lines = Vec::new();
    if host == staged && !is_unread(host) {
        return lines;
    }
    push(&mut lines, Kind::Heading, visible(path, Tabs::Escaped));
    if let Some(note) = note(host, staged) {
        push(&mut lines, Kind::Note, note);
    }
    if let Side::Link { target } = host {
        push(&mut lines, Kind::Removed, visible(target, Tabs::Escaped));
    }
    match (Text::of(host), Text::of(staged)) {
        (Text::Lines(old), Text::Lines(new)) => compare(&mut lines, &old, &new, deadline),
        (Text::TooLong, _) | (_, Text::TooLong) => {
            push(&mut lines, Kind::Note, format!("too long to show: {}", sizes(host, staged)));
        }
        (Text::Binary, _) | (_, Text::Binary) => {
            push(&mut lines, Kind::Note, format!("binary: {}", sizes(host, staged)));
        }
    }
    if let Side::Link { target } = staged {
        push(&mut lines, Kind::Added, visible(target, Tabs::Escaped));
    }
    lines
}

/// A side as it is compared.
enum Text<'a> {
    /// With their line ends.
    Lines(Vec<&'a [u8]>),
    Binary,
    TooLong,
}

impl<'a> Text<'a> {
    fn of(side: Side<'a>) -> Self {
        let bytes = match side {
            // The target of a symlink has no lines.
            Side::Absent | Side::Link { .. } | Side::Folder { .. } | Side::Special => &[],
            Side::File { content: Content::TooLong { .. }, .. } => return Self::TooLong,
            Side::File { content: Content::Bytes(bytes), .. } => bytes,
        };
        if bytes.len() > MAX_CONTENT {
            return Self::TooLong;
        }
        if bytes.iter().take(BINARY_WITHIN).any(|byte| *byte == 0) {
            return Self::Binary;
        }
        let lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() > MAX_LINES { Self::TooLong } else { Self::Lines(lines) }
    }
}

fn is_unread(side: Side<'_>) -> bool {
    matches!(side, Side::File { content: Content::TooLong { .. }, .. })
}

/// What happened to the file as a whole.
fn note(host: Side<'_>, staged: Side<'_>) -> Option<String> {
    let with_mode = |side: Side<'_>| match side {
        Side::File { mode, .. } | Side::Folder { mode } => {
            format!("{}, mode {}", noun(side), octal(mode))
        }
        _ => noun(side).to_owned(),
    };
    match (host, staged) {
        (Side::Absent, new) => Some(format!("new {}", with_mode(new))),
        (old, Side::Absent) => Some(format!("removed {}", noun(old))),
        (old, new) if noun(old) != noun(new) => {
            Some(format!("{} becomes {}", noun(old), with_mode(new)))
        }
        (Side::File { mode: old, .. }, Side::File { mode: new, .. })
        | (Side::Folder { mode: old }, Side::Folder { mode: new })
            if old != new =>
        {
            Some(format!("mode {} becomes {}", octal(old), octal(new)))
        }
        (Side::Link { .. }, _) => Some("symlink".to_owned()),
        _ => None,
    }
}

fn noun(side: Side<'_>) -> &'static str {
    match side {
        Side::Absent => "nothing",
        Side::File { .. } => "file",
        Side::Link { .. } => "symlink",
        Side::Folder { .. } => "folder",
        Side::Special => "special file",
    }
}

fn octal(mode: u32) -> String {
    format!("{:03o}", mode & 0o7777)
}

fn sizes(host: Side<'_>, staged: Side<'_>) -> String {
    let size = |side| {
        let size = match side {
            Side::File { content: Content::TooLong { size }, .. } => size,
            Side::File { content: Content::Bytes(bytes), .. } => bytes.len() as u64,
            _ => return None,
        };
        Some(usize::try_from(size).map_or_else(|_| size.to_string(), |n| counted(n, "byte")))
    };
    match (size(host), size(staged)) {
        (Some(old), Some(new)) => format!("{old} before, {new} now"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

fn compare(lines: &mut Vec<Line>, old: &[&[u8]], new: &[&[u8]], deadline: Instant) {
    let changes = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline));
    for hunk in group_diff_ops(changes, CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let [removed, added] = [DiffOp::old_range, DiffOp::new_range]
            .map(|side: fn(&DiffOp) -> Range<usize>| side(first).start..side(last).end);
        let heading = format!("@@ -{} +{} @@", span(&removed), span(&added));
        push(lines, Kind::Hunk, heading);
        for change in hunk {
            if let DiffOp::Equal { .. } = change {
                push_lines(lines, Kind::Context, &old[change.old_range()]);
            } else {
                push_lines(lines, Kind::Removed, &old[change.old_range()]);
                push_lines(lines, Kind::Added, &new[change.new_range()]);
            }
        }
    }
}

/// Lines as a hunk's heading names them: counted from 1, and the line before if there are none.
fn span(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn push_lines(lines: &mut Vec<Line>, kind: Kind, more: &[&[u8]]) {
    for line in more {
        let (text, ended) = match line.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (*line, false),
        };
        push(lines, kind, visible(text, Tabs::Kept));
        if !ended {
            push(lines, Kind::NoLineEnd, "no line end at the end of the file".to_owned());
        }
    }
}

fn push(lines: &mut Vec<Line>, kind: Kind, text: String) {
    lines.push(Line { kind, text });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tabs {
    Kept,
    Escaped,
}

/// Foreign bytes on one line. Bytes that are no text become `\xNN` too.
fn visible(bytes: &[u8], tabs: Tabs) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_deceptive(c) && !(c == '\t' && tabs == Tabs::Kept) {
                push_escaped(&mut shown, c);
            } else {
                shown.push(c);
            }
        }
        for byte in chunk.invalid() {
            push_escaped(&mut shown, char::from(*byte));
        }
    }
    shown
}
