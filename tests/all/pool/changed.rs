//! THREATS row 41: the workspace changes while a sandbox waits.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Caller, sandbox, until_gone};
use crate::support::needs_engine;

/// THREATS row 41, for a sandbox that is taken once it is planned.
#[test]
fn a_workspace_that_changed_discards_what_waits() {
    needs_engine();
    changes_discard(&Caller::new("size: 2"), "develop");
}

/// THREATS row 41, for a sandbox that is taken on a guess and answers before the workspace was looked through.
#[test]
fn a_workspace_that_changed_discards_what_was_taken_on_a_guess() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let text = "policy: 1\nname: look\nextends: [readonly]\ncommands:\n  - { id: look, allow: \"python3 ...\", effects: [read, code] }\n";
    changes_discard(&caller, &caller.policy("look.yml", text));
}

/// No change shows anything of what must be hidden. What covers other names ends what waited; what covers the same ones
/// serves on, because a cover holds whatever the host does below it.
fn changes_discard(caller: &Caller, policy: &str) {
    const CANARY: &str = "canary-41-f3a9";
    type Change = fn(&Caller);
    let changes: [(&str, bool, Change); 7] = [
        ("a denied file appears", false, |caller| fs::write(caller.file(".env"), CANARY).unwrap()),
        ("it is replaced by rename, as editors do", true, |caller| {
            fs::write(caller.file("new"), CANARY).unwrap();
            fs::rename(caller.file("new"), caller.file(".env")).unwrap();
        }),
        ("it is replaced twice", true, |caller| {
            for _ in 0..2 {
                fs::write(caller.file("new"), CANARY).unwrap();
                fs::rename(caller.file("new"), caller.file(".env")).unwrap();
            }
        }),
        ("it is written to", true, |caller| {
            fs::write(caller.file(".env"), format!("{CANARY} more")).unwrap();
        }),
        ("it gets a second name", false, |caller| {
            fs::hard_link(caller.file(".env"), caller.file("innocent")).unwrap();
        }),
        ("it goes, and a folder of the same name comes", false, |caller| {
            fs::remove_file(caller.file("innocent")).unwrap();
            fs::remove_file(caller.file(".env")).unwrap();
            fs::create_dir(caller.file(".env")).unwrap();
            fs::write(caller.file(".env/secret"), CANARY).unwrap();
        }),
        ("the workspace is removed and made anew", false, |caller| {
            fs::rename(caller.file(""), caller.0.path("moved")).unwrap();
            fs::create_dir(caller.file("")).unwrap();
            fs::write(caller.file(".env"), CANARY).unwrap();
        }),
    ];
    // What a program of the project's own may try; nothing of it can be read from the command.
    let script = "import glob\nfor name in glob.glob('**', recursive=True, include_hidden=True):\n  try: print(open(name).read())\n  except OSError: pass";
    let dump = ["-p", policy, "--", "python3", "-c", script];
    assert!(!caller.warm(&dump));
    for (what, warm, change) in changes {
        let before = caller.settled(1).remove(0);
        assert!(caller.warm(&dump), "the control, before {what}");
        let stale = caller.settled(1).remove(0);
        assert_ne!(stale["sandbox"], before["sandbox"]);
        change(caller);
        let result = caller.exec(&dump).json();
        assert_eq!(result["metadata"]["warm"], warm, "{what}: {result:#}");
        assert!(!result.to_string().contains(CANARY), "{what}: {result:#}");
        until_gone(&sandbox(&stale));
    }
}

/// A sandbox that waits has looked up nothing below the workspace: whatever the host does before the call comes, the
/// call sees it, and the sandbox serves.
#[test]
fn what_changed_while_a_sandbox_waited_is_seen() {
    needs_engine();
    for policy in ["readonly", "develop"] {
        sees_changes(&Caller::new("size: 2"), policy);
    }
}

/// All that is in the workspace, by name and content.
const LIST: [&str; 7] = ["grep", "-r", "", "file", "folder", "moved", "--exclude-dir=.git"];

