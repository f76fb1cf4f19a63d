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
use runner_wire::{Bytes, Work};

use super::for_guest;

const HOME: &str = "/home/runner";

/// Lets everything run.
fn anything() -> Effective {
    let text = "policy: 1\nname: p\nmode: observe\nuntil: 2099-01-01\n";
    let mut set = PolicySet::default();
    set.add(parse(Source { file: "p.yml", text, origin: Origin::Managed }).unwrap()).unwrap();
    set.effective("p").unwrap()
}

/// What the guest is started with to execute the line in these words; `None` if it starts a program.
fn planned(words: &[&str]) -> Option<[String; 2]> {
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let query =
        Query { workspace: "/w", cwd: "/w", now: Timestamp::UNIX_EPOCH, what: What::Argv(&argv) };
    let plan = decide(&anything(), &query).plan.unwrap();
    match for_guest(&plan, HOME, &[Bytes::from("/")]) {
        Work::Line(line) => Some(["line".to_owned(), serde_json::to_string(&line).unwrap()]),
        Work::Script(script) => {
            Some(["script".to_owned(), serde_json::to_string(&script).unwrap()])
        }
        Work::Argv { .. } | Work::Shell { .. } | Work::Waiting => None,
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
        .envs([
            ("PATH", "/usr/bin:/bin"),
            ("HOME", HOME),
            ("LC_ALL", "C"),
            ("KNOWN", "0"),
            ("TZ", "0"),
        ])
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
    let plan = planned(words).unwrap_or_else(|| panic!("{words:?} is for a real shell"));
    let ours = trace(guest, &plan.each_ref().map(String::as_str));
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
    "cd nosuch 2> /dev/null || echo stayed; cd sub > out && pwd; pwd",
    "ln -s sub/deep link; mkdir sub/deep; cd link && cd .. && pwd && ls",
    "mkdir sub/deep; ln -s sub/deep link; cd link; cat ../b.txt; cd ..; echo x > made; ls",
    "mkdir sub/deep; ln -s sub/deep link; cd link && sh -c 'cd .. && pwd' && cd .. && pwd",
    "mkdir sub/deep; ln -s sub/deep link; cd link && timeout 60 sh -c 'cd ..; pwd; ls'; ls ..",
    "mkdir sub/deep; ln -s sub/deep link; (cd link/.. && pwd); { cd link; cd ../sub; pwd; }",
    "[ -f nosuch ]; echo after",
    "[ -f a.txt ] && cat a.txt",
    "nosuchprogram; echo after",
    "nosuchprogram || echo or",
    "cat nosuch > out; echo after",
    "export A=1; env | grep ^A=; A=2; env | grep ^A=",
    "B=3; env | grep ^B= || echo none",
    "TZ=1; env | grep ^TZ=; TZ=2 env | grep ^TZ=; env | grep ^TZ=",
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
    let plan = planned(&["sh", "-c", &text]).unwrap();
    assert!(!plan[1].contains("\"sh\""), "no shell is left in it");
    let guest = guest(folder.path());
    assert_eq!(trace(&guest, &plan.each_ref().map(String::as_str)).0, "deep\n");
    let text = format!("x=1; {text}");
    let plan = planned(&["bash", "-c", &text]).unwrap();
    assert!(!plan[1].contains("\"sh\""), "no shell is left in it");
    assert_eq!(trace(&guest, &plan.each_ref().map(String::as_str)).0, "deep\n");
}

/// Lines with variables, conditions and loops that mean the same to every shell.
const SCRIPTS: &[&str] = &[
    "x=a; echo $x \"$x\" ${x}b a\"$x\"c '$x'",
    "x='a  b'; echo $x; echo \"$x\"; printf '<%s>' $x \"$x\" a$x$x",
    "x=; printf '<%s>' $x \"$x\" a$x",
    "x='*.txt'; echo $x \"$x\"; y=$x; echo \"$y\"",
    "x=sub; cd $x && echo in; cd ..; [ -d \"$x\" ] && echo yes",
    "false; echo $?; true; echo \"$?\"",
    "export x=1; y=2; sh -c 'echo in $x'; env | grep -c '^y=' ; export y; env | grep '^y='",
    "x=1 sh -c 'echo $x'; echo \"[$x]\"",
    "x=1; x=2 env | grep ^x=; echo $x",
    "unset KNOWN; echo \"[$KNOWN]\"; env | grep -c KNOWN",
    "cat <<E\nx=$KNOWN \\$x \"$HOME\" $? 5$\nE",
    "for f in *.txt; do echo \"<$f>\"; cat \"$f\"; done; echo $f",
    "for f in a 'b c' $KNOWN; do echo \"$f\"; done",
    "for i in 1 2 3; do for j in a b; do [ $i = 2 ] && continue 2; echo $i$j; done; done",
    "for i in 1 2 3; do [ $i = 2 ] && break; echo $i; done; echo $?",
    "for i in; do echo no; done; echo $?",
    "break 2> /dev/null && echo and; echo $?; continue 2> /dev/null; echo after",
    "if true; then break 2> /dev/null; fi; echo after; x=$(break 2> /dev/null; echo in); echo $x",
    "for i in 1 2; do for j in a b; do echo $i$j; break 5; done; done; echo after",
    "for i in 1 2; do x=$(break; echo in); echo \"<$x>\"; done; while break; do echo no; done; echo $?",
    "if [ -f a.txt ]; then echo yes; else echo no; fi; if false; then echo; fi; echo $?",
    "if false; then echo a; elif [ -d sub ]; then echo b; else echo c; fi",
    "while read x; do echo \"<$x>\"; done < a.txt; echo $?",
    "printf 'a b  c \\nd\\\\e f\\n  g  ' | while read -r x y; do printf '<%s><%s>' \"$x\" \"$y\"; done",
    "printf '  a  b  \\n' | while IFS= read -r x; do echo \"<$x>\"; done",
    "cat a.txt b.txt | while read x; do echo $x; false; done; echo $?",
    "until [ -f made ]; do touch made; echo round; done",
    "case a.txt in *.md) echo md;; *.txt|x) echo txt;; *) echo other;; esac",
    "case $KNOWN in [1-9]) echo n;; 0) echo zero;; esac; case x in y) false;; esac; echo $?",
    "{ echo a; echo b; } > out; cat out; (cd sub; x=1); echo \"[$x]\"; ls -d sub",
    "(exit 3); echo $?; { false; }; echo $?; ! (exit 0); echo $?",
    "echo $(echo a; echo b) \"$(printf 'x\\n\\n')\"; x=$(false); echo $?; x=$(echo hi); echo \"$x\"",
    "echo \"$(echo \"$(echo deep)\")\"; cat $(echo a.txt)",
    "x=$(cat a.txt) && echo \"got $x\"; wc -l < \"$(echo a.txt)\"",
    "set -e; echo a; false; echo b",
    "set -e; if false; then echo; fi; false || true; ! true; echo a; (false); echo b",
    "set -e; for i in 1 2; do [ $i = 3 ] && echo no; done; echo end",
    "set -e; x=$(false); echo no",
    "set -e; { false && true; }; echo alive; (false; echo no) || echo or",
    "exit 4; echo no",
    "(echo a; exit 5) || exit; echo no",
    "echo a | { cat; echo b; } | (cat; echo c) | while read x; do echo \"$x\"; done",
    "yes | { head -1; }; for i in 1 2; do yes; done | head -1",
    "for i in 1 2 3 4 5 6 7 8; do echo $i; done | head -2",
    "x=a; { x=b; }; echo $x; echo y | { read x; echo $x; }; echo $x",
    "nosuchprogram; echo $?; cat < nosuch 2> err; echo after",
    "for f in a.txt b.txt; do if grep -q two $f; then echo $f; fi; done",
    "n=$(ls *.txt | wc -l); [ $n -eq 2 ] && echo two || echo \"$n\"",
    "x=a.txt; y=b.txt; cat \"$x\" $y > out 2>&1; cat out",
    "timeout 5 sh -c 'for i in 1 2; do echo $i; done'; x=5; timeout $x echo in",
];

/// The same, of bash alone.
const OF_BASH: &[&str] = &[
    "[[ -f a.txt && a == a* ]] && echo yes; [[ a != b || -d x ]]; echo $?; [[ ! -e no ]] && echo no",
    "x=3; [[ $x -gt 2 && ( $x -lt 5 || $x -eq 9 ) ]] && echo in; [[ $x ]] && echo set; [[ -z $y ]]",
    "x='a b'; [[ $x == 'a b' ]] && echo same; [[ $x == \"a *\" ]] || echo text; [[ $x == a* ]] && echo mark",
    "set -euo pipefail; false | true || echo failed; x=1; echo $x",
    "set -u; echo \"$nosuch\"; echo no",
    "set -o pipefail; false | true; echo $?; set +o pipefail; false | true; echo $?",
    "command -v cd nosuch if; command -v nosuch || echo none",
    "x=$(set -e; false; echo in); echo \"$x\"",
    "cat <<< \"a $KNOWN\"; time true",
    "for i in 1 2; do (break 2> /dev/null; echo in $i); echo $i; done",
];

#[test]
fn the_guest_executes_conditions_and_loops_as_a_shell_does() {
    let folder = tempfile::tempdir().unwrap();
    let guest = guest(folder.path());
    for line in SCRIPTS {
        for words in [&["sh", "-c"][..], &["bash", "-c"], &["timeout", "60", "bash", "-c"]] {
            check(&guest, &[words, &[line]].concat());
        }
    }
    for line in OF_BASH {
        check(&guest, &["bash", "-c", line]);
    }
}

/// A word that becomes what was not judged ends the line before anything is started with it.
#[test]
fn a_word_that_is_not_what_was_assumed_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let guest = guest(folder.path());
    let run = |line: &str| {
        let plan = planned(&["bash", "-c", line]).unwrap();
        assert_eq!(plan[0], "script", "{line}");
        trace(&guest, &plan.each_ref().map(String::as_str))
    };
    for line in [
        // The file `-v` is among them.
        "for f in *; do cat \"$f\"; echo $f; done; echo after",
        "x=$(echo -rf); rm $x a.txt; echo after",
        "x=$(echo 'a.txt b.txt'); cat < $x; echo after",
        "x=$(true); rm $x; echo after",
        "x=$(echo eval); $x 'echo no'; echo after",
        "KNOWN=1; echo after",
    ] {
        let (out, _, files) = run(line);
        assert!(!out.contains("after") && !out.contains("no"), "{line}: {out}");
        assert!(files.contains_key("a.txt"), "{line}");
    }
    let (out, _, _) = run("x=$(echo a.txt); cat $x; echo after");
    assert_eq!(out, "one\nafter\n");
}

