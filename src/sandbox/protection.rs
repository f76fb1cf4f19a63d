//! What protects a call: one table of protections by runtime, and what each isolation level demands.
//!
//! Duty: name every protection, what enforces it under each kind of runtime, and whether it holds;
//! refuse a plan that has less than its isolation level names. Non-goals: enforcing. Nothing is
//! silently unenforced: a result and `--dry-run` print this table for the call at hand.

use std::collections::BTreeSet;

use runner_policy::limits::Isolation;

use crate::engine::plan::{Protection, ProtectionStatus};
use crate::engine::runtime_kind::RuntimeKind;
use crate::engine::{Holder, Holders};

/// One row: a protection, and what enforces it under each kind of runtime.
struct Row {
    name: &'static str,
    shared: Cell,
    direct: Cell,
    gvisor: Cell,
    kata: Cell,
    /// The lowest level that refuses to run without it.
    demanded_by: Demand,
}

/// From which isolation level on a protection must hold.
#[derive(Clone, Copy)]
enum Demand {
    Basic,
    Strict,
    Paranoid,
    Nobody,
}

#[derive(Clone, Copy)]
struct Cell(&'static str, ProtectionStatus);

const fn holds(by: &'static str) -> Cell {
    Cell(by, ProtectionStatus::Enforced)
}

const fn partly(by: &'static str, where_it_ends: &'static str) -> Cell {
    Cell(by, ProtectionStatus::BestEffort(where_it_ends))
}

const fn absent(why: &'static str) -> Cell {
    Cell("nothing", ProtectionStatus::Absent(why))
}

use Demand::{Basic, Nobody, Paranoid, Strict};

/// Every protection. A gVisor that ignores the system call filter still has its own: what the
/// filter is for is named by row, not by mechanism.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    Row { name: "network",       shared: holds("network namespace without interfaces"), direct: holds("network namespace with a loopback device of its own"), gvisor: holds("gVisor's own network stack, without interfaces"), kata: holds("virtual machine without interfaces"), demanded_by: Basic },
    Row { name: "root",          shared: holds("read-only root file system"), direct: holds("read-only root file system in memory"), gvisor: holds("read-only root file system"), kata: holds("read-only root file system"), demanded_by: Basic },
    Row { name: "capabilities",  shared: holds("all dropped, no-new-privileges"), direct: holds("all dropped, no-new-privileges"), gvisor: holds("all dropped, no-new-privileges"), kata: holds("all dropped, no-new-privileges"), demanded_by: Basic },
    Row { name: "namespaces",    shared: holds("private pid, ipc, uts, cgroup and mount namespaces"), direct: holds("private pid, ipc, uts, cgroup and mount namespaces; for an ordinary caller in a user namespace"), gvisor: holds("gVisor's own kernel"), kata: holds("virtual machine"), demanded_by: Basic },
    Row { name: "system-calls",  shared: holds("seccomp profile of images/seccomp.json"), direct: holds("seccomp profile of images/seccomp.json, compiled when runner is built"), gvisor: partly("gVisor's own kernel", "our profile is ignored; gVisor answers each call itself and filters its own"), kata: partly("virtual machine", "our profile may be ignored"), demanded_by: Basic },
    Row { name: "setuid-bits",   shared: holds("seccomp profile of images/seccomp.json; the host holds back files with such bits"), direct: holds("seccomp profile of images/seccomp.json; the host holds back files with such bits"), gvisor: holds("the host holds back files with such bits, and a stage is mounted nosuid"), kata: holds("the host holds back files with such bits, and a stage is mounted nosuid"), demanded_by: Basic },
    Row { name: "own-kernel",    shared: absent("the sandbox uses the host's kernel"), direct: absent("the sandbox uses the host's kernel"), gvisor: holds("gVisor"), kata: holds("virtual machine"), demanded_by: Paranoid },
    Row { name: "file-grants",   shared: holds("one overlay of the workspace, known by a mark of its topmost layer; other mounts are compared by device and inode from inside"), direct: holds("one overlay of the workspace, known by a mark of its topmost layer; other mounts are compared by device and inode from inside"), gvisor: partly("one overlay of the workspace; sources are compared by device and inode on the host", "gVisor shows numbers of its own, so a folder that is swapped and swapped back goes unnoticed"), kata: partly("one overlay of the workspace; sources are compared by device and inode on the host", "device numbers differ inside"), demanded_by: Strict },
    Row { name: "landlock",      shared: absent("container engines do not use it"), direct: holds("Landlock closes the same folders once more, and forbids mounts"), gvisor: absent("gVisor's own kernel has none"), kata: absent("container engines do not use it"), demanded_by: Nobody },
    Row { name: "protected-paths", shared: holds("commands write into a stage; the host judges each change before it applies it"), direct: holds("commands write into a stage; the host judges each change before it applies it"), gvisor: holds("commands write into a stage; the host judges each change before it applies it"), kata: holds("commands write into a stage; the host judges each change before it applies it"), demanded_by: Strict },
    Row { name: "denied-files",  shared: holds("a layer of the overlay covers the files that existed at the start"), direct: holds("a layer of the overlay covers the files that existed at the start"), gvisor: holds("a layer of the overlay covers the files that existed at the start"), kata: holds("a layer of the overlay covers the files that existed at the start"), demanded_by: Strict },
    Row { name: "environment",   shared: holds("the guest starts the command with exactly the planned variables"), direct: holds("the guest starts the command with exactly the planned variables"), gvisor: holds("the guest starts the command with exactly the planned variables"), kata: holds("the guest starts the command with exactly the planned variables"), demanded_by: Basic },
    Row { name: "memory",        shared: holds("cgroup, no swap"), direct: holds("cgroup, no swap"), gvisor: partly("cgroup, no swap", "counts gVisor itself; exceeding it ends the whole sandbox"), kata: holds("virtual machine"), demanded_by: Basic },
    Row { name: "cpus",          shared: holds("cgroup"), direct: holds("cgroup"), gvisor: holds("cgroup"), kata: holds("virtual machine"), demanded_by: Basic },
    Row { name: "pids",          shared: holds("cgroup"), direct: holds("cgroup"), gvisor: partly("cgroup", "counts gVisor's own threads, so the figure has room added"), kata: holds("cgroup inside"), demanded_by: Basic },
    Row { name: "open-files",    shared: holds("rlimit"), direct: holds("rlimit"), gvisor: holds("rlimit"), kata: holds("rlimit"), demanded_by: Basic },
    Row { name: "file-size",     shared: holds("rlimit"), direct: holds("rlimit"), gvisor: holds("rlimit"), kata: holds("rlimit"), demanded_by: Basic },
    Row { name: "cpu-time",      shared: holds("rlimit"), direct: holds("rlimit"), gvisor: holds("rlimit"), kata: holds("rlimit"), demanded_by: Basic },
    Row { name: "scratch",       shared: holds("tmpfs size"), direct: holds("tmpfs size"), gvisor: holds("tmpfs size"), kata: holds("tmpfs size"), demanded_by: Basic },
    Row { name: "shared-memory", shared: holds("no /dev/shm, or a tmpfs of the policy's size"), direct: holds("no /dev/shm, or a tmpfs of the policy's size"), gvisor: holds("no /dev/shm, or a tmpfs of the policy's size"), kata: holds("no /dev/shm, or a tmpfs of the policy's size"), demanded_by: Basic },
    Row { name: "inodes",        shared: holds("tmpfs nr_inodes"), direct: holds("tmpfs nr_inodes"), gvisor: absent("gVisor ignores nr_inodes; memory bounds them"), kata: holds("tmpfs nr_inodes"), demanded_by: Nobody },
    Row { name: "wall",          shared: holds("host clock and guest lease"), direct: holds("host clock and guest lease"), gvisor: holds("host clock and guest lease"), kata: holds("host clock and guest lease"), demanded_by: Basic },
    Row { name: "workspace-space", shared: partly("watched free space and file size", "a stage is a folder of the host, and has no quota"), direct: partly("watched free space and file size", "a stage is a folder of the host, and has no quota"), gvisor: partly("watched free space and file size", "a stage is a folder of the host, and has no quota"), kata: partly("watched free space and file size", "a stage is a folder of the host, and has no quota"), demanded_by: Nobody },
    Row { name: "result-channel", shared: holds("undumpable guest, and a MAC on every frame"), direct: holds("undumpable guest, and a MAC on every frame"), gvisor: partly("a MAC on every frame", "a process of the same uid can reach the guest's pipes, where what it writes is refused, and can end the guest, which ends the call as an error"), kata: holds("undumpable guest, and a MAC on every frame"), demanded_by: Basic },
];

