//! What an answer is about and what it is not: a never that is walked around, `--yes` without a person, a tool that waives
//! its own approval, what counts as destructive, and two questions in one call.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Home, Ran, needs_engine};
use crate::tools::{told, write_yaml};

/// Asks about commits and lets everything else of a tool's life be.
const ASKS: &str = "policy: 1\nname: askp\nextends: [readonly]\nfiles: { write: ['**'] }\ncommands:\n  - { id: commit, ask: 'git commit ...', reason: Commits stay. }\n  - { id: speak, ask: 'echo ...' }\n";

/// A caller who has not let programs answer.
fn home() -> Home {
    let home = Home::new();
    home.config("pool: { size: 0 }\n");
    home.user_policy("askp", ASKS);
    home.user_policy(
        "editing",
        "policy: 1\nname: editing\nextends: [readonly]\nfiles: { write: ['**'] }\n",
    );
    home
}

/// The same, where programs may answer.
fn answering() -> Home {
    let home = home();
    home.config(Home::CONFIG);
    home
}

fn json(home: &Home, words: &[&str]) -> (Value, Ran) {
    // No engine: nothing of this runs a command.
    let mut command = home.runner();
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock").arg("--json").args(words);
    let ran = Ran::from(command.output().unwrap());
    (ran.json(), ran)
}

fn id(result: &Value) -> String {
    assert_eq!((told(result).0, told(result).1), ("needs_approval", 77), "{result}");
    assert_eq!(told(result).2, "approval_needed", "{result}");
    assert_eq!(result["error"]["recoverable"], false, "{result}");
    let id = result["error"]["details"]["approval"]["id"].as_str();
    let id = id.unwrap_or_else(|| panic!("no id: {result}")).to_owned();
    assert!(result["error"]["suggestion"].as_str().unwrap().contains(&id), "{result}");
    id
}

