//! Streams, exit codes, `--json`, `--status-fd`, `--dry-run`, limits, terminals.

use std::io::Write;
use std::process::{Command, Stdio};

use super::Caller;
use runner::engine::EngineName;

use crate::support::{Ran, engine_under_test, needs_engine};

fn caller() -> (Caller, std::path::PathBuf) {
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("project", &[("a.txt", "one\n"), (".runner/.keep", "")]);
    (caller, project)
}

/// `develop`, and these words of Python.
fn python(code: &str) -> [&str; 7] {
    ["exec", "--policy", "develop", "--", "python3", "-c", code]
}

#[test]
fn the_first_command_of_the_readme_works() {
    needs_engine();
    let (caller, project) = caller();
    let ran = caller.run(&project, &["exec", "--", "uname", "-a"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.starts_with("Linux "), "{}", ran.out);
}

#[test]
fn a_denied_command_leaves_everything_as_it_was() {
    let (caller, project) = caller();
    let ran = caller.run(&project, &["exec", "--", "rm", "a.txt"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(126), ""));
    assert!(ran.err.starts_with("deny  rm a.txt"), "{}", ran.err);
    assert!(project.join("a.txt").exists());
    let audit = caller.run(&project, &["audit", "list", "--denied", "--json=full"]);
    assert!(audit.out.contains("rm a.txt"), "{}", audit.out);
}

#[test]
fn a_reader_who_leaves_ends_the_call_quietly() {
    needs_engine();
    let (caller, project) = caller();
    let line = "\"$0\" exec --policy contained -- yes | head -n 1; echo \"${PIPESTATUS[0]}\"";
    let ran = in_shell(&caller, &project, "bash", line);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("y\n141\n", ""));
}

/// Runs a line of a shell in which `$0` is the program.
fn in_shell(caller: &Caller, folder: &std::path::Path, shell: &str, line: &str) -> Ran {
    let command = caller.runner(folder);
    let mut shell = Command::new(shell);
    shell.args(["-c", line]).arg(command.get_program()).current_dir(folder).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        value.map(|value| shell.env(name, value));
    }
    Ran::from(shell.output().expect("a shell"))
}

