//! Whole plans.

use super::*;
use crate::workspace::grants::Code;
use crate::workspace::grants::tests::{Globs, globs};

struct Case {
    dir: tempfile::TempDir,
    workspace: Workspace,
    read: Globs,
    none: Globs,
    deny: Globs,
    write: Globs,
}

fn case(write: &[&str]) -> Case {
    // On the disk: covers need extended attributes.
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let top = dir.path().canonicalize().unwrap();
    for name in ["home/project/.git/hooks", "home/project/src", "home/.cargo/bin", "home/.rustup"] {
        std::fs::create_dir_all(top.join(name)).unwrap();
    }
    std::fs::write(top.join("home/project/.git/config"), "").unwrap();
    std::fs::write(top.join("home/project/.env"), "canary").unwrap();
    std::fs::write(top.join("home/.cargo/credentials.toml"), "canary").unwrap();
    std::fs::write(top.join("home/.gitconfig"), "[user]\nname = Ann\n").unwrap();
    let workspace = Workspace::find(
        Some(&top.join("home/project")),
        &crate::environment::Environment::from_iter([("HOME", top.join("home"))]),
    )
    .unwrap();
    Case {
        workspace,
        dir,
        read: globs(&["**"]),
        none: globs(&[]),
        deny: globs(&["**/.env"]),
        write: globs(write),
    }
}

impl Case {
    fn plan(&self, change: impl FnOnce(&mut PlanRequest<'_>)) -> Result<SandboxPlan, PlanError> {
        let home = self.workspace.root().parent().unwrap();
        let path = home.join(".cargo/bin").into_os_string();
        let variable = |name: &str| (name == "PATH").then(|| path.clone());
        let writes = if self.write.matches(Path::new("x")) { Writes::Some } else { Writes::None };
        let mut request = PlanRequest {
            network: None,
            workspace: &self.workspace,
            view: View::Workspace,
            grants: FileGrants {
                policy: [0; 32],
                read: &self.read,
                write: &self.write,
                readonly: &self.none,
                deny: &self.deny,
                create: &[],
                writes,
                code: Code::Granted,
            },
            image: Image::Host,
            image_facts: ImageFacts::default(),
            runtime: None,
            isolation: Isolation::Strict,
            demands: std::collections::BTreeSet::new(),
            limits: Limits::preset(Isolation::Strict),
            env: Environment::new(),
            told: &Told::default(),
            mapping: UserMapping::Rootful,
            kind: RuntimeKind::SharedKernel,
            machine: Machine::WHOLE,
            caller: Owner { uid: 1000, gid: 1000 },
            home: Some(home),
            variable: &variable,
            state: &self.dir.path().join("state"),
            memory: None,
            unscanned: &[],
            missing: Missing::Make,
        };
        change(&mut request);
        plan(&request)
    }
}

use crate::workspace::grants::PathSet;

#[test]
fn a_read_only_plan_holds_together() {
    let case = case(&[]);
    let plan = case.plan(|_| {}).unwrap();
    let root = case.workspace.root();
    let overlay = &plan.overlays[0];
    assert_eq!((overlay.target.as_path(), overlay.writes), (root, OverlayWrites::Refused));
    assert!(!plan.is_staged() && plan.may_wait());
    assert_eq!(plan.covered, [PathBuf::from(".env")].into());
    assert_eq!(std::fs::read(overlay.covers.path.join(".env")).unwrap(), b"");
    let home = root.parent().unwrap();
    let targets: Vec<&Path> = plan.mounts.iter().map(|mount| mount.target.as_path()).collect();
    for needed in [Path::new("/usr"), &home.join(".cargo"), &home.join(".rustup")] {
        assert!(targets.contains(&needed), "{}", needed.display());
    }
    assert!(targets.iter().all(|target| !home.starts_with(target)), "never the home");
    assert!(targets.iter().all(|target| !target.starts_with(root)), "nothing in the workspace");
    let masked: Vec<&Path> = plan.masks.iter().map(|mask| mask.target.as_path()).collect();
    assert_eq!(masked, [home.join(".cargo/credentials.toml")]);
    let parents_first = plan
        .mounts
        .windows(2)
        .all(|pair| pair[0].target.components().count() <= pair[1].target.components().count());
    assert!(parents_first);
    assert_eq!(plan.env[OsStr::new("HOME")], HOME);
    let mounts = plan.mounts.iter().map(|mount| mount.identity);
    let masks = plan.masks.iter().map(|mask| mask.identity);
    let files = plan.synthetic.iter().map(|file| file.identity);
    let layers = plan.overlays.iter().flat_map(|it| [it.identity, it.covers.identity]);
    let mut all = mounts.chain(masks).chain(files).chain(layers);
    assert!(all.all(|identity| identity != Identity::UNMADE));
}

#[test]
fn every_plan_can_become_a_container() {
    use crate::engine::docker::settings::{GuestDelivery, Launch, container_settings};
    for write in [&[][..], &["**"], &["target/**", "x"]] {
        let plan = case(write).plan(|_| {}).unwrap();
        let launch = Launch {
            image: "i".to_owned(),
            guest: GuestDelivery::InImage,
            arguments: Vec::new(),
            labels: std::collections::BTreeMap::new(),
            processors: 1,
            overlays: vec![String::new(); plan.overlays.len()],
        };
        container_settings(&plan, &launch).unwrap();
    }
}

#[test]
fn a_description_makes_nothing_at_all() {
    let case = case(&["x", "target/**"]);
    let plan = case.plan(|request| request.missing = Missing::Describe).unwrap();
    let root = case.workspace.root();
    assert!(plan.is_staged());
    assert_eq!(plan.overlays[0].covers.identity, Identity::UNMADE);
    assert!(!root.join("target").exists() && !root.join("x").exists());
    assert!(!case.dir.path().join("state").exists());
}

#[test]
fn the_policys_variables_win_but_not_over_the_home() {
    let set = |request: &mut PlanRequest<'_>, name: &str, value: &str| {
        request.env.insert(name.into(), value.into());
    };
    let plan = case(&[])
        .plan(|request| {
            set(request, "LANG", "de_DE");
            set(request, "HOME", "/root");
            set(request, "CI", "true");
        })
        .unwrap();
    assert_eq!(plan.env[OsStr::new("LANG")], "de_DE");
    assert_eq!(plan.env[OsStr::new("HOME")], HOME);
    let names: Vec<&str> = plan.env.keys().map(|name| name.to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CI",
            "GIT_OPTIONAL_LOCKS",
            "HOME",
            "LANG",
            "LOGNAME",
            "PATH",
            "RUSTUP_HOME",
            "SHELL",
            "USER"
        ]
    );
    for bad in ["", "A=B", "A\nB", "A\0B"] {
        let refused = case(&[]).plan(|request| set(request, bad, "x"));
        assert!(matches!(refused, Err(PlanError::Variable(_))), "{bad:?}");
    }
    assert!(matches!(
        case(&[]).plan(|request| set(request, "A", "x\0")),
        Err(PlanError::Variable(_))
    ));
}

