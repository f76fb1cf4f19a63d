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

/// Each change ends what waited for calls under this policy, and shows nothing of what must be hidden.
fn changes_discard(caller: &Caller, policy: &str) {
    const CANARY: &str = "canary-41-f3a9";
    type Change = fn(&Caller);
    let changes: [(&str, Change); 5] = [
        ("a denied file appears", |caller| fs::write(caller.file(".env"), CANARY).unwrap()),
        ("it is replaced by rename, as editors do", |caller| {
            fs::write(caller.file("new"), CANARY).unwrap();
            fs::rename(caller.file("new"), caller.file(".env")).unwrap();
        }),
        ("it is replaced twice", |caller| {
            for _ in 0..2 {
                fs::write(caller.file("new"), CANARY).unwrap();
                fs::rename(caller.file("new"), caller.file(".env")).unwrap();
            }
        }),
        ("it goes, and a folder of the same name comes", |caller| {
            fs::remove_file(caller.file(".env")).unwrap();
            fs::create_dir(caller.file(".env")).unwrap();
            fs::write(caller.file(".env/secret"), CANARY).unwrap();
        }),
        ("the workspace is removed and made anew", |caller| {
            fs::rename(caller.file(""), caller.0.path("moved")).unwrap();
            fs::create_dir(caller.file("")).unwrap();
            fs::write(caller.file(".env"), CANARY).unwrap();
        }),
    ];
    // What a program of the project's own may try; nothing of it can be read from the command.
    let script = "import glob\nfor name in glob.glob('**', recursive=True, include_hidden=True):\n  try: print(open(name).read())\n  except OSError: pass";
    let dump = ["-p", policy, "--", "python3", "-c", script];
    assert!(!caller.warm(&dump));
    for (what, change) in changes {
        let before = caller.settled(1).remove(0);
        assert!(caller.warm(&dump), "the control, before {what}");
        let stale = caller.settled(1).remove(0);
        assert_ne!(stale["sandbox"], before["sandbox"]);
        change(caller);
        let result = caller.exec(&dump).json();
        assert_eq!(result["metadata"]["warm"], false, "{what}: {result:#}");
        assert!(!result.to_string().contains(CANARY), "{what}: {result:#}");
        until_gone(&sandbox(&stale));
    }
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

/// THREATS row 41: a mount goes when what it lies on is removed, and the same file may come back with the same number.
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
    let refused = |warm: bool, what: &str| {
        let result = caller.exec(&write).json();
        assert_eq!(result["metadata"]["warm"], warm, "{what}: {result:#}");
        assert_eq!(result["exit"], 1, "{what}: {result:#}");
        assert_eq!(fs::read_to_string(caller.file(".envrc")).unwrap(), "true\n", "{what}");
    };
    refused(false, "the first");
    caller.settled(1);
    refused(true, "the control");
    assert_eq!(fs::read_to_string(caller.file("a.txt")).unwrap().matches('x').count(), 2);
    let stale = caller.settled(1).remove(0);
    let (file, beside) = (caller.file(".envrc"), caller.file("beside"));
    fs::hard_link(&file, &beside).unwrap();
    fs::remove_file(&file).unwrap();
    fs::hard_link(&beside, &file).unwrap();
    fs::remove_file(&beside).unwrap();
    refused(false, "replaced by itself");
    until_gone(&sandbox(&stale));
}

/// THREATS row 41: writes land where the caller sees them.
#[test]
fn a_write_folder_made_anew_is_the_one_that_is_written_to() {
    needs_engine();
    let caller = Caller::new("size: 2");
    let write = ["-p", "develop", "--", "python3", "-c", "open('target/x', 'a').write('x')"];
    fs::create_dir(caller.file("target")).unwrap();
    fs::set_permissions(caller.file("target"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!caller.warm(&write));
    let text = || fs::read_to_string(caller.file("target/x")).unwrap();
    assert_eq!(text(), "x");
    caller.settled(1);
    assert!(caller.warm(&write), "the control");
    assert_eq!(text(), "xx");
    caller.settled(1);
    fs::rename(caller.file("target"), caller.file("old")).unwrap();
    fs::create_dir(caller.file("target")).unwrap();
    fs::set_permissions(caller.file("target"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!caller.warm(&write), "what was mounted is not what is there");
    assert_eq!(text(), "x");
    assert_eq!(fs::read_to_string(caller.file("old/x")).unwrap(), "xx");
}
