//! `runner undo`: what a tool changed through the broker comes back, or nothing is touched.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use super::assert_sound;
use crate::support::{Home, Ran, needs_engine};
use crate::tools::{call, write_yaml};

/// A caller whose policy lets tools write everywhere, and a tool that runs this code.
fn caller(code: &str) -> Home {
    let home = Home::new();
    home.user_policy(
        "open",
        "policy: 1\nname: open\nfiles:\n  read: [\"**\"]\n  write: [\"**\"]\n",
    );
    write_yaml(&home, "change", "files: { write: [\"**\"] }", code);
    home
}

/// Runs the tool; the call's id.
fn change(home: &Home) -> String {
    let (result, ran) = call(home, "change", &["--policy", "open"]);
    assert_eq!(ran.code, Some(0), "{result:#} {}", ran.err);
    result["call"].as_str().expect("an id").to_owned()
}

fn undo(home: &Home, id: &str) -> (Value, Ran) {
    let ran = home.run(["undo", id, "--json"]);
    (ran.json(), ran)
}

fn read(home: &Home, name: &str) -> Option<Vec<u8>> {
    fs::read(home.path(&format!("project/{name}"))).ok()
}

fn write(home: &Home, name: &str, content: impl AsRef<[u8]>) {
    let path = home.path(&format!("project/{name}"));
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(path, content).expect("a file");
}

fn mode(home: &Home, name: &str) -> u32 {
    let path = home.path(&format!("project/{name}"));
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

/// What somebody does after the call, in a word.
type Since = (&'static str, fn(&Home));

/// Everything below the project but our own folder: path, mode, content or target.
fn tree(home: &Home) -> Vec<(String, u32, Vec<u8>)> {
    fn walk(
        folder: &std::path::Path,
        root: &std::path::Path,
        into: &mut Vec<(String, u32, Vec<u8>)>,
    ) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if entry.file_name() == ".runner" {
                continue;
            }
            let name = path.strip_prefix(root).expect("below").display().to_string();
            let found = fs::symlink_metadata(&path).expect("there");
            let content = if found.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else if found.is_file() {
                fs::read(&path).expect("a file")
            } else {
                Vec::new()
            };
            into.push((name, found.permissions().mode() & 0o777, content));
            if found.is_dir() {
                walk(&path, root, into);
            }
        }
    }
    let root = home.path("project");
    let mut all = Vec::new();
    walk(&root, &root, &mut all);
    all.sort();
    all
}

const EVERYTHING: &str = r#"
export async function execute(args, { platform: { fs } }) {
  await fs.writeFile("a.txt", "new a");
  await fs.writeFile("a.txt", "newer a");
  await fs.writeFile("made.txt", "made");
  await fs.appendFile("log.txt", "line 2\n");
  await fs.appendFile("log.txt", "line 3\n");
  await fs.rm("gone.bin");
  await fs.mkdir("new/deep", { recursive: true });
  await fs.writeFile("new/deep/file", "x");
  await fs.rename("old-name", "new-name");
  await fs.writeFile("new-name", "changed after it was moved");
  await fs.rename("folder", "moved");
  await fs.writeFile("moved/inside", "changed inside");
  await fs.rm("tree", { recursive: true });
  await fs.unlink("link");
}
"#;