#[test]
fn input_passes_through_and_outputs_stay_apart() {
    needs_engine();
    let (caller, project) = caller();
    let mut child = caller
        .runner(&project)
        .args(["exec", "--", "cat", "-", "nosuch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let typed: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let mut stdin = child.stdin.take().expect("a pipe");
    let sent = typed.clone();
    let typing = std::thread::spawn(move || stdin.write_all(&sent));
    let ran = child.wait_with_output().expect("ends");
    typing.join().expect("no panic").expect("all was read");
    assert_eq!(ran.status.code(), Some(1), "the command's own code");
    assert!(ran.stdout == typed, "{} bytes of {}", ran.stdout.len(), typed.len());
    let err = String::from_utf8(ran.stderr).expect("UTF-8");
    assert_eq!(err, "cat: nosuch: No such file or directory\n");
}

#[test]
fn a_command_without_input_sees_that_there_is_none() {
    needs_engine();
    let (caller, project) = caller();
    // ripgrep reads its input if that is a pipe or a file, and searches the folder otherwise.
    assert_eq!(caller.works(&project, &["exec", "--", "rg", "one"]), "a.txt:one\n");
    let file = std::fs::File::open(project.join("a.txt")).expect("a file");
    let ran = caller.runner(&project).args(["exec", "--", "rg", "one"]).stdin(file).output();
    assert_eq!(Ran::from(ran.expect("starts")).out, "one\n");
}

#[test]
fn the_commands_exit_code_is_ours_and_the_status_tells_codes_apart() {
    needs_engine();
    let (caller, project) = caller();
    for code in ["0", "1", "7", "126", "255"] {
        let words = format!("import sys; sys.exit({code})");
        assert_eq!(caller.run(&project, &python(&words)).code, code.parse().ok());
    }
    let status = |words: &str| {
        let line = format!("exec \"$0\" --status-fd 9 exec {words} 9>&1 >/dev/null 2>/dev/null");
        let ran = in_shell(&caller, &project, "sh", &line);
        (ran.code, ran.out)
    };
    let said = |code, line: &str| (Some(code), format!("{line}\n"));
    let own = status("--policy develop -- python3 -c 'import sys; sys.exit(126)'");
    assert_eq!(own, said(126, r#"{"status":"failed","exit":126}"#));
    let denied = r#"{"status":"denied","exit":126,"code":"effect_not_granted"}"#;
    assert_eq!(status("-- rm a.txt"), said(126, denied));
    assert_eq!(status("-- true"), said(0, r#"{"status":"completed","exit":0}"#));
    let (code, late) = status("--policy contained --timeout 1s -- sleep 60");
    assert_eq!(code, Some(124));
    assert!(late.starts_with(r#"{"status":"timeout","exit":124"#), "{late}");
    // A number that nobody gave us is none of our own files either, such as the records.
    for number in 3..=9 {
        let line = format!("exec \"$0\" exec --status-fd {number} -- true {number}>&-");
        assert_eq!(in_shell(&caller, &project, "sh", &line).code, Some(2), "{number}");
    }
}

#[test]
fn json_is_lossless_and_says_what_was_left_out() {
    needs_engine();
    let (caller, project) = caller();
    let json = |args: &[&str]| caller.run(&project, args).json();
    let result = json(&["exec", "--json=full", "--", "cat", "a.txt", "nosuch"]);
    assert_eq!(result["status"], "failed");
    assert_eq!(result["exit"], 1);
    assert_eq!(result["stdout"], "one\n");
    assert!(result.get("stdout_encoding").is_none(), "text is the rule");
    assert_eq!(result["stderr"], "cat: nosuch: No such file or directory\n");
    assert_eq!(result["error"], serde_json::Value::Null);
    let meta = &result["metadata"];
    assert_eq!(meta["engine"], engine_under_test().as_str());
    assert!(meta["duration_ms"]["total"].as_f64() > Some(0.0));
    assert!(meta["usage"]["peak_memory_bytes"].as_u64() > Some(0));
    let algorithm = match engine_under_test() {
        EngineName::Docker => "sha256:",
        // Of the guest: the image is the host itself.
        EngineName::Embedded => "blake3:",
    };
    assert!(meta["image_digest"].as_str().is_some_and(|digest| digest.starts_with(algorithm)));
    assert_eq!(meta["limits"]["memory"], "256MiB");
    assert!(meta["protections"].as_array().is_some_and(|all| all.len() > 10));
    let denied = json(&["exec", "--json=full", "--", "rm", "x"]);
    assert_eq!((&denied["status"], &denied["exit"]), (&"denied".into(), &126.into()));
    assert_eq!(denied["error"]["rule"]["id"], "readonly/look");
    let code = "import sys; sys.stdout.buffer.write(bytes([255, 0, 1, 10]))";
    let mut words = python(code).to_vec();
    words.insert(1, "--json=full");
    let result = json(&words);
    assert_eq!(
        (&result["stdout"], &result["stdout_encoding"]),
        (&"/wABCg==".into(), &"base64".into())
    );
    let code = "print('a' * 3000000)";
    let mut words = python(code).to_vec();
    words.splice(1..1, ["--json=full", "--output", "64KiB"]);
    let result = json(&words);
    assert_eq!(result["stdout_bytes"], 3_000_001);
    assert_eq!(result["stdout_dropped"], 3_000_001 - 65_536);
    let kept = result["stdout"].as_str().expect("text");
    assert!(
        kept.contains("[... 2934465 bytes left out ...]") && kept.len() < 70_000,
        "{}",
        kept.len()
    );
}

#[test]
fn a_dry_run_shows_the_plan_and_runs_nothing() {
    needs_engine();
    let (caller, project) = caller();
    let (target, build) = (project.join("target"), project.join("build"));
    std::fs::create_dir(&target).expect("a folder");
    let dry = ["exec", "--policy", "develop", "--dry-run", "--", "pytest"];
    let text = caller.works(&project, &dry);
    for word in [
        "allow  pytest",
        "develop/python",
        "mounts",
        "memory        4GiB",
        "network",
        "changes are judged",
        "PATH=",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    let mut words = dry.to_vec();
    words.insert(1, "--json=full");
    let plan = caller.run(&project, &words).json();
    assert_eq!(plan["decision"]["decision"], "allow");
    let overlays = plan["plan"]["overlays"].as_array().expect("overlays");
    assert_eq!(overlays.len(), 1);
    assert_eq!(overlays[0]["target"], project.to_str().expect("text"));
    assert_eq!(
        (&overlays[0]["writes"], &overlays[0]["role"]),
        (&"staged".into(), &"workspace".into())
    );
    assert_eq!(plan["plan"]["covered"], serde_json::json!([]));
    match engine_under_test() {
        EngineName::Docker => {
            let host = &plan["container"]["HostConfig"];
            let binds = host["Mounts"].as_array().expect("mounts").iter();
            let binds = binds.filter(|mount| mount["Type"] == "bind");
            assert!(binds.clone().count() > 0);
            assert!(binds.clone().all(|mount| mount["ReadOnly"] == true), "{plan:#}");
            assert_eq!(host["NetworkMode"], "none");
        }
        EngineName::Embedded => {
            let recipe = &plan["container"];
            let mounts = recipe["mounts"].as_array().expect("mounts");
            assert!(mounts.len() > 2, "{plan:#}");
            assert_eq!(recipe["uid"], 65_534, "{plan:#}");
        }
    }
    assert!(!build.exists(), "a dry run makes nothing");
    let denied = caller.run(&project, &["exec", "--dry-run", "--", "rm", "a.txt"]);
    assert_eq!(denied.code, Some(126), "{}", denied.err);
    let shown = caller.run(&project, &["audit", "list", "--json=full"]).json();
    assert_eq!(shown["calls"], serde_json::json!([]), "a dry run is no call");
}

#[test]
fn limits_can_only_be_tightened() {
    needs_engine();
    let (caller, project) = caller();
    let with = |options: &[&str]| {
        let mut words = vec!["exec", "--json=full", "--dry-run"];
        words.extend(options);
        words.extend(["--", "true"]);
        caller.run(&project, &words)
    };
    let limits = with(&["--memory", "64MiB", "--timeout", "5s", "--limit", "pids=32"]).json();
    let limits = &limits["plan"]["limits"];
    assert_eq!(
        (&limits["memory"], &limits["wall"], &limits["pids"]),
        (&"64MiB".into(), &"5s".into(), &"32".into())
    );
    let wide = with(&["--memory", "8GiB", "--timeout", "2h", "--limit", "pids=60000"]).json();
    let limits = &wide["plan"]["limits"];
    let preset = (&"256MiB".into(), &"30s".into(), &"128".into());
    assert_eq!((&limits["memory"], &limits["wall"], &limits["pids"]), preset);
    // What was planned is what is in force.
    let words = ["exec", "--json=full", "--memory", "64MiB", "--limit", "pids=60000", "--", "true"];
    let limits = &caller.run(&project, &words).json()["metadata"]["limits"];
    assert_eq!((&limits["memory"], &limits["pids"]), (&"64MiB".into(), &"128".into()));
    let said = caller.run(&project, &["exec", "--memory", "8GiB", "--", "true"]);
    assert_eq!(
        (said.code, said.err.contains("`memory` stays 256MiB")),
        (Some(0), true),
        "{}",
        said.err
    );
    for wrong in [
        ["--memory", "lots"],
        ["--limit", "memroy=1GiB"],
        ["--limit", "pids"],
        ["--timeout", "-1s"],
        ["--timeout", "5"],
    ] {
        assert_eq!(with(&wrong).code, Some(2), "{wrong:?}");
    }
    let late = caller.run(
        &project,
        &[
            "exec",
            "--policy",
            "develop",
            "--timeout",
            "1s",
            "--",
            "python3",
            "-c",
            "import time; time.sleep(30)",
        ],
    );
    assert_eq!(late.code, Some(124), "{}", late.err);
    assert!(late.err.contains("longer than 1s"), "{}", late.err);
}

/// Runs a line at a terminal of its own.
fn at_terminal(caller: &Caller, folder: &std::path::Path, words: &str) -> String {
    let command = caller.runner(folder);
    let mut script = Command::new("script");
    let line = format!("'{}' {words}", command.get_program().to_string_lossy());
    script.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(folder).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        value.map(|value| script.env(name, value));
    }
    String::from_utf8_lossy(&script.output().expect("script").stdout).into_owned()
}

#[test]
fn a_terminal_is_protected_and_a_pipe_gets_every_byte() {
    needs_engine();
    let (caller, project) = caller();
    std::fs::write(project.join("evil.txt"), b"a\x1b]0;title\x07\x1b[2Jb\r\n").expect("a file");
    let shown = at_terminal(&caller, &project, "exec -- cat evil.txt");
    assert!(shown.contains("a\\x1b]0;title\\x07\\x1b[2Jb\\r"), "{shown:?}");
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
    let shown =
        at_terminal(&caller, &project, r"exec -- printf 'a\033[2Jb\302\233c\342\200\256d\n'");
    assert!(shown.contains(r"a\x1b[2Jb\x9bc\u{202e}d"), "{shown:?}");
    let raw =
        caller.runner(&project).args(["exec", "--", "cat", "evil.txt"]).output().expect("starts");
    assert_eq!(raw.stdout, b"a\x1b]0;title\x07\x1b[2Jb\r\n");
}

#[test]
fn a_command_that_wants_a_terminal_gets_one_sentence() {
    needs_engine();
    let (caller, project) = caller();
    for words in ["exec --policy develop -- python3", "exec --policy contained -- less a.txt"] {
        let shown = at_terminal(&caller, &project, words);
        assert_eq!(
            shown.matches("wants a terminal; a sandbox has none").count(),
            1,
            "{words}: {shown}"
        );
    }
}
