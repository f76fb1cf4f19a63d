//! `runner exec` as a user meets it: a real engine (`DOCKER_HOST` names it), the real program.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::support::{Home, Ran};

/// A caller with a repository of one commit.
fn project() -> Home {
    let home = Home::new();
    fs::write(home.path("project/names.txt"), "b\na\n").unwrap();
    fs::create_dir(home.path("project/src")).unwrap();
    fs::write(home.path("project/src/main.rs"), "fn main() {}\n").unwrap();
    home.git(&["init", "-q"]);
    home.git(&["add", "."]);
    home.git(&["commit", "-qm", "first"]);
    home
}

#[test]
fn the_first_command_of_the_readme_works() {
    let ran = project().run(["exec", "--", "uname", "-a"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("Linux "), "{}", ran.out);
    assert_eq!(ran.err, "");
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let home = project();
    assert_eq!(home.run(["exec", "--", "false"]).code, Some(1));
    assert_eq!(
        home.run(["exec", "--policy", "contained", "--", "sh", "-c", "exit 126"]).code,
        Some(126)
    );
}

#[test]
fn the_status_tells_a_126_from_a_denial() {
    let home = project();
    let status = |words: &str| {
        let line = format!("exec \"$0\" --status-fd 9 exec {words} 9>&1 >/dev/null 2>/dev/null");
        let mut shell = Command::new("sh");
        home.surround(&mut shell);
        let out = shell.args(["-c", &line, env!("CARGO_BIN_EXE_runner")]).output().unwrap();
        let line: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        (
            out.status.code().unwrap(),
            line["status"].as_str().unwrap().to_owned(),
            line["exit"].as_i64().unwrap(),
        )
    };
    assert_eq!(status("--policy contained -- sh -c 'exit 126'"), (126, "failed".to_owned(), 126));
    assert_eq!(status("-- rm names.txt"), (126, "denied".to_owned(), 126));
    assert_eq!(status("-- true"), (0, "completed".to_owned(), 0));
    assert_eq!(
        status("--policy contained --timeout 1s -- sleep 60"),
        (124, "timeout".to_owned(), 124)
    );
}

#[test]
fn a_denied_command_leaves_everything_as_it_was() {
    let home = project();
    let ran = home.run(["exec", "--", "rm", "names.txt"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(126), ""));
    assert!(ran.err.starts_with("deny  rm names.txt"), "{}", ran.err);
    assert!(home.path("project/names.txt").exists());
    let audit = home.run(["audit", "list", "--denied", "--json"]);
    assert!(audit.out.contains("rm names.txt"), "{}", audit.out);
}

#[test]
fn standard_streams_pass_and_stay_apart() {
    let home = project();
    let mut child = home
        .runner()
        .args(["exec", "--policy", "contained", "--", "sh", "-c", "cat; echo error >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut stdin = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == bytes, "{} bytes came back", output.stdout.len());
    assert_eq!(output.stderr, b"error\n");
}

#[test]
fn json_is_one_object_and_loses_nothing() {
    let home = project();
    let json = home.run(["exec", "--json", "--", "printf", r"a\n\377"]).json();
    assert_eq!((&json["status"], &json["exit"]), (&"completed".into(), &0.into()));
    assert_eq!((&json["stdout_encoding"], &json["stdout"]), (&"base64".into(), &"YQr/".into()));
    assert!(json["metadata"]["duration_ms"]["total"].as_f64().unwrap() > 0.0);
    let json = home.run(["exec", "--json", "--", "rm", "x"]).json();
    assert_eq!((&json["status"], &json["exit"]), (&"denied".into(), &126.into()));
    assert_eq!(json["error"]["rule"]["id"], "readonly/look");
}

#[test]
fn a_line_is_executed_as_it_was_read() {
    let home = project();
    let ran = home.run([
        "exec",
        "--shell",
        "cd src && ls | head -1; test -f ../names.txt && sort ../names.txt",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "main.rs\na\nb\n"), "{}", ran.err);
}

#[test]
fn words_of_a_shell_are_only_words_in_an_argument() {
    let home = project();
    for word in [
        "; rm names.txt",
        "$(id)",
        "`id`",
        "a\nb",
        "a\rb",
        "> out",
        "${IFS}",
        "<(id)",
        "&& id",
        "*",
        "",
    ] {
        let ran = home.run(["exec", "--", "printf", "%s", word]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), word), "{word:?}: {}", ran.err);
    }
}

#[test]
fn a_reader_who_leaves_ends_the_call_quietly() {
    let home = project();
    let line = "\"$0\" exec --policy contained -- yes | head -n 1; echo \"${PIPESTATUS[0]}\"";
    let mut shell = Command::new("bash");
    home.surround(&mut shell);
    let ran = Ran::from(shell.args(["-c", line, env!("CARGO_BIN_EXE_runner")]).output().unwrap());
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("y\n141\n", ""));
}