/// A small generator of numbers: the same seed makes the same lines.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn words(&mut self, depth: usize) -> String {
        let words = (0..=self.below(3)).map(|_| self.word(depth)).collect::<Vec<_>>();
        words.join(" ")
    }

    fn word(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 8 } else { 10 }) {
            8 => format!("$({})", self.list(depth - 1)),
            9 => format!("\"$({})\"", self.list(depth - 1)),
            _ => self
                .pick(&[
                    "a", "b c", "$x", "\"$x\"", "${y}z", "\"$y$x\"", "*.txt", "$?", "'*'", "\"\"",
                ])
                .to_owned(),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        let mut list = self.command(depth);
        for _ in 0..self.below(3) {
            let join = self.pick(&["; ", " && ", " || ", "\n", " | "]);
            list = format!("{list}{join}{}", self.command(depth));
        }
        list
    }

    fn command(&mut self, depth: usize) -> String {
        let kind = self.below(if depth == 0 { 6 } else { 13 });
        let inner = |random: &mut Self| random.list(depth - 1);
        match kind {
            0 => {
                format!("x={}", self.pick(&["1", "'a  b'", "$y", "\"$x$y\"", "*", "", "$(echo q)"]))
            }
            1 => format!("y={}", self.pick(&["2", "$x", "' c '", "\"$?\""])),
            2 => self.pick(&["true", "false", ":", "export x=7", "exit 3", "cat"]).to_owned(),
            3 => format!("[ \"$x\" = {} ]", self.pick(&["1", "\"$y\"", "7"])),
            6 => format!("{{ {}; }}", inner(self)),
            7 => format!("( {} )", inner(self)),
            8 => format!("if {}; then {}; else {}; fi", inner(self), inner(self), inner(self)),
            9 => format!("for x in {}; do {}; done", self.words(depth - 1), inner(self)),
            10 => format!("case $x in a*|1) {};; *) {};; esac", inner(self), inner(self)),
            11 => format!("while read y; do {}; done < a.txt", inner(self)),
            12 => format!("! {}", inner(self).replace('\n', "; ")),
            _ => format!("printf '<%s>' {}", self.words(depth)),
        }
    }
}

/// Random lines of what is read, each beside a real bash. `RUNNER_SCRIPT_LINES` sets how many.
#[test]
fn random_lines_do_what_bash_does() {
    let wanted = std::env::var("RUNNER_SCRIPT_LINES").map_or(150, |count| count.parse().unwrap());
    let seed = std::env::var("RUNNER_SCRIPT_SEED").map_or(5, |seed| seed.parse::<u64>().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let guest = guest(folder.path());
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut compared, mut wrong) = (0, Vec::new());
    for _ in 0..wanted {
        let options = random.pick(&["", "", "set -e; ", "set -u; x=0; y=0; "]);
        let line = format!("{options}{}", random.list(3));
        let Some(plan) = planned(&["bash", "-c", &line]) else { continue };
        compared += 1;
        let ours = trace(&guest, &plan.each_ref().map(String::as_str));
        let theirs = trace(Path::new("bash"), &["-c", &line]);
        if ours != theirs {
            wrong.push(format!("{line:?}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(compared > wanted / 2, "{compared} of {wanted} lines compared");
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(8)].join("\n")
    );
}
