//! The broker against real files, over a stream, as the runtime would speak to it.

mod client;
mod files;
mod links;
mod powers;
mod protected;
mod race;
mod spelling;
mod streams;
mod talk;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runner_policy::{Effective, Origin, PolicySet, Source, parse};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use super::frame::{CHUNK_MAX, HEADER, Kind, WINDOW, encode};
use super::*;
use crate::undo::KeepNothing;
use crate::workspace::Workspace;

/// Reads and writes everything but what is denied.
pub(super) const OPEN: &str = r#"
policy: 1
name: open
files:
  read: ["**"]
  write: ["**", "!frozen/**"]
  readonly: ["Cargo.lock"]
  deny: ["**/.env", "secret/**"]
"#;

/// A workspace beside a folder that is not part of it.
pub(super) struct Case {
    _dir: tempfile::TempDir,
    pub root: PathBuf,
    pub outside: PathBuf,
    pub authority: Authority,
}

/// What must never be seen inside.
pub(super) const CANARY: &str = "canary-5f1c";

impl Case {
    pub(super) fn new() -> Self {
        Self::with(OPEN)
    }

    pub(super) fn with(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, outside) = (top.join("dir"), top.join("dir2"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), CANARY).unwrap();
        std::fs::write(root.join("file"), "inside").unwrap();
        let workspace =
            Workspace::open_at(&root, &root, &crate::environment::Environment::default()).unwrap();
        let authority = Authority {
            workspace: Arc::new(workspace),
            policy: Arc::new(policy(text)),
            limits: BrokerLimits {
                calls: 1_000_000,
                bytes: 1 << 34,
                file_size: 1 << 30,
                free_space: 0,
                wall: Duration::from_secs(600),
            },
            exec: Arc::new(NoExec),
            net: Arc::new(NoNet),
            removals: Arc::new(FreeRemovals),
            keep: Arc::new(KeepNothing),
            around: Arc::new(|| Ok(crate::stage::around::Around::default())),
            state: Some(top.join("state")),
        };
        Self { _dir: dir, root, outside, authority }
    }

    pub(super) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(super) fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.root.join(path)).unwrap();
    }

    pub(super) fn talk(&self) -> Peer {
        Peer::new(self.authority.clone())
    }

    /// Nothing outside has changed, and no temporary file is left.
    pub(super) fn untouched(&self) {
        let mut names: Vec<_> = std::fs::read_dir(&self.outside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["file"]);
        assert_eq!(std::fs::read_to_string(self.outside.join("file")).unwrap(), CANARY);
        assert_eq!(temp_files(&self.root), Vec::<PathBuf>::new());
    }
}

fn temp_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for entry in entries.map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with(".runner-temp") {
            found.push(entry.path());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(temp_files(&entry.path()));
        }
    }
    found
}

pub(super) fn policy(text: &str) -> Effective {
    let parsed = parse(Source { file: "t.yml", text, origin: Origin::Managed }).unwrap();
    let name = parsed.name.clone();
    let mut set = PolicySet::default();
    set.add(parsed).unwrap();
    set.effective(&name).unwrap()
}

pub(super) fn job() -> Job {
    Job {
        mode: Mode::Run,
        form: Form::Yaml,
        name: "t".to_owned(),
        file: "t.yml".to_owned(),
        args: Value::Null,
        env: std::collections::BTreeMap::new(),
        config: Map::new(),
        conversation: None,
        workspace: "/w".to_owned(),
        attempt: 1,
        code: vec![b'x'; 100_000],
    }
}

/// A frame from the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostFrame {
    pub kind: u8,
    pub id: u32,
    pub payload: Vec<u8>,
}

