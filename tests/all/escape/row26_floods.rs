//! Row 26, floods and slow peers: whoever does not answer is left behind, and calls do not reach each other.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runner::ids::CallId;
use runner::sandbox::outcome::{RunError, Verdict};
use runner_policy::limits::Limit;

use super::harness::{On, attack};
use super::seat::Seat;
use crate::death::gone;
use crate::engine::{argv, call_as, plan, workspace};
use crate::support::{Home, Ran};

/// Somebody writes the beginning of a frame into the guest's own pipe, if that can be reached, and then nothing.
fn half_a_frame_then_silence_ends_in_time(on: On) {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    plan.limits.set(Limit::Wall, 2_000);
    let id = CallId::fresh().unwrap();
    let script =
        "for fd in /proc/1/fd/*; do (printf '\\100\\0\\0' > $fd) 2>/dev/null; done; sleep 60";
    match call_as(&id, plan, argv(&["sh", "-c", script])) {
        Ok(outcome) => assert_eq!(outcome.verdict, Verdict::Timeout),
        Err(RunError::Protocol(_) | RunError::GuestSilent) => {}
        Err(other) => panic!("{other}"),
    }
    gone(&id);
}
attack!(26, "peers", half_a_frame_then_silence_ends_in_time);

/// Nobody reads what is typed, and a request to end stands behind it.
fn blocked_input_does_not_block_a_cancel(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n")]);
    let mut child = seat
        .home
        .runner()
        .args(["exec", "--policy", "all", "--", "sh", "-c", "echo up; sleep 60"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let typed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&typed);
    let typing = std::thread::spawn(move || {
        while stdin.write_all(&[b'x'; 1 << 12]).is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut first = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    // Until every buffer on the way is full: no more is taken.
    let mut before = 0;
    while before == 0 || typed.load(Ordering::Relaxed) != before {
        before = typed.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(500));
    }
    let calls = seat.home.run(["ps", "--json"]).json();
    let call = calls["calls"][0]["call"].as_str().unwrap();
    assert_eq!(seat.home.run(["cancel", call]).code, Some(0));
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    typing.join().unwrap();
    // The control: input that is read arrives.
    let mut child = seat
        .home
        .runner()
        .args(["exec", "--policy", "all", "--", "wc", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&vec![b'x'; 3_000_000]).unwrap();
    assert_eq!(Ran::from(child.wait_with_output().unwrap()).out, "3000000\n");
}
attack!(26, "peers", blocked_input_does_not_block_a_cancel);

/// What one call leaves open for others to find. The port is none of those that the kernel gives away: one that looks for a
/// port may be given that very one for its own end, and then finds itself.
const LISTENER: &str = "import socket, time, os\n\
    a = socket.socket(); a.bind(('127.0.0.1', 25678)); a.listen()\n\
    b = socket.socket(socket.AF_UNIX); b.bind('\\0runner-test'); b.listen()\n\
    c = socket.socket(socket.AF_UNIX); c.bind('/tmp/sock'); c.listen()\n\
    open('/tmp/secret', 'w').write('CANARY'); open('/dev/shm/secret', 'w').write('CANARY')\n\
    print('up', flush=True); time.sleep(60)\n";

/// Looks for it. The last line is the control: a call finds what is its own.
const SEEKER: &str = "import socket, os, glob\n\
    def reach(name, family, address):\n\
    \x20 try: socket.socket(family).connect(address); print('REACHED', name)\n\
    \x20 except OSError: pass\n\
    reach('port', socket.AF_INET, ('127.0.0.1', 25678))\n\
    reach('abstract', socket.AF_UNIX, '\\0runner-test')\n\
    reach('file', socket.AF_UNIX, '/tmp/sock')\n\
    for path in ['/tmp/secret', '/dev/shm/secret'] + glob.glob('/proc/[0-9]*/root/tmp/secret'):\n\
    \x20 if os.path.exists(path): print('REACHED', path)\n\
    for path in glob.glob('/proc/[0-9]*/cmdline'):\n\
    \x20 if b'runner-test' in open(path, 'rb').read() and path.split('/')[2] != str(os.getpid()): print('REACHED', path)\n\
    s = socket.socket(); s.bind(('127.0.0.1', 25678)); s.listen(); reach('own', socket.AF_INET, ('127.0.0.1', 25678))\n";

fn calls_at_once_do_not_reach_each_other(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n")]);
    let mut child = seat
        .home
        .runner()
        .args(["exec", "--policy", "all", "--", "python3", "-c", LISTENER])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let seekers: Vec<_> = (0..4)
        .map(|_| {
            seat.home
                .runner()
                .args(["exec", "--policy", "all", "--", "python3", "-c", SEEKER])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for seeker in seekers {
        let ran = Ran::from(seeker.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "REACHED own\n"), "{}", ran.err);
    }
    let calls = seat.home.run(["ps", "--json"]).json();
    let call = calls["calls"][0]["call"].as_str().unwrap();
    assert_eq!(seat.home.run(["cancel", call]).code, Some(0));
    child.wait().unwrap();
}
attack!(26, "peers", calls_at_once_do_not_reach_each_other);

/// A daemon that says half a word and then nothing.
#[test]
fn an_engine_that_falls_silent_is_left() {
    let home = Home::new();
    let path = home.path("half.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nApi-Ver");
            kept.push(client);
        }
    });
    let mut command: Command = home.runner();
    command.env("DOCKER_HOST", format!("unix://{}", path.display()));
    let ran = Ran::from(command.args(["exec", "--json", "--", "true"]).output().unwrap());
    assert_eq!(ran.code, Some(125), "{}", ran.err);
    let result = ran.json();
    assert_eq!(result["error"]["code"], "engine_slow", "{result}");
    assert!(result["error"]["suggestion"].is_string(), "{result}");
}
