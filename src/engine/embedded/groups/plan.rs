//! Which groups a sandbox gets, and what they hold.

use std::path::Path;

use runner_policy::limits::{Limit, Limits};
use runner_wire::{Bytes, Group, GroupFile, Join, Scope};

use super::{PREFIX, Place, Places, Swap, Trees};
use crate::engine::holders::{Holder, Holders};

/// Where groups are shown inside.
const INSIDE: &str = "/sys/fs/cgroup";

/// The time over which the use of processors is counted, in microseconds.
const PERIOD: u64 = 100_000;

/// What holds the limits of a sandbox whose groups are made here. `alone` says whether the sandbox has a user namespace in
/// which the kernel counts processes.
pub(in crate::engine::embedded) fn holders(places: &Places, alone: bool) -> Holders {
    let memory = |swap| match swap {
        Swap::Bounded => Holder::Group,
        Swap::Free => Holder::GroupThatSwaps,
    };
    let cpus = |by_group| if by_group { Holder::Group } else { Holder::Processors };
    match places {
        Places::Trees(trees) => Holders {
            memory: memory(trees.swap),
            cpus: cpus(trees.cpu.is_some()),
            pids: Holder::Group,
        },
        Places::Unified { cpus: by_group, swap, .. }
        | Places::Scopes { cpus: by_group, swap, .. } => {
            Holders { memory: memory(*swap), cpus: cpus(*by_group), pids: Holder::Group }
        }
        Places::None => Holders {
            memory: Holder::Guest,
            cpus: Holder::Processors,
            pids: if alone { Holder::UserLimit } else { Holder::Guest },
        },
    }
}

/// The groups of one sandbox. `name` is no other sandbox's.
pub(in crate::engine::embedded) fn groups(
    place: &Place,
    limits: &Limits,
    name: &str,
) -> Vec<Group> {
    match place {
        Place::Trees(trees) => of_trees(trees, limits, name),
        Place::Unified { folder, cpus } | Place::Scope { folder, cpus } => {
            vec![unified(folder, *cpus, limits, name)]
        }
        Place::None => Vec::new(),
    }
}

/// The scope that the launcher divides before it makes groups in it, if it is in one.
pub(in crate::engine::embedded) fn scope(place: &Place) -> Option<Scope> {
    let Place::Scope { folder, cpus } = place else { return None };
    let all = [("memory", true), ("pids", true), ("cpu", *cpus)];
    let controllers = all.iter().filter(|(_, wanted)| *wanted).map(|(name, _)| (*name).to_owned());
    Some(Scope { folder: Bytes::from(folder.as_os_str()), controllers: controllers.collect() })
}

fn of_trees(trees: &Trees, limits: &Limits, name: &str) -> Vec<Group> {
    let memory = limits.get(Limit::Memory).to_string();
    let quota = limits.get(Limit::Cpus).saturating_mul(PERIOD) / 1_000;
    let group = |parent: &Path, controller: &str, files: Vec<GroupFile>| Group {
        folder: folder(parent, name),
        join: Join::Move,
        files,
        target: Bytes::from(format!("{INSIDE}/{controller}").as_str()),
    };
    let mut all = vec![
        group(
            &trees.memory,
            "memory",
            vec![
                file("memory.limit_in_bytes", &memory),
                // Memory and swap together, where the kernel counts swap.
                GroupFile { optional: true, ..file("memory.memsw.limit_in_bytes", &memory) },
            ],
        ),
        group(&trees.pids, "pids", vec![file("pids.max", &limits.get(Limit::Pids).to_string())]),
    ];
    if let Some(cpu) = &trees.cpu {
        let files = vec![
            file("cpu.cfs_period_us", &PERIOD.to_string()),
            file("cpu.cfs_quota_us", &quota.to_string()),
        ];
        // One tree may have both controllers.
        let target = if trees.cpuacct.as_ref() == Some(cpu) { "cpuacct" } else { "cpu" };
        all.push(group(cpu, target, files));
    }
    if let Some(cpuacct) = trees.cpuacct.as_ref().filter(|it| trees.cpu.as_ref() != Some(it)) {
        all.push(group(cpuacct, "cpuacct", Vec::new()));
    }
    all
}

