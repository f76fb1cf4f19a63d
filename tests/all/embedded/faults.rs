//! Each system call of a launch fails once: the sandbox is whole all the same, or there is none.
//!
//! A library that is loaded into runner starts the launcher under `strace` instead of by itself. A first run without a fault tells which calls a launch makes, and how often; each is then failed in
//! turn, with each error that a kernel may give. What a faulted call shows of its sandbox is compared, line by
//! line, with what a call shows that nothing happened to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::traces::{self, Traces};
use crate::everyday::caller::Caller;
use crate::support::{Ran, choose_engine, needs_root};
use runner::engine::EngineName;

/// What a kernel answers where it has no right, no such call, no room or no sense of what is asked.
const ERRORS: [&str; 6] = ["EPERM", "ENOSYS", "ENOMEM", "EMFILE", "EINVAL", "ENOSPC"];

/// At how many occurrences of one call it is failed, unless all are wanted.
const OCCURRENCES: usize = 10;

/// Calls that cannot fail, or whose failure is the end of a process.
const NOT_FAILED: [&str; 5] = ["exit", "exit_group", "rt_sigreturn", "execve", "restart_syscall"];

/// All that a sandbox is, as its command sees it. Names of stages and numbers of mounts are each call's own.
const LOOK: &str = r#"
grep -E '^(Umask|Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|SigBlk|SigIgn|Cpus_allowed:)' /proc/self/status
cut -d' ' -f4- /proc/self/mountinfo | sed -E 's/^[^ ]* //; s/(lowerdir|upperdir|workdir)=[^, ]*//g'
cat /proc/self/oom_score_adj /proc/net/dev
grep -c 127.0.0.1 /proc/net/fib_trie
hostname; id; ls -ln --time-style=+ /dev /sys /sys/fs/cgroup; ulimit -a
for file in memory/memory.limit_in_bytes pids/pids.max cpuacct/cpu.cfs_quota_us cpu/cpu.cfs_quota_us memory.max pids.max cpu.max; do
  cat /sys/fs/cgroup/$file 2>/dev/null
done
cut -d' ' -f6 /proc/1/stat
for space in mnt pid net ipc uts cgroup user; do readlink /proc/self/ns/$space; done
for file in /dev/shm/x /etc/x /proc/sys/kernel/hostname; do (: > $file); done
cat /proc/kcore /proc/1/environ
echo complete
"#;

/// Starts `runner`'s launcher under the words of `RUNNER_TEST_STRACE`, from the file that comes last there.
const PRELOADED: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
typedef int spawner(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *);
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how, char *const *words, char *const *env) {
  spawner *real = (spawner *)dlsym(RTLD_NEXT, "posix_spawnp");
  char *wanted = getenv("RUNNER_TEST_STRACE");
  if (!wanted || !words[1] || strcmp(words[1], "launch")) return real(pid, file, actions, how, words, env);
  static char copy[8192], *all[256];
  int count = 0;
  strncpy(copy, wanted, sizeof copy - 1);
  for (char *word = strtok(copy, " "); word && count < 200; word = strtok(0, " ")) all[count++] = word;
  for (int at = 1; words[at] && count < 254; at++) all[count++] = words[at];
  all[count] = 0;
  return real(pid, "/usr/bin/strace", actions, how, all, env);
}
"#;

/// A caller whose launches can be failed.
struct Bench {
    caller: Caller,
    project: PathBuf,
}

impl Bench {
    fn new(caller: Caller) -> Self {
        let project = caller.project("project", &[("a.txt", "a")]);
        // The guest is placed, and it is known that sandboxes can be made.
        caller.works(&project, &["exec", "--policy", "contained", "--", "true"]);
        let cache = caller.home().join(".cache/runner/engine");
        let folders =
            fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.path().join("guest"));
        let guest = folders.into_iter().find(|path| path.exists()).unwrap();
        let bench = Self { caller, project };
        fs::create_dir(bench.path("")).unwrap();
        fs::copy(guest, bench.path("guest")).unwrap();
        fs::write(bench.path("preloaded.c"), PRELOADED).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-o"]).arg(bench.path("preloaded.so"));
        assert!(compile.arg(bench.path("preloaded.c")).status().unwrap().success());
        bench.caller.own(&bench.path(""));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.caller.path("faults").join(name)
    }

    /// A call whose launch is traced with these further words; the trace, and how the call ended.
    fn call(&self, words: &str) -> (String, Option<Ran>) {
        let (log, guest) = (self.path("log"), self.path("guest"));
        let _ = fs::remove_file(&log);
        // -D: the launcher stays the child of runner. -b: the guest and its command are let go.
        let words =
            format!("strace -D -f -b execve -qq -o {} {words} {}", log.display(), guest.display());
        let arguments = ["exec", "--policy", "contained", "--json", "--", "sh", "-c", LOOK];
        let mut command = self.caller.runner(&self.project);
        command.args(arguments).env("LD_PRELOAD", self.path("preloaded.so"));
        command.env("RUNNER_TEST_STRACE", words);
        let ran = ends(command).map(Ran::from);
        (fs::read_to_string(log).unwrap_or_default(), ran)
    }
}

/// Runs a command that must end. One that hangs is a finding, and not a test that never ends.
fn ends(mut command: Command) -> Option<std::process::Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(child.wait_with_output().unwrap())
}

