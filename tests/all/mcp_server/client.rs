//! Clients without a library: one at the standard streams, and one over HTTP.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Home;

/// How long an answer may take. A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server at the end of our pipes.
pub struct Server {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    early: VecDeque<Value>,
    next: i64,
}

/// The first message of a client of this version.
pub fn hello(version: &str, capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "raw", "version": "1"},
    }})
}

impl Server {
    /// A server with these further arguments, and a client that has said hello.
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, &json!({}))
    }

    /// The same for a client that can do this.
    pub fn start_with(home: &Home, args: &[&str], capabilities: &Value) -> Self {
        let mut server = Self::silent(home, args);
        server.send(&hello("2025-11-25", capabilities));
        let said = server.answer(0);
        assert_eq!(said["result"]["serverInfo"]["name"], "runner", "{said}");
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    /// A server whose client has said nothing yet.
    pub fn silent(home: &Home, args: &[&str]) -> Self {
        let mut command: Command = home.runner();
        command.args(["mcp", "serve", "--policy", "own"]).args(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, early: VecDeque::new(), next: 1 }
    }

    pub fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next message, whatever it is.
    pub fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server answers");
        serde_json::from_str(&line).expect("JSON")
    }

    /// The first message that this is true of; others wait.
    pub fn wait_for(&mut self, mut is: impl FnMut(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&mut is) {
            return self.early.remove(at).unwrap();
        }
        loop {
            let message = self.message();
            if is(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: i64) -> Value {
        self.wait_for(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Sends a request; its id.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The result of a request.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// The result of a tool.
    pub fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// The result of a line.
    pub fn line(&mut self, line: &str) -> Value {
        self.call("run_command", json!({"command": line}))
    }

    /// Closes our end.
    pub fn leave(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.leave();
        let _ = self.child.wait();
    }
}

/// The text of a result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// A server over HTTP with a token for `web`.
pub struct Web {
    child: Child,
    pub address: String,
    pub token: String,
}

/// An answer of HTTP.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Web {
    pub fn start(home: &Home, args: &[&str]) -> Self {
        let token = new_token(home, "web");
        let mut command = home.runner();
        command.args(["mcp", "serve", "--policy", "own", "--http", "127.0.0.1:0"]).args(args);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        err.read_line(&mut said).unwrap();
        let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{said}")).to_owned();
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        Self { child, address, token }
    }

    /// A request with these headers beside the usual ones and a token.
    pub fn post(&self, token: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut text = format!(
            "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        if !token.is_empty() {
            text.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        // A server may refuse before it has read everything.
        let _ = stream.write_all(body.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = whole.split_once("\r\n\r\n").unwrap_or((&whole, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Answered { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The answer of the protocol without sessions.
    pub fn modern(&self, token: &str, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "2"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or("").to_owned();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        let answered = self.post(token, &headers, &body.to_string());
        answered.message().unwrap_or_else(|| panic!("{answered:?}"))
    }
}

impl Answered {
    /// The answer among the events, or the body itself.
    pub fn message(&self) -> Option<Value> {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.find(Value::is_object)
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A token for a client.
pub fn new_token(home: &Home, name: &str) -> String {
    let made = home.run(["mcp", "token", "new", name]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    made.out.trim().to_owned()
}