#[test]
fn output_cannot_drive_a_terminal() {
    let home = project();
    let shown = home.at_terminal(r"exec -- printf 'a\033[2Jb\302\233c\342\200\256d\n'", "");
    assert!(shown.out.contains(r"a\x1b[2Jb\x9bc\u{202e}d"), "{:?}", shown.out);
    // The control: into a pipe every byte passes.
    let ran = home.run(["exec", "--", "printf", r"a\033[2J\n"]);
    assert_eq!(ran.out, "a\u{1b}[2J\n");
}

#[test]
fn programs_and_folders_that_are_missing_have_their_own_errors() {
    let home = project();
    let code = |args: &[&str]| {
        let ran = home.run(["exec", "--json"].iter().chain(args));
        (ran.code.unwrap(), ran.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(
        code(&["--policy", "contained", "--", "nosuchprogram"]),
        (127, "program_not_found".to_owned())
    );
    assert_eq!(code(&["--workdir", "nowhere", "--", "ls"]), (125, "workspace_missing".to_owned()));
    assert_eq!(
        code(&["--workdir", "names.txt", "--", "ls"]),
        (125, "workspace_not_a_folder".to_owned())
    );
    assert_eq!(code(&["--workdir", "/usr", "--", "ls"]), (125, "workspace_is_system".to_owned()));
}

#[test]
fn an_engine_that_is_not_there_is_named_with_the_next_step() {
    let home = project();
    let mut command = home.runner();
    command.env("DOCKER_HOST", format!("unix://{}", home.path("no.sock").display()));
    let ran = Ran::from(command.args(["exec", "--", "ls"]).output().unwrap());
    assert_eq!(ran.code, Some(125));
    assert!(ran.err.contains("no.sock") && ran.err.contains("hint: "), "{}", ran.err);
}

#[test]
fn workspaces_with_odd_names_work_or_say_why() {
    let home = project();
    for name in
        ["with space", "a:b", "a,b", "it's \"quoted\"", "new\nline", "-dash", "ünï", "$(id)"]
    {
        let folder = home.path("odd").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), "inside\n").unwrap();
        let ran = Ran::from(
            home.runner()
                .current_dir(&folder)
                .args(["exec", "--", "cat", "file"])
                .output()
                .unwrap(),
        );
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "inside\n"), "{name:?}: {}", ran.err);
    }
    let folder = home.path("odd").join(std::ffi::OsStr::from_bytes(b"no\xfftext"));
    fs::create_dir_all(&folder).unwrap();
    let out = home.runner().current_dir(&folder).args(["exec", "--", "ls"]).output().unwrap();
    assert_eq!(out.status.code(), Some(125), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_deleted_folder_is_an_error() {
    let home = project();
    let gone = home.path("gone");
    fs::create_dir(&gone).unwrap();
    let mut shell = Command::new("sh");
    home.surround(&mut shell);
    shell.current_dir(&gone).args([
        "-c",
        "rmdir ../gone; exec \"$0\" exec -- ls",
        env!("CARGO_BIN_EXE_runner"),
    ]);
    let ran = Ran::from(shell.output().unwrap());
    assert_eq!(ran.code, Some(125));
    assert!(ran.err.contains("deleted"), "{}", ran.err);
}

#[test]
fn a_limit_on_the_command_line_only_tightens() {
    let home = project();
    let limits = |args: &[&str]| {
        let json = home.run(["exec", "--json"].iter().chain(args).chain(&["--", "true"])).json();
        let limit = |key: &str| json["metadata"]["limits"][key].as_str().unwrap().to_owned();
        (limit("wall"), limit("memory"), limit("pids"))
    };
    let figures = |wall: &str, memory: &str, pids: &str| {
        (wall.to_owned(), memory.to_owned(), pids.to_owned())
    };
    assert_eq!(limits(&[]), figures("30s", "256MiB", "128"));
    assert_eq!(
        limits(&["--timeout", "5s", "--memory", "64MiB", "--limit", "pids=32"]),
        figures("5s", "64MiB", "32")
    );
    assert_eq!(
        limits(&["--timeout", "20h", "--memory", "64GiB", "--limit", "pids=60000"]),
        figures("30s", "256MiB", "128")
    );
    for args in [&["--timeout", "5"][..], &["--memory", "lots"], &["--limit", "pidz=3"]] {
        assert_eq!(
            home.run(["exec"].iter().chain(args).chain(&["--", "true"])).code,
            Some(2),
            "{args:?}"
        );
    }
}