/// What the table depends on besides the kind of runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// What holds the limits that are about all processes together.
    pub holders: Holders,
    /// Whether Landlock is in force.
    pub landlock: bool,
}

impl Machine {
    /// One on which everything holds.
    pub const WHOLE: Self = Self { holders: Holders::GROUPS, landlock: true };

    /// One on which an ordinary user has no control groups.
    pub const WITHOUT_GROUPS: Self = Self {
        holders: Holders {
            memory: Holder::Guest,
            cpus: Holder::Processors,
            pids: Holder::UserLimit,
        },
        landlock: true,
    };
}

/// The protections of a call under a runtime on a machine, in the order of the table.
#[must_use]
pub fn protections(kind: RuntimeKind, machine: Machine) -> Vec<Protection> {
    let protection = |row: &Row| {
        let Cell(enforced_by, status) = row.cell_on(kind, machine);
        Protection { name: row.name, enforced_by, status }
    };
    TABLE.iter().map(protection).collect()
}

/// From which isolation level on a protection must hold.
#[must_use]
pub fn demanded_from(protection: &str) -> Option<&'static str> {
    let row = TABLE.iter().find(|row| row.name == protection)?;
    Some(match row.demanded_by {
        Basic => "basic",
        Strict => "strict",
        Paranoid => "paranoid",
        Nobody => "no level",
    })
}

