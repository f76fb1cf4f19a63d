//! `analyze_dependencies`: manifests and lock files of both kinds, and what is none.

use serde_json::{Value, json};

use super::{code, home, offline, put};
use crate::support::Home;
use crate::tools::told;

fn look(home: &Home, args: Value) -> Value {
    offline(home, "analyze_dependencies", &args, &[]).0
}

const LOCK: &str = r#"{"lockfileVersion":3,"packages":{"":{"name":"p"},"node_modules/a":{"version":"1.2.0"},"node_modules/b":{"version":"2.0.0"},"node_modules/b/node_modules/a":{"version":"0.9.0"}}}"#;

#[test]
fn both_kinds_of_project_are_read() {
    let home = home();
    put(
        &home,
        "package.json",
        r#"{"name":"p","version":"1.0.0","dependencies":{"a":"^1"},"devDependencies":{"b":"*"}}"#,
    );
    put(&home, "package-lock.json", LOCK);
    put(
        &home,
        "Cargo.toml",
        "[package]\nname = \"c\"\nversion = \"0.1.0\"\n[dependencies]\nserde = { version = \"1\" }\n",
    );
    put(
        &home,
        "Cargo.lock",
        "version = 4\n[[package]]\nname = \"c\"\nversion = \"0.1.0\"\n[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nsource = \"registry+https://example.org\"\n",
    );
    let said = look(&home, json!({}));
    assert_eq!(told(&said), ("completed", 0, ""), "{said:#}");
    assert_eq!(said["value"]["totalDeps"], 4);
    let [npm, cargo] = said["value"]["projects"].as_array().unwrap().as_slice() else {
        panic!("{said:#}")
    };
    assert_eq!(
        npm["direct"][0],
        json!({ "name": "a", "requirement": "^1", "kind": "normal", "locked": "1.2.0" })
    );
    assert_eq!(
        (&npm["total"], &npm["duplicates"]),
        (&json!(3), &json!([{ "name": "a", "versions": ["0.9.0", "1.2.0"] }]))
    );
    assert_eq!(
        (&cargo["ecosystem"], &cargo["direct"][0]["locked"]),
        (&json!("cargo"), &json!("1.0.1"))
    );
    // By the path of a manifest, and without a lock.
    put(&home, "sub/package.json", r#"{"dependencies":{"x":"1","y":"2"}}"#);
    let sub = look(&home, json!({ "packageJsonPath": "sub/package.json" }));
    assert_eq!(
        (&sub["value"]["totalDeps"], &sub["value"]["projects"][0]["lock"]),
        (&json!(2), &Value::Null),
        "{sub:#}"
    );
    // A lock that cannot be read is said, and no reason to say nothing.
    put(&home, "package-lock.json", "{");
    let broken = look(&home, json!({}));
    let notes = broken["value"]["projects"][0]["notes"][0].as_str().unwrap();
    assert!(notes.contains("package-lock.json"), "{broken:#}");
}

#[test]
fn a_lock_file_by_itself_says_what_is_locked() {
    let home = home();
    let lock = "version = 4\n[[package]]\nname = 'a'\nversion = '1.1.0'\nsource = 'registry+x'\n";
    put(&home, "Cargo.lock", lock);
    let found = look(&home, json!({}));
    let project = &found["value"]["projects"][0];
    assert_eq!(
        (&project["manifest"], &project["lock"]),
        (&Value::Null, &json!("Cargo.lock")),
        "{found:#}"
    );
    assert_eq!(project["total"], 1, "{found:#}");
    assert!(project["notes"][0].as_str().unwrap().contains("there is no Cargo.toml"), "{found:#}");
}

#[test]
fn wrong_input_is_told() {
    let home = home();
    put(&home, "bad/package.json", "{");
    put(&home, "deep/package.json", "[".repeat(100_000));
    put(&home, "toml/Cargo.toml", format!("a = {}", "[".repeat(100_000)));
    put(&home, "note.txt", "x");
    for (args, exit, wanted) in [
        (json!({ "path": "." }), 2, "invalid_arguments"),
        (json!({}), 1, "not_found"),
        (json!({ "projectPath": "none" }), 1, "not_found"),
        (json!({ "projectPath": "bad" }), 1, "bad_manifest"),
        (json!({ "projectPath": "deep" }), 1, "bad_manifest"),
        (json!({ "projectPath": "toml" }), 1, "bad_manifest"),
        (json!({ "packageJsonPath": "note.txt" }), 1, "invalid_arguments"),
        (json!({ "projectPath": ".." }), 126, "path_escape"),
        (json!({ "packageJsonPath": "/etc/package.json" }), 126, "path_escape"),
    ] {
        let (result, ran) = offline(&home, "analyze_dependencies", &args, &[]);
        assert_eq!((code(&result), ran.code), (wanted, Some(exit)), "{args} {result:#}");
    }
}
