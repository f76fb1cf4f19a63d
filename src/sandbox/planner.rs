//! Puts a plan together.
//!
//! Duty: from a request (what was decided, and facts about this machine) to a [`SandboxPlan`], in one place and
//! in one order. Non-goals: each part's own rules, which its own file has. A plan
//! changes nothing in the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use runner_policy::limits::{Isolation, Limit, Limits};
use runner_wire::Network;

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

use super::covers::{Covering, layer};
use super::hidden_index::{self, Hiding};
use super::materials::{MaterialError, Materials, Missing};
use super::mount_error::MountError;
use super::overlay::{self, Surroundings};
use super::protection::{Machine, NotInFull, TooLittle, demand, demand_in_full, protections};
use super::synthetic::{self, HOME, Names, USER};
use super::toolchain::{self, Toolchains};
use super::user::{self, UserError, UserFacts, UserMapping};
use super::{gitconfig, rustup};
use crate::engine::plan::{
    Environment, FileMode, Image, ImageFacts, Mask, MaskKind, Mount, Note, Overlay, OverlayRole,
    OverlayWrites, ProtectionStatus, Runtime, SandboxPlan, SyntheticFile, SyntheticRole, Tmpfs,
    TmpfsExec, UserChoice, WhyUser, WorkTree,
};
use crate::engine::runtime_kind::RuntimeKind;
use crate::ids::Identity;
use crate::workspace::gitdirs;
use crate::workspace::grants::{Code as RunsCode, FileGrants, Writes};
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::survey::Unscanned;
use crate::workspace::{Owner, Workspace};

/// What a plan is made from.
pub struct PlanRequest<'a> {
    /// The workspace, held open.
    pub workspace: &'a Workspace,
    /// What the sandbox sees of it.
    pub view: View,
    /// What was decided about files.
    pub grants: FileGrants<'a>,
    /// The root file system.
    pub image: Image,
    /// What a foreign image brings; empty for `host`.
    pub image_facts: ImageFacts,
    /// The OCI runtime.
    pub runtime: Option<Runtime>,
    /// How strongly the sandbox is closed.
    pub isolation: Isolation,
    /// Protections that the policy demands in full.
    pub demands: BTreeSet<String>,
    /// Every limit in force.
    pub limits: Limits,
    /// The policy's variables, with their values. They win over ours, but for `HOME`.
    pub env: Environment,
    /// What programs are told of registries and certificates.
    pub told: &'a Told,
    /// How the daemon maps users.
    pub mapping: UserMapping,
    /// What stands between a sandbox of the engine and the host's kernel.
    pub kind: RuntimeKind,
    /// What the engine's machine holds.
    pub machine: Machine,
    /// The caller's ids.
    pub caller: Owner,
    /// The caller's home directory.
    pub home: Option<&'a Path>,
    /// A variable of the caller's environment.
    pub variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync),
    /// Names and ports that the command can reach; none for a sandbox without a network.
    pub network: Option<Network>,
    /// The caller's state folder, for covers and synthetic files.
    pub state: &'a Path,
    /// A folder of the caller's own for what surveys remember, if they may. It lies in no workspace.
    pub memory: Option<&'a Path>,
    /// Folders that are not looked through for denied files.
    pub unscanned: &'a [Unscanned],
    /// Whether to make what is missing.
    pub missing: Missing,
}

/// What programs in a sandbox are told of registries and certificates. Its variables win over the policy's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Variables.
    pub env: Environment,
    /// Files, by their place inside.
    pub files: Vec<(PathBuf, Vec<u8>, SyntheticRole)>,
}

/// What a sandbox sees of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A command's: the workspace as granted, and all toolchains.
    Workspace,
    /// A tool's: no workspace, and of the toolchains only the one that has this program. Whatever it
    /// wants of the workspace it asks the broker for.
    Program(&'static str),
}

/// The folder of synthetic files in the caller's state folder.
const MATERIALS: &str = "materials";

