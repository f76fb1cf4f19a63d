//! Row 44, words that are not known before they run: `$x`, `$(…)`, globs and loops whose value could be an option, a
//! denied path or another program. They are judged as the worst that they could be, what was assumed is checked by the
//! guest before the program starts, and where only a shell reads a line, covers and stage hold.

use std::fs;

use serde_json::Value;

use super::harness::{On, attack};
use super::seat::Seat;

const SECRET: &str = "CANARY-44";

/// A workspace with what the attacks are after.
fn seat(on: On) -> Seat {
    let seat = Seat::new(
        on,
        &[
            (".env", SECRET),
            ("secrets/token", SECRET),
            ("plain", "b\na\n"),
            ("src/x.rs", "x\n"),
            ("src/y.rs", "y\n"),
            // What a line reads from them decides what it does.
            ("names", "plain\n"),
            ("option", "-o\n"),
            ("up", "../../../../../etc/passwd\n"),
            ("program", "touch\n"),
            ("denied", ".env\n"),
        ],
    );
    let rules = "extends: [develop]\nfiles: { write: [\"**\"], deny: [\"secrets/**\"] }\n\
        commands:\n  - { id: edit, allow: catalog, effects: [read, write] }\n  - { id: never, deny: \"touch ...\" }\n";
    seat.policy("change", rules, "");
    seat
}

fn kept(seat: &Seat, line: &str) {
    for name in [".env", "secrets/token"] {
        assert_eq!(seat.text(name), SECRET, "{line}");
    }
    assert!(!seat.file("made").exists(), "{line}");
}

/// Lines whose words are known: they are judged by them, whatever way they were written.
fn a_known_word_is_judged_as_if_it_were_written(on: On) {
    let seat = seat(on);
    for line in [
        "x=made; echo a > $x",
        "x='-o made'; sort $x plain",
        "for o in -n -o; do sort $o made plain; done",
        "x=touch; $x made",
        "x='touch made'; $x",
        "if true; then x=made; fi; cp plain \"$x\"",
        "case a in a) x=made;; esac; cp plain $x",
        "false || x=made; sort -o\"$x\" plain",
        "f=m; f=${f}ade; echo a >> \"$f\"",
    ] {
        let code = seat.denied(&["--policy", "look", "--shell", line]);
        assert_ne!(code, "unreadable", "{line}");
        kept(&seat, line);
    }
    // A denied file by a value, where files may be written: neither its content nor its name is taken.
    for line in [
        "x=.env; cat \"$x\"",
        "for f in plain .env; do cat $f; done",
        "x=secrets; rm -r $x",
        "x=.env; mv $x made",
        "d=secrets; cat $d/token",
        "x=touch; $x made",
    ] {
        let ran = seat.line("change", line);
        assert!(!ran.out.contains(SECRET) && ran.code != Some(0), "{line}: {ran:?}");
        kept(&seat, line);
    }
    // The controls: the same forms with words that may be.
    for (policy, line, out) in [
        ("look", "x=plain; cat $x", "b\na\n"),
        ("look", "x='-r plain'; sort $x", "b\na\n"),
        ("look", "for f in src/*.rs; do cat \"$f\"; done", "x\ny\n"),
        ("look", "c=cat; $c plain", "b\na\n"),
        ("change", "x=copy; cp plain \"$x\" && cat copy && rm $x", "b\na\n"),
        ("change", "case a in a) x=copy;; esac; sort -o \"$x\" plain; cat copy; rm copy", "a\nb\n"),
    ] {
        let ran = seat.line(policy, line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), out), "{line}: {}", ran.err);
    }
}
attack!(44, "known words", a_known_word_is_judged_as_if_it_were_written);

