//! What staged writes and covers cost: a writing call beside a reading one, a large apply beside `cp -r`, and a
//! workspace full of denied files beside the same workspace with none denied.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Extent;
use super::call::{Ours, Waits, read};
use super::calls::waits;
use super::engines::Measured;
use super::error::BenchError;
use super::folder::{BenchFolder, Site};
use super::idle::wait_until_idle;
use super::report::Report;
use super::sample::{measured, timed};
use super::turns::Turns;
use crate::engine::Life;
use crate::pool::Class;

/// Files of a build.
const BUILT: usize = 10_000;

/// Bytes of each.
const BUILT_BYTES: usize = 4096;

/// Denied files.
const DENIED: usize = 10_000;

/// Says ten words, or writes them to ten files.
const SAY: &str = "for n in 0 1 2 3 4 5 6 7 8 9; do echo $n; done";
const WRITE: &str = "for n in 0 1 2 3 4 5 6 7 8 9; do echo $$ >out/$n; done";

/// All of them.
pub fn writes(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) {
    let done = small(place, engines, extent, report, tell);
    report.attempt("ten changed files", done);
    // What is applied is the host's work, and the same for every engine.
    if let Some(engine) = engines.last() {
        let done = large(place.site(engine.name), extent, report, tell);
        report.attempt("applying many files", done);
    }
    let done = denied(place, engines, extent, report, tell);
    report.attempt("many denied files", done);
}

/// A call that changes ten files beside one that changes none.
fn small(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell("calls that write ten files, in turn with those that write none");
    let folder = &place.tree("ten", 1_000, b"")?;
    make_folder(&folder.join("out"))?;
    let mut turns = Turns::default();
    for engine in engines {
        let site = place.site(engine.name);
        site.drain();
        let mut peer = String::new();
        for (policy, script, class, what) in [
            ("reading", SAY, Class::Read, "ten words and no file"),
            ("writing", WRITE, Class::Write, "ten changed files"),
        ] {
            let words = ["exec", "--json=full", "-p", policy, "--", "sh", "-c", script];
            let name = site.row(&format!("runner exec, {what}"));
            if report.attempt(&name, timed(&mut site.runner(folder, &words)).map(drop)) {
                let waits = waits(engine, class);
                let once = move || Ours { words: &words, waits }.once(site, folder);
                turns.add(name.clone(), &[peer.as_str()], extent.rounds(), once);
                peer = name;
            }
        }
    }
    turns.run(report, |_, _| {});
    Ok(())
}

/// Applying a whole build beside copying it. `runner` tells the time of applying alone.
///
/// Every round writes into a folder of its own, and nothing is removed before the end: ext4 does not use an inode again
/// for a minute or more, and to find another one looks at each that was just removed, for each file anew. After ten
/// thousand files were removed, ten thousand new ones take half a minute for any program.
fn large(
    site: Site<'_>,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    const PEER: &str = "cp -r of 10000 files";
    const OURS: &str = "applying 10000 files";
    let folder = &site.place().tree("build", BUILT, &[b'x'; BUILT_BYTES])?;
    make_folder(&folder.join("out"))?;
    let (rounds, mut turns) = (extent.large_rounds(), Turns::default());
    let mut copies = (0..).map(|round| format!("copy-{round}"));
    turns.add(PEER, &[], rounds, move || {
        let name = copies.next().unwrap_or_default();
        measured(Command::new("cp").args(["-r", "d0", &name]).current_dir(folder))
    });
    let mut builds = (0..).map(|round| format!("out/{round}"));
    turns.add(OURS, &[PEER], rounds, move || {
        apply(site, folder, &builds.next().unwrap_or_default())
    });
    turns.run(report, |round, rounds| {
        tell(&format!("applying {BUILT} files, in turn with cp -r: round {round} of {rounds}"));
    });
    Ok(())
}

/// How long applying took in a call that copies the build.
fn apply(site: Site<'_>, folder: &Path, name: &str) -> Result<Duration, BenchError> {
    let words = ["exec", "--json=full", "--cold", "-p", "writing", "--", "cp", "-r", "d0", name];
    wait_until_idle();
    let (_, text) = timed(&mut site.runner(folder, &words))?;
    let result = read(&text)?;
    let created = result["changes"]["applied"]["created"].as_u64();
    if created != u64::try_from(BUILT).ok() {
        let (line, how) = (format!("cp -r d0 {name}"), format!("changed {created:?} files"));
        return Err(BenchError::Command { line, how });
    }
    let apply = result["metadata"]["duration_ms"]["apply"].as_f64().unwrap_or_default();
    Ok(Duration::from_secs_f64(apply.max(0.0) / 1e3))
}

/// A call in a workspace of many files, all of them denied or none.
fn denied(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let folder = &place.tree("denied", DENIED, b"")?;
    let mut turns = Turns::default();
    for engine in engines {
        let site = place.site(engine.name);
        site.drain();
        let mut peer = String::new();
        for (policy, what) in [("readonly", "files, none denied"), ("denied", "denied files")] {
            tell(&format!("{DENIED} {what}, on {}", site.engine()));
            let (how, words, waits) = match engine.life {
                Life::Daemon => {
                    let words = ["exec", "--json=full", "-p", policy, "--", "true"].to_vec();
                    ("warm", words, waits(engine, Class::Read))
                }
                Life::Ours => {
                    let words =
                        ["exec", "--json=full", "--cold", "-p", policy, "--", "true"].to_vec();
                    ("cold", words, Waits::Never)
                }
            };
            let name = site.row(&format!("{how}, {DENIED} {what}"));
            if report.attempt(&name, timed(&mut site.runner(folder, &words)).map(drop)) {
                let once = move || Ours { words: &words, waits }.once(site, folder);
                turns.add(name.clone(), &[peer.as_str()], extent.large_rounds(), once);
                peer = name;
            }
        }
    }
    turns.run(report, |_, _| {});
    engines.iter().for_each(|engine| place.site(engine.name).drain());
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), BenchError> {
    std::fs::create_dir(path).map_err(|error| BenchError::Local("make a folder to write in", error))
}
