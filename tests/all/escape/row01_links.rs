//! Row 1, links out of the workspace, where mounts are concerned: what is mounted is what was planned, and no link
//! leads anywhere else.

use std::fs;
use std::os::unix::fs::symlink;

use runner::sandbox::mounts::MountError;
use runner::sandbox::outcome::RunError;
use runner::sandbox::planner::PlanError;

use super::harness::{On, attack, case};
use super::seat::Seat;

const TARGET: &[&str] = &["target/**"];

/// A workspace folder that is a link to `~/.ssh`, where a write mount is planned.
fn a_link_where_a_write_mount_is_planned_stops_the_call(on: On) {
    let seat = Seat::new(on, &[("src/a", "one\n")]);
    let keys = seat.home.path(".ssh");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("authorized_keys"), "original\n").unwrap();
    let attack = ["python3", "-c", "open('target/authorized_keys', 'w').write('evil')"];
    for link in ["target", "build"] {
        symlink(&keys, seat.file(link)).unwrap();
        let ran = seat.home.run(["exec", "--json", "--policy", "make", "--"].iter().chain(&attack));
        assert_eq!(ran.code, Some(125), "{}{}", ran.out, ran.err);
        let result = ran.json();
        assert_eq!(result["error"]["code"], "path_escape", "{result}");
        assert!(result["error"]["message"].as_str().unwrap().contains(link));
        fs::remove_file(seat.file(link)).unwrap();
    }
    assert_eq!(fs::read_to_string(keys.join("authorized_keys")).unwrap(), "original\n");
    seat.works("make", &attack);
    assert_eq!(
        seat.text("target/authorized_keys"),
        "evil",
        "the control: a folder of the workspace's own"
    );
}
attack!(1, "links", a_link_where_a_write_mount_is_planned_stops_the_call);

fn a_folder_swapped_for_a_link_after_planning_stops_the_call(on: On) {
    let case = case(&["target/x", "src/a"]);
    let outside = case.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let plan = case.plan(on.write(TARGET)).unwrap();
    fs::rename(case.root.join("target"), case.root.join("moved")).unwrap();
    symlink(&outside, case.root.join("target")).unwrap();
    let script = ["sh", "-c", "echo x > target/x; echo y > src/../target/y"];
    let refused = case.run(plan, &script);
    assert!(matches!(refused, Err(RunError::Identity { .. })), "{:?}", refused.err());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing outside was written");
    fs::remove_file(case.root.join("target")).unwrap();
    fs::rename(case.root.join("moved"), case.root.join("target")).unwrap();
    case.run(case.plan(on.write(TARGET)).unwrap(), &script).unwrap().succeeded();
    assert_eq!(case.text("target/y"), "y\n", "the control");
}
attack!(1, "links", a_folder_swapped_for_a_link_after_planning_stops_the_call);

/// Another folder stands there while the sandbox starts, and the planned one is back before anybody on the
/// host looks: only who looks from inside sees it.
fn a_folder_swapped_and_swapped_back_is_noticed_from_inside(on: On) {
    let case = case(&["target/x", "other/x", "src/a"]);
    let mut plan = case.plan(on.write(TARGET)).unwrap();
    let target = case.root.join("target");
    let mount = plan.mounts.iter_mut().find(|mount| mount.target == target).unwrap();
    // What the daemon would have found at that moment.
    mount.source = case.root.join("other");
    let refused = case.run(plan, &["sh", "-c", "echo evil > target/x"]);
    assert!(matches!(refused, Err(RunError::Identity { .. })), "{:?}", refused.err());
    assert_eq!(case.text("other/x"), "original\n");
    case.sh(on.write(TARGET), "echo good > target/x").succeeded();
    assert_eq!(case.text("target/x"), "good\n", "the control");
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

/// A file outside, or one that is read-only, under a second name where the call may write.
fn a_hard_link_out_of_a_writable_folder_stops_the_call(on: On) {
    let case = case(&["src/a", "target/x"]);
    let outside = case.dir.path().join("outside");
    fs::write(&outside, "original\n").unwrap();
    for other in [outside.clone(), case.root.join("src/a")] {
        let name = case.root.join("target/second");
        fs::hard_link(&other, &name).unwrap();
        let refused = case.plan(on.write(TARGET));
        assert!(
            matches!(refused, Err(PlanError::Mounts(MountError::Shared(path))) if path == name)
        );
        fs::remove_file(&name).unwrap();
    }
    // The control: a build's own second names.
    fs::hard_link(case.root.join("target/x"), case.root.join("target/y")).unwrap();
    case.give_away();
    case.sh(on.write(TARGET), "echo changed > target/y && ln target/x target/z").succeeded();
    assert_eq!(case.text("target/x"), "changed\n");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "original\n");
    assert_eq!(case.text("src/a"), "original\n");
}
attack!(1, "links", a_hard_link_out_of_a_writable_folder_stops_the_call);
