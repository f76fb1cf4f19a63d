//! The registry: sources, switches, search, costs, exports and grades, through the real command line.

use std::fs;

use serde_json::{Value, json};

use super::{told, write_yaml};
use crate::support::{Home, Ran, needs_engine};

const CODE: &str = "export async function execute(args: any) { return args; }";

/// Calls a tool that nobody is asked about.
fn run(home: &Home, name: &str) -> (Value, Ran) {
    let ran = home.run(["--json", "tool", "run", name]);
    (ran.json(), ran)
}

fn row<'v>(list: &'v Value, name: &str) -> &'v Value {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().find(|row| row["name"] == name || row["tool"] == name).unwrap_or(&Value::Null)
}

fn list(home: &Home) -> Value {
    home.run(["--json", "tool", "list"]).json()
}

fn user_config(home: &Home) -> String {
    fs::read_to_string(home.path("config/runner/config.yml")).unwrap()
}

#[test]
fn an_example_is_off_until_it_is_switched_on() {
    let home = Home::new();
    assert_eq!(row(&list(&home), "todo_finder")["state"], "off");
    let (result, ran) = run(&home, "todo_finder");
    assert_eq!((told(&result).2, ran.code), ("tool_disabled", Some(126)), "{result}");
    assert_eq!(result["error"]["suggestion"], "to use it: runner tool enable todo_finder");
    fs::write(home.path("config/runner/config.yml"), "# mine\npool: { size: 1 } # few\n").unwrap();
    let ran = home.run(["tool", "enable", "todo_finder"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("✓ enabled todo_finder (+"), "{}", ran.out);
    let expected = "# mine\npool: { size: 1 } # few\ntools:\n  todo_finder: { enabled: true }\n";
    assert_eq!(user_config(&home), expected);
    assert_eq!(row(&list(&home), "todo_finder")["state"], "ready");
    needs_engine();
    let (result, _) = run(&home, "todo_finder");
    assert_eq!(told(&result), ("completed", 0, ""), "{result}");
    let ran = home.run(["--json", "tool", "disable", "todo_finder"]);
    assert_eq!((ran.code, ran.json()["enabled"].clone()), (Some(0), json!(false)));
    assert_eq!(ran.json()["changed"], json!(["todo_finder"]));
    assert_eq!(user_config(&home), expected.replace("true", "false"));
    let ran = home.run(["--json", "tool", "disable", "todo_finder"]);
    assert_eq!((ran.code, ran.json()["changed"].clone()), (Some(0), json!([])));
    let ran = home.run(["tool", "disable", "todo_finder"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "  todo_finder is disabled already\n"));
    assert_eq!(user_config(&home), expected.replace("true", "false"));
    let (result, _) = run(&home, "todo_finder");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("config/runner/config.yml:4"), "{message}");
}

