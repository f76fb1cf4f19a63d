//! From tries to rows: one for each protection that an engine promises, in the order of the table of protections.

use crate::engine::plan::{Protection, ProtectionStatus};

use super::report::{Outcome, Row};
use super::seen::{Part, Try};

/// Protections that no try tells apart, and why.
const UNTRIED: [(&str, &str); 2] = [
    ("own-kernel", "the kernel of a sandbox is not attacked here"),
    (
        "landlock",
        "whatever it refuses, another protection refuses first; a sandbox without it does not start",
    ),
];

/// What is promised of every engine, and is no protection that an isolation level demands.
pub const OUTPUT: &str = "output";
/// See [`OUTPUT`].
pub const ORPHANS: &str = "orphans";

/// What was seen of an engine.
#[derive(Debug, Default)]
pub struct Evidence {
    /// All that was tried.
    pub tries: Vec<Try>,
    /// Trials that did not come to their end: the protections that they are about, and why.
    pub broken: Vec<(Vec<&'static str>, String)>,
    /// What could not be tried on this machine, and why.
    pub untried: Vec<(&'static str, String)>,
}

/// The rows of an engine that promises these protections.
pub fn rows(promised: &[Protection], evidence: &Evidence) -> Vec<Row> {
    let extra = [
        (OUTPUT, "the host counts what it reads"),
        (ORPHANS, "the guest ends every process when its input closes"),
    ];
    let extra = extra.map(|(name, enforced_by)| Protection {
        name,
        enforced_by,
        status: ProtectionStatus::Enforced,
    });
    promised.iter().chain(&extra).map(|protection| row(protection, evidence)).collect()
}

fn row(protection: &Protection, evidence: &Evidence) -> Row {
    let name = protection.name;
    let about: Vec<&Try> = evidence.tries.iter().filter(|it| it.protection == name).collect();
    let attacks = || about.iter().filter(|it| it.part == Part::Attack);
    let (result, found) = match protection.status {
        ProtectionStatus::Absent(why) => (Outcome::Absent, Some(why.to_owned())),
        status => judged(name, &about, evidence).unwrap_or(match status {
            ProtectionStatus::BestEffort(ends) => (Outcome::Partly, Some(ends.to_owned())),
            ProtectionStatus::Enforced | ProtectionStatus::Absent(_) => (Outcome::Holds, None),
        }),
    };
    Row {
        name: name.to_owned(),
        mechanism: protection.enforced_by.to_owned(),
        tried: attacks().map(|it| it.what.clone()).collect(),
        result,
        found,
        change: change(name, result),
    }
}

/// Why a protection was not seen to hold; nothing if it was.
fn judged(name: &str, about: &[&Try], evidence: &Evidence) -> Option<(Outcome, Option<String>)> {
    let of = |part| about.iter().filter(move |it| it.part == part);
    let done: Vec<&str> =
        of(Part::Attack).filter(|it| it.done).map(|it| it.what.as_str()).collect();
    if !done.is_empty() {
        return Some((Outcome::Fails, Some(format!("it could {}", done.join("; ")))));
    }
    let mut broken = evidence.broken.iter();
    if let Some((_, why)) = broken.find(|(names, _)| names.contains(&name)) {
        return Some((Outcome::Unproved, Some(why.clone())));
    }
    let untried = UNTRIED.iter().map(|(name, why)| (*name, (*why).to_owned()));
    let untried = untried.chain(evidence.untried.iter().cloned());
    if let Some((_, why)) = untried.into_iter().find(|(untried, _)| *untried == name) {
        return Some((Outcome::NotTried, Some(why)));
    }
    let mut controls = of(Part::Control).peekable();
    if controls.peek().is_none() || of(Part::Attack).next().is_none() {
        return Some((Outcome::Unproved, Some("no trial shows whether it holds".to_owned())));
    }
    let failed = controls.find(|it| !it.done)?;
    let why = failed.why.as_deref().unwrap_or("no reason is known");
    Some((Outcome::Unproved, Some(format!("it should {}, and could not: {why}", failed.what))))
}

/// What to change about a row.
fn change(name: &str, result: Outcome) -> Option<String> {
    let text = match result {
        Outcome::Fails => {
            "run nothing that you do not trust on this engine until this is mended; please report it"
        }
        Outcome::Unproved => "look at the reason, and run `runner doctor` again",
        Outcome::Partly if matches!(name, "memory" | "cpus" | "pids") => {
            "for a limit that holds in full, run where you have control groups of your own (root, or cgroup v2 with \
             your own manager of systemd: `loginctl enable-linger`; for one command: \
             `systemd-run --user --scope -p Delegate=yes runner …`), or choose another engine; a policy can demand it \
             (`sandbox.demand`)"
        }
        Outcome::Absent if name == "own-kernel" => {
            "for a kernel of its own, install gVisor and set `runtime: runsc` in the policy's sandbox"
        }
        Outcome::Absent if name == "inodes" => "nothing: memory bounds them",
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::runtime_kind::RuntimeKind;
    use crate::sandbox::protection::{Machine, protections};

    fn tried(protection: &str, part: Part, done: bool) -> Try {
        let why = (!done).then(|| "refused".to_owned());
        Try { protection: protection.to_owned(), what: "read it".to_owned(), part, done, why }
    }

    fn result(tries: Vec<Try>, status: ProtectionStatus) -> Outcome {
        let protection = Protection { name: "network", enforced_by: "x", status };
        row(&protection, &Evidence { tries, ..Evidence::default() }).result
    }

    #[test]
    fn a_protection_holds_only_beside_a_control() {
        let attack = |done| tried("network", Part::Attack, done);
        let control = |done| tried("network", Part::Control, done);
        let enforced = ProtectionStatus::Enforced;
        assert_eq!(result(vec![attack(false), control(true)], enforced), Outcome::Holds);
        assert_eq!(result(vec![attack(false)], enforced), Outcome::Unproved);
        assert_eq!(result(vec![control(true)], enforced), Outcome::Unproved);
        assert_eq!(result(vec![attack(false), control(false)], enforced), Outcome::Unproved);
        assert_eq!(result(vec![attack(true), control(true)], enforced), Outcome::Fails);
        let partly = ProtectionStatus::BestEffort("x");
        assert_eq!(result(vec![attack(false), control(true)], partly), Outcome::Partly);
        assert_eq!(result(vec![attack(true), control(true)], partly), Outcome::Fails);
        assert_eq!(result(vec![attack(true)], ProtectionStatus::Absent("x")), Outcome::Absent);
    }

    #[test]
    fn a_trial_that_broke_proves_nothing() {
        let evidence = Evidence {
            tries: vec![tried("memory", Part::Control, true), tried("memory", Part::Attack, false)],
            broken: vec![(vec!["memory"], "the engine is gone".to_owned())],
            untried: Vec::new(),
        };
        let all = rows(&protections(RuntimeKind::Direct, Machine::WHOLE), &evidence);
        let memory = all.iter().find(|row| row.name == "memory").unwrap();
        assert_eq!(
            (memory.result, memory.found.as_deref()),
            (Outcome::Unproved, Some("the engine is gone"))
        );
        assert_eq!(all.iter().filter(|row| row.result == Outcome::NotTried).count(), 1);
    }
}
