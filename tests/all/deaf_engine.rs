//! Engines that take a connection and then say nothing: the time of a call ends it all the same.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Home, Ran};
use crate::tools::{told, write_yaml};

/// Far more than the calls below may take, and far less than an engine's answer is awaited for.
const SOON: Duration = Duration::from_secs(60);

/// What an engine answers before it falls silent.
#[derive(Clone, Copy, Debug)]
enum Answers {
    /// Nothing: it does not even read.
    Nothing,
    /// Who it is. Any other request is not read.
    Pings,
    /// The head of each answer, and never the rest.
    Heads,
}

/// A silent engine. It is there as long as the test's process.
struct DeafEngine(tempfile::TempDir);

impl DeafEngine {
    fn new(answers: Answers) -> Self {
        let engine = Self(tempfile::tempdir().expect("a folder"));
        let listener = UnixListener::bind(engine.0.path().join("sock")).expect("a socket");
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for mut client in listener.incoming().map_while(Result::ok) {
                match answers {
                    Answers::Nothing => {}
                    Answers::Pings => {
                        answer(&mut client, None);
                    }
                    Answers::Heads => {
                        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
                        answer(&mut client, Some(head));
                    }
                }
                // Nobody is hung up on.
                kept.push(client);
            }
        });
        engine
    }

    fn run(&self, home: &Home, words: &[&str]) -> (Value, Ran) {
        let mut command = home.runner();
        let endpoint = format!("unix://{}", self.0.path().join("sock").display());
        command.env("DOCKER_HOST", endpoint).arg("--json").args(words);
        let begun = Instant::now();
        let ran = Ran::from(command.output().expect("the program starts"));
        assert!(begun.elapsed() < SOON, "{words:?} took {:?}", begun.elapsed());
        (ran.json(), ran)
    }
}

/// Answers a ping as an engine does, and any other request with `other`.
fn answer(client: &mut UnixStream, other: Option<&str>) {
    let mut head = [0; 6];
    if client.read_exact(&mut head).is_err() {
        return;
    }
    let pong = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nOstype: linux\r\nServer: Docker/20.10.24 (linux)\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK";
    // Every other path begins with a version.
    if head == *b"GET /_" {
        let _ = client.write_all(pong.as_bytes());
        let _ = client.shutdown(std::net::Shutdown::Write);
    } else if let Some(other) = other {
        let _ = client.write_all(other.as_bytes());
    }
}

#[test]
fn the_time_of_a_command_ends_it_whatever_the_engine_does_not_do() {
    for answers in [Answers::Nothing, Answers::Pings, Answers::Heads] {
        let (home, engine) = (Home::new(), DeafEngine::new(answers));
        for policy in ["readonly", "develop"] {
            let words = ["exec", "--policy", policy, "--timeout", "2s", "--", "echo", "hi"];
            let (result, ran) = engine.run(&home, &words);
            assert_eq!(
                told(&result),
                ("timeout", 124, "timeout"),
                "{answers:?} {policy}: {result}"
            );
            assert_eq!(ran.code, Some(124));
            let suggestion = result["error"]["suggestion"].as_str().unwrap();
            assert!(suggestion.contains("--timeout"), "{suggestion}");
        }
        // Its end is recorded, and nothing counts as running any more.
        let calls = home.run(["--json", "audit", "list"]).json();
        assert_eq!(calls["calls"][0]["status"], "timeout", "{calls}");
        assert_eq!(home.run(["--json", "ps"]).json()["calls"], serde_json::json!([]));
    }
}

#[test]
fn the_time_of_a_tool_ends_it_whatever_the_engine_does_not_do() {
    let (home, engine) = (Home::new(), DeafEngine::new(Answers::Pings));
    write_yaml(&home, "t", "", "export async function execute() { return 'awake'; }");
    let module = "export const tool = { name: 'm', description: 'A module.', parameters: { type: 'object' }, execute: async () => 1 };";
    fs::write(home.path("project/.runner/tools/m.tool.ts"), module).unwrap();
    // A module has to be asked what it is before it can run.
    for name in ["t", "m"] {
        let (result, ran) = engine.run(&home, &["tool", "run", name, "--yes", "--timeout", "2s"]);
        assert_eq!(told(&result), ("timeout", 124, "timeout"), "{name}: {result}");
        assert_eq!(ran.code, Some(124), "{}", ran.err);
    }
    // The control: a tool that needs no engine works.
    let (result, ran) = engine.run(
        &home,
        &["tool", "run", "validate_json", "--yes", "--timeout", "30s", "--args", CONTROL],
    );
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
}

/// Arguments of a tool that is part of the program.
const CONTROL: &str = r#"{"data": "1", "schema": {"type": "integer"}}"#;

#[test]
fn who_cancels_a_call_does_not_wait_for_the_engine() {
    let (home, engine) = (Home::new(), DeafEngine::new(Answers::Pings));
    let mut command = home.runner();
    let endpoint = format!("unix://{}", engine.0.path().join("sock").display());
    command.env("DOCKER_HOST", endpoint).args(["--json", "exec", "--", "echo", "hi"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("the program starts");
    let begun = Instant::now();
    // A call that waits for its engine is in the records.
    while home.run(["--json", "ps"]).json()["calls"].as_array().is_none_or(Vec::is_empty) {
        assert!(begun.elapsed() < SOON, "the call does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(
        (ran.code, told(&ran.json()).0),
        (Some(130), "cancelled"),
        "{} {}",
        ran.out,
        ran.err
    );
}
