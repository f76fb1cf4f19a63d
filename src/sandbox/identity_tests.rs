//! What a sandbox must show before it gets a command.

use runner_policy::limits::Isolation;
use runner_wire::{Seen, VERSION};

use super::*;
use crate::engine::docker::settings::tests::plan;
use crate::engine::plan::Runtime;

const STAGE: &str = "the stage";

/// A plan whose sources are real, and what a guest reports of it.
struct Case {
    dir: tempfile::TempDir,
    plan: SandboxPlan,
}

fn case(isolation: Isolation, writes: OverlayWrites) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(isolation);
    plan.runtime = match isolation {
        Isolation::Paranoid => Runtime::new("runsc"),
        Isolation::Basic | Isolation::Strict => None,
    };
    let place = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let found = identity(&path).unwrap();
        (path, found)
    };
    let overlay = &mut plan.overlays[0];
    overlay.writes = writes;
    (overlay.target, overlay.identity) = place("w");
    (overlay.covers.path, overlay.covers.identity) = place("covers");
    for (at, mount) in plan.mounts.iter_mut().enumerate() {
        (mount.source, mount.identity) = place(&format!("mount{at}"));
    }
    (plan.masks[0].source, plan.masks[0].identity) = place("mask");
    (plan.synthetic[0].source, plan.synthetic[0].identity) = place("file");
    Case { dir, plan }
}

impl Case {
    fn expectation(&self) -> Expectation {
        Expectation::of(&self.plan, STAGE)
    }

    /// What a guest in the right sandbox says.
    fn ready(&self) -> Ready {
        let bind = |target: &Path, identity: Identity| MountSeen {
            target: Bytes::from(target.as_os_str()),
            dev: identity.dev,
            ino: identity.ino,
            read_only: true,
            mark: None,
        };
        let overlay = &self.plan.overlays[0];
        let mark = match overlay.writes {
            OverlayWrites::Staged => STAGE,
            OverlayWrites::Refused => &overlay.covers.mark,
        };
        let mut mounts = vec![MountSeen {
            target: Bytes::from(overlay.target.as_os_str()),
            // Numbers of the overlay's own.
            dev: 99,
            ino: 99,
            read_only: overlay.writes == OverlayWrites::Refused,
            mark: Some(Bytes::from(mark)),
        }];
        mounts.extend(self.plan.mounts.iter().map(|it| bind(&it.target, it.identity)));
        mounts.extend(self.plan.masks.iter().map(|it| bind(&it.target, it.identity)));
        mounts.extend(self.plan.synthetic.iter().map(|it| bind(&it.target, it.identity)));
        let seen = Seen {
            uid: 1000,
            gid: 1000,
            capabilities: 0,
            no_new_privs: Some(true),
            seccomp: Some(2),
        };
        Ready { version: VERSION, mounts, seen }
    }

    fn refused(&self, change: impl FnOnce(&mut Ready)) -> String {
        let mut ready = self.ready();
        change(&mut ready);
        self.expectation().check(&ready).unwrap_err().to_string()
    }
}

const BOTH: [OverlayWrites; 2] = [OverlayWrites::Refused, OverlayWrites::Staged];

#[test]
fn the_sandbox_that_was_planned_gets_its_command() {
    for writes in BOTH {
        for isolation in [Isolation::Strict, Isolation::Paranoid] {
            let case = case(isolation, writes);
            let expectation = case.expectation();
            let ready = case.ready();
            let reported: Vec<_> = ready.mounts.iter().map(|seen| seen.target.clone()).collect();
            assert_eq!(expectation.targets(), reported);
            expectation.check(&ready).unwrap();
            expectation.check_sources().unwrap();
        }
    }
}

#[test]
fn an_overlay_without_its_mark_or_with_other_rights_is_refused() {
    for writes in BOTH {
        let case = case(Isolation::Strict, writes);
        let other = "another overlay is there, or none";
        assert!(case.refused(|ready| ready.mounts[0].mark = None).contains(other));
        let wrong = Some(Bytes::from("of another call"));
        assert!(case.refused(|ready| ready.mounts[0].mark = wrong).contains(other));
        // A command's files could bear a mark of the other kind: a stage that is missing shows the covers.
        let swapped = match writes {
            OverlayWrites::Refused => Bytes::from(STAGE),
            OverlayWrites::Staged => Bytes::from(case.plan.overlays[0].covers.mark.as_str()),
        };
        assert!(case.refused(|ready| ready.mounts[0].mark = Some(swapped)).contains(other));
        let rights = match writes {
            OverlayWrites::Refused => "it should be read-only",
            OverlayWrites::Staged => "its stage cannot be written",
        };
        let flip = |ready: &mut Ready| ready.mounts[0].read_only ^= true;
        assert!(case.refused(flip).contains(rights));
    }
}

#[test]
fn a_bind_that_is_another_or_writable_is_refused() {
    let case = case(Isolation::Strict, OverlayWrites::Staged);
    for at in 1..case.ready().mounts.len() {
        let other = case.refused(|ready| ready.mounts[at].ino += 1);
        assert!(other.contains("another file or folder is there"), "{other}");
        let writable = case.refused(|ready| ready.mounts[at].read_only = false);
        assert!(writable.contains("it should be read-only"), "{writable}");
        let gone = case.refused(|ready| ready.mounts[at].ino = 0);
        assert!(gone.contains("nothing is there"), "{gone}");
    }
    case.refused(|ready| drop(ready.mounts.pop()));
    case.refused(|ready| ready.mounts.swap(1, 2));
}

/// What an overlay is made from cannot be seen from inside, so the host looks again.
#[test]
fn a_source_that_was_replaced_is_refused_on_every_runtime() {
    for (isolation, names) in [
        (Isolation::Strict, &["w", "covers"][..]),
        (Isolation::Paranoid, &["w", "covers", "mount0"]),
    ] {
        for name in names {
            let case = case(isolation, OverlayWrites::Staged);
            let path = case.dir.path().join(name);
            std::fs::rename(&path, case.dir.path().join("away")).unwrap();
            let expectation = case.expectation();
            assert!(expectation.check_sources().is_err());
            assert!(expectation.check(&case.ready()).is_err(), "{name}: gone");
            std::fs::create_dir(&path).unwrap();
            assert!(case.refused(|_| {}).contains("its source was replaced"), "{name}");
        }
    }
}

#[test]
fn a_guest_that_stands_higher_than_planned_is_refused() {
    let case = case(Isolation::Strict, OverlayWrites::Refused);
    let changes: [fn(&mut Seen); 4] = [
        |seen| seen.uid = 0,
        |seen| seen.capabilities = 1,
        |seen| seen.no_new_privs = Some(false),
        |seen| seen.seccomp = None,
    ];
    for change in changes {
        case.refused(|ready| change(&mut ready.seen));
    }
}
