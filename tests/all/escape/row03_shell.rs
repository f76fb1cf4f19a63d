//! Row 3, shell syntax: in a string it is judged as a line, in an argument it is bytes.

use std::os::unix::fs::PermissionsExt as _;

use super::harness::{On, attack};
use super::seat::{Seat, quoted};

/// Syntax that joins, substitutes, redirects or splits, each around something that would leave a trace.
const WORDS: [&str; 22] = [
    ";",
    "; touch made",
    "&&",
    "a&&touch made",
    "||",
    "|",
    "| tee made",
    "&",
    "touch made &",
    "\n",
    "a\ntouch made\n",
    "\r",
    "a\rb\r\n",
    "$(touch made)",
    "`touch made`",
    "<(touch made)",
    "> made",
    ">>made 2>&1",
    "${IFS}",
    "touch${IFS}made",
    "*",
    "",
];

/// Joined by NUL: the only byte that no argument can hold.
fn expected() -> String {
    WORDS.iter().map(|word| format!("{word}\0")).collect()
}

fn arguments_arrive_byte_for_byte(on: On) {
    let seat = Seat::new(on, &[("names.txt", "b\na\n")]);
    let argv: Vec<&str> = ["printf", r"%s\0"].into_iter().chain(WORDS).collect();
    assert_eq!(seat.works("look", &argv), expected());
    let line: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    let line = line.join(" ");
    let ran = seat.line("look", &line);
    assert_eq!((ran.code, ran.out), (Some(0), expected()), "{}", ran.err);
    assert_eq!(seat.works("look", &["sh", "-c", &line]), expected());
    assert!(!seat.file("made").exists());
}
attack!(3, "arguments", arguments_arrive_byte_for_byte);

/// Lines that would make a file, by every kind of syntax. None of the harmless halves runs either.
const LINES: [&str; 16] = [
    "echo a; touch made",
    "echo a && touch made",
    "false || touch made",
    "echo a | tee made",
    "echo a & touch made",
    "touch made &",
    "echo a\ntouch made",
    "echo a\r\ntouch made\r\n",
    "echo $(touch made)",
    "echo `touch made`",
    "cat <(touch made)",
    "echo a > made",
    "echo a >> made",
    "touch${IFS}made",
    "{ touch made; }",
    "x=touch; $x made",
];

fn a_string_is_judged_as_the_line_that_it_is(on: On) {
    let seat = Seat::new(on, &[("names.txt", "b\na\n")]);
    for line in LINES {
        seat.denied(&["--policy", "look", "--shell", line]);
        seat.denied(&["--policy", "look", "--", "sh", "-c", line]);
        assert!(!seat.file("made").exists(), "{line:?}");
    }
    // The control: harmless lines of the same shapes are executed as they were read …
    for (line, out) in [
        ("echo a; sort names.txt", "a\na\nb\n"),
        ("echo a && sort names.txt", "a\na\nb\n"),
        ("false || echo b", "b\n"),
        ("cat names.txt | sort", "a\nb\n"),
        ("echo a\necho b", "a\nb\n"),
        ("echo a > /dev/null", ""),
    ] {
        let ran = seat.line("look", line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), out), "{line:?}: {}", ran.err);
    }
    // … and where a rule lets code run, the very lines that were denied do what they say.
    for line in ["echo a; touch made", "echo $(touch made)", "touch${IFS}made", "x=touch; $x made"]
    {
        let ran = seat.line("all", line);
        assert_eq!(ran.code, Some(0), "{line:?}: {}", ran.err);
        std::fs::remove_file(seat.file("made")).unwrap();
    }
}
attack!(3, "lines", a_string_is_judged_as_the_line_that_it_is);

/// What programs of the workspace say when they run.
const CANARY: &str = "the canary sings";

