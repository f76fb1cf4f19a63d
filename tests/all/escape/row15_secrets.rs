//! Row 15, secrets: a command dumps everything it can and fails in every way, and no secret of the host is
//! anywhere in what is left.
//!
//! What is in git's objects is not covered, by design and as docs/security.md says: whoever commits a secret has
//! given it to everyone who can read the repository. No canary is committed here.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use super::harness::{On, attack};
use super::seat::Seat;

/// What every canary starts with, so that one search finds all.
const CANARY: &str = "CANARY-5d1f";

/// What the control looks for: a file that may be read.
const OPEN: &str = "OPEN-5d1f";

/// Variables of the caller that hold secrets.
const VARIABLES: [&str; 8] = [
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "DATABASE_URL",
    "NPM_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "SSH_AUTH_SOCK",
    "KUBECONFIG",
    "MY_OWN_SECRET",
];

/// Files of the caller's home that hold secrets.
const AT_HOME: [&str; 12] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".docker/config.json",
    ".kube/config",
    ".config/gh/hosts.yml",
    ".gnupg/secring.gpg",
    ".bash_history",
    ".cargo/credentials.toml",
    "notes.txt",
];

/// Files of the workspace that the policy denies.
const DENIED: [&str; 8] = [
    ".env",
    "deep/er/.env.production",
    "secrets/token",
    "tls/server.key",
    "tls/server.pem",
    ".npmrc",
    "infra/prod.tfstate",
    ".ssh/id_rsa",
];

/// Everything that a process can read: its own and others' environments, and every file but the system's
/// programs.
const DUMP: &str = r#"
env; set; export -p
for p in /proc/[0-9]* /proc/self; do
  cat $p/environ $p/cmdline $p/mountinfo $p/status $p/maps
  for way in root cwd fd/0 fd/1 fd/2; do echo "$p/$way"; find -L $p/$way -maxdepth 1; done
