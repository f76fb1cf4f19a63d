//! Who gets a place, what is given up for it, and what the dead leave.

use std::path::PathBuf;
use std::time::Duration;

use runner_policy::limits::Isolation;

use super::*;
use crate::engine::docker::settings::tests as settings;
use crate::ids::CallId;
use crate::pool::{Bounds, Class, Guess, GuessFacts, Wanted};
use crate::sys::now;

fn address() -> crate::engine::Address {
    "docker:e".parse().unwrap()
}

struct Case {
    _folder: tempfile::TempDir,
    state: PathBuf,
    pool: Pool,
}

fn case() -> Case {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_owned();
    let pool = Pool::new(&state);
    Case { _folder: folder, pool, state }
}

fn bounds(size: usize) -> config::Pool {
    config::Pool { size, ttl: Duration::from_secs(600), memory: 1 << 30 }
}

/// What calls of a project ask for, under a policy of this digest.
struct Asked<'a> {
    project: &'a str,
    digest: &'a str,
    own: usize,
    whole: usize,
}

impl Case {
    fn order(&self, asked: &Asked<'_>) -> Order {
        let mut plan = settings::plan(Isolation::Strict);
        plan.workspace = asked.project.into();
        plan.mounts[0].target = asked.project.into();
        let wanted = Wanted {
            plan: &plan,
            guess: &guess(asked.project),
            address: &address(),
            engine: "e",
            recipe: "r",
            policy: "p",
            within: &[],
            policy_digest: asked.digest,
            project: Path::new(asked.project),
            class: Class::Read,
            prestart: None,
        };
        let bounds = Bounds { own: bounds(asked.own), whole: bounds(asked.whole) };
        Order::new(&wanted, &self.state, bounds).unwrap()
    }

    fn reserve(&self, order: &Order) -> Reserved {
        self.pool.reserve_on(&Machine(String::new()), order, trace(order)).unwrap()
    }

    /// One more waits; what was given up for it.
    fn add(&self, order: &Order) -> Vec<Held> {
        let Reserved { place, given_up } = self.reserve(order);
        let place = place.expect("room");
        let entry = entry(order, place.held.trace());
        let published = self.pool.publish(place, order, &entry).unwrap();
        assert!(published.refused.is_none() && published.given_up.is_empty());
        given_up
    }

    fn of(&self, project: &str) -> usize {
        let entries = self.pool.entries();
        entries.iter().filter(|entry| entry.project == Path::new(project)).count()
    }
}

fn trace(order: &Order) -> Trace {
    Trace {
        label: CallId::fresh().unwrap().to_string(),
        address: "docker:unix:///nowhere".parse().unwrap(),
        cost: order.cost(),
        project: order.project.clone(),
        expires: now() + order.bounds.own.ttl,
    }
}

fn guess(project: &str) -> Guess {
    Guess::of(&GuessFacts {
        address: &address(),
        recipe: "r",
        project: Path::new(project),
        policy_digest: "d",
        class: Class::Read,
        image: "host",
        runtime: None,
        limits: &settings::plan(Isolation::Strict).limits,
        home: None,
        path: None,
    })
    .unwrap()
}

fn entry(order: &Order, trace: &Trace) -> Entry {
    Entry {
        sandbox: "s".to_owned(),
        label: trace.label.clone(),
        address: trace.address.clone(),
        key: order.key.clone(),
        guess: order.guess.clone(),
        targets: Vec::new(),
        lane: order.lane.clone(),
        class: order.class,
        policy: order.policy.clone(),
        within: order.within.clone(),
        policy_digest: order.policy_digest.clone(),
        recipe: order.recipe.clone(),
        project: order.project.clone(),
        cost: trace.cost,
        workspace: order.workspace.clone(),
        image_digest: String::new(),
        made: now(),
        expires: trace.expires,
        deadline: trace.expires + Duration::from_secs(600),
    }
}

