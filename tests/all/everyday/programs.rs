//! Programs, settings and lines of projects as they are: real sandboxes, real environments.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};

use super::Caller;
use crate::support::{Ran, needs_engine};

fn line(caller: &Caller, project: &Path, policy: &str, text: &str) -> Ran {
    caller.run(project, &["exec", "--policy", policy, "--shell", text])
}

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn certificates_are_seen_and_keys_are_not() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let key = KeyPair::generate().unwrap();
    let good = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap().pem();
    let both = format!("{good}{}", key.serialize_pem());
    let project = caller.project(
        "certificates",
        &[("ca/good.pem", &good), ("both.pem", &both), (".env", "SECRET=1"), ("x", "")],
    );
    let look = "import os; [print(n, len(open(n).read())) for n in ('ca/good.pem', 'both.pem')]";
    for policy in ["develop", "edit"] {
        let out = caller.works(&project, &["exec", "-p", policy, "--", "python3", "-c", look]);
        assert_eq!(out, format!("ca/good.pem {}\nboth.pem 0\n", good.len()), "{policy}");
    }
    // What it becomes on the host is judged anew; what a command makes of it stays behind.
    fs::write(project.join("ca/good.pem"), &both).unwrap();
    let out = caller.works(&project, &["exec", "-p", "edit", "--", "python3", "-c", look]);
    assert_eq!(out, "ca/good.pem 0\nboth.pem 0\n");
    fs::write(project.join("ca/good.pem"), &good).unwrap();
    let write = "open('ca/good.pem', 'a').write('x'); open('x', 'w').write('new')";
    let _ = caller.run(&project, &["exec", "-p", "edit", "--", "python3", "-c", write]);
    assert_eq!(fs::read_to_string(project.join("ca/good.pem")).unwrap(), good);
    assert_eq!(fs::read_to_string(project.join("x")).unwrap(), "new", "the control");
}

#[test]
fn a_line_that_only_a_shell_reads_runs_in_bash() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("bash", &[("a", "")]);
    let text = "a=(one two); echo ${a[1]}; [ -n \"$BASH_VERSION\" ] && echo bash";
    let args = ["--json=full", "exec", "--policy", "edit", "--shell", text];
    let result = caller.run(&project, &args).json();
    assert_eq!(result["stdout"], "two\nbash\n", "{result}");
    assert!(result.to_string().contains("bash ran it"), "{result}");
    // What the caller gave to `sh` is read by `sh`.
    let args =
        ["exec", "--policy", "edit", "--", "sh", "-c", "f() { echo \"<$BASH_VERSION>\"; }; f"];
    assert_eq!(caller.works(&project, &args), "<>\n");
    assert_eq!(line(&caller, &project, "develop", text).code, Some(126));
}

#[test]
fn programs_of_an_activated_environment_are_found_where_code_may_run() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("environment", &[("a", "")]);
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(&project)
        .status();
    assert!(made.expect("python3").success());
    // A program of the project that is called as one of the system.
    program(&project.join(".venv/bin/ls"), "#!/bin/sh\necho the project\n");
    program(&project.join("node_modules/.bin/tsc"), "#!/bin/sh\necho tsc of the project\n");
    let path = format!(
        "{0}/.venv/bin:{0}/node_modules/.bin:{1}",
        project.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = |policy: &str, text: &str| {
        let mut command = caller.runner(&project);
        command.args(["exec", "--policy", policy, "--shell", text]);
        command.env("PATH", &path).env("VIRTUAL_ENV", project.join(".venv"));
        Ran::from(command.output().unwrap())
    };
    let ran = run("edit", "python -c 'import sys; print(sys.prefix)' && tsc");
    let prefix = project.join(".venv");
    assert_eq!(ran.out, format!("{}\ntsc of the project\n", prefix.display()), "{}", ran.err);
    // Without `code` no program of the project stands in for one of the system.
    assert_eq!(run("readonly", "ls a").out, "a\n");
}

#[test]
fn who_commits_can_be_set_and_nothing_else() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("settings", &[("a", "")]);
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(&project).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    let text = "git config user.name Agent && git config user.email a@b.example && git add a && git commit -q -m one";
    let ran = line(&caller, &project, "edit", text);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(git(&["log", "-1", "--format=%an %ae"]), "Agent a@b.example\n");
    assert_eq!(git(&["config", "user.name"]), "Agent\n");
    let out = line(&caller, &project, "edit", "git --git-dir=.git --work-tree=. log --format=%s");
    assert_eq!(out.out, "one\n", "{}", out.err);
    for text in [
        "git config core.hooksPath hooks",
        "git config core.fsmonitor 'touch mark'",
        "git config alias.x '!touch mark'",
        "git config include.path ../evil.cfg",
        "git config --file .git/config core.pager x",
        "git --git-dir=elsewhere status",
    ] {
        let ran = line(&caller, &project, "edit", text);
        assert_ne!(ran.code, Some(0), "{text}: {}{}", ran.out, ran.err);
    }
    // What only a real shell reads is held back when it ends; so is what a line learns while it runs.
    for text in [
        "f() { git config \"$1\" \"$2\"; }; f core.fsmonitor 'touch mark'",
        "f() { git config user.name Evil; git config core.pager x; }; f",
        "k=$(echo core.pager) && git config \"$k\" x",
    ] {
        let ran = line(&caller, &project, "edit", text);
        assert!(ran.err.contains("held back"), "{text}: {}{}", ran.out, ran.err);
    }
    let config = fs::read_to_string(project.join(".git/config")).unwrap();
    for word in ["hooksPath", "fsmonitor", "alias", "include", "pager", "Evil"] {
        assert!(!config.contains(word), "{word}: {config}");
    }
}

#[test]
fn folders_go_by_names_in_every_line() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("names", &[("a", "top\n"), ("deep/in/b", ""), ("deep/a", "no\n")]);
    std::os::unix::fs::symlink("deep/in", project.join("link")).unwrap();
    for text in [
        "cd link && cd .. && cat a",
        "cd link && sh -c 'cd .. && cat a'",
        "cd link && timeout 60 sh -c 'cd ..; cat a'",
        "cd link && x=a && cd .. && cat $x",
    ] {
        let ran = line(&caller, &project, "readonly", text);
        assert_eq!((ran.code, &ran.out[..]), (Some(0), "top\n"), "{text}: {}", ran.err);
    }
}

/// Connects to a unix socket, and says how that went.
const CONNECT: &str = r#"
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print("connected")
except OSError:
    print("refused")
"#;

/// THREATS row 24: a read-only mount does not stop a program from connecting to what listens in it.
#[test]
fn a_socket_of_the_host_beside_a_program_of_the_path_cannot_be_reached() {
    needs_engine();
    let caller = Caller::with_home("/var/tmp");
    let project = caller.project("project", &[("connect.py", CONNECT)]);
    let bin = caller.home().join("bin");
    program(&bin.join("beside"), "#!/bin/sh\necho beside\n");
    let socket = bin.join("agent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();

    let inside = |words: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let mut command = caller.runner(&project);
        command.args(["exec", "--policy", "contained", "--"]).args(words).env("PATH", path);
        Ran::from(command.output().unwrap())
    };
    // The controls: the folder is there, and on the host the socket answers.
    assert_eq!(inside(&["beside"]).out, "beside\n");
    let socket = socket.to_str().unwrap();
    let host = Command::new("python3").arg(project.join("connect.py")).arg(socket).output();
    assert_eq!(host.unwrap().stdout, b"connected\n");
    let ran = inside(&["python3", "connect.py", socket]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "refused\n"), "{}", ran.err);
}
