//! Calls of this program, in turn with its peers.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Extent;
use super::call::{Calls, Ours, add, read};
use super::error::BenchError;
use super::peers::{self, DockerRun};
use super::place::Place;
use super::quiet::quiet;
use super::report::{Report, Row, Unit};
use super::sample::{Samples, measured, timed};
use crate::pool::Class;

/// The runtime with a kernel of its own.
pub const GVISOR: &str = "runsc";

/// Clients of a crowd.
const CLIENTS: usize = 20;

/// Tools of a long list.
const LISTED: usize = 200;

/// Calls in one large workspace.
const PER_TREE: usize = 15;

/// Rounds of what takes longest.
const SLOW_ROUNDS: usize = 10;

/// Cold and warm calls of a command and of a tool, in turn with everybody else.
pub fn calls(
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let folder = place.workspace();
    tell("first calls: the image, the sandboxes that wait, the compiled tool");
    let docker = peers::is_installed("docker").then(|| DockerRun::like(place, "readonly"));
    let docker = docker.transpose()?;
    let staying = docker.as_ref().map(DockerRun::stay).transpose()?;
    let cold = Ours { words: &["exec", "--json=full", "--cold", "--", "true"], class: None };
    let warm = Ours { words: EXEC, class: Some(Class::Read) };
    let tool = Ours { words: TOOL, class: Some(Class::Tool) };
    for words in [cold.words, warm.words, tool.words] {
        timed(&mut place.runner(&folder, words))?;
    }
    type Peer<'a> = (&'static str, Box<dyn Fn() -> Command + 'a>, usize, Samples);
    let rounds = extent.rounds();
    let mut all: Vec<Peer<'_>> = Vec::new();
    let mut peer = |name, installed: bool, rounds, command: Box<dyn Fn() -> Command>| {
        if installed {
            all.push((name, command, rounds, Samples::default()));
        } else {
            report.left_out(&format!("{name}: not installed"));
        }
    };
    peer(BWRAP, peers::is_installed("bwrap"), rounds, Box::new(peers::bwrap));
    peer(NODE, peers::is_installed("node"), rounds, Box::new(peers::node));
    match (&docker, &staying) {
        (Some(run), Some(staying)) => {
            all.push((DOCKER_RUN, Box::new(|| run.command()), SLOW_ROUNDS, Samples::default()));
            all.push((DOCKER_EXEC, Box::new(|| staying.exec()), SLOW_ROUNDS, Samples::default()));
        }
        _ => report.left_out("docker run, docker exec: the command `docker` is not installed"),
    }
    let mut ours = [(&cold, SLOW_ROUNDS), (&warm, rounds), (&tool, rounds)]
        .map(|(call, rounds)| (call, rounds, Calls::default()));
    let mut read = Samples::default();
    for round in 0..rounds {
        if round % 10 == 0 {
            tell(&format!("calls, in turn with their peers: round {round} of {rounds}"));
        }
        for (call, rounds, calls) in &mut ours {
            if round < *rounds {
                call.once(place, &folder, calls)?;
            }
        }
        // What the calls ordered behind their backs is made first: nobody pays for another.
        place.settle(Class::Read);
        place.settle(Class::Tool);
        read.push(measured(&mut place.runner(&folder, READ))?);
        for (_, command, rounds, samples) in &mut all {
            if round < *rounds {
                samples.push(measured(&mut command())?);
            }
        }
    }
    for (name, _, _, samples) in &all {
        report.add(Row::times(name, samples));
    }
    report.add(Row::times("runner tool run file_operations", &read).beside(BWRAP));
    let [(_, _, cold), (_, _, warm), (_, _, tool)] = &ours;
    add(report, "runner exec --cold", cold, &[DOCKER_RUN]);
    add(report, WARM, warm, &[BWRAP, DOCKER_RUN, DOCKER_EXEC]);
    add(report, "runner tool run (warm)", tool, &[NODE, DOCKER_RUN]);
    Ok(())
}

/// The words of a call that is warm if it can be.
const EXEC: &[&str] = &["exec", "--json=full", "--", "true"];

/// Those of a tool's.
const TOOL: &[&str] = &["--json=full", "tool", "run", "once", "--yes"];

/// Those of a built-in tool's, which reads a file and needs no sandbox.
const READ: &[&str] = &[
    "--json=full",
    "tool",
    "run",
    "file_operations",
    "--arg",
    "operation=read",
    "--arg",
    "path=f0",
];

/// Names of rows that others refer to.
const BWRAP: &str = "bwrap --unshare-all";
const NODE: &str = "node -e 1";
const DOCKER_RUN: &str = "docker run (same settings)";
const DOCKER_EXEC: &str = "docker exec (no sandbox of its own)";
const WARM: &str = "runner exec (warm)";

