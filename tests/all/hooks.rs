//! Hooks of coding agents: what a repository, an agent's environment and a model try, and what comes of it (row 47).
//!
//! Each test has an account of its own: a mount namespace in which `/etc/passwd` names the test's home.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use runner::agent::quoted;
use serde_json::{Value, json};

use crate::support::{Home, Ran, choose_engine, needs_root};

const PROGRAM: &str = env!("CARGO_BIN_EXE_runner");

const POLICY: &str = "policy: 1\nname: own\nextends: [readonly]\nsandbox: { engines: [embedded] }\n\
    files: { write: ['**'], deny: ['**/.env'] }\nenv: { accept: [GREETING] }\ncommands:\n  \
    - { id: write, allow: ['touch ...', 'mkdir ...', 'mv ...', 'ln ...'], effects: [read, write], reason: wanted }\n  \
    - { id: py, allow: ['python3 ...'], effects: [read, write, code], reason: wanted }\n  \
    - { id: ask, ask: 'tee ...', effects: [read, write], reason: looked at first }\n";

/// An account with a home and a workspace.
struct Account {
    home: Home,
    /// What is mounted in its namespace: a path of the home, and where it is seen.
    mount: (&'static str, &'static str),
}

impl Account {
    fn new() -> Self {
        needs_root();
        choose_engine(runner::engine::EngineName::Embedded);
        let home = Home::new();
        home.user_policy("own", POLICY);
        fs::write(home.path("passwd"), format!("x:x:0:0::{}:/bin/sh\n", home.path("").display()))
            .unwrap();
        fs::write(home.path("project/name.txt"), "inside\n").unwrap();
        fs::create_dir_all(home.path("project/sub")).unwrap();
        Self { home, mount: ("passwd", "/etc/passwd") }
    }

    /// An account on a machine whose `/etc` is a copy.
    fn with_etc() -> Self {
        let account = Self::new();
        let etc = account.home.path("etc");
        let copied = Command::new("cp").arg("-a").arg("/etc").arg(&etc).status().unwrap();
        assert!(copied.success());
        fs::copy(account.home.path("passwd"), etc.join("passwd")).unwrap();
        Self { mount: ("etc", "/etc"), ..account }
    }

