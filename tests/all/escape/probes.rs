//! Escape probes: a program tries every way out that we know. Golden lists, one a runtime, hold what happened;
//! `RUNNER_BLESS=1` writes them anew.

use std::path::Path;
use std::process::Command;

use super::harness::{Case, READ, Rules, case};

fn probed(runtime: Option<&str>) -> (Case, String) {
    let case = case(&["scratch/", "probe.c"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/escape/probe.c");
    let built = Command::new("cc")
        .arg("-o")
        .arg(case.root.join("probe"))
        .arg(source)
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let rules = Rules { write: &["scratch/**"], runtime, ..READ };
    let ran = case.sh(rules, "cd scratch && ../probe").succeeded();
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

#[test]
fn every_probe_fails_on_runc_and_every_control_succeeds() {
    let (case, found) = probed(None);
    compare("probes-runc.txt", &found);
    let done: Vec<&str> = found.lines().filter_map(|line| line.strip_prefix("done ")).collect();
    for control in CONTROLS {
        assert!(done.contains(&control), "{control}");
    }
    let beyond: Vec<&&str> = done.iter().filter(|name| !CONTROLS.contains(name)).collect();
    assert_eq!(beyond, [&"socket family 16"], "routing netlink, by which libraries list addresses");
    use std::os::unix::fs::MetadataExt;
    for entry in std::fs::read_dir(case.root.join("scratch")).unwrap() {
        let found = entry.unwrap().metadata().unwrap();
        assert_eq!(found.mode() & 0o6000, 0, "no setuid file is left");
    }
}

#[test]
fn probes_on_gvisor_end_as_its_list_says() {
    let runtimes = Command::new("docker").args(["info", "--format", "{{json .Runtimes}}"]).output();
    let known = runtimes.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("runsc"));
    if !known {
        assert!(std::env::var_os("CI").is_none(), "the engine knows no runsc");
        eprintln!("SKIPPED: the engine knows no runsc");
        return;
    }
    let (_case, found) = probed(Some("runsc"));
    compare("probes-runsc.txt", &found);
    for never in [
        "mount",
        "metadata address",
        "packet socket",
        "mknod character device",
        "memory of the guest",
    ] {
        assert!(found.lines().any(|line| line == format!("refused {never}")), "{never}\n{found}");
    }
}
