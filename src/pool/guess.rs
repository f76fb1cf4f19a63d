//! What a sandbox will most likely be, before it is planned.

use std::ffi::OsString;
use std::path::Path;

use runner_policy::limits::Limits;
use serde::{Deserialize, Serialize};

use super::entry::Class;
use super::key::digest;
use crate::engine::{Address, container_limits};

/// Calls of one guess have the same key as long as nothing changes that a plan looks at. It decides nothing: a wrong
/// one costs a sandbox that waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guess(String);

/// What a call knows without looking.
#[derive(Debug, Serialize)]
pub struct GuessFacts<'a> {
    /// The engine.
    pub address: &'a Address,
    /// What the engine makes sandboxes from besides their plans.
    pub recipe: &'a str,
    /// The project whose call this is.
    pub project: &'a Path,
    /// The digest of the policy and all that it extends.
    pub policy_digest: &'a str,
    /// What the sandbox is for.
    pub class: Class,
    /// The image, by its name.
    pub image: &'a str,
    /// The runtime that the policy names.
    pub runtime: Option<&'a str>,
    /// The figures in force.
    #[serde(serialize_with = "container_limits::serialize")]
    pub limits: &'a Limits,
    /// Where toolchains are looked for.
    pub home: Option<OsString>,
    /// The same.
    pub path: Option<OsString>,
}

impl Guess {
    /// The guess from these; `None` if one of them cannot be written down.
    #[must_use]
    pub fn of(facts: &GuessFacts<'_>) -> Option<Self> {
        digest(facts).map(Self)
    }
}
