//! A cold call beside `docker run --rm` with the same hardening, in turn, with the engine of
//! `DOCKER_HOST`. Prints medians; fails above the promised ratio.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that people read")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is promised: a cold call takes at most this part of the time of `docker run --rm`.
const RATIO: f64 = 0.85;

const ROUNDS: usize = 25;

/// The folders that both mount.
const FOLDERS: [&str; 5] = ["/usr", "/bin", "/lib", "/lib64", "/sbin"];

fn docker_run(workspace: &Path, image: &str) -> Command {
    let mut docker = Command::new("docker");
    docker.args(["run", "--rm", "-i", "--network=none", "--read-only", "--cap-drop=ALL"]);
    docker.args(["--security-opt=no-new-privileges", "--ipc=none", "--log-driver=none"]);
    docker.args(["--security-opt", "seccomp=images/seccomp.json", "--cgroupns=private"]);
    docker.args(["--memory=256m", "--memory-swap=256m", "--cpus=1", "--pids-limit=128"]);
    docker.args(["--user=65534:65534", "--tmpfs=/tmp:size=64m,exec", "--ulimit=nofile=1024"]);
    docker.args(["--ulimit=core=0", "--ulimit=fsize=268435456", "--ulimit=cpu=30"]);
    for path in FOLDERS {
        docker.args(["--mount", &format!("type=bind,source={path},target={path},readonly")]);
    }
    let path = workspace.to_str().unwrap();
    docker.args(["--mount", &format!("type=bind,source={path},target={path},readonly")]);
    docker.args(["-w", path, image, "/usr/bin/true"]);
    docker
}

fn runner(workspace: &Path) -> Command {
    let mut runner = Command::new(env!("CARGO_BIN_EXE_runner"));
    runner.args(["exec", "--policy", "readonly", "--workdir"]).arg(workspace).args(["--", "true"]);
    runner
}

fn time(mut command: Command) -> Duration {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let took = begun.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let workspace = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(workspace.path(), mode).unwrap();
    // The first call imports the image that both use.
    time(runner(workspace.path()));
    let images = Command::new("docker").args(["images", "-q", "runner-host"]).output().unwrap();
    let images = String::from_utf8(images.stdout).unwrap();
    let image = images.lines().next().unwrap();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(time(docker_run(workspace.path(), image)));
        ours.push(time(runner(workspace.path())));
        // What ends behind the caller's back must not be paid by the next one.
        std::thread::sleep(Duration::from_millis(300));
    }
    let (theirs, ours) = (median(theirs), median(ours));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("docker run --rm {theirs:.1?}, runner exec {ours:.1?}, ratio {ratio:.2}");
    assert!(ratio <= RATIO, "a cold call takes more than {RATIO} of docker run --rm");
}
