//! One shape for every result: what tests see is held against the schema, and costs few tokens.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::{Home, needs_engine, run};

/// The most keys that every result has.
const ALWAYS_MAX: usize = 12;

/// The most tokens of `true`, and of a denial.
const TOKENS_OF_TRUE: usize = 120;
const TOKENS_OF_A_DENIAL: usize = 220;

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| jsonschema::validator_for(&runner::call::schema()).expect("a schema"))
}

/// Whether a value is a result: of a call, or an error. The report of `audit verify` has an exit code too.
fn is_result(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    has("status") && has("exit") && !has("ok")
}

/// Fails if a value is a result and not as the schema says.
pub fn check(value: &Value) {
    if is_result(value) {
        let wrong: Vec<String> = validator()
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "not as `runner schema result` says: {wrong:#?}\n{value:#}");
    }
}

fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text.trim_end()).len()
}

#[test]
fn the_schema_is_one_closed_and_is_printed() {
    let schema = run(["schema", "result"]).json();
    assert_eq!(schema, runner::call::schema());
    jsonschema::draft202012::meta::validate(&schema).expect("a schema by its own schema");
    let required = schema["required"].as_array().unwrap();
    assert!(required.len() <= ALWAYS_MAX, "{required:?}");
    let listed = run(["--json", "schema"]).json();
    assert_eq!(listed["schemas"][0]["command"], "runner schema result");
    assert!(run(["schema"]).out.contains("runner config schema"));
    // The control: the schema refuses what is no result.
    let good = run(["--json", "exec", "--nope"]).json();
    assert!(is_result(&good) && validator().is_valid(&good));
    for (key, value) in [("more", json!(1)), ("status", json!("fine")), ("exit", json!("0"))] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(!validator().is_valid(&bad), "{bad}");
    }
    for key in required {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(key.as_str().unwrap());
        assert!(!validator().is_valid(&bad), "{bad}");
    }
    let entry = |path: Value| json!({ "code": "covered", "why": "w", "next": "n", "path": path });
    let mut with = good;
    with["sandbox"] = json!([entry(".env".into())]);
    assert!(validator().is_valid(&with), "{with}");
    with["sandbox"][0]["name"] = "both".into();
    assert!(!validator().is_valid(&with), "{with}");
}

/// The keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_outcome_has_the_same_keys() {
    needs_engine();
    let home = Home::new();
    std::fs::write(home.path("project/a.txt"), "hi\n").unwrap();
    let read = ["tool", "run", "file_operations", "--arg", "operation=read", "--arg"];
    let outcomes: [&[&str]; 7] = [
        &["exec", "--", "true"],
        &["exec", "--shell", "cat a.txt | wc -l"],
        &["exec", "--", "rm", "a.txt"],
        &["exec", "--policy", "nosuch", "--", "true"],
        &["exec", "--nope"],
        &[&read[..], &["path=a.txt"]].concat(),
        &[&read[..], &["path=nosuch.txt"]].concat(),
    ];
    let schema = runner::call::schema();
    let always: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for words in outcomes {
        for form in ["--json", "--json=full"] {
            let result = home.run([&[form], words].concat()).json();
            assert!(is_result(&result), "{result}");
            let there = keys(&result);
            assert!(always.iter().all(|key| there.contains(key)), "{words:?}: {there:?}");
            let details = ["metadata", "explanation"].iter().any(|key| there.contains(key));
            assert!(form != "--json" || !details, "{words:?}: {there:?}");
        }
    }
    let full = home.run(["--json=full", "exec", "--", "true"]).json();
    let metadata = &full["metadata"];
    for key in ["protections", "limits", "duration_ms", "usage"] {
        assert!(!metadata[key].is_null(), "{key}: {full:#}");
    }
    assert_eq!(full["explanation"]["reason"], "Looking around changes nothing.");
    let denied = home.run(["--json=full", "exec", "--", "rm", "a.txt"]).json();
    assert_eq!(denied["explanation"]["effects"][0]["effect"], "write", "{denied:#}");
    // What nobody understands is an error, in the form that was asked for as far as that is known.
    let wrong = home.run(["--json=all", "exec", "--", "true"]);
    assert_eq!((wrong.code, &wrong.json()["error"]["code"]), (Some(2), &json!("usage")));
    assert_eq!(home.run(["exec", "--json", "--output", "much", "--", "true"]).code, Some(2));
}

#[test]
fn the_brief_form_is_brief() {
    needs_engine();
    let home = Home::new();
    std::fs::write(home.path("project/.env"), "SECRET=canary\n").unwrap();
    let ran = home.run(["exec", "--json", "--", "true"]);
    let cost = tokens(&ran.out);
    assert!(ran.code == Some(0) && cost <= TOKENS_OF_TRUE, "{cost}: {}", ran.out);
    let denials: [&[&str]; 4] =
        [&["npm", "test"], &["cat", ".env"], &["git", "push"], &["rm", "-rf", "src"]];
    for words in denials {
        let ran = home.run([&["exec", "--json", "--"], words].concat());
        let (cost, result) = (tokens(&ran.out), ran.json());
        assert_eq!(result["status"], "denied");
        assert!(cost <= TOKENS_OF_A_DENIAL, "{words:?} {cost}: {}", ran.out);
        // Brief, and still what a caller needs: the code, the words, the rule with its place.
        let error = &result["error"];
        assert!(!error["code"].is_null() && !error["message"].is_null(), "{result:#}");
        assert!(error["rule"]["line"].as_u64() > Some(0), "{result:#}");
    }
    // The full form has what the brief one leaves out.
    let full = home.run(["exec", "--json=full", "--", "true"]);
    assert!(tokens(&full.out) > 5 * TOKENS_OF_TRUE);
}
