//! What a command leaves behind so that the host runs it. Each attack is real: on a copy of the project, where bash
//! makes the same changes, a program of the host runs it. Under a policy that lets everything be written it does not,
//! and what is harmless in the same call reaches the host.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use super::harness::{Project, copy, folders, held, host, look_around, why, why_of};
use crate::tools::{call, told, write_yaml};

/// A configuration that runs `CANARY` with every look at the index, in any folder name.
const CONFIG: &str = "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = \"touch CANARY #\"\\n'";

/// Runs an attack on a copy without us, and then under the policy. What was held back.
fn attack(project: &Project, policy: &str, script: &str) -> Vec<String> {
    let canary = project.canary();
    let script = script.replace("CONFIG", CONFIG).replace("CANARY", canary.to_str().unwrap());
    let script = format!("{script}\necho done > build/control\n");
    let real = project.home.path("real");
    copy(&project.file(""), &real);
    host(&real, &real, &["bash", "-c", &script]);
    look_around(&real);
    assert!(canary.exists(), "the attack is none:\n{script}");
    fs::remove_file(&canary).unwrap();
    fs::remove_dir_all(&real).unwrap();
    let result = project.sh(policy, &script);
    if !project.exists("build/control") {
        // A call that changes git's index and is held back in part waits as a whole.
        let shown = project.home.run(["stage", "show", "--json", result["call"].as_str().unwrap()]);
        assert_eq!(why_of(&shown.json(), "build/control"), "group", "the control");
        project.sh(policy, "echo done > build/control");
    }
    assert_eq!(project.text("build/control"), "done\n", "the control: {result:#}");
    look_around(&project.file(""));
    assert!(!canary.exists(), "the host ran it: {script}\n{result:#}");
    held(&result).into_iter().map(str::to_owned).collect()
}

/// Some attacks, each on a new project.
fn all(policy: &str, attacks: &[(&str, &[&str])]) {
    for (script, expected) in attacks {
        let project = Project::new();
        let held = attack(&project, policy, script);
        for path in *expected {
            assert!(held.iter().any(|held| held == path), "{path} is not held: {held:?}\n{script}");
        }
    }
}

#[test]
fn a_nested_repository_in_the_index_runs_nothing() {
    all(
        "contained",
        &[(
            "git init -q nested && cd nested && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && \
             cd .. && git -c advice.addEmbeddedRepo=false add nested; CONFIG > nested/.git/config",
            &["nested/.git/config"],
        )],
    );
}

#[test]
fn folders_that_a_build_may_write_bring_nothing_that_runs() {
    all(
        "develop",
        &[
            ("git init -q build; CONFIG > build/.git/config", &["build/.git/config"]),
            ("echo 'touch CANARY' > build/.envrc", &["build/.envrc"]),
            ("mkdir -p dist/x; echo 'touch CANARY' > dist/x/.bashrc", &["dist/x/.bashrc"]),
        ],
    );
    let project = Project::new();
    let result = project.sh(
        "develop",
        "mkdir -p build/.runner target; echo 'pool: {}' > build/.runner/config.yml; echo x > src/new; echo 1 > target/x",
    );
    assert!(!project.exists("build/.runner") && !project.exists("src/new"), "{result:#}");
    assert_eq!(why(&result, "build/.runner/config.yml"), "runs_on_host");
    assert_eq!(project.text("target/x"), "1\n", "the control");
}

#[test]
fn repositories_in_other_forms_run_nothing() {
    all(
        "contained",
        &[
            // A file that leads to a folder of another name, which an earlier clone could have brought.
            (
                "git init -q x && mv x/.git x/store && echo 'gitdir: ./store' > x/.git; CONFIG > x/store/config",
                &["x/.git", "x/store/HEAD"],
            ),
            (
                "git init -q x && mv x/.git x/store && ln -s store x/.git; CONFIG > x/store/config",
                &["x/.git"],
            ),
            (
                "git init -q --bare bare.git && CONFIG | sed 's/bare = false/&\\n\\tworktree = ./' > bare.git/config",
                &["bare.git/HEAD"],
            ),
            (
                "git init -q --bare deep && mkdir -p lib && mv deep lib/vendor && \
                 CONFIG | sed 's/bare = false/bare = false\\n\\tworktree = ./' > lib/vendor/config; mkdir lib/vendor/w",
                &["lib/vendor/HEAD"],
            ),
            // A repository that is renamed into its place.
            ("git init -q y; CONFIG > y/.git/config; mv y z", &["z/.git/config"]),
            // The parts come one by one: no name of them is git's.
            (
                "mkdir -p p/refs p/objects; echo 'ref: refs/heads/main' > p/HEAD; CONFIG | sed 's/bare = false/&\\n\\tworktree = ./' > p/config",
                &["p/HEAD"],
            ),
        ],
    );
}