/// Where programs look for shared memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// The least that a folder in memory can hold.
const PAGE: u64 = 4096;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No user to run as.
    #[error(transparent)]
    User(#[from] UserError),
    /// Less protection than demanded.
    #[error(transparent)]
    TooLittle(#[from] TooLittle),
    /// Less of a protection than the policy demands.
    #[error(transparent)]
    NotInFull(#[from] NotInFull),
    /// The workspace cannot be mounted as granted.
    #[error(transparent)]
    Mounts(#[from] MountError),
    /// A file of ours cannot be placed.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// A variable that no process can have.
    #[error(
        "{0:?} cannot be a variable: a name has no `=`, no NUL and no line end, and a value has \
         no NUL"
    )]
    Variable(OsString),
}

impl Failure for PlanError {
    fn code(&self) -> Code {
        match self {
            Self::User(_) => Code::NoUser,
            Self::TooLittle(_) | Self::NotInFull(_) => Code::TooLittleProtection,
            Self::Mounts(MountError::Covers(_)) => Code::LocalError,
            Self::Mounts(_) => Code::Mounts,
            Self::Material(_) => Code::LocalError,
            Self::Variable(_) => Code::BadVariable,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        match self {
            Self::User(_) | Self::Material(_) => Fault::Engine,
            Self::TooLittle(_) | Self::NotInFull(_) | Self::Variable(_) => Fault::Policy,
            Self::Mounts(MountError::Covers(_)) => Fault::Engine,
            Self::Mounts(_) => Fault::Command,
        }
    }
}

/// Makes a plan.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(request: &PlanRequest<'_>) -> Result<SandboxPlan, PlanError> {
    let workspace = request.workspace;
    let user = user::choose(&UserFacts {
        caller: request.caller,
        mapping: request.mapping,
        workspace: workspace.owner(),
        others: workspace.others(),
        image: &request.image,
        writes: request.grants.writes,
    })?;
    let kind = request.kind;
    let mut protections = protections(kind, request.machine);
    demand(request.isolation, kind, &protections)?;

    let materials = Materials::new(&request.state.join(MATERIALS), request.missing);
    let synthetic = synthetic_files(request, &user, &materials)?;
    // Together they take less time than a waiting sandbox takes to wake, so they need no threads of their own.
    let points = MountPoints::read();
    let toolchains = toolchains(request, &user, &points);
    let mut env = environment(request, &toolchains)?;
    let seen = match request.view {
        View::Workspace => Some(seen(request, &user, &points)?),
        View::Program(_) => None,
    };
    let mut shown = seen.unwrap_or_default();
    if request.grants.code == RunsCode::NotGranted {
        shown.notes.extend(run_nothing(request, &shown, &mut env));
    }
    let mut notes = std::mem::take(&mut shown.notes);

    let mut masks = Vec::new();
    for (path, kind, identity) in &toolchains.hidden {
        if !path.starts_with(workspace.root()) {
            masks.push(mask(&materials, path, *kind, *identity)?);
        }
    }
    notes.extend(toolchains.notes);
    if user.why == WhyUser::RootWithoutCapabilities {
        notes.push(Note {
            code: "root",
            text: "the caller and the workspace are root's, so the command runs as root without capabilities"
                .to_owned(),
        });
    }
    if shown.partly_scanned {
        weaken(
            &mut protections,
            "denied-files",
            "folders that are configured not to be looked through are shown as they are; notes name them",
        );
    }
    demand_in_full(&request.demands, &protections)?;
    Ok(SandboxPlan {
        image: request.image.clone(),
        runtime: request.runtime.clone(),
        isolation: request.isolation,
        workspace: workspace.root().to_owned(),
        cwd: match request.view {
            View::Workspace => workspace.cwd().to_owned(),
            View::Program(_) => PathBuf::from(HOME),
        },
        mounts: in_order(workspace.root(), shown.mounts, toolchains.mounts),
        overlays: shown.overlays,
        covered: shown.covered,
        repositories: shown.repositories,
        links: shown.links,
        trees: shown.trees,
        masks,
        synthetic,
        tmpfs: tmpfs(request, &user),
        env,
        limits: request.limits,
        holders: request.machine.holders,
        network: request.network.clone(),
        protections,
        notes,
        user,
    })
}

/// The host's programs, where the image is the host's.
fn toolchains(request: &PlanRequest<'_>, user: &UserChoice, points: &MountPoints) -> Toolchains {
    match request.image {
        Image::Host => toolchain::find(&toolchain::Caller {
            home: request.home,
            variable: request.variable,
            workspace: request.workspace.root(),
            points,
            user: outside(request, user),
            code: request.grants.code,
            only: match request.view {
                View::Workspace => None,
                View::Program(name) => Some(name),
            },
        }),
        Image::Reference(_) => Toolchains::default(),
    }
}

/// What a command sees of the caller's tree.
#[derive(Default)]
struct Shown {
    overlays: Vec<Overlay>,
    mounts: Vec<Mount>,
    covered: BTreeSet<PathBuf>,
    repositories: BTreeSet<PathBuf>,
    links: BTreeSet<PathBuf>,
    trees: Vec<WorkTree>,
    /// The git folder outside the workspace that its `.git` file leads to.
    git: Option<PathBuf>,
    /// Whether folders are shown that were not looked through.
    partly_scanned: bool,
    notes: Vec<Note>,
}

fn seen(
    request: &PlanRequest<'_>,
    user: &UserChoice,
    points: &MountPoints,
) -> Result<Shown, MountError> {
    let workspace = request.workspace;
    let view = overlay::view(
        workspace,
        &request.grants,
        owner_of_covers(request, user),
        Surroundings {
            state: request.state,
            // A description leaves nothing behind.
            memory: request.memory.filter(|_| request.missing == Missing::Make),
            unscanned: request.unscanned,
            points,
            missing: request.missing,
        },
    )?;
    let mut shown = Shown {
        overlays: [vec![view.overlay], view.below_covered].concat(),
        mounts: view.below,
        covered: view.covered,
        repositories: view.repositories,
        links: view.links,
        trees: view.trees,
        git: None,
        partly_scanned: !view.not_scanned.is_empty(),
        notes: view.notes,
    };
    let git = gitdirs::find(workspace);
    shown.notes.extend(git.notes);
    if let Some((folder, identity)) = git.folder {
        let own = git.own.map(|git| WorkTree { git, top: PathBuf::new() });
        shown.trees.extend(own);
        let overlay = git_overlay(request, user, (&folder, identity), &mut shown)?;
        shown.overlays.push(overlay);
        shown.git = Some(folder);
    }
    Ok(shown)
}

fn git_overlay(
    request: &PlanRequest<'_>,
    user: &UserChoice,
    (folder, identity): (&Path, Identity),
    shown: &mut Shown,
) -> Result<Overlay, MountError> {
    let handle =
        std::fs::File::open(folder).map_err(|error| MountError::Open(folder.to_owned(), error))?;
    let hiding = Hiding { covered: &shown.covered, state: request.state, missing: request.missing };
    let at = (handle.as_fd(), folder);
    let contents = hidden_index::contents(at, &shown.trees, hiding, &mut shown.notes);
    let covers = layer(&Covering {
        over: handle.as_fd(),
        identity,
        covers: &BTreeMap::new(),
        contents: &contents,
        owner: owner_of_covers(request, user),
        state: request.state,
        missing: request.missing,
    })?;
    // A git folder outside the workspace is as writable as `.git` in it would be.
    let grants = &request.grants;
    let writes = match grants.writes == Writes::Some && grants.write.covers(Path::new(".git")) {
        true => OverlayWrites::Staged,
        false => OverlayWrites::Refused,
    };
    Ok(Overlay { target: folder.to_owned(), identity, covers, writes, role: OverlayRole::Git })
}

/// A cover over a credential in a toolchain folder.
fn mask(
    materials: &Materials,
    target: &Path,
    kind: MaskKind,
    hides: Identity,
) -> Result<Mask, MaterialError> {
    let (source, identity) = materials.cover(kind)?;
    Ok(Mask { source, target: target.to_owned(), kind, identity, hides })
}

/// Whom covers belong to: the user that the command runs as, as the host knows it in the workspace.
fn owner_of_covers(request: &PlanRequest<'_>, user: &UserChoice) -> Owner {
    match user.why {
        WhyUser::IdMapped => request.caller,
        _ => outside(request, user),
    }
}

/// The user that the command runs as, as the host knows it.
fn outside(request: &PlanRequest<'_>, user: &UserChoice) -> Owner {
    match request.mapping {
        UserMapping::Rootful | UserMapping::Swapped => Owner { uid: user.uid, gid: user.gid },
        UserMapping::Rootless | UserMapping::Remapped | UserMapping::Single => request.caller,
    }
}

fn synthetic_files(
    request: &PlanRequest<'_>,
    user: &UserChoice,
    materials: &Materials,
) -> Result<Vec<SyntheticFile>, PlanError> {
    let identity = synthetic::git_identity(request.home);
    // A tool has no workspace: one that waits can serve any.
    let safe: &[&Path] = match request.view {
        View::Workspace => &[request.workspace.root()],
        View::Program(_) => &[],
    };
    let names = if request.network.is_some() { Names::Answered } else { Names::Files };
    let files = match request.image {
        Image::Host => synthetic::files(user, safe, &identity, names),
        Image::Reference(_) => {
            let answered = (names == Names::Answered).then(synthetic::resolver);
            std::iter::once(synthetic::git(safe, &identity)).chain(answered).collect()
        }
    };
    let mut placed = Vec::new();
    for (target, content, role) in files.into_iter().chain(request.told.files.iter().cloned()) {
        let (source, identity) = materials.file(&content)?;
        placed.push(SyntheticFile {
            source,
            target,
            identity,
            content,
            mode: FileMode::Readable,
            role,
        });
    }
    Ok(placed)
}

fn environment(
    request: &PlanRequest<'_>,
    toolchains: &Toolchains,
) -> Result<Environment, PlanError> {
    let mut env = Environment::new();
    let path = request.image_facts.path.clone();
    env.insert("PATH".into(), path.unwrap_or_else(|| toolchain::system_path().into()));
    for (name, value) in [
        ("USER", USER),
        ("LOGNAME", USER),
        ("SHELL", "/bin/sh"),
        ("LANG", "C.UTF-8"),
        // Reading a repository must not rewrite its index.
        ("GIT_OPTIONAL_LOCKS", "0"),
    ] {
        env.insert(name.into(), value.into());
    }
    env.extend(toolchains.env.clone());
    for (name, value) in request.env.iter().chain(&request.told.env) {
        let bad_name =
            name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0 | b'\n'));
        if bad_name || value.as_bytes().contains(&0) {
            return Err(PlanError::Variable(name.clone()));
        }
        env.insert(name.clone(), value.clone());
    }
    // The only folder of that kind that is there.
    env.insert(OsStr::new("HOME").to_owned(), HOME.into());
    Ok(env)
}