    /// A command of this account.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
        let (from, to) = self.mount;
        command.args(["--mount", "--", "sh", "-c", script, "sh"]).arg(self.home.path(from)).arg(to);
        command.args(words);
        self.home.surround(&mut command);
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).stdin(Stdio::null()).output().unwrap())
    }

    fn runner(&self, words: &[&str]) -> Ran {
        self.run(&[&[PROGRAM], words].concat())
    }

    fn install(&self, more: &[&str]) -> Ran {
        let words = ["agent", "install", "claude", "--policy", "own", "--yes"];
        let ran = self.runner(&[&words, more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    }

    fn settings(&self) -> PathBuf {
        self.home.path(".claude/settings.json")
    }

    /// What the hook answers to bytes, in this environment.
    fn hook(&self, agent: &str, input: &[u8], variables: &[(&str, &str)]) -> Ran {
        let pairs: Vec<String> =
            variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut words = vec!["/usr/bin/env"];
        words.extend(pairs.iter().map(String::as_str));
        words.extend([PROGRAM, "hook", agent]);
        let mut command = self.command(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A hook that has refused already reads no more.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran::from(child.wait_with_output().unwrap())
    }

    /// What the hook answers to a line.
    fn wrap(&self, line: &str, variables: &[(&str, &str)]) -> Ran {
        self.wrap_in("project", line, variables)
    }

    /// What the hook answers to a line in a folder of the home.
    fn wrap_in(&self, folder: &str, line: &str, variables: &[(&str, &str)]) -> Ran {
        let call = json!({
            "session_id": "s1", "cwd": self.home.path(folder), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": line, "timeout": 7, "description": "d" },
        });
        self.hook("claude", call.to_string().as_bytes(), variables)
    }

    /// The command that a line is rewritten to.
    fn wrapped(&self, line: &str) -> String {
        let ran = self.wrap(line, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        answer["hookSpecificOutput"]["updatedInput"]["command"].as_str().unwrap().to_owned()
    }

    /// Runs a line as the agent would.
    fn call(&self, line: &str) -> Ran {
        self.run(&["sh", "-c", &self.wrapped(line)])
    }
}

fn decision(ran: &Ran) -> String {
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn allowed_denied_and_asked() {
    let account = Account::new();
    account.install(&[]);
    let ran = account.wrap("cat name.txt", &[]);
    assert_eq!((decision(&ran).as_str(), ran.code), ("allow", Some(0)), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    let input = &answer["hookSpecificOutput"]["updatedInput"];
    assert_eq!((&input["timeout"], &input["description"]), (&json!(7), &json!("d")));
    let ran = account.call("cat name.txt");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "inside\n"), "{ran:?}");
    let ran = account.wrap("cat .env", &[]);
    assert_eq!((decision(&ran).as_str(), ran.code), ("deny", Some(2)), "{ran:?}");
    assert!(ran.err.contains("path_denied"), "{ran:?}");
    let ran = account.wrap("echo x | tee asked", &[]);
    assert_eq!((decision(&ran).as_str(), ran.code), ("ask", Some(0)), "{ran:?}");
    let ran = account.call("echo x | tee asked");
    assert_eq!(ran.code, Some(77), "{ran:?}");
    assert!(ran.err.contains("runner approve"), "{ran:?}");
    assert!(!account.home.path("project/asked").exists());
    // Both refusals are in the ledger, under the front of hooks.
    let listed = account.runner(&["--json", "audit", "list"]).json();
    let statuses: Vec<_> =
        listed["calls"].as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["needs_approval", "denied", "completed"]);
    assert_eq!(listed["calls"][0]["actor"]["front"], "hook");
}

#[test]
fn row_47_the_environment_of_an_agent_changes_nothing() {
    let account = Account::new();
    account.install(&[]);
    let other = account.home.path("other");
    fs::create_dir_all(other.join("runner/policies")).unwrap();
    fs::write(
        other.join("runner/policies/own.yml"),
        "policy: 1\nname: own\nextends: [readonly]\nfiles: { write: ['**'] }\ncommands:\n  \
         - { id: all, allow: ['rm ...'], effects: [read, write], reason: wanted }\n",
    )
    .unwrap();
    let other = other.to_str().unwrap();
    let hostile = [
        ("RUNNER_POLICY", "develop"),
        ("XDG_CONFIG_HOME", other),
        ("XDG_STATE_HOME", other),
        ("HOME", other),
        ("PATH", other),
        ("DOCKER_HOST", "unix:///nowhere"),
    ];
    let ran = account.wrap("rm name.txt", &hostile);
    assert_eq!(decision(&ran), "deny", "{ran:?}");
    // The control: the same policy, where it is pinned, allows it.
    account.home.user_policy(
        "own",
        &fs::read_to_string(format!("{other}/runner/policies/own.yml")).unwrap(),
    );
    let ran = account.wrap("rm name.txt", &hostile);
    assert_eq!(decision(&ran), "allow", "{ran:?}");
}

#[test]
fn row_47_a_model_that_types_our_verb_is_refused() {
    let account = Account::new();
    account.install(&[]);
    let line = account.wrapped("cat name.txt");
    // The control: as it was wrapped, it runs.
    assert_eq!(account.run(&["sh", "-c", &line]).code, Some(0));
    let ticket = line.split(' ').nth(5).unwrap();
    for words in [
        vec!["claude", "s1", ticket, "touch forged"],
        vec!["claude", "s2", ticket, "cat name.txt"],
        vec!["codex", "s1", ticket, "cat name.txt"],
        vec!["claude", "s1", &ticket[1..], "cat name.txt"],
        vec!["claude", "s1", "", "cat name.txt"],
        vec!["claude", "s1", ticket, "cat name.txt", "--policy=develop"],
        vec!["--policy", "develop", "claude", "s1"],
        vec![],
    ] {
        let ran = account.runner(&[&["agent", "exec"], words.as_slice()].concat());
        assert!(matches!(ran.code, Some(125 | 126)), "{words:?}: {ran:?}");
        assert!(!ran.out.contains("inside"), "{words:?}: {ran:?}");
    }
    assert!(!account.home.path("project/forged").exists());
    // What looks wrapped is wrapped once more, and is judged as what it is: a program named by a path.
    let ran = account.wrap(&line, &[]);
    assert_eq!(decision(&ran), "deny", "{ran:?}");
    // Another workspace is not this one.
    let other = account.home.path("other");
    fs::create_dir_all(&other).unwrap();
    let moved = format!("cd {} && {line}", quoted(other.to_str().unwrap()));
    assert_eq!(account.run(&["sh", "-c", &moved]).code, Some(126));
}

#[test]
fn row_47_whatever_a_hook_is_told_it_answers_and_refuses() {
    let account = Account::new();
    let call = json!({ "cwd": account.home.path("project"), "tool_name": "Bash",
                       "tool_input": { "command": "cat name.txt" } });
    // Nothing is pinned: a repository's settings alone install nothing.
    let ran = account.hook("claude", call.to_string().as_bytes(), &[]);
    assert_eq!((decision(&ran).as_str(), ran.code), ("deny", Some(2)), "{ran:?}");
    account.install(&[]);
    let long = vec![b' '; 5 << 20];
    for input in [b"".as_slice(), b"{", b"\xff\xfe", b"[]", b"{\"tool_name\":1}", &long] {
        let ran = account.hook("claude", input, &[]);
        assert_eq!((decision(&ran).as_str(), ran.code), ("deny", Some(2)), "{ran:?}");
    }
    assert_eq!(account.hook("nano", call.to_string().as_bytes(), &[]).code, Some(2));
    // An answer that the agent cannot read is a refusal too.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut closed = account.command(&[PROGRAM, "hook", "claude"]);
    let mut child =
        closed.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    // So is one that nothing can read: neither an allowance nor a refusal may end with 0.
    for line in ["cat name.txt", "cat .env"] {
        let call = json!({ "cwd": account.home.path("project"), "tool_name": "Bash",
                           "tool_input": { "command": line } });
        for closing in [">&-", ">&- 2>&-", ">/dev/null"] {
            let script = format!("\"$1\" hook claude {closing}");
            let mut command = account.command(&["sh", "-c", &script, "sh", PROGRAM]);
            let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(2), "{line} {closing}");
        }
    }
    // The control.
    let ran = account.hook("claude", call.to_string().as_bytes(), &[]);
    assert_eq!((decision(&ran).as_str(), ran.code), ("allow", Some(0)), "{ran:?}");
    // A pin that others can write to is not believed.
    let pin = account.home.path(".local/state/runner/agents/claude.json");
    let mode = |mode| fs::set_permissions(&pin, std::os::unix::fs::PermissionsExt::from_mode(mode));
    mode(0o666).unwrap();
    let ran = account.hook("claude", call.to_string().as_bytes(), &[]);
    assert_eq!((decision(&ran).as_str(), ran.code), ("deny", Some(2)), "{ran:?}");
}

#[test]
fn the_folder_and_exported_variables_persist_in_a_session() {
    let account = Account::new();
    account.install(&[]);
    fs::write(account.home.path("project/sub/inner.txt"), "below\n").unwrap();
    assert_eq!(account.call("cd sub && export GREETING='a b'").code, Some(0));
    let ran = account.call("cat inner.txt; printenv GREETING; cd ..");
    assert_eq!(ran.out, "below\na b\n", "{ran:?}");
    assert_eq!(account.call("cat name.txt && cd sub").out, "inside\n");
    // Gone, or a link: the call starts in the root, and says so.
    fs::rename(account.home.path("project/sub"), account.home.path("project/moved")).unwrap();
    std::os::unix::fs::symlink("moved", account.home.path("project/sub")).unwrap();
    let ran = account.call("cat name.txt");
    assert_eq!(ran.out, "inside\n", "{ran:?}");
    assert!(ran.err.contains("starts in the workspace's root"), "{ran:?}");
    // A variable that the policy does not accept any more is forgotten.
    account.home.user_policy("own", &POLICY.replace("accept: [GREETING]", "accept: []"));
    let ran = account.call("cat name.txt");
    assert!(ran.out == "inside\n" && ran.err.contains("forgotten"), "{ran:?}");
}

#[test]
fn held_changes_stand_in_what_the_model_sees() {
    let account = Account::new();
    account.install(&[]);
    let script =
        "import os; os.mkdir('.vscode'); open('.vscode/tasks.json', 'w'); open('fine', 'w')";
    let ran = account.call(&format!("python3 -c {}", quoted(script)));
    assert!(ran.err.contains("held back"), "{ran:?}");
    assert!(!account.home.path("project/.vscode/tasks.json").exists(), "{ran:?}");
    assert!(account.home.path("project/fine").exists(), "{ran:?}");
    let ran = account.call("seq 100000");
    assert!(ran.out.len() < 16 << 10 && ran.out.contains("bytes left out"), "{}", ran.out.len());
}

#[test]
fn uninstalling_puts_back_every_byte_or_takes_our_entries_alone() {
    let account = Account::new();
    let mine = "{\n  // my settings\n  \"model\": \"opus\", /* why */\n  \"permissions\": {\"deny\": [\"WebFetch\",]},\n}\n";
    fs::create_dir_all(account.home.path(".claude")).unwrap();
    fs::write(account.settings(), mine).unwrap();
    account.install(&[]);
    let text = fs::read_to_string(account.settings()).unwrap();
    assert!(text.contains("// my settings") && text.contains("/* why */"), "{text}");
    assert!(text.contains("\"onFailure\": \"block\"") && text.contains("Read(**/.env)"), "{text}");
    let status = account.runner(&["--json", "agent", "status"]).out;
    assert!(status.contains("\"intact\""), "{status}");
    assert_eq!(account.runner(&["agent", "uninstall", "claude"]).code, Some(0));
    assert_eq!(fs::read_to_string(account.settings()).unwrap(), mine);
    // It changed meanwhile: what is not ours stays.
    account.install(&[]);
    let text = fs::read_to_string(account.settings()).unwrap();
    fs::write(account.settings(), text.replace("\"opus\"", "\"sonnet\"")).unwrap();
    let status = account.runner(&["--json", "agent", "status"]).out;
    assert!(status.contains("\"changed\""), "{status}");
    assert_eq!(account.runner(&["agent", "uninstall", "claude"]).code, Some(0));
    let left = fs::read_to_string(account.settings()).unwrap();
    assert!(left.contains("\"sonnet\"") && left.contains("// my settings"), "{left}");
    assert!(left.contains("WebFetch") && !left.contains("hook claude"), "{left}");
    assert!(!left.contains("Read(**/.env)"), "{left}");
    assert_eq!(account.runner(&["agent", "uninstall", "claude"]).code, Some(125));
}

#[test]
fn the_pin_of_a_project_holds_in_it_before_that_of_the_user() {
    let account = Account::new();
    fs::create_dir_all(account.home.path("project/.git")).unwrap();
    fs::create_dir_all(account.home.path("other/.git")).unwrap();
    account.install(&["--project"]);
    let settings = account.home.path("project/.claude/settings.json");
    assert!(fs::read_to_string(&settings).unwrap().contains("hook claude"));
    assert!(!account.settings().exists());
    assert_eq!(decision(&account.wrap("touch made", &[])), "allow");
    // Nothing is pinned for another workspace.
    assert_eq!(decision(&account.wrap_in("other", "touch made", &[])), "deny");
    let words = ["agent", "install", "claude", "--policy", "readonly", "--yes"];
    assert_eq!(account.runner(&words).code, Some(0));
    assert_eq!(decision(&account.wrap_in("other", "cat name.txt", &[])), "allow");
    assert_ne!(decision(&account.wrap_in("other", "touch made", &[])), "allow");
    assert_eq!(decision(&account.wrap("touch made", &[])), "allow");
    // Without the project's, the user's holds there too.
    assert_eq!(account.runner(&["agent", "uninstall", "claude", "--project"]).code, Some(0));
    assert!(!settings.exists());
    assert!(account.settings().exists());
    assert_ne!(decision(&account.wrap("touch made", &[])), "allow");
}

#[test]
fn the_managed_pin_holds_before_that_of_a_user() {
    let account = Account::with_etc();
    // Each account has its own folders, so a policy for all of them is a managed one.
    let policies = account.home.path("etc/runner/policies");
    fs::create_dir_all(&policies).unwrap();
    fs::rename(account.home.path("config/runner/policies/own.yml"), policies.join("own.yml"))
        .unwrap();
    account.install(&["--managed"]);
    let settings = account.home.path("etc/claude-code/managed-settings.json");
    let pin = account.home.path("etc/runner/agents/claude.json");
    assert!(fs::read_to_string(&settings).unwrap().contains("hook claude"));
    assert!(pin.exists() && !account.settings().exists());
    let words = ["agent", "install", "claude", "--policy", "readonly", "--yes"];
    assert_eq!(account.runner(&words).code, Some(0));
    assert_eq!(decision(&account.wrap("touch made", &[])), "allow");
    assert_eq!(decision(&account.wrap("cat .env", &[])), "deny");
    let ran = account.call("touch made");
    assert!(ran.code == Some(0) && account.home.path("project/made").exists(), "{ran:?}");
    // Without it, the user's holds.
    assert_eq!(account.runner(&["agent", "uninstall", "claude", "--managed"]).code, Some(0));
    assert!(!settings.exists());
    assert_eq!(decision(&account.wrap("cat name.txt", &[])), "allow");
    assert_ne!(decision(&account.wrap("touch made", &[])), "allow");
}

#[test]
fn another_hook_for_shell_commands_is_named() {
    let account = Account::new();
    account.install(&[]);
    let status = account.runner(&["agent", "status"]);
    assert!(!status.err.contains("another hook"), "{status:?}");
    let entry = |matcher: &str, command: &str| json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] });
    let mine = json!({ "hooks": { "PreToolUse": [entry("Bash|Edit", "mine.sh"), entry("Edit", "edits.sh")] } });
    fs::write(account.home.path(".claude/settings.local.json"), mine.to_string()).unwrap();
    fs::create_dir_all(account.home.path("project/.claude")).unwrap();
    let theirs = json!({ "hooks": { "PreToolUse": [entry("*", "theirs.sh")] } });
    fs::write(account.home.path("project/.claude/settings.json"), theirs.to_string()).unwrap();
    let status = account.runner(&["agent", "status"]);
    assert!(status.err.contains("settings.local.json: mine.sh"), "{status:?}");
    assert!(status.err.contains("project/.claude/settings.json: theirs.sh"), "{status:?}");
    assert!(!status.err.contains("edits.sh"), "{status:?}");
}

