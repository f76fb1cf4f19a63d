//! Commands and the net: requests arrive whole, answers travel, cancelling reaches them.

use super::*;
use crate::codes::Code;
use crate::sandbox::cancel::Cancel;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Echoes what it is given; `sleep` waits to be cancelled.
#[derive(Default)]
struct Echo {
    ended: Arc<AtomicUsize>,
}

impl Exec for Echo {
    fn run(&self, mut request: ExecRequest) -> Boxed<'_, Result<ExecReply, Refusal>> {
        Box::pin(async move {
            let words = match &request.command {
                Command::Argv(argv) => argv.join(" "),
                Command::Line(line) => line.clone(),
            };
            if words == "deny" {
                return Err(Refusal::new(Code::AccessDenied, "no rule allows `deny`"));
            }
            if words == "sleep" {
                wait(&mut request.cancel).await;
                self.ended.fetch_add(1, Ordering::SeqCst);
                return Err(Refusal::new(Code::Cancelled, "ended"));
            }
            let mut stdin = Vec::new();
            while let Some(piece) = request.stdin.next().await? {
                stdin.extend(piece);
            }
            let about = format!("{words} in {} with {:?}", request.cwd.display(), request.env);
            Ok(ExecReply {
                exit_code: 3,
                status: "failed",
                signal: None,
                stdout: stdin,
                stderr: about.into_bytes(),
                truncated: false,
                duration: Duration::from_millis(5),
                call: "c-1".to_owned(),
            })
        })
    }
}

async fn wait(cancel: &mut Cancel) {
    cancel.asked().await;
}

struct Site;

impl Net for Site {
    fn fetch(&self, request: FetchRequest) -> Boxed<'_, Result<Fetched, Refusal>> {
        Box::pin(async move {
            let mut body = Vec::new();
            if let Some(mut sent) = request.body {
                while let Some(piece) = sent.next().await? {
                    body.extend(piece);
                }
            }
            if request.url.ends_with("/private") {
                return Err(Refusal::new(Code::NetAddress, "a private address"));
            }
            Ok(Fetched {
                status: 201,
                status_text: "Created".to_owned(),
                url: request.url,
                headers: vec![("a".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())],
                redirected: request.redirect == Redirect::Follow,
                body: Body::of(body),
            })
        })
    }
}

#[tokio::test]
async fn commands_run_with_what_was_resolved_and_their_output_travels() {
    let mut case = Case::new();
    case.authority.exec = Arc::new(Echo::default());
    case.write("real/x", "");
    case.link("real", "link");
    case.link(&case.outside, "out");
    let mut peer = case.talk();
    let input = vec![7; 600_000];
    let params =
        json!({"command": "a", "args": ["b c"], "cwd": "link", "env": {"K": "v"}, "timeoutMs": 9});
    let answer = peer.give("exec.run", params, &input).await;
    let about = format!("a b c in {} with [(\"K\", \"v\")]", case.root.join("real").display());
    assert_eq!(
        answer.ok(),
        &json!({
            "exitCode": 3, "status": "failed", "stdoutBytes": input.len(), "stderrBytes": about.len(),
            "truncated": false, "durationMs": 5, "call": "c-1",
        })
    );
    assert!(answer.bytes == [input, about.into_bytes()].concat());
    assert_eq!(peer.ask("exec.run", json!({"command": "deny"})).await.code(), "access_denied");
    for (cwd, code) in [
        ("out", "path_escape"),
        ("..", "path_escape"),
        ("file", "not_a_directory"),
        ("/proc", "special_file"),
    ] {
        let answer = peer.ask("exec.run", json!({"line": "ls", "cwd": cwd})).await;
        assert_eq!(answer.code(), code, "{cwd}");
    }
    let served = peer.end().await;
    assert_eq!(served.requests[0].call.as_deref(), Some("c-1"));
    assert_eq!(served.requests[0].object, "a 'b c'");
}

/// A cancelled command ends in order, and so does one that nobody waits for.
#[tokio::test]
async fn commands_end_when_they_are_cancelled_or_the_call_is_over() {
    let mut case = Case::new();
    let ended = Arc::new(AtomicUsize::new(0));
    case.authority.exec = Arc::new(Echo { ended: Arc::clone(&ended) });
    let mut peer = case.talk();
    let id = peer.begin("exec.run", &json!({"command": "sleep"}), false).await;
    assert_eq!(peer.read_beside(id).await, "inside");
    peer.send(Kind::Cancel, id, b"").await;
    assert_eq!(peer.answer(id).await.code(), "cancelled");
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    peer.begin("exec.run", &json!({"command": "sleep"}), false).await;
    let id = peer.begin("file.read", &json!({"path": "file"}), false).await;
    peer.answer(id).await;
    assert!(peer.end().await.end.is_ok());
    assert_eq!(ended.load(Ordering::SeqCst), 2);
}

