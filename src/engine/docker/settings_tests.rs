//! The whole configuration per preset, held by golden files, and the seccomp profile's own promises.
//! `RUNNER_BLESS=1` writes the golden files anew.

use super::*;
use crate::engine::Holders;
use crate::engine::plan::{
    FileMode, Image, Layer, Mask, MaskKind, Mount, MountRole, OverlayRole, OverlayWrites, Runtime,
    SyntheticFile, SyntheticRole, UserChoice, WhyUser,
};
use crate::ids::Identity;
use runner_policy::limits::Isolation;
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;

pub(crate) fn plan(isolation: Isolation) -> SandboxPlan {
    let workspace = PathBuf::from("/home/ann/a b:c,d");
    let mount = |path: &str, ino, role| Mount {
        source: PathBuf::from(path),
        target: PathBuf::from(path),
        identity: Identity { dev: 1, ino },
        role,
    };
    let limits = Limits::preset(isolation);
    SandboxPlan {
        network: None,
        image: Image::Host,
        runtime: match isolation {
            Isolation::Basic | Isolation::Strict => None,
            Isolation::Paranoid => Runtime::new("runsc"),
        },
        isolation,
        user: UserChoice { uid: 1000, gid: 1000, why: WhyUser::Caller },
        cwd: workspace.clone(),
        mounts: vec![
            mount("/usr", 9, MountRole::System),
            mount("/home/ann/.cargo", 8, MountRole::Toolchain),
        ],
        overlays: vec![Overlay {
            target: workspace.clone(),
            identity: Identity { dev: 1, ino: 2 },
            covers: Layer {
                path: PathBuf::from("/home/ann/.local/state/runner/covers/0123"),
                identity: Identity { dev: 1, ino: 6 },
                mark: "0123".to_owned(),
            },
            writes: OverlayWrites::Staged,
            role: OverlayRole::Workspace,
        }],
        masks: vec![Mask {
            source: PathBuf::from("/home/ann/.cache/runner/files/unreadable"),
            target: PathBuf::from("/home/ann/.cargo/credentials.toml"),
            kind: MaskKind::File,
            identity: Identity { dev: 1, ino: 4 },
            hides: Identity { dev: 1, ino: 3 },
        }],
        synthetic: vec![SyntheticFile {
            source: PathBuf::from("/home/ann/.cache/runner/files/0123"),
            target: PathBuf::from("/etc/passwd"),
            identity: Identity { dev: 1, ino: 5 },
            content: Vec::new(),
            mode: FileMode::Readable,
            role: SyntheticRole::Passwd,
        }],
        tmpfs: vec![Tmpfs {
            target: PathBuf::from("/tmp"),
            size: limits.get(Limit::Scratch),
            inodes: limits.get(Limit::Inodes),
            uid: 1000,
            gid: 1000,
            mode: 0o1777,
            exec: TmpfsExec::Exec,
        }],
        env: [("SECRET".into(), "canary".into())].into(),
        limits,
        holders: Holders::GROUPS,
        protections: Vec::new(),
        repositories: Default::default(),
        links: Default::default(),
        covered: [PathBuf::from(".env")].into(),
        trees: Vec::new(),
        notes: Vec::new(),
        workspace,
    }
}

fn launch() -> Launch {
    Launch {
        image: "runner-host:1".to_owned(),
        guest: GuestDelivery::InImage,
        arguments: Vec::new(),
        labels: BTreeMap::from([("runner.call".to_owned(), "c1".to_owned())]),
        processors: 2,
        overlays: vec!["lowerdir=/proc/7/fd/8:/proc/7/fd/9,userxattr,nosuid,nodev".to_owned()],
    }
}

/// Keys in order, and the profile by name: it has a file of its own.
fn readable(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.into_iter().map(|(k, v)| (k, readable(v))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(readable).collect()),
        Value::String(text) if text == format!("seccomp={}", seccomp::PROFILE) => {
            Value::String("seccomp=<images/seccomp.json>".to_owned())
        }
        other => other,
    }
}

