//! Approvals through the real command line: at a terminal, by id, for a time, never, and void when the tool changes.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Home, Ran, needs_engine};
use crate::tools::{told, write_yaml};

/// Asks about `echo`, allows the rest of a tool's life.
const ASKS: &str = "policy: 1\nname: asks\nsandbox: { isolation: strict, limits: { wall: 2m } }\nfiles: { read: ['**'], write: ['**'] }\ncommands:\n  - { id: speak, ask: 'echo ...', reason: Words are heard. }\n";

fn home() -> Home {
    let home = Home::new();
    home.config("pool: { size: 0 }\n");
    home.user_policy("asks", ASKS);
    home
}

/// The call `echo hi`, with more words before the command.
fn echo(home: &Home, more: &[&str]) -> (Value, Ran) {
    let words = ["--json", "exec", "--policy", "asks"];
    let ran = home.run(words.iter().chain(more).chain(&["--", "echo", "hi"]));
    (ran.json(), ran)
}

/// The id of the question that a result waits for.
fn id(result: &Value) -> String {
    assert_eq!((told(result).0, told(result).1), ("needs_approval", 77), "{result}");
    let id = result["error"]["details"]["approval"]["id"].as_str();
    id.unwrap_or_else(|| panic!("no id: {result}")).to_owned()
}

#[test]
fn a_command_is_approved_by_id_once_and_nobody_answers_without_a_terminal() {
    needs_engine();
    let home = home();
    let question = id(&echo(&home, &[]).0);
    assert_eq!(id(&echo(&home, &[]).0), question, "the same question is asked once");
    let listed = home.run(["--json", "approvals"]).json();
    assert_eq!(listed["approvals"][0]["id"], json!(question), "{listed}");
    assert_eq!(listed["approvals"][0]["state"], "pending");
    let shown = home.run(["approvals"]).out;
    assert!(shown.contains(&question) && shown.contains("exec echo hi"), "{shown}");

    // An agent cannot approve itself.
    let alone = home.run(["--json", "approve", &question]);
    assert_eq!(
        (alone.code, &alone.json()["error"]["code"]),
        (Some(77), &json!("approval_needs_terminal"))
    );
    let early = echo(&home, &["--approve", &question]).0;
    assert_eq!(told(&early).2, "approval_needed", "{early}");

    let person = home.at_terminal(&format!("approve {question}"), "y\n");
    assert_eq!(person.code, Some(0), "{}", person.out);
    for part in ["echo hi", "Words are heard.", "speak", "approved, once"] {
        assert!(person.out.contains(part), "{part}: {}", person.out);
    }
    let (result, ran) = echo(&home, &["--approve", &question]);
    assert_eq!((ran.code, &result["stdout"]), (Some(0), &json!("hi\n")), "{result}");
    let again = echo(&home, &["--approve", &question]).0;
    assert_eq!(told(&again).2, "approval_over", "{again}");

    // It is about this call: no other one can use it.
    let question = id(&echo(&home, &[]).0);
    home.at_terminal(&format!("approve {question}"), "y\n");
    let words = ["--json", "exec", "--policy", "asks", "--approve", &question, "--", "echo", "no"];
    let other = home.run(words);
    assert_eq!(
        (other.code, told(&other.json()).2),
        (Some(126), "approval_differs"),
        "{}",
        other.out
    );
    let unknown = echo(&home, &["--approve", "aaaaaaaaaa"]).0;
    assert_eq!((told(&unknown).1, told(&unknown).2), (2, "approval_unknown"), "{unknown}");

    // Everything is in the ledger.
    let audit =
        home.run(["--json", "audit", "show", listed["approvals"][0]["call"].as_str().unwrap()]);
    assert!(audit.out.contains("\"approval\""), "{}", audit.out);
}

