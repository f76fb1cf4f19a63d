//! Foreign frames against the broker and a real folder: an answer or an error, never a panic; and whatever
//! is asked for, nothing outside the workspace, denied or protected is shown or changed, and no temporary
//! file is left.
#![no_main]

#[path = "../host/approvals.rs"]
mod approvals;
#[path = "../host/broker.rs"]
mod broker;
#[allow(dead_code, reason = "not every variable is used here")]
#[path = "../../../src/environment.rs"]
mod environment;
#[allow(dead_code, reason = "not every fault is used here")]
#[path = "../../../src/error.rs"]
mod error;
#[allow(dead_code, reason = "exit codes are not used here")]
#[path = "../../../src/exit.rs"]
mod exit;
#[path = "../host/ids.rs"]
mod ids;
#[path = "../host/sandbox.rs"]
mod sandbox;
#[path = "../host/stage.rs"]
mod stage;
#[path = "../host/sys.rs"]
mod sys;
#[path = "../host/undo.rs"]
mod undo;
#[path = "../host/workspace.rs"]
mod workspace;

/// What has files of its own below it, which are found from where it lies.
#[allow(dead_code, unused_imports, unused_macros, reason = "not everything is used here")]
#[path = "../../../src"]
mod host {
    pub mod codes;
    pub mod json;
}
use host::{codes, json};

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use runner_policy::{Effective, Origin, PolicySet, Source, parse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use broker::frame::{HEADER, encode};
use broker::{Authority, BrokerLimits, Form, Job, Mode, FreeRemovals, NoExec, NoNet, Silent};
use stage::around::Around;
use undo::KeepNothing;
use workspace::Workspace;

const OUTSIDE: &str = "canary-outside";
const DENIED: &str = "canary-denied";
const PROTECTED: &str = "old-hook";

const POLICY: &str = r#"
policy: 1
name: fuzz
files:
  read: ["**"]
  write: ["**", "!frozen/**"]
  readonly: ["Cargo.lock"]
  deny: ["**/.env", "secret/**"]
"#;

/// One byte chooses one of these, so that short inputs already make whole requests.
const METHODS: &[&str] = &[
    "file.read", "file.write", "file.append", "file.list", "file.stat", "file.remove", "file.rename", "file.mkdir",
    "file.glob", "exec.run", "net.fetch", "file.chmod",
];
const PARTS: &[&str] = &[
    "a", "b", "file", "sub", "..", ".", "", "out", "in", "hard", "pipe", ".env", "secret", "key", ".git", "hooks",
    "config", ".runner", ".GIT", "frozen", "Cargo.lock", "loop", "proc", "dangling", "..test", "%2e%2e", "\u{0}", "*",
    "**", "{a,b}", ".vscode", "x (deleted)",
];

static PLACE: LazyLock<(PathBuf, Arc<Effective>, tokio::runtime::Runtime)> = LazyLock::new(|| {
    let top = std::env::temp_dir().join(format!("runner-fuzz-{}", std::process::id()));
    let policy = parse(Source { file: "fuzz.yml", text: POLICY, origin: Origin::Managed });
    let mut set = PolicySet::default();
    set.add(policy.expect("our own policy")).expect("one policy");
    let policy = Arc::new(set.effective("fuzz").expect("it stands alone"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    (top, policy, runtime)
});

fuzz_target!(|data: &[u8]| {
    let [mode, rest @ ..] = data else { return };
    let (top, policy, runtime) = &*PLACE;
    prepare(top);
    let root = top.join("dir").canonicalize().expect("just made");
    let (frames, count) = if mode % 4 == 0 { (rest.to_vec(), None) } else { requests(rest, &root) };
    let workspace = Workspace::open_at(&root, &root, &environment::Environment::default()).expect("just made");
    let authority = Authority {
        workspace: Arc::new(workspace),
        policy: Arc::clone(policy),
        limits: BrokerLimits {
            calls: 200,
            bytes: 1 << 20,
            file_size: 1 << 16,
            free_space: 0,
            wall: Duration::from_secs(60),
        },
        exec: Arc::new(NoExec),
        net: Arc::new(NoNet),
        removals: Arc::new(FreeRemovals),
        keep: Arc::new(KeepNothing),
        around: Arc::new(|| Ok(Around::default())),
        state: Some(top.join("state")),
    };
    let said = runtime.block_on(async {
        let (peer, host) = tokio::io::duplex(1 << 16);
        let (mut from_host, mut to_host) = tokio::io::split(peer);
        let serving = tokio::spawn(broker::serve(host, job(), authority, Arc::new(Silent), std::future::pending()));
        let answered = tokio::sync::Notify::new();
        let sending = async {
            let _ = to_host.write_all(&frames).await;
            if count.is_some() {
                // What is not answered before the result is cancelled by it.
                answered.notified().await;
                let _ = to_host.write_all(&encode(6, 0, br#"{"value":null}"#)).await;
            }
            let _ = to_host.shutdown().await;
        };
        let mut said = Vec::new();
        let reading = async {
            let mut replies = 0;
            while let Some((kind, payload)) = host_frame(&mut from_host).await {
                said.extend(payload);
                replies += usize::from(kind == 19);
                if Some(replies) == count {
                    answered.notify_one();
                }
            }
            // The host has hung up: nothing more is answered.
            answered.notify_one();
        };
        let ((), (), served) = tokio::join!(sending, reading, serving);
        let served = served.expect("the broker must not panic");
        for request in &served.requests {
            said.extend(request.object.as_bytes());
        }
        said
    });
    check(top, &said);
});

/// Kind and payload of the next frame from the host.
async fn host_frame(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; HEADER];
    stream.read_exact(&mut head).await.ok()?;
    let [l0, l1, l2, l3, kind, ..] = head;
    let mut payload = vec![0; u32::from_le_bytes([l0, l1, l2, l3]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((kind, payload))
}

fn job() -> Job {
    Job {
        mode: Mode::Run,
        form: Form::Yaml,
        name: "fuzz".to_owned(),
        file: "fuzz.yml".to_owned(),
        args: serde_json::Value::Null,
        config: serde_json::Map::new(),
        env: std::collections::BTreeMap::new(),
        conversation: None,
        workspace: "/w".to_owned(),
        attempt: 1,
        code: Vec::new(),
    }
}

/// Requests made of small words, with ids in order and bodies that end, or are cancelled; and how many they are.
fn requests(data: &[u8], root: &Path) -> (Vec<u8>, Option<usize>) {
    let mut bytes = data.iter().copied();
    let mut frames = Vec::new();
    let mut id = 0;
    while let Some(choice) = bytes.next() {
        let mut next = || usize::from(bytes.next().unwrap_or(0));
        let method = METHODS[usize::from(choice) % METHODS.len()];
        let mut path = || {
            let shape = next();
            let parts: Vec<&str> = (0..1 + shape % 4).map(|_| PARTS[next() % PARTS.len()]).collect();
            match shape / 4 % 4 {
                0 => format!("{}/{}", root.display(), parts.join("/")),
                1 => format!("{}/", parts.join("/")),
                _ => parts.join("/"),
            }
        };
        let (one, other) = (path(), path());
        let flag = next();
        let params = match method {
            "file.read" => serde_json::json!({"path": one, "offset": flag % 3, "length": 100}),
            "file.write" => serde_json::json!({"path": one, "exclusive": flag % 4 == 0}),
            "file.remove" => serde_json::json!({"path": one, "recursive": flag % 2 == 0, "force": flag % 3 == 0}),
            "file.rename" => serde_json::json!({"from": one, "to": other}),
            "file.mkdir" => serde_json::json!({"path": one, "recursive": flag % 2 == 0}),
            "file.glob" => serde_json::json!({"pattern": one, "cwd": other, "dot": flag % 2 == 0}),
            "exec.run" => serde_json::json!({"command": "a", "cwd": one}),
            "net.fetch" => serde_json::json!({"method": "GET", "url": one}),
            _ => serde_json::json!({"path": one}),
        };
        let body = matches!(method, "file.write" | "file.append");
        id += 1;
        let request = serde_json::json!({"method": method, "params": params, "body": body}).to_string();
        frames.extend(encode(1, id, request.as_bytes()));
        if body {
            frames.extend(encode(2, id, b"written"));
            frames.extend(encode(if flag % 8 == 7 { 4 } else { 3 }, id, b""));
        }
    }
    (frames, Some(id as usize).filter(|count| *count > 0))
}

/// The same two folders for every input.
fn prepare(top: &Path) {
    let _ = fs::remove_dir_all(top);
    let made = || -> std::io::Result<()> {
        let (root, outside) = (top.join("dir"), top.join("dir2"));
        for folder in ["sub", "secret", "frozen", ".git/hooks", ".runner"] {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::create_dir_all(&outside)?;
        fs::write(outside.join("file"), OUTSIDE)?;
        fs::write(root.join("file"), "inside")?;
        fs::write(root.join("sub/file"), "inside")?;
        fs::write(root.join("sub/.env"), DENIED)?;
        fs::write(root.join("secret/key"), DENIED)?;
        for path in [".git/config", ".git/hooks/a", ".runner/config", "Cargo.lock", "frozen/file"] {
            fs::write(root.join(path), PROTECTED)?;
        }
        fs::hard_link(outside.join("file"), root.join("hard"))?;
        symlink(&outside, root.join("out"))?;
        symlink("sub", root.join("in"))?;
        symlink("loop", root.join("loop"))?;
        symlink("/proc/self", root.join("proc"))?;
        symlink("../dir2/new", root.join("dangling"))?;
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0)?;
        Ok(())
    };
    made().expect("two folders");
}

fn check(top: &Path, said: &[u8]) {
    for canary in [OUTSIDE, DENIED] {
        let leaked = said.windows(canary.len()).any(|window| window == canary.as_bytes());
        assert!(!leaked, "{canary} was told");
    }
    let (root, outside) = (top.join("dir"), top.join("dir2"));
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 1);
    assert_eq!(fs::read_to_string(outside.join("file")).expect("it is there"), OUTSIDE);
    for path in ["sub/.env", "secret/key"] {
        assert_eq!(fs::read_to_string(root.join(path)).expect("it is denied"), DENIED);
    }
    for path in [".git/config", ".git/hooks/a", ".runner/config", "Cargo.lock", "frozen/file"] {
        assert_eq!(fs::read_to_string(root.join(path)).expect("it is protected"), PROTECTED);
    }
    for folder in [".git/hooks", ".runner", "secret", "frozen"] {
        assert_eq!(fs::read_dir(root.join(folder)).expect("it is there").count(), 1, "{folder}");
    }
    assert!(!has_temp(&root), "a temporary file is left");
}

fn has_temp(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        entry.file_name().to_string_lossy().starts_with(".runner-temp")
            || (entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_temp(&entry.path()))
    })
}