#[test]
fn a_switch_goes_where_it_may_and_says_where_it_went() {
    let home = Home::new();
    write_yaml(&home, "mine", "", CODE);
    let ran = home.run(["tool", "disable", "mine", "--project"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let project = home.path("project/.runner/config.yml");
    assert_eq!(fs::read_to_string(&project).unwrap(), "tools:\n  mine: { enabled: false }\n");
    assert_eq!(row(&list(&home), "mine")["state"], "off");
    assert_eq!(row(&list(&home), "mine")["switch"]["off"]["layer"], "project");
    // The user's own word is stronger than the project's.
    assert_eq!(home.run(["tool", "enable", "mine"]).code, Some(0));
    assert_eq!(row(&list(&home), "mine")["state"], "ready");
    let ran = home.run(["tool", "enable", "mien"]);
    assert!(ran.code == Some(2) && ran.err.contains("did you mean mine?"), "{}", ran.err);
    // A file that is broken is not touched.
    fs::write(home.path("config/runner/config.yml"), "poool: 1\n").unwrap();
    let ran = home.run(["tool", "enable", "mine"]);
    assert_eq!((ran.code, user_config(&home).as_str()), (Some(125), "poool: 1\n"));
}

#[test]
fn a_name_of_a_tool_of_ours_that_is_on_is_refused_with_both_places() {
    let home = Home::new();
    write_yaml(&home, "todo_finder", "", CODE);
    let found = list(&home);
    let own = row(&found, "todo_finder");
    assert_eq!((&own["state"], &own["source"]), (&json!("ready"), &json!("custom")));
    assert_eq!(own["replacesShipped"], true, "an example that is off does not collide");
    fs::write(home.path("config/runner/config.yml"), "tools: { todo_finder: { enabled: true } }\n")
        .unwrap();
    let (result, ran) = run(&home, "todo_finder");
    assert_eq!((told(&result).2, ran.code), ("tool_name_taken", Some(125)), "{result}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("tools/todo_finder.yml and /"), "{message}");
}

#[test]
fn custom_tools_can_be_left_out() {
    let home = Home::new();
    write_yaml(&home, "mine", "", CODE);
    fs::write(home.path("config/runner/config.yml"), "autoLoadCustomTools: false\n").unwrap();
    assert_eq!(row(&list(&home), "mine"), &Value::Null);
    let (result, ran) = run(&home, "mine");
    assert_eq!((told(&result).2, ran.code), ("tool_not_found", Some(2)), "{result}");
    let hint = result["error"]["suggestion"].as_str().unwrap();
    assert!(hint.contains("`autoLoadCustomTools`") && hint.contains("config.yml:1"), "{hint}");
    let folder = home.path("project/.runner/tools");
    let named = home.run(["--json", "tool", "list", "--tools", folder.to_str().unwrap()]).json();
    assert_eq!(row(&named, "mine")["state"], "ready");
}

#[test]
fn a_list_has_marks_badges_costs_and_a_total() {
    let home = Home::new();
    write_yaml(&home, "mine", "tokenCost: 450", CODE);
    let text = home.run(["tools", "list"]).out;
    for bare in ["tool", "tools"] {
        assert_eq!(home.run([bare]).out, text, "without a subcommand they are listed");
    }
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("mine").starts_with("✓  mine"), "{text}");
    for part in ["[Custom]", "ready", "read_only", "   450  "] {
        assert!(line("mine").contains(part), "{part:?} is not in\n{text}");
    }
    assert!(line("todo_finder").starts_with("✗  todo_finder"), "{text}");
    assert!(line("todo_finder").contains("[Built-in]"), "{text}");
    // What is built in is ready too, and counts.
    let found = list(&home);
    let ready = found["tools"].as_array().unwrap().iter().filter(|it| it["state"] == "ready");
    let total: u64 = ready.map(|it| it["tokenCost"].as_u64().unwrap()).sum();
    assert!(total > 450 && found["tokenCost"] == total, "{found}");
    let line = format!("Total in an agent's context: ~{total} tokens, ");
    assert!(text.contains(&line) && text.contains("% of 200000"), "{text}");
    fs::write(home.path("config/runner/config.yml"), "showTokenCosts: false\n").unwrap();
    let text = home.run(["tool", "list"]).out;
    assert!(!text.contains("tokens") && !text.contains("450"), "{text}");
    let coloured = home.run(["tool", "list", "--color", "always"]).out;
    assert!(coloured.contains("\u{1b}[1m\u{1b}[32m✓"), "{coloured:?}");
}

#[test]
fn a_tool_without_its_credentials_is_unavailable_and_says_where_to_get_them() {
    let home = Home::new();
    let more = "version: 1.0.0\ncategory: service\ntags: [mail]\ndocumentation: https://a.example/docs\nrequiredAuth: { type: api_key, configKey: A_TEST_TOKEN, setupUrl: 'https://a.example/keys' }\ncostInfo: { model: usage_based, estimatedCost: 0.3, billingUrl: 'https://a.example/bill' }\ncapabilities: [{ action: send_mail, description: Sends a mail., requiresConfirmation: true, estimatedTime: 2000 }]";
    write_yaml(&home, "mailer", more, CODE);
    let found = list(&home);
    let mailer = row(&found, "mailer");
    assert_eq!(
        (&mailer["state"], &mailer["lacks"]["configKey"]),
        (&json!("unavailable"), &json!("A_TEST_TOKEN"))
    );
    let text = home.run(["tool", "info", "mailer"]).out;
    for part in [
        "mailer 1.0.0",
        "unavailable  A_TEST_TOKEN is not set; get it at https://a.example/keys",
        "service",
        "send_mail",
        "(asked about)",
        "~2000 ms",
        "api_key in A_TEST_TOKEN",
        "usage_based, $0.3 a call",
        "https://a.example/docs",
        "asked for each call",
        "mail",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let json = home.run(["--json", "tool", "info", "mailer"]).json();
    assert_eq!(json["costInfo"]["model"], "usage_based");
    assert_eq!(json["capabilities"][0]["requiresConfirmation"], true);
    let there = home.runner().env("A_TEST_TOKEN", "x").args(["--json", "tool", "list"]).output();
    let there: Value = serde_json::from_slice(&there.unwrap().stdout).unwrap();
    assert_eq!(row(&there, "mailer")["state"], "ready");
    // What is wrong in it is told at its place.
    write_yaml(
        &home,
        "wrong",
        "requiredAuth: { type: apikey, configKey: 'A B' }\ndocumentation: javascript:x",
        CODE,
    );
    let err = home.run(["tool", "info", "wrong"]).err;
    for part in [
        "unknown `type` `apikey`",
        "did you mean `api_key`?",
        "names no variable",
        "not the URL of a page",
    ] {
        assert!(err.contains(part), "{part:?} is not in\n{err}");
    }
}

#[test]
fn search_ranks_what_it_finds() {
    let home = Home::new();
    write_yaml(&home, "deploy", "", CODE);
    write_yaml(&home, "site", "tags: [deploy]", CODE);
    write_yaml(&home, "other", "category: deployment", CODE);
    let found = home.run(["--json", "tool", "search", "deploy"]).json();
    let names: Vec<_> =
        found["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["deploy", "site", "other"]);
    assert!(found["scores"][0].as_u64() > found["scores"][1].as_u64());
    let text = home.run(["tool", "search", "notes", "code"]).out;
    assert!(text.contains("todo_finder") && text.lines().count() == 2, "{text}");
    let none = home.run(["tool", "search", "xyzzy"]);
    assert!(none.out.is_empty() && none.err.contains("no tool is about this"), "{}", none.err);
}

#[test]
fn tokens_are_counted_and_drawn() {
    let home = Home::new();
    write_yaml(&home, "said", "tokenCost: 4500", CODE);
    write_yaml(&home, "counted", "", CODE);
    let before = list(&home);
    assert_eq!(row(&before, "counted")["tokenCostEstimated"], true);
    let json = home.run(["--json", "tool", "tokens"]).json();
    let counted = row(&json, "counted");
    assert_eq!(
        (&row(&json, "said")["by"], &counted["by"]),
        (&json!("tokenCost"), &json!("counted"))
    );
    let figure = counted["tokens"].as_u64().unwrap();
    assert!((10..60).contains(&figure), "{json}");
    let each = json["tools"].as_array().unwrap().iter();
    let total: u64 = each.map(|it| it["tokens"].as_u64().unwrap()).sum();
    assert!(total >= 4500 + figure);
    assert_eq!((&json["total"], &json["window"]), (&json!(total), &json!(200_000)));
    let after = list(&home);
    assert_eq!(row(&after, "counted")["tokenCost"], json!(figure), "a count is remembered");
    assert_eq!(row(&after, "counted")["tokenCostEstimated"], false);
    fs::write(home.path("config/runner/config.yml"), "context: { window: 10000 }\n").unwrap();
    let text = home.run(["tool", "tokens"]).out;
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("said  "), "{text}");
    assert!(first.ends_with(&format!(" {}    4500  45.00%", "█".repeat(40))), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("█░"), "{text}");
    assert!(text.contains("of a window of 10000"), "{text}");
}

#[test]
fn tools_are_exported_in_the_words_of_others() {
    let home = Home::new();
    write_yaml(&home, "mine", "", CODE);
    let export = |format: &str| {
        let ran = home.run(["tool", "export", "--format", format]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.json()
    };
    let mine = |tools: &Value, name: &str| {
        let mut tools = tools.as_array().unwrap().iter();
        tools.find(|it| it.pointer(name) == Some(&json!("mine"))).unwrap().clone()
    };
    assert_eq!(mine(&export("openai"), "/function/name")["type"], "function");
    assert_eq!(mine(&export("anthropic"), "/name")["input_schema"]["type"], "object");
    assert_eq!(mine(&export("mcp")["tools"], "/name")["annotations"]["readOnlyHint"], true);
    let all = export("json");
    let names: Vec<_> = all["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("mine")) && names.contains(&&json!("file_operations")));
    assert!(!names.contains(&&json!("todo_finder")), "examples are off");
    let named = home.run(["tool", "export", "todo_finder", "--format", "openai", "--json"]).json();
    assert_eq!(named[0]["function"]["name"], "todo_finder");
    let named = home.run(["tool", "export", "todo_finder", "mine"]).json();
    assert_eq!(row(&named, "todo_finder")["enabled"], false, "it is off");
    assert_eq!(row(&named, "mine")["enabled"], true);
    assert_eq!(row(&named, "mine")["tokenCostEstimated"], true);
    home.run(["tool", "tokens"]);
    let named = home.run(["tool", "export", "mine"]).json();
    assert_eq!(row(&named, "mine")["tokenCostEstimated"], false, "a count is remembered");
    assert_eq!(home.run(["tool", "export", "nosuch"]).code, Some(2));
    assert_eq!(home.run(["tool", "export", "--format", "xml"]).code, Some(2));
}

#[test]
fn a_check_grades_a_tool_and_says_what_is_missing() {
    needs_engine();
    let home = Home::new();
    write_yaml(&home, "bare", "", CODE);
    let ran = home.run(["tool", "check", "bare"]);
    assert_eq!(ran.code, Some(0), "what is missing is no error: {}", ran.err);
    for part in ["F  ", "✗ a version  version: 1.0.0", "✗ a schema of its result"] {
        assert!(ran.out.contains(part), "{part:?} is not in\n{}", ran.out);
    }
    let json = home.run(["--json", "tool", "check", "bare"]).json();
    let conformance = &json["tools"][0]["conformance"];
    assert_eq!(conformance["grade"], "F");
    assert!(conformance["points"].as_array().unwrap().iter().any(|it| it["passed"] == false));
    // What we ship is as we ask others to be.
    let shipped = home.run(["--json", "tool", "check"]).json();
    for tool in shipped["tools"].as_array().unwrap().iter().filter(|it| it["source"] == "built-in")
    {
        let grade = tool["conformance"]["grade"].as_str().unwrap();
        assert_eq!(grade, "A", "{}: {:#}", tool["tool"], tool["conformance"]);
    }
    for form in ["yaml", "module"] {
        let name = format!("new_{form}");
        assert_eq!(home.run(["tool", "new", &name, "--form", form]).code, Some(0));
        let json = home.run(["--json", "tool", "check", &name]).json();
        let conformance = &json["tools"][0]["conformance"];
        assert!(["A", "B"].contains(&conformance["grade"].as_str().unwrap()), "{form}: {json:#}");
    }
}
