//! Row 35, terminal and log injection: what others wrote cannot drive a terminal, and one event is one record.

use super::harness::{On, attack};
use super::seat::Seat;

/// Clears the screen, sets a title, goes back in the line, turns writing round, hides text.
const EVIL: &str = "a\u{1b}[2J\u{1b}]0;title\u{7}\rb\u{9b}31m\u{202e}c\u{2066}\u{e0041}d\u{8}";

/// Nothing in this text could move a cursor or hide.
fn harmless(what: &str, text: &str) {
    let odd = |c: char| {
        // A terminal of ours ends lines with CR LF.
        (c.is_control() && !matches!(c, '\n' | '\r'))
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    assert_eq!(text.find(odd), None, "{what}: {text:?}");
    assert!(!text.replace("\r\n", "\n").contains('\r'), "{what}: {text:?}");
}

fn output_and_names_cannot_drive_a_terminal(on: On) {
    let seat = Seat::new(on, &[("evil.txt", EVIL), ("plain.txt", "plain text\n")]);
    std::fs::write(seat.file(EVIL), "x").unwrap();
    for line in [
        "exec --policy look -- cat evil.txt",
        "exec --policy all -- sh -c 'cat evil.txt >&2'",
        "exec --policy look -- find . -name 'a*' -print",
        "exec --policy look --shell 'cat *'",
        "exec --policy all -- ./nosuch-\u{1b}[2J\u{202e}",
        "exec --policy look -- rm \u{1b}[2J\u{202e}x",
        "exec --policy look --shell 'rm \u{1b}[2J\u{202e}x'",
        "exec --policy look --workdir /nosuch-\u{1b}[2J\u{202e} -- true",
        "exec --policy look --image bad\u{1b}[2J\u{202e} -- true",
        "exec --policy \u{1b}[2J\u{202e} -- true",
        "audit list",
        "policy explain --policy look -- rm \u{1b}[2J\u{202e}x",
    ] {
        let shown = seat.home.at_terminal(&format!("--color never {line}"), "");
        harmless(line, &shown.out);
        assert!(!shown.out.is_empty(), "{line}");
    }
    // The control: plain text is shown as it is, and a pipe gets every byte.
    let shown = seat.home.at_terminal("exec --policy look -- cat plain.txt", "");
    assert_eq!(shown.out, "plain text\r\n");
    assert_eq!(seat.works("look", &["cat", "evil.txt"]), EVIL);
}
attack!(35, "terminal", output_and_names_cannot_drive_a_terminal);

fn a_reason_cannot_drive_a_terminal_and_an_event_is_one_record(on: On) {
    let seat = Seat::new(on, &[("evil.txt", EVIL)]);
    let reason = serde_json::to_string(EVIL).unwrap();
    let text = format!(
        "extends: [contained]\ncommands:\n  - {{ id: never, deny: \"ls ...\", reason: {reason} }}\n"
    );
    seat.policy("said", &text, "");
    let shown = seat.home.at_terminal("--color never exec --policy said -- ls", "");
    harmless("a reason", &shown.out);
    assert!(shown.out.contains("\\x1b[2J"), "the control: it is shown, escaped: {:?}", shown.out);
    let forged = "x\n{\"kind\":\"end\",\"status\":\"completed\"}\n";
    seat.denied(&["--policy", "said", "--", "ls", EVIL, forged]);
    let ran = seat.home.run(["exec", "--json", "--policy", "said", "--", "printf", "%s", EVIL]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 1), "{}", ran.err);
    harmless("a result as JSON", ran.out.trim_end());
    assert_eq!(ran.json()["stdout"], EVIL, "and nothing is lost");
    let calls = seat.calls();
    assert_eq!(calls.len(), 3, "one record an event");
    for args in [&["audit", "list"][..], &["audit", "list", "--json"], &["ps"], &["gc"]] {
        harmless("what is told later", &seat.home.run(args).out);
    }
    for call in &calls {
        let id = call["call"].as_str().unwrap();
        harmless("a record", &seat.home.run(["audit", "show", id]).out);
        let raw = seat.home.run(["audit", "show", id, "--json"]).out;
        assert_eq!(raw.lines().count(), 1);
        harmless("a record as JSON", &raw);
    }
}
attack!(35, "terminal", a_reason_cannot_drive_a_terminal_and_an_event_is_one_record);
