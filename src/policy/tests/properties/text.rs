//! Commands and lines around shells, made of bytes; and which words start a real shell with text.
//!
//! The fuzz target `real_shell` has this file too.

use runner_policy::plan::{Plan, PlannedLine};
use runner_policy::word::quoted;

/// Commands that shells disagree about, and controls. None names a shell.
const COMMANDS: &[&str] = &[
    "cat a",
    "sort a b",
    "true",
    "cd src",
    "cd -",
    "export A=1",
    "A=1",
    "A=1 cat a",
    "cat a > /dev/null",
    "touch made",
    "echo $'a\\'; touch made #'",
    "echo $'\\x41'",
    "touch made &> /dev/null",
    "touch made >& /dev/null",
    "cat {a,b}",
    "cat {1..3}",
    "touch {made,b}",
    "printf '%n' PATH",
    "printf '%s' 'a[$(touch made)]'",
    "[ -[v] 'a[$(touch made)]' ]",
    "[ -f a ]",
    "test -? 'a[$(touch made)]'",
    "echo $(touch made)",
    "echo `touch made`",
    "eval 'touch made'",
    "for i in a; do touch made; done",
    "! cat a",
    "cat <<< a",
    "cat a |& sort",
    "cat <<'E'\na\nE\n",
    "*",
    "",
];

/// What starts its last words, or runs text.
const WRAPPERS: &[&[&str]] = &[
    &["timeout", "5"],
    &["timeout", "-k", "1", "5"],
    &["env"],
    &["env", "A=1"],
    &["env", "-i"],
    &["env", "HOME=/x"],
    &["env", "-S"],
    &["nice"],
    &["nice", "-n", "5"],
    &["nohup"],
    &["setsid", "-w"],
    &["stdbuf", "-o0"],
    &["ionice", "-c", "3"],
    &["chrt", "-b", "0"],
    &["taskset", "1"],
    &["time"],
    &["command"],
    &["xargs"],
    &["xargs", "-I{}"],
    &["find", ".", "-exec"],
    &["find", ".", "-ok"],
    &["busybox"],
    &["sudo"],
    &["watch", "-x"],
    &["watch"],
    &["script", "-c"],
    &["flock", "l"],
    &["flock", "l", "-c"],
    &["setpriv"],
    &["unshare"],
    &["chroot", "/"],
    &["strace"],
    &["timeout", "--zz", "5"],
    &["/usr/bin/env"],
    &["git", "bisect", "run"],
];

const NAMES: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "fish",
    "rbash",
    "/bin/sh",
    "/usr/bin/bash",
    "./dash",
];

const OPTIONS: &[&[&str]] = &[
    &["-c"],
    &["-lc"],
    &["-ec"],
    &["-euc"],
    &["-eu", "-c"],
    &["-c", "--"],
    &["-o", "errexit", "-c"],
    &["-euo", "pipefail", "-c"],
    &["-oc", "errexit"],
    &["-xc"],
    &["-nc"],
    &["-fc"],
    &["-ic"],
    &["-sc"],
    &["-c", "+e"],
    &["-c", "-"],
    &["--norc", "-c"],
    &["--posix", "-c"],
    &["-O", "extglob", "-c"],
    &["--rcfile", "x", "-c"],
    &["-s"],
    &[],
];

const JOINS: &[&str] = &[" && ", " || ", "; ", " | ", "\n", " > /dev/null; "];

/// Bytes that choose.
pub struct Choices<'a>(pub std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.0.next().copied().unwrap_or(0)) % list.len()]
    }
}

/// A command of words: a wrapper, a shell with a line, or something plain.
pub fn argv(choices: &mut Choices<'_>, depth: usize) -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    match choices.of(&[0, 1, 2]) {
        0 if depth > 0 => {
            let wrapper = choices.of(WRAPPERS);
            let inner = argv(choices, depth - 1);
            let end: &[&str] = if wrapper[0] == "find" { &[";"] } else { &[] };
            [words(wrapper), inner, words(end)].concat()
        }
        1 if depth > 0 => {
            let name = words(&[choices.of(NAMES)]);
            let options = words(choices.of(OPTIONS));
            let after = choices.of(&[&[][..], &[], &["name", "x"], &["*"]]);
            [name, options, vec![line(choices, depth - 1)], words(after)].concat()
        }
        _ => words(choices.of(&[&["cat", "a"][..], &["sort", "a"], &["nosuch", "-c", "id"]])),
    }
}

/// A line of such commands and of those on which shells disagree.
pub fn line(choices: &mut Choices<'_>, depth: usize) -> String {
    let mut line = String::new();
    for at in 0..choices.of(&[1, 1, 2, 3]) {
        if at > 0 {
            line += choices.of(JOINS);
        }
        line += &match choices.of(&[0, 1]) {
            0 if depth > 0 => {
                let shown: Vec<String> = argv(choices, depth)
                    .iter()
                    .map(|word| if word == "*" { word.clone() } else { quoted(word) })
                    .collect();
                shown.join(" ")
            }
            _ => choices.of(COMMANDS).to_owned(),
        };
    }
    line
}

/// The program's name without its folder.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// Whether these words, executed as they are, start a shell. Words that stand for more than themselves are empty. A
/// wrapper starts any of its later words: no generated operand is called like a program.
fn starts_shell(words: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let has = |at: usize, word: &str| rest.get(at).is_some_and(|given| given == word);
    let texts = match base(first) {
        "watch" => !rest.is_empty() && !has(0, "-x"),
        "script" => has(0, "-c"),
        "flock" => has(1, "-c"),
        name => NAMES.iter().any(|shell| base(shell) == name),
    };
    let wraps = WRAPPERS.iter().any(|wrapper| base(wrapper[0]) == base(first));
    texts || (wraps && (1..words.len()).any(|at| starts_shell(&words[at..])))
}

/// Every sequence of words that the guest executes.
fn executed(plan: &Plan) -> Vec<Vec<String>> {
    fn of_line(line: &PlannedLine, out: &mut Vec<Vec<String>>) {
        for (command, inner) in line.commands() {
            let words = command.words.iter().map(|word| word.literal().unwrap_or("").to_owned());
            out.push(words.take(inner.map_or(usize::MAX, |inner| inner.words())).collect());
            if let Some(inner) = inner {
                of_line(inner.line(), out);
            }
        }
    }
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    let mut out = vec![plan.words().iter().map(text).collect()];
    if let Some(line) = plan.line() {
        of_line(line, &mut out);
    }
    out
}

/// Words that begin with a shell, of a plan for any text: a shell's name among operands says nothing there.
#[allow(dead_code, reason = "for the fuzz target")]
pub fn shell_itself(plan: &Plan) -> Option<Vec<String>> {
    let shell = |word: &String| NAMES.iter().any(|name| base(name) == base(word));
    executed(plan).into_iter().find(|words| words.first().is_some_and(shell))
}

/// Words that start a real shell when the guest executes a plan of generated words.
pub fn real_shell(plan: &Plan) -> Option<Vec<String>> {
    executed(plan).into_iter().find(|words| starts_shell(words))
}
