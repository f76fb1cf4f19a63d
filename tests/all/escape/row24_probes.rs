//! Row 24, escape probes: a program tries every way out that we know. Golden lists, one a runtime, hold what happened;
//! `RUNNER_BLESS=1` writes them anew.

use std::path::Path;
use std::process::Command;

use super::harness::{Case, On, attack, case};

fn probed(on: On) -> (Case, String) {
    let case = case(&["scratch/", "probe.c"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/escape/probe.c");
    let built = Command::new("cc")
        .arg("-o")
        .arg(case.root.join("probe"))
        .arg(source)
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = case.sh(on.write(&["scratch/**"]), "cd scratch && ../probe").succeeded();
    (case, ran.out)
}

fn compare(name: &str, found: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/escape/golden").join(name);
    if std::env::var_os("RUNNER_BLESS").is_some() {
        std::fs::write(&file, found).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    assert_eq!(found, golden, "RUNNER_BLESS=1 writes it anew");
}

/// Everything that a sandbox must be able to do: the controls.
const CONTROLS: [&str; 12] = [
    "chmod 0755",
    "open",
    "open with odd mode and no creation",
    "mkdir",
    "mknod pipe",
    "fork",
    "null",
    "own loopback",
    "socketpair",
    "socket family 1",
    "socket family 2",
    "socket family 10",
];

/// What no runtime lets happen, by whatever means it stops it.
const NEVER: [&str; 14] = [
    "mount",
    "bind mount",
    "remount",
    "pivot_root",
    "setns",
    "mknod character device",
    "mknod block device",
    "ptrace",
    "memory of the guest",
    "metadata address",
    "packet socket",
    "core_pattern",
    "release_agent",
    "setuid root",
];

fn every_probe_ends_as_the_list_of_its_runtime_says(on: On) {
    let (_case, found) = probed(on);
    compare(
        match on {
            On::Runc => "probes-runc.txt",
            On::Gvisor => "probes-runsc.txt",
            On::Embedded => "probes-embedded.txt",
        },
        &found,
    );
    for never in NEVER {
        assert!(found.lines().any(|line| line == format!("refused {never}")), "{never}\n{found}");
    }
    let done: Vec<&str> = found.lines().filter_map(|line| line.strip_prefix("done ")).collect();
    for control in CONTROLS {
        assert!(done.contains(&control), "{control}");
    }
    if on != On::Gvisor {
        let beyond: Vec<&&str> = done.iter().filter(|name| !CONTROLS.contains(name)).collect();
        assert_eq!(
            beyond,
            [&"socket family 16"],
            "routing netlink, by which libraries list addresses"
        );
    }
}
attack!(24, "probes", every_probe_ends_as_the_list_of_its_runtime_says);

fn no_setuid_file_is_left(on: On) {
    use std::os::unix::fs::MetadataExt;
    let (case, found) = probed(on);
    assert!(found.lines().any(|line| line == "done chmod 0755"), "the control");
    let mut files = 0;
    for entry in std::fs::read_dir(case.root.join("scratch")).unwrap() {
        let found = entry.unwrap().metadata().unwrap();
        assert_eq!(found.mode() & 0o6000, 0, "no setuid file is left");
        files += 1;
    }
    assert!(files > 0, "the control: files without such bits are there");
}
attack!(24, "setuid files", no_setuid_file_is_left);

fn no_setuid_bit_is_set_for_a_moment(on: On) {
    let (_case, found) = probed(on);
    assert!(found.lines().any(|line| line == "done chmod 0755"), "the control");
    let bits = |line: &&str| line.starts_with("done set") && line.contains(" by ");
    assert_eq!(found.lines().find(bits), None);
}
attack!(24, "setuid bits", no_setuid_bit_is_set_for_a_moment);
