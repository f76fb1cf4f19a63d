//! The tools that we ship, and the ones that `runner tool new` writes, each run for real.

use super::{call, told};
use crate::support::{Home, needs_engine};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// A caller who has switched the examples on.
fn home() -> Home {
    let home = Home::new();
    let names = ["changelog", "dependency_report", "file_summary", "http_probe", "json_query"];
    let more = ["license_check", "run_tests", "todo_finder"];
    let words = ["tool", "enable"].iter().chain(&names).chain(&more);
    assert_eq!(home.run(words).code, Some(0));
    home
}

/// Writes files of the project.
fn files(home: &Home, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = home.path(&format!("project/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Calls a tool that is to succeed; its value.
fn value(home: &Home, name: &str, args: Value, more: &[&str]) -> Value {
    let args = args.to_string();
    let mut words = vec!["--args", args.as_str()];
    words.extend(more);
    let (result, ran) = call(home, name, &words);
    assert_eq!(told(&result), ("completed", 0, ""), "{name}: {result:#} {}", ran.err);
    result["value"].clone()
}

/// Calls a tool that is to fail; its error.
fn error(home: &Home, name: &str, args: Value, more: &[&str]) -> Value {
    let args = args.to_string();
    let mut words = vec!["--args", args.as_str()];
    words.extend(more);
    let (result, ran) = call(home, name, &words);
    assert_ne!(result["status"], "completed", "{name}: {result:#} {}", ran.err);
    result["error"].clone()
}

#[test]
fn todo_finder_finds_notes_and_leaves_denied_files_alone() {
    needs_engine();
    let home = home();
    files(
        &home,
        &[
            ("src/a.ts", "// TODO(anna): one\nconst TODOLIST = 1; // XXX three\n/* FIXME two */\n"),
            ("src/b.py", "# HACK: four\n"),
            ("node_modules/x/i.js", "// TODO: foreign\n"),
            (".env", "# TODO: rotate canary-7f3a\n"),
            ("data.bin", "\0// TODO: data\n"),
        ],
    );
    let found = value(&home, "todo_finder", json!({}), &[]);
    assert_eq!(found["total"], 4, "{found:#}");
    assert_eq!(found["byTag"], json!({"TODO": 1, "XXX": 1, "FIXME": 1, "HACK": 1}));
    assert_eq!(
        found["notes"][0],
        json!({"file": "src/a.ts", "line": 1, "tag": "TODO", "who": "anna", "text": "one"})
    );
    assert!(!found.to_string().contains("canary-7f3a"), "{found:#}");
    let few = value(&home, "todo_finder", json!({"include": ["*.py"], "limit": 1}), &[]);
    assert_eq!((&few["total"], &few["byFile"]), (&json!(1), &json!({"src/b.py": 1})));
}

#[test]
fn file_summary_tells_files_and_folders() {
    needs_engine();
    let home = home();
    files(
        &home,
        &[
            ("README.md", "# One\n\ntext\n\n```\n# no heading\n```\n\n## Two\n"),
            ("src/lib.rs", "//! x\npub fn two() -> u8 {\n    2\n}\n"),
            ("x.bin", "a\0b"),
        ],
    );
    let file = value(&home, "file_summary", json!({"path": "README.md", "lines": 1}), &[]);
    assert_eq!(file["lines"], 9, "{file:#}");
    assert_eq!(
        file["outline"],
        json!([{"line": 1, "text": "# One"}, {"line": 9, "text": "## Two"}])
    );
    assert_eq!((&file["head"], &file["tail"]), (&json!("# One"), &json!("## Two")));
    let code = value(&home, "file_summary", json!({"path": "src/lib.rs"}), &[]);
    assert_eq!(code["outline"], json!([{"line": 2, "text": "pub fn two() -> u8"}]), "{code:#}");
    let data = value(&home, "file_summary", json!({"path": "x.bin"}), &[]);
    assert_eq!(data["isText"], false);
    let folder = value(&home, "file_summary", json!({}), &[]);
    assert_eq!(folder["byType"], json!({"Markdown": 1, "Rust": 1, ".bin": 1}), "{folder:#}");
    let gone = error(&home, "file_summary", json!({"path": "gone"}), &[]);
    assert_eq!(gone["code"], "not_found", "{gone:#}");
    assert!(gone["stack"].as_str().unwrap().contains("tools/file_summary.yml:"), "{gone:#}");
}

#[test]
fn json_query_takes_parts() {
    needs_engine();
    let home = home();
    let text = json!({"users": [{"name": "x", "age": 20}, {"name": "y", "age": 9}], "odd key": 1});
    files(&home, &[("d.json", &text.to_string()), ("bad.json", "{")]);
    let query = |query: &str| {
        value(&home, "json_query", json!({"file": "d.json", "query": query}), &[])["value"].clone()
    };
    assert_eq!(query(".users[?age >= 18].name"), json!(["x"]));
    assert_eq!(query("..name | sort | last"), json!("y"));
    assert_eq!(query(".\"odd key\""), json!(1));
    assert_eq!(query(".nothing"), json!(null));
    let wrong = error(&home, "json_query", json!({"file": "d.json", "query": ".a b"}), &[]);
    assert_eq!(wrong["details"]["code"], "bad_query", "{wrong:#}");
    let advice = &wrong["details"]["data"]["suggestion"];
    assert!(advice.as_str().unwrap().contains(".scripts.test"), "{wrong:#}");
    let broken = error(&home, "json_query", json!({"file": "bad.json"}), &[]);
    assert_eq!(broken["details"]["code"], "not_json", "{broken:#}");
}

#[test]
fn license_check_reads_what_is_installed() {
    needs_engine();
    let home = home();
    let manifest = |name: &str, licence: &str| {
        format!(r#"{{"name":"{name}","version":"1.0.0","license":{licence}}}"#)
    };
    let nothing = error(&home, "license_check", json!({}), &[]);
    assert_eq!(nothing["details"]["code"], "not_installed", "{nothing:#}");
    files(
        &home,
        &[
            ("node_modules/a/package.json", &manifest("a", "\"MIT\"")),
            ("node_modules/@s/b/package.json", &manifest("@s/b", "\"(GPL-3.0 OR MIT) AND ISC\"")),
            (
                "node_modules/@s/b/node_modules/c/package.json",
                &manifest("c", "{\"type\":\"GPL-3.0\"}"),
            ),
        ],
    );
    let found = value(&home, "license_check", json!({}), &[]);
    assert_eq!((&found["ok"], &found["packages"]), (&json!(false), &json!(3)), "{found:#}");
    assert_eq!(found["problems"][0]["package"], "c@1.0.0");
    assert_eq!(found["problems"].as_array().unwrap().len(), 1);
    let fine = value(&home, "license_check", json!({"except": ["c"]}), &[]);
    assert_eq!(fine["ok"], true, "{fine:#}");
    // npm's own list counts where there is one.
    let lock = json!({"packages": {"node_modules/z": {"version": "2.0.0", "license": "WTFPL"}}});
    files(&home, &[("node_modules/.package-lock.json", &lock.to_string())]);
    let listed = value(&home, "license_check", json!({}), &[]);
    assert_eq!(listed["byLicence"], json!({"WTFPL": 1}), "{listed:#}");
    let refused = error(&home, "license_check", json!({"allow": "MIT"}), &[]);
    assert_eq!(refused["code"], "invalid_arguments", "{refused:#}");
}

#[test]
fn dependency_report_merges_manifests() {
    needs_engine();
    let home = home();
    files(
        &home,
        &[
            (
                "package.json",
                r#"{"name":"root","dependencies":{"left":"*"},"devDependencies":{"ts":"^5"}}"#,
            ),
            ("web/package.json", r#"{"name":"web","dependencies":{"left":"^1.0.0"}}"#),
            (
                "Cargo.toml",
                "[package]\nname = \"r\"\n[dependencies]\nserde = { version = \"1\", features = [\n  \"derive\",\n] } # c\n[dev-dependencies]\ntempfile = \"3\"\n",
            ),
            ("api/requirements.txt", "flask>=2 # web\n-r other.txt\n"),
            ("go.mod", "module x.example/y\nrequire (\n\tx.example/z v1.2.3\n)\n"),
            ("node_modules/a/package.json", r#"{"dependencies":{"no":"1"}}"#),
            ("broken/package.json", "{"),
        ],
    );
    let found = value(&home, "dependency_report", json!({}), &[]);
    assert_eq!(found["byEcosystem"], json!({"cargo": 2, "go": 1, "npm": 2, "python": 1}));
    let left = json!({"name": "left", "ecosystem": "npm", "kinds": ["runtime"],
        "wanted": {"*": ["package.json"], "^1.0.0": ["web/package.json"]}});
    assert!(found["dependencies"].as_array().unwrap().contains(&left), "{found:#}");
    let what: Vec<&Value> =
        found["findings"].as_array().unwrap().iter().map(|finding| &finding["what"]).collect();
    assert_eq!(what, ["different_versions", "any_version"], "{found:#}");
    assert_eq!(found["unreadable"][0]["path"], "broken/package.json");
    let none = error(&home, "dependency_report", json!({"paths": ["api/none"]}), &[]);
    assert_eq!(none["code"], "not_found", "{none:#}");
}

#[test]
fn changelog_reads_the_history() {
    needs_engine();
    let home = home();
    let outside = error(&home, "changelog", json!({}), &[]);
    assert_eq!(outside["details"]["code"], "not_a_repository", "{outside:#}");
    home.git(&["init", "-q"]);
    for (subject, tag) in
        [("first", Some("v1.0.0")), ("feat(api): add a door", None), ("fix!: close it", None)]
    {
        home.git(&["commit", "-q", "--allow-empty", "-m", subject]);
        if let Some(tag) = tag {
            home.git(&["tag", tag]);
        }
    }
    let found = value(&home, "changelog", json!({}), &[]);
    assert_eq!((&found["from"], &found["commits"]), (&json!("v1.0.0"), &json!(2)), "{found:#}");
    assert_eq!(found["sections"], json!({"Breaking changes": 1, "Added": 1}));
    let text = found["markdown"].as_str().unwrap();
    assert!(text.contains("- **api:** Add a door ("), "{text}");
    let wrong = error(&home, "changelog", json!({"from": "nowhere"}), &[]);
    assert_eq!(wrong["details"]["code"], "bad_revision", "{wrong:#}");
    // A revision is never an option.
    let option = error(&home, "changelog", json!({"to": "--output=x"}), &[]);
    assert_eq!(option["code"], "invalid_arguments", "{option:#}");
}

#[test]
fn run_tests_runs_them_and_says_what_failed() {
    needs_engine();
    let home = home();
    let unknown = error(&home, "run_tests", json!({}), &["--policy", "develop"]);
    assert_eq!(unknown["details"]["code"], "no_test_runner", "{unknown:#}");
    files(
        &home,
        &[
            ("js/package.json", r#"{"name":"p","scripts":{"test":"node --test"}}"#),
            (
                "js/a.test.js",
                "const test = require('node:test');\ntest('adds', () => {});\ntest('breaks', () => { throw new Error('no sum') });\n",
            ),
            ("py/tests/test_two.py", "def test_two():\n    assert 1 + 1 == 2\n"),
        ],
    );
    let js = value(&home, "run_tests", json!({"directory": "js"}), &["--policy", "develop"]);
    assert_eq!((&js["ok"], &js["runner"]), (&json!(false), &json!("npm")), "{js:#}");
    assert_eq!((&js["passed"], &js["failed"]), (&json!(1), &json!(1)), "{js:#}");
    assert_eq!(js["failures"], json!([{"test": "breaks", "message": "no sum"}]), "{js:#}");
    let py = value(&home, "run_tests", json!({"directory": "py"}), &["--policy", "develop"]);
    assert_eq!((&py["ok"], &py["runner"]), (&json!(true), &json!("pytest")), "{py:#}");
    assert_eq!(py["summary"], "all 1 tests passed");
    // What the policy does not allow is a denial, whatever the tool asks for.
    let denied = error(&home, "run_tests", json!({"directory": "js"}), &[]);
    assert_eq!(denied["code"], "access_denied", "{denied:#}");
}

/// Answers every request on loopback with its path.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or("?").to_owned();
            let status = if path == "/gone" { "404 Not Found" } else { "200 OK" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{path}",
                path.len()
            );
        }
    });
    port
}

#[test]
fn http_probe_asks_what_the_policy_allows() {
    needs_engine();
    let home = home();
    let port = server();
    home.user_policy(
        "probe",
        &format!(
            "policy: 1\nname: probe\nextends: [readonly]\nnet:\n  - {{ id: local, allow: \"GET,HEAD http://127.0.0.1:{port}/**\", private: true }}\n"
        ),
    );
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let args = json!({"urls": [url("/fine"), url("/gone"), "http://127.0.0.1:1/", "https://elsewhere.example/"]});
    let found = value(&home, "http_probe", args, &["--policy", "probe"]);
    let rows: Vec<_> = found["probes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["ok"].clone(), row["status"].clone(), row["code"].clone()))
        .collect();
    assert_eq!(rows[0], (json!(true), json!(200), json!(null)), "{found:#}");
    assert_eq!(rows[1], (json!(false), json!(404), json!(null)), "{found:#}");
    assert_eq!(rows[2], (json!(false), json!(null), json!("net_denied")), "{found:#}");
    assert_eq!(rows[3], (json!(false), json!(null), json!("net_denied")), "{found:#}");
    assert_eq!(found["summary"], "3 of 4 did not answer as expected");
    let text = value(
        &home,
        "http_probe",
        json!({"urls": [url("/x")], "contains": "/x"}),
        &["--policy", "probe"],
    );
    assert_eq!(text["ok"], true, "{text:#}");
    let wrong = json!({"urls": [url("/x")], "contains": "/x", "method": "HEAD"});
    let wrong = error(&home, "http_probe", wrong, &["--policy", "probe"]);
    assert!(wrong["message"].as_str().unwrap().contains("HEAD request has no body"), "{wrong:#}");
}

#[test]
fn what_tool_new_writes_runs_as_it_is() {
    needs_engine();
    for form in ["yaml", "module"] {
        let home = home();
        files(&home, &[("README.md", "one two\nthree\n")]);
        let made = home.run([
            "tool",
            "new",
            "sample",
            "--form",
            form,
            "--description",
            "A \"new\" tool: it's #1.",
        ]);
        assert_eq!(made.code, Some(0), "{} {}", made.out, made.err);
        let counted = value(&home, "sample", json!({}), &[]);
        assert_eq!(counted, json!({"path": "README.md", "lines": 2, "words": 3}), "{form}");
        let checked = home.run(["tool", "check", "sample"]);
        assert_eq!(checked.code, Some(0), "{form}: {} {}", checked.out, checked.err);
        let gone = error(&home, "sample", json!({"path": "gone"}), &[]);
        assert_eq!(gone["code"], "not_found", "{form}: {gone:#}");
    }
}
