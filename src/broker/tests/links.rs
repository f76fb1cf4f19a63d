//! Rows 1 and 30: links out of the workspace, other names of outside files, and the kernel's own paths.

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// Row 1. Reading and writing through a link that leads out changes and shows nothing.
#[tokio::test]
async fn links_that_lead_out_are_refused_and_links_inside_work() {
    let case = Case::new();
    case.write("real/file", "inside");
    case.write("real/deep/file", "inside");
    case.link(&case.outside, "abs");
    case.link(case.outside.join("file"), "absfile");
    case.link("../dir2", "rel");
    case.link("../dir2/file", "relfile");
    case.link("real", "in");
    case.link("real/file", "infile");
    case.link("rel", "chain");
    case.link("../../../../../../../../../../etc", "far");
    std::os::unix::fs::symlink("../../dir2", case.root.join("real/up")).unwrap();
    // Names of the workspace itself, absolute: the kernel cannot vouch for what stands before it.
    case.link(case.root.join("real"), "absin");
    let mut peer = case.talk();
    for path in [
        "abs/file",
        "absfile",
        "rel/file",
        "relfile",
        "chain/file",
        "real/up/file",
        "in/up/file",
        "far/passwd",
        "absin/file",
        "in/../rel/file",
    ] {
        for answer in [
            peer.read(path).await,
            peer.write(path, "x").await,
            peer.give("file.append", json!({"path": path}), b"x").await,
            peer.ask("file.stat", json!({"path": path})).await,
            peer.ask("file.list", json!({"path": path})).await,
        ] {
            assert_eq!(answer.code(), "path_escape", "{path} {}", answer.reply);
            assert!(answer.bytes.is_empty() && !answer.reply.to_string().contains(CANARY));
        }
    }
    // New files, also below a parent that is missing, and folders.
    for folder in ["abs", "rel", "chain", "real/up"] {
        for path in ["new", "missing/new"] {
            let path = format!("{folder}/{path}");
            assert_eq!(peer.write(&path, "x").await.code(), "path_escape", "{path}");
            for recursive in [false, true] {
                let made =
                    peer.ask("file.mkdir", json!({"path": path, "recursive": recursive})).await;
                assert_eq!(made.code(), "path_escape", "{path}");
            }
        }
        let path = format!("{folder}/file");
        for (method, params) in [
            ("file.remove", json!({"path": path})),
            ("file.remove", json!({"path": path, "force": true})),
            ("file.rename", json!({"from": path, "to": "stolen"})),
            ("file.rename", json!({"from": "file", "to": path})),
            ("file.glob", json!({"pattern": "**", "cwd": folder})),
        ] {
            assert_eq!(peer.ask(method, params.clone()).await.code(), "path_escape", "{params}");
        }
    }
    // The controls: links inside keep working, for reading and for writing.
    assert_eq!(peer.read("in/file").await.text(), "inside");
    assert_eq!(peer.read("infile").await.text(), "inside");
    assert_eq!(peer.read("in/deep/../file").await.text(), "inside");
    assert_eq!(peer.write("infile", "through").await.code(), "ok");
    assert_eq!(case.read("real/file"), "through");
    assert!(case.root.join("infile").is_symlink());
    assert_eq!(peer.write("in/new", "x").await.code(), "ok");
    // A link itself is removed and renamed, not what it leads to.
    assert_eq!(peer.ask("file.rename", json!({"from": "abs", "to": "moved"})).await.code(), "ok");
    assert_eq!(peer.ask("file.remove", json!({"path": "moved"})).await.code(), "ok");
    assert_eq!(
        peer.ask("file.remove", json!({"path": "rel", "recursive": true})).await.code(),
        "ok"
    );
    assert!(
        !peer.ask("file.glob", json!({"pattern": "**"})).await.reply.to_string().contains("dir2")
    );
    case.untouched();
}

/// Row 1. Links that are made while the call runs.
#[tokio::test]
async fn links_made_during_the_call_are_no_better() {
    let case = Case::new();
    case.write("d/file", "inside");
    let mut peer = case.talk();
    assert_eq!(peer.read("d/file").await.text(), "inside");
    // A write whose folder becomes a link between its beginning and its end lands where it was judged.
    let id = peer.begin("file.write", &json!({"path": "d/new"}), true).await;
    peer.send(Kind::Chunk, id, b"half").await;
    assert_eq!(peer.ask("file.stat", json!({"path": "d"})).await.code(), "ok");
    // In one step: at no moment is there nothing of that name.
    case.link(&case.outside, "d-old");
    let [folder, link] = ["d", "d-old"].map(|name| case.root.join(name));
    renameat_with(CWD, folder, CWD, link, RenameFlags::EXCHANGE).unwrap();
    peer.send(Kind::End, id, b"").await;
    let code = peer.answer(id).await.code().to_owned();
    assert!(["ok", "path_escape"].contains(&code.as_str()), "{code}");
    assert_eq!(peer.read("d/file").await.code(), "path_escape");
    assert_eq!(peer.write("d/new", "x").await.code(), "path_escape");
    case.untouched();
}

