//! Row 1, links out of the workspace, where mounts and stages are concerned: what is mounted is what was planned, no
//! link leads anywhere else, and nothing is written through one.

use std::fs;
use std::os::unix::fs::symlink;

use runner::codes::Code;
use runner::error::Failure as _;
use runner::sandbox::outcome::RunError;

use super::harness::{On, attack, case};
use super::seat::Seat;

const TARGET: &[&str] = &["target/**"];

/// A workspace folder that is a link to `~/.ssh`, where a call may write; the command writes through it, and puts a
/// folder in its place.
fn a_link_where_a_call_may_write_leads_nowhere(on: On) {
    let seat = Seat::new(on, &[("src/a", "one\n")]);
    let keys = seat.home.path(".ssh");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("authorized_keys"), "original\n").unwrap();
    let evil = "import os\n\
        for name in ('target', 'build'):\n\
        \x20   for way in (lambda: None, lambda: os.remove(name), lambda: os.mkdir(name)):\n\
        \x20       try:\n            way(); open(name + '/authorized_keys', 'w').write('evil')\n\
        \x20       except OSError: pass\n";
    for link in ["target", "build"] {
        symlink(&keys, seat.file(link)).unwrap();
    }
    seat.exec("make", &["python3", "-c", evil]);
    assert_eq!(fs::read_to_string(keys.join("authorized_keys")).unwrap(), "original\n");
    assert_eq!(fs::read_dir(&keys).unwrap().count(), 1);
    for link in ["target", "build"] {
        let _ = fs::remove_dir_all(seat.file(link));
        let _ = fs::remove_file(seat.file(link));
    }
    seat.works("make", &["python3", "-c", evil]);
    assert_eq!(
        seat.text("target/authorized_keys"),
        "evil",
        "the control: a folder of the workspace's own"
    );
}
attack!(1, "links", a_link_where_a_call_may_write_leads_nowhere);

fn a_folder_swapped_for_a_link_after_planning_leads_nowhere(on: On) {
    let case = case(&["target/x", "src/a"]);
    let outside = case.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let plan = case.plan(on.write(TARGET)).unwrap();
    fs::rename(case.root.join("target"), case.root.join("moved")).unwrap();
    symlink(&outside, case.root.join("target")).unwrap();
    let script = ["sh", "-c", "echo x > target/x; echo y > src/../target/y"];
    // It may run or not.
    let _ = case.run(plan, &script);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing outside was written");
    fs::remove_file(case.root.join("target")).unwrap();
    fs::rename(case.root.join("moved"), case.root.join("target")).unwrap();
    let rules = on.write(TARGET);
    case.run_and_apply(case.plan(rules).unwrap(), rules, &script).unwrap().succeeded();
    assert_eq!(case.text("target/y"), "y\n", "the control");
}
attack!(1, "links", a_folder_swapped_for_a_link_after_planning_leads_nowhere);

/// Another folder stands where the workspace was, or where its covers were.
fn a_workspace_that_was_swapped_is_not_mounted(on: On) {
    let case = case(&["a", ".env"]);
    let rules = super::harness::Rules { deny: &["**/.env"], ..on.read() };
    let plan = || case.plan(rules).unwrap();
    let covers = plan().overlays[0].covers.path.clone();
    for folder in [&case.root, &covers] {
        let planned = plan();
        let away = case.dir.path().join("away");
        fs::rename(folder, &away).unwrap();
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("a"), "canary").unwrap();
        assert!(case.run(planned, &["cat", "a", ".env"]).is_err(), "{}", folder.display());
        fs::remove_dir_all(folder).unwrap();
        // A layer of ours that is a link is not believed.
        if *folder == covers {
            symlink("/", folder).unwrap();
            let ran = case.plan(rules).map(|plan| case.run(plan, &["cat", "a", ".env"]));
            if let Ok(Ok(ran)) = ran {
                assert_eq!(ran.out, "original\n");
            }
            let _ = fs::remove_file(folder);
            let _ = fs::remove_dir_all(folder);
        }
        fs::rename(&away, folder).unwrap();
        let ran = case.run(plan(), &["cat", "a", ".env"]).unwrap().succeeded();
        assert_eq!(ran.out, "original\n", "the control");
    }
}
attack!(1, "links", a_workspace_that_was_swapped_is_not_mounted);