fn golden(name: &str, isolation: Isolation) {
    let body = container_settings(&plan(isolation), &launch()).unwrap();
    let body = readable(serde_json::to_value(body).unwrap());
    let text = serde_json::to_string_pretty(&body).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/engine/docker/golden")
        .join(format!("{name}.json"));
    if std::env::var_os("RUNNER_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap(), "RUNNER_BLESS=1 writes it anew");
}

#[test]
fn the_whole_configuration_of_basic() {
    golden("basic", Isolation::Basic);
}

#[test]
fn the_whole_configuration_of_strict() {
    golden("strict", Isolation::Strict);
}

#[test]
fn the_whole_configuration_of_paranoid() {
    golden("paranoid", Isolation::Paranoid);
}

#[test]
fn no_variable_of_the_command_is_in_the_settings() {
    let body = container_settings(&plan(Isolation::Strict), &launch()).unwrap();
    assert!(!serde_json::to_string(&body).unwrap().contains("canary"));
}

#[test]
fn what_json_cannot_carry_is_refused() {
    let mut odd = plan(Isolation::Strict);
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/w/\xff"));
    odd.mounts[1].target = path.clone();
    assert_eq!(container_settings(&odd, &launch()), Err(SettingsError::NotUtf8(path)));
    for bad in ["relative", "/a/../b", ""] {
        let mut odd = plan(Isolation::Strict);
        odd.mounts[1].source = PathBuf::from(bad);
        assert_eq!(
            container_settings(&odd, &launch()),
            Err(SettingsError::NotAbsolute(bad.into()))
        );
    }
}

/// Everything of the host is a read-only bind; only an overlay, whose upper layer is a stage, can be
/// written.
#[test]
fn no_folder_of_the_host_is_mounted_writable() {
    let body = container_settings(&plan(Isolation::Strict), &launch()).unwrap();
    for mount in body.host_config.unwrap().mounts.unwrap() {
        match mount.typ {
            Some(MountType::BIND) => assert_eq!(mount.read_only, Some(true), "{mount:?}"),
            Some(MountType::VOLUME) => {
                let options = mount.volume_options.unwrap();
                assert_eq!((mount.source, options.no_copy), (None, Some(true)));
                assert!(options.labels.unwrap().contains_key("runner.call"));
                let driver = options.driver_config.unwrap().options.unwrap();
                assert!(driver["o"].ends_with(",userxattr,nosuid,nodev"), "{driver:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_target_is_mounted_once() {
    let mut twice = plan(Isolation::Strict);
    let again = twice.mounts[1].clone();
    twice.mounts.push(again);
    assert!(matches!(
        container_settings(&twice, &launch()),
        Err(SettingsError::DuplicateTarget(_))
    ));
    let mut twice = plan(Isolation::Strict);
    twice.mounts[1].target = twice.workspace.clone();
    assert!(matches!(
        container_settings(&twice, &launch()),
        Err(SettingsError::DuplicateTarget(_))
    ));
}

#[test]
fn a_guest_of_a_foreign_image_arrives_in_a_read_only_volume() {
    let launch = Launch { guest: GuestDelivery::Volume("runner-guest-1".to_owned()), ..launch() };
    let body = container_settings(&plan(Isolation::Strict), &launch).unwrap();
    let mounts = body.host_config.unwrap().mounts.unwrap();
    let volume = mounts.iter().find(|it| it.target.as_deref() == Some(GUEST_FOLDER)).unwrap();
    assert_eq!(volume.typ, Some(MountType::VOLUME));
    assert_eq!(volume.read_only, Some(true));
}

/// Every rule of the profile that admits this system call.
fn rules<'a>(profile: &'a Value, call: &str) -> Vec<&'a Value> {
    profile["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["action"] == "SCMP_ACT_ALLOW")
        .filter(|rule| rule["names"].as_array().unwrap().iter().any(|name| name == call))
        .collect()
}

#[test]
fn the_profile_admits_no_way_to_a_new_privilege() {
    let profile: Value = serde_json::from_str(seccomp::PROFILE).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    for call in [
        "mount",
        "umount2",
        "umount",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "fspick",
        "fsconfig",
        "mount_setattr",
        "pivot_root",
        "chroot",
        "unshare",
        "setns",
        "clone3",
        "openat2",
        "bpf",
        "perf_event_open",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "kcmp",
        "process_madvise",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "add_key",
        "keyctl",
        "request_key",
        "userfaultfd",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "open_by_handle_at",
        "quotactl",
        "reboot",
        "swapon",
        "swapoff",
        "syslog",
        "acct",
        "iopl",
        "ioperm",
        "modify_ldt",
        "settimeofday",
        "clock_settime",
        "adjtimex",
        "sethostname",
        "setdomainname",
        "fanotify_init",
        "socketcall",
        "ipc",
        "nfsservctl",
        "vhangup",
    ] {
        assert!(rules(&profile, call).is_empty(), "{call}");
    }
}

#[test]
fn every_mode_argument_is_filtered() {
    let profile: Value = serde_json::from_str(seccomp::PROFILE).unwrap();
    for call in [
        "chmod",
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "creat",
        "open",
        "openat",
        "mkdir",
        "mkdirat",
        "mknod",
        "mknodat",
    ] {
        let found = rules(&profile, call);
        assert!(!found.is_empty(), "{call}");
        for rule in found {
            let args = rule["args"].as_array().unwrap();
            let mask = args[0]["value"].as_u64().unwrap();
            let value = args[0]["valueTwo"].as_u64().unwrap();
            let modes = mask & 0o6000 == 0o6000 && value & 0o6000 == 0;
            let makes_nothing = mask == 0x40_0040 && value == 0;
            assert_eq!(args.len(), 1, "{call}");
            assert_eq!(args[0]["op"], "SCMP_CMP_MASKED_EQ", "{call}");
            assert!(modes || makes_nothing, "{call}");
        }
    }
}

#[test]
fn only_four_socket_families_are_admitted_and_no_32_bit_calls() {
    let profile: Value = serde_json::from_str(seccomp::PROFILE).unwrap();
    let families: Vec<u64> = rules(&profile, "socket")
        .iter()
        .map(|rule| rule["args"][0]["value"].as_u64().unwrap())
        .collect();
    assert_eq!(families, [1, 2, 10, 16]);
    for arch in profile["archMap"].as_array().unwrap() {
        assert_eq!(arch["subArchitectures"].as_array().unwrap().len(), 0);
    }
}