#[test]
fn a_projects_own_bound_costs_no_other_project() {
    let case = case();
    let other = case.order(&Asked { project: "/other", digest: "d", own: 4, whole: 4 });
    case.add(&other);
    case.add(&other);
    let small = case.order(&Asked { project: "/small", digest: "d", own: 1, whole: 4 });
    assert!(case.add(&small).is_empty());
    assert!(case.reserve(&small).place.is_none(), "one is all it wants");
    assert_eq!((case.of("/other"), case.of("/small")), (2, 1));
    // What the user or the managed layer says bounds everybody.
    let full = case.order(&Asked { project: "/small", digest: "d", own: 3, whole: 3 });
    assert_eq!(case.add(&full).len(), 1, "the oldest of the other project");
    assert_eq!((case.of("/other"), case.of("/small")), (1, 2));
}

#[test]
fn what_is_too_much_is_given_up_and_everything_at_nothing() {
    let case = case();
    let asked = |own, whole| Asked { project: "/w", digest: "d", own, whole };
    for _ in 0..3 {
        case.add(&case.order(&asked(4, 4)));
    }
    let fewer = case.reserve(&case.order(&asked(1, 4)));
    assert!(fewer.place.is_none());
    assert_eq!((fewer.given_up.len(), case.of("/w")), (2, 1));
    case.add(&case.order(&Asked { project: "/other", digest: "d", own: 4, whole: 4 }));
    drop(fewer.given_up);
    let none = case.reserve(&case.order(&asked(0, 4)));
    assert!(none.place.is_none());
    assert_eq!((case.of("/w"), case.of("/other")), (0, 1), "only its own");
    case.reserve(&case.order(&asked(0, 0)));
    assert!(case.pool.is_empty(), "the user has turned it off");
}

#[test]
fn a_changed_policy_ends_what_waited_under_it() {
    let case = case();
    let asked = |project, digest| Asked { project, digest, own: 8, whole: 8 };
    case.add(&case.order(&asked("/w", "before")));
    case.add(&case.order(&asked("/other", "before")));
    assert_eq!(case.add(&case.order(&asked("/w", "after"))).len(), 1);
    assert_eq!((case.of("/w"), case.of("/other")), (1, 1));
    assert_eq!(case.pool.entries().last().unwrap().policy_digest, "after");
}

/// Neither order sees the other's sandbox when it asks for a place.
#[test]
fn of_two_that_are_made_at_once_for_one_lane_the_later_stays() {
    for first_done in ["before", "after"] {
        let case = case();
        let asked = |project, digest| Asked { project, digest, own: 8, whole: 8 };
        case.add(&case.order(&asked("/other", "before")));
        let mut made = ["before", "after"].map(|digest| {
            let order = case.order(&asked("/w", digest));
            let place = case.reserve(&order).place.unwrap();
            let entry = entry(&order, place.held.trace());
            (order, place, entry)
        });
        made[1].2.made = made[0].2.made + Duration::from_millis(1);
        if first_done == "after" {
            made.reverse();
        }
        let ended: usize = made
            .into_iter()
            .map(|(order, place, entry)| {
                let published = case.pool.publish(place, &order, &entry).unwrap();
                let refused = published.refused.map(Reservation::over);
                published.given_up.into_iter().map(Held::over).count() + refused.iter().count()
            })
            .sum();
        assert_eq!(ended, 1, "{first_done} first");
        assert_eq!((case.of("/w"), case.of("/other")), (1, 1), "{first_done} first");
        let stays = case.pool.entries().into_iter().find(|it| it.project == Path::new("/w"));
        assert_eq!(stays.unwrap().policy_digest, "after", "{first_done} first");
    }
}