fn before(home: &Home) {
    write(home, "a.txt", "old a");
    write(home, "log.txt", "line 1\n");
    write(home, "gone.bin", [0, 255, 1, 254, 0]);
    write(home, "old-name", "moved");
    write(home, "folder/inside", "inside");
    write(home, "folder/other", "other");
    write(home, "tree/one/a", "a");
    write(home, "tree/two/b", "b");
    let path = |name: &str| home.path(&format!("project/{name}"));
    for (name, mode) in [("a.txt", 0o640), ("gone.bin", 0o755), ("tree/two", 0o750)] {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    symlink("a.txt", path("link")).expect("a link");
}

#[test]
fn everything_that_a_tool_changed_comes_back_and_can_go_again() {
    needs_engine();
    let home = caller(EVERYTHING);
    before(&home);
    let old = tree(&home);
    let id = change(&home);
    let new = tree(&home);
    assert_ne!(old, new);
    assert_eq!(read(&home, "a.txt").as_deref(), Some(&b"newer a"[..]));
    assert_eq!(read(&home, "gone.bin"), None);
    // A look changes nothing.
    let look = home.run(["undo", &id, "--dry-run", "--json"]);
    assert_eq!(look.code, Some(0), "{}", look.err);
    assert!(look.json()["steps"].as_array().is_some_and(|steps| steps.len() > 8), "{}", look.out);
    assert_eq!(tree(&home), new);
    let listed = home.run(["undo", "--list", "--json"]).json();
    assert_eq!(
        (&listed["calls"][0]["call"], &listed["calls"][0]["undone"]),
        (&id.as_str().into(), &Value::Null)
    );
    let (undone, ran) = undo(&home, &id);
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_eq!(tree(&home), old);
    // It is a call of its own: recorded, and taken back like any other.
    let own = undone["call"].as_str().expect("an id");
    let shown = home.run(["audit", "show", own, "--json"]).json();
    let kinds: Vec<_> = shown["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"start".into()), Some(&"end".into())));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == "request") && kinds.len() > 8);
    let again = undo(&home, &id);
    assert_eq!(
        (again.1.code, &again.0["steps"]),
        (Some(0), &serde_json::json!([])),
        "{}",
        again.1.out
    );
    let (_, ran) = undo(&home, own);
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert_eq!(tree(&home), new);
    assert_sound(&home);
    // Backups are the caller's own, each content once.
    let backups = home.path("state/runner/backups");
    assert_eq!(fs::metadata(&backups).expect("there").permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&backups).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("text");
        assert_eq!(entry.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(name, blake3::hash(&fs::read(entry.path()).expect("a file")).to_hex().as_str());
    }
}

#[test]
fn what_has_changed_since_is_not_touched_and_neither_is_the_rest() {
    needs_engine();
    let code = r#"
export async function execute(args, { platform: { fs } }) {
  await fs.writeFile("a.txt", "tool");
  await fs.writeFile("b.txt", "tool");
  await fs.mkdir("made");
}
"#;
    let change_since: [Since; 6] = [
        ("content", |home| write(home, "b.txt", "mine")),
        ("the same length", |home| write(home, "b.txt", "fool")),
        ("mode", |home| {
            let path = home.path("project/b.txt");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a mode");
        }),
        ("removed", |home| fs::remove_file(home.path("project/b.txt")).expect("removed")),
        ("a link", |home| {
            fs::remove_file(home.path("project/b.txt")).expect("removed");
            fs::write(home.path("secret"), "canary").expect("a file");
            symlink(home.path("secret"), home.path("project/b.txt")).expect("a link");
        }),
        ("in the folder", |home| write(home, "made/mine", "mine")),
    ];
    for (what, since) in change_since {
        let home = caller(code);
        write(&home, "a.txt", "old");
        write(&home, "b.txt", "old");
        let id = change(&home);
        since(&home);
        let now = tree(&home);
        let (refused, ran) = undo(&home, &id);
        assert_eq!(ran.code, Some(125), "{what}: {}", ran.out);
        assert_eq!(refused["error"]["code"], "undo_conflict", "{what}");
        assert_eq!(tree(&home), now, "{what}: nothing was restored");
        assert!(
            !home.path("secret").exists()
                || fs::read_to_string(home.path("secret")).unwrap() == "canary"
        );
        assert_sound(&home);
    }
    // The control.
    let home = caller(code);
    write(&home, "a.txt", "old");
    write(&home, "b.txt", "old");
    let old = tree(&home);
    let id = change(&home);
    assert_eq!(undo(&home, &id).1.code, Some(0));
    assert_eq!(tree(&home), old);
}

#[test]
fn a_link_that_was_planted_on_the_way_leads_nowhere() {
    needs_engine();
    let home = caller(
        r#"
export async function execute(args, { platform: { fs } }) {
  await fs.writeFile("dir/file", "tool");
  await fs.rm("dir/gone");
}
"#,
    );
    write(&home, "dir/file", "old");
    write(&home, "dir/gone", "old");
    let id = change(&home);
    // The folder becomes a link to one outside that looks the same.
    fs::create_dir(home.path("outside")).expect("a folder");
    fs::write(home.path("outside/file"), "tool").expect("a file");
    fs::rename(home.path("project/dir"), home.path("project/aside")).expect("moved");
    symlink(home.path("outside"), home.path("project/dir")).expect("a link");
    let (refused, ran) = undo(&home, &id);
    assert_eq!(
        (ran.code, &refused["error"]["code"]),
        (Some(125), &"undo_conflict".into()),
        "{}",
        ran.out
    );
    assert_eq!(fs::read_to_string(home.path("outside/file")).unwrap(), "tool");
    assert!(!home.path("outside/gone").exists());
    // The control: the folder itself is back.
    fs::remove_file(home.path("project/dir")).expect("removed");
    fs::rename(home.path("project/aside"), home.path("project/dir")).expect("moved");
    assert_eq!(undo(&home, &id).1.code, Some(0));
    assert_eq!(read(&home, "dir/file").as_deref(), Some(&b"old"[..]));
    assert_eq!(read(&home, "dir/gone").as_deref(), Some(&b"old"[..]));
    assert_eq!(mode(&home, "dir/file"), 0o644);
}

/// Writes to a file with the built-in tool, without an engine; the call's id.
fn overwrite(home: &Home, name: &str) -> String {
    overwrite_with(home, name, "new")
}

fn overwrite_with(home: &Home, name: &str, content: &str) -> String {
    let args = serde_json::json!({ "operation": "write", "path": name, "content": content });
    let (result, ran) =
        call(home, "file_operations", &["--policy", "open", "--args", &args.to_string()]);
    assert_eq!(ran.code, Some(0), "{result:#} {}", ran.err);
    result["call"].as_str().expect("an id").to_owned()
}

fn kept(home: &Home) -> Vec<Value> {
    let listed = home.run(["undo", "--list", "--json"]).json();
    listed["calls"].as_array().expect("calls").clone()
}

#[test]
fn what_is_kept_is_bounded_as_the_configuration_says() {
    let home = caller("export const execute = () => 1;");
    home.config("pool: { size: 0 }\napprovals: { withoutTerminal: true }\nundo: { size: 100KiB, age: 2h }\n");
    let ids = ["a", "b", "c"].map(|name| {
        write(&home, name, vec![name.as_bytes()[0]; 40 << 10]);
        overwrite(&home, name)
    });
    // The third does not fit beside both others, so the oldest has gone, and its content with it.
    let calls: Vec<String> =
        kept(&home).iter().map(|it| it["call"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(calls, [ids[2].as_str(), ids[1].as_str()]);
    let backups = || fs::read_dir(super::state(&home, "backups")).expect("a folder").count();
    assert_eq!(backups(), 2);
    let (gone, ran) = undo(&home, &ids[0]);
    assert_eq!((ran.code, &gone["error"]["code"]), (Some(2), &"undo_nothing".into()), "{gone}");
    assert_eq!(read(&home, "a").expect("there"), b"new");
    // The control: what is kept comes back.
    assert_eq!(undo(&home, &ids[1]).1.code, Some(0));
    assert_eq!(read(&home, "b").expect("there"), vec![b'b'; 40 << 10]);
    // Also if it and what is there now are more than is kept: what is put back is needed until then.
    write(&home, "e", vec![b'e'; 60 << 10]);
    let both = overwrite_with(&home, "e", &"E".repeat(60 << 10));
    assert_eq!(undo(&home, &both).1.code, Some(0));
    assert_eq!(read(&home, "e").expect("there"), vec![b'e'; 60 << 10]);
    // One file that is larger than everything may be is changed, and cannot come back.
    write(&home, "large", vec![0; 101 << 10]);
    let large = overwrite(&home, "large");
    assert_eq!(undo(&home, &large).0["error"]["code"], "undo_conflict");
    // What is too old goes with the next change.
    let until = kept(&home)[0]["until"].as_i64().expect("a time");
    let at = kept(&home)[0]["at"].as_i64().expect("a time");
    assert!((until - at - 2 * 3600 * 1000).abs() < 60_000, "{until} {at}");
    home.config("pool: { size: 0 }\napprovals: { withoutTerminal: true }\nundo: { age: 1ms }\n");
    write(&home, "d", "old");
    let last = overwrite(&home, "d");
    assert_eq!(kept(&home).len(), 1);
    assert_eq!((kept(&home)[0]["call"].as_str(), backups()), (Some(last.as_str()), 1));
    // A project has no say, in neither direction: nothing runs.
    for said in ["undo: { age: 1ms }", "undo: { size: 9GiB }"] {
        fs::write(home.path("project/.runner/config.yml"), said).expect("a file");
        let ran = home.run(["--json", "tool", "run", "file_operations", "--args", "{}"]);
        assert_eq!(ran.json()["error"]["code"], "config_refused", "{said}: {}", ran.out);
        assert!(ran.out.contains("wrong_layer"), "{}", ran.out);
    }
    assert_sound(&home);
}

#[test]
fn what_cannot_be_undone_says_so() {
    let home = Home::new();
    assert_eq!(home.run(["undo"]).code, Some(2));
    assert_eq!(home.run(["undo", "nosuch"]).code, Some(2));
    assert_eq!(home.run(["undo", "--list", "--json"]).json(), serde_json::json!({ "calls": [] }));
    super::refused(&home, 1);
    let listed = home.run(["audit", "list", "--json"]).json();
    let (told, ran) = undo(&home, listed["calls"][0]["call"].as_str().expect("an id"));
    assert_eq!(
        (ran.code, &told["error"]["code"]),
        (Some(2), &"undo_nothing".into()),
        "{}",
        ran.out
    );
}
