//! Every method of the table does what it says.

use super::*;
use crate::codes::Code;
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn files_are_written_read_listed_moved_and_removed() {
    let case = Case::new();
    let mut peer = case.talk();
    assert_eq!(
        peer.ask("file.mkdir", json!({"path": "a/b/c", "recursive": true})).await.ok(),
        &json!({})
    );
    assert_eq!(peer.write("a/b/x.txt", "hello").await.ok(), &json!({"bytes": 5}));
    assert_eq!(
        peer.give("file.append", json!({"path": "a/b/x.txt"}), b" world").await.ok(),
        &json!({"bytes": 6})
    );
    let absolute = case.root.join("a/b/x.txt");
    assert_eq!(peer.read(absolute.to_str().unwrap()).await.text(), "hello world");
    let part = peer.ask("file.read", json!({"path": "a/b/x.txt", "offset": 6, "length": 3})).await;
    assert_eq!((part.text(), part.ok()), ("wor", &json!({"bytes": 3})));
    let stat = peer.ask("file.stat", json!({"path": "a/b/x.txt"})).await;
    assert_eq!((&stat.ok()["type"], &stat.ok()["size"]), (&json!("file"), &json!(11)));
    assert!(stat.ok()["mtimeMs"].as_i64().unwrap() > 1_000_000_000_000);
    assert_eq!(
        peer.ask("file.list", json!({"path": "a/b"})).await.ok(),
        &json!({"entries": [{"name": "c", "type": "dir"}, {"name": "x.txt", "type": "file"}]})
    );
    assert_eq!(peer.ask("file.rename", json!({"from": "a/b", "to": "z"})).await.ok(), &json!({}));
    assert_eq!(case.read("z/x.txt"), "hello world");
    assert_eq!(
        peer.ask("file.glob", json!({"pattern": "**/*.txt"})).await.ok(),
        &json!({"paths": ["z/x.txt"], "truncated": false})
    );
    assert_eq!(
        peer.ask("file.glob", json!({"pattern": "*", "cwd": "z", "limit": 1})).await.ok(),
        &json!({"paths": ["c"], "truncated": true})
    );
    assert_eq!(peer.ask("file.remove", json!({"path": "z"})).await.code(), "not_empty");
    assert_eq!(
        peer.ask("file.remove", json!({"path": "z", "recursive": true})).await.ok(),
        &json!({})
    );
    assert!(!case.root.join("z").exists());
    assert_eq!(peer.ask("file.remove", json!({"path": "z"})).await.code(), "not_found");
    assert_eq!(peer.ask("file.remove", json!({"path": "z", "force": true})).await.code(), "ok");
    case.untouched();
    let served = peer.end().await;
    assert_eq!(served.end.unwrap(), ToolEnd::Value(Value::Null));
    assert_eq!(served.usage.calls, 14);
    assert_eq!(served.usage.refused, 2);
    assert_eq!(served.requests[1].object, "a/b/x.txt");
}

#[tokio::test]
async fn what_cannot_be_done_has_its_own_word() {
    let case = Case::new();
    case.write("full/x", "");
    let mut peer = case.talk();
    for (method, params, code) in [
        ("file.read", json!({"path": "missing"}), "not_found"),
        ("file.read", json!({"path": "full"}), "is_a_directory"),
        ("file.read", json!({"path": "file/x"}), "not_a_directory"),
        ("file.read", json!({"path": "file/"}), "not_a_directory"),
        ("file.list", json!({"path": "file"}), "not_a_directory"),
        ("file.stat", json!({"path": "missing/x"}), "not_found"),
        ("file.mkdir", json!({"path": "full"}), "already_exists"),
        ("file.mkdir", json!({"path": "file", "recursive": true}), "already_exists"),
        ("file.mkdir", json!({"path": "p/q"}), "not_found"),
        ("file.remove", json!({"path": "full"}), "not_empty"),
        ("file.remove", json!({"path": "."}), "invalid_argument"),
        ("file.rename", json!({"from": "missing", "to": "x"}), "not_found"),
        ("file.rename", json!({"from": "full", "to": "full/in"}), "invalid_argument"),
        ("file.rename", json!({"from": "file", "to": "full"}), "is_a_directory"),
        ("file.glob", json!({"pattern": "["}), "invalid_argument"),
        ("file.glob", json!({"pattern": "*", "cwd": "file"}), "not_a_directory"),
    ] {
        let answer = peer.ask(method, params.clone()).await;
        assert_eq!(answer.code(), code, "{method} {params} {}", answer.reply);
    }
    for (path, code) in [
        ("full", "is_a_directory"),
        ("file/x", "not_a_directory"),
        ("missing/x", "not_found"),
        ("new/", "is_a_directory"),
        (".", "is_a_directory"),
        ("..", "path_escape"),
    ] {
        assert_eq!(peer.write(path, "x").await.code(), code, "{path}");
        assert_eq!(
            peer.give("file.append", json!({"path": path}), b"x").await.code(),
            code,
            "{path}"
        );
    }
    assert_eq!(case.read("file"), "inside");
    let control = peer.write("full/y", "x").await;
    assert_eq!(control.code(), "ok");
}

