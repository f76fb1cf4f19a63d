//! Calls of this program on each engine, in turn with its peers.

use super::Extent;
use super::call::{Ours, Waits};
use super::engines::Measured;
use super::error::BenchError;
use super::folder::{BenchFolder, Site};
use super::peers::{self, Alike, BWRAP, BWRAP_ALIKE, Container, DOCKER_EXEC, DOCKER_RUN, NODE};
use super::report::Report;
use super::sample::{measured, timed};
use super::tools;
use super::turns::Turns;
use crate::engine::{EngineName, Life};
use crate::pool::Class;

/// The runtime with a kernel of its own.
pub const GVISOR: &str = "runsc";

/// The words of a call that is warm if it can be.
pub const EXEC: &[&str] = &["exec", "--json=full", "--", "true"];

/// Those of one that never is.
pub const COLD: &[&str] = &["exec", "--json=full", "--cold", "--", "true"];

/// Those of a tool's, which asks the broker once.
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

/// What a call of a command finds on an engine.
pub fn waits(engine: &Measured, class: Class) -> Waits {
    match engine.life {
        Life::Daemon => Waits::Always(class),
        Life::Ours => Waits::AsItComes,
    }
}

/// The name of the row of a warm call.
pub fn warm_row(site: Site<'_>) -> String {
    site.row("runner exec (warm)")
}

/// Makes the first calls on an engine: what they leave is there for all later ones.
///
/// # Errors
/// One does not go well: nothing can be measured on this engine.
pub fn first(site: Site<'_>, tell: &mut dyn FnMut(&str)) -> Result<(), BenchError> {
    tell(&format!("first calls on {}: the image, what waits", site.engine()));
    let folder = site.place().workspace();
    for words in [COLD, EXEC] {
        timed(&mut site.runner(&folder, words))?;
    }
    Ok(())
}

/// Cold and warm calls of a command and of a tool, in turn with the peers.
pub fn calls(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) {
    let folder = &place.workspace();
    let (rounds, fewer) = (extent.rounds(), extent.slow_rounds());
    let others = Others::find(place, engines, report);
    let mut turns = Turns::default();
    others.add(&mut turns, rounds, fewer);
    for engine in engines {
        let site = place.site(engine.name);
        let cold = Ours { words: COLD, waits: Waits::Never };
        let (beside, cold_rounds, tool) = match engine.life {
            Life::Daemon => (&[DOCKER_RUN][..], fewer, "runner tool run (warm)"),
            Life::Ours => {
                (&[BWRAP, BWRAP_ALIKE, DOCKER_RUN, DOCKER_EXEC][..], rounds, "runner tool run")
            }
        };
        let name = site.row("runner exec --cold");
        turns.add(name, beside, cold_rounds, move || cold.once(site, folder));
        if engine.life == Life::Daemon {
            let warm = Ours { words: EXEC, waits: waits(engine, Class::Read) };
            let beside = [BWRAP, DOCKER_RUN, DOCKER_EXEC];
            turns.add(warm_row(site), &beside, rounds, move || warm.once(site, folder));
        }
        let name = site.row(tool);
        if tools::can_run(&name, report)
            && report.attempt(&name, timed(&mut site.runner(folder, TOOL)).map(drop))
        {
            let tool = Ours { words: TOOL, waits: waits(engine, Class::Tool) };
            turns.add(name, &[NODE, DOCKER_RUN], rounds, move || tool.once(site, folder));
        }
    }
    // It needs no sandbox, so one engine stands for all.
    if let Some(engine) = engines.first() {
        let site = place.site(engine.name);
        let read = move || measured(&mut site.runner(folder, READ));
        turns.add("runner tool run file_operations", &[BWRAP], rounds, read);
    }
    turns.run(report, |round, rounds| {
        if round % 10 == 0 {
            tell(&format!("calls, in turn with their peers: round {round} of {rounds}"));
        }
    });
}

/// The peers that there are, ready to run.
struct Others {
    bwrap: bool,
    alike: Option<Alike>,
    node: bool,
    container: Option<(Container, peers::Running)>,
}

