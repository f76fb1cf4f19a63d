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
    let dir = tempfile::tempdir().unwrap();
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
            limits: Limits::preset(Isolation::Strict),
            env: Environment::new(),
            mapping: UserMapping::Rootful,
            caller: Owner { uid: 1000, gid: 1000 },
            home: Some(home),
            variable: &variable,
            materials: &self.dir.path().join("materials"),
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
    assert!(plan.mounts.iter().all(|mount| mount.access == Access::ReadOnly));
    let root = case.workspace.root();
    let home = root.parent().unwrap();
    let targets: Vec<&Path> = plan.mounts.iter().map(|mount| mount.target.as_path()).collect();
    for needed in [Path::new("/usr"), root, &home.join(".cargo"), &home.join(".rustup")] {
        assert!(targets.contains(&needed), "{}", needed.display());
    }
    assert!(targets.iter().all(|target| !home.starts_with(target)), "never the home");
    let masked: Vec<&Path> = plan.masks.iter().map(|mask| mask.target.as_path()).collect();
    assert_eq!(masked, [root.join(".env"), home.join(".cargo/credentials.toml")]);
    let parents_first = plan
        .mounts
        .windows(2)
        .all(|pair| pair[0].target.components().count() <= pair[1].target.components().count());
    assert!(parents_first);
    assert_eq!(plan.env[OsStr::new("HOME")], HOME);
    assert!(plan.mounted().all(|(_, identity)| identity != Identity::UNMADE));
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
        };
        container_settings(&plan, &launch).unwrap();
    }
}

#[test]
fn a_description_makes_nothing_at_all() {
    let case = case(&["x", "target/**"]);
    let plan = case.plan(|request| request.missing = Missing::Describe).unwrap();
    let root = case.workspace.root();
    assert_eq!(plan.created_folders, [root.join("target"), root.join("x")]);
    assert!(!root.join("target").exists() && !root.join("x").exists());
    assert!(!case.dir.path().join("materials").exists());
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
        })
        .unwrap();
    assert!(plan.protections.iter().any(|protection| protection.name == "own-kernel"
        && protection.status == ProtectionStatus::Enforced));
}

#[test]
fn a_pipe_is_covered_by_runc_and_refused_where_the_runtime_would_wait_at_it() {
    use rustix::fs::{CWD, Mode, mknodat};

    for write in [&["**"][..], &[]] {
        let case = case(write);
        let pipe = case.workspace.root().join("src/pipe");
        let own_kernel = |request: &mut PlanRequest<'_>| request.runtime = Runtime::new("runsc");
        case.plan(own_kernel).unwrap();
        let socket = case.workspace.root().join("src/socket");
        let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        case.plan(own_kernel).unwrap();
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o644), 0).unwrap();
        let plan = case.plan(|_| {}).unwrap();
        assert!(plan.masks.iter().any(|mask| mask.target == pipe));
        let refused = case.plan(own_kernel).unwrap_err();
        assert_eq!(refused.code(), "uncoverable_file");
        assert!(refused.to_string().contains(pipe.to_str().unwrap()), "{refused}");
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
    assert!(plan.mounts.iter().all(|mount| mount.role != MountRole::System));
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