fn unified(parent: &Path, cpus: bool, limits: &Limits, name: &str) -> Group {
    let mut files = vec![
        file("memory.max", &limits.get(Limit::Memory).to_string()),
        GroupFile { optional: true, ..file("memory.swap.max", "0") },
        file("pids.max", &limits.get(Limit::Pids).to_string()),
    ];
    if cpus {
        let quota = limits.get(Limit::Cpus).saturating_mul(PERIOD) / 1_000;
        files.push(file("cpu.max", &format!("{quota} {PERIOD}")));
    }
    Group { folder: folder(parent, name), join: Join::Birth, files, target: Bytes::from(INSIDE) }
}

fn folder(parent: &Path, name: &str) -> Bytes {
    Bytes::from(parent.join(format!("{PREFIX}{name}")).as_os_str())
}

fn file(name: &str, value: &str) -> GroupFile {
    GroupFile { name: name.to_owned(), value: value.to_owned(), optional: false }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use runner_policy::limits::Isolation;

    use super::*;

    fn written(group: &Group) -> Vec<String> {
        group.files.iter().map(|file| format!("{}={}", file.name, file.value)).collect()
    }

    #[test]
    fn version_one_has_a_group_for_each_tree() {
        let tree = |name: &str| PathBuf::from(format!("/g/{name}"));
        let trees = Trees {
            memory: tree("memory"),
            pids: tree("pids"),
            cpu: Some(tree("cpu,cpuacct")),
            cpuacct: Some(tree("cpu,cpuacct")),
            swap: Swap::Bounded,
        };
        let mut limits = Limits::preset(Isolation::Basic);
        limits.set(Limit::Cpus, 1_500);
        let places = Places::Trees(trees.clone());
        let found = groups(&Place::Trees(trees), &limits, "c1");
        let shown: Vec<_> = found.iter().map(|it| it.target.as_os().to_owned()).collect();
        assert_eq!(
            shown,
            ["/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpuacct"]
        );
        assert_eq!(found[0].folder.as_os(), "/g/memory/runner-sandbox-c1");
        assert_eq!(written(&found[2]), ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=150000"]);
        assert_eq!(holders(&places, false), Holders::GROUPS);
    }

    #[test]
    fn version_two_has_one_group() {
        let place = |cpus| Place::Unified { folder: "/g".into(), cpus };
        let places = |cpus| Places::Unified { folder: "/g".into(), cpus, swap: Swap::Bounded };
        let mut limits = Limits::preset(Isolation::Basic);
        limits.set(Limit::Memory, 1 << 28);
        limits.set(Limit::Pids, 128);
        limits.set(Limit::Cpus, 2_000);
        let found = groups(&place(true), &limits, "c1");
        let expected =
            ["memory.max=268435456", "memory.swap.max=0", "pids.max=128", "cpu.max=200000 100000"];
        assert_eq!(written(&found[0]), expected);
        assert_eq!(written(&groups(&place(false), &limits, "c1")[0]), expected[..3]);
        assert_eq!(holders(&places(false), true).cpus, Holder::Processors);
        assert_eq!(scope(&place(true)), None);
    }

    #[test]
    fn a_scope_is_divided_by_the_controllers_that_it_has() {
        let limits = Limits::preset(Isolation::Basic);
        let place = |cpus| Place::Scope { folder: "/s".into(), cpus };
        assert_eq!(scope(&place(true)).unwrap().controllers, ["memory", "pids", "cpu"]);
        assert_eq!(scope(&place(false)).unwrap().controllers, ["memory", "pids"]);
        let found = groups(&place(true), &limits, "c1");
        assert_eq!(found[0].folder.as_os(), "/s/runner-sandbox-c1");
        let whole = Place::Unified { folder: "/s".into(), cpus: true };
        assert_eq!(found, groups(&whole, &limits, "c1"));
    }

    #[test]
    fn without_a_place_the_guest_watches() {
        let limits = Limits::preset(Isolation::Basic);
        assert_eq!(groups(&Place::None, &limits, "c1"), []);
        assert_eq!(holders(&Places::None, true).pids, Holder::UserLimit);
        assert_eq!(holders(&Places::None, false).pids, Holder::Guest);
    }
}
