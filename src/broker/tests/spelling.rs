//! Row 6: how a path is spelled.

use super::*;

#[tokio::test]
async fn outside_is_outside_in_every_spelling() {
    let case = Case::new();
    case.write("sub/file", "inside");
    let mut peer = case.talk();
    let root = case.root.to_str().unwrap().to_owned();
    let outside = case.outside.to_str().unwrap().to_owned();
    for path in [
        "../dir2/file".to_owned(),
        "./../dir2/file".to_owned(),
        "..//dir2///file".to_owned(),
        "sub/../../dir2/file".to_owned(),
        "sub/../sub/../../dir2/file".to_owned(),
        "..".to_owned(),
        "../".to_owned(),
        "../..".to_owned(),
        format!("{root}/../dir2/file"),
        format!("{root}2/file"),
        format!("{outside}/file"),
        format!("{outside}/../dir/file"),
        format!("/{outside}/file"),
        "/".to_owned(),
        "/etc/passwd".to_owned(),
        "//etc/passwd".to_owned(),
        "/etc/../etc/passwd".to_owned(),
        // By text this is the workspace; the way there is not ours to vouch for.
        format!("/etc/..{root}/file"),
    ] {
        for answer in [peer.read(&path).await, peer.write(&path, "x").await] {
            assert_eq!(answer.code(), "path_escape", "{path} {}", answer.reply);
            assert!(answer.bytes.is_empty());
        }
    }
    for pattern in ["../dir2/*", "/etc/*", "sub/../../dir2/*", "{..,sub}/*"] {
        let found = peer.ask("file.glob", json!({"pattern": pattern})).await;
        assert_eq!(found.code(), "path_escape", "{pattern}");
    }
    // The same spellings, inside.
    for path in [
        "sub/file".to_owned(),
        "./sub//file".to_owned(),
        "sub/../sub/file".to_owned(),
        format!("{root}/sub/file"),
        format!("{root}//sub/./file"),
        format!("/{root}/sub/file"),
    ] {
        assert_eq!(peer.read(&path).await.text(), "inside", "{path}");
    }
    case.untouched();
}

#[tokio::test]
async fn odd_names_are_ordinary() {
    let case = Case::new();
    let mut peer = case.talk();
    for name in [
        "..test",
        "te..st",
        "...",
        "%2e%2e",
        "%2e%2e%2f",
        ".. ",
        " ",
        "-",
        "a\nb",
        "\u{1b}[31m",
        "\u{202e}x",
        "é",
        "e\u{301}",
        "x (deleted)",
        "con",
        "a\\..\\b",
        "~",
        "$HOME",
        "*",
        "con:stream",
        "a;rm -rf b",
    ] {
        let answer = peer.write(name, name).await;
        assert_eq!(answer.code(), "ok", "{name:?} {}", answer.reply);
        assert_eq!(peer.read(name).await.text(), name);
        assert_eq!(case.read(name), name);
        assert_eq!(
            peer.ask("file.mkdir", json!({"path": format!("d/{name}"), "recursive": true}))
                .await
                .code(),
            "ok"
        );
        assert_eq!(peer.write(&format!("d/{name}/{name}"), "x").await.code(), "ok");
    }
    assert_eq!(
        peer.ask("file.list", json!({"path": "d"})).await.ok()["entries"].as_array().unwrap().len(),
        21
    );
    case.untouched();
}

#[tokio::test]
async fn what_cannot_be_a_path_is_told_and_nothing_is_cut() {
    let case = Case::new();
    let long = "n".repeat(256);
    let deep = "d/".repeat(2100);
    case.write(&"n".repeat(255), "longest");
    let mut peer = case.talk();
    for path in ["", "\0", "file\0", "file\0/../../dir2", "sub/\0", long.as_str(), deep.as_str()] {
        for answer in [
            peer.read(path).await,
            peer.write(path, "x").await,
            peer.ask("file.stat", json!({"path": path})).await,
            peer.ask("file.remove", json!({"path": path, "force": true})).await,
            peer.ask("file.mkdir", json!({"path": path, "recursive": true})).await,
            peer.ask("file.rename", json!({"from": "file", "to": path})).await,
            peer.ask("exec.run", json!({"command": "ls", "cwd": path})).await,
        ] {
            assert_eq!(answer.code(), "invalid_argument", "{path:?} {}", answer.reply);
        }
    }
    assert_eq!(peer.read(&"n".repeat(255)).await.text(), "longest");
    assert_eq!(case.read("file"), "inside");
}
