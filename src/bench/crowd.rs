//! Calls a second, from one client and from many at once.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Extent;
use super::calls::{EXEC, container, is_installed, waits};
use super::engines::Measured;
use super::error::BenchError;
use super::peers::{self, BWRAP};
use super::place::Place;
use super::quiet::quiet;
use super::report::{Report, Row, Unit};
use super::sample::timed;
use crate::pool::Class;

/// How many clients there are. Each makes its next call when its last has ended.
const CLIENTS: [usize; 3] = [1, 4, 20];

/// The rate of this program on each engine, of `bwrap` and of `docker run`.
pub fn crowd(
    place: &Place,
    engines: &[Measured],
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) {
    const DOCKER: &str = "docker run";
    let folder = place.workspace();
    let bwrap = is_installed("bwrap", &format!("{BWRAP}, many clients"), report);
    let docker = container(place, engines, "readonly", report);
    for clients in CLIENTS {
        let name = |what: &str| match clients {
            1 => format!("{what}, 1 client"),
            _ => format!("{what}, {clients} clients"),
        };
        let peers = [name(BWRAP), name(DOCKER)];
        let mut one = |row: String, beside: &[String], call: &Call<'_>| {
            tell(&format!("calls a second: {row}"));
            quiet();
            match together(clients, extent.crowd(), call) {
                Ok((rate, calls)) => {
                    let row = Row::one(&row, rate, Unit::PerSecond, calls);
                    report.add(beside.iter().fold(row, |row, peer| row.beside(peer)));
                }
                Err(error) => report.failed(&row, &error),
            }
        };
        if bwrap {
            one(name(BWRAP), &[], &peers::bwrap);
        }
        if let Some(run) = &docker {
            one(name(DOCKER), &[], &|| run.command());
        }
        for engine in engines {
            let site = place.site(engine.name);
            // What waits is this workspace's. A first call that fails is told by the others.
            site.drain();
            if timed(&mut site.runner(&folder, EXEC)).is_ok() {
                site.settle(waits(engine, Class::Read));
            }
            let call = || site.runner(&folder, &["exec", "--", "true"]);
            one(site.row(&name("runner exec")), &peers, &call);
        }
    }
}

type Call<'a> = dyn Fn() -> Command + Sync + 'a;

/// Runs a command from so many threads for so long; how often in a second, and how often in all.
fn together(
    clients: usize,
    time: Duration,
    call: &Call<'_>,
) -> Result<(f64, usize), BenchError> {
    let done = AtomicUsize::new(0);
    let begun = Instant::now();
    let client = || {
        while begun.elapsed() < time {
            timed(&mut call())?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
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
        assert!(calls >= 1);
        let failed = together(2, Duration::from_millis(1), &|| Command::new("false")).unwrap_err();
        assert!(failed.to_string().contains("`false` ended"), "{failed}");
    }
}