#[tokio::test]
async fn a_write_is_whole_or_not_at_all_and_keeps_permissions() {
    let case = Case::new();
    let path = case.root.join("run.sh");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4750)).unwrap();
    let mut peer = case.talk();
    assert_eq!(peer.write("run.sh", "new").await.code(), "ok");
    // The bit that lends rights is not kept.
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
    let exclusive = json!({"path": "run.sh", "exclusive": true});
    assert_eq!(peer.give("file.write", exclusive, b"x").await.code(), "already_exists");
    let exclusive = json!({"path": "once", "exclusive": true});
    assert_eq!(peer.give("file.write", exclusive, b"x").await.code(), "ok");
    assert_eq!(peer.ask("file.write", json!({"path": "empty"})).await.ok(), &json!({"bytes": 0}));
    // A body that is cancelled half-way leaves the old content, and nothing else.
    let id = peer.begin("file.write", &json!({"path": "run.sh"}), true).await;
    peer.send(Kind::Chunk, id, b"half").await;
    peer.send(Kind::Cancel, id, b"").await;
    assert_eq!(peer.answer(id).await.code(), "cancelled");
    peer.send(Kind::End, id, b"").await;
    assert_eq!(case.read("run.sh"), "new");
    // So does a tool that ends without waiting for its write.
    let id = peer.begin("file.write", &json!({"path": "run.sh"}), true).await;
    peer.send(Kind::Chunk, id, b"half").await;
    let served = peer.end().await;
    assert!(served.end.is_ok());
    assert_eq!(served.requests.last().unwrap().refused, Some(Code::Cancelled));
    assert_eq!(case.read("run.sh"), "new");
    case.untouched();
}

#[tokio::test]
async fn figures_of_the_policy_hold() {
    let mut case = Case::new();
    case.authority.limits.file_size = 10;
    let mut peer = case.talk();
    assert_eq!(peer.write("a", "0123456789").await.code(), "ok");
    assert_eq!(peer.write("a", "0123456789x").await.code(), "too_large");
    assert_eq!(peer.give("file.append", json!({"path": "a"}), b"x").await.code(), "too_large");
    assert_eq!(case.read("a"), "0123456789");
    case.authority.limits.free_space = u64::MAX;
    let mut peer = case.talk();
    assert_eq!(peer.write("b", "x").await.code(), "no_space");
    assert_eq!(peer.give("file.append", json!({"path": "b"}), b"x").await.code(), "no_space");
    assert_eq!(peer.ask("file.mkdir", json!({"path": "c"})).await.code(), "no_space");
    assert_eq!(peer.read("a").await.text(), "0123456789");
    case.untouched();
}

#[tokio::test]
async fn the_policy_is_asked_about_every_path() {
    let case = Case::with(
        r#"
policy: 1
name: narrow
files:
  read: ["src/**", "log/old/**"]
  write: ["build/**", "log/**"]
  readonly: ["build/keep"]
  deny: ["**/.env"]
"#,
    );
    for path in ["src/a", "build/keep", "build/b", "log/new", "other", "src/.env", "build/sub/.env"]
    {
        case.write(path, "x");
    }
    let mut peer = case.talk();
    assert_eq!(peer.read("src/a").await.text(), "x");
    for path in ["other", "build/b", "src/.env", "log/new", "src/../other"] {
        assert_eq!(peer.read(path).await.code(), "access_denied", "{path}");
    }
    // The answer names the rule and what it is about.
    let denied = peer.read("src/.env").await.reply;
    assert_eq!(denied["error"]["rule"], "narrow/files.deny");
    assert_eq!(denied["error"]["path"], "src/.env");
    assert_eq!(denied["error"]["recoverable"], false);
    let unlisted = peer.read("other").await.reply;
    assert!(unlisted["error"]["suggestion"].as_str().unwrap().contains("files.read"));
    // A denied name is denied whether it is there or not.
    assert_eq!(peer.read("nowhere/.env").await.code(), "access_denied");
    assert_eq!(peer.write("build/new", "x").await.code(), "ok");
    for path in ["src/a", "other", "build/keep", "build/.env", "new"] {
        assert_eq!(peer.write(path, "y").await.code(), "access_denied", "{path}");
        let append = peer.give("file.append", json!({"path": path}), b"y").await;
        assert_eq!(append.code(), "access_denied", "{path}");
        assert_eq!(peer.ask("file.remove", json!({"path": path})).await.code(), "access_denied");
    }
    // What may be written may be seen, but a move makes nothing readable that was not.
    assert_eq!(peer.ask("file.stat", json!({"path": "log/new"})).await.code(), "ok");
    let moved = peer.ask("file.rename", json!({"from": "log/new", "to": "log/old/x"})).await;
    assert_eq!(moved.code(), "access_denied");
    let control = peer.ask("file.rename", json!({"from": "log/new", "to": "log/newer"})).await;
    assert_eq!(control.code(), "ok");
    // A folder with something denied in it stays whole.
    let remove = peer.ask("file.remove", json!({"path": "build/sub", "recursive": true})).await;
    assert_eq!(remove.code(), "access_denied");
    let rename = peer.ask("file.rename", json!({"from": "build/sub", "to": "build/other"})).await;
    assert_eq!(rename.code(), "access_denied");
    assert_eq!(case.read("build/sub/.env"), "x");
    std::fs::remove_file(case.root.join("build/sub/.env")).unwrap();
    let control = peer.ask("file.remove", json!({"path": "build/sub", "recursive": true})).await;
    assert_eq!(control.code(), "ok");
    // A search leaves out what may not be read.
    assert_eq!(
        peer.ask("file.glob", json!({"pattern": "**", "dot": true})).await.ok(),
        &json!({"paths": ["src", "src/a"], "truncated": false})
    );
}

