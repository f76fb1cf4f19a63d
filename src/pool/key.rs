//! The key of a waiting sandbox: everything about it that cannot change.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use runner_wire::Start;
use serde::{Deserialize, Serialize};

use super::entry::Class;
use crate::engine::docker;
use crate::sandbox::plan::SandboxPlan;

/// Changes whenever what a key is made from does.
const FORMAT: u32 = 1;

/// A sandbox may be claimed by calls of this key alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key(String);

/// Where a key belongs: the same workspace, policy and figures, whatever stands in them today. One lane has one
/// key at a time; entries of its earlier keys are of no use to anybody.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lane(String);

/// What a call wants a sandbox for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The plan, made afresh.
    pub plan: &'a SandboxPlan,
    /// The engine's own identity.
    pub engine: &'a str,
    /// The policy's name.
    pub policy: &'a str,
    /// The digest of the policy and all that it extends.
    pub policy_digest: &'a str,
    /// What the sandbox is for.
    pub class: Class,
    /// What is started before the claim.
    pub prestart: Option<&'a Start>,
}

#[derive(Serialize)]
struct KeyFacts<'a> {
    format: u32,
    recipe: &'a str,
    engine: &'a str,
    policy_digest: &'a str,
    class: Class,
    plan: &'a SandboxPlan,
    hidden: Vec<Option<(i64, i64)>>,
    prestart: Option<&'a Start>,
}

#[derive(Serialize)]
struct LaneFacts<'a> {
    engine: &'a str,
    workspace: &'a Path,
    policy: &'a str,
    class: Class,
    image: &'a crate::sandbox::plan::Image,
    runtime: Option<&'a crate::sandbox::plan::Runtime>,
    limits: serde_json::Value,
}

impl Wanted<'_> {
    /// The key; `None` if the plan has a path that no engine can carry.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        let facts = KeyFacts {
            format: FORMAT,
            recipe: docker::recipe(),
            engine: self.engine,
            policy_digest: self.policy_digest,
            class: self.class,
            plan: self.plan,
            hidden: self.plan.masks.iter().map(|mask| changed(&mask.target)).collect(),
            prestart: self.prestart,
        };
        digest(&facts).map(Key)
    }

    /// The workspace that the sandbox shows; a tool's shows none, and serves any.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        match self.class {
            Class::Read | Class::Write => &self.plan.workspace,
            Class::Tool => Path::new(""),
        }
    }

    /// The lane.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        let plan = serde_json::to_value(self.plan).ok()?;
        let facts = LaneFacts {
            engine: self.engine,
            workspace: self.workspace(),
            policy: self.policy,
            class: self.class,
            image: &self.plan.image,
            runtime: self.plan.runtime.as_ref(),
            limits: plan["limits"].clone(),
        };
        digest(&facts).map(Lane)
    }
}

/// When a hidden path was last changed. Inode numbers are used again: a file that was replaced twice may have its
/// first number, and the cover over it is gone all the same.
fn changed(path: &Path) -> Option<(i64, i64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.ctime(), found.ctime_nsec()))
}

fn digest<T: Serialize>(facts: &T) -> Option<String> {
    let text = serde_json::to_vec(facts).ok()?;
    Some(blake3::hash(&text).to_hex()[..32].to_owned())
}

impl Key {
    /// Its text: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..12).unwrap_or(&self.0))
    }
}
