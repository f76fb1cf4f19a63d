//! `runner tool list`, `info`, `new` and `check`, and what they say of broken tools.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{call, told, write_yaml};
use crate::support::{Home, needs_engine};

const CODE: &str = "export async function execute(args: any) { return args; }";

/// The rows of a list, by name.
fn row<'v>(list: &'v Value, name: &str) -> &'v Value {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().find(|row| row["name"] == name || row["tool"] == name).unwrap_or(&Value::Null)
}

#[test]
fn tools_of_every_place_are_listed_and_broken_ones_do_not_hide_the_others() {
    let home = Home::new();
    write_yaml(&home, "mine", "permissions: { allowlist: ['git log*'] }", CODE);
    write_yaml(&home, "idle", "enabled: false", CODE);
    write_yaml(&home, "twice", "", CODE);
    fs::create_dir_all(home.path("config/runner/tools")).unwrap();
    fs::copy(
        home.path("project/.runner/tools/twice.yml"),
        home.path("config/runner/tools/twice.yml"),
    )
    .unwrap();
    fs::create_dir_all(home.path("given")).unwrap();
    fs::write(
        home.path("given/probe.tool.ts"),
        "export const tool = {\n  description: 'Says hello.',\n};\n",
    )
    .unwrap();
    fs::write(home.path("project/.runner/tools/bad.yml"), "name: bad\ndescripton: x\n").unwrap();
    symlink("/etc/passwd", home.path("project/.runner/tools/link.yml")).unwrap();
    let given = home.path("given");
    let words = ["tool", "list", "--tools", given.to_str().unwrap()];
    let ran = home.run(["--json"].iter().chain(&words));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let list = ran.json();
    for (name, layer, state) in [
        ("mine", "project", "ready"),
        ("idle", "project", "off"),
        ("twice", "user", "name_taken"),
        ("probe", "given", "ready"),
        ("bad", "project", "broken"),
        ("link", "project", "broken"),
        ("todo_finder", "shipped", "off"),
    ] {
        let row = row(&list, name);
        assert_eq!((&row["layer"], &row["state"]), (&json!(layer), &json!(state)), "{name}: {row}");
    }
    assert_eq!(row(&list, "mine")["securityTier"], "execute");
    assert_eq!(row(&list, "probe")["description"], "Says hello.");
    assert_eq!(
        row(&list, "bad")["findings"][0]["file"],
        json!(home.path("project/.runner/tools/bad.yml"))
    );
    assert!(!ran.out.contains("root:"), "a link shows nothing of what it leads to");
    // A folder that was named and is not there: the tool of this name may be another than was meant.
    for words in [
        &["tool", "list"][..],
        &["tool", "info", "mine"],
        &["tool", "run", "mine"],
        &["tool", "check"],
    ] {
        let ran = home.run(words.iter().chain(&["--tools", "/nonexist"]));
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.err);
        assert!(
            ran.err.contains("error: --tools /nonexist: there is no such folder"),
            "{}",
            ran.err
        );
    }
    let bad = home.run(["tool", "run", "bad"]).err;
    assert!(
        bad.contains("error: tool bad cannot be used (") && bad.contains("bad.yml:2:1"),
        "{bad}"
    );
    let text = home.run(words);
    assert!(
        text.out.contains("todo_finder") && text.err.contains("see runner tool check"),
        "{}",
        text.err
    );

    // What is broken or stands twice cannot be run; the others can be looked at.
    for (name, code, exit) in [
        ("bad", "tool_refused", 125),
        ("link", "tool_refused", 125),
        ("twice", "tool_name_taken", 125),
        ("idle", "tool_disabled", 126),
        ("nosuch", "tool_not_found", 2),
    ] {
        let (result, ran) = call(&home, name, &[]);
        assert_eq!((told(&result).2, ran.code), (code, Some(exit)), "{name}: {result}");
    }
    assert_eq!(home.run(["tool", "info", "mine"]).code, Some(0));
}

