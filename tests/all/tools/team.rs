//! Tools of a team and what the managed configuration says of tools, through the real command line.
//!
//! The managed folder is `/etc/runner` and nothing else, so each call sees an `/etc` of its own: a namespace of mounts, made
//! by `unshare`.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{told, write_yaml};
use crate::support::{Home, Ran};

const CODE: &str = "export async function execute(args: any) { return args; }";

/// Runs the program with this managed configuration.
fn managed(home: &Home, config: &str, words: &[&str]) -> Ran {
    let script = "mount -t tmpfs -o mode=755 none /etc && mkdir -m 755 /etc/runner && printf %s \"$0\" > /etc/runner/config.yml && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, config]);
    command.arg(env!("CARGO_BIN_EXE_runner")).args(words);
    home.surround(&mut command);
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    Ran::from(command.output().expect("unshare starts"))
}

fn row(list: &Value, name: &str) -> Value {
    let mut tools = list["tools"].as_array().unwrap().iter();
    tools.find(|it| it["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn tools_of_a_team_are_there_for_everybody_and_cannot_be_switched_off() {
    let home = Home::new();
    write_yaml(&home, "mine", "", CODE);
    let folder = home.path("team");
    fs::create_dir_all(&folder).unwrap();
    let text = fs::read_to_string(home.path("project/.runner/tools/mine.yml")).unwrap();
    fs::write(folder.join("ours.yml"), text.replace("name: mine", "name: ours")).unwrap();
    let config = format!("team: {{ folder: {} }}\n", folder.display());
    let listed = managed(&home, &config, &["--json", "tool", "list"]);
    assert_eq!(listed.code, Some(0), "{}{}", listed.out, listed.err);
    let list = listed.json();
    assert_eq!(
        (&row(&list, "ours")["source"], &row(&list, "ours")["state"]),
        (&json!("team"), &json!("ready"))
    );
    assert_eq!(row(&list, "mine")["source"], "custom");
    let off = managed(&home, &config, &["--json", "tool", "disable", "ours"]);
    let result = off.json();
    assert_eq!((off.code, told(&result).2), (Some(126), "tool_enforced"), "{result}");
    // Nobody else's tools are looked for.
    let config = format!("{config}disableLocalTools: true\n");
    let list = managed(&home, &config, &["--json", "tool", "list"]).json();
    assert_eq!(row(&list, "ours")["state"], "ready");
    assert_eq!(row(&list, "mine"), Value::Null);
    let run = managed(&home, &config, &["--json", "tool", "run", "mine"]);
    let result = run.json();
    assert_eq!((run.code, told(&result).2), (Some(2), "tool_not_found"), "{result}");
    let hint = result["error"]["suggestion"].as_str().unwrap();
    assert!(hint.contains("`disableLocalTools` (/etc/runner/config.yml:2)"), "{hint}");
    // What is managed off stays off, whatever the user says.
    let config = "tools: { file_search: { enabled: false } }\n";
    let off = managed(&home, config, &["--json", "tool", "enable", "file_search"]);
    let result = off.json();
    assert_eq!((off.code, told(&result).2), (Some(126), "tool_enforced"), "{result}");
}