done
cat /etc/passwd /etc/shadow /etc/hosts /root/.ssh/* /root/.aws/*
find / \( -path /usr -o -path /proc -o -path /sys -o -path /dev -o -path '/lib*' -o -path /bin -o -path /sbin \) -prune -o -type f -print > /tmp/names
sed 's/^/== /' /tmp/names; tr '\n' '\0' < /tmp/names | xargs -0 cat
for file in .env deep/er/.env.production secrets/token tls/server.key .npmrc .ssh/id_rsa; do
  cat "$file"; cp "$file" /tmp/copy; cat /tmp/copy; ln "$file" /tmp/hard; cat "/proc/self/root$PWD/$file"; cat "/proc/1/root$PWD/$file"; tar cf - "$file"; dd if="$file"
done
git log -p; git config --list --show-origin; git stash list
"#;

fn canary(of: &str) -> String {
    format!("{CANARY}-{}-x", of.replace(['/', '.'], "_"))
}

/// A caller with a secret in every corner.
fn caller(on: On) -> Seat {
    let seat = Seat::new(on, &[("open.txt", OPEN), ("src/main.sh", "echo hello\n")]);
    seat.home.git(&["init", "-q", "-b", "main"]);
    seat.home.git(&["add", "open.txt", "src"]);
    seat.home.git(&["commit", "-qm", "first"]);
    for name in AT_HOME {
        write(&seat.home.path(name), &canary(name));
    }
    for name in DENIED {
        write(&seat.file(name), &canary(name));
    }
    write(&seat.home.path("neighbour/data.txt"), &canary("neighbour"));
    // A toolchain at home, so that the folder with its credentials is mounted.
    write(&seat.home.path(".cargo/bin/mytool"), "#!/bin/sh\necho mytool\n");
    fs::create_dir_all(seat.home.path("tmp")).unwrap();
    seat.give_away();
    seat
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The program, called by somebody whose environment is full of secrets.
fn runner(seat: &Seat, args: &[&str]) -> Command {
    let mut command = seat.home.runner();
    for name in VARIABLES {
        command.env(name, canary(name));
    }
    let cargo = seat.home.path(".cargo/bin");
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", cargo.display()));
    command.env_remove("RUSTUP_HOME").env_remove("RUSTUP_TOOLCHAIN");
    command.env("CARGO_HOME", seat.home.path(".cargo"));
    command.env("TMPDIR", seat.home.path("tmp")).env("XDG_CACHE_HOME", seat.home.path("cache"));
    command.args(args);
    command
}

fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Fails if a canary is in these bytes, and tells which.
fn clean(what: &str, bytes: &[u8]) {
    if let Some(at) = bytes.windows(CANARY.len()).position(|window| window == CANARY.as_bytes()) {
        let around = &bytes[at.saturating_sub(80)..bytes.len().min(at + 60)];
        panic!("{what}: {}", String::from_utf8_lossy(around));
    }
}

/// Runs it to its end; neither stream holds a canary.
fn ran(seat: &Seat, args: &[&str]) -> std::process::Output {
    let output = runner(seat, args).output().unwrap();
    clean(&format!("standard output of {args:?}"), &output.stdout);
    clean(&format!("standard error of {args:?}"), &output.stderr);
    output
}

/// Every file below a folder.
fn files(folder: &Path, into: &mut BTreeMap<std::path::PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            files(&path, into);
        } else if kind.is_file() {
            into.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

fn no_files_of_ours_hold_one(seat: &Seat) {
    let mut left = BTreeMap::new();
    for folder in ["state", "cache", "tmp"] {
        files(&seat.home.path(folder), &mut left);
    }
    assert!(left.keys().any(|path| path.ends_with("store.db")), "the ledger is among them");
    for (path, bytes) in &left {
        clean(&path.display().to_string(), bytes);
    }
}

fn a_dump_of_everything_holds_no_secret(on: On) {
    let seat = caller(on);
    let exec = ["exec", "--policy", "all"];
    let output = ran(&seat, &[&exec[..], &["--", "bash", "-c", DUMP]].concat());
    assert!(holds(&output.stdout, OPEN), "the control: an open file is in the dump");
    assert!(holds(&output.stdout, "== /etc/passwd"), "and what the sandbox has of its own");
    assert!(holds(&output.stdout, ".cargo/bin/mytool"), "and the toolchain from home");
    let json = ran(&seat, &[&["--json"], &exec[..], &["--", "bash", "-c", DUMP]].concat());
    assert!(holds(&json.stdout, "\"status\""));
    no_files_of_ours_hold_one(&seat);
    for name in DENIED {
        assert_eq!(seat.text(name), canary(name), "still there");
    }
}
attack!(15, "canaries", a_dump_of_everything_holds_no_secret);

fn no_error_holds_a_secret(on: On) {
    let seat = caller(on);
    let broken = seat.home.path("broken.yml");
    write(&broken, "policy: 1\nname: broken\nfils: {}\n");
    let ways: [(&[&str], i32); 14] = [
        (&["--policy", "look", "--", "cat", ".env"], 126),
        (&["--policy", "look", "--", "rm", "-rf", "secrets"], 126),
        (&["--policy", "look", "--shell", "cat $GITHUB_TOKEN .env"], 126),
        (&["--policy", "all", "--", "nosuch-program"], 127),
        (&["--policy", "all", "--", "sh", "-c", "exit 7"], 7),
        (&["--policy", "all", "--timeout", "1s", "--", "sleep", "30"], 124),
        (&["--policy", "all", "--limit", "output-max=64KiB", "--", "yes"], 121),
        (
            &[
                "--policy",
                "all",
                "--limit",
                "file-size=4KiB",
                "--",
                "dd",
                "if=/dev/zero",
                "of=out.bin",
                "bs=64K",
                "count=2",
            ],
            121,
        ),
        (&["--policy", "all", "--image", "nosuch.example/x:1", "--", "true"], 125),
        (&["--policy", "all", "--workdir", "nosuch", "--", "true"], 125),
        (&["--policy", "nosuch", "--", "true"], 125),
        (&["--policy", "all", "--memory", "lots", "--", "true"], 2),
        (&["--nosuch-option"], 2),
        (&["--policy", "all", "--dry-run", "--", "env"], 0),
    ];
    for (args, code) in ways {
        for form in [&["exec"][..], &["--json", "exec"]] {
            let output = ran(&seat, &[form, args].concat());
            assert_eq!(
                output.status.code(),
                Some(code),
                "{args:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    ran(&seat, &["exec", "--policy", broken.to_str().unwrap(), "--", "true"]);
    let mut nobody =
        runner(&seat, &["exec", "--engine", "docker", "--policy", "all", "--", "true"]);
    nobody.env("DOCKER_HOST", "unix:///nosuch/docker.sock");
    let output = nobody.output().unwrap();
    clean("no engine", &output.stderr);
    assert_eq!(output.status.code(), Some(125));
    // What is told about all of it later.
    for args in [
        &["audit", "list"][..],
        &["audit", "list", "--json", "-n", "1000"],
        &["ps"],
        &["gc", "--json"],
    ] {
        ran(&seat, args);
    }
    for call in seat.calls() {
        ran(&seat, &["audit", "show", call["call"].as_str().unwrap(), "--json"]);
    }
    no_files_of_ours_hold_one(&seat);
}
attack!(15, "canaries", no_error_holds_a_secret);

fn the_engine_is_told_no_secret(on: On) {
    let seat = caller(on);
    let mut child =
        runner(&seat, &["exec", "--policy", "all", "--", "sh", "-c", "echo up; sleep 60"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    let mut first = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let calls = seat.home.run(["ps", "--json"]).json();
    let call = calls["calls"][0]["call"].as_str().unwrap().to_owned();
    match on {
        On::Embedded => the_launcher_is_told_none(),
        On::Runc | On::Gvisor => the_daemon_shows_none(&call),
    }
    no_files_of_ours_hold_one(&seat);
    assert_eq!(seat.home.run(["cancel", &call]).code, Some(0));
    child.wait().unwrap();
    no_files_of_ours_hold_one(&seat);
}
attack!(15, "canaries", the_engine_is_told_no_secret);

/// What a daemon shows of a call's container.
fn the_daemon_shows_none(call: &str) {
    let docker = |args: &[&str]| {
        let told = Command::new("docker").args(args).output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        told.stdout
    };
    let label = format!("label=runner.call={call}");
    let found =
        String::from_utf8(docker(&["ps", "-aq", "--no-trunc", "--filter", &label])).unwrap();
    let id = found.trim();
    assert_eq!(id.len(), 64, "one container of this call: {found:?}");
    let told = docker(&["inspect", id]);
    clean("docker inspect", &told);
    assert!(holds(&told, call), "the control: it is the container of this call");
    clean("docker ps", &docker(&["ps", "-a", "--no-trunc", "--format", "{{json .}}"]));
    clean("docker top", &docker(&["top", id]));
}

/// What any process of this user sees of launchers and guests. (The command itself has what the policy gives it.)
fn the_launcher_is_told_none() {
    let mut seen = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let program = words.split(|byte| *byte == 0).next().unwrap_or_default();
        if !program.ends_with(b"/guest") {
            continue;
        }
        seen += 1;
        clean("words of a launcher or guest", &words);
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        clean("environment of a launcher or guest", &environment);
    }
    assert!(seen >= 2, "the control: a launcher and a guest were looked at");
}
