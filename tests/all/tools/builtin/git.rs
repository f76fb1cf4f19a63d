//! `git` and `git_commit`: looking, changing, and words that would like to be options.

use serde_json::{Value, json};

use super::{code, get, home, offline, put};
use crate::support::{Home, needs_engine};
use crate::tools::{call, told};

/// Lets git change the repository.
const CHANGE: &str = "policy: 1\nname: change\nextends: [readonly]\nfiles: { write: [\"**\"] }\ncommands:\n  - { id: git, allow: [\"git {commit,branch,checkout} ...\"], effects: [read, write] }\n";

fn repository() -> Home {
    let home = home();
    home.user_policy("change", CHANGE);
    home.git(&["init", "-q", "-b", "main"]);
    home.git(&["config", "user.name", "Ann"]);
    home.git(&["config", "user.email", "ann@example.org"]);
    put(&home, "a.txt", "one\n");
    put(&home, "b c.txt", "one\n");
    home.git(&["add", "."]);
    home.git(&["commit", "-q", "-m", "First words"]);
    home
}

fn git(home: &Home, args: Value, more: &[&str]) -> Value {
    let args = args.to_string();
    call(home, "git", &[&["--args", &args], more].concat()).0
}

fn done(result: &Value) -> &Value {
    assert_eq!(told(result), ("completed", 0, ""), "{result:#}");
    &result["value"]
}

#[test]
fn looking_needs_no_approval_and_comes_as_data() {
    needs_engine();
    let home = repository();
    put(&home, "a.txt", "two\n");
    put(&home, "new.txt", "");
    let look = |args: Value| {
        let args = args.to_string();
        home.run(["--json", "tool", "run", "git", "--args", &args]).json()
    };
    let status = look(json!({ "operation": "status" }));
    assert_eq!(
        (&done(&status)["branch"], &status["value"]["clean"]),
        (&json!("main"), &json!(false))
    );
    let changes = status["value"]["changes"].as_array().unwrap();
    assert!(
        changes.contains(&json!({ "path": "a.txt", "index": "unchanged", "worktree": "modified" })),
        "{status:#}"
    );
    assert!(
        changes
            .contains(&json!({ "path": "new.txt", "index": "untracked", "worktree": "untracked" })),
        "{status:#}"
    );
    let diff = look(json!({ "operation": "diff", "paths": ["a.txt"] }));
    assert!(done(&diff)["diff"].as_str().unwrap().contains("-one\n+two"), "{diff:#}");
    let none = look(json!({ "operation": "diff", "staged": true }));
    assert_eq!(done(&none)["diff"], "");
    let log = look(json!({ "operation": "log", "limit": 5 }));
    let first = &done(&log)["commits"][0];
    assert_eq!(
        (&first["subject"], &first["author"]),
        (&json!("First words"), &json!("Test")),
        "{log:#}"
    );
    let branches = look(json!({ "operation": "branch" }));
    assert_eq!(done(&branches)["branches"][0]["name"], "main", "{branches:#}");
    let nothing = look(json!({ "operation": "log", "ref": "no-such-branch" }));
    assert_eq!(code(&nothing), "command_failed", "{nothing:#}");
}