#[test]
fn the_project_s_own_repository_runs_nothing_new() {
    all(
        "contained",
        &[
            ("git config core.fsmonitor 'touch CANARY #'", &[".git/config"]),
            ("CONFIG > src/more; git config include.path ../src/more", &[".git/config"]),
            (
                "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch CANARY\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
                &[".git/hooks/pre-commit"],
            ),
            (
                "mkdir h; printf '#!/bin/sh\\ntouch CANARY\\n' > h/pre-commit; chmod +x h/pre-commit; rm -rf .git/hooks; ln -s ../h .git/hooks",
                &[".git/hooks"],
            ),
            ("CONFIG > src/c; rm .git/config; ln -s ../src/c .git/config", &[".git/config"]),
            (
                "cp -r .git store2; CONFIG > store2/config; echo ../store2 > .git/commondir",
                &[".git/commondir", "store2/HEAD"],
            ),
            (
                "cp -r .git store3; CONFIG > store3/config; rm -rf .git; echo 'gitdir: ./store3' > .git",
                &["store3/HEAD"],
            ),
            (
                "git config extensions.worktreeConfig true; CONFIG > .git/config.worktree",
                &[".git/config", ".git/config.worktree"],
            ),
        ],
    );
}

#[test]
fn what_the_user_has_configured_to_run_is_not_replaced() {
    // The user has hooks of their own in the project, a file of configuration, and a filter.
    let project = || {
        let project = Project::new();
        let script = |name: &str| {
            project.write(name, "#!/bin/sh\ncat >/dev/null 2>&1\nexit 0\n");
            fs::set_permissions(project.file(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        for name in [".husky/_/pre-commit", "tools/hooks/post-commit", "tools/monitor"] {
            script(name);
        }
        project.write("tools/more.conf", "[user]\n\tname = x\n");
        project
    };
    let evil = "printf '#!/bin/sh\\ntouch CANARY\\n' >";
    let cases: [(&[&str], String, &str); 5] = [
        (
            &["config", "core.hooksPath", ".husky/_"],
            format!("{evil} .husky/_/pre-commit"),
            ".husky/_/pre-commit",
        ),
        (
            &["config", "core.hooksPath", "tools/hooks"],
            format!("{evil} tools/hooks/post-commit"),
            "tools/hooks/post-commit",
        ),
        (
            &["config", "core.hooksPath", "tools/hooks"],
            format!("{evil} tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit"),
            "tools/hooks/pre-commit",
        ),
        (
            &["config", "include.path", "../tools/more.conf"],
            "CONFIG > tools/more.conf".to_owned(),
            "tools/more.conf",
        ),
        (
            &["config", "core.fsmonitor", "tools/monitor"],
            format!("{evil} tools/monitor"),
            "tools/monitor",
        ),
    ];
    for (git, script, path) in cases {
        let project = project();
        project.home.git(git);
        let held = attack(&project, "contained", &script);
        assert!(held.iter().any(|held| held == path), "{path}: {held:?}");
    }
}

#[test]
fn shells_and_their_hooks_find_nothing() {
    all(
        "contained",
        &[
            ("echo 'touch CANARY' > .bashrc", &[".bashrc"]),
            (
                "mkdir -p a/b; echo 'touch CANARY' > a/b/.envrc; echo 'touch CANARY' > a/b/.profile",
                &["a/b/.envrc", "a/b/.profile"],
            ),
            ("echo 'touch CANARY' > src/rc; ln -s src/rc .bashrc", &[".bashrc"]),
            ("mkdir -p c; CONFIG > c/.gitconfig", &["c/.gitconfig"]),
            ("mkdir -p d/.config/git; CONFIG > d/.config/git/config", &["d/.config/git/config"]),
        ],
    );
}

#[test]
fn agents_editors_and_special_files_are_held_back() {
    let project = Project::new();
    project.write(".claude/settings.json", "{}\n");
    project.write("docs/link", "x\n");
    let names = [
        ".claude/settings.json",
        ".claude/hooks/x",
        ".mcp.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".cursor/mcp.json",
        "sub/.vscode/tasks.json",
        ".idea/workspace.xml",
        ".nvim.lua",
        ".husky/pre-commit",
        ".runner/config.yml",
        "sub/.MCP.json",
    ];
    let mut script = String::new();
    for name in names {
        script.push_str(&format!("mkdir -p \"$(dirname {name})\"; echo evil > {name}\n"));
    }
    script.push_str(
        "cp /bin/true src/suid 2>/dev/null; chmod 4755 src/suid; mkdir src/d; chmod 4777 src/d; mkfifo src/pipe\n\
         ln -s /etc/passwd out; ln -s ../../outside up; ln -s src/a inside; rm docs/link; ln -s / docs/link\n\
         echo done > control",
    );
    let result = project.sh("contained", &script);
    let held = held(&result);
    for name in names.iter().chain(&["src/pipe", "out", "up", "docs/link"]) {
        assert!(held.contains(name), "{name}: {held:?}");
    }
    assert_eq!(project.text(".claude/settings.json"), "{}\n");
    assert_eq!(project.text("docs/link"), "x\n", "the file stays where a link came over it");
    for name in names.iter().filter(|name| **name != ".claude/settings.json") {
        assert!(!project.exists(name), "{name}");
    }
    for folder in folders(&project.file("")) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let mode = entry.metadata().map_or(0, |found| found.permissions().mode());
            assert_eq!(mode & 0o6000, 0, "{:?}", entry.path());
        }
    }
    assert_eq!(project.text("control"), "done\n", "the control");
    assert_eq!(
        fs::read_link(project.file("inside")).unwrap().to_str(),
        Some("src/a"),
        "the control"
    );
}

/// Gives the user of the command rights by an access list, where the kernel lets it. Permission bits do not show them.
const LIST: &str = r#"
import os, struct
def acl(path, kind):
    rows = [(1, 7, -1), (2, 7, os.getuid()), (4, 5, -1), (16, 7, -1), (32, 0, -1)]
    value = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *row) for row in rows)
    os.setxattr(path, 'system.posix_acl_' + kind, value)