#[test]
fn a_tool_is_shown_whole() {
    let home = Home::new();
    let more = "version: 1.2.3\nreturns: { type: string }\nfiles: { read: ['src/**'], write: ['out/**'] }\nnet: ['GET https://api.example/**']\ntimeout: 5s";
    write_yaml(&home, "mine", more, CODE);
    let text = home.run(["tool", "info", "mine"]).out;
    for part in [
        "mine 1.2.3",
        "A tool of a test.",
        "external_api, high risk",
        "asked for each call",
        "src/**",
        "out/**",
        "GET https://api.example/**",
        "wall 5s",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let json = home.run(["--json", "tool", "info", "mine"]).json();
    assert_eq!(json["permissions"]["write"], json!(["out/**"]), "{json}");
    assert_eq!((&json["timeoutMs"], &json["schema"]["type"]), (&json!(5000), &json!("object")));
    let near = home.run(["tool", "info", "mime"]);
    assert!(near.code == Some(2) && near.err.contains("did you mean mine?"), "{}", near.err);
    // Foreign text cannot drive the terminal.
    write_yaml(&home, "odd", "category: \"\\e[2J\"", CODE);
    let odd = home.run(["tool", "check", "odd"]);
    assert!(!odd.err.contains('\u{1b}'), "{:?}", odd.err);
}

#[test]
fn arguments_that_do_not_fit_are_all_listed_and_nothing_starts() {
    let home = Home::new();
    let more = "schema:\n  type: object\n  properties: { count: { type: integer }, mail: { format: email } }\n  required: [name]\n  additionalProperties: false\n  x-assert-format: true";
    let text = format!("name: t\ndescription: x\n{more}\ncode: |\n  {CODE}\n");
    fs::create_dir_all(home.path("project/.runner/tools")).unwrap();
    fs::write(home.path("project/.runner/tools/t.yml"), text).unwrap();
    let (result, ran) = call(&home, "t", &["--args", r#"{"count": "x", "mail": "y", "cuont": 1}"#]);
    assert_eq!((told(&result).2, ran.code), ("invalid_arguments", Some(2)), "{result}");
    let message = result["error"]["message"].as_str().unwrap();
    for part in [
        "/count is a string, expected integer",
        "/mail is not a valid email",
        "lacks `name`",
        "did you mean `count`?",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    for args in [
        &["--args", r#"{"name":"a","name":"b"}"#][..],
        &["--args", "{"],
        &["--arg", "cuont=1"],
        &["--arg", "count=x"],
    ] {
        let (result, ran) = call(&home, "t", args);
        assert_eq!((told(&result).2, ran.code), ("invalid_arguments", Some(2)), "{args:?}");
    }
    let deep = format!("{}1{}", r#"{"name":"#.repeat(100_000), "}".repeat(100_000));
    fs::write(home.path("deep.json"), deep).unwrap();
    let path = home.path("deep.json");
    let (result, _) = call(&home, "t", &["--args-file", path.to_str().unwrap()]);
    assert_eq!(told(&result).2, "invalid_arguments", "{result}");
    assert_eq!(
        home.run(["--json", "audit", "list"]).json()["calls"],
        json!([]),
        "nothing was started"
    );
}

#[test]
fn a_schema_that_leaves_its_file_or_never_ends_is_refused() {
    let home = Home::new();
    for (schema, code) in [
        (
            r#"{ type: object, properties: { a: { $ref: "http://127.0.0.1:9/x" } } }"#,
            "bad_reference",
        ),
        (r#"{ type: object, properties: { a: { $ref: "file:///etc/passwd" } } }"#, "bad_reference"),
        (r#"{ type: object, properties: { a: { pattern: "(?=a)(a+)+$" } } }"#, "bad_pattern"),
    ] {
        let text =
            format!("name: t\ndescription: x\nschema: {schema}\ncode: export const execute = 1\n");
        fs::create_dir_all(home.path("project/.runner/tools")).unwrap();
        fs::write(home.path("project/.runner/tools/t.yml"), text).unwrap();
        let ran = home.run(["--json", "tool", "check", "t"]);
        assert_eq!(ran.code, Some(125), "{schema}");
        let found = &ran.json()["tools"][0]["findings"][0];
        assert_eq!((&found["code"], &found["line"]), (&json!(code), &json!(3)), "{found}");
    }
}

#[test]
fn check_says_what_is_wrong_in_definition_and_code_at_the_authors_line() {
    let home = Home::new();
    write_yaml(&home, "good", "permissions: { allowlist: ['npm test*'] }", CODE);
    let ran = home.run(["--json", "tool", "check", "good"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    let row = &ran.json()["tools"][0];
    let ask = &row["asks"][0];
    assert_eq!(
        (&ask["entry"], &ask["decision"]["decision"]),
        (&json!("npm test*"), &json!("deny"))
    );
    let hints = home.run(["tool", "check", "good", "run_tests"]).err;
    assert_eq!(
        hints,
        "  hint: good asks for more than `readonly` allows (`run npm test*`); try --policy develop\n  hint: run_tests asks for more than `readonly` allows (16 things); try --policy develop\n"
    );
    let allowed = home.run(["--json", "tool", "check", "good", "--policy", "develop"]).json();
    assert_eq!(allowed["tools"][0]["asks"][0]["decision"]["decision"], "allow", "{allowed}");

    write_yaml(&home, "wrong", "", "export function execute() {\n  return 1 +;\n}");
    let ran = home.run(["--json", "tool", "check", "wrong"]);
    assert_eq!(ran.code, Some(125), "{}", ran.out);
    let found = &ran.json()["tools"][0]["findings"][0];
    let text = fs::read_to_string(home.path("project/.runner/tools/wrong.yml")).unwrap();
    let line = text.lines().position(|line| line.contains("1 +;")).unwrap() + 1;
    assert_eq!(found["line"], json!(line), "{found}");

    // A file by its path, and one that is not there.
    let path = home.path("project/.runner/tools/good.yml");
    assert_eq!(home.run(["tool", "check", path.to_str().unwrap()]).code, Some(0));
    assert_eq!(home.run(["tool", "check", "./nosuch.yml"]).code, Some(125));
    assert_eq!(home.run(["tool", "check", "nosuch"]).code, Some(2));
    assert_eq!(home.run(["tool", "check", "two words"]).code, Some(2));
}

#[test]
fn a_new_tool_works_at_once_in_both_forms() {
    let home = Home::new();
    fs::write(home.path("project/README.md"), "# one two\n").unwrap();
    let ran = home.run(["tool", "new", "first", "--description", "It's \"mine\""]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for file in ["first.yml", "runner.d.ts", "tsconfig.json"] {
        assert!(home.path("project/.runner/tools").join(file).is_file(), "{file}");
    }
    assert_eq!(home.run(["tool", "check", "first"]).code, Some(0));
    assert_eq!(home.run(["tool", "new", "first", "--form", "module"]).code, Some(125));
    assert_eq!(home.run(["tool", "new", "../x"]).code, Some(2));
    let folder = home.path("elsewhere/tools");
    let words = ["tool", "new", "second", "--form", "module", "--dir", folder.to_str().unwrap()];
    assert_eq!(home.run(words).code, Some(0));
    needs_engine();
    let (result, ran) = call(&home, "first", &[]);
    assert_eq!(
        result["value"],
        json!({"path": "README.md", "lines": 1, "words": 3}),
        "{result} {}",
        ran.err
    );
    let tools = ["--tools", folder.to_str().unwrap()];
    let (result, ran) = call(&home, "second", &tools);
    assert_eq!(result["value"]["words"], 3, "{result} {}", ran.err);
    let info = home.run(["--json", "tool", "info", "second"].iter().chain(&tools)).json();
    assert_eq!(
        (&info["form"], &info["securityTier"]),
        (&json!("module"), &json!("read_only")),
        "{info}"
    );
    assert_eq!(home.run(["tool", "check", "second"].iter().chain(&tools)).code, Some(0));
}

#[test]
fn a_module_that_lies_about_itself_is_refused() {
    needs_engine();
    let home = Home::new();
    let folder = home.path("project/.runner/tools");
    fs::create_dir_all(&folder).unwrap();
    let base = "parameters: { type: 'object' }, execute() { return 1 }";
    for (text, code) in [
        (
            format!("export const tool = {{ name: 'other', description: 'x', {base} }};"),
            "name_differs",
        ),
        (
            format!(
                "export const tool = {{ name: 'm', description: 'x', privileged: true, permissions: {{ network: 'host' }}, {base} }};"
            ),
            "unknown_key",
        ),
        (
            format!(
                "export const tool = {{ name: 'm', description: 'x', net: ['everything'], {base} }};"
            ),
            "bad_target",
        ),
        (
            format!(
                "export const tool = {{ name: 'm', description: 'x', securityTier: 'read_only', permissions: {{ allowlist: ['*'] }}, {base} }};"
            ),
            "tier_too_low",
        ),
    ] {
        fs::write(folder.join("m.tool.ts"), &text).unwrap();
        let ran = home.run(["--json", "tool", "check", "m"]);
        assert_eq!(ran.code, Some(125), "{text}: {}", ran.out);
        assert_eq!(ran.json()["tools"][0]["findings"][0]["code"], code, "{}", ran.out);
        assert_eq!(told(&call(&home, "m", &[]).0).2, "tool_description", "{text}");
    }
    // The control.
    fs::write(
        folder.join("m.tool.ts"),
        format!("export const tool = {{ name: 'm', description: 'x', {base} }};"),
    )
    .unwrap();
    assert_eq!(home.run(["tool", "check", "m"]).code, Some(0));
    assert_eq!(call(&home, "m", &[]).0["value"], 1);
}

#[test]
fn a_member_that_nothing_reads_refuses_the_module() {
    needs_engine();
    let home = Home::new();
    let folder = home.path("project/.runner/tools");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, members: &str| {
        let base = format!("name: '{name}', description: 'x', parameters: {{ type: 'object' }}");
        let text =
            format!("export const tool = {{ {base},\n{members}\nexecute() {{ return 1 }} }};");
        fs::write(folder.join(format!("{name}.tool.ts")), text).unwrap();
    };
    let refused = [
        (
            "before",
            "preconditions: [{ critical: true, check: async () => false }],",
            "not_supported",
        ),
        ("asks", "requiresConfirmation: true,", "unknown_key"),
        ("typo", "timout: 5,", "unknown_key"),
        ("again", "retry: { maxAttempts: 2, shouldRetry: () => false },", "not_supported"),
        ("nested", "permissions: { allowlist: [], check: () => false },", "wrong_type"),
        ("hook", "valdiate() { throw new Error('no') },", "unknown_key"),
    ];
    refused.iter().for_each(|(name, members, _)| write(name, members));
    // The control: helpers are free, in literals and in classes.
    write("helped", "half(n: number) { return n / 2 },");
    let class = "class Base { name = 'classy'; description = 'x'; parameters = { type: 'object' }; #state = 2;\n\
        execute() { return this.more() } more() { return this.#state } }\nexport const tool = new Base();\n";
    fs::write(folder.join("classy.tool.ts"), class).unwrap();
    let ran = home.run(["--json", "tool", "check"]);
    assert_eq!(ran.code, Some(125), "{}", ran.out);
    let checked = ran.json();
    let rows = checked["tools"].as_array().unwrap();
    let findings = |name: &str| {
        let row = rows.iter().find(|row| row["tool"] == name).unwrap();
        (row["findings"].clone(), row["errors"].clone())
    };
    for (name, members, code) in refused {
        let (found, _) = findings(name);
        assert_eq!(
            (&found[0]["code"], &found[0]["line"]),
            (&json!(code), &json!(2)),
            "{members} {found}"
        );
    }
    assert!(findings("typo").0[0]["help"].as_str().unwrap().contains("`timeout`"));
    for name in ["helped", "classy"] {
        assert_eq!(findings(name), (json!([]), json!([])), "{name}");
    }
    let (result, ran) = call(&home, "before", &[]);
    assert_eq!((ran.code, told(&result).2), (Some(125), "tool_description"), "{result}");
    assert_eq!(call(&home, "classy", &[]).0["value"], 2);
}

#[test]
fn a_health_check_runs_with_the_tools_own_permissions() {
    needs_engine();
    let home = Home::new();
    let folder = home.path("project/.runner/tools");
    fs::create_dir_all(&folder).unwrap();
    fs::write(home.path("project/state"), "fine").unwrap();
    let module = |read: &str| {
        format!(
            "export const tool = {{ name: 'm', description: 'x', parameters: {{ type: 'object' }}, files: {{ read: ['{read}'] }}, execute() {{ return 1 }},\n async healthCheck(context) {{ return {{ healthy: true, message: await context.platform.fs.readFile('state') }} }} }};"
        )
    };
    let check = |read: &str| {
        fs::write(folder.join("m.tool.ts"), module(read)).unwrap();
        let ran = home.run(["--json", "tool", "check", "m", "--health"]);
        (ran.code, ran.json()["tools"][0]["health"].clone())
    };
    assert_eq!(check("state"), (Some(0), json!({"healthy": true, "message": "fine"})));
    let (code, health) = check("other");
    assert_eq!((code, &health["healthy"]), (Some(125), &json!(false)), "{health}");
}
