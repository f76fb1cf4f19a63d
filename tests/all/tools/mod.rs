//! Tools through the real command line, in real containers.

mod attacks;
mod builtin;
mod examples;
mod front;
mod mcp;
mod net;
mod registry;
mod run;
mod stranger;
mod team;

use crate::support::{Home, Ran};
use serde_json::Value;
use std::fs;

/// Writes a tool in YAML form with this code into the workspace; `more` are further keys.
pub fn write_yaml(home: &Home, name: &str, more: &str, code: &str) {
    let folder = home.path("project/.runner/tools");
    fs::create_dir_all(&folder).unwrap();
    let code: String = code.trim_matches('\n').lines().map(|line| format!("  {line}\n")).collect();
    let more = more.trim_matches('\n');
    let text = format!(
        "name: {name}\ndescription: A tool of a test.\nschema: {{ type: object }}\n{more}\ncode: |\n{code}"
    );
    fs::write(folder.join(format!("{name}.yml")), text).unwrap();
}

/// Calls a tool; the result as JSON, and everything about the run.
pub fn call(home: &Home, name: &str, args: &[&str]) -> (Value, Ran) {
    let words = ["--json=full", "tool", "run", name, "--yes"];
    let ran = home.run(words.iter().chain(args));
    (ran.json(), ran)
}

/// Writes a tool and calls it under the default policy.
pub fn tool(home: &Home, code: &str) -> (Value, Ran) {
    write_yaml(home, "t", "", code);
    call(home, "t", &[])
}

/// Status, exit code and error code of a result.
pub fn told(result: &Value) -> (&str, u64, &str) {
    (
        result["status"].as_str().unwrap_or("?"),
        result["exit"].as_u64().unwrap_or(999),
        result["error"]["code"].as_str().unwrap_or(""),
    )
}
