//! Row 4: our own files, git's, and what shells and editors run.

use super::*;
use crate::stage::turn::Turn;

const PROTECTED: &[&str] = &[
    ".runner/policies/x.yml",
    ".runner/tools/x.yml",
    ".runner",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks/pre-commit",
    ".git/hooks",
    ".git/info/attributes",
    ".git/objects/info/alternates",
    ".git/modules/sub/config",
    ".git/modules/sub/hooks/post-checkout",
    ".git/worktrees/tree/config.worktree",
    ".git/worktrees/tree/gitdir",
    ".git",
    "sub/.git/hooks/pre-push",
    "sub/.runner/config.yml",
    ".bashrc",
    ".zshrc",
    ".profile",
    ".envrc",
    ".vimrc",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    "deep/down/.vscode/settings.json",
    ".Git/config",
    ".GIT/hooks/pre-commit",
    ".VSCode/tasks.json",
];

async fn refused(peer: &mut Peer, path: &str) {
    for answer in [
        peer.write(path, "x").await,
        peer.give("file.append", json!({"path": path}), b"x").await,
        peer.ask("file.mkdir", json!({"path": path})).await,
        peer.ask("file.mkdir", json!({"path": path, "recursive": true})).await,
        peer.ask("file.remove", json!({"path": path, "recursive": true, "force": true})).await,
        peer.ask("file.rename", json!({"from": "file", "to": path})).await,
        peer.ask("file.rename", json!({"from": path, "to": "elsewhere"})).await,
    ] {
        assert_eq!(answer.code(), "protected_path", "{path} {}", answer.reply);
    }
}

fn repository(case: &Case) {
    for path in PROTECTED.iter().filter(|path| !path.starts_with(".G") && !path.starts_with(".V")) {
        if !matches!(*path, ".runner" | ".git" | ".git/hooks") {
            case.write(path, "old");
        }
    }
    case.write(".git/HEAD", "ref: refs/heads/main\n");
    case.write(".git/refs/heads/main", "0123456789012345678901234567890123456789\n");
}

#[tokio::test]
async fn protected_paths_are_unwritable_before_and_after_they_exist() {
    let case = Case::new();
    let mut peer = case.talk();
    for path in PROTECTED {
        refused(&mut peer, path).await;
    }
    assert_eq!(std::fs::read_dir(&case.root).unwrap().count(), 1);
    repository(&case);
    for path in PROTECTED {
        refused(&mut peer, path).await;
    }
    assert_eq!(case.read(".git/hooks/pre-commit"), "old");
    // They may be read, and what stands beside them may be written.
    assert_eq!(peer.read(".git/config").await.text(), "old");
    for path in [".gitignore", ".github-notes", "hooks", "config", "runner", ".runnerrc"] {
        assert_eq!(peer.write(path, "x").await.code(), "ok", "{path}");
    }
    case.untouched();
}

/// Whoever may move or replace a parent of a protected path could put another in its place.
#[tokio::test]
async fn parents_of_protected_paths_cannot_be_moved_removed_or_made() {
    let case = Case::new();
    repository(&case);
    case.write("made/hooks/pre-commit", "evil");
    case.write("made/config", "evil");
    case.write("folder/attributes", "evil");
    case.write("plain/x/y", "x");
    let mut peer = case.talk();
    for from in ["sub", "deep", "deep/down", ".git/info", ".git/objects", ".git"] {
        for params in
            [json!({"from": from, "to": "moved"}), json!({"from": from, "to": "plain/moved"})]
        {
            let answer = peer.ask("file.rename", params).await;
            assert_eq!(answer.code(), "protected_path", "{from} {}", answer.reply);
        }
        let removed = peer.ask("file.remove", json!({"path": from, "recursive": true})).await;
        assert_eq!(removed.code(), "protected_path", "{from}");
    }
    // What would be protected where it arrives does not arrive.
    std::fs::remove_dir_all(case.root.join(".git/info")).unwrap();
    for (from, to) in
        [("made", ".git"), ("made", "sub/.git"), ("folder", ".git/info"), ("made", ".runner")]
    {
        let answer = peer.ask("file.rename", json!({"from": from, "to": to})).await;
        assert_eq!(answer.code(), "protected_path", "{from} {to}");
    }
    // Nothing was removed on the way to a refusal.
    assert_eq!(case.read("deep/down/.vscode/settings.json"), "old");
    assert_eq!(case.read("sub/.runner/config.yml"), "old");
    // The controls have nothing of the kind in them.
    assert_eq!(peer.ask("file.rename", json!({"from": "plain", "to": "moved"})).await.code(), "ok");
    assert_eq!(
        peer.ask("file.rename", json!({"from": "folder", "to": "moved/f"})).await.code(),
        "ok"
    );
    assert_eq!(
        peer.ask("file.remove", json!({"path": "moved", "recursive": true})).await.code(),
        "ok"
    );
    case.untouched();
}

