//! Tools whose sandboxes wait, with Node started in them.

use std::fs;

use serde_json::Value;

use super::Caller;
use crate::support::{Ran, needs_engine};

#[test]
fn a_tool_waits_with_node_started_and_nothing_of_the_caller_in_it() {
    needs_engine();
    const CANARY: &str = "canary-15-pool";
    let caller = Caller::new("size: 2");
    fs::create_dir_all(caller.file(".runner/tools")).unwrap();
    fs::write(
        caller.file(".runner/tools/once.yml"),
        "name: once\ndescription: Looks once.\nschema: { type: object }\ncode: |\n  export async function execute(_: {}, { platform }: ToolContext) {\n    const { existsSync, writeFileSync } = await import('node:fs');\n    const used = existsSync('/tmp/used');\n    writeFileSync('/tmp/used', '');\n    return { used, there: await platform.fs.exists('f0') };\n  }\n",
    )
    .unwrap();
    fs::write(caller.file("f0"), CANARY).unwrap();
    let call = || {
        let mut command = caller.0.runner();
        command.env("LANG", "C.UTF-8").env("SECRET_TOKEN", CANARY);
        command.args(["tool", "run", "once", "--yes", "--json=full"]);
        let result = Ran::from(command.output().unwrap()).json();
        assert_eq!(
            result["value"],
            serde_json::json!({ "used": false, "there": true }),
            "{result:#}"
        );
        result["metadata"]["warm"].as_bool().unwrap()
    };
    assert!(!call());
    for _ in 0..3 {
        let entry = caller.settled(1).remove(0);
        assert_eq!(entry["for"], "tool");
        // THREATS row 15: whoever may ask the engine sees nothing of the caller.
        let shown = crate::image::docker(&["inspect", entry["sandbox"].as_str().unwrap()]);
        assert!(!shown.contains(CANARY) && shown.contains("runtime/main.mjs"), "{shown}");
        assert!(call());
    }
}

/// A tool that needs no more than what every tool has; `files` is what it may read.
fn write_tool(caller: &Caller, name: &str, files: &str) {
    fs::create_dir_all(caller.file(".runner/tools")).unwrap();
    let text = format!(
        "name: {name}\ndescription: Answers.\nschema: {{ type: object, required: [word], properties: {{ word: {{ type: string }} }} }}\nfiles: {{ read: [\"{files}\"] }}\ncode: |\n  export async function execute({{ word }}: {{ word: string }}) {{ return word; }}\n"
    );
    fs::write(caller.file(&format!(".runner/tools/{name}.yml")), text).unwrap();
}

#[test]
fn a_tool_is_warmed_by_name_and_its_first_call_is_warm() {
    needs_engine();
    let caller = Caller::new("size: 3");
    write_tool(&caller, "one", "a/**");
    write_tool(&caller, "two", "b/**");
    let warm = |words: &[&str]| {
        let ran = caller.0.run(["pool", "warm", "--json=full"].iter().chain(words));
        assert_eq!(ran.code, Some(0), "{}", ran.out);
        ran.json()
    };
    let call = |name: &str| {
        let ran = caller.0.run(["tool", "run", name, "--yes", "--json=full", "--arg", "word=hi"]);
        let result = ran.json();
        assert_eq!(result["value"], "hi", "{result:#}");
        result["metadata"]["warm"].as_bool().unwrap()
    };
    // No arguments are needed, and one tool's do not push out another's.
    let made = |count: usize, note: Value| serde_json::json!({ "made": count, "note": note });
    assert_eq!(warm(&["--tool", "one"]), made(1, Value::Null));
    assert_eq!(warm(&["--tool", "two"]), made(1, Value::Null));
    let waiting = caller.settled(2);
    for entry in &waiting {
        assert_eq!((&entry["for"], &entry["workspace"]), (&"tool".into(), &"".into()), "{entry}");
        assert!(entry["tool"].is_string(), "{entry}");
        let shown = crate::image::docker(&["top", entry["sandbox"].as_str().unwrap()]);
        assert!(shown.contains("runtime/main.mjs"), "Node has started: {shown}");
    }
    assert!(call("one") && call("two"), "{waiting:?}");
    // No more than may wait, said as for commands.
    caller.settled(2);
    let full = warm(&["--tool", "one", "9"]);
    assert!(full["note"].as_str().is_some_and(|note| note.contains("no room")), "{full}");
    assert_eq!(caller.settled(3).len(), 3);
}

#[test]
fn only_a_tool_with_a_sandbox_of_its_own_is_warmed() {
    let caller = Caller::new("size: 2");
    write_tool(&caller, "one", "a/**");
    for (words, code, says) in [
        (&["--tool", "on"][..], Some(2), "one"),
        (&["--tool", "file_operations"], Some(2), "built in"),
        (&["--tool", "Not A Name"], Some(2), "--tool"),
        (&["--tool", "one", "--", "true"], Some(2), "cannot be used with"),
        (&["--tools", "more"], Some(2), "--tool"),
    ] {
        let ran = caller.0.run(["pool", "warm"].iter().chain(words));
        assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{words:?}: {}", ran.err);
    }
    assert!(caller.waiting().is_empty());
}