/// The same with gVisor.
pub fn gvisor(
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    const PEER: &str = "docker run --runtime runsc";
    tell("the same with gVisor");
    let folder = place.workspace();
    let words = &["exec", "--json=full", "-p", "gvisor", "--", "true"];
    let exec = Ours { words, class: Some(Class::Read) };
    let words = &["--json=full", "tool", "run", "-p", "gvisor", "once", "--yes"];
    let tool = Ours { words, class: Some(Class::Tool) };
    let docker = peers::is_installed("docker").then(|| DockerRun::like(place, "gvisor"));
    let docker = docker.transpose()?;
    place.drain();
    for call in [&exec, &tool] {
        timed(&mut place.runner(&folder, call.words))?;
    }
    let mut ours = [&exec, &tool].map(|call| (call, Calls::default()));
    let mut theirs = Samples::default();
    for _ in 0..extent.rounds().min(SLOW_ROUNDS) {
        for (call, calls) in &mut ours {
            call.once(place, &folder, calls)?;
        }
        place.settle(Class::Read);
        place.settle(Class::Tool);
        if let Some(run) = &docker {
            theirs.push(measured(&mut run.command())?);
        }
    }
    if docker.is_some() {
        report.add(Row::times(PEER, &theirs));
    }
    let [(_, exec), (_, tool)] = &ours;
    add(report, "runner exec (warm, gVisor)", exec, &[PEER]);
    add(report, "runner tool run (warm, gVisor)", tool, &[PEER, NODE]);
    place.drain();
    Ok(())
}

/// A tool's round trip to the broker, as the tool itself measures it.
pub fn broker(
    place: &Place,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell("round trips to the broker");
    let words = ["--json=full", "tool", "run", "measure", "--yes"];
    quiet();
    let (_, text) = timed(&mut place.runner(&place.workspace(), &words))?;
    let result = read(&text)?;
    let mut samples = Samples::default();
    for nanos in result["value"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
        samples.push(Duration::from_nanos(nanos));
    }
    report.add(Row::times("broker round trip (exists)", &samples));
    // What the call ordered behind its back is made before anything else is measured.
    place.settle(Class::Tool);
    Ok(())
}

/// How long a list of many tools takes, once they are known.
pub fn listing(
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell(&format!("a list of {LISTED} tools"));
    let folder = place.tools(LISTED)?;
    let list = || place.runner(&folder, &["tool", "list"]);
    timed(&mut list())?;
    let mut samples = Samples::default();
    for _ in 0..extent.rounds().min(SLOW_ROUNDS) {
        samples.push(measured(&mut list())?);
    }
    report.add(Row::times(&format!("runner tool list, {LISTED} tools"), &samples));
    Ok(())
}

/// Many calls from many clients at once.
pub fn crowd(
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    const PEER: &str = "docker run, 20 clients";
    let folder = place.workspace();
    tell(&format!("{} calls from {CLIENTS} clients, and as many of `docker run`", extent.crowd()));
    if peers::is_installed("docker") {
        let run = DockerRun::like(place, "readonly")?;
        quiet();
        let rate = together(extent.crowd(), &|| timed(&mut run.command()).map(|_| ()))?;
        report.add(Row::one(PEER, rate, Unit::PerSecond, extent.crowd()));
    }
    // What waits is this workspace's.
    place.drain();
    timed(&mut place.runner(&folder, EXEC))?;
    place.settle(Class::Read);
    quiet();
    let call = || timed(&mut place.runner(&folder, &["exec", "--", "true"])).map(|_| ());
    let rate = together(extent.crowd(), &call)?;
    let row = Row::one("runner exec, 20 clients", rate, Unit::PerSecond, extent.crowd());
    report.add(row.beside(PEER));
    Ok(())
}

/// Runs a command so many times from [`CLIENTS`] threads; how often in a second.
fn together(
    count: usize,
    call: &(dyn Fn() -> Result<(), BenchError> + Sync),
) -> Result<f64, BenchError> {
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    let ended: Vec<Result<(), BenchError>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::Relaxed) < count {
                        call()?;
                    }
                    Ok(())
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let took = begun.elapsed();
    ended.into_iter().collect::<Result<(), _>>()?;
    Ok(count as f64 / took.as_secs_f64())
}

/// What looking through larger workspaces adds to a warm call. A peer is measured in turn here too: a machine is not
/// equally fast all the time that this takes.
pub fn trees(
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    for files in extent.trees() {
        tell(&format!("a warm call in a workspace of {files} files"));
        place.drain();
        let folder = place.tree(&files.to_string(), *files, b"")?;
        let warm = Ours { words: EXEC, class: Some(Class::Read) };
        timed(&mut place.runner(&folder, warm.words))?;
        let (mut ours, mut theirs) = (Calls::default(), Samples::default());
        for _ in 0..PER_TREE {
            warm.once(place, &folder, &mut ours)?;
            // The last refill too: one that comes after the end of all that waits would be taken for the next tree's.
            place.settle(Class::Read);
            if peers::is_installed("bwrap") {
                theirs.push(measured(&mut peers::bwrap())?);
            }
        }
        let peer = format!("{BWRAP}, in turn with {files} files");
        if theirs.len() > 0 {
            report.add(Row::times(&peer, &theirs));
        }
        add(report, &format!("warm, {files} files"), &ours, &[&peer, WARM]);
        report.add(Row::times(&format!("claim check, {files} files"), &ours.plan));
    }
    for files in Extent::Full.trees().iter().filter(|files| !extent.trees().contains(files)) {
        report.left_out(&format!("warm, {files} files: --quick leaves large workspaces out"));
    }
    Ok(())
}