#[test]
fn what_the_dead_had_in_their_hands_is_found_and_the_living_keep_theirs() {
    let case = case();
    let order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    case.add(&order);
    case.add(&order);
    let wall = Duration::from_secs(10);
    let claimed = order.claim(wall).unwrap();
    let making = case.reserve(&order).place.unwrap();
    assert!(case.pool.left_over().unwrap().is_empty(), "both live");
    assert_eq!(case.pool.being_made().unwrap(), 1);
    // The kernel drops their locks.
    let mut labels = vec![claimed.entry.label.clone(), making.held.trace().label.clone()];
    drop((claimed, making));
    assert_eq!(case.pool.being_made().unwrap(), 0);
    let found = case.pool.left_over().unwrap();
    let mut left: Vec<String> = found.iter().map(|held| held.trace().label.clone()).collect();
    labels.sort();
    left.sort();
    assert_eq!(left, labels);
    assert!(case.pool.left_over().unwrap().is_empty(), "they are in our hands now");
    // What cannot be ended is found again; what is gone is not.
    found.into_iter().for_each(Held::put_back);
    let found = case.reserve(&order).given_up;
    assert_eq!(found.len(), 2);
    found.into_iter().for_each(Held::over);
    assert_eq!(case.pool.entries().len(), 1);
    assert!(
        case.pool.left_over().unwrap().iter().all(|held| !labels.contains(&held.trace().label))
    );
}

/// Its maker died when all was done but its own file.
#[test]
fn what_is_claimed_is_nothing_that_the_dead_left() {
    let case = case();
    let order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    for claims_first in [false, true] {
        let place = case.reserve(&order).place.unwrap();
        let trace = place.held.trace().clone();
        case.pool.put(&entry(&order, &trace)).unwrap();
        drop(place);
        let making = case.state.join("pool").join(format!("{}.making", trace.label));
        assert!(making.exists(), "the control");
        if !claims_first {
            assert!(case.pool.left_over().unwrap().is_empty() && !making.exists(), "it waits");
        }
        let claimed = order.claim(Duration::from_secs(10)).unwrap();
        assert!(case.pool.left_over().unwrap().is_empty(), "it is claimed");
        claimed.held.over();
        assert!(case.pool.left_over().unwrap().is_empty(), "its call runs");
    }
}

#[test]
fn nothing_is_given_up_for_one_that_cannot_fit_anyway() {
    let case = case();
    let asked = |project| Asked { project, digest: "d", own: 8, whole: 8 };
    case.add(&case.order(&asked("/other")));
    let mut large = case.order(&asked("/w"));
    large.bounds.whole.memory = large.cost();
    let mut trace = trace(&large);
    trace.cost += 1;
    let machine = Machine(String::new());
    let reserved = case.pool.reserve_on(&machine, &large, trace.clone()).unwrap();
    assert!(reserved.place.is_none() && reserved.given_up.is_empty());
    trace.cost -= 1;
    let reserved = case.pool.reserve_on(&machine, &large, trace).unwrap();
    assert_eq!((reserved.place.is_some(), reserved.given_up.len()), (true, 1), "the control");
}

#[test]
fn what_cannot_be_drained_waits_again() {
    let case = case();
    let order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    case.add(&order);
    let making = case.reserve(&order).place.unwrap();
    let held = case.pool.drain().unwrap();
    assert_eq!((held.len(), case.pool.entries().len()), (1, 0));
    held.into_iter().for_each(Held::put_back);
    assert_eq!(case.pool.entries().len(), 1);
    let entry = entry(&order, making.held.trace());
    let published = case.pool.publish(making, &order, &entry).unwrap();
    assert!(published.refused.is_some(), "it was being made meanwhile");
}

#[test]
fn an_entry_leads_to_no_file_but_its_own() {
    let case = case();
    let order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    case.add(&order);
    let mut forged = case.pool.entries().remove(0);
    forged.label = "../../elsewhere".to_owned();
    let text = serde_json::to_vec(&forged).unwrap();
    let name = format!("{}.x.waiting", order.key.as_str());
    std::fs::write(case.state.join("pool").join(name), text).unwrap();
    assert_eq!(case.pool.entries().len(), 1);
}

#[test]
fn on_a_guess_the_newest_is_taken_and_nothing_of_another_project() {
    let case = case();
    let ours = case.order(&Asked { project: "/ours", digest: "d", own: 4, whole: 8 });
    let other = case.order(&Asked { project: "/other", digest: "d", own: 4, whole: 8 });
    case.pool.folder().unwrap();
    for (order, label, made) in [(&ours, "old", 1), (&ours, "new", 2), (&other, "foreign", 3)] {
        let label = CallId::fresh().map(|id| format!("{id}{label}")).unwrap();
        let made = now() + Duration::from_millis(made);
        let entry = Entry { label, made, ..entry(order, &trace(order)) };
        case.pool.put(&entry).unwrap();
    }
    let taken = || {
        let claimed = case.pool.claim_guessed(&guess("/ours"), Duration::from_secs(10))?;
        Some(claimed.entry.label)
    };
    assert!(taken().is_some_and(|label| label.ends_with("new")));
    assert!(taken().is_some_and(|label| label.ends_with("old")));
    assert_eq!(taken(), None);
}