fn never(home: &Home, question: &str) {
    let said = home.run(["deny", question, "--never"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}

fn is_never(result: &Value, question: &str) {
    assert_eq!((told(result).1, told(result).2), (126, "approval_denied"), "{result}");
    assert_eq!(result["error"]["details"]["approval"]["id"], question, "{result}");
    assert_eq!(result["error"]["recoverable"], false, "{result}");
}

const DELETE: [&str; 8] =
    ["tool", "run", "file_operations", "--policy", "editing", "--arg", "operation=delete", "--arg"];

#[test]
fn a_never_to_a_removal_is_not_walked_around() {
    let home = answering();
    fs::create_dir_all(home.path("project/src")).unwrap();
    fs::write(home.path("project/a.txt"), "x").unwrap();
    fs::write(home.path("project/b.txt"), "x").unwrap();
    std::os::unix::fs::symlink(".", home.path("project/here")).unwrap();
    let delete = |path: &str, more: &[&str]| {
        let path = format!("path={path}");
        let words: Vec<&str> =
            DELETE.iter().copied().chain([path.as_str()]).chain(more.iter().copied()).collect();
        json(&home, &words).0
    };
    let question = id(&delete("a.txt", &[]));
    never(&home, &question);
    let root = home.path("project/a.txt").display().to_string();
    home.user_policy("wide", "policy: 1\nname: wide\nextends: [edit]\n");
    for path in ["a.txt", "./a.txt", "src/../a.txt", "here/a.txt", root.as_str()] {
        is_never(&delete(path, &["--yes"]), &question);
    }
    is_never(&delete("a.txt", &["--yes", "-C", "src"]), &question);
    is_never(&delete("a.txt", &["--yes", "--image", "other:1"]), &question);
    is_never(&delete("a.txt", &["--yes", "--arg", "recursive=true"]), &question);
    let wide: Vec<&str> = DELETE
        .map(|word| if word == "editing" { "wide" } else { word })
        .into_iter()
        .chain(["path=./a.txt", "--yes"])
        .collect();
    is_never(&json(&home, &wide).0, &question);
    assert!(home.path("project/a.txt").exists());
    // The control: another file, and the never taken back.
    assert_eq!(told(&delete("b.txt", &["--yes"])).0, "completed");
    assert_eq!(home.run(["approve", &question]).code, Some(0));
    assert_eq!(told(&delete("a.txt", &[])).0, "completed");
}

#[test]
fn a_never_to_a_command_holds_for_every_way_to_run_it() {
    let home = answering();
    let exec = |more: &[&str]| {
        let words = ["exec", "--policy", "askp"];
        json(&home, &words.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let bash = |args: Value, more: &[&str]| {
        let args = args.to_string();
        let words = ["tool", "run", "bash_execution", "--policy", "askp", "--args", &args];
        json(&home, &words.iter().chain(more).copied().collect::<Vec<_>>()).0
    };
    let question = id(&exec(&["--", "git", "commit", "-m", "done"]).0);
    never(&home, &question);
    let line = "git commit -m done";
    is_never(&exec(&["--", "git", "commit", "-m", "done"]).0, &question);
    is_never(&exec(&["--shell", line]).0, &question);
    is_never(&exec(&["--shell", "cd . && git commit -m 'done'"]).0, &question);
    is_never(&exec(&["--", "timeout", "5", "git", "commit", "-m", "done"]).0, &question);
    is_never(&bash(json!({ "command": line }), &["--yes"]), &question);
    is_never(&bash(json!({ "command": "true; git commit -m done" }), &["--yes"]), &question);
    is_never(
        &bash(json!({ "command": "git", "args": ["commit", "-m", "done"] }), &["--yes"]),
        &question,
    );
    // It is told as what it is: no approval can unlock it, and how to take it back.
    let shown = home.run(["exec", "--policy", "askp", "--", "git", "commit", "-m", "done"]);
    assert_eq!(shown.code, Some(126), "{}", shown.err);
    for part in [
        "[approval_denied]",
        "a person said never to this command, on 20",
        "UTC",
        &format!("runner approve {question}"),
    ] {
        assert!(shown.err.contains(part), "{part}: {}", shown.err);
    }
    assert!(!shown.err.contains("can unlock it"), "{}", shown.err);
    // The controls: another message is another command; and the other way round, from a tool to `exec`.
    id(&exec(&["--", "git", "commit", "-m", "other"]).0);
    let from_tool = id(&bash(json!({ "command": "echo hi" }), &[]));
    never(&home, &from_tool);
    is_never(&exec(&["--", "echo", "hi"]).0, &from_tool);
}

#[test]
fn a_never_stands_when_the_tool_changes_or_is_given_more() {
    let home = answering();
    let code = "export const execute = () => 1;";
    write_yaml(&home, "t", "permissions: { autoAccept: false }", code);
    let run = |more: &[&str]| {
        let words = ["tool", "run", "t", "--args", r#"{"a": 1}"#];
        json(&home, &words.iter().chain(more).copied().collect::<Vec<_>>()).0
    };
    let question = id(&run(&[]));
    never(&home, &question);
    let file = home.path("project/.runner/tools/t.yml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text + "# changed\n").unwrap();
    is_never(&run(&["--yes"]), &question);
    let more = ["tool", "run", "t", "--yes", "--args", r#"{"a": 1, "b": 2}"#];
    is_never(&json(&home, &more).0, &question);
    is_never(&run(&["--yes", "--policy", "editing"]), &question);
}

#[test]
fn yes_counts_at_a_terminal_or_where_a_configuration_lets_programs_answer() {
    let home = home();
    write_yaml(&home, "t", "permissions: { autoAccept: false }", "export const execute = () => 1;");
    fs::write(home.path("project/a.txt"), "x").unwrap();
    let delete: Vec<&str> = DELETE.iter().copied().chain(["path=a.txt", "--yes"]).collect();
    for words in [&["tool", "run", "t", "--yes"][..], &["mcp", "refresh", "--yes"], &delete] {
        let (result, ran) = json(&home, words);
        assert_eq!((ran.code, told(&result).2), (Some(77), "approval_needs_terminal"), "{result}");
        let suggestion = result["error"]["suggestion"].as_str().unwrap();
        for part in ["terminal", "runner approve ID", "withoutTerminal: true"] {
            assert!(suggestion.contains(part), "{suggestion}");
        }
    }
    assert!(home.run(["--json", "audit", "list"]).json()["calls"].as_array().unwrap().is_empty());
    assert!(home.path("project/a.txt").exists());
    // A project cannot say that programs may answer; the user can, and a person at a terminal need not.
    let line = format!("{} --arg path=a.txt --yes", DELETE[..7].join(" "));
    let person = home.at_terminal(&line, "\n");
    assert!(person.code == Some(0) && !home.path("project/a.txt").exists(), "{}", person.out);
    fs::write(home.path("project/a.txt"), "x").unwrap();
    home.config(Home::CONFIG);
    assert_eq!(json(&home, &delete).1.code, Some(0));
}

#[test]
fn a_tool_of_a_project_does_not_waive_its_own_approval() {
    let home = home();
    let code = "export const execute = () => 1;";
    let write = |risk: &str| {
        write_yaml(
            &home,
            "t",
            &format!(
                "permissions: {{ allowlist: ['git log*'], autoAccept: true, riskLevel: {risk} }}"
            ),
            code,
        );
    };
    let run = || json(&home, &["tool", "run", "t"]).0;
    let info = || home.run(["tool", "info", "t"]).out;
    write("low");
    id(&run());
    assert!(
        info().contains(
            "`autoAccept: true` does not count: the tool is not built in, yours or your team's"
        ),
        "{}",
        info()
    );
    let own = home.path("project/.runner/config.yml");
    fs::write(&own, "tools: { t: { autoAccept: true } }\n").unwrap();
    let refused = home.run(["tool", "run", "t"]);
    assert!(refused.code == Some(125) && refused.err.contains("wrong_layer"), "{}", refused.err);
    fs::remove_file(&own).unwrap();
    // A tool that writes cannot free itself to remove, either.
    write_yaml(&home, "w", "files: { write: ['*.txt'] }\npermissions: { autoAccept: true }", code);
    let shown = home.run(["tool", "info", "w"]).out;
    assert!(shown.contains("asked for what it removes or moves away"), "{shown}");
    home.config("pool: { size: 0 }\ntools: { t: { autoAccept: true } }\n");
    assert!(!info().contains("does not count"), "{}", info());
    needs_engine();
    assert_eq!(home.run(["tool", "run", "t"]).code, Some(0), "the control");
    for risk in ["high", "critical"] {
        write(risk);
        id(&run());
        assert!(info().contains("does not count: at high and critical risk"), "{}", info());
    }
    // Nor a tool of the user's own.
    let folder = home.path("config/runner/tools");
    fs::create_dir_all(&folder).unwrap();
    fs::rename(home.path("project/.runner/tools/t.yml"), folder.join("t.yml")).unwrap();
    id(&run());
}

#[test]
fn who_says_no_is_not_told_how_to_unlock_it() {
    let home = home();
    let ran = home.at_terminal("exec --policy askp -- echo hi", "n\n");
    assert_eq!(ran.code, Some(77), "{}", ran.out);
    let told = ran.out.rsplit_once("[approval_needed]").expect("the end").1;
    assert!(told.contains("was not approved: the answer was no"), "{}", ran.out);
    assert!(!ran.out.contains("can unlock it") && !told.contains("runner approve"), "{}", ran.out);
    // The control: a question that waits says how to answer it.
    let waits = home.run(["exec", "--policy", "askp", "--", "echo", "hi"]);
    assert!(waits.err.contains("can unlock it"), "{}", waits.err);
}

#[test]
fn nobody_is_asked_about_what_the_policy_denies() {
    let home = home();
    home.git(&["init", "-q"]);
    fs::write(home.path("project/a.txt"), "x").unwrap();
    for (words, code) in [
        (&["tool", "run", "git_commit", "--args", r#"{"message": "m"}"#][..], "access_denied"),
        (
            &["tool", "run", "bash_execution", "--args", r#"{"command": "rm a.txt"}"#],
            "access_denied",
        ),
        (
            &[
                "tool",
                "run",
                "file_operations",
                "--args",
                r#"{"operation": "delete", "path": "a.txt"}"#,
            ],
            "access_denied",
        ),
        (
            &["tool", "run", "rest_api_call", "--args", r#"{"url": "https://api.example/"}"#],
            "net_denied",
        ),
    ] {
        let (result, ran) = json(&home, words);
        assert_eq!((ran.code, told(&result).2), (Some(126), code), "{result}");
    }
    assert!(home.run(["--json", "approvals"]).json()["approvals"].as_array().unwrap().is_empty());
    // What is asked about shows what will run, and what that does.
    let words =
        ["tool", "run", "git_commit", "--policy", "askp", "--args", r#"{"message": "my words"}"#];
    let question = id(&json(&home, &words).0);
    let shown = home.at_terminal(&format!("approve {question}"), "n\n").out;
    for part in ["git commit --no-edit --no-gpg-sign -m 'my words' --", "write .git/"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(home.run(["approvals"]).out.contains("tool:git_commit git commit"));
}

/// A tool of the write tier.
fn writer(home: &Home, code: &str) {
    let code = format!(
        "export async function execute(args: any, c: any) {{ const fs = c.platform.fs; {code} }}"
    );
    write_yaml(home, "w", "files: { write: ['**'] }", &code);
}

#[test]
fn what_takes_a_file_from_its_place_is_asked_about() {
    needs_engine();
    let home = home();
    let (old, other) = (home.path("project/old.txt"), home.path("project/other.txt"));
    let put = || {
        fs::write(&old, "old").unwrap();
        fs::write(&other, "other").unwrap();
    };
    put();
    let run = |more: &[&str]| {
        let words = ["--json", "tool", "run", "w", "--policy", "editing"];
        home.run(words.iter().chain(more)).json()
    };
    // What it made itself it may move, and content is the tier's business.
    writer(
        &home,
        "await fs.writeFile('new.txt', 'n'); await fs.rename('new.txt', 'newer.txt'); await fs.writeFile('old.txt', 'x'); return 'done';",
    );
    assert_eq!(run(&[])["value"], "done");
    put();
    for (code, lines) in [
        ("await fs.rename('./old.txt', 'gone.txt');", "old.txt -> gone.txt"),
        (
            "await fs.writeFile('mine.txt', 'n'); await fs.rename('mine.txt', 'other.txt');",
            "replaces   other.txt",
        ),
        ("await fs.rm('./old.txt');", "removes    old.txt"),
    ] {
        writer(&home, &format!("{code} return 'done';"));
        let question = id(&run(&[]));
        let shown = home.at_terminal(&format!("approve {question}"), "n\n").out;
        for part in [lines, "A tool of a test.", "medium (write)"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(
            (fs::read(&old).unwrap(), fs::read(&other).unwrap()),
            (b"old".to_vec(), b"other".to_vec())
        );
    }
    // A never to a removal is one to moving it away, too; and a misused approval says what it is.
    writer(&home, "await fs.rm('old.txt'); return 'done';");
    let question = id(&run(&[]));
    assert_eq!(home.at_terminal(&format!("approve {question}"), "y\n").code, Some(0));
    writer(&home, "await fs.rm('other.txt'); return 'done';");
    let result = run(&["--approve", &question]);
    assert_eq!((told(&result).1, told(&result).2), (126, "approval_differs"), "{result}");
    let unknown = run(&["--approve", "aaaaaaaaaa"]);
    assert_eq!((told(&unknown).1, told(&unknown).2), (2, "approval_unknown"), "{unknown}");
    assert_eq!(home.run(["deny", &question]).code, Some(0));
    writer(&home, "await fs.rm('old.txt'); return 'done';");
    let over = run(&["--approve", &question]);
    assert_eq!((told(&over).1, told(&over).2), (77, "approval_over"), "{over}");
    let question = id(&run(&[]));
    assert_eq!(home.at_terminal(&format!("deny {question} --never"), "y\n").code, Some(0));
    writer(&home, "await fs.rename('old.txt', 'gone.txt'); return 'done';");
    is_never(&run(&[]), &question);
}

#[test]
fn a_yes_for_one_call_is_given_back_when_the_call_stops_at_another_question() {
    needs_engine();
    let home = home();
    let run = |more: &[&str]| {
        let words = [
            "--json",
            "tool",
            "run",
            "bash_execution",
            "--policy",
            "askp",
            "--arg",
            "command=echo hi",
        ];
        home.run(words.iter().chain(more)).json()
    };
    let person = |question: &str| {
        let person = home.at_terminal(&format!("approve {question}"), "y\n");
        assert_eq!(person.code, Some(0), "{}", person.out);
    };
    let first = id(&run(&[]));
    person(&first);
    let second = id(&run(&["--approve", &first]));
    assert_ne!(first, second);
    person(&second);
    let result = run(&["--approve", &first, "--approve", &second]);
    assert_eq!(result["value"]["stdout"], "hi\n", "{result}");
    let again = run(&["--approve", &first]);
    assert_eq!(told(&again).2, "approval_over", "{again}");
}

#[test]
fn whoever_approves_sees_what_is_granted_and_a_slip_is_no_answer() {
    let home = home();
    let code = "export const execute = () => 1;";
    write_yaml(&home, "writer", "permissions: { autoAccept: false }", code);
    let asked = |n: &str| {
        let args = json!({ "n": n }).to_string();
        id(&json(&home, &["tool", "run", "writer", "--args", &args]).0)
    };
    let (one, other) = (asked("1"), asked("2"));
    let listed = home.run(["approvals"]).out;
    assert!(
        listed.contains("tool:writer n = \"1\"") && listed.contains("tool:writer n = \"2\""),
        "{listed}"
    );
    let slip = home.at_terminal(&format!("approve {one}"), "yse\n");
    assert!(slip.code == Some(77) && slip.out.contains("`yse` is not an answer"), "{}", slip.out);
    assert!(slip.out.contains("Approve `writer` once, until 20"), "{}", slip.out);
    let own = home.at_terminal("tool run writer", "yse\n");
    assert!(own.code == Some(77) && own.out.contains("`yse` is not an answer"), "{}", own.out);
    let granted = home.at_terminal(&format!("approve {one} --for 48h --arg 'n=1*'"), "y\n");
    assert_eq!(granted.code, Some(0), "{}", granted.out);
    for part in ["Approve `writer` with n like `1*` until 20", "UTC", "48h is cut to 24h"] {
        assert!(granted.out.contains(part), "{part}: {}", granted.out);
    }
    let refused = home.at_terminal(&format!("deny {other} --never"), "y\n");
    assert!(refused.out.contains("Refuse `writer` from now on?"), "{}", refused.out);
}
