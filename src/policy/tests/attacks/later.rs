//! Words that are not known before a line runs (row 44): judged as the worst that they could be, and held to it.

use runner_policy::plan::{Assumed, Demand};

use super::{LOOK, line, policy, refused};

/// The same, where writing the workspace is granted, and nothing else.
const EDIT: &str = r#"
policy: 1
name: edit
files: { read: ["**"], write: ["**"], deny: ["**/.env"] }
commands:
  - { id: edit, allow: catalog, effects: [read, write] }
"#;

#[test]
fn a_value_that_is_known_is_judged_as_it_is() {
    refused(
        &policy(&[LOOK]),
        &[
            "x=-delete; find . $x",
            "x=.env; cat $x",
            "x=.env; cat \"$x\"",
            "x=.env && cat ${x}",
            "x=env; cat .$x",
            "x=.env; true || x=a; cat $x",
            "x=a; false && x=.env; cat $x",
            "x=a; if true; then x=.env; fi; cat $x",
            "x=a; while true; do cat $x; x=.env; done",
            "x=a; for i in 1 2; do cat $x; x=.env; done",
            "for f in a .env; do cat $f; done",
            "for f in a -o; do sort $f b; done",
            "x=a; case a in a) x=.env;; esac; cat \"$x\"",
            "x='-o out a'; sort $x",
            "x=rm; $x a",
            "x='rm -rf src'; $x",
            "cmd=cat; $cmd .env",
            "a=c b=at; x=1; c=$a$b; cat ../s$c",
            "x=.env; y=$x; cat $y",
            "x=out; echo a > $x",
            "x=a; cat < ../$x",
            "export x=.env; cat $x",
            "cat <<E\n$(rm a)\nE",
            "cat \"$HOME/../../etc/shadow\"",
            "x=..; cat $x/s",
            "(x=a; cat .env)",
            "{ cat .env; }",
            "! cat .env",
            "if cat .env; then true; fi",
            "until cat .env; do true; done",
            "[[ -f .env ]] && cat ../s",
            "time cat .env",
            "x=$(cat .env); echo $x",
            "echo \"$(cat a $(cat .env))\"",
            "true > out",
            "for i in a; do cat a; done > out",
        ],
        &[
            "x=a; cat $x",
            "x=a; cat \"${x}\"",
            "x=src; cat $x/*.rs",
            "for f in a b c; do cat $f; done",
            "cat \"$PWD/a\"",
            "x='-n a'; sort $x",
            "cmd=cat; $cmd a",
            "if [ -f a ]; then cat a; else cat b; fi",
            "while read -r x; do echo \"$x\"; done < a",
            "set -euo pipefail; cat a | sort",
            "case a in a) cat a;; *) cat b;; esac",
            "[[ -f a && a == b* ]] || cat a",
            "(cd src && cat a); cat b",
            "time cat a; command -v sort; exit 3",
        ],
    );
}

#[test]
fn a_value_that_is_not_known_is_no_option_no_program_and_nothing_outside() {
    refused(
        &policy(&[LOOK]),
        &[
            "$(echo rm) -rf src",
            "x=$(echo rm); $x a",
            "$X a",
            "sort -o$X a",
            "sort -o $X a",
            "git $(cat a)",
            "git -c $X log",
            "timeout 5 $X",
            "xargs $X",
            "find . -exec cat $X \\;",
            "find . -exec $X \\;",
            "env \"$X\" sort a",
            "sh -c \"$X\"",
            "sh -c \"cat $X\"",
            "bash $X",
            "awk \"$X\" a",
            "sed \"$X\" a",
            "cd \"$X\"",
            "echo a > \"$X\"",
            "ls | while read f; do rm \"$f\"; done",
            "for f in *; do rm \"$f\"; done",
            "IFS=/; cat a",
            "IFS=/ read x; cat a",
            "PATH=.; cat a",
            "BASH_ENV=x; cat a",
            "LD_PRELOAD=x; cat a",
            "for PATH in .; do cat a; done",
            "read PATH; cat a",
            "curl $X",
            "python $X",
        ],
        &[
            "for f in *; do cat \"$f\"; done",
            "for f in *.rs; do wc -l $f; done",
            "cat $(git ls-files)",
            "cat \"$X\"",
            "grep -n \"$X\" a",
            "echo $X \"$(git status)\" $?",
            "git log -- \"$X\"",
            "git show \"$X\"",
            "sort ./$X",
            "ls | while read -r f; do cat \"$f\"; done",
            "n=$(cat a | wc -l); echo \"$n lines\"; [ \"$n\" -gt 3 ] && cat b",
        ],
    );
    refused(
        &policy(&[EDIT]),
        &["x=.env; rm $x", "rm $X/../../a > .env"],
        &["x=src; rm $x", "rm \"$X\"", "for f in *.o; do rm \"$f\"; done", "echo a > \"$X\""],
    );
    // A deny holds where it might.
    let never = format!("{EDIT}  - {{ id: never, deny: \"rm -rf ...\" }}\n");
    refused(
        &policy(&[&never]),
        &["x='-rf src'; rm $x", "x=-rf; rm $x src", "x=a; rm -rf $x", "rm -rf $X", "rm $X"],
        &["x=src; rm $x"],
    );
}

