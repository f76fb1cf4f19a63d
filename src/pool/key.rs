//! The key of a waiting sandbox: everything about it that cannot change.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use runner_policy::limits::Limits;
use runner_wire::Start;
use serde::{Deserialize, Serialize};

use super::entry::Class;
use super::guess::Guess;
use crate::engine::plan::{MountRole, SandboxPlan};
use crate::engine::{Address, container_limits};

/// Changes whenever what a key is made from does.
const FORMAT: u32 = 1;

/// A sandbox may be claimed by calls of this key alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key(String);

/// Where a key belongs: the same workspace, policy, tool, toolchains and figures, whatever stands in them today. One lane
/// has one key at a time; entries of its earlier keys are never claimed. Who calls with two sets of toolchains in
/// turn, from a shell and an agent, has two lanes; a tool shows no workspace, so projects whose policies share a name
/// are told apart by the policy itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lane(String);

/// What a call wants a sandbox for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The plan, made afresh.
    pub plan: &'a SandboxPlan,
    /// What was known before it.
    pub guess: &'a Guess,
    /// The engine.
    pub address: &'a Address,
    /// The engine's own identity.
    pub engine: &'a str,
    /// What the engine makes sandboxes from besides their plans.
    pub recipe: &'a str,
    /// The policy's name.
    pub policy: &'a str,
    /// The names of what the policy stays within, a tool's permissions among them.
    pub within: &'a [&'a str],
    /// The digest of the policy and all that it extends.
    pub policy_digest: &'a str,
    /// The project whose call this is.
    pub project: &'a Path,
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
    within: &'a [&'a str],
    policy_digest: Option<&'a str>,
    toolchains: Vec<&'a Path>,
    class: Class,
    image: &'a crate::engine::plan::Image,
    runtime: Option<&'a crate::engine::plan::Runtime>,
    #[serde(serialize_with = "container_limits::serialize")]
    limits: &'a Limits,
}

impl Wanted<'_> {
    /// The key; `None` if the plan has a path that no engine can carry.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        let facts = KeyFacts {
            format: FORMAT,
            recipe: self.recipe,
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
        let facts = LaneFacts {
            engine: self.engine,
            workspace: self.workspace(),
            policy: self.policy,
            within: self.within,
            policy_digest: (self.class == Class::Tool).then_some(self.policy_digest),
            toolchains: self.toolchains(),
            class: self.class,
            image: &self.plan.image,
            runtime: self.plan.runtime.as_ref(),
            limits: &self.plan.limits,
        };
        digest(&facts).map(Lane)
    }
}

impl<'a> Wanted<'a> {
    fn toolchains(&self) -> Vec<&'a Path> {
        let mounts = self.plan.mounts.iter();
        let toolchains = mounts.filter(|mount| mount.role == MountRole::Toolchain);
        toolchains.map(|mount| mount.target.as_path()).collect()
    }
}

/// When a hidden path was last changed. Inode numbers are used again: a file that was replaced twice may have its
/// first number, and the cover over it is gone all the same.
fn changed(path: &Path) -> Option<(i64, i64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.ctime(), found.ctime_nsec()))
}