/// What holds the limit of memory, other than a control group.
const fn memory(holder: Holder) -> Option<Cell> {
    Some(match holder {
        Holder::Group => return None,
        Holder::GroupThatSwaps => partly(
            "cgroup",
            "the kernel does not count swap here, so a sandbox may use swap beyond its limit",
        ),
        Holder::Guest => partly(
            "watched by the guest",
            "the guest looks every 10 ms and ends what has too much; what is filled in between counts late; memory of the kernel for \
             sockets and pipes, and shared memory that a process lets go of and hides, do not count",
        ),
        Holder::UserLimit | Holder::Processors | Holder::Nothing => NO_LIMIT,
    })
}

/// What holds the limit of processors, other than a control group.
const fn cpus(holder: Holder) -> Option<Cell> {
    Some(match holder {
        Holder::Group => return None,
        Holder::Processors => partly(
            "a sandbox starts on as many processors as it may use, rounded up",
            "a program can ask the kernel for others",
        ),
        Holder::GroupThatSwaps | Holder::UserLimit | Holder::Guest | Holder::Nothing => NO_LIMIT,
    })
}

/// What holds the limit of processes, other than a control group.
const fn pids(holder: Holder) -> Option<Cell> {
    Some(match holder {
        Holder::Group => return None,
        Holder::UserLimit => holds("rlimit of the user namespace"),
        Holder::Guest => partly(
            "watched by the guest",
            "the guest counts every 250 ms and ends what has too many",
        ),
        Holder::GroupThatSwaps | Holder::Processors | Holder::Nothing => NO_LIMIT,
    })
}

/// Of a limit that nothing holds.
const NO_LIMIT: Cell = absent("the engine's machine cannot hold this limit");

impl Row {
    fn cell(&self, kind: RuntimeKind) -> &Cell {
        match kind {
            RuntimeKind::SharedKernel => &self.shared,
            RuntimeKind::Direct => &self.direct,
            RuntimeKind::Gvisor => &self.gvisor,
            RuntimeKind::Kata => &self.kata,
        }
    }