/// More commands than may run at once wait for each other; files do not wait for them.
#[tokio::test]
async fn commands_wait_for_commands_and_nothing_else_does() {
    let mut case = Case::new();
    case.authority.exec = Arc::new(Echo::default());
    let mut peer = case.talk();
    let sleeping: Vec<u32> = {
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(peer.begin("exec.run", &json!({"command": "sleep"}), false).await);
        }
        ids
    };
    for _ in 0..20 {
        assert_eq!(peer.read("file").await.text(), "inside");
    }
    for id in sleeping {
        peer.send(Kind::Cancel, id, b"").await;
        assert_eq!(peer.answer(id).await.code(), "cancelled");
    }
    assert!(peer.end().await.end.is_ok());
}

#[tokio::test]
async fn fetches_carry_bodies_both_ways() {
    let mut case = Case::new();
    case.authority.net = Arc::new(Site);
    let mut peer = case.talk();
    let params = json!({"method": "POST", "url": "https://a.example/x", "headers": [["k", "v"]]});
    let answer = peer.give("net.fetch", params, b"sent").await;
    assert_eq!(answer.bytes, b"sent");
    assert_eq!(
        answer.ok(),
        &json!({
            "status": 201, "statusText": "Created", "url": "https://a.example/x",
            "headers": [["a", "1"], ["a", "2"]], "redirected": true,
        })
    );
    let params = json!({"method": "GET", "url": "https://a.example/private", "redirect": "error"});
    assert_eq!(peer.ask("net.fetch", params).await.code(), "net_address");
    // Without the powers, both are refused.
    let mut peer = Case::new().talk();
    let params = json!({"method": "GET", "url": "https://a.example/"});
    assert_eq!(peer.ask("net.fetch", params).await.code(), "net_denied");
    assert_eq!(peer.ask("exec.run", json!({"command": "ls"})).await.code(), "access_denied");
}

impl Peer {
    /// Reads the file while another request is under way.
    async fn read_beside(&mut self, other: u32) -> String {
        assert_ne!(other, 0);
        self.read("file").await.text().to_owned()
    }
}

/// Where a command or a search starts: what is denied is denied whether it is there or not, and a folder that
/// merely cannot be read can still be looked through.
#[tokio::test]
async fn places_to_start_from_tell_nothing_of_what_is_denied() {
    const NARROW: &str = r#"
policy: 1
name: narrow
files:
  read: ["**/package.json"]
  deny: ["secret/**", "**/.env"]
"#;
    let mut case = Case::with(NARROW);
    case.authority.exec = Arc::new(Echo::default());
    for path in ["package.json", "a/package.json", "a/b/package.json", "a/other", "secret/in/x"] {
        case.write(path, "");
    }
    case.write("secret/package.json", "");
    case.write(".ssh/x", "");
    std::fs::create_dir(case.root.join("a/.env")).unwrap();
    case.link("secret/in", "way");
    let mut peer = case.talk();
    let mut start = async |cwd: &str| {
        let glob = peer.ask("file.glob", json!({"pattern": "**", "cwd": cwd})).await;
        let exec = peer.ask("exec.run", json!({"command": "ls", "cwd": cwd})).await;
        assert_eq!(glob.code(), exec.code(), "{cwd}");
        glob
    };
    for (there, not) in [
        ("secret", "secret/none"),
        ("secret/in", "secret/in/none"),
        ("secret/in/x", "secret/none/x"),
        ("a/.env", "a/b/.env"),
        ("a/../secret", "secret/../secret/none"),
        ("./secret/in/", "secret//none"),
        (".ssh", "a/.ssh"),
        ("way", "secret/none"),
    ] {
        assert_eq!(start(there).await.code(), "access_denied", "{there}");
        assert_eq!(start(not).await.code(), "access_denied", "{not}");
    }
    // A file that cannot be read is not told from nothing.
    assert_eq!(start("a/other").await.reply["error"]["code"], "not_found");
    assert_eq!(start("a/nothing").await.reply["error"]["code"], "not_found");
    // The controls: places that are not denied, and the search finds what may be read, and no more.
    for (cwd, paths) in [
        (".", json!(["a/b/package.json", "a/package.json", "package.json"])),
        ("a", json!(["b/package.json", "package.json"])),
        ("a/b/", json!(["package.json"])),
    ] {
        assert_eq!(start(cwd).await.ok()["paths"], paths, "{cwd}");
    }
    assert_eq!(start("a/package.json").await.code(), "not_a_directory");
    assert_eq!(start("none/package.json").await.code(), "not_found");
}
