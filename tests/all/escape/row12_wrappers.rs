//! Row 12, wrappers: a program that runs another is judged as that other, however deep.

use super::harness::{On, attack};
use super::seat::{Seat, quoted};

/// Words that stand before a command and run it.
const WRAPPERS: [&[&str]; 8] = [
    &["env"],
    &["env", "-i"],
    &["timeout", "5"],
    &["nice", "-n", "5"],
    &["nohup"],
    &["setsid", "-w"],
    &["xargs"],
    &["sudo"],
];

/// Around the bounds of what is read, and the ends.
const DEPTHS: [usize; 12] = [1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 63, 64];

/// The command inside as many wrappers.
fn nested<'a>(wrapper: &[&'a str], depth: usize, command: &[&'a str]) -> Vec<&'a str> {
    let mut words: Vec<&str> = std::iter::repeat_n(wrapper, depth).flatten().copied().collect();
    words.extend(command);
    words
}

/// `sh -c` of `sh -c` of the line.
fn shells(shell: &str, depth: usize, line: &str) -> String {
    (0..depth).fold(line.to_owned(), |line, _| format!("{shell} -c {}", quoted(&line)))
}

fn a_denied_program_is_denied_in_every_wrapper(on: On) {
    let seat = Seat::new(on, &[("names.txt", "one\n")]);
    let before = ["--policy", "look", "--"];
    for wrapper in WRAPPERS {
        for depth in DEPTHS {
            let words = nested(wrapper, depth, &["rm", "-f", "names.txt"]);
            seat.denied(&[&before[..], &words].concat());
        }
    }
    // Each depth once, with wrappers in turn.
    for depth in 1..=64 {
        let mut words: Vec<&str> = WRAPPERS[..6]
            .iter()
            .cycle()
            .take(depth)
            .flat_map(|words| words.iter().copied())
            .collect();
        words.extend(["rm", "-f", "names.txt"]);
        seat.denied(&[&before[..], &words].concat());
    }
    for shell in ["sh", "bash", "busybox sh"] {
        for depth in 1..=4 {
            let line = shells(shell, depth, "rm -f names.txt");
            seat.denied(&["--policy", "look", "--shell", &line]);
            let words = nested(&["env"], depth, &["sh", "-c", &line]);
            seat.denied(&[&before[..], &words].concat());
        }
    }
    assert_eq!(seat.text("names.txt"), "one\n");
    // The control: what may run may be wrapped.
    for wrapper in [&["env"][..], &["timeout", "5"], &["nice", "-n", "5"]] {
        for depth in [1, 2, 8] {
            let words = nested(wrapper, depth, &["cat", "names.txt"]);
            assert_eq!(seat.works("look", &words), "one\n", "{wrapper:?}, {depth} deep");
        }
    }
    for depth in 1..=3 {
        let ran = seat.line("look", &shells("sh", depth, "cat names.txt"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "one\n"), "{depth}: {}", ran.err);
    }
}
attack!(12, "wrappers", a_denied_program_is_denied_in_every_wrapper);