fn sees_changes(caller: &Caller, policy: &str) {
    type Change = fn(&Caller);
    let git = |caller: &Caller, words: &[&str]| caller.0.git(words);
    let put = |name: &str, text: &str| {
        fs::create_dir_all(caller.file(name).parent().unwrap()).unwrap();
        fs::write(caller.file(name), text).unwrap();
    };
    git(caller, &["init", "-q", "-b", "main"]);
    for (branch, text) in [("main", "main"), ("other", "other")] {
        if branch != "main" {
            git(caller, &["checkout", "-q", "-b", branch]);
        }
        for name in ["file", "folder/a", "folder/deep/b", "folder/c"] {
            put(name, text);
        }
        if branch == "other" {
            put("folder/only", "only");
        }
        git(caller, &["add", "-A"]);
        git(caller, &["commit", "-qm", branch]);
    }
    let changes: [(&str, Change); 8] = [
        ("a file is edited in place", |caller| fs::write(caller.file("file"), "edited").unwrap()),
        ("a file is renamed over another, as editors do", |caller| {
            fs::write(caller.file("new"), "saved").unwrap();
            fs::rename(caller.file("new"), caller.file("folder/a")).unwrap();
        }),
        ("a file is made", |caller| fs::write(caller.file("folder/made"), "made").unwrap()),
        ("a file is removed", |caller| fs::remove_file(caller.file("folder/c")).unwrap()),
        ("a folder is made", |caller| {
            fs::create_dir_all(caller.file("folder/new/deep")).unwrap();
            fs::write(caller.file("folder/new/deep/x"), "new").unwrap();
        }),
        ("a folder is renamed", |caller| {
            fs::rename(caller.file("folder/deep"), caller.file("folder/shallow")).unwrap();
        }),
        ("a folder is replaced by another", |caller| {
            fs::rename(caller.file("folder"), caller.file("moved")).unwrap();
            fs::create_dir(caller.file("folder")).unwrap();
            fs::write(caller.file("folder/a"), "another").unwrap();
        }),
        ("another branch is checked out", |caller| {
            fs::remove_dir_all(caller.file("moved")).unwrap();
            caller.0.git(&["checkout", "-qf", "main"]);
            caller.0.git(&["clean", "-qfd"]);
        }),
    ];
    let seen_by_host = || {
        let mut command = std::process::Command::new(LIST[0]);
        let listed = command.args(&LIST[1..]).current_dir(caller.file("")).output().unwrap();
        sorted(&String::from_utf8(listed.stdout).unwrap())
    };
    let words = [&["-p", policy, "--"], &LIST[..]].concat();
    caller.exec(&words).json();
    for (what, change) in changes {
        let waits = caller.settled(1).remove(0);
        change(caller);
        let result = caller.exec(&words).json();
        assert_eq!(result["metadata"]["warm"], true, "{policy}, {what}: {result:#}");
        let seen = sorted(result["stdout"].as_str().unwrap());
        assert_eq!(seen, seen_by_host(), "{policy}, {what}");
        until_gone(&sandbox(&waits));
    }
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// A folder that is not looked through is covered as a whole, and the result says so, warm or not.
#[test]
fn a_folder_that_is_not_looked_through_is_covered_and_said() {
    needs_engine();
    const CANARY: &str = "canary-41-skip";
    let caller = Caller::new("size: 2");
    fs::create_dir(caller.file("data")).unwrap();
    fs::write(caller.file("data/.env"), CANARY).unwrap();
    fs::write(caller.file("beside"), "seen").unwrap();
    let look = ["--", "grep", "-r", "-s", "", "beside", "data"];
    let told = |result: &serde_json::Value| {
        let notes = result["metadata"]["notes"].as_array().unwrap();
        let mut told = notes.iter().filter(|note| note["code"] == "not_scanned");
        told.next().map(|note| note["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(told(&caller.exec(&look).json()), None, "the control");
    let before = caller.settled(1).remove(0);
    caller.0.config("pool: { size: 2 }\nscan: { skip: [data, missing] }\n");
    for warm in [false, true] {
        let result = caller.exec(&look).json();
        assert_eq!(result["metadata"]["warm"], warm, "{result:#}");
        assert!(result["stdout"].as_str().unwrap().contains("beside:seen"), "{result:#}");
        assert!(!result.to_string().contains(CANARY), "{result:#}");
        let said = told(&result).expect("a note");
        assert!(said.contains("`data`") && said.contains("covered as a whole"), "{said}");
        until_gone(&sandbox(&before));
        caller.settled(1);
    }
}

/// THREATS row 41: what may not be written stays as it is, whatever became of it while a sandbox waited.
#[test]
fn a_protected_file_that_went_and_came_back_is_still_protected() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let text = "policy: 1\nname: wide\nextends: [develop]\nfiles: { write: [\"**\"] }\n";
    let policy = caller.policy("wide.yml", text);
    fs::write(caller.file(".envrc"), "true\n").unwrap();
    for open in ["", ".envrc"] {
        fs::set_permissions(caller.file(open), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let script = "open('a.txt', 'a').write('x')\nopen('.envrc', 'a').write('canary')";
    let write = ["-p", &policy, "--", "python3", "-c", script];
    let held = |warm: bool, what: &str| {
        let result = caller.exec(&write).json();
        assert_eq!(result["metadata"]["warm"], warm, "{what}: {result:#}");
        assert_eq!(result["exit"], 0, "{what}: {result:#}");
        assert_eq!(fs::read_to_string(caller.file(".envrc")).unwrap(), "true\n", "{what}");
        caller.settled(1);
    };
    held(false, "the first");
    held(true, "the second");
    let (file, beside) = (caller.file(".envrc"), caller.file("beside"));
    fs::hard_link(&file, &beside).unwrap();
    fs::remove_file(&file).unwrap();
    fs::hard_link(&beside, &file).unwrap();
    fs::remove_file(&beside).unwrap();
    held(true, "replaced by itself");
    assert_eq!(fs::read_to_string(caller.file("a.txt")).unwrap(), "xxx", "the control");
}

/// THREATS row 41: writes land where the caller sees them.
#[test]
fn a_write_folder_made_anew_is_the_one_that_is_written_to() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let write = ["-p", "develop", "--", "python3", "-c", "open('target/x', 'a').write('x')"];
    let make = || {
        fs::create_dir(caller.file("target")).unwrap();
        fs::set_permissions(caller.file("target"), fs::Permissions::from_mode(0o777)).unwrap();
    };
    make();
    assert!(!caller.warm(&write));
    let text = || fs::read_to_string(caller.file("target/x")).unwrap();
    assert_eq!(text(), "x");
    caller.settled(1);
    assert!(caller.warm(&write), "the control");
    assert_eq!(text(), "xx");
    caller.settled(1);
    fs::rename(caller.file("target"), caller.file("old")).unwrap();
    make();
    assert!(caller.warm(&write), "nothing below the workspace is mounted");
    assert_eq!(text(), "x");
    assert_eq!(fs::read_to_string(caller.file("old/x")).unwrap(), "xx");
}