/// A project can lead git and Rust's toolchains to programs of its own: a call without `code` sets what is stronger.
fn run_nothing(request: &PlanRequest<'_>, shown: &Shown, env: &mut Environment) -> Option<Note> {
    if request.image == Image::Host {
        let rustup = (request.variable)("RUSTUP_HOME").map(PathBuf::from);
        let chosen = rustup::toolchain(request.workspace, request.home, rustup.as_deref());
        env.insert("RUSTUP_TOOLCHAIN".into(), chosen.into());
    }
    for (name, value) in gitconfig::VARIABLES {
        env.insert(name.into(), value.into());
    }
    let fixed = gitconfig::FIXED.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let found = gitconfig::overrides(
        request.workspace,
        &shown.repositories,
        shown.git.as_deref(),
        request.grants.writes,
    );
    let (found, refused) = match found {
        Ok(found) => (found, None),
        Err(why) => (BTreeMap::new(), Some(why)),
    };
    let mut count = 0usize;
    for (key, value) in fixed.into_iter().chain(found) {
        env.insert(format!("GIT_CONFIG_KEY_{count}").into(), key.into());
        env.insert(format!("GIT_CONFIG_VALUE_{count}").into(), value.into());
        count += 1;
    }
    env.insert("GIT_CONFIG_COUNT".into(), count.to_string().into());
    refused.map(|why| {
        // Git says this name when it refuses to work.
        env.insert("GIT_DIR".into(), "/not used: its configuration could run programs".into());
        let text = format!("git does not work here without `code`: {why}");
        Note { code: "git_config", text }
    })
}