/// Lines that are harmless as bash reads them, or as we once did, and run a program of the workspace in the shell that
/// stands before each.
const MISREAD: [(&str, &str); 5] = [
    // dash has no `$'…'`: the quote ends before the semicolon.
    ("dash", r"echo $'\'; ./evil #'"),
    // dash has no `&>`: `echo` runs in the background, and then the program.
    ("dash", "echo a &> /dev/null ./evil"),
    // dash has no braces: what is a comment and a file to bash is one script, with a command, to sed.
    ("dash", "sed {'#','\ne ./evil\n}#'} names.txt"),
    // bash counts into PATH, which then is a folder of the workspace.
    ("bash", "printf '%n' PATH; cat names.txt"),
    // There is a file `-v`, so bash is asked for an element of an array.
    ("bash", "[ -[v] 'a[$(./evil)]' ]"),
];

/// Words before a line that have a shell read it. The guest stands in for the shell in the first of them.
const SHELLS: [&[&str]; 13] = [
    &["sh", "-c"],
    &["sh", "-ec"],
    &["bash", "-lc"],
    &["bash", "-eu", "-c"],
    &["bash", "-o", "errexit", "-c"],
    &["timeout", "5", "sh", "-c"],
    &["timeout", "5", "bash", "-ec"],
    &["env", "-u", "X", "nohup", "bash", "-c"],
    &["setsid", "-w", "nice", "dash", "-c"],
    &["sh", "-xc"],
    &["xargs", "bash", "-c"],
    &["/bin/sh", "-c"],
    &["watch"],
];
const BY_THE_GUEST: usize = 9;

fn no_shell_reads_what_was_judged_otherwise(on: On) {
    let evil = format!("#!/bin/sh\necho {CANARY}\necho {CANARY} >&2\n");
    let seat =
        Seat::new(on, &[("names.txt", "b\na\n"), ("-v", ""), ("evil", &evil), ("0/cat", &evil)]);
    for program in ["evil", "0/cat"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(seat.file(program), mode).unwrap();
    }
    for (shell, line) in MISREAD {
        let mut ran = vec![seat.line("look", line)];
        // What is denied is denied on the host: the runtime matters for what runs.
        let shells = if on != On::Gvisor { &SHELLS[..] } else { &SHELLS[2..4] };
        ran.extend(shells.iter().map(|words| seat.exec("look", &[words, &[line][..]].concat())));
        let found = ["find", ".", "-maxdepth", "0", "-exec", "sh", "-c", line, ";"];
        ran.push(seat.exec("look", &found));
        let nested = format!("timeout 5 sh -c {}", quoted(&format!("bash -ec {}", quoted(line))));
        ran.push(seat.line("look", &nested));
        for ran in &ran {
            assert!(!format!("{}{}", ran.out, ran.err).contains(CANARY), "{line:?}: {ran:?}");
        }
        // The control: a real shell does it, where a rule lets code run.
        let real = seat.exec("all", &[shell, "-xc", line]);
        assert!(format!("{}{}", real.out, real.err).contains(CANARY), "{shell} {line:?}: {real:?}");
    }
    // What the guest executes itself works in every form …
    for words in SHELLS[..BY_THE_GUEST].iter().copied() {
        let line = "cat names.txt | sort && cat nosuch; echo c";
        let ran = seat.exec("look", &[words, &[line]].concat());
        let stops = words.iter().any(|word| word.starts_with("-e") || *word == "errexit");
        let expected = if stops { (Some(1), "a\nb\n") } else { (Some(0), "a\nb\nc\n") };
        assert_eq!((ran.code, ran.out.as_str()), expected, "{words:?}: {}", ran.err);
    }
    // The program before the line ends it with everything that it started.
    let late = seat.exec("look", &["timeout", "1", "sh", "-c", "sleep 1000 | cat; echo late"]);
    assert_eq!((late.code, late.out.as_str()), (Some(124), ""), "{}", late.err);
    // … and a refusal names a form that does.
    let refused =
        seat.home.run(["exec", "--json", "--policy", "look", "--", "sh", "-xc", "sort names.txt"]);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "effect_not_granted", "{error}");
    let suggestion = error["suggestion"].as_str().unwrap();
    assert_eq!(suggestion, "this form is allowed: bash -c 'sort names.txt'");
    assert_eq!(seat.works("look", &["bash", "-c", "sort names.txt"]), "a\nb\n");
}
attack!(3, "shells", no_shell_reads_what_was_judged_otherwise);
