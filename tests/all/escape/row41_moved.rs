//! Row 41, the workspace changes under a sandbox: here while a call runs, by the host and by a call beside it. What
//! happens while it waits is in `pool::changed`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::harness::{On, attack};
use super::seat::Seat;

/// A call that runs beside others; it says when it is ready, and goes on when it is told to.
struct Beside {
    child: Child,
    says: BufReader<ChildStdout>,
    told: Option<ChildStdin>,
}

impl Beside {
    fn start(seat: &Seat, script: &str) -> Self {
        let mut command = seat.home.runner();
        command.args(["exec", "--policy", "all", "--", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (says, told) = (child.stdout.take().unwrap(), child.stdin.take());
        Self { child, says: BufReader::new(says), told }
    }

    /// The next line that it says.
    fn hears(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line
    }

    /// Lets it go on.
    fn go(&mut self) {
        self.told.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    fn ends(mut self) {
        drop(self.told.take());
        self.child.wait().unwrap();
    }
}

/// A call moves folders and puts links in their place; a call that starts beside it sees nothing of that, and nothing
/// is made where the links lead.
fn a_running_call_cannot_move_what_a_new_sandbox_shows(on: On) {
    let seat = Seat::new(on, &[("a.txt", "a\n"), ("x/.env", "canary\n"), ("x/b.txt", "b\n")]);
    let outside = seat.home.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let script = format!(
        "mv x y; rm -rf x; ln -s {} x && echo swapped; read line; echo evil > x/evil; echo evil > y/b.txt; echo done",
        outside.display()
    );
    let mut attacker = Beside::start(&seat, &script);
    assert_eq!(attacker.hears(), "swapped\n");
    let names = "for name in ('a.txt', 'x/b.txt', 'x/.env'): print(open(name).read(), end='')";
    let look = || seat.works("all", &["python3", "-c", names]);
    assert_eq!(look(), "a\nb\n", "a call beside it sees the host's tree, and no denied file");
    seat.works("all", &["sh", "-c", "test -d x && test ! -e y && echo c > x/c.txt"]);
    attacker.go();
    assert_eq!(attacker.hears(), "done\n");
    attacker.ends();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "something was made outside");
    assert_eq!(seat.text("x/.env"), "canary\n", "a denied file is where it was");
    assert!(!seat.file("y/.env").exists());
    assert!(seat.file("x").symlink_metadata().unwrap().is_dir());
    assert_eq!(look(), "a\nb\n");
    assert_eq!(seat.text("x/c.txt"), "c\n", "the control: the call beside it wrote");
}
attack!(41, "moved", a_running_call_cannot_move_what_a_new_sandbox_shows);

/// The host puts links where a running call has written: what is applied afterwards follows none of them.
fn what_the_host_moves_meanwhile_leads_no_write_elsewhere(on: On) {
    let seat = Seat::new(on, &[("target/deep/old", "old\n"), ("src/a", "a\n")]);
    let outside = seat.home.path("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("deep/old"), "outside\n").unwrap();
    let script = "echo new > target/deep/new; echo new > target/deep/old; echo new > src/a; echo ready; \
                  read line; echo later > target/deep/later; rm -f target/deep/old; echo done";
    let mut call = Beside::start(&seat, script);
    assert_eq!(call.hears(), "ready\n");
    fs::rename(seat.file("target"), seat.file("moved")).unwrap();
    symlink(&outside, seat.file("target")).unwrap();
    fs::remove_file(seat.file("src/a")).unwrap();
    symlink(outside.join("deep/old"), seat.file("src/a")).unwrap();
    call.go();
    assert_eq!(call.hears(), "done\n");
    call.ends();
    assert_eq!(fs::read_to_string(outside.join("deep/old")).unwrap(), "outside\n");
    assert_eq!(
        fs::read_dir(outside.join("deep")).unwrap().count(),
        1,
        "something was made outside"
    );
    assert_eq!(seat.text("moved/deep/old"), "old\n", "what the host moved is as it was");
    assert_eq!(fs::read_link(seat.file("src/a")).unwrap(), outside.join("deep/old"));
    fs::remove_file(seat.file("target")).unwrap();
    fs::rename(seat.file("moved"), seat.file("target")).unwrap();
    seat.works("all", &["sh", "-c", "echo new > target/deep/old"]);
    assert_eq!(seat.text("target/deep/old"), "new\n", "the control");
}
attack!(41, "moved", what_the_host_moves_meanwhile_leads_no_write_elsewhere);