/// Lines whose words come from files and commands: a word could be an option, a program, or lead out.
fn a_word_that_is_learned_is_no_option_no_program_and_nothing_outside(on: On) {
    let seat = seat(on);
    // Where it could be a program or an option, the line is not run at all.
    for line in [
        "$(cat program) made",
        "x=$(cat program); $x made",
        "read x < program; $x made",
        "sort -o $(cat names) plain",
        "sort $(cat option) made plain",
        "timeout 5 $(cat program) made",
        "find . -name plain -exec $(cat program) made \\;",
        "sh -c \"$(cat program) made\"",
        "awk \"$(cat program)\" plain",
        "while read -r p; do \"$p\" made; done < program",
        "for f in *; do cp \"$f\" made; done",
        "IFS=m; x=plain; cat $x",
        "PATH=$PWD; cat plain",
    ] {
        let ran = seat.line("look", line);
        assert_eq!(ran.code, Some(126), "{line}: {ran:?}");
        kept(&seat, line);
    }
    // Where it stands for a path, it is checked when it is known, before the program starts.
    for line in [
        "cat \"$(cat up)\"; echo after",
        "x=$(cat up); cat $x; echo after",
        "while read -r f; do cat \"$f\"; done < up; echo after",
        "read -r f < option; cat \"$f\"; echo after",
        "cat $(cat option) plain; echo after",
        "for f in $(cat up option); do cat \"$f\"; done; echo after",
    ] {
        let ran = seat.home.run(["exec", "--json", "--policy", "look", "--shell", line]);
        let result: Value = ran.json();
        assert_eq!(result["error"]["code"], "assumption_failed", "{line}: {result:#}");
        assert_eq!(ran.code, Some(126), "{line}");
        let out = result["stdout"].as_str().unwrap_or_default();
        assert!(!out.contains("root:") && !out.contains("after"), "{line}: {out}");
    }
    // A denied path that nothing in the line says: the cover holds where the judge cannot know.
    for line in [
        "cat \"$(cat denied)\"; echo after",
        "while read -r f; do cat \"$f\"; done < denied; echo after",
        "for f in .*; do [ -f \"$f\" ] && cat \"$f\"; done; echo after",
        "cat $(find . -name '.en*'); echo after",
        "cat .en\"$(echo)\"v; echo after",
    ] {
        let ran = seat.line("look", line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "after\n"), "{line}: {}", ran.err);
        assert!(!ran.err.contains(SECRET), "{line}");
    }
    // The controls.
    for (line, out) in [
        ("cat \"$(cat names)\"", "b\na\n"),
        ("while read -r f; do cat \"$f\"; done < names", "b\na\n"),
        ("n=$(cat plain | wc -l); [ \"$n\" -gt 1 ] && echo \"$n\"", "2\n"),
    ] {
        let ran = seat.line("look", line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), out), "{line}: {}", ran.err);
    }
}
attack!(44, "learned words", a_word_that_is_learned_is_no_option_no_program_and_nothing_outside);

/// A file changes between two readings of a line: what was checked is what the program gets.
fn what_was_checked_is_what_is_executed(on: On) {
    let seat = seat(on);
    // The word is expanded once: a value that another reading would give is not seen.
    let line = "f=$(cat names); cp option names; cat \"$f\"; cat $(cat names)";
    let ran = seat.line("change", line);
    assert_eq!(ran.code, Some(126), "{ran:?}");
    assert_eq!(ran.out, "b\na\n", "the first value was checked, and was executed");
    // A glob's names are words like others: one that is an option ends the line.
    fs::write(seat.file("src/-delete"), "").unwrap();
    seat.give_away();
    let ran = seat.line("look", "cd src && find *");
    assert_eq!(ran.code, Some(126), "{ran:?}");
    assert!(seat.file("src/x.rs").exists());
    let ran = seat.line("look", "cd src && find ./*.rs");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "./x.rs\n./y.rs\n"), "{}", ran.err);
}
attack!(44, "executed", what_was_checked_is_what_is_executed);

/// What only a shell reads is code: where code may run, covers and stage hold, and a denied name in it is denied.
fn what_only_a_shell_reads_is_code(on: On) {
    let seat = seat(on);
    let unread = [
        "eval \"$(cat program) made\"",
        "x=program; ${!x} made",
        "f() { cat \"$1\"; }; f .env",
        "a=(touch made); \"${a[@]}\"",
    ];
    for line in unread {
        let ran = seat.line("look", line);
        assert_eq!(ran.code, Some(126), "{line}: {ran:?}");
        kept(&seat, line);
    }
    for line in [
        "f() { cat \"$1\"; mv \"$1\" made; }; f \"$(cat denied)\"",
        "f() { cat $1; rm -rf $1; }; f secrets/token",
        "a=(.env secrets/token); cat \"${a[@]}\"; cp \"${a[@]}\" src; rm -rf \"${a[@]}\"",
    ] {
        let ran = seat.line("all", line);
        assert!(!format!("{}{}", ran.out, ran.err).contains(SECRET), "{line}: {ran:?}");
        kept(&seat, line);
        for name in ["src/.env", "src/token"] {
            assert!(!seat.file(name).exists() || seat.text(name).is_empty(), "{line}");
        }
    }
    let ran = seat.line("all", "f() { touch \"$1\"; cat \"$1\" plain; }; f new");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "b\na\n"), "the control: {}", ran.err);
    assert!(seat.file("new").exists(), "the control");
}
attack!(44, "code", what_only_a_shell_reads_is_code);
