//! Machines that forbid what a sandbox is made from: each cause is told by its name, with the step that mends it, and
//! nothing runs. Beside each stands the same call where nothing is forbidden.

use std::fs;
use std::process::Command;

use crate::everyday::caller::Caller;
use crate::support::{Ran, choose_engine};
use runner::engine::EngineName;

/// Refuses `unshare`, as the filters of container engines do, and becomes the program that its words name.
const REFUSES: &str = r"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sock_filter all[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof all / sizeof *all, all};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
  execv(words[1], words + 1);
  return 1;
}
";

/// In a user namespace of its own, after `first`, without any capability but the one that user 0 needs to be mapped in a
/// further one.
fn in_namespace(first: &str) -> Vec<String> {
    let drop = "exec setpriv --bounding-set=-all,+setfcap --inh-caps=-all -- \"$@\"";
    let script = format!("{first} && {drop}");
    ["unshare", "--user", "--map-root-user", "sh", "-c", &script, "sh"].map(str::to_owned).into()
}

/// A call by this caller, with the program started by these words.
fn call(caller: &Caller, words: &[String]) -> Ran {
    let project = caller.path("project");
    if !project.exists() {
        caller.project("project", &[("a.txt", "a")]);
    }
    let plain = caller.runner(&project);
    let mut all: Vec<_> = std::iter::once(plain.get_program()).chain(plain.get_args()).collect();
    let at = all.len() - 1;
    all.splice(at..at, words.iter().map(AsRef::as_ref));
    let mut command = Command::new(all[0]);
    command.args(&all[1..]).current_dir(&project);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["exec", "--engine", "embedded", "--", "cat", "a.txt"]);
    Ran::from(command.output().unwrap())
}

fn is_refused(ran: &Ran, words: &[&str]) {
    assert_eq!((ran.code, ran.out.as_str()), (Some(125), ""), "{}", ran.err);
    for word in words {
        assert!(ran.err.contains(word), "`{word}` is not in: {}", ran.err);
    }
    assert!(!ran.err.contains("\\n"), "lines are lines: {}", ran.err);
}

fn no_user_namespaces(caller: &Caller) {
    let ran = call(caller, &in_namespace("true"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "a"), "{}", ran.err);
    let ran = call(caller, &in_namespace("echo 0 > /proc/sys/user/max_user_namespaces"));
    let mended = "as root: sysctl -w user.max_user_namespaces=15000\n";
    is_refused(&ran, &["user.max_user_namespaces is 0", mended, "/etc/sysctl.d/90-runner.conf"]);
}

#[test]
fn a_user_without_user_namespaces_is_told_the_setting() {
    choose_engine(EngineName::Embedded);
    no_user_namespaces(&Caller::ordinary("/var/tmp"));
}

#[test]
fn root_without_capabilities_and_user_namespaces_is_told_the_setting() {
    choose_engine(EngineName::Embedded);
    crate::support::needs_root();
    no_user_namespaces(&Caller::with_home("/var/tmp"));
}

#[test]
fn a_limit_of_another_kind_of_namespace_is_told_by_its_name() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::ordinary("/var/tmp");
    let ran = call(&caller, &in_namespace("echo 0 > /proc/sys/user/max_net_namespaces"));
    is_refused(&ran, &["user.max_net_namespaces is 0", "sysctl -w user.max_net_namespaces=15000"]);
}

#[test]
fn a_filter_that_refuses_namespaces_is_a_containers() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::ordinary("/var/tmp");
    let (source, program) = (caller.path("refuses.c"), caller.path("refuses"));
    fs::write(&source, REFUSES).unwrap();
    assert!(Command::new("cc").arg("-o").args([&program, &source]).status().unwrap().success());
    let ran = call(&caller, &[program.display().to_string()]);
    is_refused(&ran, &["container", "--security-opt seccomp=unconfined", "DOCKER_HOST"]);
    assert_eq!(call(&caller, &[]).out, "a");
}

/// The kernel gives an ordinary user no procfs where another one is covered in part.
#[test]
fn a_covered_procfs_is_a_containers() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::ordinary("/var/tmp");
    let covered = |first: &str| {
        let uid = caller.uid();
        let script =
            format!("{first} && exec setpriv --reuid {uid} --regid {uid} --clear-groups -- \"$@\"");
        let project = caller.project("project", &[("a.txt", "a")]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(caller.path("runner"));
        command.args(["exec", "--engine", "embedded", "--", "cat", "a.txt"]);
        command.current_dir(project).env("HOME", caller.home());
        command.env("XDG_STATE_HOME", caller.state()).env("XDG_CONFIG_HOME", caller.path("config"));
        command.env_remove("XDG_CACHE_HOME").env_remove("XDG_RUNTIME_DIR");
        Ran::from(command.output().unwrap())
    };
    let ran = covered("mount -t tmpfs none /proc/irq");
    is_refused(&ran, &["container", "--security-opt systempaths=unconfined"]);
    let ran = covered("true");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "a"), "{}", ran.err);
}