#[test]
fn another_program_ends_what_waited_for_this_one() {
    let case = case();
    let asked = |project| Asked { project, digest: "d", own: 8, whole: 8 };
    let (here, elsewhere) = (case.order(&asked("/w")), case.order(&asked("/other")));
    case.add(&here);
    let trace = trace(&elsewhere);
    let old = Entry { recipe: "before".to_owned(), ..entry(&elsewhere, &trace) };
    case.pool.put(&old).unwrap();
    let given_up = case.add(&here);
    assert_eq!(given_up.len(), 1);
    assert_eq!(given_up[0].trace(), &trace);
    assert_eq!((case.of("/w"), case.of("/other")), (2, 0));
}

#[test]
fn what_nobody_can_read_is_ended_and_goes() {
    let case = case();
    let order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    case.add(&order);
    let old = trace(&order);
    let file = |name: &str| case.state.join("pool").join(name);
    // An entry as an earlier version wrote it, one that says nothing, and one whose writer died.
    std::fs::write(file(&format!("k.{}.waiting", old.label)), serde_json::to_vec(&old).unwrap())
        .unwrap();
    std::fs::write(file("k.x.waiting"), "{").unwrap();
    std::fs::write(file("k.y.new"), "{").unwrap();
    let found = case.pool.left_over().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].trace(), &old);
    assert!(case.pool.left_over().unwrap().is_empty(), "it is in our hands");
    found.into_iter().for_each(Held::over);
    let names = std::fs::read_dir(file("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.filter(|name| name != "lock").count() == 1, "only what waits is left");
    assert_eq!(case.pool.entries().len(), 1);
}

#[test]
fn the_memory_that_may_wait_bounds_as_the_number_does() {
    let case = case();
    let mut order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    order.bounds.whole.memory = 2 * order.cost();
    case.add(&order);
    case.add(&order);
    assert!(case.reserve(&order).place.is_none());
    assert_eq!(case.of("/w"), 2);
    // Of another key, it takes the place of the oldest.
    let mut other = case.order(&Asked { project: "/other", digest: "d", own: 8, whole: 8 });
    other.bounds.whole.memory = order.bounds.whole.memory;
    assert_eq!(case.add(&other).into_iter().map(Held::over).count(), 1);
    // Less may wait now than does.
    order.bounds.whole.memory = order.cost();
    let fewer = case.reserve(&order);
    assert!(fewer.place.is_none());
    assert_eq!((fewer.given_up.len(), case.pool.entries().len()), (1, 1));
}

#[test]
fn where_memory_is_short_the_pool_shrinks_and_nothing_is_made() {
    let case = case();
    let order = case.order(&Asked { project: "/w", digest: "d", own: 8, whole: 8 });
    case.add(&order);
    case.add(&case.order(&Asked { project: "/other", digest: "d", own: 8, whole: 8 }));
    let machine = |left: u32| Machine(format!("MemTotal: 1600 kB\nMemAvailable: {left} kB\n"));
    let asked = |machine: &Machine| {
        let reserved = case.pool.reserve_on(machine, &order, trace(&order)).unwrap();
        let given_up = reserved.given_up.into_iter().map(Held::over);
        (reserved.place.map(Reservation::over).is_some(), given_up.count())
    };
    assert_eq!(asked(&machine(100)), (true, 0), "one part in sixteen is enough");
    assert_eq!(asked(&machine(99)), (false, 2), "all that waits, whoever it waits for");
    assert_eq!(asked(&machine(99)), (false, 0), "nothing is left to give up");
    assert_eq!(asked(&Machine(String::new())), (true, 0), "a machine that does not tell");
}
