//! Built-in tools in the registry: on by default, switched off, and the owners of their names.

use std::fs;

use serde_json::json;

use super::{code, home, offline, put};
use crate::tools::{told, write_yaml};

const CODE: &str = "export async function execute(args: any) { return args; }";

/// Every one of them, with its tier.
const ALL: [(&str, &str); 11] = [
    ("analyze_dependencies", "read_only"),
    ("bash_execution", "execute"),
    ("file_operations", "write"),
    ("file_search", "read_only"),
    ("git", "execute"),
    ("git_commit", "execute"),
    ("npm_install", "execute"),
    ("parse_typescript", "read_only"),
    ("rest_api_call", "external_api"),
    ("type_check", "execute"),
    ("validate_json", "read_only"),
];

#[test]
fn they_are_listed_as_built_in_and_ready() {
    let home = home();
    let list = home.run(["--json", "tool", "list"]).json();
    let tools = list["tools"].as_array().unwrap().iter();
    let built_in: Vec<_> = tools
        .filter(|it| it["form"] == "builtin")
        .map(|it| {
            assert_eq!(
                (&it["source"], &it["state"]),
                (&json!("built-in"), &json!("ready")),
                "{it}"
            );
            (it["name"].as_str().unwrap(), it["securityTier"].as_str().unwrap())
        })
        .collect();
    assert_eq!(built_in, ALL);
    let info = home.run(["tool", "info", "git"]).out;
    assert!(info.contains("asked for commit, checkout"), "{info}");
    let row = list["tools"].as_array().unwrap().iter().find(|it| it["name"] == "file_operations");
    let row = row.unwrap();
    assert_eq!((&row["source"], &row["state"]), (&json!("built-in"), &json!("ready")));
    assert_eq!((&row["securityTier"], &row["form"]), (&json!("write"), &json!("builtin")));
    let text = home.run(["tool", "list"]).out;
    let line = text.lines().find(|line| line.contains("file_operations")).unwrap();
    assert!(line.starts_with('✓') && line.contains("[Built-in]"), "{line}");
    let info = home.run(["tool", "info", "file_operations"]).out;
    for part in
        ["built-in/file_operations.yml", "ready", "write, medium risk", "asked for what it removes"]
    {
        assert!(info.contains(part), "{part:?} is not in\n{info}");
    }
    let json = home.run(["--json", "tool", "info", "file_operations"]).json();
    assert_eq!(json["digest"].as_str().unwrap().len(), 64);
    assert!(home.run(["tool", "search", "edit", "files"]).out.contains("file_operations"));
    assert!(home.run(["tool", "tokens"]).out.contains("file_operations"));
    let export = home.run(["tool", "export", "file_operations", "--format", "mcp"]).json();
    assert_eq!(export["tools"][0]["name"], "file_operations");
    assert_eq!(export["tools"][0]["annotations"]["readOnlyHint"], false);
    let check = home.run(["--json", "tool", "check", "file_operations"]);
    assert_eq!(check.code, Some(0), "{}", check.err);
    assert_eq!(check.json()["tools"][0]["findings"], json!([]));
}

#[test]
fn one_that_is_switched_off_does_not_run() {
    let home = home();
    put(&home, "a.txt", "x");
    let read = json!({ "operation": "read", "path": "a.txt" });
    assert_eq!(home.run(["tool", "disable", "file_operations"]).code, Some(0));
    let (result, ran) = offline(&home, "file_operations", &read, &[]);
    assert_eq!((code(&result), ran.code), ("tool_disabled", Some(126)), "{result:#}");
    assert_eq!(home.run(["tool", "enable", "file_operations"]).code, Some(0));
    assert_eq!(told(&offline(&home, "file_operations", &read, &[]).0).0, "completed");
}

#[test]
fn their_names_are_taken() {
    let home = home();
    put(&home, "a.txt", "x");
    let read = json!({ "operation": "read", "path": "a.txt" });
    write_yaml(&home, "file_operations", "", CODE);
    let (result, ran) = offline(&home, "file_operations", &read, &[]);
    assert_eq!((code(&result), ran.code), ("tool_name_taken", Some(125)), "{result:#}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("built-in/file_operations.yml and /"), "{message}");
    fs::remove_file(home.path("project/.runner/tools/file_operations.yml")).unwrap();
    assert_eq!(told(&offline(&home, "file_operations", &read, &[]).0).0, "completed");
    let new = home.run(["tool", "new", "file_operations"]);
    assert!(new.code != Some(0) && new.err.contains("built-in/file_operations.yml"), "{}", new.err);
    // A name whose tool is off collides with nothing; the word that switched it off holds for the name.
    write_yaml(&home, "file_operations", "", CODE);
    home.config("tools: { file_operations: { enabled: false } }\n");
    let (result, _) = offline(&home, "file_operations", &read, &[]);
    assert_eq!(code(&result), "tool_disabled", "{result:#}");
}
