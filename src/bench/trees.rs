//! What looking through larger workspaces adds to a call. A peer is measured in turn here too: a machine is not equally
//! fast all the time that this takes.

use super::Extent;
use super::call::{Ours, Waits};
use super::calls::{COLD, EXEC, is_installed, waits, warm_row};
use super::engines::Measured;
use super::error::BenchError;
use super::folder::BenchFolder;
use super::peers::{self, BWRAP};
use super::report::{Report, Row};
use super::sample::{measured, timed};
use super::turns::Turns;
use crate::engine::Life;
use crate::pool::Class;

/// Calls on each engine in workspaces of several sizes.
///
/// # Errors
/// The files cannot be made.
pub fn trees(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    for files in extent.trees() {
        tell(&format!("calls in a workspace of {files} files"));
        let folder = &place.tree(&files.to_string(), *files, b"")?;
        let mut turns = Turns::default();
        let peer = format!("{BWRAP}, in turn with {files} files");
        if is_installed("bwrap", &peer, report) {
            turns.add(&*peer, &[], extent.per_tree(), || measured(&mut peers::bwrap()));
        }
        for engine in engines {
            let site = place.site(engine.name);
            site.drain();
            let (what, call, first) = match engine.life {
                Life::Daemon => {
                    let waits = waits(engine, Class::Read);
                    ("warm", Ours { words: EXEC, waits }, warm_row(site))
                }
                Life::Ours => {
                    let call = Ours { words: COLD, waits: Waits::Never };
                    ("cold", call, site.row("runner exec --cold"))
                }
            };
            let name = site.row(&format!("{what}, {files} files"));
            if report.attempt(&name, timed(&mut site.runner(folder, call.words)).map(drop)) {
                let beside = [peer.as_str(), &first];
                turns.add(name, &beside, extent.per_tree(), move || call.once(site, folder));
            }
        }
        for (name, plan) in turns.run(report, |_, _| {}) {
            if plan.len() > 0 {
                report.add(Row::times(&format!("plan of: {name}"), &plan));
            }
        }
    }
    for files in Extent::Full.trees().iter().filter(|files| !extent.trees().contains(files)) {
        report.left_out(&format!("{files} files: --quick leaves large workspaces out"));
    }
    Ok(())
}
