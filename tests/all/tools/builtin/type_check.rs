//! `type_check`: a compiler that the project has, in a sandbox; and none at all.

use serde_json::{Value, json};

use super::{code, home, offline, put};
use crate::support::{Home, needs_engine};
use crate::tools::{call, told};

/// A compiler that says what TypeScript's would say. What is tested is how it is found, run and understood.
const COMPILER: &str = "const fs = require('fs');\nconst project = process.argv[process.argv.indexOf('-p') + 1];\nconst text = fs.readFileSync(`${project}/a.ts`, 'utf8');\nif (text.includes('wrong')) { console.log(`${project}/a.ts(2,7): error TS2322: Type 'string' is not assignable to type 'number'.`); process.exit(2); }\nif (text.includes('breaks')) { console.error('cannot go on'); process.exit(3); }\nif (!process.argv.includes('--noEmit')) process.exit(4);\n";

fn project(text: &str) -> Home {
    let home = home();
    put(&home, "node_modules/typescript/bin/tsc", COMPILER);
    put(&home, "app/a.ts", text);
    home
}

fn check(home: &Home, args: Value) -> Value {
    let args = args.to_string();
    call(home, "type_check", &["--policy", "develop", "--args", &args]).0
}

#[test]
fn errors_come_with_their_places() {
    needs_engine();
    let home = project("let a = 1;\n");
    let good = check(&home, json!({ "projectPath": "app" }));
    assert_eq!(told(&good), ("completed", 0, ""), "{good:#}");
    assert_eq!(
        (&good["value"]["success"], &good["value"]["compiler"]),
        (&json!(true), &json!("node_modules/typescript/bin/tsc"))
    );
    put(&home, "app/a.ts", "wrong");
    let wrong = check(&home, json!({ "projectPath": "app", "strict": true }));
    let error = json!({ "file": "app/a.ts", "line": 2, "column": 7, "code": "TS2322", "message": "Type 'string' is not assignable to type 'number'." });
    assert_eq!(
        (&wrong["value"]["success"], &wrong["value"]["errors"]),
        (&json!(false), &json!([error])),
        "{wrong:#}"
    );
    put(&home, "app/a.ts", "breaks");
    let broken = check(&home, json!({ "projectPath": "app" }));
    assert_eq!(code(&broken), "command_failed", "{broken:#}");
}

#[test]
fn it_runs_only_where_the_policy_lets_code_run() {
    let home = project("let a = 1;\n");
    let (denied, ran) = offline(&home, "type_check", &json!({ "projectPath": "app" }), &[]);
    assert_eq!((told(&denied).0, ran.code), ("denied", Some(126)), "{denied:#}");
    for (args, exit, wanted) in [
        (json!({ "projectPath": "--build" }), 1, "invalid_arguments"),
        (json!({ "projectPath": ".." }), 126, "path_escape"),
        (json!({ "strict": "yes" }), 2, "invalid_arguments"),
    ] {
        let (result, ran) = offline(&home, "type_check", &args, &["--policy", "develop"]);
        assert_eq!((code(&result), ran.code), (wanted, Some(exit)), "{args} {result:#}");
    }
}

#[test]
fn a_machine_without_typescript_says_so() {
    needs_engine();
    let home = home();
    put(&home, "a.ts", "let a = 1;\n");
    let words = ["--json", "tool", "run", "type_check", "--policy", "develop"];
    let mut command = home.runner();
    command.env("PATH", "/usr/bin:/bin").args(words);
    let ran = crate::support::Ran::from(command.output().unwrap());
    let result = ran.json();
    // Machines that have one in these folders check with it.
    if result["value"]["compiler"] != "tsc" {
        assert_eq!(code(&result), "precondition_failed", "{result:#}");
    }
}