#[test]
fn changing_is_asked_about_and_decided() {
    let home = repository();
    put(&home, "a.txt", "two\n");
    for (name, args) in [
        ("git", json!({ "operation": "commit", "message": "m", "paths": ["a.txt"] })),
        ("git", json!({ "operation": "checkout", "ref": "main" })),
        ("git_commit", json!({ "message": "m", "files": ["a.txt"] })),
    ] {
        let (asked, ran) = offline(&home, name, &args, &["--policy", "change"]);
        assert_eq!((told(&asked).0, ran.code), ("needs_approval", Some(77)), "{args} {asked:#}");
        let (denied, ran) = offline(&home, name, &args, &["--yes"]);
        assert_eq!((told(&denied).0, ran.code), ("denied", Some(126)), "{args} {denied:#}");
    }
    needs_engine();
    let change = ["--policy", "change"];
    let args = json!({ "message": "Second words\n\nAnd why.", "files": ["a.txt"] }).to_string();
    let made = call(&home, "git_commit", &["--policy", "change", "--args", &args]).0;
    let value = done(&made);
    assert_eq!(
        (&value["filesChanged"], &value["insertions"], &value["deletions"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(value["commitHash"].as_str().unwrap().len(), 40, "{made:#}");
    let log = git(&home, json!({ "operation": "log", "limit": 1 }), &[]);
    assert_eq!(
        (&log["value"]["commits"][0]["hash"], &log["value"]["commits"][0]["subject"]),
        (&value["commitHash"], &json!("Second words"))
    );
    done(&git(&home, json!({ "operation": "branch", "name": "side", "ref": "HEAD~1" }), &change));
    done(&git(&home, json!({ "operation": "checkout", "ref": "side" }), &change));
    assert_eq!(get(&home, "a.txt"), "one\n");
    done(&git(&home, json!({ "operation": "checkout", "name": "third", "ref": "main" }), &change));
    put(&home, "a.txt", "three\n");
    done(&git(&home, json!({ "operation": "checkout", "paths": ["a.txt"] }), &change));
    assert_eq!(get(&home, "a.txt"), "two\n");
    put(&home, "b c.txt", "four\n");
    let all = git(&home, json!({ "operation": "commit", "message": "All", "all": true }), &change);
    assert_eq!(done(&all)["filesChanged"], 1, "{all:#}");
    let nothing = git(&home, json!({ "operation": "commit", "message": "None" }), &change);
    assert_eq!(code(&nothing), "command_failed", "{nothing:#}");
}

#[test]
fn words_cannot_become_options_or_patterns() {
    let home = repository();
    for args in [
        json!({ "operation": "log", "ref": "--output=x" }),
        json!({ "operation": "diff", "ref": "--no-index" }),
        json!({ "operation": "diff", "ref": "-O/etc/passwd" }),
        json!({ "operation": "branch", "name": "-D" }),
        json!({ "operation": "branch", "name": "x", "ref": "--force" }),
        json!({ "operation": "checkout", "ref": "--pathspec-from-file=x" }),
        json!({ "operation": "checkout", "name": "-f" }),
        json!({ "operation": "log", "paths": [":(top,glob)**"] }),
        json!({ "operation": "log", "ref": "a b" }),
        json!({ "operation": "checkout" }),
        json!({ "operation": "checkout", "name": "x", "paths": ["a.txt"] }),
    ] {
        let (result, ran) = offline(&home, "git", &args, &["--yes", "--policy", "change"]);
        assert_eq!((code(&result), ran.code), ("invalid_arguments", Some(1)), "{args} {result:#}");
    }
    for args in [json!({}), json!({ "operation": "push" }), json!({ "operation": "commit" })] {
        let (result, ran) = offline(&home, "git", &args, &["--yes"]);
        assert_eq!((code(&result), ran.code), ("invalid_arguments", Some(2)), "{args} {result:#}");
    }
    let (result, _) = offline(&home, "git", &json!({ "operation": "status", "cwd": ".." }), &[]);
    assert_eq!(told(&result).0, "denied", "{result:#}");
    let (result, _) =
        offline(&home, "git_commit", &json!({ "message": "m", "files": [":/"] }), &["--yes"]);
    assert_eq!(code(&result), "invalid_arguments", "{result:#}");
    needs_engine();
    // A path and a message that look like options are a path and a message.
    let log = git(&home, json!({ "operation": "log", "paths": ["--all"] }), &[]);
    assert_eq!(done(&log)["commits"], json!([]));
    put(&home, "a.txt", "two\n");
    let message = git(
        &home,
        json!({ "operation": "commit", "message": "--amend", "paths": ["a.txt"] }),
        &["--policy", "change"],
    );
    done(&message);
    let log = git(&home, json!({ "operation": "log" }), &[]);
    assert_eq!(done(&log)["commits"].as_array().unwrap().len(), 2, "{log:#}");
    assert_eq!(log["value"]["commits"][0]["subject"], "--amend");
    // What is denied is not shown by a diff that names it.
    put(&home, ".env", "canary-31f0");
    let (denied, _) =
        offline(&home, "git", &json!({ "operation": "diff", "paths": [".env"] }), &[]);
    assert_eq!(told(&denied).0, "denied", "{denied:#}");
}

#[test]
fn hooks_of_the_workspace_run_only_where_code_is_granted() {
    needs_engine();
    let home = repository();
    let hooked = CHANGE.replace("name: change", "name: hooked");
    let code = "  - { id: script, allow: [\"sh commit.sh\"], effects: [read, write, code] }\n";
    home.user_policy("hooked", &format!("{hooked}{code}"));
    put(&home, "commit.sh", "git commit -qm m a.txt\n");
    // As husky does: the repository's configuration leads git to files that anybody who writes can change.
    home.git(&["config", "core.hooksPath", ".husky"]);
    put(&home, ".husky/post-index-change", "#!/bin/sh\necho the hook ran >&2\n");
    let hook = home.path("project/.husky/post-index-change");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let commits: [(&[&str], bool); 2] =
        [(&["git", "commit", "-qm", "m", "a.txt"], false), (&["sh", "commit.sh"], true)];
    for (command, runs) in commits {
        put(&home, "a.txt", command[0]);
        let ran = home.run([&["exec", "--policy", "hooked", "--"], command].concat());
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert_eq!(ran.err.contains("the hook ran"), runs, "{command:?}: {}", ran.err);
    }
}
