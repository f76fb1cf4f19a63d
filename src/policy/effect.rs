//! Effects: what a command does, read from its arguments.

use serde::{Deserialize, Serialize};

/// The classes that a rule's `effects:` can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Reads files.
    Read,
    /// Writes, deletes, renames files or changes their metadata.
    Write,
    /// Reaches the net.
    Net,
    /// Runs code that is not read here.
    Code,
    /// Changes the machine or other processes.
    System,
    /// Something that the catalog does not know.
    Unknown,
}

impl Class {
    /// Every class with its word.
    pub const ALL: [(&'static str, Self); 6] = [
        ("read", Self::Read),
        ("write", Self::Write),
        ("net", Self::Net),
        ("code", Self::Code),
        ("system", Self::System),
        ("unknown", Self::Unknown),
    ];

    /// The word it is written as.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// The class written as this word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, class)| *class)
    }
}

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Classes(u8);

impl Classes {
    /// Every class.
    pub const ANY: Self = Self(0b11_1111);

    /// With one more class.
    #[must_use]
    pub fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Whether the class is in it. Who may run code may do what is not known: both are unread.
    #[must_use]
    pub fn grants(self, class: Class) -> bool {
        let has = |class: Class| self.0 & (1 << class as u8) != 0;
        has(class) || (class == Class::Unknown && has(Class::Code))
    }

    /// Whether the class itself was named.
    #[must_use]
    pub fn contains(self, class: Class) -> bool {
        self.0 & (1 << class as u8) != 0
    }

    /// In both.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// In either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The classes in order.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().map(|(_, class)| class).filter(move |class| self.contains(*class))
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().fold(Self::default(), Self::with)
    }
}

impl Serialize for Classes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<Class>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Classes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Class>::deserialize(deserializer).map(Self::from_iter)
    }
}

/// What a path effect is about. Paths are absolute and free of `.`, `..` and doubled slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Exactly this.
    Exact(String),
    /// This and everything below.
    Tree(String),
    /// Things below this, which itself stays what it is.
    Below(String),
    /// What a pattern matches.
    Glob(String),
    /// Every name that begins with this.
    Prefix(String),
    /// Not known before it runs.
    Any,
}

impl Place {
    /// As it is shown to people.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Exact(path) | Self::Glob(path) => path.clone(),
            Self::Tree(path) | Self::Below(path) => format!("{}/**", path.trim_end_matches('/')),
            Self::Prefix(path) => format!("{path}*"),
            Self::Any => "files that are not known before it runs".to_owned(),
        }
    }
}

/// What is reached over the net.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A request.
    Request {
        /// The HTTP method.
        method: String,
        /// The URL as written.
        url: String,
    },
    /// A connection to `HOST` or `HOST:PORT`.
    Connect(String),
    /// Not known before it runs.
    Any,
}

/// One thing that a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Reads a file.
    Read(Place),
    /// Writes, deletes, renames a file, or changes its metadata.
    Write(Place),
    /// Reaches the net.
    Net(Peer),
    /// Sets a variable for what it executes.
    Env(String),
    /// Runs code.
    Code,
    /// Changes the machine.
    System,
    /// Nobody knows.
    Unknown,
}

impl Effect {
    /// The class that a rule must grant; setting a variable is judged by `env.accept` alone.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        match self {
            Self::Read(_) => Some(Class::Read),
            Self::Write(_) => Some(Class::Write),
            Self::Net(_) => Some(Class::Net),
            Self::Env(_) => None,
            Self::Code => Some(Class::Code),
            Self::System => Some(Class::System),
            Self::Unknown => Some(Class::Unknown),
        }
    }

    /// In words.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Read(place) => format!("read {}", place.show()),
            Self::Write(place) => format!("write {}", place.show()),
            Self::Net(Peer::Request { method, url }) => format!("net {method} {url}"),
            Self::Net(Peer::Connect(host)) => format!("net connect {host}"),
            Self::Net(Peer::Any) => "net, to a peer that is not known before it runs".to_owned(),
            Self::Env(name) => format!("env {name}"),
            Self::Code => "code".to_owned(),
            Self::System => "system".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// An effect and the words it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caused {
    /// The effect.
    pub effect: Effect,
    /// The option or operand, as written, or what else explains it.
    pub by: String,
}