#[tokio::test]
async fn a_denied_folder_denies_all_that_is_in_it() {
    let case = Case::with(
        r#"
policy: 1
name: folders
files:
  read: ["**", "!hidden"]
  write: ["**", "!frozen"]
  readonly: ["vendor"]
  deny: ["config/private", "**/.env", "pages/*", "!pages/open"]
"#,
    );
    let denied = ["config/private/a", "config/private/b/c", "x/.env/a", "pages/p/a", ".ssh/a"];
    let free = ["config/public/a", "config/private2/a", "pages/open/a", ".env2/a"];
    for path in denied.iter().chain(&free).chain(&["hidden/a", "frozen/a", "vendor/d/a"]) {
        case.write(path, "x");
    }
    let mut peer = case.talk();
    for path in free {
        assert_eq!(peer.read(path).await.text(), "x", "{path}");
        assert_eq!(peer.write(path, "x").await.code(), "ok", "{path}");
    }
    for path in denied {
        assert_eq!(peer.read(path).await.code(), "access_denied", "{path}");
        assert_eq!(peer.write(path, "y").await.code(), "access_denied", "{path}");
        let stat = peer.ask("file.stat", json!({"path": path})).await;
        assert_eq!(stat.code(), "access_denied", "{path}");
        let copied = peer.ask("file.rename", json!({"from": path, "to": "moved"})).await;
        assert_eq!(copied.code(), "access_denied", "{path}");
        assert_eq!(case.read(path), "x");
    }
    let refusal = peer.read("config/private/b/c").await.reply;
    assert_eq!(refusal["error"]["rule"], "folders/files.deny");
    let list = peer.ask("file.list", json!({"path": "config/private/b"})).await;
    assert_eq!(list.code(), "access_denied");
    // Neither can the folder above be moved away from under the name.
    let moved = peer.ask("file.rename", json!({"from": "config", "to": "other"})).await;
    assert_eq!(moved.code(), "access_denied");
    // What a list of grants subtracts goes with all that is in it; a read-only folder is read-only throughout.
    assert_eq!(peer.read("hidden/a").await.code(), "access_denied");
    assert_eq!(peer.read("frozen/a").await.text(), "x");
    assert_eq!(peer.write("frozen/a", "y").await.code(), "access_denied");
    assert_eq!(peer.read("vendor/d/a").await.text(), "x");
    assert_eq!(peer.write("vendor/d/new", "y").await.code(), "access_denied");
    let glob = peer.ask("file.glob", json!({"pattern": "**/a", "dot": true})).await;
    assert_eq!(
        glob.ok()["paths"],
        json!([
            ".env2/a",
            "config/private2/a",
            "config/public/a",
            "frozen/a",
            "pages/open/a",
            "vendor/d/a"
        ])
    );
}

#[tokio::test]
async fn names_that_are_not_text_are_counted_not_lost() {
    use std::os::unix::ffi::OsStrExt;
    let case = Case::new();
    let odd = case.root.join("sub").join(std::ffi::OsStr::from_bytes(b"\xff"));
    case.write("sub/good", "x");
    std::fs::write(&odd, "x").unwrap();
    case.link("sub/good", "to-good");
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(b"sub/\xff"), case.root.join("to-odd"))
        .unwrap();
    let mut peer = case.talk();
    assert_eq!(
        peer.ask("file.list", json!({"path": "sub"})).await.ok(),
        &json!({"entries": [{"name": "good", "type": "file"}], "undecodable": 1})
    );
    assert_eq!(peer.read("to-good").await.text(), "x");
    assert_eq!(peer.read("to-odd").await.code(), "invalid_argument");
    let remove = peer.ask("file.remove", json!({"path": "sub", "recursive": true})).await;
    assert_eq!(remove.code(), "invalid_argument");
    assert!(odd.exists() && case.root.join("sub/good").exists());
}