#[test]
fn paranoid_refuses_a_shared_kernel() {
    let refused = case(&[]).plan(|request| request.isolation = Isolation::Paranoid);
    assert!(matches!(refused, Err(PlanError::TooLittle(_))));
    let plan = case(&[])
        .plan(|request| {
            request.isolation = Isolation::Paranoid;
            request.runtime = Runtime::new("runsc");
            request.kind = RuntimeKind::Gvisor;
        })
        .unwrap();
    assert!(plan.protections.iter().any(|protection| protection.name == "own-kernel"
        && protection.status == ProtectionStatus::Enforced));
}

#[test]
fn a_plan_that_writes_changes_nothing_in_the_workspace() {
    let case = case(&["target/**", "x", "**/dist/**", "src/*.rs"]);
    let root = case.workspace.root();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let plan = case.plan(|_| {}).unwrap();
    assert_eq!(names(), before);
    assert!(plan.is_staged() && plan.may_wait());
    assert!(!plan.mounts.iter().any(|mount| mount.target.starts_with(root)));
}

#[test]
fn pipes_and_sockets_are_covered_on_every_runtime() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    for write in [&["**"][..], &[]] {
        let case = case(write);
        let root = case.workspace.root();
        mknodat(CWD, root.join("src/pipe"), FileType::Fifo, Mode::from(0o644), 0).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(root.join("src/socket")).unwrap();
        for runtime in [None, Runtime::new("runsc")] {
            let plan = case.plan(|request| request.runtime = runtime).unwrap();
            let covered = [".env", "src/pipe", "src/socket"].map(PathBuf::from);
            assert_eq!(plan.covered, covered.into());
        }
    }
}

#[test]
fn the_git_folder_of_a_worktree_is_as_writable_as_one_in_the_workspace() {
    let git = |folder: &Path, args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    for (write, writes) in [
        (&["**"][..], OverlayWrites::Staged),
        (&["x", "src/**"], OverlayWrites::Refused),
        (&[], OverlayWrites::Refused),
    ] {
        let mut case = case(write);
        let (root, top) = (case.workspace.root().to_owned(), case.dir.path().to_owned());
        std::fs::remove_dir_all(root.join(".git")).unwrap();
        git(&root, &["init", "-q"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&root, &["worktree", "add", "-q", top.join("home/tree").to_str().unwrap()]);
        let home = crate::environment::Environment::from_iter([("HOME", top.join("home"))]);
        case.workspace = Workspace::find(Some(&top.join("home/tree")), &home).unwrap();
        let plan = case.plan(|_| {}).unwrap();
        let common = root.join(".git").canonicalize().unwrap();
        let overlay = plan.overlays.iter().find(|it| it.role == OverlayRole::Git);
        assert_eq!(overlay.map(|it| (&it.target, it.writes)), Some((&common, writes)));
        assert!(plan.mounts.iter().all(|it| it.target != common));
        assert_eq!(plan.trees[0].git, common.join("worktrees/tree"));
    }
}

#[test]
fn volumes_of_an_image_become_scratch() {
    let plan = case(&[])
        .plan(|request| {
            request.image = Image::Reference("x:1".to_owned());
            request.image_facts = ImageFacts {
                path: Some("/opt/bin:/bin".into()),
                volumes: vec!["/data".into(), "/tmp".into(), "relative".into()],
            };
            request.limits.set(Limit::SharedMemory, 1 << 20);
        })
        .unwrap();
    let targets: Vec<&str> =
        plan.tmpfs.iter().map(|entry| entry.target.to_str().unwrap()).collect();
    assert_eq!(targets, ["/tmp", HOME, "/dev/shm", "/data"]);
    assert_eq!(plan.tmpfs[2].size, 1 << 20);
    assert_eq!(plan.env[OsStr::new("PATH")], "/opt/bin:/bin");
    assert!(plan.mounts.iter().all(|mount| mount.role != crate::engine::plan::MountRole::System));
    assert_eq!(plan.synthetic.len(), 1);
}

#[test]
fn writing_as_root_is_said() {
    let case = case(&["x", "src/**"]);
    if case.workspace.owner().uid != 0 {
        return;
    }
    let plan = case.plan(|request| request.caller = Owner { uid: 0, gid: 0 }).unwrap();
    assert_eq!(plan.user.why, WhyUser::RootWithoutCapabilities);
    assert!(plan.notes.iter().any(|note| note.code == "root"));
}