#[test]
fn what_is_not_understood_is_refused_at_its_place_and_nothing_is_written() {
    let account = Account::new();
    fs::create_dir_all(account.home.path(".claude")).unwrap();
    for (text, place) in [
        ("{\n  \"hooks\": []\n}\n", ":2:12:"),
        ("{\n  \"a\": 1,\n  \"a\": 2\n}\n", ":3:3:"),
        ("{", ":1:2:"),
    ] {
        fs::write(account.settings(), text).unwrap();
        let ran = account.runner(&["agent", "install", "claude", "--policy", "own", "--yes"]);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.err.contains(&format!("settings.json{place}")), "{ran:?}");
        assert_eq!(fs::read_to_string(account.settings()).unwrap(), text);
    }
    // Without a yes nothing is written either.
    fs::write(account.settings(), "{}").unwrap();
    let ran = account.runner(&["agent", "install", "claude", "--policy", "own"]);
    assert_eq!(ran.code, Some(77), "{ran:?}");
    let ran = account.runner(&["agent", "install", "claude", "--policy", "own", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("hook claude"), "{ran:?}");
    assert_eq!(fs::read_to_string(account.settings()).unwrap(), "{}");
    assert!(!account.home.path(".local/state/runner/agents/claude.json").exists());
    // A repository's configuration that is a link is not followed.
    fs::create_dir_all(account.home.path("project/.git")).unwrap();
    fs::create_dir_all(account.home.path("project/.claude")).unwrap();
    let link = account.home.path("project/.claude/settings.json");
    std::os::unix::fs::symlink(account.settings(), &link).unwrap();
    let ran =
        account.runner(&["agent", "install", "claude", "--project", "--policy", "own", "--yes"]);
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert_eq!(fs::read_to_string(account.settings()).unwrap(), "{}");
}