pub(super) fn digest<T: Serialize>(facts: &T) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use runner_policy::limits::{Isolation, TABLE};

    use super::*;
    use crate::engine::docker::settings::tests as settings;
    use crate::engine::docker::settings::{GuestDelivery, Launch, container_settings};
    use crate::engine::plan::OverlayWrites;
    use crate::ids::Identity;

    fn address() -> Address {
        "docker:e".parse().unwrap()
    }

    fn guess() -> Guess {
        serde_json::from_str("\"g\"").unwrap()
    }

    fn key(plan: &SandboxPlan) -> Key {
        let wanted = Wanted {
            plan,
            guess: &guess(),
            address: &address(),
            engine: "e",
            recipe: "r",
            policy: "p",
            within: &[],
            policy_digest: "d",
            project: Path::new("/w"),
            class: Class::Read,
            prestart: None,
        };
        wanted.key().unwrap()
    }

    /// What the engine is asked to make.
    fn container(plan: &SandboxPlan) -> serde_json::Value {
        let launch = Launch {
            image: "i".to_owned(),
            guest: GuestDelivery::InImage,
            arguments: Vec::new(),
            labels: Default::default(),
            processors: 64,
            overlays: vec![String::new(); plan.overlays.len()],
        };
        serde_json::to_value(container_settings(plan, &launch).unwrap()).unwrap()
    }

    #[test]
    fn whatever_changes_a_container_changes_its_key() {
        let plan = settings::plan(Isolation::Strict);
        for row in &TABLE {
            let mut other = plan.clone();
            other.limits.set(row.limit, plan.limits.get(row.limit) + 4096);
            let differs = container(&other) != container(&plan);
            assert_eq!(differs, key(&other) != key(&plan), "{}", row.key);
        }
        let changes: [fn(&mut SandboxPlan); 12] = [
            |plan| plan.user.uid += 1,
            |plan| plan.mounts[0].identity = Identity { dev: 7, ino: 7 },
            |plan| plan.mounts[0].target.push("x"),
            |plan| plan.mounts.clear(),
            |plan| plan.overlays[0].identity = Identity { dev: 7, ino: 7 },
            |plan| plan.overlays[0].target.push("x"),
            |plan| plan.overlays[0].writes = OverlayWrites::Refused,
            |plan| plan.overlays[0].covers.path.push("x"),
            |plan| plan.overlays[0].covers.identity = Identity { dev: 7, ino: 7 },
            |plan| plan.overlays.clear(),
            |plan| plan.tmpfs[0].size += 1,
            |plan| plan.runtime = crate::engine::plan::Runtime::new("runsc"),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut other = plan.clone();
            change(&mut other);
            assert_ne!(key(&other), key(&plan), "change {at}");
        }
    }

    #[test]
    fn what_travels_with_the_call_is_not_in_the_key() {
        let plan = settings::plan(Isolation::Strict);
        let mut other = plan.clone();
        other.cwd = "/elsewhere".into();
        other.env.insert("A".into(), "b".into());
        other.notes.clear();
        assert_eq!(key(&other), key(&plan));
    }

    #[test]
    fn a_plan_is_read_back_as_it_is_made() {
        let plan = settings::plan(Isolation::Strict);
        let text = serde_json::to_string(&plan).unwrap();
        let read: SandboxPlan = serde_json::from_str(&text).unwrap();
        assert_eq!(container(&read), container(&plan));
        assert_eq!(key(&read), key(&plan));
    }

    #[test]
    fn who_calls_in_two_ways_in_turn_has_two_lanes() {
        let lane = |plan: &SandboxPlan, class: Class, policy_digest: &str| {
            let project = Path::new("/w");
            let wanted = Wanted {
                plan,
                guess: &guess(),
                address: &address(),
                engine: "e",
                recipe: "r",
                policy: "p",
                within: &[],
                policy_digest,
                project,
                class,
                prestart: None,
            };
            wanted.lane().unwrap()
        };
        let plan = settings::plan(Isolation::Strict);
        let mut with_toolchain = plan.clone();
        with_toolchain.mounts[0].role = MountRole::Toolchain;
        let of = |plan| lane(plan, Class::Read, "d");
        assert_ne!(of(&plan), of(&with_toolchain), "from a shell and from an agent");
        // What stands there today is not the lane's affair.
        let mut replaced = with_toolchain.clone();
        replaced.mounts[0].identity = Identity { dev: 7, ino: 7 };
        assert_eq!(of(&replaced), of(&with_toolchain));
        assert_eq!(lane(&plan, Class::Read, "d"), lane(&plan, Class::Read, "changed"));
        assert_ne!(lane(&plan, Class::Tool, "d"), lane(&plan, Class::Tool, "of another project"));
    }

    #[test]
    fn one_of_many_gets_an_entry() {
        use crate::pool::{Entry, Pool};
        use std::time::Duration;

        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(folder.path());
        pool.folder().unwrap();
        let now = crate::sys::now();
        let key = key(&settings::plan(Isolation::Strict));
        for at in 0..40 {
            let entry = Entry {
                sandbox: at.to_string(),
                label: format!("l{at}"),
                address: address(),
                key: key.clone(),
                guess: guess(),
                targets: Vec::new(),
                lane: Lane("l".to_owned()),
                class: Class::Read,
                policy: String::new(),
                within: Vec::new(),
                policy_digest: String::new(),
                recipe: String::new(),
                project: "/w".into(),
                cost: 0,
                workspace: "/w".into(),
                image_digest: String::new(),
                made: now,
                expires: now + Duration::from_secs(60),
                deadline: now + Duration::from_secs(600),
            };
            pool.put(&entry).unwrap();
        }
        let wall = Duration::from_secs(10);
        assert!(pool.claim(&key, Duration::from_secs(700)).is_none(), "it would not live so long");
        assert!(pool.claim(&Key("other".to_owned()), wall).is_none());
        let mut claimed: Vec<String> = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        std::iter::from_fn(|| {
                            pool.claim(&key, wall).map(|claimed| claimed.entry.sandbox)
                        })
                        .collect::<Vec<_>>()
                    })
                })
                .collect();
            claims.into_iter().flat_map(|claim| claim.join().unwrap()).collect()
        });
        claimed.sort();
        claimed.dedup();
        assert_eq!(claimed.len(), 40);
    }
}
