//! What can be wrong around a call: each its own error, with the next step and the documented code.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::everyday::Caller;
use crate::own_engine::OwnEngine;
use crate::support::{Home, Ran, needs_engine, needs_root};

/// Runs with `--json` and without: the same code both times, and a next step in both.
fn fails(command: &dyn Fn() -> Command, code: &str, exit: i32, step: &str) -> Value {
    let text = Ran::from(command().output().expect("starts"));
    assert_eq!(text.code, Some(exit), "{}", text.err);
    assert!(text.err.contains(step), "no {step:?} in: {}", text.err);
    assert_eq!(text.out, "");
    let json = Ran::from(command().arg("--json").output().expect("starts"));
    assert_eq!(json.code, Some(exit), "{}", json.err);
    let value = json.json();
    assert_eq!(value["error"]["code"], code, "{value}");
    assert_eq!((&value["status"], &value["exit"]), (&"error".into(), &exit.into()), "{value}");
    assert!(value["error"]["suggestion"].is_string(), "{value}");
    value
}

/// `exec [options] -- true` somewhere; `--json` can still be added, before the command.
fn exec(home: &Home, folder: &Path, options: &[&OsStr]) -> Command {
    let mut command = home.runner();
    command.current_dir(folder).args(["exec", "--shell", "true"]).args(options);
    command
}

fn with_engine(home: &Home, endpoint: &str) -> Command {
    let docker = ["--engine", "docker"].map(OsStr::new);
    let mut command = exec(home, &home.path("project"), &docker);
    command.env("DOCKER_HOST", endpoint);
    command
}

#[test]
fn no_engine() {
    let home = Home::new();
    let nobody = |endpoint: String| move |home: &Home| with_engine(home, &endpoint);
    let missing = nobody(format!("unix://{}", home.path("nosuch.sock").display()));
    let value = fails(&|| missing(&home), "engine_missing", 125, "install Docker and start it");
    assert!(value["error"]["message"].as_str().is_some_and(|text| text.contains("nosuch.sock")));
    // The call had begun: it is in the ledger under its id.
    let id = value["call"].as_str().expect("an id");
    let shown = home.run(["audit", "show", id, "--json"]).json();
    assert_eq!(shown["events"][0]["kind"], "start");
    assert_eq!(shown["events"][1]["kind"], "end");
    assert_eq!(shown["events"][1]["body"]["code"], "engine_missing");
    // A socket that nobody listens at any more.
    drop(UnixListener::bind(home.path("dead.sock")).expect("a socket"));
    let dead = nobody(format!("unix://{}", home.path("dead.sock").display()));
    fails(&|| dead(&home), "engine_missing", 125, "install Docker and start it");
    let odd = nobody("ssh://somewhere".to_owned());
    fails(&|| odd(&home), "engine_bad_endpoint", 125, "unix:///path/to/docker.sock");
}

#[test]
fn an_engine_that_runner_does_not_have() {
    let home = Home::new();
    for words in [
        &["exec", "--engine", "podman", "--", "true"][..],
        &["tool", "run", "todo_finder", "--engine", "podman"],
        &["pool", "warm", "--engine", "podman"],
        &["mcp", "refresh", "--engine", "podman"],
        &["gc", "--engine", "podman"],
    ] {
        let ran = home.run(words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.err);
        assert!(
            ran.err.contains("[possible values: auto, docker, embedded]"),
            "{words:?}: {}",
            ran.err
        );
    }
}

/// The policy is asked first: an engine that it does not allow is never reached.
#[test]
fn an_engine_that_the_policy_does_not_allow() {
    let home = Home::new();
    let policy = home.path("elsewhere.yml");
    let text =
        "policy: 1\nname: elsewhere\nextends: [readonly]\nsandbox: { engines: [embedded] }\n";
    std::fs::write(&policy, text).expect("a policy");
    let missing = format!("unix://{}", home.path("nosuch.sock").display());
    let refused = || {
        let mut command = with_engine(&home, &missing);
        command.arg("--policy").arg(&policy);
        command
    };
    let value = fails(&refused, "engine_not_allowed", 125, "`sandbox.engines` has docker");
    let message = value["error"]["message"].as_str().expect("a message");
    assert!(message.contains("`elsewhere` allows the engines [embedded]"), "{message}");
    // The control: with a policy that allows it, it is looked for.
    fails(&|| with_engine(&home, &missing), "engine_missing", 125, "install Docker and start it");
}