for name in ('listed', 'default', 'plain'):
    os.mkdir('src/' + name)
acl('src/listed', 'access')
acl('src/default', 'default')
open('src/default/inherits', 'w').write('x')
open('src/file', 'w').write('x')
acl('src/file', 'access')
open('src/a', 'a').write('more')
acl('src/a', 'access')
open('src/plain/file', 'w').write('x')
"#;

#[test]
fn an_access_list_of_a_command_does_not_reach_the_host() {
    let project = Project::new();
    project.write("list.py", LIST);
    let result = project.sh("contained", "python3 list.py");
    assert_eq!(result["exit"], 0, "{result:#}");
    for name in ["src/listed", "src/default", "src/file", "src/a"] {
        assert_eq!(why(&result, name), "special", "{name}");
    }
    for name in ["src/listed", "src/default", "src/file"] {
        assert!(!project.exists(name), "{name}");
    }
    assert_eq!(project.text("src/a"), "original\n");
    assert_eq!(project.text("src/plain/file"), "x", "the control");
    // A list that the host's folder gives to what is made in it is the host's own.
    let script = "import os, struct\nrows = [(1, 7, -1), (2, 7, 4242), (4, 5, -1), (16, 7, -1), (32, 5, -1)]\n\
        value = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *row) for row in rows)\n\
        os.setxattr('src', 'system.posix_acl_default', value)";
    host(&project.file(""), &project.file(""), &["python3", "-c", script]);
    let result = project.sh("contained", "mkdir -p src/shared/deep; echo x > src/shared/deep/new");
    assert_eq!(project.text("src/shared/deep/new"), "x\n", "{result:#}");
}

