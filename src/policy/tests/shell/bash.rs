//! What is readable means to bash what it means to us: random lines, run by a real bash.
//!
//! Each readable line runs in a bash of its own making: `p` and `f` are functions that report their
//! arguments, exported variables and standard input, no program can be found, and outputs go to a
//! folder beside. The trace must be the one that the plan foretells. `RUNNER_SHELL_LINES` sets how
//! many lines are tried.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use runner_policy::shell::{Line, parse};

use super::lines::{Random, line};
use super::model::{self, Trace};

/// Reads lines from descriptor 8, each ended by NUL, and reports to descriptor 9: records ended by NUL
/// with fields ended by 0x1F. A record is one write, so those of a pipeline do not mix; bash writes
/// at each newline, so newlines are 0x1E.
const DRIVER: &str = r#"
put() { local record; printf -v record '%s\x1f' "$@"; printf '%s\0' "${record//$'\n'/$'\x1e'}" >&9; }
report() {
  local data='' a=none b=none
  IFS= read -r -d '' data 2>/dev/null
  [[ ${A@a} == *x* ]] && a="=$A"
  [[ ${B@a} == *x* ]] && b="=$B"
  put call "$@" "$a" "$b" "$data"
  printf o 2>/dev/null
  printf e 1>&2 2>/dev/null
}
p() { report p "$@"; return 0; }
f() { report f "$@"; return 1; }
cat() { local data=''; IFS= read -r -d '' data; printf '%s' "$data"; }
# `command p` would pass over the functions.
command() { "$@"; }
trap '' PIPE
PATH=/nowhere
while IFS= read -r -d '' line <&8; do
  (eval "$line") </dev/null >../stdout 2>/dev/null
  put status $?
  used=no
  for name in ../o/* ../stdout; do
    data=
    [[ -e $name ]] || continue
    [[ $name == ../o/* ]] && used=yes
    IFS= read -r -d '' data <"$name"
    put file "$name" "$data"
  done
  [[ $used == yes ]] && /bin/rm -f ../o/*
  put end
done
"#;

fn traces(folder: &Path, lines: &[String]) -> Vec<Trace> {
    for name in model::FILES {
        let path = folder.join("w").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if *name == "in" { model::IN } else { "" }).unwrap();
    }
    std::fs::create_dir_all(folder.join("o")).unwrap();
    std::fs::write(folder.join("lines"), lines.join("\0") + "\0").unwrap();
    std::fs::write(folder.join("driver"), DRIVER).unwrap();
    let status = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", "exec bash ../driver 8<../lines 9>../report"])
        .current_dir(folder.join("w"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", model::HOME)
        .env("LC_ALL", "C.UTF-8")
        .env("B", "0")
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    read_report(&std::fs::read_to_string(folder.join("report")).unwrap())
}

fn read_report(report: &str) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut trace = Trace::default();
    let report = report.replace('\x1e', "\n");
    for record in report.split_terminator('\0') {
        let fields: Vec<&str> = record.split_terminator('\x1f').collect();
        match fields.as_slice() {
            ["call", call @ ..] => trace.calls.push(call.iter().map(ToString::to_string).collect()),
            ["status", status] => trace.status = status.parse().unwrap(),
            ["file", name, data] => {
                let name = name.strip_prefix("../stdout").unwrap_or(name);
                trace.files.insert((*name).to_owned(), (*data).to_owned());
            }
            ["end"] => {
                trace.calls.sort();
                traces.push(std::mem::take(&mut trace));
            }
            other => panic!("{other:?}"),
        }
    }
    traces
}

#[test]
fn a_readable_line_means_the_same_to_bash() {
    let wanted = std::env::var("RUNNER_SHELL_LINES").map_or(500, |count| count.parse().unwrap());
    let seed = std::env::var("RUNNER_SHELL_SEED").map_or(7, |seed| seed.parse().unwrap());
    let mut random = Random::new(seed);
    let (mut lines, mut foretold) = (Vec::new(), Vec::new());
    let (mut tried, mut why) = (0, BTreeMap::<String, usize>::new());
    while lines.len() < wanted {
        tried += 1;
        let text = line(&mut random);
        match parse(&text) {
            Line::Unreadable(stop) => *why.entry(format!("{:?}", stop.construct)).or_default() += 1,
            Line::Readable(script) => match model::run(&script) {
                Ok(trace) => {
                    lines.push(text);
                    foretold.push((trace, script.to_string()));
                }
                Err(model::Beyond) => *why.entry("beyond the model".to_owned()).or_default() += 1,
            },
        }
    }
    println!("{} of {tried} lines compared; not: {why:?}", lines.len());
    let folder = tempfile::tempdir().unwrap();
    let found = traces(folder.path(), &lines);
    assert_eq!(found.len(), lines.len(), "after {:?}", lines.get(found.len()));
    let wrong: Vec<String> = lines
        .iter()
        .zip(foretold.iter().zip(&found))
        .filter(|(_, ((foretold, _), found))| foretold != *found)
        .take(10)
        .map(|(line, ((foretold, printed), found))| {
            format!(
                "{line:?}\n  read as  {printed:?}\n  foretold {foretold:?}\n  bash     {found:?}"
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Builtins of bash that are read as ordinary commands: programs of the same name exist, or the guest
/// knows them. A builtin that a later bash adds fails here.
#[test]
fn every_builtin_of_bash_is_known() {
    let output = Command::new("bash").args(["-c", "compgen -b"]).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    let readable: Vec<&str> = names
        .lines()
        .filter(|name| matches!(parse(&format!("{name} A=1")), Line::Readable(_)))
        .collect();
    // `command A=1` is read as `A=1`.
    let known = [
        ":", "[", "cd", "command", "echo", "export", "false", "kill", "printf", "pwd", "test",
        "true",
    ];
    assert_eq!(readable, known);
    assert!(names.lines().count() > 55);
}

#[test]
fn every_reserved_word_of_bash_is_known() {
    let output = Command::new("bash").args(["-c", "compgen -k"]).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    for word in names.lines().filter(|word| !matches!(*word, "!" | "time")) {
        assert!(matches!(parse(&format!("{word} a")), Line::Unreadable(_)), "{word}");
    }
}
