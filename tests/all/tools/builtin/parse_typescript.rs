//! `parse_typescript`: imports, exports and errors; and texts that would like to break a parser.

use serde_json::{Value, json};

use super::{code, home, offline, put};
use crate::support::Home;
use crate::tools::told;

fn parse(home: &Home, args: Value) -> Value {
    offline(home, "parse_typescript", &args, &[]).0
}

#[test]
fn code_and_files_are_parsed() {
    let home = home();
    put(
        &home,
        "src/a.ts",
        "import { b } from './b';\nimport type { C } from 'c';\nexport const x: number = b;\nexport default class {}\n",
    );
    let said = parse(&home, json!({ "filePath": "src/a.ts" }));
    assert_eq!(told(&said), ("completed", 0, ""), "{said:#}");
    let value = &said["value"];
    assert_eq!((&value["valid"], &value["modules"]), (&json!(true), &json!(["./b", "c"])));
    assert_eq!(
        (&value["imports"][1]["typeOnly"], &value["imports"][1]["line"]),
        (&json!(true), &json!(2))
    );
    let names: Vec<_> = value["exports"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!("x"), &json!("default")]);
    let wrong = parse(&home, json!({ "code": "const a = 1;\nconst b = ;\n" }));
    let error = &wrong["value"]["errors"][0];
    assert_eq!(
        (&wrong["value"]["valid"], &error["line"], &error["column"]),
        (&json!(false), &json!(2), &json!(11)),
        "{wrong:#}"
    );
    let jsx = parse(&home, json!({ "code": "export const a = <div/>;", "filePath": "a.tsx" }));
    assert_eq!(jsx["value"]["valid"], true, "{jsx:#}");
    assert_eq!(
        parse(&home, json!({ "code": "let a: number", "filePath": "a.js" }))["value"]["valid"],
        false
    );
}

#[test]
fn wrong_and_hostile_input_is_told() {
    let home = home();
    put(&home, "a.txt", "x");
    put(&home, "bin.ts", [0xff, 0xfe]);
    put(&home, "large.ts", "x;".repeat(3 << 20));
    put(&home, "deep.ts", "(".repeat(200_000));
    put(&home, "secrets/a.ts", "export const canary = 1;");
    for (args, exit, wanted) in [
        (json!({}), 2, "invalid_arguments"),
        (json!({ "filePath": "a.txt" }), 1, "invalid_arguments"),
        (json!({ "filePath": "none.ts" }), 1, "not_found"),
        (json!({ "filePath": "bin.ts" }), 1, "not_text"),
        (json!({ "filePath": "large.ts" }), 1, "too_large"),
        (json!({ "filePath": "secrets/a.ts" }), 126, "access_denied"),
        (json!({ "filePath": "../a.ts" }), 126, "path_escape"),
        (json!({ "filePath": "deep.ts" }), 1, "compiler_depth"),
    ] {
        let (result, ran) = offline(&home, "parse_typescript", &args, &[]);
        assert_eq!((code(&result), ran.code), (wanted, Some(exit)), "{exit} {result:#}");
        assert!(!result.to_string().contains("canary"));
    }
    // The next one works.
    assert_eq!(parse(&home, json!({ "code": "export {}" }))["value"]["valid"], true);
}