/// A symlink that leads to another one: the whole chain counts, also when the host replaces a part of it.
#[test]
fn a_chain_of_symlinks_leads_to_programs_and_nowhere_else() {
    let project = Project::new();
    let script = "mkdir v; ln -s /usr/bin/python3 v/python; ln -s python v/python3; ln -s python3 v/python3.11\n\
        ln -s /etc/passwd v/out; ln -s out v/out2; ln -s out2 v/out3; ln -s loop2 v/loop; ln -s loop v/loop2\n\
        ln -s ../kept v/by-the-host; rm kept; ln -s /usr/bin/env kept";
    std::os::unix::fs::symlink("/etc/shadow", project.file("kept")).unwrap();
    let result = project.sh("contained", script);
    for name in ["out", "out2", "out3", "loop", "loop2", "by-the-host"] {
        assert_eq!(why(&result, &format!("v/{name}")), "leads_out", "{name}");
        assert!(!project.exists(&format!("v/{name}")), "{name}");
    }
    for (name, target) in [("python", "/usr/bin/python3"), ("python3", "python")] {
        let found = fs::read_link(project.file("v").join(name)).unwrap();
        assert_eq!(found.to_str(), Some(target), "the control");
    }
    assert_eq!(held(&result).len(), 6, "{result:#}");
    // The host replaces the middle between two calls: what leads through it is judged by what is there then.
    fs::remove_file(project.file("v/python")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", project.file("v/python")).unwrap();
    let result = project.sh("contained", "ln -s python v/late; ln -s a src/control");
    assert_eq!(why(&result, "v/late"), "leads_out");
    assert!(!project.exists("v/late") && project.exists("src/control"), "the control");
}

/// A command that waits in the sandbox until it is killed by the file's disappearance on the host is not possible:
/// names on the host may be stale inside. It sleeps for a moment instead, and the host works meanwhile.
#[test]
fn a_host_that_uses_git_and_saves_files_during_the_call_sees_and_loses_nothing() {
    let project = Project::new();
    project.write("tracked.conf", "old\n");
    let canary = project.canary();
    let script = "cp -r .git build/store; CONFIG > build/store/config; echo ../build/store > .git/commondir; \
                  CONFIG > .git/config; cat .env > build/before; echo ready; \
                  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do cat .env >> build/seen 2>/dev/null; cat build/copy >> build/seen 2>/dev/null; sleep 0.1; done; \
                  mv .env build/stolen; echo mine > .env; echo done > control";
    let script = script.replace("CONFIG", CONFIG).replace("CANARY", canary.to_str().unwrap());
    let mut command = project.command("contained", &script);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut round = 0;
    let mut child = Some(child);
    let output = loop {
        round += 1;
        // As editors and git save: a new file is renamed over the old one.
        fs::write(project.file(".env.new"), format!("SECRET={round}\n")).unwrap();
        fs::rename(project.file(".env.new"), project.file(".env")).unwrap();
        host(&project.file(""), &project.home.path(""), &["git", "status"]);
        host(
            &project.file(""),
            &project.home.path(""),
            &["git", "config", "user.name", &format!("n{round}")],
        );
        assert!(!project.exists(".git/commondir"), "nothing is visible during the call");
        let running = child.as_mut().expect("a child");
        if running.try_wait().unwrap().is_some() {
            break child.take().expect("a child").wait_with_output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(round > 3, "the host worked during the call");
    look_around(&project.file(""));
    assert!(!canary.exists());
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(project.text("control"), "done\n", "the control: {result:#}");
    assert_eq!(project.text(".env"), format!("SECRET={round}\n"), "the host's file stays");
    for name in ["build/before", "build/seen", "build/stolen"] {
        let text = fs::read_to_string(project.file(name)).unwrap_or_default();
        assert!(!text.contains("SECRET"), "{name}: {text}");
    }
    assert!(
        project.text(".git/config").contains(&format!("name = n{round}")),
        "the host's own change stays"
    );
    assert_eq!(why(&result, ".env"), "covered");
}

/// What the broker denies.
const DENIED: &[&str] = &[
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/commondir",
    ".git/config.worktree",
    "nested/.git",
    "nested/.git/config",
    "build/.git/config",
    "x/.git/hooks/y",
    ".envrc",
    "build/.envrc",
    "a/.bashrc",
    "a/.profile",
    "build/.runner/config.yml",
    ".claude/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    "sub/.vscode/tasks.json",
    ".gitconfig",
    ".config/git/config",
    ".npmrc",
    ".github/workflows/ci.yml",
    "bare/config",
];

/// The same through a tool's broker. It decides each write at once, so it denies what the stage would hold back.
#[test]
fn a_tool_cannot_write_through_the_broker_what_a_command_cannot() {
    through_the_broker(DENIED);
}

/// The broker judges by the same table.
#[test]
fn a_tool_cannot_write_through_the_broker_what_only_the_table_knows() {
    through_the_broker(&[
        ".mcp.json",
        ".husky/pre-commit",
        ".husky/_/x",
        "tools/hooks/post-commit",
    ]);
}

fn through_the_broker(names: &[&str]) {
    let project = Project::new();
    let home = &project.home;
    home.user_policy(
        "writer",
        "policy: 1\nname: writer\nextends: [base]\nfiles: { read: [\"**\"], write: [\"**\"] }\n",
    );
    project.write(".husky/_/x", "original");
    project.write("tools/hooks/post-commit", "original");
    home.git(&["config", "core.hooksPath", "tools/hooks"]);
    write_yaml(
        home,
        "t",
        "files: { write: [\"**\"] }",
        r#"
export async function execute(args, context) {
  const told = {};
  for (const path of args.paths) {
    try { await context.platform.fs.writeFile(path, "evil"); told[path] = "written" }
    catch (error) { told[path] = error.code }
  }
  return told;
}"#,
    );
    // A bare repository of which only the configuration is missing.
    for name in ["bare/objects/x", "bare/refs/x"] {
        project.write(name, "");
    }
    project.write("bare/HEAD", "ref: refs/heads/main\n");
    let paths: Vec<&str> = names.iter().copied().chain(["src/fine"]).collect();
    let args = serde_json::json!({ "paths": paths }).to_string();
    let (result, ran) = call(home, "t", &["--policy", "writer", "--args", &args]);
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
    assert_eq!(result["value"]["src/fine"], "written", "the control");
    let written: Vec<_> =
        names.iter().filter(|name| result["value"][**name] == "written").collect();
    assert_eq!(written, Vec::<&&str>::new(), "written by the broker");
}

/// A repository that is held back takes nothing else with it: the host has no branch that it could move.
#[test]
fn a_new_repository_does_not_hold_back_the_rest_of_the_call() {
    let project = Project::new();
    let result = project.sh("contained", "git init -q new; echo fine > src/fine");
    assert_eq!(why(&result, "new/.git/HEAD"), "runs_on_host");
    assert_eq!(project.text("src/fine"), "fine\n", "{result:#}");
}

/// A tool that writes one name of a git folder gets past what a command's changes of it are compared with.
#[test]
fn a_tool_writes_nothing_in_a_git_folder() {
    through_the_broker(&[
        ".git/refs/heads/main",
        ".git/refs/heads/evil",
        ".git/packed-refs",
        ".git/logs/HEAD",
        ".git/index",
        ".git/MERGE_AUTOSTASH",
        "bare/packed-refs",
        "bare/refs/x",
    ]);
}

/// Each half of a repository is harmless by itself. Whoever applies both, by review or by calls in a row, has none.
#[test]
fn two_calls_that_each_bring_one_half_make_no_repository() {
    let halves = [
        "mkdir -p x/objects x/refs; touch x/objects/keep x/refs/keep",
        "mkdir -p x; echo 'ref: refs/heads/main' > x/HEAD; CONFIG | sed 's/bare = false/&\\n\\tworktree = ./' > x/config",
    ];
    for reviewed in [true, false] {
        let project = Project::new();
        let canary = project.canary();
        let policy = "policy: 1\nname: held\nextends: [contained]\nsandbox: { writes: review }\n";
        project.home.user_policy("held", policy);
        let policy = if reviewed { "held" } else { "contained" };
        let mut held_back = Vec::new();
        for half in halves {
            let script = half.replace("CONFIG", CONFIG).replace("CANARY", canary.to_str().unwrap());
            let result = project.sh(policy, &script);
            held_back.push(result["call"].as_str().unwrap().to_owned());
        }
        if reviewed {
            assert!(!project.exists("x"));
            for call in &held_back {
                let ran = project.home.run(["stage", "apply", "--json", call]);
                assert_eq!(ran.code, Some(0), "{}", ran.err);
            }
            let shown = project.home.run(["stage", "show", "--json", &held_back[1]]);
            assert_eq!(why_of(&shown.json(), "x/HEAD"), "runs_on_host");
        }
        assert!(project.exists("x/objects/keep") && !project.exists("x/HEAD"), "{policy}");
        look_around(&project.file(""));
        assert!(!canary.exists(), "{policy}");
    }
}

/// What was reviewed before the user told git to run it is not applied after it.
#[test]
fn a_hook_that_became_one_after_the_review_is_not_applied() {
    let project = Project::new();
    let canary = project.canary();
    project.home.user_policy(
        "held",
        "policy: 1\nname: held\nextends: [contained]\nsandbox: { writes: review }\n",
    );
    let script = "mkdir -p tools/hooks; printf '#!/bin/sh\\ntouch CANARY\\n' > tools/hooks/pre-commit; \
                  chmod +x tools/hooks/pre-commit; echo fine > src/fine";
    let result = project.sh("held", &script.replace("CANARY", canary.to_str().unwrap()));
    assert_eq!(why(&result, "tools/hooks/pre-commit"), "review");
    project.home.git(&["config", "core.hooksPath", "tools/hooks"]);
    let call = result["call"].as_str().unwrap();
    let ran = project.home.run(["stage", "apply", "--json", call]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(why_of(&ran.json()["changes"], "tools/hooks/pre-commit"), "runs_on_host");
    assert_eq!(project.text("src/fine"), "fine\n", "the control");
    look_around(&project.file(""));
    assert!(!canary.exists());
}