#[test]
fn a_person_answers_for_once_for_a_session_for_a_time_and_never() {
    needs_engine();
    let home = home();
    let call = "exec --policy asks -- echo hi";
    let once = home.at_terminal(call, "y\n");
    assert!(once.code == Some(0) && once.out.contains("\nhi"), "{}", once.out);
    for part in ["echo hi", "speak", "Words are heard.", "once", "session", "never"] {
        assert!(once.out.contains(part), "{part}: {}", once.out);
    }
    assert_eq!(home.at_terminal(call, "n\n").code, Some(77));
    // Another terminal is another session.
    assert_eq!(home.at_terminal(call, "s\n").code, Some(0));
    id(&echo(&home, &[]).0);
    // For a time: nobody is asked again, also where nobody could be.
    assert_eq!(home.at_terminal(call, "1h\n").code, Some(0));
    for _ in 0..2 {
        assert_eq!(echo(&home, &[]).1.code, Some(0));
    }
    let granted = home.run(["--json", "approvals"]).json();
    let scopes: Vec<_> =
        granted["approvals"].as_array().unwrap().iter().map(|it| it["scope"].clone()).collect();
    assert!(scopes.contains(&json!("time")) && scopes.contains(&json!("session")), "{granted}");
    // A no by id takes it back, and needs no terminal.
    let time =
        granted["approvals"].as_array().unwrap().iter().find(|it| it["scope"] == "time").unwrap();
    assert_eq!(home.run(["deny", time["id"].as_str().unwrap()]).code, Some(0));
    let question = id(&echo(&home, &[]).0);
    // Never is for the same call, each time, until it is taken back.
    assert_eq!(home.at_terminal(call, "never\n").code, Some(126));
    let (never, ran) = echo(&home, &[]);
    assert_eq!((ran.code, told(&never).2), (Some(126), "approval_denied"), "{never}");
    let back = never["error"]["details"]["approval"]["id"].as_str().unwrap();
    assert_eq!(home.at_terminal(&format!("approve {back}"), "y\n").code, Some(0));
    assert_eq!(echo(&home, &[]).1.code, Some(0));
    // A question that was denied is over.
    assert_eq!(home.run(["deny", &question]).code, Some(0));
    assert_eq!(told(&home.run(["--json", "deny", &question]).json()).2, "approval_over");
}

const CODE: &str = "import { word } from './lib.ts';\nexport async function execute(args: any) { return word + args.name; }";

/// A tool that is asked about, with a file that it imports.
fn asked_tool(home: &Home) {
    write_yaml(home, "t", "permissions: { allowlist: ['git log*'] }", CODE);
    fs::write(home.path("project/.runner/tools/lib.ts"), "export const word = 'hello ';\n")
        .unwrap();
    let file = home.path("project/.runner/tools/t.yml");
    let text = fs::read_to_string(&file).unwrap();
    let schema = "schema: { type: object, properties: { name: { type: string } } }";
    fs::write(&file, text.replace("schema: { type: object }", schema)).unwrap();
}

fn tool(home: &Home, name: &str, more: &[&str]) -> Value {
    let arg = format!("name={name}");
    let words = ["--json", "tool", "run", "t", "--arg", &arg];
    home.run(words.iter().chain(more)).json()
}

#[test]
fn row_31_an_approval_is_void_when_the_tool_an_import_or_a_kind_of_file_changes() {
    needs_engine();
    let home = home();
    asked_tool(&home);
    let question = id(&tool(&home, "ann", &[]));
    let approved = home.at_terminal(&format!("approve {question} --for 1h --arg 'name=a*'"), "y\n");
    assert_eq!(approved.code, Some(0), "{}", approved.out);
    for part in ["A tool of a test.", "name = ", "git log*", "high", "execute"] {
        assert!(approved.out.contains(part), "{part}: {}", approved.out);
    }
    // The control: the same tool, arguments within the pattern.
    for name in ["ann", "anton"] {
        assert_eq!(tool(&home, name, &[])["value"], json!(format!("hello {name}")));
    }
    assert_ne!(id(&tool(&home, "bob", &[])), question);

    let lib = home.path("project/.runner/tools/lib.ts");
    let approve = || {
        let question = id(&tool(&home, "ann", &[]));
        let person = home.at_terminal(&format!("approve {question} --for 1h"), "y\n");
        assert_eq!(person.code, Some(0), "{}", person.out);
        assert_eq!(told(&tool(&home, "ann", &[])).0, "completed");
    };
    let refused = |file: &str| {
        let result = tool(&home, "ann", &[]);
        assert_eq!(
            (told(&result).0, told(&result).2),
            ("denied", "tool_digest_mismatch"),
            "{result}"
        );
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(file), "{message}");
    };
    fs::write(&lib, "export const word = 'goodbye ';\n").unwrap();
    refused("lib.ts");
    // Void for good: it is asked about anew, and the new form can be approved.
    approve();
    let yml = home.path("project/.runner/tools/t.yml");
    let text = fs::read_to_string(&yml).unwrap();
    fs::write(&yml, text.replace("word +", "'' + word +")).unwrap();
    refused("t.yml");
    approve();
    fs::write(&yml, text.replace("git log*", "git status*")).unwrap();
    refused("t.yml");
}

