//! What a compiler may do: read one folder, for a while, with so much memory. Everything else is denied by the kernel.
//!
//! Landlock is a must: without it nothing is compiled. Which of its later rights a kernel has is reported, so that it can be
//! said aloud. Not limited: the number of processes of the user (the count is of all processes of that user, not of
//! ours); the address space bounds threads, and starting another program is denied by Landlock.

use std::io;
use std::os::fd::BorrowedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope,
};
use runner_compiler::job::Confinement;
use runner_compiler::limits::{ADDRESS_SPACE, CPU_SECONDS, DESCRIPTORS};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getppid, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};

/// What every kernel with Landlock can deny.
const REQUIRED: ABI = ABI::V1;

/// What is denied where the kernel can.
const WANTED: ABI = ABI::V6;

/// What later versions of Landlock deny, and what it is called.
const LATER: [(ABI, &str); 4] = [
    (ABI::V3, "truncating files that the user may write"),
    (ABI::V4, "TCP connections"),
    (ABI::V5, "device controls"),
    (ABI::V6, "signals and abstract sockets of other processes"),
];

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A limit or a setting was refused.
    #[error("{0}: {1}")]
    Call(&'static str, #[source] io::Error),
    /// Our parent is gone already.
    #[error("its parent has ended")]
    Orphan,
    /// Landlock refused.
    #[error("Landlock: {0}")]
    Landlock(RulesetError),
    /// Landlock is not in force.
    #[error("{}", not_enforced(.0))]
    NotEnforced(LandlockStatus),
}

fn not_enforced(status: &LandlockStatus) -> &'static str {
    match status {
        LandlockStatus::NotEnabled => "this kernel has Landlock, but it is not enabled",
        _ => "this kernel has no Landlock",
    }
}

/// Ends this process when its parent ends.
///
/// # Errors
/// The kernel refused, or the parent is gone.
pub fn die_with_parent() -> Result<(), ConfineError> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| ConfineError::Call("prctl(PR_SET_PDEATHSIG)", errno.into()))?;
    if getppid() == parent { Ok(()) } else { Err(ConfineError::Orphan) }
}

/// Limits this process and denies it everything but reading below `folder`, if there is one.
///
/// # Errors
/// Anything could not be enforced: nothing foreign may be read then.
pub fn confine(folder: Option<BorrowedFd<'_>>) -> Result<Confinement, ConfineError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| ConfineError::Call("prctl(PR_SET_DUMPABLE)", errno.into()))?;
    rustix::thread::set_no_new_privs(true)
        .map_err(|errno| ConfineError::Call("prctl(PR_SET_NO_NEW_PRIVS)", errno.into()))?;
    limit(Resource::Core, 0, "setrlimit(core)")?;
    limit(Resource::Fsize, 0, "setrlimit(fsize)")?;
    limit(Resource::Nofile, DESCRIPTORS, "setrlimit(nofile)")?;
    limit(Resource::As, ADDRESS_SPACE, "setrlimit(as)")?;
    // The soft limit ends the process with a signal that tells why; the hard one cannot be caught.
    let cpu = Rlimit { current: Some(CPU_SECONDS), maximum: Some(CPU_SECONDS + 1) };
    setrlimit(Resource::Cpu, cpu)
        .map_err(|errno| ConfineError::Call("setrlimit(cpu)", errno.into()))?;
    let status = deny(folder).map_err(ConfineError::Landlock)?;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Err(ConfineError::NotEnforced(status.landlock));
    };
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(ConfineError::NotEnforced(status.landlock));
    }
    let missing = LATER.iter().filter(|(abi, _)| *abi > effective_abi);
    Ok(Confinement {
        landlock: effective_abi as u32,
        missing: missing.map(|(_, what)| (*what).to_owned()).collect(),
    })
}

fn limit(resource: Resource, figure: u64, what: &'static str) -> Result<(), ConfineError> {
    let limit = Rlimit { current: Some(figure), maximum: Some(figure) };
    setrlimit(resource, limit).map_err(|errno| ConfineError::Call(what, errno.into()))
}

fn deny(folder: Option<BorrowedFd<'_>>) -> Result<RestrictionStatus, RulesetError> {
    let may = AccessFs::ReadFile | AccessFs::ReadDir;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .set_compatibility(CompatLevel::HardRequirement);
    match folder {
        Some(folder) => rules.add_rule(PathBeneath::new(folder, may))?.restrict_self(),
        None => rules.restrict_self(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use runner_compiler::folder::Folder;

    /// What each attempt comes to: whether it was done.
    fn attempts(inside: &Path, address: std::net::SocketAddr) -> [bool; 9] {
        let outside = inside.with_file_name("secret");
        [
            fs::read(inside.join("a.ts")).is_ok(),
            fs::read_dir(inside).is_ok(),
            fs::read(&outside).is_ok(),
            fs::read(inside.join("link")).is_ok(),
            fs::read_dir("/").is_ok(),
            File::create(inside.join("new")).is_ok(),
            fs::remove_file(inside.join("gone")).is_ok(),
            Command::new("/bin/true").status().is_ok(),
            TcpStream::connect(address).is_ok(),
        ]
    }

    /// The kernel alone, without our own view of files: it holds for the thread and all that it starts.
    #[test]
    fn the_kernel_denies_everything_but_reading_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("tool");
        fs::create_dir(&inside).unwrap();
        fs::write(place.path().join("secret"), "s").unwrap();
        for name in ["a.ts", "gone"] {
            fs::write(inside.join(name), "x").unwrap();
        }
        symlink("../secret", inside.join("link")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(attempts(&inside, address), [true; 9]);
        fs::write(inside.join("gone"), "x").unwrap();
        let folder = Folder::open(&inside).unwrap();
        let (status, after) = std::thread::spawn(move || {
            let status = deny(Some(folder.handle())).unwrap();
            (status, attempts(&inside, address))
        })
        .join()
        .unwrap();
        let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
            panic!("these tests need Landlock: {status:?}");
        };
        let tcp = effective_abi < ABI::V4;
        assert_eq!(after, [true, true, false, false, false, false, false, false, tcp]);
    }
}