impl Others {
    /// Finds them, and tells which are left out.
    fn find(place: &BenchFolder, engines: &[Measured], report: &mut Report) -> Self {
        let bwrap = is_installed("bwrap", BWRAP, report);
        let node = is_installed("node", NODE, report);
        let of = |name: EngineName| engines.iter().any(|engine| engine.name == name);
        let alike = match (bwrap, of(peers::DIRECT)) {
            (true, true) => keep(report, BWRAP_ALIKE, Alike::of(place.site(peers::DIRECT))),
            (true, false) => {
                let engine = peers::DIRECT;
                report.left_out(&format!("{BWRAP_ALIKE}: they are those of {engine}"));
                None
            }
            (false, _) => None,
        };
        let container = container(place, engines, "readonly", report).and_then(|run| {
            let staying = keep(report, DOCKER_EXEC, run.stay())?;
            Some((run, staying))
        });
        Self { bwrap, alike, node, container }
    }

    fn add<'a>(&'a self, turns: &mut Turns<'a>, rounds: usize, fewer: usize) {
        if self.bwrap {
            turns.add(BWRAP, &[], rounds, || measured(&mut peers::bwrap()));
        }
        if let Some(alike) = &self.alike {
            turns.add(BWRAP_ALIKE, &[BWRAP], rounds, || measured(&mut alike.command()));
        }
        if self.node {
            turns.add(NODE, &[], rounds, || measured(&mut peers::node()));
        }
        if let Some((run, staying)) = &self.container {
            turns.add(DOCKER_RUN, &[], fewer, || measured(&mut run.command()));
            turns.add(DOCKER_EXEC, &[], fewer, || measured(&mut staying.exec()));
        }
    }
}

/// Whether a peer is there; if not, its row is left out.
pub fn is_installed(program: &str, row: &str, report: &mut Report) -> bool {
    let there = peers::is_installed(program);
    if !there {
        report.left_out(&format!("{row}: the command `{program}` is not installed"));
    }
    there
}

/// What was made ready; nothing, with a word in the report, if it broke.
fn keep<T>(report: &mut Report, what: &str, made: Result<T, BenchError>) -> Option<T> {
    made.map_err(|error| report.failed(what, &error)).ok()
}

/// `docker run` with the settings of calls under this policy, if both the engine and the command are there.
pub fn container(
    place: &BenchFolder,
    engines: &[Measured],
    policy: &str,
    report: &mut Report,
) -> Option<Container> {
    let engine = peers::DAEMON;
    if !engines.iter().any(|it| it.name == engine) {
        report.left_out(&format!("docker run, docker exec: the engine {engine} is not measured"));
        return None;
    }
    if !is_installed("docker", "docker run, docker exec", report) {
        return None;
    }
    keep(report, DOCKER_RUN, Container::like(place.site(engine), policy))
}

/// The same with gVisor, on the engines that know it.
pub fn gvisor(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) {
    let knows = |engine: &&Measured| engine.facts.runtimes.iter().any(|name| name == GVISOR);
    if !engines.iter().any(|engine| knows(&engine)) {
        report.left_out("gVisor: no engine that is measured knows `runsc`");
    }
    for engine in engines.iter().filter(knows) {
        gvisor_on(place, engine, extent, report, tell);
    }
}

fn gvisor_on(
    place: &BenchFolder,
    engine: &Measured,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) {
    const PEER: &str = "docker run --runtime runsc";
    tell("the same with gVisor");
    let (site, folder) = (place.site(engine.name), &place.workspace());
    let words = &["exec", "--json=full", "-p", "gvisor", "--", "true"];
    let exec = Ours { words, waits: waits(engine, Class::Read) };
    let words = &["--json=full", "tool", "run", "-p", "gvisor", "once", "--yes"];
    let tool = Ours { words, waits: waits(engine, Class::Tool) };
    let docker = container(place, std::slice::from_ref(engine), "gvisor", report);
    site.drain();
    let mut turns = Turns::default();
    let rounds = extent.slow_rounds();
    if let Some(run) = &docker {
        turns.add(PEER, &[], rounds, || measured(&mut run.command()));
    }
    for (call, what, beside) in [
        (&exec, "runner exec (warm, gVisor)", &[PEER][..]),
        (&tool, "runner tool run (warm, gVisor)", &[PEER, NODE]),
    ] {
        let name = site.row(what);
        if call.words == tool.words && !tools::can_run(&name, report) {
            continue;
        }
        if report.attempt(&name, timed(&mut site.runner(folder, call.words)).map(drop)) {
            turns.add(name, beside, rounds, move || call.once(site, folder));
        }
    }
    turns.run(report, |_, _| {});
    site.drain();
}
