//! Row 31, a tool changed after approval: what was approved is what runs, or nothing does. The swaps are made on the host, where
//! who wrote the repository has a hand: between approval and call, while the question is shown, and during the call.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use serde_json::Value;

use super::harness::{On, attack};
use super::seat::Seat;
use crate::tools::{told, write_yaml};

/// What the approved tool says.
const GOOD: &str = "approved words";

/// What must never be said.
const EVIL: &str = "evil words";

/// A seat whose tool `t` was approved for an hour, beside what would be put in its place.
fn approved(on: On) -> Seat {
    let seat = Seat::new(on, &[]);
    // Answers by a program: hundreds of terminals would show nothing more.
    seat.home.config("pool: { size: 0 }\napprovals: { withoutTerminal: true }\n");
    let code = "import { word } from './lib.ts';\nexport const execute = () => word;";
    write_yaml(&seat.home, "t", "permissions: { autoAccept: false }", code);
    put(&seat, "lib.ts", &format!("export const word = '{GOOD}';\n"));
    let text = fs::read_to_string(tool(&seat, "t.yml")).unwrap();
    put(&seat, "good.copy", &text);
    put(&seat, "good.ts.copy", &fs::read_to_string(tool(&seat, "lib.ts")).unwrap());
    put(&seat, "evil.copy", &text.replace("() => word", &format!("() => '{EVIL}'")));
    put(&seat, "evil.ts.copy", &format!("export const word = '{EVIL}';\n"));
    approve(&seat);
    seat
}

