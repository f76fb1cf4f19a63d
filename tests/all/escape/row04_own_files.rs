//! Row 4, our own files as target: those, git's, and those that shells and editors run. Whatever a command does to them,
//! they are on the host afterwards what they were before.

use std::path::Path;
use std::process::Command;

use super::harness::{Case, On, attack, case};
use super::seat::Seat;

/// Everything that can be granted.
const ALL: &[&str] = &["**"];

fn git(folder: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.example",
            "-c",
            "protocol.file.allow=always",
            "-c",
            "safe.directory=*",
        ])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with one commit.
fn repository(files: &[&str]) -> Case {
    let case = case(files);
    git(&case.root, &["init", "-q", "-b", "main"]);
    git(&case.root, &["add", "-A"]);
    git(&case.root, &["commit", "-q", "-m", "first"]);
    case.give_away();
    case
}

fn existing_protected_files_cannot_be_written_moved_or_replaced(on: On) {
    let files =
        [".runner/config.yml", ".vscode/tasks.json", ".bashrc", ".envrc", "sub/.vscode/x", "src/a"];
    let case = repository(&files);
    std::fs::write(case.root.join(".git/hooks/pre-commit"), "original\n").unwrap();
    let config = case.text(".git/config");
    case.give_away();
    let mut script = String::new();
    for path in files.iter().take(5).chain(&[".git/hooks/pre-commit", ".git/config"]) {
        let parent = Path::new(path).parent().unwrap().display();
        script.push_str(&format!(
            "echo evil > {path}; echo evil >> {path}; rm -f {path}; chmod 777 {path}\n"
        ));
        script.push_str(&format!(
            "echo evil > /tmp/x; mv -f /tmp/x {path}; ln -sf /tmp/x {path}; truncate -s0 {path}\n"
        ));
        script.push_str(&format!(
            "[ -n '{parent}' ] && mv {parent} moved && mkdir -p {parent} && echo evil > {path}\n"
        ));
    }
    script.push_str("mv .git g2 && mkdir .git; rm -rf .git/hooks .runner .vscode; git config core.pager evil; true");
    case.sh(on.write(ALL), &script);
    for path in files.iter().take(5).chain(&[".git/hooks/pre-commit"]) {
        assert_eq!(case.text(path), "original\n", "{path}");
    }
    assert_eq!(case.text(".git/config"), config);
    assert!(case.exists(".git/HEAD") && case.exists(".git/hooks/pre-commit"));
    assert!(!case.exists("g2/config") && !case.exists("moved/pre-commit"));
    git(&case.root, &["status", "--short"]);
    case.sh(on.write(ALL), "echo changed > src/a").succeeded();
    assert_eq!(case.text("src/a"), "changed\n", "the control");
}
attack!(4, "mounts", existing_protected_files_cannot_be_written_moved_or_replaced);

fn protected_names_that_do_not_exist_cannot_be_made(on: On) {
    let case = case(&["src/a"]);
    let names = [
        ".runner", ".git", ".vscode", ".idea", ".bashrc", ".zshrc", ".profile", ".envrc", ".vimrc",
        ".exrc",
    ];
    for form in [
        "echo evil > NAME",
        "mkdir -p NAME/hooks && echo evil > NAME/hooks/x && echo evil > NAME/config",
        "ln -s src NAME",
        "echo made > src/new; mv src/new NAME",
        "mkdir /tmp/d; echo evil > /tmp/d/settings.json; mv /tmp/d NAME",
    ] {
        let script: Vec<String> = names.iter().map(|name| form.replace("NAME", name)).collect();
        case.sh(on.write(ALL), &script.join("\n"));
        for name in names {
            assert!(!case.exists(name), "{name} by {form}");
            assert!(!case.exists(&format!("src/{name}")), "{name} by {form}");
        }
    }
    case.sh(on.write(ALL), "echo made > src/new; echo top > top").succeeded();
    assert_eq!(case.text("src/new"), "made\n", "the control");
    assert_eq!(case.text("top"), "top\n", "what is not protected can be made");
}
attack!(4, "mounts", protected_names_that_do_not_exist_cannot_be_made);

fn git_commits_and_cannot_be_led_elsewhere(on: On) {
    let case = repository(&["src/a"]);
    let ran = case.sh(
        on.write(ALL),
        "echo x >> src/a && git commit -qam second && git log --oneline | wc -l; \
         mkdir src/evil; printf '../src/evil' > .git/commondir; mkdir -p .git/modules/x; echo evil > .git/config.worktree; \
         mkdir .git/rebase-merge .git/sequencer; echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
    );
    assert_eq!(ran.out.trim(), "2", "{}", ran.err);
    for name in ["commondir", "config.worktree", "modules", "rebase-merge", "sequencer"] {
        assert!(!case.exists(&format!(".git/{name}")), "{name}");
    }
    git(&case.root, &["log", "--oneline"]);
    case.sh(on.write(ALL), "echo y >> src/a && git commit -qam third").succeeded();
    let log = git(&case.root, &["log", "--format=%s", "-1"]);
    assert_eq!(log, "third\n", "the control");
}
attack!(4, "mounts", git_commits_and_cannot_be_led_elsewhere);