#[test]
fn tiers_have_their_own_behaviour() {
    needs_engine();
    let home = home();
    fs::write(home.path("project/.env"), "KEY=1\n").unwrap();
    fs::write(home.path("project/a.txt"), "one\n").unwrap();
    let run = |name: &str, more: &[&str]| {
        let words = ["--json", "tool", "run", name, "--policy", "asks"];
        home.run(words.iter().chain(more)).json()
    };
    // Read only: it runs; a sensitive file is refused.
    let read = "export async function execute(_: any, c: any) { return await c.platform.fs.readFile(FILE); }";
    write_yaml(&home, "looks", "", &read.replace("FILE", "'a.txt'"));
    assert_eq!(run("looks", &[])["value"], "one\n");
    write_yaml(&home, "peeks", "", &read.replace("FILE", "'id_rsa'"));
    fs::write(home.path("project/id_rsa"), "key\n").unwrap();
    assert_eq!(told(&run("peeks", &[])).0, "denied");
    // Write: it runs; to destroy needs approval.
    let write = "export async function execute(_: any, c: any) { await c.platform.fs.writeFile('out.txt', 'x'); return 1; }";
    write_yaml(&home, "writes", "files: { write: ['*.txt'] }", write);
    assert_eq!(run("writes", &[])["value"], 1);
    let remove = "export async function execute(_: any, c: any) { await c.platform.fs.rm('a.txt'); return 'gone'; }";
    write_yaml(&home, "removes", "files: { write: ['*.txt'] }", remove);
    let result = run("removes", &[]);
    assert_eq!((told(&result).0, told(&result).1), ("needs_approval", 77), "{result}");
    assert!(home.path("project/a.txt").exists());
    let waiting = home.run(["--json", "approvals"]).json();
    let question = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(waiting["approvals"][0]["subject"], "tool:removes/remove");
    let person = home.at_terminal(&format!("approve {question}"), "y\n");
    assert!(person.code == Some(0) && person.out.contains("a.txt"), "{}", person.out);
    let result = run("removes", &["--approve", &question]);
    assert_eq!((told(&result).0, &result["value"]), ("completed", &json!("gone")), "{result}");
    assert!(!home.path("project/a.txt").exists());
    // Execute and external API: each call is asked about; `autoAccept` and `riskLevel` refine.
    let nothing = "export async function execute() { return 1; }";
    for (name, more, asked) in [
        ("runs", "permissions: { allowlist: ['git log*'] }", true),
        ("reaches", "net: ['GET https://api.example/**']", true),
        (
            "waives",
            "permissions: { allowlist: ['git log*'], autoAccept: true, riskLevel: low }",
            true,
        ),
        ("risky", "permissions: { riskLevel: high }", true),
        ("careful", "permissions: { autoAccept: false }", true),
        ("plain", "", false),
    ] {
        write_yaml(&home, name, more, nothing);
        let result = run(name, &[]);
        let status = if asked { "needs_approval" } else { "completed" };
        assert_eq!(told(&result).0, status, "{name}: {result}");
    }
    // Whoever types `--yes` at a terminal has approved it, but not against a never.
    let yes = "tool run runs --policy asks --yes";
    assert_eq!(home.at_terminal(yes, "\n").code, Some(0));
    assert_eq!(home.at_terminal("tool run runs --policy asks", "never\n").code, Some(126));
    let never = home.at_terminal(yes, "\n");
    assert!(never.code == Some(126) && never.out.contains("approval_denied"), "{}", never.out);
}

#[test]
fn a_configuration_can_let_programs_answer_but_a_project_cannot() {
    let home = home();
    write_yaml(&home, "t", "permissions: { autoAccept: false }", "export const execute = () => 1;");
    let asked = || id(&home.run(["--json", "tool", "run", "t"]).json());
    let config = "approvals: { withoutTerminal: true }\n";
    let project = home.path("project/.runner/config.yml");
    fs::write(&project, config).unwrap();
    let refused = home.run(["--json", "approvals"]);
    assert_eq!(refused.code, Some(125), "{}", refused.out);
    fs::remove_file(&project).unwrap();
    let question = asked();
    assert_eq!(home.run(["approve", &question]).code, Some(77));
    fs::write(home.path("config/runner/config.yml"), config).unwrap();
    let ran = home.run(["--json", "approve", &question, "--for", "10m"]);
    assert_eq!((ran.code, &ran.json()["state"]), (Some(0), &json!("granted")), "{}", ran.err);
    for (words, part) in [
        (vec!["approve", question.as_str(), "--for", "soon"], "is not a time"),
        (vec!["approve", question.as_str(), "--for", "1h", "--arg", "x"], "has no pattern"),
        (vec!["approve", "short"], "10 letters and digits"),
    ] {
        let wrong = home.run(words);
        assert!(wrong.code == Some(2) && wrong.err.contains(part), "{}", wrong.err);
    }
}