/// By way of links inside the workspace, and in git folders of any name.
#[tokio::test]
async fn protected_paths_are_protected_by_what_they_are() {
    let case = Case::new();
    repository(&case);
    for path in [
        "bare.git/HEAD",
        "bare.git/objects/x",
        "bare.git/refs/x",
        "bare.git/hooks/y",
        "bare.git/config",
    ] {
        case.write(path, "old");
    }
    case.link(".git", "alias");
    case.link(".git/hooks", "innocent");
    case.link(".git/config", "settings");
    case.link(".runner", "ours");
    let mut peer = case.talk();
    for path in [
        "alias/hooks/pre-commit",
        "alias/config",
        "innocent/pre-commit",
        "innocent/new",
        "settings",
        "ours/new",
        "ours/policies/x.yml",
        "bare.git/hooks/post-receive",
        "bare.git/config",
    ] {
        let answer = peer.write(path, "evil").await;
        assert_eq!(answer.code(), "protected_path", "{path} {}", answer.reply);
        let answer = peer.give("file.append", json!({"path": path}), b"evil").await;
        assert_eq!(answer.code(), "protected_path", "{path}");
    }
    let made = peer.ask("file.mkdir", json!({"path": "innocent/a/b", "recursive": true})).await;
    assert_eq!(made.code(), "protected_path");
    let moved = peer.ask("file.rename", json!({"from": "file", "to": "innocent/pre-push"})).await;
    assert_eq!(moved.code(), "protected_path");
    assert_eq!(case.read(".git/hooks/pre-commit"), "old");
    for path in ["alias/description", "bare.git/description"] {
        assert_eq!(peer.write(path, "x").await.code(), "protected_path", "{path}");
    }
    assert_eq!(peer.write("description", "x").await.code(), "ok", "the control");
    case.untouched();
}

