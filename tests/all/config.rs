//! `runner config …`, and that what a configuration says is so.

use std::fs;

use serde_json::Value;

use crate::support::Home;

fn user(home: &Home, text: &str) {
    fs::write(home.path("config/runner/config.yml"), text).unwrap();
}

fn project(home: &Home, text: &str) {
    fs::write(home.path("project/.runner/config.yml"), text).unwrap();
}

fn setting(json: &Value, key: &str) -> Value {
    let settings = json["settings"].as_array().unwrap();
    settings.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("{key}: {json}")).clone()
}

#[test]
fn every_value_is_shown_with_its_layer_and_line() {
    let home = Home::new();
    user(
        &home,
        "# mine\npool:\n  size: 3\ntools:\n  run_tests: { enabled: true, concurrency: 2 }\n",
    );
    project(&home, "showTokenCosts: false\npool: { size: 1, ttl: 1m }\n");
    let json = home.run(["config", "show", "--json"]).json();
    let size = setting(&json, "pool.size");
    assert_eq!(
        (&size["value"], &size["layer"], &size["line"]),
        (&"3".into(), &"user".into(), &3.into())
    );
    assert!(size["file"].as_str().unwrap().ends_with("config/runner/config.yml"));
    assert_eq!(setting(&json, "pool.ttl")["layer"], "project");
    assert_eq!(setting(&json, "showTokenCosts")["value"], false);
    assert_eq!(setting(&json, "limits.queue")["layer"], "default");
    assert_eq!(setting(&json, "tools.run_tests.concurrency")["value"], "2");
    let text = home.run(["config", "show"]).out;
    let line = text.lines().find(|line| line.starts_with("pool.size ")).unwrap();
    assert!(
        line.contains("3") && line.contains("user") && line.ends_with("config.yml:3"),
        "{line}"
    );
}

#[test]
fn a_broken_configuration_stops_a_tool_and_is_told_with_its_place() {
    let home = Home::new();
    project(&home, "pool:\n  sise: 3\nlimits: { concurrency: 50 }\n");
    let ran = home.run(["tool", "run", "file_summary", "--arg", "path=x"]);
    assert_eq!(ran.code, Some(125), "{}", ran.err);
    for part in [
        "error[unknown_key]: unknown key `sise`",
        ".runner/config.yml:2:3",
        "did you mean `size`?",
        "error[project_loosens]: a project can only tighten",
        "runner config check",
    ] {
        assert!(ran.err.contains(part), "{part:?} is not in\n{}", ran.err);
    }
    let json = home.run(["--json", "config", "check"]);
    assert_eq!(json.code, Some(125));
    let json = json.json();
    assert_eq!((&json["passed"], &json["findings"][0]["line"]), (&false.into(), &2.into()));
    let error = home.run(["--json", "config", "show"]).json();
    assert_eq!(error["error"]["code"], "config_refused");
    assert_eq!(error["error"]["fault"], "configuration");
}

#[test]
fn a_file_is_checked_as_the_layer_it_is_for() {
    let home = Home::new();
    fs::write(home.path("project/new.yml"), "ceiling: { pool: { size: 2 } }\n").unwrap();
    assert_eq!(home.run(["config", "check", "new.yml"]).code, Some(125));
    let ran = home.run(["config", "check", "new.yml", "--layer", "managed"]);
    assert_eq!((ran.code, ran.out.contains("ok")), (Some(0), true), "{}", ran.err);
    assert_eq!(home.run(["config", "check", "new.yml", "--layer", "other"]).code, Some(2));
    user(&home, "pool: { size: 100 }\n");
    let own = home.path("config/runner/config.yml");
    assert_eq!(home.run(["config".as_ref(), "check".as_ref(), own.as_os_str()]).code, Some(0));
    assert_eq!(home.run(["config", "check", "nothing.yml"]).code, Some(125));
    assert_eq!(home.run(["config", "check"]).code, Some(0));
}

#[test]
fn schema_and_paths_are_printed() {
    let home = Home::new();
    let schema: Value = serde_json::from_str(&home.run(["config", "schema"]).out).unwrap();
    assert_eq!(schema, home.run(["config", "schema", "--json"]).json());
    assert_eq!(schema["properties"]["pool"]["additionalProperties"], false);
    user(&home, "");
    let json = home.run(["config", "path", "--json"]).json();
    let files: Vec<_> = json["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["layer"].as_str().unwrap().to_owned(), it["exists"].as_bool().unwrap()))
        .collect();
    assert_eq!(files[1..], [("user".to_owned(), true), ("project".to_owned(), false)]);
    assert_eq!(json["files"][0]["file"], "/etc/runner/config.yml");
    assert!(home.run(["config", "path"]).out.contains("/etc/runner/config.yml"));
}
