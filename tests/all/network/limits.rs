//! Bounds of a rule: connections, bytes, time.

use super::server::Server;
use super::{entry, net, out};

/// A client that says of each connection whether one byte came back.
const ONE_BYTE: &str = "import socket\ndef one():\n try:\n  s = socket.create_connection(('echo.example', 7)); s.send(b'x'); return s.recv(1)\n except OSError as e: return type(e).__name__\n";

fn bounded(limits: &str) -> (super::Net, Server) {
    let echo = Server::echo();
    let rule = format!(
        "  - {{ id: echo, for: commands, allow: \"connect echo.example:7\", at: \"127.0.0.1:{}\", limits: {{ {limits} }} }}\n",
        echo.port
    );
    (net(&rule), echo)
}

#[test]
fn a_rule_bounds_the_connections_of_a_call() {
    let (net, echo) = bounded("connections: 3");
    let result = net.python(&format!("{ONE_BYTE}print([one() for _ in range(5)])"));
    let expected = "[b'x', b'x', b'x', 'ConnectionResetError', 'ConnectionResetError']";
    assert_eq!(out(&result).trim(), expected, "{result:#}");
    assert_eq!(echo.accepted(), 3);
    let entry = entry(&result, "echo.example").unwrap();
    assert!(entry["why"].as_str().unwrap().contains("allows 3 connections"), "{entry}");
    assert_eq!((&entry["port"], &entry["rule"]), (&7.into(), &"web/echo".into()));
}

#[test]
fn a_rule_bounds_the_bytes_of_a_call() {
    let (net, _echo) = bounded("bytes: 1MiB");
    let program = "import socket\ns = socket.create_connection(('echo.example', 7)); got = 0\ntry:\n while True: s.sendall(b'x' * 4096); got += len(s.recv(65536))\nexcept OSError as e: print(type(e).__name__, got < 1 << 20)";
    let result = net.python(program);
    assert!(out(&result).trim().ends_with("Error True"), "{result:#}");
    assert_eq!(net.connections()[0]["code"], "limit_reached");
}

#[test]
fn a_rule_bounds_the_time_of_a_connection() {
    let (net, _echo) = bounded("time: 1s");
    let program = "import socket\ns = socket.create_connection(('echo.example', 7)); s.send(b'x'); s.recv(1)\ntry: print(s.recv(1))\nexcept OSError as e: print(type(e).__name__)";
    let result = net.python(program);
    assert_eq!(out(&result).trim(), "ConnectionResetError", "{result:#}");
    assert_eq!(net.connections()[0]["code"], "limit_reached");
}
