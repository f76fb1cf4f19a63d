//! What staged writes and covers cost: a writing call beside a reading one, a large apply beside `cp -r`, and a
//! workspace full of denied files beside the same workspace with none denied.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Extent;
use super::call::{Calls, Ours, add, read};
use super::error::BenchError;
use super::place::Place;
use super::quiet::quiet;
use super::report::{Report, Row};
use super::sample::{Samples, measured, timed};
use crate::pool::Class;

/// Rounds of a large apply, and of calls beside many denied files.
const ROUNDS: usize = 9;

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
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    small(place, extent, report, tell)?;
    large(place, report, tell)?;
    denied(place, report, tell)
}

/// A call that changes ten files beside one that changes none.
fn small(
    place: &Place,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    const PEER: &str = "runner exec (warm), ten words and no file";
    tell("a call that writes ten files, in turn with one that writes none");
    let folder = place.tree("ten", 1_000, b"")?;
    make_folder(&folder.join("out"))?;
    let words = ["exec", "--json=full", "-p", "reading", "--", "sh", "-c", SAY];
    let reading = Ours { words: &words, class: Some(Class::Read) };
    let words = ["exec", "--json=full", "-p", "writing", "--", "sh", "-c", WRITE];
    let writing = Ours { words: &words, class: Some(Class::Write) };
    place.drain();
    let mut ours = [reading, writing].map(|call| (call, Calls::default()));
    for (call, _) in &ours {
        timed(&mut place.runner(&folder, call.words))?;
    }
    for _ in 0..extent.rounds() {
        for (call, calls) in &mut ours {
            call.once(place, &folder, calls)?;
        }
    }
    let [(_, reading), (_, writing)] = &ours;
    add(report, PEER, reading, &[]);
    add(report, "runner exec (warm), ten changed files", writing, &[PEER]);
    Ok(())
}

/// Applying a whole build beside copying it.
fn large(place: &Place, report: &mut Report, tell: &mut dyn FnMut(&str)) -> Result<(), BenchError> {
    const PEER: &str = "cp -r of 10000 files";
    tell(&format!("applying {BUILT} files, in turn with cp -r"));
    let folder = place.tree("build", BUILT, &[b'x'; BUILT_BYTES])?;
    let words = ["exec", "--json=full", "--cold", "-p", "writing", "--", "cp", "-r", "d0", "out"];
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        quiet();
        let (_, text) = timed(&mut place.runner(&folder, &words))?;
        let result = read(&text)?;
        let created = result["changes"]["applied"]["created"].as_u64();
        if created != u64::try_from(BUILT).ok() {
            let (line, how) = ("cp -r d0 out".to_owned(), format!("changed {created:?} files"));
            return Err(BenchError::Command { line, how });
        }
        let apply = result["metadata"]["duration_ms"]["apply"].as_f64().unwrap_or_default();
        ours.push(Duration::from_secs_f64(apply.max(0.0) / 1e3));
        remove_folder(&folder.join("out"))?;
        theirs.push(measured(Command::new("cp").args(["-r", "d0", "copy"]).current_dir(&folder))?);
        remove_folder(&folder.join("copy"))?;
    }
    report.add(Row::times(PEER, &theirs));
    report.add(Row::times("applying 10000 files", &ours).beside(PEER));
    Ok(())
}

/// A warm call in a workspace of many files, all of them denied or none.
fn denied(
    place: &Place,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let mut names = Vec::new();
    let folder = place.tree("denied", DENIED, b"")?;
    for policy in ["readonly", "denied"] {
        tell(&format!("a warm call beside {DENIED} files under the policy `{policy}`"));
        place.drain();
        let words = ["exec", "--json=full", "-p", policy, "--", "true"];
        let warm = Ours { words: &words, class: Some(Class::Read) };
        timed(&mut place.runner(&folder, warm.words))?;
        let mut calls = Calls::default();
        for _ in 0..ROUNDS {
            warm.once(place, &folder, &mut calls)?;
        }
        place.settle(Class::Read);
        let name = match policy {
            "denied" => format!("warm, {DENIED} denied files"),
            _ => format!("warm, {DENIED} files, none denied"),
        };
        add(report, &name, &calls, &names.iter().map(String::as_str).collect::<Vec<_>>());
        names.push(name);
    }
    place.drain();
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), BenchError> {
    std::fs::create_dir(path).map_err(|error| BenchError::Local("make a folder to write in", error))
}

fn remove_folder(path: &Path) -> Result<(), BenchError> {
    std::fs::remove_dir_all(path)
        .map_err(|error| BenchError::Local("remove what was written", error))
}
