//! Tools of MCP servers through the real command line, with a real server in a real sandbox.

mod attacks;
mod calls;
mod registry;

use std::fs;

use serde_json::Value;

use crate::support::{Home, Ran};

const SERVER: &str = include_str!("server.mjs");

/// What a server may do here: run, and read the workspace but for what is denied.
const POLICY: &str = "policy: 1\nname: serve\nextends: [readonly]\nenv: { accept: [LEVEL] }\nfiles: { deny: [\"**/secret.txt\"] }\ncommands:\n  - id: node\n    allow: \"node ...\"\n    effects: [read, code]\n    reason: Servers run in a sandbox.\n";

/// A caller with the server in the workspace; `more` are further lines of the server's definition.
pub fn home(mode: &str, more: &str) -> Home {
    let home = Home::new();
    home.user_policy("serve", POLICY);
    fs::write(home.path("project/server.mjs"), SERVER).unwrap();
    fs::write(home.path("project/mood"), "Fine weather.\n").unwrap();
    configure(&home, mode, more);
    home
}

/// Writes the definition of the server.
pub fn configure(home: &Home, mode: &str, more: &str) {
    home.config(&format!(
        "pool: {{ size: 0 }}\napprovals: {{ withoutTerminal: true }}\nmcp:\n  servers:\n    s:\n      command: [node, server.mjs, {mode}]\n      policy: serve\n{more}"
    ));
}

/// Asks the server; what came of it.
pub fn refresh(home: &Home) -> (Value, Ran) {
    let ran = home.run(["--json", "mcp", "refresh", "s"]);
    (ran.json()["servers"][0].clone(), ran)
}

/// The one row of `tool list` with this name.
pub fn row(home: &Home, name: &str) -> Value {
    let list = home.run(["--json", "tool", "list"]).json();
    let rows = list["tools"].as_array().unwrap();
    rows.iter()
        .find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {list}"))
        .clone()
}