fn tmpfs(request: &PlanRequest<'_>, user: &UserChoice) -> Vec<Tmpfs> {
    let entry = |target: &Path, size: Limit, mode: u32, exec: TmpfsExec| Tmpfs {
        target: target.to_owned(),
        size: request.limits.get(size),
        inodes: request.limits.get(Limit::Inodes),
        uid: user.uid,
        gid: user.gid,
        mode,
        exec,
    };
    let mut all = vec![
        entry(Path::new("/tmp"), Limit::Scratch, 0o1777, TmpfsExec::Exec),
        entry(Path::new(HOME), Limit::Scratch, 0o700, TmpfsExec::Exec),
    ];
    // The engine's own would have no owner and no count of files; without a figure there is none.
    if request.limits.get(Limit::SharedMemory) > 0 {
        let folder = Path::new(SHARED_MEMORY);
        all.push(entry(folder, Limit::SharedMemory, 0o1777, TmpfsExec::NoExec));
    } else if RuntimeKind::of(request.runtime.as_ref()) == RuntimeKind::Gvisor {
        // gVisor has one of its own, bounded by nothing but memory; a closed one of root's lies over it.
        all.push(Tmpfs {
            target: SHARED_MEMORY.into(),
            size: PAGE,
            inodes: 1,
            uid: 0,
            gid: 0,
            mode: 0,
            exec: TmpfsExec::NoExec,
        });
    }
    for volume in &request.image_facts.volumes {
        let taken = all.iter().any(|entry| entry.target == *volume);
        if !taken && volume.is_absolute() && !volume.starts_with(request.workspace.root()) {
            all.push(entry(volume, Limit::Scratch, 0o755, TmpfsExec::Exec));
        }
    }
    all
}

/// All mounts, parents first. What lies in the workspace is the workspace's affair alone.
fn in_order(root: &Path, own: Vec<Mount>, host: Vec<Mount>) -> Vec<Mount> {
    let mut all: Vec<Mount> = own;
    for mount in host {
        let ours = mount.target.starts_with(root);
        if !ours && !all.iter().any(|other| other.target == mount.target) {
            all.push(mount);
        }
    }
    all.sort_by(|a, b| {
        let depth = |mount: &Mount| mount.target.components().count();
        depth(a).cmp(&depth(b)).then_with(|| a.target.cmp(&b.target))
    });
    all
}

/// Says where a protection ends in this plan.
fn weaken(
    protections: &mut [crate::engine::plan::Protection],
    name: &str,
    where_it_ends: &'static str,
) {
    for protection in protections {
        if protection.name == name && protection.status == ProtectionStatus::Enforced {
            protection.status = ProtectionStatus::BestEffort(where_it_ends);
        }
    }
}

#[cfg(test)]
#[path = "planner_tests.rs"]
mod tests;