/// The next frame from the host; `None` at the end.
pub(super) async fn host_frame(stream: &mut DuplexStream) -> Option<HostFrame> {
    let mut head = [0; HEADER];
    stream.read_exact(&mut head).await.ok()?;
    let [l0, l1, l2, l3, kind, i0, i1, i2, i3] = head;
    let mut payload = vec![0; u32::from_le_bytes([l0, l1, l2, l3]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some(HostFrame { kind, id: u32::from_le_bytes([i0, i1, i2, i3]), payload })
}

/// What a request came to.
#[derive(Debug)]
pub(super) struct Answer {
    pub bytes: Vec<u8>,
    pub reply: Value,
}

impl Answer {
    pub(super) fn ok(&self) -> &Value {
        self.reply.get("ok").unwrap_or_else(|| panic!("refused: {}", self.reply))
    }

    /// The code of the refusal, or `ok`.
    pub(super) fn code(&self) -> &str {
        self.reply.pointer("/error/code").map_or("ok", |code| code.as_str().unwrap())
    }

    pub(super) fn text(&self) -> &str {
        self.ok();
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

/// What a tool told.
#[derive(Default)]
pub(super) struct Told {
    pub logs: Mutex<Vec<Log>>,
    pub progress: Mutex<Vec<Progress>>,
    pub requests: Mutex<Vec<Brokered>>,
}

impl Events for Told {
    fn log(&self, log: Log) {
        self.logs.lock().unwrap().push(log);
    }
    fn progress(&self, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }
    fn request(&self, request: &Brokered) {
        self.requests.lock().unwrap().push(request.clone());
    }
}

/// The runtime's end of a talk.
pub(super) struct Peer {
    pub stream: DuplexStream,
    pub told: Arc<Told>,
    stop: Option<tokio::sync::oneshot::Sender<String>>,
    serving: JoinHandle<Served>,
    last: u32,
}

impl Peer {
    pub(super) fn new(authority: Authority) -> Self {
        let (stream, host) = tokio::io::duplex(256 * 1024);
        let told = Arc::new(Told::default());
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let events: Arc<dyn Events> = told.clone();
        let serving = tokio::spawn(async move {
            let stop = async move {
                match stopped.await {
                    Ok(reason) => reason,
                    Err(_) => std::future::pending().await,
                }
            };
            serve(host, job(), authority, events, stop).await
        });
        Self { stream, told, stop: Some(stop), serving, last: 0 }
    }

    pub(super) fn stop(&mut self, reason: &str) {
        self.stop.take().unwrap().send(reason.to_owned()).unwrap();
    }

    pub(super) async fn send(&mut self, kind: Kind, id: u32, payload: &[u8]) {
        self.raw(&encode(kind.number(), id, payload)).await;
    }

    /// Sends bytes; a host that has hung up is seen by who reads.
    pub(super) async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(super) async fn frame(&mut self) -> Option<HostFrame> {
        host_frame(&mut self.stream).await
    }

    /// Reads the job and its code.
    pub(super) async fn started(&mut self) -> (Value, Vec<u8>) {
        let start = self.frame().await.unwrap();
        assert_eq!((start.kind, start.id), (16, 0));
        let mut code = Vec::new();
        loop {
            let frame = self.frame().await.unwrap();
            match (frame.kind, frame.id) {
                (17, 0) => code.extend(frame.payload),
                (18, 0) => return (serde_json::from_slice(&start.payload).unwrap(), code),
                _ => panic!("{frame:?}"),
            }
        }
    }

    /// Sends a request, with a body if there is one; its id.
    pub(super) async fn begin(&mut self, method: &str, params: &Value, body: bool) -> u32 {
        self.last += 1;
        let request = json!({"method": method, "params": params, "body": body}).to_string();
        self.send(Kind::Request, self.last, request.as_bytes()).await;
        self.last
    }

    /// Reads until the reply of this request. Other requests' frames are an error.
    pub(super) async fn answer(&mut self, id: u32) -> Answer {
        let mut bytes = Vec::new();
        loop {
            let frame = self.frame().await.expect("the host hung up");
            if frame.id == 0 && [16, 17, 18].contains(&frame.kind) {
                continue;
            }
            assert_eq!(frame.id, id, "{frame:?}");
            match frame.kind {
                17 => bytes.extend(frame.payload),
                19 => {
                    let reply = serde_json::from_slice(&frame.payload).unwrap();
                    return Answer { bytes, reply };
                }
                20 => {}
                _ => panic!("{frame:?}"),
            }
        }
    }

    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Answer {
        let id = self.begin(method, &params, false).await;
        self.answer(id).await
    }

    /// A request with a body, sent within its credit.
    pub(super) async fn give(&mut self, method: &str, params: Value, body: &[u8]) -> Answer {
        let id = self.begin(method, &params, true).await;
        let mut credit = WINDOW as usize;
        for chunk in body.chunks(CHUNK_MAX) {
            while credit < chunk.len() {
                let frame = self.frame().await.expect("the host hung up");
                match (frame.kind, frame.id) {
                    (16..=18, 0) => {}
                    (20, of) if of == id => {
                        credit += u32::from_le_bytes(frame.payload.try_into().unwrap()) as usize;
                    }
                    (19, of) if of == id => {
                        let reply = serde_json::from_slice(&frame.payload).unwrap();
                        return Answer { bytes: Vec::new(), reply };
                    }
                    _ => panic!("{frame:?}"),
                }
            }
            credit -= chunk.len();
            self.send(Kind::Chunk, id, chunk).await;
        }
        self.send(Kind::End, id, b"").await;
        self.answer(id).await
    }

    pub(super) async fn read(&mut self, path: &str) -> Answer {
        self.ask("file.read", json!({"path": path})).await
    }

    pub(super) async fn write(&mut self, path: &str, content: &str) -> Answer {
        self.give("file.write", json!({"path": path}), content.as_bytes()).await
    }

    /// Sends a result and closes; how it went.
    pub(super) async fn end(mut self) -> Served {
        self.send(Kind::Result, 0, br#"{"value":null}"#).await;
        self.close().await
    }

    /// Closes the runtime's end; how it went.
    pub(super) async fn close(mut self) -> Served {
        let _ = self.stream.shutdown().await;
        // Whatever the host still says is taken from it.
        while self.frame().await.is_some() {}
        self.serving.await.unwrap()
    }

    /// Waits for the host to end the talk by itself.
    pub(super) async fn ended(mut self) -> Served {
        while self.frame().await.is_some() {}
        self.serving.await.unwrap()
    }
}

/// The code of what ended a talk.
pub(super) fn end_code(served: &Served) -> &'static str {
    use crate::error::Failure;
    served.end.as_ref().unwrap_err().code().as_str()
}