    /// What the table says, unless the machine has less or something else.
    fn cell_on(&self, kind: RuntimeKind, machine: Machine) -> Cell {
        let found = match (self.name, kind) {
            // A virtual machine holds its own limits.
            (_, RuntimeKind::Kata) => None,
            ("memory", _) => memory(machine.holders.memory),
            ("cpus", _) => cpus(machine.holders.cpus),
            ("pids", _) => pids(machine.holders.pids),
            ("landlock", RuntimeKind::Direct) if !machine.landlock => {
                Some(absent("this kernel has no Landlock, or it is not enabled"))
            }
            _ => None,
        };
        found.unwrap_or(*self.cell(kind))
    }

    fn demanded(&self, isolation: Isolation) -> bool {
        match self.demanded_by {
            Basic => true,
            Strict => isolation >= Isolation::Strict,
            Paranoid => isolation >= Isolation::Paranoid,
            Nobody => false,
        }
    }
}

/// An isolation level demands a protection that the runtime does not have.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error(
    "isolation {} demands the protection `{protection}`, which {} does not give: {why}; {}",
    level(*.isolation),
    .runtime.name(),
    remedy(*.isolation)
)]
pub struct TooLittle {
    /// The level.
    pub isolation: Isolation,
    /// What is missing.
    pub protection: &'static str,
    /// Why.
    pub why: &'static str,
    /// The runtime that lacks it.
    pub runtime: RuntimeKind,
}

fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Basic => "basic",
        Isolation::Strict => "strict",
        Isolation::Paranoid => "paranoid",
    }
}

fn remedy(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Paranoid => {
            "set `runtime: runsc` in the policy's sandbox, or lower its isolation"
        }
        Isolation::Basic | Isolation::Strict => {
            "choose another runtime in the policy's sandbox, or lower its isolation"
        }
    }
}

/// Checks that protections hold as far as an isolation level demands: absent is refused from the level
/// that names the protection on; best effort counts only where the table itself is the promise.
///
/// # Errors
/// The first protection that the level demands and that is absent.
pub fn demand(
    isolation: Isolation,
    kind: RuntimeKind,
    protections: &[Protection],
) -> Result<(), TooLittle> {
    for row in TABLE.iter().filter(|row| row.demanded(isolation)) {
        let found = protections.iter().find(|protection| protection.name == row.name);
        let why = match found.map(|protection| protection.status) {
            Some(ProtectionStatus::Enforced | ProtectionStatus::BestEffort(_)) => continue,
            Some(ProtectionStatus::Absent(why)) => why,
            None => "the engine does not name it",
        };
        return Err(TooLittle { isolation, protection: row.name, why, runtime: kind });
    }
    Ok(())
}

/// A policy demands a protection in full that holds in part here, or not at all.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error(
    "the policy demands the protection `{protection}` in full, and it does not hold in full here: {why}; use another \
     engine or runtime, or take it out of `sandbox.demand`"
)]
pub struct NotInFull {
    /// What is demanded.
    pub protection: String,
    /// Where it ends.
    pub why: &'static str,
}