fn an_unfinished_rebase_gets_no_commands(on: On) {
    let case = repository(&["src/a"]);
    let todo = ".git/rebase-merge/git-rebase-todo";
    std::fs::create_dir(case.root.join(".git/rebase-merge")).unwrap();
    std::fs::write(case.root.join(todo), "pick 1\n").unwrap();
    case.give_away();
    let script = format!(
        "echo 'exec evil' >> {todo}; rm -rf .git/rebase-merge; mkdir .git/rebase-merge; \
         echo 'exec evil' > {todo}; mv .git/rebase-merge .git/x"
    );
    case.sh(on.write(ALL), &script);
    assert_eq!(case.text(todo), "pick 1\n");
    // Git reads no folder of that name.
    assert!(!case.exists(".git/x") || case.text(".git/x/git-rebase-todo") == "exec evil\n");
    case.sh(on.write(ALL), "echo control > src/a").succeeded();
    assert_eq!(case.text("src/a"), "control\n", "the control");
}
attack!(4, "mounts", an_unfinished_rebase_gets_no_commands);

fn a_linked_worktree_works_and_protects_the_shared_folder(on: On) {
    let case = repository(&["src/a"]);
    let tree = case.dir.path().join("tree");
    git(&case.root, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let tree = Case { dir: case.dir, root: tree.canonicalize().unwrap() };
    tree.give_away();
    let main = case.root;
    let whole = Case { dir: tree.dir, root: main.clone() };
    whole.give_away();
    let tree = Case { dir: whole.dir, root: tree.root };
    let config = std::fs::read_to_string(main.join(".git/config")).unwrap();
    let ran = tree
        .sh(on.read(), "git status --short; git log --oneline | wc -l; git worktree list | wc -l");
    assert_eq!(ran.out, "1\n2\n", "{}", ran.err);
    let shared = main.join(".git");
    let shared = shared.display();
    let script = format!(
        "echo x >> src/a && git commit -qam second && git log --oneline | wc -l; \
         echo evil > {shared}/config; echo evil > {shared}/hooks/pre-commit; mv {shared}/hooks {shared}/h2; \
         echo evil > {shared}/commondir; echo evil > $(git rev-parse --git-dir)/commondir; \
         echo evil > .git; rm .git"
    );
    let ran = tree.sh(on.write(ALL), &script);
    assert_eq!(ran.out.trim(), "2", "{}", ran.err);
    assert_eq!(std::fs::read_to_string(main.join(".git/config")).unwrap(), config);
    assert!(!main.join(".git/hooks/pre-commit").exists() && !main.join(".git/commondir").exists());
    assert!(main.join(".git/hooks").exists() && !main.join(".git/h2").exists());
    let log = git(&tree.root, &["log", "--oneline"]);
    assert!(tree.root.join(".git").is_file(), "{log}");
}
attack!(4, "mounts", a_linked_worktree_works_and_protects_the_shared_folder);

fn a_pointer_to_a_foreign_folder_brings_nothing(on: On) {
    let case = case(&["a"]);
    let victim = case.dir.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("HEAD"), "canary").unwrap();
    std::fs::write(case.root.join(".git"), format!("gitdir: {}\n", victim.display())).unwrap();
    let ran = case.sh(on.read(), &format!("cat a; cat {}/HEAD", victim.display()));
    assert_eq!(ran.out, "original\n");
}
attack!(4, "mounts", a_pointer_to_a_foreign_folder_brings_nothing);

/// The ledger, trust and materials of the caller, where somebody keeps them in the workspace itself.
fn our_own_state_in_a_workspace_stays_as_it_is(on: On) {
    let seat =
        Seat::new(on, &[("src/a", "original\n"), (".runner/policies/keep.yml", "original\n")]);
    seat.works("all", &["true"]);
    let calls = seat.calls().len();
    let state = seat.home.path("state");
    let attack = format!(
        "echo evil > .runner/policies/new.yml; echo evil > .runner/policies/keep.yml; mv .runner r2; \
         rm -rf .runner {0}; echo evil > {0}/runner/store.db; mkdir -p {0}/runner/checked",
        state.display()
    );
    std::fs::write(seat.file("attack.sh"), attack).unwrap();
    seat.exec("all", &["sh", "attack.sh"]);
    assert_eq!(seat.text(".runner/policies/keep.yml"), "original\n");
    assert!(!seat.file(".runner/policies/new.yml").exists());
    assert_eq!(seat.calls().len(), calls + 1, "the ledger is whole");
    seat.works("all", &["sh", "-c", "echo done > src/a"]);
    assert_eq!(seat.text("src/a"), "done\n", "the control");
}
attack!(4, "mounts", our_own_state_in_a_workspace_stays_as_it_is);
