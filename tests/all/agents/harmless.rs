//! The share of everyday lines that do in a sandbox what they do in bash, by policy and project.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::compare::{Outcome, difference};
use super::place::Place;
use super::shells::{self, Pooled, Ran};
use super::state::State;
use super::table::{self, Harmless, PROJECTS};
use super::{POLICIES, shipped_policies};
use crate::support::needs_engine;

/// How long a line may take, in bash and in a sandbox.
const LIMIT: &str = "60s";

/// What the policy for agents has to reach, in percent.
const AIM: usize = 95;

/// Of how many lines one is run in the usual tests.
const SAMPLE: usize = 12;

/// A line under a policy, and what was different from bash.
struct Judged {
    project: &'static str,
    policy: &'static str,
    line: String,
    kind: String,
    differs: Option<String>,
}

/// Runs every `step`th line of every project under these policies.
fn judge(policies: &[&'static str], step: usize) -> Vec<Judged> {
    needs_engine();
    let judged = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 4);
    let mut offset = 0;
    for project in PROJECTS {
        let all = table::harmless(project);
        let rows: Vec<&Harmless> = all.iter().skip(offset % step).step_by(step).collect();
        offset += all.len();
        let next = AtomicUsize::new(0);
        let work = || {
            let caller = Pooled::new();
            let base = caller.path("");
            let place = Place::new(&base, project, &[]);
            while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut results = judge_row(&caller, &place, project, policies, row);
                judged.lock().unwrap_or_else(PoisonError::into_inner).append(&mut results);
            }
        };
        std::thread::scope(|scope| {
            (0..workers.min(rows.len())).for_each(|_| drop(scope.spawn(work)));
        });
    }
    judged.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn judge_row(
    caller: &Pooled,
    place: &Place,
    project: &'static str,
    policies: &[&'static str],
    row: &Harmless,
) -> Vec<Judged> {
    place.restore();
    let ran = shells::bash(&caller.path(""), &place.project, &row.line);
    let bash = Outcome { ran, state: State::of(&place.project) };
    let judge = |policy: &&'static str| {
        place.restore();
        let mut command = shells::command(caller, policy, LIMIT, &place.project, &row.line);
        let ran = Ran::of(&mut command);
        let sandbox = Outcome { ran, state: State::of(&place.project) };
        let differs = difference(row.compared, &bash, &sandbox);
        let (kind, line) = (row.kind.clone(), table::on_one_row(&row.line));
        Judged { project, policy, line, kind, differs }
    };
    policies.iter().map(judge).collect()
}

/// The shares by policy and project, and by policy and kind, then every line that differs with the reason.
fn report(judged: &[Judged]) -> String {
    let mut text = String::new();
    for (title, key) in
        [("project", (|one| one.project) as fn(&Judged) -> &str), ("kind", |one| &one.kind)]
    {
        let mut shares: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
        for one in judged {
            for name in [key(one), "all"] {
                let share = shares.entry((one.policy, name)).or_default();
                share.0 += usize::from(one.differs.is_none());
                share.1 += 1;
            }
        }
        let _ = writeln!(text, "\npolicy     {title:<9} equal  of   share");
        for ((policy, name), (equal, all)) in shares {
            let share = 100.0 * equal as f64 / all as f64;
            let _ = writeln!(text, "{policy:<10} {name:<9} {equal:>5}  {all:<4} {share:.1} %");
        }
    }
    let mut rows: Vec<String> = Vec::new();
    for one in judged {
        if let Some(why) = &one.differs {
            rows.push(format!("{} {}: {}\n    {why}", one.policy, one.project, one.line));
        }
    }
    rows.sort();
    let _ = write!(text, "\n{}", rows.join("\n"));
    text
}

fn assert_enough(judged: &[Judged]) {
    let equal = judged.iter().filter(|one| one.differs.is_none()).count();
    let all = judged.len();
    assert!(equal * 100 >= all * AIM, "only {equal} of {all} lines are as in bash");
}

/// The policy for agents. Without it there is nothing to measure, and the test fails.
pub fn edit() -> &'static str {
    let found = shipped_policies().into_iter().find(|policy| *policy == "edit");
    found.expect("the policy `edit` is shipped")
}

#[test]
fn the_share_of_every_policy() {
    let started = Instant::now();
    let judged = judge(&shipped_policies(), 1);
    println!("{}\n\n{:.0?}", report(&judged), started.elapsed());
    assert!(!judged.is_empty());
}

#[test]
fn under_edit_lines_do_what_they_do_in_bash() {
    let judged = judge(&[edit()], 1);
    println!("{}", report(&judged));
    assert_enough(&judged);
}

/// A sample of the same for the usual run. A few lines weigh much here, so it shows what differs, and asks for nine of ten.
#[test]
fn under_edit_a_sample_of_lines_does_what_it_does_in_bash() {
    let started = Instant::now();
    let judged = judge(&[edit()], SAMPLE);
    println!("{}\n\n{:.0?}", report(&judged), started.elapsed());
    let equal = judged.iter().filter(|one| one.differs.is_none()).count();
    assert!(
        equal * 10 >= judged.len() * 9,
        "only {equal} of {} lines are as in bash",
        judged.len()
    );
}

#[test]
fn the_policies_are_known() {
    assert!(shipped_policies().len() >= POLICIES.len() - 1, "{:?}", shipped_policies());
}
