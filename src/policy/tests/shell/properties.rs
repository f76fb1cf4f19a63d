//! What holds for every line: it is read without panic and in time, and a plan prints and reads back.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use runner_policy::shell::{Construct, Line, MAX_BYTES, MAX_COMMANDS, parse};

use super::lines::{Random, line};

fn reads_back(text: &str) -> bool {
    let Line::Readable(script) = parse(text) else {
        return false;
    };
    let printed = script.to_string();
    match parse(&printed) {
        Line::Readable(again) => {
            assert_eq!(again.to_string(), printed, "{text:?}");
            assert_eq!(again.unplaced(), script.unplaced(), "{text:?} printed as {printed:?}");
            true
        }
        Line::Unreadable(why) => panic!("{text:?} printed as {printed:?}: {why}"),
    }
}

#[test]
fn random_lines_print_and_read_back() {
    let mut random = Random::new(11);
    let readable = (0..10_000).filter(|_| reads_back(&line(&mut random))).count();
    assert!(readable > 2_000, "{readable}");
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>()) {
        reads_back(&text);
    }

    #[test]
    fn any_shell_like_text_is_read(text in "[ab1 \t\n\r'\"\\\\$`{}(),.~*?\\[\\]!#=<>|&;:+-]{0,40}") {
        reads_back(&text);
    }

    #[test]
    fn any_argument_survives_quoting(words in prop::collection::vec("[^\0]{0,20}", 1..5)) {
        let quoted: Vec<_> = words.iter().map(|w| format!("'{}'", w.replace('\'', "'\\''"))).collect();
        let line = parse(&format!("p {}", quoted.join(" ")));
        let Line::Readable(script) = line else { panic!("{line:?}") };
        let found: Vec<_> = script.commands().next().unwrap().words[1..].iter().map(|w| w.literal().unwrap()).collect();
        prop_assert_eq!(found, words);
    }
}

/// Long and deep lines: each is answered in milliseconds, whatever the answer; what is quadratic would
/// take minutes. The bound leaves room for a busy machine.
#[test]
fn hostile_lines_take_no_time() {
    let pieces = [
        "$(",
        "`",
        "\"$(",
        "(",
        "((",
        "{ ",
        "{",
        "{a,",
        "{a..",
        "{}",
        "{1..2}",
        "}",
        "${a:-",
        "[",
        "[]",
        "[[:alpha:]",
        "[a",
        "[!",
        "]",
        "*",
        "?",
        "~",
        "~/",
        "\\",
        "\\\n",
        "'",
        "''",
        "\"",
        "\"\"",
        "$'",
        "$'\\",
        "<<",
        "<<E ",
        "<<E\n",
        "<<E;",
        "$(cat <<E\n",
        "\"$(cat <<E\nE\n)\"",
        ">&",
        ">",
        "a>b ",
        "2>&1 ",
        "|",
        "a|",
        "a&&",
        "a;",
        "a\n",
        "&",
        "!",
        "! ",
        "#",
        "\r",
        "é",
        "A=",
        "A=1 ",
        "a=~",
        ":~",
        "if ",
        "command ",
        "x",
        " ",
        "\t",
        "<<<",
        "{a,b}",
        "{a,b} ",
        ",",
        "..",
        "{1..64}",
        "$",
        "-",
    ];
    let hostile = |start: &str, unit: &str, length: usize| {
        let text = format!("{start}{}", unit.repeat((length - start.len()) / unit.len()));
        let begin = Instant::now();
        let line = parse(&text);
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(60), "{start:?} {unit:?} took {took:?}");
        if let Line::Readable(script) = line {
            assert!(script.commands().count() <= MAX_COMMANDS);
        }
    };
    for first in pieces {
        for second in ["", "x", "}", "]", ",", "{", ")", "\n", "\\\n", " "] {
            for start in ["", "p ", "p {", "p {a,", "p [", "p \"", "cat <<E\n"] {
                hostile(start, &format!("{first}{second}"), 1 << 10);
            }
        }
        hostile("p ", first, MAX_BYTES);
    }
}

#[test]
fn a_line_is_read_up_to_its_limit() {
    assert!(matches!(parse(&"x".repeat(MAX_BYTES)), Line::Readable(_)));
    let Line::Unreadable(why) = parse(&"x".repeat(MAX_BYTES + 1)) else {
        panic!("too long");
    };
    assert_eq!(why.construct, Construct::TooLong);
    let Line::Unreadable(why) = parse(&"x;".repeat(1_001)) else {
        panic!("too many");
    };
    assert_eq!((why.construct, why.at.column), (Construct::TooManyCommands, 2_001));
}
