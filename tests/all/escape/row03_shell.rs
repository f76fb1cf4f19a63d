//! Row 3, shell syntax: in a string it is judged as a line, in an argument it is bytes.

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
