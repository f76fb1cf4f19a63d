//! Our own files, git's, and those that shells and editors run: nobody inside can change or make them.

use std::path::Path;
use std::process::Command;

use super::harness::{Case, READ, Rules, case};

const ALL: Rules<'static> = Rules { write: &["**"], ..READ };

fn git(folder: &Path, args: &[&str]) {
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

#[test]
fn existing_protected_files_cannot_be_written_moved_or_replaced() {
    let files =
        [".runner/config.yml", ".vscode/tasks.json", ".bashrc", ".envrc", "sub/.vscode/x", "src/a"];
    let case = repository(&files);
    std::fs::write(case.root.join(".git/hooks/pre-commit"), "original\n").unwrap();
    let config = case.text(".git/config");
    case.give_away();
    let mut script = String::from("echo changed > src/a\n");
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
    case.sh(ALL, &script);
    for path in files.iter().take(5).chain(&[".git/hooks/pre-commit"]) {
        assert_eq!(case.text(path), "original\n", "{path}");
    }
    assert_eq!(case.text(".git/config"), config);
    assert_eq!(case.text("src/a"), "changed\n", "the control");
    assert!(case.exists(".git/HEAD") && !case.exists("g2"), "a copy can be made, nothing is moved");
}

#[test]
fn protected_names_that_do_not_exist_cannot_be_made() {
    let case = case(&["src/a"]);
    let names = [
        ".runner", ".git", ".vscode", ".idea", ".bashrc", ".zshrc", ".profile", ".envrc", ".vimrc",
        ".exrc",
    ];
    let mut script = String::from("echo made > src/new; echo top > top\n");
    for name in names {
        script.push_str(&format!(
            "echo evil > {name}; mkdir -p {name}/hooks; ln -s src {name}; mv src/new {name}; mkdir /tmp/d; mv /tmp/d {name}\n"
        ));
    }
    case.sh(ALL, &script);
    for name in names {
        assert!(!case.exists(name), "{name}");
    }
    assert_eq!(case.text("src/new"), "made\n", "the control");
    assert_eq!(case.text("top"), "top\n", "what is not protected can be made");
}

#[test]
fn git_commits_and_cannot_be_led_elsewhere() {
    let case = repository(&["src/a"]);
    let ran = case.sh(
        ALL,
        "echo x >> src/a && git commit -qam second && git log --oneline | wc -l; \
         mkdir src/evil; printf '../src/evil' > .git/commondir; mkdir -p .git/modules/x; echo evil > .git/config.worktree",
    );
    assert_eq!(ran.out.trim(), "2", "{}", ran.err);
    for name in ["commondir", "config.worktree", "modules"] {
        assert!(!case.exists(&format!(".git/{name}")), "{name}");
    }
    assert_eq!(ran.appeared.len(), 3, "{:?}", ran.appeared);
    git(&case.root, &["log", "--oneline"]);
}

#[test]
fn a_linked_worktree_works_and_protects_the_shared_folder() {
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
    let ran =
        tree.sh(READ, "git status --short; git log --oneline | wc -l; git worktree list | wc -l");
    assert_eq!(ran.out, "1\n2\n", "{}", ran.err);
    let shared = main.join(".git");
    let shared = shared.display();
    let script = format!(
        "echo x >> src/a && git commit -qam second && git log --oneline | wc -l; \
         echo evil > {shared}/config; echo evil > {shared}/hooks/pre-commit; mv {shared}/hooks {shared}/h2; \
         echo evil > {shared}/commondir; echo evil > $(git rev-parse --git-dir)/commondir; \
         echo evil > .git; rm .git"
    );
    let ran = tree.sh(ALL, &script);
    assert_eq!(ran.out.trim(), "2", "{}", ran.err);
    assert_eq!(std::fs::read_to_string(main.join(".git/config")).unwrap(), config);
    assert!(!main.join(".git/hooks/pre-commit").exists() && !main.join(".git/commondir").exists());
    git(&tree.root, &["log", "--oneline"]);
}

#[test]
fn a_pointer_to_a_foreign_folder_brings_nothing() {
    let case = case(&["a"]);
    let victim = case.dir.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("HEAD"), "canary").unwrap();
    std::fs::write(case.root.join(".git"), format!("gitdir: {}\n", victim.display())).unwrap();
    let ran = case.sh(READ, &format!("cat a; cat {}/HEAD", victim.display()));
    assert_eq!(ran.out, "original\n");
}