/// Checks that what a policy demands holds in full.
///
/// # Errors
/// The first protection that does not.
pub fn demand_in_full(
    demands: &BTreeSet<String>,
    protections: &[Protection],
) -> Result<(), NotInFull> {
    for name in demands {
        let found = protections.iter().find(|protection| protection.name == name);
        let why = match found.map(|protection| protection.status) {
            Some(ProtectionStatus::Enforced) => continue,
            Some(ProtectionStatus::BestEffort(why) | ProtectionStatus::Absent(why)) => why,
            None => "the engine does not name it",
        };
        return Err(NotInFull { protection: name.clone(), why });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [RuntimeKind; 4] =
        [RuntimeKind::SharedKernel, RuntimeKind::Direct, RuntimeKind::Gvisor, RuntimeKind::Kata];

    fn whole(kind: RuntimeKind) -> Vec<Protection> {
        protections(kind, Machine::WHOLE)
    }

    /// Root may write on every runtime: the bits that it could set stay in the stage.
    #[test]
    fn setuid_bits_are_held_back_on_every_runtime() {
        for kind in KINDS {
            let all = whole(kind);
            let found = all.iter().find(|protection| protection.name == "setuid-bits").unwrap();
            assert_eq!(found.status, ProtectionStatus::Enforced);
            assert!(found.enforced_by.contains("holds back"), "{}", found.enforced_by);
        }
    }

    #[test]
    fn names_are_unique_and_every_cell_says_something() {
        let mut names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
        for kind in KINDS {
            for protection in whole(kind) {
                assert!(!protection.enforced_by.is_empty(), "{}", protection.name);
            }
        }
    }

    #[test]
    fn paranoid_needs_a_kernel_of_its_own() {
        let check = |isolation, kind| demand(isolation, kind, &whole(kind));
        for kind in KINDS {
            assert_eq!(check(Isolation::Basic, kind), Ok(()));
            assert_eq!(check(Isolation::Strict, kind), Ok(()));
        }
        let refused = check(Isolation::Paranoid, RuntimeKind::SharedKernel).unwrap_err();
        assert_eq!(refused.protection, "own-kernel");
        assert!(refused.to_string().contains("runtime: runsc"));
        assert_eq!(check(Isolation::Paranoid, RuntimeKind::Gvisor), Ok(()));
        assert_eq!(check(Isolation::Paranoid, RuntimeKind::Kata), Ok(()));
    }

    #[test]
    fn what_a_policy_can_demand_is_named_here() {
        for name in runner_policy::model::PROTECTIONS {
            assert!(TABLE.iter().any(|row| row.name == name), "{name}");
        }
    }

    #[test]
    fn a_policy_can_demand_more_than_its_isolation_level() {
        let demands = |name: &str| BTreeSet::from([name.to_owned()]);
        let docker = whole(RuntimeKind::SharedKernel);
        assert_eq!(demand_in_full(&demands("memory"), &docker), Ok(()));
        let refused = demand_in_full(&demands("own-kernel"), &docker).unwrap_err();
        assert_eq!(refused.why, "the sandbox uses the host's kernel");
        let gvisor = whole(RuntimeKind::Gvisor);
        assert!(demand_in_full(&demands("memory"), &gvisor).is_err());
    }

    #[test]
    fn a_protection_that_is_absent_or_unnamed_is_refused() {
        let mut less = whole(RuntimeKind::SharedKernel);
        less.iter_mut().find(|p| p.name == "denied-files").unwrap().status =
            ProtectionStatus::Absent("test");
        let kind = RuntimeKind::SharedKernel;
        assert_eq!(demand(Isolation::Basic, kind, &less), Ok(()));
        assert_eq!(demand(Isolation::Strict, kind, &less).unwrap_err().protection, "denied-files");
        assert_eq!(demand(Isolation::Basic, kind, &[]).unwrap_err().protection, "network");
    }

    #[test]
    fn what_no_control_group_holds_is_said_and_can_be_refused() {
        let machine = Machine { landlock: false, ..Machine::WITHOUT_GROUPS };
        let all = protections(RuntimeKind::Direct, machine);
        let status = |name: &str| all.iter().find(|it| it.name == name).unwrap().status;
        assert!(matches!(status("memory"), ProtectionStatus::BestEffort(_)));
        assert!(matches!(status("cpus"), ProtectionStatus::BestEffort(_)));
        assert_eq!(status("pids"), ProtectionStatus::Enforced);
        assert!(matches!(status("landlock"), ProtectionStatus::Absent(_)));
        assert_eq!(demand(Isolation::Strict, RuntimeKind::Direct, &all), Ok(()));
        let memory = BTreeSet::from(["memory".to_owned()]);
        assert!(demand_in_full(&memory, &all).is_err());
    }

    #[test]
    fn a_limit_that_a_daemon_cannot_hold_refuses_the_call() {
        let holders = Holders { memory: Holder::Nothing, ..Holders::GROUPS };
        let kind = RuntimeKind::SharedKernel;
        let all = protections(kind, Machine { holders, landlock: false });
        assert_eq!(demand(Isolation::Basic, kind, &all).unwrap_err().protection, "memory");
    }
}
