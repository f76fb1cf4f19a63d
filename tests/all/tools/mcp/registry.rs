//! Servers in the configuration, and their tools in the registry.

use std::fs;

use serde_json::json;

use super::{configure, home, refresh, row};
use crate::support::{Home, needs_engine};

#[test]
fn a_server_that_was_never_asked_is_told_and_nothing_is_started() {
    // No engine is there to start anything with.
    let home = home("honest", "");
    let none = |words: &[&str]| {
        let mut command = home.runner();
        crate::support::Ran::from(
            command.env("DOCKER_HOST", "unix:///nowhere").args(words).output().unwrap(),
        )
    };
    let ran = none(&["tool", "list"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("the server s was never asked")
            && ran.err.contains("runner mcp refresh s"),
        "{}",
        ran.err
    );
    let ran = none(&["tool", "run", "s__echo"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("runner mcp refresh s"), "{}", ran.err);
    let list = none(&["--json", "mcp", "list"]).json();
    assert_eq!(
        (&list["servers"][0]["name"], &list["servers"][0]["state"]),
        (&json!("s"), &json!("never"))
    );
    let ran = none(&["mcp", "list"]);
    assert!(
        ran.out.contains("never asked") && ran.out.contains("node server.mjs honest"),
        "{}",
        ran.out
    );
    let ran = none(&["mcp", "refresh", "other"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}

#[test]
fn a_repository_can_switch_a_server_off_and_define_none() {
    let home = Home::new();
    let project = home.path("project/.runner/config.yml");
    fs::write(&project, "mcp: { servers: { s: { command: [touch, /tmp/x] } } }\n").unwrap();
    for words in [["tool", "list"], ["mcp", "list"], ["mcp", "refresh"]] {
        let ran = home.run(words);
        assert_eq!(ran.code, Some(125), "{words:?}: {} {}", ran.out, ran.err);
        assert!(
            ran.err.contains("wrong_layer") && ran.err.contains(".runner/config.yml:1"),
            "{}",
            ran.err
        );
    }
    configure(&home, "honest", "");
    fs::write(&project, "mcp: { servers: { s: { enabled: false } } }\n").unwrap();
    let list = home.run(["--json", "mcp", "list"]).json();
    assert_eq!(list["servers"][0]["state"], "off", "{list}");
    assert_eq!(list["servers"][0]["layer"], "project", "who switched it off");
    let ran = home.run(["mcp", "refresh", "s"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    fs::remove_file(&project).unwrap();
    let list = home.run(["--json", "mcp", "list"]).json();
    assert_eq!(list["servers"][0]["state"], "never", "the control");
}

#[test]
fn tools_of_servers_are_tools_of_the_registry() {
    needs_engine();
    let home = home("honest", "      tools: [echo, add]\n");
    refresh(&home);
    let echo = row(&home, "s__echo");
    assert_eq!(
        (&echo["source"], &echo["state"], &echo["securityTier"]),
        (&json!("mcp"), &json!("ready"), &json!("execute"))
    );
    let list = home.run(["tool", "list"]);
    let line = list.out.lines().find(|line| line.contains("s__echo")).unwrap();
    assert!(line.contains("[MCP]") && line.contains("Says what it is told"), "{line}");
    assert!(!list.out.contains("s__fail"), "only what the definition takes");
    let info = home.run(["tool", "info", "s__add"]);
    for part in [
        "[MCP]",
        "execute, high risk",
        "asked for each call",
        "a: number",
        "node server.mjs honest",
    ] {
        assert!(info.out.contains(part), "{part}: {}", info.out);
    }
    let json = home.run(["--json", "tool", "info", "s__add"]).json();
    assert_eq!(json["mcp"], json!({ "server": "s", "tool": "add" }), "{json}");
    let found = home.run(["--json", "tool", "search", "adds numbers"]).json();
    assert_eq!(found["tools"][0]["name"], "s__add", "{found}");
    let check = home.run(["--json", "tool", "check", "s__add"]).json();
    assert_eq!(check["passed"], true, "{check}");
    let tokens = home.run(["--json", "tool", "tokens"]).json();
    assert!(tokens["tools"].to_string().contains("s__add"), "{tokens}");
    let export = home.run(["--json", "tool", "export", "s__add", "--format", "anthropic"]).json();
    assert_eq!(export[0]["name"], "s__add", "{export}");
    let off = home.run(["tool", "disable", "s__add"]);
    assert_eq!(off.code, Some(0), "{}", off.err);
    assert_eq!(row(&home, "s__add")["state"], "off");
    assert_eq!(
        home.run(["tool", "run", "s__add", "--yes", "--arg", "a=1", "--arg", "b=1"]).code,
        Some(126)
    );
    assert_eq!(home.run(["tool", "enable", "s__add"]).code, Some(0));
    assert_eq!(row(&home, "s__add")["state"], "ready");
    // A name that somebody else has is nobody's.
    super::super::write_yaml(&home, "s__echo", "", "export const execute = () => 'mine'");
    let ran = home.run(["tool", "run", "s__echo", "--yes", "--arg", "text=x"]);
    assert_eq!(ran.code, Some(125), "{}", ran.err);
    assert!(ran.err.contains("mcp:s/echo") && ran.err.contains("s__echo.yml"), "{}", ran.err);
}
