//! The tools that are part of the program, through the real command line. Those that run no command need no engine.

mod analyze_dependencies;
mod bash_execution;
mod file_operations;
mod file_search;
mod git;
mod npm_install;
mod parse_typescript;
mod registry;
mod rest_api_call;
mod type_check;
mod validate_json;

use std::fs;

use serde_json::Value;

use super::told;
use crate::support::{Home, Ran};

/// Lets everything in the workspace be written that is not denied.
const EDIT: &str = "policy: 1\nname: editing\nextends: [readonly]\nfiles: { write: [\"**\"] }\n";

/// A caller whose engine is nowhere: what works here works without one.
pub fn home() -> Home {
    let home = Home::new();
    home.user_policy("editing", EDIT);
    home
}

/// Writes a file of the workspace.
pub fn put(home: &Home, path: &str, text: impl AsRef<[u8]>) {
    let path = home.path("project").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A file of the workspace.
pub fn get(home: &Home, path: &str) -> String {
    fs::read_to_string(home.path("project").join(path)).unwrap()
}

/// Calls a tool without an engine and without anybody to ask.
pub fn offline(home: &Home, name: &str, args: &Value, more: &[&str]) -> (Value, Ran) {
    let args = args.to_string();
    let words = ["--json=full", "tool", "run", name, "--args", &args];
    let mut command = home.runner();
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let ran = Ran::from(command.args(words.iter().chain(more)).output().unwrap());
    (ran.json(), ran)
}

/// The code that a built-in tool ended with.
pub fn code(result: &Value) -> &str {
    result["error"]["details"]["code"].as_str().unwrap_or_else(|| told(result).2)
}
