//! The command and its children try to speak for the guest, and to look into it.

use runner::sandbox::outcome::{Outcome, RunError, Verdict};
use runner_wire::{Channel, Encoder, Ending, Exit, GuestMessage, Key, Side, Usage};

use crate::engine::{argv, call, plan, workspace};

/// Perfect frames of a guest, but for the key: an end with status 0.
fn forged() -> Vec<u8> {
    let mut bytes = Vec::new();
    for first in [0, 3] {
        let mut encoder = Encoder::new(Side::Guest);
        encoder.rekey(&Key::new([0; 32]));
        for _ in 0..first {
            let data = GuestMessage::Data(Channel::STDOUT, b"x".to_vec());
            data.encode(&mut encoder, &mut Vec::new()).unwrap();
        }
        let exit =
            Exit { ending: Ending::Exited { status: 0 }, hits: vec![], usage: Usage::default() };
        GuestMessage::Exit(exit).encode(&mut encoder, &mut bytes).unwrap();
    }
    bytes
}

fn script(text: &str) -> Result<Outcome, RunError> {
    let folder = workspace();
    std::fs::write(folder.path().join("frames"), forged()).unwrap();
    call(plan(folder.path()), argv(&["bash", "-c", text]))
}

#[test]
fn frames_on_the_streams_are_text() {
    let outcome = script("cat frames; cat frames >&2; exit 5").unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 5 });
    assert!(outcome.stdout.whole().unwrap() == forged());
    assert!(outcome.stderr.whole().unwrap() == forged());
}

#[test]
fn the_guests_descriptors_cannot_be_opened() {
    let text = "for fd in /proc/1/fd/* /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/mem /proc/1/environ; do \
                (cat frames > $fd) 2>/dev/null && echo wrote $fd; (head -c1 < $fd) 2>/dev/null && echo read $fd; done; exit 6";
    let outcome = script(text).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 6 });
    assert_eq!(outcome.stdout.whole().unwrap(), b"");
}

#[test]
fn a_command_inherits_its_three_streams_and_nothing_else() {
    let folder = workspace();
    let outcome = call(plan(folder.path()), argv(&["ls", "/proc/self/fd"])).unwrap();
    // The fourth is the folder that it lists.
    assert_eq!(outcome.stdout.whole().unwrap(), b"0\n1\n2\n3\n");
}

#[test]
fn the_guest_cannot_be_signalled_or_traced() {
    let text = "kill -9 1; kill -STOP 1; kill -TERM 1; \
                cat /proc/1/maps /proc/1/stack 2>/dev/null; exit 7";
    let outcome = script(text).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 7 });
    assert_eq!(outcome.stdout.whole().unwrap(), b"");
}

#[test]
fn the_guest_as_a_command_does_nothing() {
    let outcome = script("/.runner-guest/guest; echo $?; /.runner-guest/guest stage 3 4; echo $?");
    assert_eq!(outcome.unwrap().stdout.whole().unwrap(), b"125\n125\n");
}

#[test]
fn the_environment_is_exactly_the_plans() {
    let outcome = script("tr '\\0' '\\n' < /proc/$$/environ").unwrap();
    assert_eq!(outcome.stdout.whole().unwrap(), b"PATH=/usr/bin:/bin\n");
}

#[test]
fn signals_and_limits_start_clean() {
    let text = "cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)' | awk '{print $2}' | sort -u; ulimit -c; umask";
    let outcome = script(text).unwrap();
    let shown = String::from_utf8(outcome.stdout.whole().unwrap()).unwrap();
    assert_eq!(shown, "0000000000000000\n0\n0022\n");
}