/// Another folder stands there while the sandbox starts, and the planned one is back before anybody on the
/// host looks: only who looks from inside sees it.
fn a_folder_swapped_and_swapped_back_is_noticed_from_inside(on: On) {
    let case = case(&["a"]);
    let other = case.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("evil"), "evil").unwrap();
    let mut plan = case.plan(on.read()).unwrap();
    let mount = plan.mounts.iter_mut().find(|it| it.target.ends_with("etc/alternatives")).unwrap();
    // What the daemon would have found at that moment.
    mount.source = other;
    let refused = case.run(plan, &["cat", "/etc/alternatives/evil"]);
    let refused = refused.err();
    let noticed = match on {
        // The launcher compares the handle that it mounts, so the command finds no sandbox at all.
        On::Embedded => refused.as_ref().is_some_and(|it| it.code() == Code::MountGone),
        On::Runc | On::Gvisor => matches!(refused, Some(RunError::Identity { .. })),
    };
    assert!(noticed, "{refused:?}");
    case.sh(on.read(), "ls /etc/alternatives").succeeded();
}
attack!(1, "swapped and swapped back", a_folder_swapped_and_swapped_back_is_noticed_from_inside);

/// Links that were there before, and links that the command makes.
fn links_lead_nowhere_outside_and_keep_working_inside(on: On) {
    let case = case(&["src/a", "build/"]);
    let secret = case.dir.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    symlink(&secret, case.root.join("out")).unwrap();
    symlink(case.dir.path(), case.root.join("up")).unwrap();
    symlink(&secret, case.root.join("build/before")).unwrap();
    symlink("src/a", case.root.join("in")).unwrap();
    case.give_away();
    let script = format!(
        "cat in; cat out up/secret; ln -s {0} build/made && cat build/made; ln {0} build/hard; \
         echo x > build/made; echo x > build/before; echo x > up/new; mkdir -p up/deep/er && echo x > up/deep/er/new; \
         ln -s .. build/parent; cat build/parent/../secret; ln -s /proc/1/root build/root; cat build/root{0}; \
         echo fine > build/file; ln -s file build/link; cat build/link; ln build/file build/second; cat build/second",
        secret.display()
    );
    let ran = case.sh(on.write(&["build/**"]), &script);
    // What is written through a link to scratch is in the sandbox's own scratch.
    let out = ran.out.replace("x\n", "");
    assert_eq!(out, "original\nfine\nfine\n", "only links inside lead somewhere: {}", ran.err);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "canary");
    assert!(!case.dir.path().join("new").exists() && !case.dir.path().join("deep").exists());
}
attack!(1, "links", links_lead_nowhere_outside_and_keep_working_inside);

/// A file outside, or one that may not be written, under a second name where the call may write: the name gets a file
/// of its own.
fn a_hard_link_out_of_a_writable_folder_is_cut(on: On) {
    let case = case(&["src/a", "target/x"]);
    let outside = case.dir.path().join("outside");
    fs::write(&outside, "original\n").unwrap();
    fs::hard_link(&outside, case.root.join("target/second")).unwrap();
    fs::hard_link(case.root.join("src/a"), case.root.join("target/third")).unwrap();
    fs::hard_link(case.root.join("target/x"), case.root.join("target/y")).unwrap();
    case.give_away();
    let script = "cd target; for name in second third y; do \
         echo changed >> $name && chmod 777 $name && touch -d @0 $name || exit 1; done; ln second fourth";
    case.sh(on.write(TARGET), script).succeeded();
    for path in [outside, case.root.join("src/a")] {
        assert_eq!(fs::read_to_string(&path).unwrap(), "original\n", "{}", path.display());
        let found = path.metadata().unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777, 0o644);
        assert!(found.modified().unwrap() > std::time::UNIX_EPOCH, "{}", path.display());
    }
    // The control: pnpm's and uv's projects work.
    assert_eq!(case.text("target/second"), "original\nchanged\n", "the control");
}
attack!(1, "links", a_hard_link_out_of_a_writable_folder_is_cut);