#[test]
fn what_was_assumed_travels_in_the_plan() {
    let assumed = |text: &str| {
        let decision = line(&policy(&[LOOK]), text);
        let plan = decision.plan.unwrap_or_else(|| panic!("{text}: {}", decision.message));
        let line = plan.line().unwrap();
        assert!(!line.is_plain(), "{text}");
        let script = line.script().clone();
        let commands: Vec<_> = script.commands().collect();
        let word = commands.iter().flat_map(|it| &it.words).rfind(|word| word.is_expanded());
        line.assumed(word.unwrap()).cloned().unwrap()
    };
    let exactly = |lists: &[&[&str]]| {
        let list = |words: &&[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        Assumed::Exactly(lists.iter().map(list).collect())
    };
    let no_option = |many, demand| Assumed::NoOption { many, demand };
    assert_eq!(assumed("x=a; cat $x"), exactly(&[&["a"]]));
    assert_eq!(assumed("x=; cat ${x:-a}"), exactly(&[&["a"]]));
    assert_eq!(assumed("x=b; cat ${x-a}"), exactly(&[&["b"]]));
    assert_eq!(assumed("cat ${x-a}"), no_option(true, Some(Demand::Inside)));
    assert_eq!(assumed("x='-n  a'; sort $x"), exactly(&[&["-n", "a"]]));
    assert_eq!(assumed("for f in a b; do cat $f; done"), exactly(&[&["a"], &["b"]]));
    assert_eq!(assumed("x=s; cat $x/*.rs"), exactly(&[&["s/*.rs"]]));
    assert_eq!(assumed("x='*'; cat \"$x\""), exactly(&[&["\\*"]]));
    assert_eq!(assumed("cat \"$X\""), no_option(false, Some(Demand::Inside)));
    assert_eq!(assumed("cat $X"), no_option(true, Some(Demand::Inside)));
    assert_eq!(assumed("git show \"$X\""), no_option(false, Some(Demand::InsideWithoutColon)));
    assert_eq!(assumed("grep \"$X\" a"), no_option(false, None));
    assert_eq!(assumed("echo \"$X\""), Assumed::Nothing);
}

/// `${x-y}` is `y` only where nothing else can be.
#[test]
fn a_default_is_one_value_among_others() {
    refused(
        &policy(&[LOOK]),
        &[
            "${x:-rm} a",
            "x=; ${x:-rm} a",
            "x=rm; ${x:-cat} a",
            "x=; cat ${x:-.env}",
            "x=.env; cat ${x:-a}",
            "x=; sort ${x:--o} b a",
            "x=-o; sort ${x:-a} b a",
            "x=; echo a > ${x:-out}",
            "x=a; true || x=; cat ${x:-.env}",
            "x=; cd ${x:-..} && cat s",
            "sort -o ${x:-a} b",
            "git ${x:-push}",
            "x=; git ${x:-push}",
            "PATH=${x:-.}; cat a",
            // What is read in several ways is not read.
            "cat ${x:-$y}",
            "cat ${x:-`cat a`}",
            "cat ${x:-$(rm a)}",
            "cat ${x:-~/a}",
            "cat ${x:-*}",
            "cat ${x:-\\a}",
            "cat ${x:-'a'}",
            "cat ${x:-a b}",
            "cat ${x:=a}",
            "cat ${x:?a}",
            "cat ${x:+a}",
            "cat ${IFS:-a}",
            "cat ${1:-a}",
            "cat ${x[0]:-a}",
            "cat ${!x:-a}",
        ],
        &[
            "x=; cat ${x:-a}",
            "x=b; cat ${x:-a}",
            "cat ${x:-a}",
            "cat \"${x-a}\"",
            "x=; sort ${x:--r} a",
            "x=cat; ${x:-sort} a",
            "echo ${x:-b} ${PWD:-c}",
            "[ \"${n:-0}\" -ge 3 ] && cat a",
        ],
    );
}

/// What only a shell can read is code, and a command that stands in it is denied where a rule names it.
#[test]
fn a_denied_command_in_an_unreadable_line_is_denied() {
    let code = r#"
policy: 1
name: code
files: { read: ["**"], write: ["**"] }
commands:
  - { id: all, allow: "** ...", effects: any }
  - { id: never, deny: "git push ..." }
"#;
    refused(
        &policy(&[code]),
        &[
            "f() { git push; }; f",
            "x=${y:-1}; git push origin main",
            "echo $((1+1)) && git  push",
            "if true; then git push; fi & wait",
            "diff <(git push) b",
            "echo `git push`",
            "x=push; git $x",
            "git $(echo push)",
        ],
        &["f() { git pull; }; f", "echo $((1+1)) && git fetch"],
    );
}

/// Lines that make the reader work: each is answered soon, or the test meets its time limit.
#[test]
fn loops_in_loops_are_bounded() {
    let policy = policy(&[LOOK]);
    let mut text = "x$a=1; cat a".to_owned();
    for depth in 0..8 {
        text = format!("while cat a; do v{depth}=$v{depth}x; cd d{depth}; {text}; done");
    }
    let _ = line(&policy, &text);
    let many = "for a in 1 2 3 4; do for b in 1 2 3 4; do cat $a$b; done; done; ".repeat(100);
    let _ = line(&policy, &many);
    let nested = format!("{}cat a{}", "( ".repeat(100), " )".repeat(100));
    assert!(line(&policy, &nested).plan.is_none());
}

/// What a line does with variables on one way through it holds on every way.
#[test]
fn no_way_through_a_line_is_judged_by_another() {
    refused(
        &policy(&[LOOK]),
        &[
            // With one value a line, with another one a program.
            "for n in \"\" echo; do $n sh -c 'read x < a; sort \"$x\" b'; done",
            "if [ -f d ]; then n=echo; else n=; fi; $n sh -c 'x=$(cat a); sort \"$x\" b'",
            "for t in 5 \"5 echo\"; do timeout $t sh -c 'x=$(cat a); sort \"$x\" b'; done",
            // Exported, and not taken back on every way.
            "export GIT_EXTERNAL_DIFF=./x; unset GIT_EXTERNAL_DIFF <missing; git diff",
            "export GIT_EXTERNAL_DIFF=./x; { unset GIT_EXTERNAL_DIFF; } <missing; git diff",
            "for a in 1; do export GIT_EXTERNAL_DIFF=./x; for b in 1; do break 2; done; \
             unset GIT_EXTERNAL_DIFF; done; git diff",
            "for a in 1; do cd ..; for b in 1; do continue 2; done; cd proj; done; cat s",
            // What the sandbox sets stays.
            "unset GIT_CONFIG_COUNT; git status",
            "unset RUSTUP_TOOLCHAIN; cargo --version",
            "env -u GIT_CONFIG_COUNT git diff",
            "env -i git diff",
            // Letters of options without a dash.
            "x=$(echo xIf); tar \"$x\" ./evil.sh a.tar",
            "tar x* ./evil.sh a.tar",
            // A number of operands that is not known.
            "x=$(cat a); rsync $x",
            "rsync a*",
        ],
        &[
            "for n in a b; do sh -c 'read x < a; echo \"$x\"'; echo $n; done",
            "x=1; unset x; git diff",
            "for a in 1; do for b in 1; do break 2; done; done; git diff",
            "env -u FOO git diff",
            "tar tf a.tar",
            "exit 3",
            "cd src",
        ],
    );
}

/// Many values in many words end the judging.
#[test]
fn a_line_that_would_grow_too_large_is_refused() {
    let value = "x ".repeat(2_000);
    let text = format!("a=\"{value}\"; echo {}", "$a ".repeat(3_000));
    refused(&policy(&[LOOK]), &[&text], &["a=\"x y\"; echo $a $a $a"]);
}
