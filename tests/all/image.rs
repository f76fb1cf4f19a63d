//! Images other than `host`, other runtimes, and engines that cannot do what is needed.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use runner::engine::EngineError;
use runner::engine::docker::Docker;
use runner::engine::plan::{Image, Runtime, SandboxPlan};
use runner::error::Failure;
use runner::sandbox::outcome::{RunError, Verdict};
use runner_policy::limits::Limit;

use crate::engine::{argv, block_on, call, plan, workspace};

pub fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An image with a few programs of this machine and their libraries, made once.
pub fn small_image() -> String {
    const NAME: &str = "runner-test-small:1";
    let known = Command::new("docker").args(["image", "inspect", NAME]).output().unwrap();
    if !known.status.success() {
        let script = "cd / && tar -chf - $(for p in /bin/sh /bin/cat /bin/ls /usr/bin/id; do echo $p; \
                      ldd $p | grep -o '/[^ ]*'; done | sort -u | sed 's,^/,,') 2>/dev/null";
        let tar = Command::new("sh").args(["-c", script]).output().unwrap();
        let mut import = Command::new("docker")
            .args(["import", "-", NAME])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(&tar.stdout).unwrap();
        assert!(import.wait().unwrap().success());
    }
    NAME.to_owned()
}

/// The plan for a foreign image: only the workspace is mounted.
fn foreign(folder: &Path, reference: &str) -> SandboxPlan {
    let mut plan = plan(folder);
    plan.image = Image::Reference(reference.to_owned());
    plan.mounts.clear();
    plan
}

#[test]
fn any_image_gets_its_guest_from_a_volume() {
    let folder = workspace();
    std::fs::write(folder.path().join("f"), "hello").unwrap();
    let reference = small_image();
    let outcome = call(foreign(folder.path(), &reference), argv(&["cat", "f"])).unwrap();
    assert_eq!(outcome.stdout.whole().unwrap(), b"hello", "{outcome:?}");
    // A pruned volume is silently made anew, empty: the guest has to be put in again.
    let volume = runner::engine::docker::volume_name();
    let begun = std::time::Instant::now();
    while !Command::new("docker").args(["volume", "rm", &volume]).output().unwrap().status.success()
    {
        assert!(begun.elapsed().as_secs() < 60, "the volume stays in use");
    }
    docker(&["volume", "create", &volume]);
    let outcome = call(foreign(folder.path(), &reference), argv(&["cat", "f"])).unwrap();
    assert_eq!(outcome.stdout.whole().unwrap(), b"hello", "{outcome:?}");
}

#[test]
fn a_missing_image_is_an_error_with_the_next_step() {
    let folder = workspace();
    let error = call(foreign(folder.path(), "nosuch/image:1"), argv(&["true"])).unwrap_err();
    assert_eq!(error.code().as_str(), "image_missing");
    assert_eq!(error.hint().unwrap(), "docker pull nosuch/image:1");
}

#[test]
fn a_missing_runtime_is_an_error_of_its_own() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = Runtime::new("nosuch");
    let error = call(plan, argv(&["true"])).unwrap_err();
    assert_eq!(error.code().as_str(), "runtime_missing", "{error}");
}

#[test]
fn a_mount_source_that_vanished_is_an_error_of_its_own() {
    let folder = workspace();
    let plan = plan(folder.path());
    drop(folder);
    let error = call(plan, argv(&["true"])).unwrap_err();
    assert_eq!(error.code().as_str(), "mount_gone", "{error}");
}

#[test]
fn a_call_runs_under_gvisor() {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = Runtime::new("runsc");
    plan.limits.set(Limit::Wall, 120_000);
    let work = argv(&["sh", "-c", "echo hello; cat; exit 4"]);
    let outcome = call(plan, work).unwrap();
    assert_eq!(outcome.stdout.whole().unwrap(), b"hello\n", "{outcome:?}");
    assert_eq!(outcome.verdict, Verdict::Failed { status: 4 });
}

/// A daemon that answers a ping like this and nothing else.
fn fake(answer: &'static str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let endpoint = format!("unix://{}", path.display());
    (folder, endpoint)
}

fn connect(endpoint: &str) -> EngineError {
    block_on(Docker::connect_to(endpoint, None)).unwrap_err()
}

#[test]
fn what_is_wrong_with_an_engine_is_told_apart() {
    let (_folder, old) = fake("HTTP/1.1 200 OK\r\nApi-Version: 1.40\r\nOstype: linux\r\n\r\nOK");
    let (_folder2, windows) =
        fake("HTTP/1.1 200 OK\r\nApi-Version: 1.47\r\nOstype: windows\r\n\r\nOK");
    let (_folder3, other) = fake("SSH-2.0-OpenSSH\r\n");
    for (endpoint, code) in [
        ("unix:///nosuch/docker.sock", "engine_missing"),
        ("tcp://127.0.0.1:1", "engine_missing"),
        ("ssh://host", "engine_bad_endpoint"),
        ("docker.sock", "engine_bad_endpoint"),
        (old.as_str(), "engine_too_old"),
        (windows.as_str(), "engine_not_linux"),
        (other.as_str(), "engine_lost"),
    ] {
        let error = connect(endpoint);
        assert_eq!(error.code().as_str(), code, "{endpoint}: {error}");
        assert!(error.hint().is_some(), "{endpoint}");
    }
}

#[test]
fn an_error_of_the_engine_is_one_of_the_call() {
    let error = RunError::from(EngineError::OutOfDisk { operation: "make a sandbox" });
    assert_eq!(error.code().as_str(), "engine_out_of_disk");
    assert!(error.hint().unwrap().contains("docker system prune"));
}
