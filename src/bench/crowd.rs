//! Calls a second, from one client and from many at once.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Extent;
use super::call::Waits;
use super::calls::{EXEC, container, is_installed, waits};
use super::engines::Measured;
use super::error::BenchError;
use super::folder::{BenchFolder, Site};
use super::idle::wait_until_idle;
use super::peers::{self, BWRAP};
use super::report::{Report, Row, Unit};
use super::sample::timed;
use crate::engine::Life;
use crate::pool::Class;

/// How many clients there are. Each makes its next call when its last has ended.
const CLIENTS: [usize; 3] = [1, 4, 20];

/// The rate of this program on each engine, of `bwrap` and of `docker run`.
///
/// What has no daemon is measured first: containers of a crowd are taken apart for a while after it, and `bwrap` ends with
/// an error when a mount of the host goes while it copies them.
pub fn crowd(
    place: &BenchFolder,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) {
    const DOCKER: &str = "docker run";
    let folder = &place.workspace();
    let docker = container(place, engines, "readonly", report);
    let mut contenders: Vec<(Contender<'_>, Box<Call<'_>>)> = Vec::new();
    if is_installed("bwrap", &format!("{BWRAP}, many clients"), report) {
        contenders.push((Contender::Peer(BWRAP), Box::new(peers::bwrap)));
    }
    let (own, daemons): (Vec<_>, Vec<_>) =
        engines.iter().partition(|engine| engine.life == Life::Ours);
    let ours = |engine: &'_ Measured| -> (Contender<'_>, Box<Call<'_>>) {
        let (site, waits) = (place.site(engine.name), waits(engine, Class::Read));
        let call = move || site.runner(folder, &["exec", "--", "true"]);
        (Contender::Ours(site, waits), Box::new(call))
    };
    contenders.extend(own.into_iter().map(ours));
    if let Some(run) = &docker {
        contenders.push((Contender::Peer(DOCKER), Box::new(|| run.command())));
    }
    contenders.extend(daemons.into_iter().map(ours));

    let (mut theirs, mut rows) = (Vec::new(), Vec::new());
    for (contender, call) in &contenders {
        for clients in CLIENTS {
            let name = |what: &str| {
                format!("{what}, {clients} {}", if clients == 1 { "client" } else { "clients" })
            };
            let row = match contender {
                Contender::Peer(what) => name(what),
                Contender::Ours(site, _) => site.row(&name("runner exec")),
            };
            tell(&format!("calls a second: {row}"));
            if let Contender::Ours(site, waits) = contender {
                // What waits is this workspace's. A first call that fails is told by the others.
                site.drain();
                if timed(&mut site.runner(folder, EXEC)).is_ok() {
                    site.settle(*waits);
                }
            }
            wait_until_idle();
            match together(clients, extent.crowd(), &**call) {
                Ok((rate, calls)) => {
                    let row = Row::one(&row, rate, Unit::PerSecond, calls);
                    match contender {
                        Contender::Peer(_) => theirs.push(row),
                        Contender::Ours(..) => {
                            rows.push(row.beside(&name(BWRAP)).beside(&name(DOCKER)));
                        }
                    }
                }
                Err(error) => report.failed(&row, &error),
            }
        }
    }
    // A row stands beside those that are in the report before it.
    theirs.into_iter().chain(rows).for_each(|row| report.add(row));
}

/// Who calls.
enum Contender<'a> {
    /// A command of others.
    Peer(&'static str),
    /// This program, and what waits for it.
    Ours(Site<'a>, Waits),
}

type Call<'a> = dyn Fn() -> Command + Sync + 'a;

/// Runs a command from so many threads for so long, from each at least once; how often in a second, and how often in all.
fn together(clients: usize, time: Duration, call: &Call<'_>) -> Result<(f64, usize), BenchError> {
    let done = AtomicUsize::new(0);
    let begun = Instant::now();
    let client = || {
        loop {
            timed(&mut call())?;
            done.fetch_add(1, Ordering::Relaxed);
            if begun.elapsed() >= time {
                return Ok(());
            }
        }
    };
    let ended: Vec<Result<(), BenchError>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        let join = |client: std::thread::ScopedJoinHandle<'_, _>| client.join();
        all.into_iter()
            .map(|client| join(client).unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let took = begun.elapsed();
    ended.into_iter().collect::<Result<(), _>>()?;
    let calls = done.into_inner();
    Ok((calls as f64 / took.as_secs_f64(), calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_calls_and_a_failure_is_told() {
        let (_, calls) = together(3, Duration::from_millis(1), &|| Command::new("true")).unwrap();
        assert!(calls >= 3);
        let failed = together(2, Duration::from_millis(1), &|| Command::new("false")).unwrap_err();
        assert!(failed.to_string().contains("`false` ended"), "{failed}");
    }
}