/// What a shell makes of a quoted word is the word: for texts of every kind, in every shell that agents use.
#[test]
fn a_quoted_line_is_one_word_of_every_shell() {
    let pieces = [
        "'",
        "\"",
        "\\",
        "$x",
        "$(id)",
        "`id`",
        "!",
        "!!",
        "\n",
        "\r",
        "\t",
        " ",
        "*",
        "?",
        "[a]",
        "{a,b}",
        "~",
        "#",
        "&",
        ";",
        "|",
        "<",
        ">",
        "(",
        ")",
        "=",
        "-n",
        "--",
        "é",
        "\u{1f600}",
        "\u{7f}",
        "\u{1}",
        "%s",
        "a",
        "''",
        "\\'",
        "<<EOF\n",
        "^x^y^",
    ];
    // A fixed sequence that visits all pairs and long mixtures.
    let mut texts: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
    for a in pieces {
        texts.extend(pieces.iter().map(|b| format!("{a}{b}")));
    }
    let mut state = 1_u64;
    for _ in 0..300 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[usize::try_from(state >> 33).unwrap() % pieces.len()]);
        }
        texts.push(text);
    }
    for shell in ["sh", "bash", "dash", "zsh"] {
        for part in texts.chunks(200) {
            let words: Vec<String> = part.iter().map(|text| quoted(text)).collect();
            let script = format!("printf '%s\\0' {}", words.join(" "));
            let output = Command::new(shell).args(["-c", &script]).output();
            let output = output.unwrap_or_else(|error| panic!("{shell}: {error}"));
            let wanted: String = part.iter().map(|text| format!("{text}\0")).collect();
            assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{shell}");
        }
    }
}