#[test]
fn an_engine_that_is_too_old_or_not_an_engine() {
    let home = Home::new();
    let answers = |name: &str, answer: &'static str| {
        let path = home.path(name);
        let listener = UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let _ = client.read(&mut [0; 1024]);
                let _ = client.write_all(answer.as_bytes());
            }
        });
        format!("unix://{}", path.display())
    };
    let old = answers(
        "old.sock",
        "HTTP/1.1 200 OK\r\nApi-Version: 1.30\r\nOstype: linux\r\nContent-Length: 2\r\n\r\nOK",
    );
    fails(&|| with_engine(&home, &old), "engine_too_old", 125, "upgrade Docker to 20.10");
    let windows = answers(
        "win.sock",
        "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nOstype: windows\r\nContent-Length: 2\r\n\r\nOK",
    );
    fails(&|| with_engine(&home, &windows), "engine_not_linux", 125, "Linux containers");
    let other = answers("ssh.sock", "SSH-2.0-OpenSSH\r\n");
    fails(&|| with_engine(&home, &other), "engine_lost", 125, "try again");
}

#[test]
fn an_engine_that_is_not_for_this_user() {
    let caller = Caller::ordinary("/var/tmp");
    let socket = caller.path("root.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).expect("permissions");
    let project = caller.project("project", &[("a", "")]);
    let command = || {
        let mut command = caller.runner(&project);
        command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
        command.args(["exec", "--shell", "true"]);
        command
    };
    fails(&command, "engine_not_permitted", 125, "docker group");
}

/// Writes a file until there is no room for another byte.
fn fill(file: &Path) {
    let mut file = fs::File::options().create(true).append(true).open(file).expect("a file");
    let chunk = [0; 4096];
    while file.write_all(&chunk).is_ok() {}
    while file.write_all(&chunk[..1]).is_ok() {}
}

#[test]
fn an_engine_that_ran_out_of_disk() {
    needs_engine();
    needs_root();
    let mut engine = OwnEngine::with_disk("48m");
    engine.start();
    let home = Home::new();
    let here = || with_engine(&home, &engine.endpoint());
    let works = || {
        let ran = Ran::from(here().output().expect("starts"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    };
    works();
    // What its sandbox took would be room for another one.
    engine.until_empty();
    let filler = Path::new(&engine.path("data")).join("filler");
    fill(&filler);
    let value = fails(&here, "engine_out_of_disk", 125, "docker system prune");
    assert_eq!(value["error"]["recoverable"], false, "{value}");
    assert_eq!(engine.containers(), serde_json::json!([]), "nothing is left half made");
    // With room again, the next call works.
    fs::remove_file(&filler).expect("removed");
    works();
}

/// A file system of its own, unmounted at the end.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(size: &str) -> Self {
        let disk = Self(tempfile::tempdir().expect("a folder"));
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"]);
        assert!(mount.arg(disk.0.path()).status().expect("mount").success());
        disk
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn our_own_disk_is_full() {
    needs_engine();
    needs_root();
    let (disk, home) = (Disk::new("4m"), Home::new());
    let here = || {
        let mut command = exec(&home, &home.path("project"), &[]);
        command.env("XDG_STATE_HOME", disk.0.path());
        command
    };
    fill(&disk.0.path().join("filler"));
    fails(&here, "store_database", 125, "nothing runs without an audit record");
    fs::remove_file(disk.0.path().join("filler")).expect("removed");
    let ran = Ran::from(here().output().expect("starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // Full in the middle of its life: what the log still has room for is recorded, and then nothing runs. Whoever settles the
    // records behind a call's back may give some room back.
    let mut ran = Vec::new();
    let refused = loop {
        fill(&disk.0.path().join("filler"));
        let one = Ran::from(here().arg("--json").output().expect("starts"));
        if one.code != Some(0) {
            break one;
        }
        ran.push(one.json()["call"].as_str().expect("an id").to_owned());
        assert!(ran.len() < 20, "it never is full");
    };
    assert_eq!(refused.code, Some(125), "{}{}", refused.out, refused.err);
    assert!(refused.json()["error"]["suggestion"].is_string(), "{}", refused.out);
    fs::remove_file(disk.0.path().join("filler")).expect("removed");
    for id in ran {
        let mut show = home.runner();
        show.env("XDG_STATE_HOME", disk.0.path()).args(["audit", "show", &id, "--json"]);
        let shown = Ran::from(show.output().expect("starts")).json();
        let kinds = [&shown["events"][0]["kind"], &shown["events"][1]["kind"]];
        assert_eq!(kinds, ["start", "end"], "{shown}");
    }
}

#[test]
fn an_image_that_is_not_there_or_has_no_name() {
    needs_engine();
    let home = Home::new();
    for name in ["nosuch.example/x:1", "two words", "../escape", "-v"] {
        let option = OsString::from(format!("--image={name}"));
        let command = || exec(&home, &home.path("project"), &[&option]);
        let value = fails(&command, "image_missing", 125, "docker pull");
        assert!(value["error"]["message"].as_str().is_some_and(|text| text.contains(name)));
    }
}

#[test]
fn a_program_that_is_not_in_the_sandbox() {
    needs_engine();
    let home = Home::new();
    home.user_policy("any", "policy: 1\nname: any\ncommands:\n  - id: all\n    allow: \"nosuch-program ...\"\n    effects: any\n");
    let words = ["exec", "--policy=any", "--", "nosuch-program", "-v"];
    let text = home.run(words);
    assert_eq!(text.code, Some(127), "{}", text.err);
    assert!(text.err.contains("toolchains on your PATH"), "{}", text.err);
    let value = home.run(["--json"].into_iter().chain(words)).json();
    assert_eq!((&value["status"], &value["exit"]), (&"error".into(), &127.into()), "{value}");
    assert_eq!(value["error"]["code"], "program_not_found", "{value}");
    assert!(value["error"]["message"].as_str().is_some_and(|text| text.contains("nosuch-program")));
    // In a line it is as in a shell: said on standard error, and the line goes on.
    let line = home.run(["exec", "--policy=any", "--shell", "nosuch-program || nosuch-program -v"]);
    assert_eq!(line.code, Some(127), "{}", line.err);
    assert_eq!(line.err.matches("nosuch-program: ").count(), 2, "{}", line.err);
}

#[test]
fn a_place_that_is_no_workspace() {
    let home = Home::new();
    let project = home.path("project");
    fs::write(project.join("file"), "").expect("a file");
    let at = |folder: &str| {
        let option = OsString::from(format!("--workdir={folder}"));
        exec(&home, &project, &[&option])
    };
    let step = "--workdir";
    fails(&|| at("nosuch"), "workspace_missing", 125, step);
    fails(&|| at("file"), "workspace_not_a_folder", 125, step);
    fails(&|| at("/"), "workspace_is_home", 125, step);
    fails(&|| at("/usr"), "workspace_is_system", 125, step);
    let own = home.path("");
    fails(&|| at(own.to_str().expect("text")), "workspace_is_home", 125, step);
    std::os::unix::fs::symlink(&project, home.path("link")).expect("a link");
    let link = home.path("link");
    fails(&|| at(link.to_str().expect("text")), "workspace_through_link", 125, step);
    // Our own folders, by whatever name, also before they exist.
    std::os::unix::fs::symlink(project.join("later"), home.path("moved")).expect("a link");
    for (variable, base) in [
        ("XDG_STATE_HOME", project.join(".state")),
        ("XDG_CACHE_HOME", project.join("deep/cache")),
        ("XDG_CONFIG_HOME", project.clone()),
        ("XDG_STATE_HOME", home.path("moved")),
    ] {
        let inside = || {
            let mut command = exec(&home, &project, &[]);
            command.env(variable, &base);
            command
        };
        fails(&inside, "workspace_is_ours", 125, variable);
        assert!(!project.join(".state").exists(), "nothing is made there");
    }
    for folder in ["config/runner/policies", "state/runner"] {
        fs::create_dir_all(home.path(folder)).expect("a folder");
        let folder = home.path(folder);
        fails(&|| at(folder.to_str().expect("text")), "workspace_is_ours", 125, step);
    }
    // A question about a policy may be asked there: nothing runs.
    let mut asked = home.runner();
    asked
        .current_dir(home.path("config/runner/policies"))
        .args(["policy", "explain", "--", "true"]);
    assert_eq!(Ran::from(asked.output().expect("it starts")).code, Some(0));
    // The folder that the caller stands in was deleted.
    let line = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" exec --shell true \"$@\"";
    let deleted = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", line, env!("CARGO_BIN_EXE_runner")]).current_dir(&project);
        shell.env("HOME", home.path("")).env("XDG_STATE_HOME", home.path("state"));
        shell
    };
    let value = fails(&deleted, "workspace_deleted", 125, step);
    assert!(value["error"]["message"].as_str().is_some_and(|text| text.contains("deleted")));
}

/// A pipe and a socket of the host are closed files inside, on every runtime: nobody waits at one, and nothing goes
/// through.
#[test]
fn a_pipe_of_the_host_is_a_closed_file() {
    needs_engine();
    let home = Home::new();
    for runtime in ["runc", "runsc"] {
        for (name, base) in [("look", "readonly"), ("make", "contained")] {
            let text = format!(
                "policy: 1\nname: {name}-{runtime}\nextends: [{base}]\nsandbox:\n  runtime: {runtime}\n"
            );
            home.user_policy(&format!("{name}-{runtime}"), &text);
        }
    }
    let pipe = home.path("project/pipe");
    let made = Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    for policy in ["look-runc", "make-runc", "look-runsc", "make-runsc"] {
        let ran = home.run(["exec", "--policy", policy, "--", "cat", "pipe"]);
        assert_eq!(ran.code, Some(1), "{policy}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("Permission denied"), "{policy}: {}", ran.err);
        let ran = home.run(["exec", "--policy", policy, "--", "ls"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "pipe\n"), "{policy}: {}", ran.err);
    }
    let kept = std::fs::symlink_metadata(&pipe).expect("the pipe");
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&kept.file_type()));
}

#[test]
fn odd_names_of_workspaces_work_or_are_refused_by_name() {
    needs_engine();
    let home = Home::new();
    for name in [
        "with:colon",
        "with,comma",
        "quote'\"s",
        "two  words",
        "line\nend",
        "tab\tand\u{7f}",
        "$HOME",
        "$(id)",
        "\u{fc}n\u{ef}",
        "*",
        "\u{202e}odd",
        "-dash",
        "back\\slash",
    ] {
        let folder = home.path(name);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("a.txt"), "inside").expect("a file");
        let ran = home.runner().current_dir(&folder).args(["exec", "--", "cat", "a.txt"]).output();
        let ran = Ran::from(ran.expect("starts"));
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "inside"), "{name:?}: {}", ran.err);
    }
    let folder = home.path("").join(OsString::from_vec(b"not-\xff-text".to_vec()));
    fs::create_dir(&folder).expect("a folder");
    fails(&|| exec(&home, &folder, &[]), "path_not_text", 125, "UTF-8");
}