/// How often one process of a launch makes each call, at most.
fn calls(trace: &str) -> BTreeMap<String, usize> {
    let mut counted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in trace.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(') else { continue };
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            *counted.entry((process, name)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((_, name), count) in counted {
        let known: &mut usize = most.entry(name.to_owned()).or_default();
        *known = count.max(*known);
    }
    most.retain(|name, _| !NOT_FAILED.contains(&name.as_str()));
    most
}

/// What a command saw of its sandbox, without what differs from call to call.
fn seen(ran: &Ran) -> Option<Vec<String>> {
    let result = ran.json();
    let shown = result["stdout"].as_str().unwrap_or_default();
    let errors = result["stderr"].as_str().unwrap_or_default();
    let own: BTreeSet<String> = ["mnt", "pid", "net", "ipc", "uts", "cgroup"]
        .iter()
        .filter_map(|space| fs::read_link(format!("/proc/self/ns/{space}")).ok())
        .map(|link| link.display().to_string())
        .collect();
    let line = |line: &str| match line.split_once(":[") {
        Some(_) if own.contains(line) => format!("{line} IS THE HOST'S"),
        Some((space, _)) => space.to_owned(),
        None => line.to_owned(),
    };
    shown.ends_with("complete\n").then(|| shown.lines().chain(errors.lines()).map(line).collect())
}

/// Judges one faulted call: whole, or refused in clear words.
fn judge(fault: &str, ran: Option<&Ran>, whole: &[String]) -> Result<(), String> {
    let Some(ran) = ran else { return Err(format!("{fault}: the call hangs")) };
    let failed = |why: &str| Err(format!("{fault}: {why}: {:?} {} {}", ran.code, ran.out, ran.err));
    if ran.code == Some(0) {
        return match seen(ran) {
            Some(seen) if seen == whole => Ok(()),
            Some(seen) => {
                let other: Vec<_> = seen.iter().filter(|line| !whole.contains(line)).collect();
                let missing: Vec<_> = whole.iter().filter(|line| !seen.contains(line)).collect();
                Err(format!("{fault}: another sandbox: {other:?} instead of {missing:?}"))
            }
            None => failed("its command did not come to its end"),
        };
    }
    if ran.code != Some(125) {
        return failed("neither a whole sandbox nor 125");
    }
    let result = ran.json();
    let message = result["error"]["message"].as_str().unwrap_or_default();
    if message.is_empty() || result["stdout"].as_str().is_some_and(|out| !out.is_empty()) {
        return failed("a refusal without words, or with output");
    }
    Ok(())
}

/// Fails calls of launches of this caller: of each call and occurrence one error, or all of them.
fn fail_calls(caller: Caller, all: bool) {
    let bench = Bench::new(caller);
    let (trace, ran) = bench.call("");
    let ran = ran.expect("it ends");
    let whole = seen(&ran).unwrap_or_else(|| panic!("{ran:?}"));
    assert!(!whole.iter().any(|line| line.contains("HOST'S")), "{whole:#?}");
    assert_eq!(
        seen(&bench.call("").1.expect("it ends")).unwrap(),
        whole,
        "two calls show the same"
    );
    let counted = calls(&trace);
    for name in ["unshare", "mount", "pivot_root", "move_mount", "prctl", "capset", "setsid"] {
        assert!(counted.contains_key(name), "a launch makes {name}: {counted:?}");
    }
    let mut problems = Vec::new();
    let mut tried = 0_usize;
    let mut refused = 0_usize;
    for (name, count) in &counted {
        // What is made most often is failed at some of its occurrences only, unless all are wanted.
        let step = if all { 1 } else { count.div_ceil(OCCURRENCES) };
        for occurrence in (1..=*count).step_by(step) {
            let chosen = |at: &usize| all || at % ERRORS.len() == tried % ERRORS.len();
            for at in (0..ERRORS.len()).filter(chosen).collect::<Vec<_>>() {
                let fault = format!("{name}:error={}:when={occurrence}", ERRORS[at]);
                let traces = Traces::of_now();
                let (_, ran) = bench.call(&format!("--trace={name} --inject={fault}"));
                let ran = ran.as_ref();
                refused += usize::from(ran.is_some_and(|ran| ran.code == Some(125)));
                if let Err(problem) = judge(&fault, ran, &whole) {
                    println!("{problem}");
                    problems.push(problem);
                }
                problems.extend(traces.left(&fault));
            }
            tried += 1;
        }
    }
    // Nothing is left for the caller either: no stage stays, and the next call works.
    let stages = traces::stages(&bench.caller).map(|stages| format!("stages: {stages:?}"));
    problems.extend(stages);
    let (_, ran) = bench.call("");
    problems.extend(judge("after all faults", ran.as_ref(), &whole).err());
    println!("{tried} calls of a launch were failed, {refused} refusals");
    assert!(refused * 2 > tried, "most faults are felt: {refused} of {tried}");
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn a_launch_by_root_is_whole_or_refused() {
    needs_root();
    choose_engine(EngineName::Embedded);
    fail_calls(Caller::with_home("/var/tmp"), false);
}

#[test]
fn a_launch_by_an_ordinary_user_is_whole_or_refused() {
    choose_engine(EngineName::Embedded);
    fail_calls(Caller::ordinary("/var/tmp"), false);
}

#[test]
fn every_error_of_every_call_by_root() {
    needs_root();
    choose_engine(EngineName::Embedded);
    fail_calls(Caller::with_home("/var/tmp"), true);
}

#[test]
fn every_error_of_every_call_by_an_ordinary_user() {
    choose_engine(EngineName::Embedded);
    fail_calls(Caller::ordinary("/var/tmp"), true);
}