#[test]
fn row_35_a_question_shows_no_raw_control_characters() {
    let home = home();
    let code = "export const execute = () => 1;";
    write_yaml(&home, "t", "permissions: { autoAccept: false }", code);
    let file = home.path("project/.runner/tools/t.yml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text
        .replace("A tool of a test.", "\"Nice \\e[2J\\e[1;1H\\r tool \\u202e\"")
        .replace("schema: { type: object }", "schema: { type: object, properties: { a: {} } }");
    fs::write(&file, text).unwrap();
    let args = home.path("args.json");
    fs::write(&args, r#"{"a": "x\u001b[31my\u202ez\r\u0007"}"#).unwrap();
    let call = format!("tool run t --args-file {}", args.display());
    let seen = home.at_terminal(&call, "n\n");
    assert_eq!(seen.code, Some(77), "{}", seen.out);
    let words: Vec<&str> = call.split(' ').collect();
    let question = id(&home.run(["--json"].iter().chain(&words)).json());
    let answered = home.at_terminal(&format!("approve {question}"), "n\n");
    let listed = home.at_terminal("approvals", "\n");
    for shown in [&seen.out, &answered.out, &listed.out] {
        // Our own colours of headings are the only escapes.
        let plain = shown
            .replace("\u{1b}[2m", "")
            .replace("\u{1b}[0m", "")
            .replace("\u{1b}[1m", "")
            .replace("\u{1b}[31m\u{1b}", "");
        for raw in ["\u{1b}[2J", "\u{1b}[31my", "\u{202e}", "\u{7}"] {
            assert!(!plain.contains(raw), "{raw:?} in {plain:?}");
        }
    }
    assert!(seen.out.contains("\\u{202e}") && seen.out.contains("\\x1b[2J"), "{}", seen.out);
    assert!(
        answered.out.contains("\\x1b[31my") || answered.out.contains("u001b[31my"),
        "{}",
        answered.out
    );
}

/// Approves a question at a terminal.
fn approve(home: &Home, question: &str, more: &str) {
    let person = home.at_terminal(&format!("approve {question} {more}"), "y\n");
    assert_eq!(person.code, Some(0), "{}", person.out);
}

/// The code of a refusal of a call that names an approval of another.
fn differs(result: &Value) {
    assert_eq!((told(result).1, told(result).2), (126, "approval_differs"), "{result}");
}

#[test]
fn an_approval_is_for_one_policy_one_image_one_folder_and_one_kind_of_input() {
    let home = home();
    home.user_policy("wide", &ASKS.replace("name: asks", "name: wide"));
    fs::create_dir_all(home.path("project/src")).unwrap();
    let question = id(&echo(&home, &[]).0);
    approve(&home, &question, "--for 1h");
    let others: [&[&str]; 3] = [
        &["--policy", "wide"],
        &["--policy", "asks", "--image", "other:1"],
        &["--policy", "asks", "-C", "src"],
    ];
    for other in others {
        let run = |more: &[&str]| {
            let words = ["--json", "exec"];
            home.run(words.iter().chain(other).chain(more).chain(&["--", "echo", "hi"])).json()
        };
        assert_ne!(id(&run(&[])), question, "{other:?}");
        differs(&run(&["--approve", &question]));
    }
    // What is given to it is not shown, so that there is something is.
    let given = |more: &[&str]| {
        let mut command = home.runner();
        let words = ["--json", "exec", "--policy", "asks"];
        command.args(words.iter().chain(more).chain(&["--", "echo", "hi"]));
        let input = fs::File::open(home.path("config/runner/policies/asks.yml")).unwrap();
        Ran::from(command.stdin(input).output().unwrap()).json()
    };
    let fed = id(&given(&[]));
    assert_ne!(fed, question);
    differs(&given(&["--approve", &question]));
    let shown = home.at_terminal(&format!("approve {fed}"), "n\n");
    assert!(shown.out.contains("standard input, which is not shown here"), "{}", shown.out);

    // The same for a tool: what was shown under one policy does not run under another.
    asked_tool(&home);
    let run = |policy: &str, more: &[&str]| {
        let words = ["--policy", policy];
        tool(&home, "ann", &words.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let question = id(&run("asks", &[]));
    assert_ne!(id(&run("wide", &[])), question);
    approve(&home, &question, "--for 1h");
    differs(&run("wide", &["--approve", &question]));
    id(&run("wide", &[]));
    needs_engine();
    // The control, and its trace: each use of an approval is recorded by the call that used it.
    assert_eq!(echo(&home, &[]).1.code, Some(0));
    for _ in 0..2 {
        let result = run("asks", &["--approve", &question]);
        assert_eq!(result["value"], "hello ann", "{result}");
        let call = result["call"].as_str().unwrap();
        let audit = home.run(["--json", "audit", "show", call]).json();
        let used = audit["events"].as_array().unwrap().iter().find(|it| it["kind"] == "approval");
        let body = &used.unwrap_or_else(|| panic!("{audit}"))["body"];
        assert_eq!((&body["answer"], &body["id"]), (&json!("used"), &json!(question)));
    }
    let tail = home.run(["audit", "tail"]).out;
    assert!(tail.contains(&format!("used: tool:t ({question})")), "{tail}");
}

#[test]
fn a_command_is_approved_only_as_it_is() {
    let home = home();
    let question = id(&echo(&home, &[]).0);
    for name in ["command", "words", "folder"] {
        let line = format!("approve {question} --for 1h --arg '{name}=*'");
        let wrong = home.at_terminal(&line, "y\n");
        assert!(wrong.code == Some(2) && wrong.out.contains("only as it is"), "{}", wrong.out);
    }
    approve(&home, &question, "--for 1h");
}

#[test]
fn nothing_hides_behind_a_secret_and_what_is_not_shown_whole_is_not_approved_by_its_id() {
    let home = home();
    let line =
        |text: &str| id(&home.run(["--json", "exec", "--policy", "asks", "--shell", text]).json());
    let question = line("echo authorization:hunter2 && echo --force");
    let shown = home.at_terminal(&format!("approve {question}"), "n\n");
    assert!(shown.out.contains("&& echo --force"), "{}", shown.out);
    assert!(!shown.out.contains("hunter2"), "{}", shown.out);
    let recorded = home.run(["audit", "list"]).out + &home.run(["--json", "audit", "export"]).out;
    assert!(recorded.contains("&& echo --force") && !recorded.contains("hunter2"), "{recorded}");
    // Here the mask would hide more than a secret.
    let refused = |question: &str| {
        let person = home.at_terminal(&format!("approve {question}"), "y\n");
        assert_eq!(person.code, Some(77), "{}", person.out);
        assert!(person.out.contains("terminal of the call itself"), "{}", person.out);
        let ran = home.run(["--json", "approve", question]).json();
        assert_eq!(told(&ran).2, "approval_not_whole", "{ran}");
    };
    refused(&line("echo 'cookie: a=b; echo --force'"));
    // A person at the call's own terminal sees all of it.
    let own =
        home.at_terminal("exec --policy asks --shell \"echo 'cookie: a=b; echo --force'\"", "n\n");
    assert!(own.code == Some(77) && own.out.contains("a=b; echo --force"), "{}", own.out);

    // A long argument is shown whole, by its id too; more than a person reads is not approved.
    asked_tool(&home);
    let long = |length: usize| format!("{}HERE{}", "x".repeat(length), "y".repeat(length));
    let question = id(&tool(&home, &long(500), &[]));
    let shown = home.at_terminal(&format!("approve {question}"), "y\n");
    assert!(shown.code == Some(0) && shown.out.contains("xHEREy"), "{}", shown.out);
    let result = tool(&home, &long(9_000), &[]);
    let suggestion = result["error"]["suggestion"].as_str().unwrap();
    assert!(suggestion.contains("terminal of the call itself"), "{suggestion}");
    refused(&id(&result));
}

/// Calls a command without an engine: what may run ends because there is none.
fn offline(home: &Home, more: &[&str], command: &[&str]) -> Value {
    let mut runner = home.runner();
    runner.env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let words = ["--json", "exec", "--policy", "codes"];
    runner.args(words.iter().chain(more).chain(&["--"]).chain(command));
    Ran::from(runner.output().unwrap()).json()
}

fn codes() -> Home {
    let home = Home::new();
    home.user_policy(
        "codes",
        "policy: 1\nname: codes\nextends: [contained]\ncommands:\n  - { id: build, ask: [make ..., bash ..., touch ..., timeout ...] }\n",
    );
    home
}

#[test]
fn an_approval_of_a_command_holds_for_the_code_that_was_there() {
    let home = codes();
    let put = |path: &str, text: &str| fs::write(home.path("project").join(path), text).unwrap();
    put("Makefile", "all:\n\techo hi\n");
    put("x.sh", "echo hi\n");
    let passes = |result: &Value| !told(result).2.starts_with("approval");
    // The control: nothing has changed.
    let question = id(&offline(&home, &[], &["make"]));
    let asked = home.at_terminal(&format!("approve {question} --for 1h"), "y\n");
    assert!(asked.out.contains("the present content of Makefile"), "{}", asked.out);
    assert!(passes(&offline(&home, &[], &["make"])));
    assert!(passes(&offline(&home, &["--approve", &question], &["make"])));
    // Another file that make takes first, a changed one, one that is gone.
    for (path, text) in [("GNUmakefile", "all:\n\trm -rf .\n"), ("Makefile", "all:\n\trm -rf .\n")]
    {
        let question = id(&offline(&home, &[], &["make", "-s"]));
        home.at_terminal(&format!("approve {question} --for 1h"), "y\n");
        assert!(passes(&offline(&home, &[], &["make", "-s"])));
        put(path, text);
        let stale = offline(&home, &["--approve", &question], &["make", "-s"]);
        let message = stale["error"]["message"].as_str().unwrap();
        assert_eq!(told(&stale).2, "approval_differs", "{stale}");
        assert!(message.contains(path), "{message}");
        // Without its id the question is put anew, and the old answer is over.
        assert_ne!(id(&offline(&home, &[], &["make", "-s"])), question);
        put(path, "all:\n\techo hi\n");
        let over = offline(&home, &["--approve", &question], &["make", "-s"]);
        assert!(told(&over).2.starts_with("approval"), "{over}");
    }
    let question = id(&offline(&home, &[], &["bash", "./x.sh"]));
    home.at_terminal(&format!("approve {question} --for 1h"), "y\n");
    assert!(passes(&offline(&home, &[], &["bash", "./x.sh"])));
    // It also changes while a person looks at the question.
    let call = "exec --policy codes -- make -B";
    let changed = home.at_terminal_meanwhile(call, || put("Makefile", "all:\n\trm x\n"), "y\n");
    assert_eq!(changed.code, Some(126), "{}", changed.out);
    assert!(changed.out.contains("Makefile has changed"), "{}", changed.out);
    put("x.sh", "rm -rf .\n");
    id(&offline(&home, &[], &["bash", "./x.sh"]));
    // An ask about what stands around a command holds, too.
    id(&offline(&home, &[], &["timeout", "5", "cat", "x.sh"]));
    assert!(passes(&offline(&home, &[], &["cat", "x.sh"])));
}

#[test]
fn a_never_to_a_command_holds_in_every_spelling_of_its_path() {
    let home = codes();
    fs::create_dir(home.path("project").join("out")).unwrap();
    let question = id(&offline(&home, &[], &["touch", "out/n"]));
    let said = home.at_terminal(&format!("deny {question} --never"), "y\n");
    assert_eq!(said.code, Some(0), "{}", said.out);
    let absolute = home.path("project").canonicalize().unwrap().join("out/n");
    for same in [
        &["touch", "out/n"][..],
        &["touch", "./out/n"],
        &["touch", "out//n"],
        &["touch", "out/../out/n"],
        &["touch", absolute.to_str().unwrap()],
        &["touch", "-c", "a", "out/n"],
        &["/usr/bin/touch", "out/n"],
        &["timeout", "5", "touch", "./out/n"],
        &["bash", "-c", "cd out && touch n"],
    ] {
        let result = offline(&home, &[], same);
        assert_eq!(told(&result).2, "approval_denied", "{same:?}: {result}");
    }
    for other in [&["touch", "out/m"][..], &["touch", "n"], &["timeout", "5", "cat", "out/n"]] {
        id(&offline(&home, &[], other));
    }
}
