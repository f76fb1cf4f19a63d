//! `validate_json`: right and wrong JSON, schemas, and hostile ones of both.

use serde_json::{Value, json};

use super::{code, home, offline, put};
use crate::support::Home;
use crate::tools::told;

fn check(home: &Home, args: Value) -> Value {
    offline(home, "validate_json", &args, &[]).0
}

#[test]
fn json_is_checked_with_places() {
    let home = home();
    let good = check(&home, json!({ "data": "{\"a\": [1, 2]}" }));
    assert_eq!(told(&good).0, "completed", "{good:#}");
    assert_eq!(good["value"], json!({ "valid": true, "errors": [] }));
    put(&home, "a.json", "{\n  \"a\": [1,\n  ]\n}\n");
    let broken = check(&home, json!({ "path": "a.json" }));
    let error = &broken["value"]["errors"][0];
    assert_eq!(
        (&broken["value"]["valid"], &error["line"], &error["column"]),
        (&json!(false), &json!(3), &json!(3)),
        "{broken:#}"
    );
    put(&home, "b.json", "{\n  \"name\": 7,\n  \"tags\": [\"x\", 1]\n}\n");
    put(
        &home,
        "s.json",
        r#"{"type":"object","properties":{"name":{"type":"string"},"tags":{"items":{"type":"string"}}}}"#,
    );
    let wrong = check(&home, json!({ "path": "b.json", "schemaPath": "s.json" }));
    let places: Vec<_> = wrong["value"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["path"], &it["line"], &it["column"]))
        .collect();
    assert_eq!(
        places,
        [(&json!("/name"), &json!(2), &json!(11)), (&json!("/tags/1"), &json!(3), &json!(17))],
        "{wrong:#}"
    );
    let direct = check(&home, json!({ "data": "1", "schema": { "type": "integer" } }));
    assert_eq!(direct["value"]["valid"], true);
}

#[test]
fn values_are_checked_by_the_standard() {
    let home = home();
    let default = json!({ "properties": { "a": { "default": 1 } }, "required": ["a"] });
    let mail = json!({ "format": "email" });
    for (args, valid) in [
        (json!({ "data": "1", "schema": true }), true),
        (json!({ "data": "1", "schema": false }), false),
        // No default is filled in before the check.
        (json!({ "data": "{}", "schema": default }), false),
        (json!({ "data": "{\"a\":1}", "schema": default }), true),
        (json!({ "data": "\"x\"", "schema": mail }), true),
        (json!({ "data": "\"x\"", "schema": mail, "assertFormat": true }), false),
        (json!({ "data": "\"a@b.example\"", "schema": mail, "assertFormat": true }), true),
        (
            json!({ "data": "1", "schema": { "$ref": "#n", "$defs": { "n": { "$anchor": "n", "type": "string" } } } }),
            false,
        ),
    ] {
        let result = check(&home, args.clone());
        assert_eq!(result["value"]["valid"], valid, "{args} {result:#}");
    }
}

#[test]
fn wrong_and_hostile_input_is_told() {
    let home = home();
    put(&home, ".env", "{}");
    put(&home, "deep.json", "[".repeat(100_000));
    put(&home, "large.json", format!("\"{}\"", "x".repeat(5 << 20)));
    for (args, exit, wanted) in [
        (json!({}), 2, "invalid_arguments"),
        (json!({ "data": "1", "path": "a" }), 2, "invalid_arguments"),
        (json!({ "data": "1", "schema": 1 }), 2, "invalid_arguments"),
        (json!({ "data": "1", "schema": { "type": "objekt" } }), 1, "invalid_arguments"),
        (
            json!({ "data": "1", "schema": { "$ref": "https://example.org/s.json" } }),
            1,
            "invalid_arguments",
        ),
        (json!({ "path": "none.json" }), 1, "not_found"),
        (json!({ "path": ".env" }), 126, "access_denied"),
        (json!({ "path": "../x.json" }), 126, "path_escape"),
        (json!({ "data": "1", "schemaPath": ".env" }), 126, "access_denied"),
        (json!({ "path": "large.json" }), 1, "too_large"),
    ] {
        let (result, ran) = offline(&home, "validate_json", &args, &[]);
        assert_eq!((code(&result), ran.code), (wanted, Some(exit)), "{args} {result:#}");
    }
    let deep = check(&home, json!({ "path": "deep.json" }));
    assert_eq!((told(&deep).0, &deep["value"]["valid"]), ("completed", &json!(false)), "{deep:#}");
    let bomb = json!({ "data": format!("\"{}!\"", "a".repeat(50_000)), "schema": { "pattern": "^(a+)+$" } });
    assert_eq!(check(&home, bomb)["value"]["valid"], false);
}