/// Answers the question that the tool asks as it is now.
fn approve(seat: &Seat) {
    let asked = run(seat);
    let id = asked["error"]["details"]["approval"]["id"].as_str();
    let id = id.unwrap_or_else(|| panic!("nothing to approve: {asked}"));
    let ran = seat.home.run(["approve", id, "--for", "1h"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

fn run(seat: &Seat) -> Value {
    seat.home.run(["--json", "tool", "run", "t", "--policy", "look"]).json()
}

fn tool(seat: &Seat, name: &str) -> std::path::PathBuf {
    seat.file(".runner/tools").join(name)
}

fn put(seat: &Seat, name: &str, text: &str) {
    fs::write(tool(seat, name), text).unwrap();
}

/// A way to put other content in a file's place.
#[derive(Debug, Clone, Copy)]
enum Swap {
    Write,
    Rename,
    Link,
    HardLink,
    Gone,
}

const SWAPS: [Swap; 5] = [Swap::Write, Swap::Rename, Swap::Link, Swap::HardLink, Swap::Gone];

impl Swap {
    /// Puts `from` in the place of `name`.
    fn make(self, seat: &Seat, name: &str, from: &str) {
        let (at, from, new) = (tool(seat, name), tool(seat, from), tool(seat, ".new"));
        let _ = fs::remove_file(&new);
        match self {
            Self::Write => return fs::write(&at, fs::read(&from).unwrap()).unwrap(),
            Self::Gone => return fs::remove_file(&at).unwrap(),
            Self::Rename => drop(fs::copy(&from, &new).unwrap()),
            Self::Link => symlink(&from, &new).unwrap(),
            Self::HardLink => fs::hard_link(&from, &new).unwrap(),
        }
        fs::rename(&new, &at).unwrap();
    }
}

/// Refused as what it is: the file is named, nothing ran, and there is one record of it.
fn assert_refused(seat: &Seat, result: &Value, file: &str, what: &str) {
    assert_eq!(told(result), ("denied", 126, "tool_digest_mismatch"), "{what}: {result}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains(file), "{what}: {message}");
    let newest = &seat.calls()[0];
    assert_eq!(
        (&newest["status"], &newest["code"]),
        (&"denied".into(), &"tool_digest_mismatch".into()),
        "{what}: {newest}"
    );
}

/// The control: the approved tool runs.
fn assert_runs(seat: &Seat) {
    let result = run(seat);
    assert_eq!((told(&result).0, &result["value"]), ("completed", &GOOD.into()), "{result}");
}

fn what_was_swapped_after_the_approval_does_not_run(on: On) {
    let seat = approved(on);
    assert_runs(&seat);
    for (name, good, evil) in
        [("t.yml", "good.copy", "evil.copy"), ("lib.ts", "good.ts.copy", "evil.ts.copy")]
    {
        for swap in SWAPS {
            if (name, swap as u8) == ("t.yml", Swap::Gone as u8) {
                continue; // then there is no tool, and it says so
            }
            let what = format!("{name}: {swap:?}");
            swap.make(&seat, name, evil);
            assert_refused(&seat, &run(&seat), name, &what);
            // Void for good: as it was, it is asked about anew.
            Swap::Rename.make(&seat, name, good);
            assert_eq!(told(&run(&seat)).0, "needs_approval", "{what}");
            approve(&seat);
            assert_runs(&seat);
        }
        // A link to the same bytes is not the file that was approved either: they can change where it leads.
        Swap::Link.make(&seat, name, good);
        assert_refused(&seat, &run(&seat), name, &format!("{name}: a link to a copy"));
        Swap::Rename.make(&seat, name, good);
        approve(&seat);
        // Another name of the approved file itself: what is written there is read here.
        fs::hard_link(tool(&seat, name), tool(&seat, ".other")).unwrap();
        assert_runs(&seat);
        fs::write(tool(&seat, ".other"), fs::read(tool(&seat, evil)).unwrap()).unwrap();
        assert_refused(&seat, &run(&seat), name, &format!("{name}: through another name"));
        fs::remove_file(tool(&seat, ".other")).unwrap();
        Swap::Rename.make(&seat, name, good);
        approve(&seat);
    }
    assert_runs(&seat);
}
attack!(31, "tools", what_was_swapped_after_the_approval_does_not_run);

fn what_is_swapped_while_the_question_is_shown_does_not_run(on: On) {
    let seat = approved(on);
    let line = "tool run t --policy look --arg x=1";
    let text = fs::read_to_string(tool(&seat, "good.copy")).unwrap();
    // Another argument, so that there is a question.
    let wide = |text: &str| {
        text.replace("{ type: object }", "{ type: object, properties: { x: { type: string } } }")
    };
    put(&seat, "good.copy", &wide(&text));
    let evil = fs::read_to_string(tool(&seat, "evil.copy")).unwrap();
    put(&seat, "evil.copy", &wide(&evil));
    Swap::Rename.make(&seat, "t.yml", "good.copy");
    let control = seat.home.at_terminal_meanwhile(line, || {}, "y\n");
    assert!(control.code == Some(0) && control.out.contains(GOOD), "{}", control.out);
    for (name, good, evil) in
        [("t.yml", "good.copy", "evil.copy"), ("lib.ts", "good.ts.copy", "evil.ts.copy")]
    {
        for swap in SWAPS {
            let swapped = || swap.make(&seat, name, evil);
            let shown = seat.home.at_terminal_meanwhile(line, swapped, "y\n");
            assert_eq!(shown.code, Some(126), "{name}: {swap:?}: {}", shown.out);
            let (_, said) = shown.out.rsplit_once("[never]: ").unwrap();
            assert!(said.contains(name), "{name}: {swap:?}: {said}");
            assert!(!shown.out.contains(EVIL), "{name}: {swap:?}: {}", shown.out);
            assert_eq!(seat.calls()[0]["code"], "tool_digest_mismatch");
            Swap::Rename.make(&seat, name, good);
        }
    }
}
attack!(31, "tools", what_is_swapped_while_the_question_is_shown_does_not_run);

fn what_is_swapped_during_the_call_does_not_run(on: On) {
    let seat = approved(on);
    let begun = Instant::now();
    assert_runs(&seat);
    let long = begun.elapsed();
    // One moment after the other of the whole call, from before the first look to after the last.
    let moments = 12;
    let mut outcomes = [0, 0];
    for at in 0..moments {
        let moment = long * at / moments;
        let swap = SWAPS[at as usize % 4];
        let (name, good, evil) = match at % 2 {
            0 => ("t.yml", "good.copy", "evil.copy"),
            _ => ("lib.ts", "good.ts.copy", "evil.ts.copy"),
        };
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&seat));
            std::thread::sleep(moment);
            swap.make(&seat, name, evil);
            running.join().unwrap()
        });
        assert!(!result.to_string().contains(EVIL), "{name}, {swap:?} at {moment:?}: {result}");
        match told(&result) {
            ("completed", ..) => {
                assert_eq!(result["value"], GOOD, "{result}");
                outcomes[0] += 1;
            }
            ("denied", 126, "tool_digest_mismatch") => outcomes[1] += 1,
            _ => panic!("{name}, {swap:?} at {moment:?}: {result}"),
        }
        Swap::Rename.make(&seat, name, good);
        if told(&run(&seat)).0 == "needs_approval" {
            approve(&seat);
        }
    }
    println!("{outcomes:?} of {moments} ran and were refused");
    // The first moment is before everything, so a swap is seen at least there.
    assert!(outcomes[1] > 0, "{outcomes:?}");
}
attack!(31, "tools", what_is_swapped_during_the_call_does_not_run);
