//! Others write at the same time: another call, the user, and a disk that is full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::harness::{Project, assert_same, held, tree, why};
use crate::support::{Ran, needs_root};

/// Starts a script; a word on its standard output says when its changes are in the stage.
fn start(project: &Project, script: &str) -> Child {
    // Its own name, because two run at once.
    let mut command = project.command("contained", script);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn result(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Waits until a stage of the project holds this path.
fn until_staged(project: &Project, name: &str) {
    let begun = Instant::now();
    loop {
        let stages =
            fs::read_dir(project.home.path("state/runner/stages")).into_iter().flatten().flatten();
        if stages.into_iter().any(|stage| stage.path().join("0/upper").join(name).exists()) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_the_host_did_during_the_call_stays_and_is_named() {
    let project = Project::new();
    for name in ["edited", "replaced", "checked-out", "fine", "rm-edited", "dir/a", "dir2/a"] {
        project.write(name, "old\n");
    }
    project.home.git(&["add", "-A"]);
    project.home.git(&["commit", "-q", "-m", "more"]);
    project.write("checked-out", "dirty\n");
    // It waits until the host has replaced a file in place, which is seen inside.
    project.write("go", "");
    let child = start(
        &project,
        "for f in edited replaced checked-out fine new-both dir/new; do echo command > $f; done; \
         rm rm-edited; echo 1 > ready; while [ ! -s go ]; do sleep 0.02; done",
    );
    until_staged(&project, "ready");
    project.write("edited", "host\n");
    fs::write(project.file("tmp"), "host\n").unwrap();
    fs::rename(project.file("tmp"), project.file("replaced")).unwrap();
    project.home.git(&["checkout", "-q", "checked-out"]);
    project.write("new-both", "host\n");
    project.write("rm-edited", "host\n");
    fs::rename(project.file("dir"), project.file("moved")).unwrap();
    project.write("go", "go");
    let result = result(child);
    for name in ["edited", "replaced", "new-both", "rm-edited"] {
        assert_eq!(
            (why(&result, name), project.text(name).as_str()),
            ("conflict", "host\n"),
            "{name}"
        );
    }
    assert_eq!(
        (why(&result, "checked-out"), project.text("checked-out").as_str()),
        ("conflict", "old\n")
    );
    assert_eq!(project.text("fine"), "command\n", "the control");
    assert_eq!(project.text("moved/a"), "old\n");
    // The call's work is not lost: it waits in its stage.
    let shown = project.home.run(["stage", "diff", result["call"].as_str().unwrap()]);
    assert!(shown.out.contains("+command"), "{}", shown.out);
    assert_eq!(project.text("go"), "go");
}

/// A file that the overlay copied up has an origin, and so has a file that was moved inside, at another name.
#[test]
fn a_file_that_the_host_removed_during_the_call_stays_removed() {
    let project = Project::new();
    for name in ["removed", "dir2/a", "mv"] {
        project.write(name, "old\n");
    }
    project.write("go", "");
    let child = start(
        &project,
        "echo command > removed; echo command > dir2/a; mv mv moved; echo 1 > ready; \
         while [ ! -s go ]; do sleep 0.02; done",
    );
    until_staged(&project, "ready");
    fs::remove_file(project.file("removed")).unwrap();
    fs::remove_dir_all(project.file("dir2")).unwrap();
    project.write("go", "go");
    let result = result(child);
    assert_eq!(project.text("moved"), "old\n", "the control: {result:#}");
    assert!(!project.exists("removed") && !project.exists("dir2"), "{result:#}");
    assert_eq!((why(&result, "removed"), why(&result, "dir2/a")), ("conflict", "conflict"));
}

#[test]
fn two_writing_calls_at_once_do_not_overwrite_each_other() {
    let project = Project::new();
    project.write("shared", "old\n");
    project.write("go", "");
    let wait = "while [ ! -s go ]; do sleep 0.02; done";
    let script = |name: &str| {
        format!(
            "echo {name} > shared; echo {name} > own-{name}; echo {name} > new; echo 1 > ready-{name}; {wait}"
        )
    };
    let mut command = project.command("contained", &script("one"));
    let one = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_staged(&project, "ready-one");
    let two = start(&project, &script("two"));
    until_staged(&project, "ready-two");
    assert!(
        !project.exists("own-one") && !project.exists("own-two"),
        "nothing is there before the end"
    );
    project.write("go", "go");
    let results = [result(one), result(two)];
    assert_eq!(
        (project.text("own-one"), project.text("own-two")),
        ("one\n".into(), "two\n".into())
    );
    for name in ["shared", "new"] {
        let text = project.text(name);
        let (won, lost) = if text == "one\n" { (0, 1) } else { (1, 0) };
        assert_eq!(text, ["one\n", "two\n"][won], "{name}");
        assert!(!held(&results[won]).contains(&name), "{:#}", results[won]);
        assert_eq!(why(&results[lost], name), "conflict");
    }
    project.assert_sound();
}

/// A small file system of its own, which goes with it.
struct Disk(PathBuf);

impl Disk {
    fn new(at: &Path, size: &str) -> Self {
        needs_root();
        fs::create_dir_all(at).unwrap();
        let image = at.with_extension("image");
        let run = |words: &[&str]| {
            let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
            assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        };
        let (image, at) = (image.to_str().unwrap(), at.to_str().unwrap());
        run(&["truncate", "-s", size, image]);
        run(&["mkfs.ext4", "-q", "-F", "-m", "0", image]);
        run(&["mount", "-o", "loop", image, at]);
        Self(at.into())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Lets a call go on although little space is free.
const LITTLE: &str =
    "policy: 1\nname: little\nextends: [contained]\nsandbox: { limits: { free-space: 16MiB } }\n";

/// A caller's workspace on a small disk, where a call writes more than there is room for. The stage has room.
fn too_much(project: &Project, workspace: &Path) -> Ran {
    project.home.user_policy("little", LITTLE);
    fs::create_dir(workspace).unwrap();
    for at in 0..20 {
        fs::write(workspace.join(format!("f{at:02}")), "old\n").unwrap();
    }
    let script = "for i in $(seq -w 0 19); do head -c 5000000 /dev/zero > f$i; done; mkdir new; echo 1 > new/x";
    fs::write(workspace.join("x.sh"), script).unwrap();
    let before = tree(workspace, &|_| false);
    let ran = exec(project, workspace, &["bash", "x.sh"]);
    assert_same(&before, &tree(workspace, &|_| false), "a full disk");
    assert_ne!(ran.code, Some(0), "{}", ran.out);
    ran
}

fn exec(project: &Project, workspace: &Path, words: &[&str]) -> Ran {
    let mut command = project.home.runner();
    command.args(["exec", "--json", "--policy", "little", "--"]).args(words);
    Ran::from(command.current_dir(workspace).output().unwrap())
}

#[test]
fn a_full_disk_under_the_workspace_leaves_it_as_it_was() {
    let project = Project::new();
    let disk = Disk::new(&project.home.path("disk"), "80M");
    let workspace = disk.0.join("w");
    let result = too_much(&project, &workspace).json();
    assert_eq!(result["error"]["code"], "changes_not_applied", "{result:#}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("No space left") && message.contains("nothing was applied"),
        "{message}"
    );
    // The next call works.
    let ran = exec(&project, &workspace, &["bash", "-c", "echo new > f00"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert_eq!(fs::read_to_string(workspace.join("f00")).unwrap(), "new\n", "the control");
    project.assert_sound();
}

/// What the command did is not lost.
#[test]
fn what_a_full_disk_had_no_room_for_is_kept_and_can_be_applied_later() {
    let project = Project::new();
    let disk = Disk::new(&project.home.path("disk"), "80M");
    let workspace = disk.0.join("w");
    let result = too_much(&project, &workspace).json();
    assert_eq!(project.home.run(["gc"]).code, Some(0));
    let listed = project.home.run(["stage", "list", "--json"]).json();
    assert_eq!(listed["stages"][0]["call"], result["call"], "{listed:#} {result:#}");
    let call = result["call"].as_str().unwrap();
    let ran = project.home.run(["stage", "apply", call, "new", "f00"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(fs::metadata(workspace.join("f00")).unwrap().len(), 5_000_000);
    assert_eq!(fs::read_to_string(workspace.join("new/x")).unwrap(), "1\n");
}

#[test]
fn a_full_disk_under_the_stage_ends_the_call_and_leaves_nothing_half_done() {
    let project = Project::new();
    project.home.user_policy("little", LITTLE);
    let disk = Disk::new(&project.home.path("small"), "80M");
    project.write(
        "build/script.sh",
        "echo first > src/a; sync; head -c 90000000 /dev/zero > src/large || exit 7",
    );
    let on_disk = |words: &[&str]| {
        let mut command = project.home.runner();
        Ran::from(command.env("XDG_STATE_HOME", &disk.0).args(words).output().unwrap())
    };
    let words = ["exec", "--json", "--policy", "little", "--", "bash", "build/script.sh"];
    let ran = on_disk(&words);
    let result = ran.json();
    // Either the call met its limit of free space, or the command the end of the disk.
    assert!(matches!(ran.code, Some(121 | 7)), "{result:#}");
    assert_eq!(
        project.text("src/a"),
        "first\n",
        "what ended the call does not take its changes back"
    );
    let size = fs::metadata(project.file("src/large")).map_or(0, |found| found.len());
    assert!(size > 0 && size < 90_000_000, "{size}");
    assert_eq!(result["changes"]["applied"]["bytes"], size + 6, "{result:#}");
    assert_eq!(on_disk(&["gc"]).code, Some(0));
    assert_eq!(on_disk(&["audit", "verify"]).code, Some(0));
    // The room is there again.
    let ran = on_disk(&["exec", "--policy", "little", "--", "bash", "-c", "echo second > src/a"]);
    assert_eq!((ran.code, project.text("src/a").as_str()), (Some(0), "second\n"), "{}", ran.err);
}