/// A `config` that is written first must not become that of a git folder afterwards, by whatever request the
/// last name comes.
#[tokio::test]
async fn no_git_folder_is_made_around_what_was_written_before() {
    const NAMES: [&str; 3] = ["HEAD", "objects", "refs"];
    let case = Case::new();
    let mut peer = case.talk();
    for last in NAMES {
        let folder = format!("build/without-{last}");
        let at = |name: &str| format!("{folder}/{name}");
        let made = json!({"path": folder, "recursive": true});
        assert_eq!(peer.ask("file.mkdir", made).await.code(), "ok");
        assert_eq!(peer.write(&at("config"), "[core]\n fsmonitor = evil").await.code(), "ok");
        assert_eq!(peer.write(&at("spare/x"), "x").await.code(), "not_found");
        assert_eq!(peer.ask("file.mkdir", json!({"path": at("spare")})).await.code(), "ok");
        // Two of them are ordinary names, and stay so.
        for name in NAMES.iter().filter(|name| **name != last) {
            let answer = match *name {
                "HEAD" => peer.write(&at(name), "ref: refs/heads/main\n").await,
                _ => peer.ask("file.mkdir", json!({"path": at(name)})).await,
            };
            assert_eq!(answer.code(), "ok", "{name} {}", answer.reply);
        }
        case.link(&folder, &format!("link-{last}"));
        for path in [at(last), format!("link-{last}/{last}"), at(&last.to_ascii_lowercase())] {
            for answer in [
                peer.write(&path, "x").await,
                peer.give("file.write", json!({"path": path, "exclusive": true}), b"x").await,
                peer.give("file.append", json!({"path": path}), b"x").await,
                peer.ask("file.mkdir", json!({"path": path})).await,
                peer.ask("file.mkdir", json!({"path": path, "recursive": true})).await,
                peer.ask("file.mkdir", json!({"path": format!("{path}/a"), "recursive": true}))
                    .await,
                peer.ask("file.rename", json!({"from": "file", "to": path})).await,
                peer.ask("file.rename", json!({"from": at("spare"), "to": path})).await,
            ] {
                assert_eq!(answer.code(), "protected_path", "{path} {}", answer.reply);
            }
        }
        assert!(!case.root.join(at(last)).exists());
        // What is there may be replaced, other names may come, and the same one may come elsewhere.
        let free = format!("free/{last}");
        for path in [at("config"), at("heads"), free] {
            std::fs::create_dir_all(case.root.join("free")).unwrap();
            let _ = peer.ask("file.remove", json!({"path": path, "force": true})).await;
            assert_eq!(peer.write(&path, "x").await.code(), "ok", "{path}");
            assert_eq!(peer.ask("file.remove", json!({"path": path})).await.code(), "ok");
        }
    }
    // `commondir` says where two of them are.
    for (first, last) in [("HEAD", "commondir"), ("commondir", "HEAD")] {
        std::fs::create_dir(case.root.join(format!("tree-{last}"))).unwrap();
        assert_eq!(peer.write(&format!("tree-{last}/{first}"), "x").await.code(), "ok");
        assert_eq!(peer.write(&format!("tree-{last}/{first}"), "y").await.code(), "ok");
        assert_eq!(peer.write(&format!("tree-{last}/{last}"), "x").await.code(), "protected_path");
    }
    case.untouched();
}

/// A body may be under way while the other names come, and requests run side by side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_git_folder_is_made_by_requests_side_by_side() {
    let case = Case::new();
    case.write("slow/config", "evil");
    let mut peer = case.talk();
    peer.started().await;
    let head = peer.begin("file.write", &json!({"path": "slow/HEAD"}), true).await;
    for name in ["objects", "refs"] {
        let answer = peer.ask("file.mkdir", json!({"path": format!("slow/{name}")})).await;
        assert_eq!(answer.code(), "ok");
    }
    peer.send(Kind::End, head, b"").await;
    assert_eq!(peer.answer(head).await.code(), "protected_path");
    for round in 0..50 {
        case.write(&format!("r{round}/config"), "evil");
        for name in ["HEAD", "objects", "refs"] {
            peer.begin("file.mkdir", &json!({"path": format!("r{round}/{name}")}), false).await;
        }
        let mut refused = 0;
        for _ in 0..3 {
            let reply = peer.frame().await.unwrap();
            refused +=
                usize::from(String::from_utf8_lossy(&reply.payload).contains("\"protected_path\""));
        }
        assert_eq!(refused, 1, "{round}");
        assert_eq!(std::fs::read_dir(case.root.join(format!("r{round}"))).unwrap().count(), 3);
    }
    case.untouched();
}

/// Who breaks a git folder, writes its `config` and mends it has gained nothing; without that it stays whole.
#[tokio::test]
async fn a_git_folder_is_not_mended_around_a_new_config() {
    let case = Case::new();
    for path in ["bare/HEAD", "bare/objects/x", "bare/refs/x", "bare/config"] {
        case.write(path, "old");
    }
    let mut peer = case.talk();
    assert_eq!(peer.write("bare/HEAD", "new").await.code(), "protected_path");
    assert_eq!(peer.write("bare/config", "evil").await.code(), "protected_path");
    assert_eq!(peer.write("bare/CONFIG", "evil").await.code(), "protected_path");
    let away = json!({"from": "bare/HEAD", "to": "head-for-later"});
    assert_eq!(peer.ask("file.rename", away).await.code(), "protected_path");
    // Something else breaks it.
    std::fs::rename(case.root.join("bare/HEAD"), case.root.join("head-for-later")).unwrap();
    assert_eq!(peer.write("bare/config", "evil").await.code(), "ok");
    let back = json!({"from": "head-for-later", "to": "bare/HEAD"});
    assert_eq!(peer.ask("file.rename", back).await.code(), "protected_path");
    assert_eq!(peer.write("bare/HEAD", "x").await.code(), "protected_path");
    case.untouched();
}

