//! Words: arguments as far as they are known before the command runs.

/// One argument, or several that are not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Exactly this text.
    Lit(String),
    /// A shell pattern that expands to names of files.
    Glob(String),
    /// Exactly one word that begins with this text and goes on in an unknown way.
    Starts(String),
    /// A path at or below one of these, found when the command runs. Never an option.
    Found(Vec<String>),
    /// One or more such paths: `{} +`.
    FoundMany(Vec<String>),
    /// Any number of words, from standard input. Options too.
    Any,
    /// A word of a shell line that is expanded when the line runs. The guest holds it to what was assumed.
    Later(Later),
}

/// A word of a shell line that is not known before the line runs. Never an option, unless it begins like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// Where it stands in the line.
    pub site: u32,
    /// What it begins with.
    pub before: String,
    /// Whether it can be several words.
    pub many: bool,
}

impl Word {
    /// A word that is known.
    pub fn lit(text: impl Into<String>) -> Self {
        Self::Lit(text.into())
    }

    /// The text, if it is known.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Lit(text) => Some(text),
            _ => None,
        }
    }

    /// The fewest and the most arguments that it stands for.
    #[must_use]
    pub fn how_many(&self) -> (usize, usize) {
        match self {
            Self::Lit(_) | Self::Starts(_) | Self::Found(_) => (1, 1),
            Self::Later(later) if !later.many => (1, 1),
            // A pattern without a match stays as it is.
            Self::Glob(_) | Self::FoundMany(_) | Self::Later(_) => (1, usize::MAX),
            Self::Any => (0, usize::MAX),
        }
    }

    /// Whether it could be taken for an option.
    #[must_use]
    pub fn may_be_option(&self) -> bool {
        match self {
            Self::Lit(text) => text.len() > 1 && text.starts_with('-'),
            Self::Glob(text) => text.starts_with(['-', '*', '?', '[']),
            Self::Starts(text) => text.is_empty() || text.starts_with('-'),
            Self::Found(_) | Self::FoundMany(_) => false,
            Self::Later(later) => later.before.starts_with('-'),
            Self::Any => true,
        }
    }

    /// As it is shown to people.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Lit(text) => quoted(text),
            Self::Glob(text) => text.clone(),
            Self::Starts(text) => format!("{text}…"),
            Self::Found(_) | Self::FoundMany(_) => "{}".to_owned(),
            Self::Later(later) => format!("{}…", later.before),
            Self::Any => "…".to_owned(),
        }
    }
}

/// Text as one word of a shell line.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
