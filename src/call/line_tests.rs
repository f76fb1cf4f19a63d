//! What the guest does with a plan is what a real shell does with the text it was read from.
//!
//! The guest runs here without a sandbox, as the program that stands in for a shell (`guest line PLAN`), beside a real
//! shell with the same words, each in a folder of its own.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use runner_policy::{Effective, Origin, PolicySet, Query, Source, What, decide, parse};
use runner_wire::{Line, Work};

use super::for_guest;

const HOME: &str = "/home/runner";

/// Lets everything run.
fn anything() -> Effective {
    let text = "policy: 1\nname: p\nmode: observe\nuntil: 2099-01-01\n";
    let mut set = PolicySet::default();
    set.add(parse(Source { file: "p.yml", text, origin: Origin::Managed }).unwrap()).unwrap();
    set.effective("p").unwrap()
}

/// The line that the guest executes for these words; `None` if it starts a program.
fn planned(words: &[&str]) -> Option<Line> {
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let query =
        Query { workspace: "/w", cwd: "/w", now: Timestamp::UNIX_EPOCH, what: What::Argv(&argv) };
    let plan = decide(&anything(), &query).plan.unwrap();
    match for_guest(&plan, HOME) {
        Work::Line(line) => Some(line),
        Work::Argv { .. } | Work::Waiting => None,
    }
}

/// Standard output, status, and the files that are there afterwards.
type Trace = (String, Option<i32>, BTreeMap<String, String>);

fn trace(program: &Path, args: &[&str]) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "two\n"), ("-v", "")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let output = Command::new(program)
        .args(args)
        .current_dir(folder.path())
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("HOME", HOME), ("LC_ALL", "C"), ("KNOWN", "0")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let files =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path()).ok()?;
            Some((entry.file_name().into_string().unwrap(), text))
        });
    let stdout = String::from_utf8(output.stdout).unwrap();
    let shown = stdout.replace(folder.path().to_str().unwrap(), "FOLDER");
    (shown, output.status.code(), files.collect())
}

fn check(guest: &Path, words: &[&str]) {
    let line = planned(words).unwrap_or_else(|| panic!("{words:?} is for a real shell"));
    let plan = serde_json::to_string(&line).unwrap();
    let ours = trace(guest, &["line", &plan]);
    let theirs = trace(Path::new(words[0]), &words[1..]);
    assert_eq!(ours, theirs, "{words:?}");
}

fn guest(folder: &Path) -> std::path::PathBuf {
    let guest = folder.join("guest");
    std::fs::write(&guest, crate::engine::guest::PROGRAM).unwrap();
    std::fs::set_permissions(&guest, std::fs::Permissions::from_mode(0o755)).unwrap();
    guest
}

/// Lines that mean the same to every shell.
const LINES: &[&str] = &[
    "echo a; echo b",
    "false; echo after",
    "false && echo and; echo after",
    "false || false; echo after",
    "true && false; echo after",
    "false && true || echo or; echo after",
    "! true; echo after",
    "! false && echo yes",
    "false | true; echo after",
    "true | false; echo after",
    "true | false || echo or",
    "cd sub; pwd; cd ..; pwd",
    "cd sub | true; pwd",
    "[ -f nosuch ]; echo after",
    "[ -f a.txt ] && cat a.txt",
    "nosuchprogram; echo after",
    "nosuchprogram || echo or",
    "cat nosuch > out; echo after",
    "export A=1; env | grep ^A=; A=2; env | grep ^A=",
    "B=3; env | grep ^B= || echo none",
    "KNOWN=1; env | grep ^KNOWN=; KNOWN=2 env | grep ^KNOWN=; env | grep ^KNOWN=",
    "cat *.txt; ls -d s*",
    "echo ~/x '~' \"*\"",
    "cat <<'E' > out\nhere\nE\ncat out",
    "sh -c 'cd sub && pwd'; pwd",
    "sh -c 'export C=1; env | grep ^C='; env | grep ^C= || echo none",
    "sh -c 'echo in; false' && echo and || echo or",
    "sh -ec 'false; echo in'; echo after",
    "sh -ec 'false || true; echo in' && echo and",
    "sh -c 'echo three >&3' 3>out; cat out",
    "sh -c 'cat; echo more' < a.txt",
    "echo x | sh -c 'cat; echo y' | sort -r",
    "D=1 sh -c 'env | grep ^D='",
    "sh -c 'sh -c \"sh -c \\\"echo deep; false\\\"\" || echo or'",
    "env E=1 sh -c 'env | grep ^E='",
    "env -i F=1 sh -c 'cat a.txt; env | grep ^F='",
    "env -C sub sh -c 'pwd'",
    "timeout 60 sh -c 'echo in time; false'; echo after",
    "timeout 0.2 sh -c 'sleep 1000; echo late' || echo over",
    "timeout 0.2 sh -c 'sleep 1000 | cat' || echo over",
    "nice -n 3 sh -c 'nice; sh -c nice'",
    "nohup sh -c 'grep -c ^SigIgn.*1$ /proc/self/status' 2> err",
    "setsid -w sh -c 'echo session'",
    "timeout 60 env G=1 nice sh -ec 'env | grep ^G=; false; echo late'",
    "sh -c 'cat a.txt' name x y",
];

#[test]
fn the_guest_does_what_a_shell_does() {
    let folder = tempfile::tempdir().unwrap();
    let guest = guest(folder.path());
    for line in LINES {
        for words in [&["sh", "-c"][..], &["bash", "-eu", "-c"], &["timeout", "60", "sh", "-ec"]] {
            check(&guest, &[words, &[line]].concat());
        }
    }
    for line in [
        "false | true; echo after",
        "false | true && echo and || echo or",
        "true | false | true || echo or",
        "! false | true; echo after",
    ] {
        for options in [&["-o", "pipefail", "-c"][..], &["-euo", "pipefail", "-c"]] {
            check(&guest, &[&["bash"], options, &[line]].concat());
        }
    }
    // Of these only bash has the status, or the meaning.
    for line in [
        "cd nosuch; echo after",
        "cat < nosuch; echo after",
        "echo {a,b}{1..3} $'x\\ty'",
        "cat nosuch &> out; cat out | wc -l",
        "cat <<< here",
    ] {
        check(&guest, &["bash", "-ec", line]);
        check(&guest, &["bash", "-c", line]);
    }
}

/// As deep as plans go, the guest still reads them.
#[test]
fn the_deepest_plan_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "true && ! false | echo deep".to_owned();
    for _ in 1..8 {
        let escaped = text.chars().flat_map(|c| ['\\', c]).collect::<String>();
        text = format!("true && true | timeout 60 sh -c {escaped}");
    }
    let line = planned(&["sh", "-c", &text]).unwrap();
    let plan = serde_json::to_string(&line).unwrap();
    assert!(!plan.contains("\"sh\""), "no shell is left in it");
    assert_eq!(trace(&guest(folder.path()), &["line", &plan]).0, "deep\n");
}
