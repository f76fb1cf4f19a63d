//! No line of an attacker succeeds under any policy. Plain bash shows first that each of them would.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::shells::{self, Ran};
use super::shipped_policies;
use super::table::{self, Harmful, Seen};
use super::world::World;
use crate::support::needs_engine;

/// How long a line may take.
const LIMIT: Duration = Duration::from_secs(20);

/// How long a line without an end may take, and how long after that the call must be over.
const SHORT: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(20);

/// Runs a line on the host, where nothing protects it. Only `/tmp` is one of its own, for the tests' sake.
fn without_protection(world: &World, line: &str) -> Ran {
    let mut command = Command::new("bwrap");
    command.args(["--dev-bind", "/", "/", "--tmpfs", "/tmp", "--die-with-parent"]);
    command.args(["timeout", "20", "bash", "-c", line]).current_dir(&world.place.project);
    command.env_clear().envs(shells::variables(&world.caller.path(""))).stdin(Stdio::null());
    world.surround(&mut command);
    Ran::of_bubblewrap(command)
}

fn in_a_sandbox(world: &World, policy: &str, row: &Harmful, line: &str) -> Ran {
    let limit = if row.seen == Seen::Endless { SHORT } else { LIMIT };
    let limit = format!("{}s", limit.as_secs());
    let mut command = shells::command(&world.caller, policy, &limit, &world.place.project, line);
    world.surround(&mut command);
    Ran::of(&mut command)
}

/// Runs every `step`th line under these policies; the lines that succeeded, with how it showed.
fn succeeded(policies: &[&'static str], step: usize) -> Vec<String> {
    needs_engine();
    let rows: Vec<Harmful> = table::harmful().into_iter().step_by(step).collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        let mut world = World::new();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            for policy in policies {
                world.restore();
                let ran = in_a_sandbox(&world, policy, row, &world.filled(&row.line));
                let mut signs = world.signs(row, &ran);
                if row.seen == Seen::Endless && ran.took > SHORT + GRACE {
                    signs.push(Seen::Endless);
                }
                // An error of ours is no protection: the line was not tried.
                let broken = ran.err.lines().any(|line| line.starts_with("error:"));
                if !signs.is_empty() || broken {
                    let line = table::on_one_row(&row.line);
                    let why = format!("{policy}: {line}\n    {signs:?} {:?} {}", ran.code, ran.err);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(why);
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 4);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn nothing_harmful_succeeds_under_any_policy() {
    let started = Instant::now();
    let policies = shipped_policies();
    let found = succeeded(&policies, 1);
    println!("{} lines under {policies:?}: {:.0?}", table::harmful().len(), started.elapsed());
    assert!(found.is_empty(), "{} lines succeeded:\n{}", found.len(), found.join("\n"));
}

/// Of how many lines one is run in the usual tests.
const SAMPLE: usize = 9;

#[test]
fn under_edit_a_sample_of_attacks_fails() {
    let found = succeeded(&[super::harmless::edit()], SAMPLE);
    assert!(found.is_empty(), "{} lines succeeded:\n{}", found.len(), found.join("\n"));
}

#[test]
fn without_a_sandbox_every_attack_succeeds() {
    needs_engine();
    let mut world = World::new();
    let mut harmless = Vec::new();
    for row in table::harmful().into_iter().filter(|row| row.control) {
        world.restore();
        let line = world.filled(&row.line);
        let ran = without_protection(&world, &line);
        let signs = world.signs(&row, &ran);
        if !signs.contains(&row.seen) {
            let line = table::on_one_row(&row.line);
            harmless
                .push(format!("{:?}: {line}\n    {signs:?} {:?} {}", row.seen, ran.code, ran.err));
        }
    }
    world.restore();
    assert!(harmless.is_empty(), "{} do not:\n{}", harmless.len(), harmless.join("\n"));
}
