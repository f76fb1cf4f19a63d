//! Row 41, the workspace changes under a sandbox: here while it is made, by a call that runs beside it.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::harness::{On, attack};
use super::seat::Seat;

/// Waits for what a call makes.
fn wait_for(call: &mut Child, path: &Path) {
    while path.symlink_metadata().is_err() {
        assert_eq!(call.try_wait().unwrap(), None, "it ended without {}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A call that runs this script, in a sandbox that can write the whole workspace.
fn beside(seat: &Seat, script: &str) -> Child {
    let mut command = seat.home.runner();
    command.args(["exec", "--policy", "all", "--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The engine makes what a mount needs and lacks, as root, wherever a link leads: so no sandbox is made while somebody
/// could put a link in the way.
fn a_running_call_cannot_move_what_a_new_sandbox_mounts(on: On) {
    let seat = Seat::new(on, &[("a.txt", "a\n")]);
    let outside = seat.home.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.05; done");
    // What becomes hidden only now is held by no mount of this call.
    let script = format!(
        "mkdir x && echo secret > x/.env && touch ready; {}; mv x y && ln -s {} x && touch swapped; {}",
        wait("go"),
        outside.display(),
        wait("stop")
    );
    let mut attacker = beside(&seat, &script);
    wait_for(&mut attacker, &seat.file("ready"));
    let refused = |folder: &str| {
        let ran = seat.home.run(["exec", "--json", "--policy", "all", "--", "touch", "b.txt"]);
        assert_eq!(ran.code, Some(75), "{}{}", ran.out, ran.err);
        let error = &ran.json()["error"];
        assert_eq!(error["code"], "workspace_contended");
        assert!(error["message"].as_str().unwrap().contains(folder), "{error}");
    };
    refused("/x");
    fs::write(seat.file("go"), "").unwrap();
    wait_for(&mut attacker, &seat.file("swapped"));
    refused("/y");
    // A call that cannot write shows no folder of the workspace by itself, and mounts through none.
    assert_eq!(seat.works("look", &["cat", "a.txt"]), "a\n");
    fs::write(seat.file("stop"), "").unwrap();
    attacker.wait().unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "something was made outside");
    // The control: a call that began when it was hidden holds it, and others run beside it.
    for name in ["x", "stop"] {
        fs::remove_file(seat.file(name)).unwrap();
    }
    let held = format!("mv y z; touch tried; {}", wait("stop"));
    let mut neighbour = beside(&seat, &held);
    wait_for(&mut neighbour, &seat.file("tried"));
    assert!(seat.file("y/.env").exists(), "it was moved");
    seat.works("all", &["touch", "c.txt"]);
    assert!(seat.file("c.txt").exists());
    fs::write(seat.file("stop"), "").unwrap();
    neighbour.wait().unwrap();
}
attack!(41, "moved", a_running_call_cannot_move_what_a_new_sandbox_mounts);
