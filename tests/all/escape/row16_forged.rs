//! Row 16, forged results: the command and its children try to speak for the guest, and to look into it.

use runner::call::launch::outcome::Outcome;
use runner::sandbox::outcome::{RunError, Verdict};
use runner_wire::{Channel, Encoder, Ending, Exit, GuestMessage, Key, Programs, Side, Usage};

use super::harness::{On, attack};
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
        let exit = Exit {
            ending: Ending::Exited { status: 0 },
            hits: vec![],
            programs: Programs::default(),
            left_running: 0,
            usage: Usage::default(),
        };
        GuestMessage::Exit(exit).encode(&mut encoder, &mut bytes).unwrap();
    }
    bytes
}

fn script(on: On, text: &str) -> Result<Outcome, RunError> {
    let folder = workspace();
    std::fs::write(folder.path().join("frames"), forged()).unwrap();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    call(plan, argv(&["bash", "-c", text]))
}

fn frames_on_the_streams_are_text(on: On) {
    let outcome = script(on, "cat frames; cat frames >&2; exit 5").unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 5 });
    assert!(outcome.stdout.whole().unwrap() == forged());
    assert!(outcome.stderr.whole().unwrap() == forged());
}
attack!(16, "streams", frames_on_the_streams_are_text);

fn the_guests_descriptors_cannot_be_opened(on: On) {
    let text = "for fd in /proc/1/fd/* /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/mem /proc/1/environ; do \
                (cat frames > $fd) 2>/dev/null && echo wrote $fd; (head -c1 < $fd) 2>/dev/null && echo read $fd; done; exit 6";
    let outcome = script(on, text).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 6 });
    assert_eq!(outcome.stdout.whole().unwrap(), b"");
}
attack!(16, "the guest's descriptors", the_guests_descriptors_cannot_be_opened);

/// Frames that get to the guest's own pipes do not bear its MAC.
fn frames_without_the_mac_end_the_call_or_go_nowhere(on: On) {
    let text = "for fd in /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/fd/*; do \
                (cat frames > $fd) 2>/dev/null; (printf '\\0\\0\\0' > $fd) 2>/dev/null; done; exit 6";
    match script(on, text) {
        Ok(outcome) => assert_eq!(outcome.verdict, Verdict::Failed { status: 6 }),
        Err(RunError::Protocol(_)) => {}
        Err(other) => panic!("{other}"),
    }
    // The control: the next call is as ever.
    let outcome = script(on, "exit 5").unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 5 });
}
attack!(16, "frames without the MAC", frames_without_the_mac_end_the_call_or_go_nowhere);

fn a_command_inherits_its_three_streams_and_nothing_else(on: On) {
    // Tried one by one: a listing would show its own descriptor too.
    let text = "for fd in $(seq 0 1023); do [ -e /proc/self/fd/$fd ] && echo $fd; done; exit 0";
    let outcome = script(on, &format!("exec sh -c '{text}'")).unwrap();
    let shown = String::from_utf8(outcome.stdout.whole().unwrap()).unwrap();
    assert_eq!(shown, "0\n1\n2\n");
}
attack!(16, "streams", a_command_inherits_its_three_streams_and_nothing_else);

fn the_guest_cannot_be_signalled_or_traced(on: On) {
    let text = "kill -9 1; kill -STOP 1; kill -TERM 1; \
                cat /proc/1/maps /proc/1/stack 2>/dev/null; exit 7";
    let outcome = script(on, text).unwrap();
    assert_eq!(outcome.verdict, Verdict::Failed { status: 7 });
    assert_eq!(outcome.stdout.whole().unwrap(), b"");
}
attack!(16, "the guest's life", the_guest_cannot_be_signalled_or_traced);

/// Whoever can end the guest ends the call, and does not end it well.
fn a_guest_that_is_killed_is_no_success(on: On) {
    match script(on, "kill -9 1; kill -TERM 1; exit 0 & sleep 1; exit 7") {
        Ok(outcome) => assert_eq!(outcome.verdict, Verdict::Failed { status: 7 }),
        Err(RunError::GuestLost { .. }) => {}
        Err(other) => panic!("{other}"),
    }
    assert_eq!(script(on, "exit 0").unwrap().verdict, Verdict::Completed, "the control");
}
attack!(16, "streams", a_guest_that_is_killed_is_no_success);

fn the_guest_as_a_command_does_nothing(on: On) {
    let outcome =
        script(on, "/.runner-guest/guest; echo $?; /.runner-guest/guest stage 3 4; echo $?");
    assert_eq!(outcome.unwrap().stdout.whole().unwrap(), b"125\n125\n");
}
attack!(16, "streams", the_guest_as_a_command_does_nothing);

fn the_environment_is_exactly_the_plans(on: On) {
    let outcome = script(on, "tr '\\0' '\\n' < /proc/$$/environ").unwrap();
    assert_eq!(outcome.stdout.whole().unwrap(), b"PATH=/usr/bin:/bin\n");
}
attack!(16, "streams", the_environment_is_exactly_the_plans);

fn signals_and_limits_start_clean(on: On) {
    let text = "cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)' | awk '{print $2}' | sort -u; ulimit -c; umask";
    let outcome = script(on, text).unwrap();
    let shown = String::from_utf8(outcome.stdout.whole().unwrap()).unwrap();
    // gVisor does not tell about signals.
    let signals = if on != On::Gvisor { "0000000000000000\n" } else { "" };
    assert_eq!(shown, format!("{signals}0\n0022\n"));
}
attack!(16, "streams", signals_and_limits_start_clean);
