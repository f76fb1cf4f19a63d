//! `npm_install`: what may be named, who decides, and an installation that needs no registry.

use serde_json::{Value, json};

use super::{code, home, offline, put};
use crate::support::{Home, needs_engine};
use crate::tools::{call, told};

/// Lets npm write into the project and run what it brings.
const OFFLINE: &str = "policy: 1\nname: npm-offline\nextends: [readonly]\nsandbox: { limits: { memory: 2GiB, wall: 5m, pids: 512 } }\nfiles: { write: [\"**\"] }\nenv: { accept: [\"*\"] }\ncommands:\n  - { id: npm, allow: [\"npm {install,ci} ...\"], effects: any }\n";

fn install(home: &Home, args: Value, more: &[&str]) -> Value {
    let args = args.to_string();
    call(home, "npm_install", &[&["--policy", "npm-offline", "--args", &args], more].concat()).0
}

#[test]
fn it_is_asked_about_decided_and_checked() {
    let home = home();
    home.user_policy("npm-offline", OFFLINE);
    put(&home, "package.json", r#"{"name":"p","version":"1.0.0"}"#);
    let (asked, ran) = offline(&home, "npm_install", &json!({}), &["--policy", "npm-offline"]);
    assert_eq!((told(&asked).0, ran.code), ("needs_approval", Some(77)), "{asked:#}");
    let (denied, ran) =
        offline(&home, "npm_install", &json!({ "package": "left-pad" }), &["--yes"]);
    assert_eq!((told(&denied).0, ran.code), ("denied", Some(126)), "{denied:#}");
    for args in [
        json!({ "package": "--global" }),
        json!({ "package": "-g" }),
        json!({ "package": "git+https://example.org/x.git" }),
        json!({ "package": "../x" }),
        json!({ "package": "file:x" }),
        json!({ "package": "a b" }),
        json!({ "version": "1.0.0" }),
        json!({ "package": "a", "version": "-1" }),
        json!({ "package": "a", "version": "npm:b" }),
    ] {
        let (result, ran) =
            offline(&home, "npm_install", &args, &["--yes", "--policy", "npm-offline"]);
        assert_eq!((code(&result), ran.code), ("invalid_arguments", Some(2)), "{args} {result:#}");
    }
    let (missing, _) = offline(
        &home,
        "npm_install",
        &json!({ "projectPath": "sub" }),
        &["--yes", "--policy", "npm-offline"],
    );
    assert_eq!(code(&missing), "precondition_failed", "{missing:#}");
}

#[test]
fn what_needs_no_registry_is_installed_without_scripts() {
    needs_engine();
    let home = home();
    home.user_policy("npm-offline", OFFLINE);
    put(
        &home,
        "package.json",
        r#"{"name":"p","version":"1.0.0","dependencies":{"own":"file:./own"}}"#,
    );
    put(
        &home,
        "own/package.json",
        r#"{"name":"own","version":"3.2.1","scripts":{"postinstall":"touch ran"}}"#,
    );
    let done = install(&home, json!({}), &[]);
    assert_eq!(told(&done), ("completed", 0, ""), "{done:#}");
    assert_eq!(done["value"]["dependencies"], json!(["own"]));
    assert!(home.path("project/node_modules/own").exists());
    assert!(!home.path("project/own/ran").exists(), "scripts do not run");
    let nowhere = install(&home, json!({ "package": "left-pad" }), &[]);
    assert_eq!(code(&nowhere), "command_failed", "{nowhere:#}");
    assert!(
        nowhere["error"]["details"]["data"]["suggestion"].as_str().unwrap().contains("no network"),
        "{nowhere:#}"
    );
}
