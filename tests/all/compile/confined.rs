//! The compiler's process: what it tells, and that it reads nothing where it cannot be confined.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use runner::tool::compile::{Compiler, Origin};
use serde_json::json;

use super::support::{Bench, program};

/// Starts a compiler as its parent does, with these arguments and this job.
fn child(arguments: &[&str], job: &str) -> serde_json::Value {
    let mut command = Command::new(program());
    command.arg("bundle").args(arguments).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have answered before it read.
    let _ = child.stdin.take().unwrap().write_all(job.as_bytes());
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn job(text: &str) -> String {
    json!({"file": "a.ts", "shown": "a.ts", "text": text, "language": "type_script", "place": null})
        .to_string()
}

#[test]
fn it_tells_its_time_and_what_confines_it() {
    let bench = Bench::new();
    let compiled = bench.tool_of("export const execute = () => 1").unwrap();
    let Origin::Fresh { micros, confinement } = &compiled.origin else { panic!("not fresh") };
    assert!(*micros > 0);
    assert!(confinement.landlock >= 1);
    println!("bundled in {micros} µs, Landlock {}", confinement.landlock);
}

#[test]
fn another_folder_in_its_place_is_refused() {
    let bench = Bench::new();
    bench.write("a.ts", "");
    let meta = fs::metadata(bench.tool("")).unwrap();
    let folder = bench.tool("").to_str().unwrap().trim_end_matches('/').to_owned();
    let (dev, ino) = (meta.dev().to_string(), meta.ino().to_string());
    let text = job("export const a = 1");
    assert!(child(&[&folder, &dev, &ino], &text).get("done").is_some());
    let other = (meta.ino() + 1).to_string();
    assert!(child(&[&folder, &dev, &other], &text).get("folder").is_some());
    assert!(child(&[&folder, "x", "y"], &text).get("folder").is_some());
    std::os::unix::fs::symlink(&folder, bench.outside("alias")).unwrap();
    let alias = bench.outside("alias");
    assert!(child(&[alias.to_str().unwrap(), &dev, &ino], &text).get("folder").is_some());
}

#[test]
fn a_job_that_is_none_is_an_answer() {
    let bench = Bench::new();
    let meta = fs::metadata(bench.tool("")).unwrap();
    let folder = bench.tool("").to_str().unwrap().trim_end_matches('/').to_owned();
    let arguments = [folder.as_str(), &meta.dev().to_string(), &meta.ino().to_string()];
    for text in ["", "{}", "[", "{\"file\":1}"] {
        assert!(child(&arguments, text).get("broken").is_some(), "{text}");
    }
}

/// A compiler under strace with these options, in the folder of a tool: what it answered, and all its calls.
fn traced(bench: &Bench, options: &[&str], text: &str) -> (serde_json::Value, String) {
    let meta = fs::metadata(bench.tool("")).unwrap();
    let log = bench.outside("strace.log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&log).args(options).arg(program());
    command.arg("bundle").arg(bench.tool("").components().as_path());
    command.arg(meta.dev().to_string()).arg(meta.ino().to_string()).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have answered before it read.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let answer = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {options:?} {output:?}"));
    (answer, fs::read_to_string(log).unwrap())
}

/// A kernel that refuses any part of the confinement: nothing is compiled, and the job is not read.
#[test]
fn where_it_cannot_be_confined_it_reads_nothing() {
    let bench = Bench::new();
    let text = job("export const a = 1");
    let (control, log) = traced(&bench, &["-e", "trace=read"], &text);
    assert!(control.get("done").is_some() && log.contains("read(0, "), "{control} {log}");
    for refusal in [
        "landlock_create_ruleset:error=ENOSYS",
        "landlock_create_ruleset:error=EOPNOTSUPP",
        "landlock_create_ruleset:error=EPERM:when=2+",
        "landlock_add_rule:error=EINVAL",
        "landlock_restrict_self:error=E2BIG",
        "prlimit64:error=EPERM",
        "prctl:error=EINVAL",
    ] {
        let inject = format!("inject={refusal}");
        let options = [
            "-e",
            "trace=read,prctl,prlimit64,landlock_create_ruleset,landlock_add_rule,landlock_restrict_self",
            "-e",
            &inject,
        ];
        let (answer, log) = traced(&bench, &options, &text);
        assert!(answer.get("unconfined").is_some(), "{refusal}: {answer}");
        assert!(!log.contains("read(0, "), "{refusal}: {log}");
    }
}

/// strace shows the order: everything that confines comes before the first byte of the job, and nothing but the tool's folder
/// is opened after that.
#[test]
fn it_confines_itself_before_it_reads() {
    let bench = Bench::new();
    bench.write("b.ts", "export const b = 1");
    let (answer, log) = traced(&bench, &[], &job("import { b } from './b'; export const a = b"));
    assert!(answer.get("done").is_some(), "{answer}");
    let lines: Vec<&str> = log.lines().collect();
    let first = |what: &str| {
        lines
            .iter()
            .position(|line| line.contains(what))
            .unwrap_or_else(|| panic!("no {what} in\n{log}"))
    };
    let read = first("read(0, \"{");
    for before in [
        "PR_SET_PDEATHSIG",
        "PR_SET_DUMPABLE",
        "PR_SET_NO_NEW_PRIVS",
        "RLIMIT_AS",
        "RLIMIT_CPU",
        "RLIMIT_FSIZE",
        "RLIMIT_NOFILE",
        "landlock_restrict_self",
    ] {
        assert!(first(before) < read, "{before} comes too late");
    }
    let opened =
        lines[read..].iter().filter(|line| line.contains("open") && !line.contains("ENOENT"));
    for line in opened {
        // Relative to the folder's handle; what the allocator and the scheduler ask of the kernel is denied or harmless.
        let own = line.contains("openat2(") && line.contains("RESOLVE_BENEATH");
        assert!(own || line.contains("EACCES"), "{line}");
    }
}

/// Whatever kills its parent, a compiler that waits for its job goes too.
#[test]
fn it_dies_with_its_parent() {
    let bench = Bench::new();
    let meta = fs::metadata(bench.tool("")).unwrap();
    let fifo = bench.outside("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // Its standard input stays open for ever.
    let script =
        "exec 3<>\"$1\"; \"$2\" bundle \"$3\" \"$4\" \"$5\" <&3 >/dev/null & echo $!; wait";
    let mut parent = Command::new("sh");
    parent.args(["-c", script, "sh"]).arg(&fifo).arg(program());
    parent.arg(bench.tool("").components().as_path());
    parent.arg(meta.dev().to_string()).arg(meta.ino().to_string()).stdout(Stdio::piped());
    let mut parent = parent.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let status = format!("/proc/{}/status", line.trim());
    let says = |what: &str| fs::read_to_string(&status).is_ok_and(|text| text.contains(what));
    // Its second thread is the one that waits for the job: it is confined by then.
    while !says("Threads:\t2") {
        std::thread::sleep(Duration::from_millis(10));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    while says("State:") && !says("State:\tZ") {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn without_a_state_folder_nothing_is_remembered() {
    let bench = Bench::new();
    bench.write("a.tool.ts", "export const execute = () => 1");
    let compiler: Compiler = Bench::compiler();
    for _ in 0..2 {
        let compiled = compiler.compile(&bench.source("a.tool.ts")).unwrap();
        assert_ne!(compiled.origin, Origin::Remembered);
    }
}