/// What a command changes in a git folder is compared with the index and the commits as a whole. A tool that
/// writes one name of it would get past that.
#[tokio::test]
async fn nothing_is_written_in_a_git_folder() {
    let case = Case::new();
    repository(&case);
    case.write("module/.git", "gitdir: ../.git/modules/module\n");
    for path in ["bare/HEAD", "bare/objects/x", "bare/refs/x", "linked/HEAD", "linked/commondir"] {
        case.write(path, "old");
    }
    case.write("plain/HEAD", "old");
    let mut peer = case.talk();
    for path in [
        ".git/refs/heads/main",
        ".git/refs/heads/new",
        ".git/packed-refs",
        ".git/logs/HEAD",
        ".git/index",
        ".git/HEAD",
        ".git/MERGE_AUTOSTASH",
        ".git/objects/aa/bb",
        ".git/.npmrc",
        ".GIT/packed-refs",
        "sub/.git/packed-refs",
        "none/.git/objects",
        "bare",
        "bare/packed-refs",
        "bare/refs/x",
        "linked/index",
    ] {
        refused(&mut peer, path).await;
    }
    let answer = peer.write(".git/refs/heads/main", "x").await;
    assert_eq!(answer.reply["error"]["suggestion"], "run a git command for it", "{}", answer.reply);
    assert_eq!(case.read(".git/refs/heads/main").len(), 41);
    // Reading goes on, and so does writing beside them.
    assert_eq!(peer.read(".git/HEAD").await.text(), "ref: refs/heads/main\n");
    for path in ["packed-refs", "plain/HEAD", "plain/packed-refs", "refs", "index"] {
        assert_eq!(peer.write(path, "x").await.code(), "ok", "{path}");
    }
    case.untouched();
}

/// The apply of a call, or a tool of another process, may bring the one half of a repository while a request is
/// about to bring the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_for_the_turn_of_others_and_is_judged_after_it() {
    let case = Case::new();
    case.write("x/config", "evil");
    std::fs::create_dir(case.root.join("y")).unwrap();
    let state = case.authority.state.clone().unwrap();
    let folders = [case.root.clone()];
    let turn = Turn::take(&state, &folders, Duration::ZERO).unwrap();
    let mut peers = [case.talk(), case.talk(), case.talk(), case.talk()];
    let mut ids = Vec::new();
    for (peer, (method, params)) in peers.iter_mut().zip([
        ("file.mkdir", json!({"path": "x/refs"})),
        ("file.append", json!({"path": "x/refs"})),
        ("file.rename", json!({"from": "file", "to": "x/refs"})),
        ("file.mkdir", json!({"path": "y/refs"})),
    ]) {
        ids.push(peer.begin(method, &params, false).await);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    // Neither the attacks nor the control have happened.
    assert!(case.root.join("file").exists());
    assert!(!case.root.join("x/refs").exists() && !case.root.join("y/refs").exists());
    case.write("x/HEAD", "ref: refs/heads/main\n");
    std::fs::create_dir(case.root.join("x/objects")).unwrap();
    drop(turn);
    let mut codes = Vec::new();
    for (peer, id) in peers.iter_mut().zip(ids) {
        codes.push(peer.answer(id).await.code().to_owned());
    }
    assert_eq!(codes, ["protected_path", "protected_path", "protected_path", "ok"]);
    assert!(!case.root.join("x/refs").exists() && case.root.join("y/refs").exists());
    case.untouched();
}