#[test]
fn a_policy_that_cannot_be_used() {
    let home = Home::new();
    let with = |policy: &str| {
        let option = OsString::from(format!("--policy={policy}"));
        exec(&home, &home.path("project"), &[&option])
    };
    home.user_policy("broken", "policy: 1\nname: broken\ncommands:\n  - alow: \"ls\"\n");
    let value = fails(&|| with("broken"), "policy_refused", 125, "broken.yml:4:5");
    assert_eq!(value["error"]["findings"][0]["line"], 4, "{value}");
    fs::remove_file(home.path("config/runner/policies/broken.yml")).expect("removed");
    fails(&|| with("nosuch"), "policy_unknown", 125, "there are: base");
    home.project_policy("mine", "policy: 1\nname: mine\ncommands:\n  - allow: \"ls\"\n");
    fails(&|| with("mine"), "policy_untrusted", 125, "runner policy trust");
    let none = home.run(["audit", "list", "--json"]).json();
    assert_eq!(none["calls"], serde_json::json!([]), "nothing was decided, so nothing is recorded");
}

#[test]
fn records_that_cannot_be_written_stop_the_call() {
    let home = Home::new();
    let file = home.path("a-file");
    fs::write(&file, "").expect("a file");
    let with = |state: &Path| {
        let mut command = exec(&home, &home.path("project"), &[]);
        command.env("XDG_STATE_HOME", state);
        command
    };
    fails(&|| with(&file), "store_folder", 125, "XDG_STATE_HOME");
    let shared = home.path("shared");
    fs::create_dir_all(shared.join("runner")).expect("a folder");
    fs::set_permissions(shared.join("runner"), fs::Permissions::from_mode(0o777))
        .expect("permissions");
    fails(&|| with(&shared), "store_folder", 125, "mode 700");
    let newer = home.path("newer/runner");
    fs::create_dir_all(&newer).expect("a folder");
    fs::set_permissions(&newer, fs::Permissions::from_mode(0o700)).expect("permissions");
    fs::write(newer.join("store.db"), "this is not a database, whatever its name says")
        .expect("a file");
    fails(
        &|| with(&home.path("newer")),
        "store_database",
        125,
        "nothing runs without an audit record",
    );
    let nowhere = || {
        let mut command = exec(&home, &home.path("project"), &[]);
        command.env_remove("XDG_STATE_HOME").env_remove("HOME");
        command
    };
    fails(&nowhere, "store_no_folder", 125, "HOME");
}

#[test]
fn a_folder_for_records_that_is_another_users() {
    let caller = Caller::ordinary("/var/tmp");
    let project = caller.project("project", &[("a", "")]);
    let state = caller.path("roots/runner");
    fs::create_dir_all(&state).expect("a folder");
    chown(&state, Some(0), Some(0)).expect("an owner");
    let command = || {
        let mut command = caller.runner(&project);
        command.env("XDG_STATE_HOME", caller.path("roots")).args(["exec", "--shell", "true"]);
        command
    };
    fails(&command, "store_folder", 125, "XDG_STATE_HOME");
}
