//! Which engines there are, and which of them may be used.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An engine, by its name in policies, options and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// Containers of a Docker daemon.
    Docker,
    /// Sandboxes that this machine's kernel makes, without a daemon.
    Embedded,
}

impl EngineName {
    /// Every engine, in the order in which `auto` tries them.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Embedded];

    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Embedded => "embedded",
        }
    }

    /// What a caller is told who lets several engines be tried, when this one is found and another was before.
    #[must_use]
    pub const fn found_now(self) -> &'static str {
        match self {
            Self::Docker => "sandboxes are made by Docker from now on: it answers",
            Self::Embedded => {
                "sandboxes are made by the embedded engine from now on: no Docker engine answers this user \
                 (`engine: docker` in the configuration makes that an error)"
            }
        }
    }

    /// The engine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.as_str() == name)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The engines that may be used, in the order in which they are tried. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    first: EngineName,
    others: Vec<EngineName>,
}

impl Choice {
    /// What `--engine` takes.
    pub const WORDS: [&str; 3] =
        [Self::AUTO, EngineName::Docker.as_str(), EngineName::Embedded.as_str()];

    /// Whichever engine answers first.
    pub const AUTO: &str = "auto";

    fn of(names: impl IntoIterator<Item = EngineName>) -> Option<Self> {
        let mut names = names.into_iter();
        Some(Self { first: names.next()?, others: names.collect() })
    }

    /// The engine that is tried first.
    #[must_use]
    pub fn first(&self) -> EngineName {
        self.first
    }

    /// Those that are tried if it is not there, in order.
    pub fn others(&self) -> impl Iterator<Item = EngineName> + '_ {
        self.others.iter().copied()
    }

    /// Those of them that another choice has too; `None` if there are none.
    #[must_use]
    pub fn within(&self, other: &Self) -> Option<Self> {
        let names: Vec<&str> =
            std::iter::once(other.first).chain(other.others()).map(EngineName::as_str).collect();
        self.among(&names)
    }

    /// Those of them that a policy allows; `None` if it allows none.
    #[must_use]
    pub fn among(&self, allowed: &[&str]) -> Option<Self> {
        let names = std::iter::once(self.first).chain(self.others());
        Self::of(names.filter(|name| allowed.contains(&name.as_str())))
    }
}

impl Default for Choice {
    /// `auto`.
    fn default() -> Self {
        let [first, others @ ..] = EngineName::ALL;
        Self { first, others: others.to_vec() }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others.iter().try_for_each(|name| write!(f, ", {name}"))
    }
}

impl From<EngineName> for Choice {
    fn from(first: EngineName) -> Self {
        Self { first, others: Vec::new() }
    }
}

/// A word that names no engine of this program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this runner has no engine `{0}`; use {words}", words = Choice::WORDS.join(" or "))]
pub struct UnknownEngine(String);

impl FromStr for Choice {
    type Err = UnknownEngine;

    fn from_str(word: &str) -> Result<Self, UnknownEngine> {
        match (word, EngineName::named(word)) {
            (Self::AUTO, _) => Ok(Self::default()),
            (_, Some(name)) => Ok(name.into()),
            (_, None) => Err(UnknownEngine(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_is_offered_is_taken_and_no_other() {
        for word in Choice::WORDS {
            assert!(word.parse::<Choice>().is_ok(), "{word}");
        }
        assert_eq!(Choice::WORDS[1..], EngineName::ALL.map(EngineName::as_str));
        assert_eq!(
            "podman".parse::<Choice>().unwrap_err().to_string(),
            "this runner has no engine `podman`; use auto or docker or embedded"
        );
    }

    #[test]
    fn a_policy_narrows_a_choice_and_never_widens_it() {
        let auto = Choice::default();
        assert_eq!(auto.among(&["embedded", "docker"]), Some(auto.clone()));
        assert_eq!(auto.among(&["docker"]), Some(EngineName::Docker.into()));
        assert_eq!(auto.among(&["embedded"]), Some(EngineName::Embedded.into()));
        assert_eq!(auto.among(&[]), None);
    }
}