/// Row 1. A dangling link is no way to make a file elsewhere.
#[tokio::test]
async fn dangling_links_make_nothing() {
    let case = Case::new();
    case.link(case.outside.join("new"), "out");
    case.link("nothing", "in");
    let mut peer = case.talk();
    assert_eq!(peer.write("out", "x").await.code(), "path_escape");
    assert_eq!(peer.write("in", "x").await.code(), "not_found");
    let exclusive = json!({"path": "in", "exclusive": true});
    assert_ne!(peer.give("file.write", exclusive, b"x").await.code(), "ok");
    assert_eq!(peer.give("file.append", json!({"path": "in"}), b"x").await.code(), "not_found");
    assert!(!case.root.join("nothing").exists());
    case.untouched();
}

/// Row 1. A file that also has a name outside is neither read nor written.
#[tokio::test]
async fn an_outside_file_that_is_hard_linked_in_is_refused() {
    let case = Case::new();
    std::fs::hard_link(case.outside.join("file"), case.root.join("hard")).unwrap();
    let mut peer = case.talk();
    for answer in [
        peer.read("hard").await,
        peer.write("hard", "x").await,
        peer.give("file.append", json!({"path": "hard"}), b"x").await,
    ] {
        assert_eq!(answer.code(), "path_escape", "{}", answer.reply);
        assert!(answer.bytes.is_empty());
        assert!(answer.reply["error"]["message"].as_str().unwrap().contains("hard links"));
    }
    // Another name of a denied file is no way around its name.
    case.write(".env", CANARY);
    std::fs::hard_link(case.root.join(".env"), case.root.join("env")).unwrap();
    assert_eq!(peer.read("env").await.code(), "path_escape");
    // The control has one name. The inside name can be given up, which changes nothing outside.
    assert_eq!(peer.read("file").await.text(), "inside");
    assert_eq!(peer.ask("file.remove", json!({"path": "hard"})).await.code(), "ok");
    case.untouched();
}

/// A denied name that is a link is denied, wherever it leads; so is a denied file by another way.
#[tokio::test]
async fn names_and_what_they_lead_to_are_both_judged() {
    let case = Case::new();
    case.write("plain", "x");
    case.link("plain", ".env");
    case.write("secret/key", CANARY);
    case.link("secret", "public");
    case.link("secret/key", "key");
    let mut peer = case.talk();
    for path in [".env", "public/key", "key", "secret/key", "./secret//key", "public"] {
        assert_eq!(peer.read(path).await.code(), "access_denied", "{path}");
        assert_eq!(peer.write(path, "x").await.code(), "access_denied", "{path}");
    }
    assert_eq!(peer.ask("file.list", json!({"path": "public"})).await.code(), "access_denied");
    assert_eq!(peer.read("plain").await.text(), "x");
    assert_eq!(case.read("secret/key"), CANARY);
}

/// Row 30. The kernel's own paths, also by links of the workspace.
#[tokio::test]
async fn special_paths_are_refused_by_their_own_word() {
    let case = Case::new();
    case.link("/proc/self/root", "root");
    case.link("/proc/self/environ", "environ");
    case.link("/dev/fd", "fd");
    case.link("/dev/null", "null");
    case.link("root", "again");
    case.link("../../../../../../../../../../proc/self/fd", "updown");
    let mut peer = case.talk();
    for path in [
        "/proc/self/root/etc/passwd",
        "/proc/1/environ",
        "/proc/self/fd/0",
        "/dev/fd/0",
        "/dev/null",
        "/dev/tty",
        "/sys/kernel",
        "/proc",
        "root/etc/passwd",
        "environ",
        "fd/0",
        "null",
        "again/etc/passwd",
        "updown/0",
        "../../../../../../../../../../../proc/self/environ",
    ] {
        for answer in [
            peer.read(path).await,
            peer.write(path, "x").await,
            peer.ask("file.stat", json!({"path": path})).await,
            peer.ask("file.list", json!({"path": path})).await,
        ] {
            assert_eq!(answer.code(), "special_file", "{path} {}", answer.reply);
            assert!(answer.bytes.is_empty());
        }
    }
    // `/dev` and `/proc` as ordinary names of the workspace are ordinary.
    assert_eq!(
        peer.ask("file.mkdir", json!({"path": "proc/self", "recursive": true})).await.code(),
        "ok"
    );
    assert_eq!(peer.write("proc/self/environ", "x").await.code(), "ok");
    assert_eq!(peer.read("proc/self/environ").await.text(), "x");
}

/// Row 30. Pipes, sockets and devices in the workspace neither hang nor answer.
#[tokio::test]
async fn pipes_and_sockets_never_hang() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let case = Case::new();
    mknodat(CWD, case.root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(case.root.join("socket")).unwrap();
    case.link("pipe", "to-pipe");
    let mut peer = case.talk();
    for path in ["pipe", "socket", "to-pipe"] {
        for answer in [
            peer.read(path).await,
            peer.write(path, "x").await,
            peer.give("file.append", json!({"path": path}), b"x").await,
        ] {
            assert_eq!(answer.code(), "special_file", "{path} {}", answer.reply);
        }
        let stat = peer.ask("file.stat", json!({"path": path})).await;
        assert_eq!(stat.ok()["type"], "other");
    }
    assert_eq!(peer.read("file").await.text(), "inside");
    assert_eq!(peer.ask("file.remove", json!({"path": "pipe"})).await.code(), "ok");
}
