//! Configurations outside a workspace, on disk.

use super::*;
use crate::stage::led::Reach;
use std::fs;

static NONE: BTreeSet<PathBuf> = BTreeSet::new();

fn environment(home: &Path) -> Environment {
    Environment::from_iter([("HOME", home)])
}

fn outer<'a>(environment: &'a Environment, root: &'a Path) -> Outer<'a> {
    Outer { environment, root, workspace: root, trees: &[], repositories: &NONE }
}

fn paths(outer: &Outer<'_>) -> Vec<String> {
    let mut paths: Vec<String> = led(outer)
        .unwrap()
        .into_iter()
        .filter(|led| led.reach == Reach::Below)
        .map(|led| led.path.display().to_string())
        .collect();
    paths.sort();
    paths
}

#[test]
fn hooks_includes_and_commands_of_the_user_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("project");
    fs::create_dir_all(&root).unwrap();
    fs::write(
        home.join(".gitconfig"),
        format!(
            "[core]\n\thooksPath = .hooks\n\tfsmonitor = {}/watch.sh --x\n\
             [include]\n\tpath = ~/project/a/../shared.inc\n[user]\n\tname = a\n\
             [filter \"f\"]\n\tclean = sh clean.sh\n",
            root.display()
        ),
    )
    .unwrap();
    fs::write(root.join("shared.inc"), "[core]\n\thooksPath = ~/project/more\n").unwrap();
    let environment = environment(&home);
    let outer = outer(&environment, &root);
    assert_eq!(paths(&outer), [".hooks", "more", "shared.inc", "watch.sh"]);
    assert!(led(&outer).unwrap().iter().any(|led| led.path == Path::new("clean.sh")));
    let elsewhere = home.join("elsewhere");
    let outer = Outer { root: &elsewhere, ..outer };
    assert_eq!(paths(&outer), [""; 0]);
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("project");
    fs::create_dir_all(&root).unwrap();
    let environment = environment(&home);
    let outer = outer(&environment, &root);
    fs::write(home.join(".gitconfig"), "[include]\n\tpath = .gitconfig\n").unwrap();
    assert!(matches!(led(&outer), Err(UnknownLeads::TooMany(_))));
    fs::write(home.join(".gitconfig"), "[core\n").unwrap();
    assert!(matches!(led(&outer), Err(UnknownLeads::NotUnderstood(_))));
    fs::write(home.join(".gitconfig"), "[user]\n\tname = a\n").unwrap();
    assert_eq!(paths(&outer), [""; 0]);
}

#[test]
fn repositories_above_and_outside_lead_into_a_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let root = top.join("packages/one");
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(top.join(".git")).unwrap();
    fs::write(top.join(".git/config"), "[core]\n\thooksPath = packages/one/hooks\n").unwrap();
    // A linked worktree: its own folder, and the common one.
    let common = top.join("main/.git");
    let own = common.join("worktrees/one");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
    fs::write(own.join("config.worktree"), "[core]\n\tfsmonitor = ./watch\n").unwrap();
    fs::write(common.join("config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
    let trees = [WorkTree { git: own, top: PathBuf::new() }];
    let environment = environment(&top.join("home"));
    let outer = Outer { trees: &trees, ..outer(&environment, &root) };
    assert_eq!(paths(&outer), ["hooks", "tools/hooks", "watch"]);
    let outer = Outer { trees: &[], ..outer };
    assert_eq!(paths(&outer), ["hooks"]);
}

fn write(path: PathBuf, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn a_configuration_that_lies_in_the_workspace_is_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("dotfiles");
    write(root.join("gitconfig"), "[user]\n\tname = a\n");
    write(root.join("other"), "");
    write(root.join("config/git/ignore"), "");
    let environment_of_home = environment(&home);
    assert_eq!(paths(&outer(&environment_of_home, &root)), [""; 0], "a control");
    std::os::unix::fs::symlink("dotfiles/first", home.join(".gitconfig")).unwrap();
    std::os::unix::fs::symlink("gitconfig", root.join("first")).unwrap();
    std::os::unix::fs::symlink("dotfiles/config", home.join(".config")).unwrap();
    let found = paths(&outer(&environment_of_home, &root));
    for path in ["first", "gitconfig", "config/git", "config/git/config"] {
        assert!(found.contains(&path.to_owned()), "{path}: {found:?}");
    }
    assert!(!found.contains(&"other".to_owned()) && !found.contains(&"config".to_owned()));
    // By a variable, absolute and from the top of a working tree.
    let variables = [
        ("HOME", home.join("elsewhere")),
        ("GIT_CONFIG_GLOBAL", root.join("gitconfig")),
        ("GIT_CONFIG_SYSTEM", PathBuf::from("other")),
    ];
    let named = Environment::from_iter(variables);
    assert_eq!(paths(&outer(&named, &root)), ["gitconfig", "other"]);
}

#[test]
fn variables_and_templates_lead_as_configurations_do() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("project");
    fs::create_dir_all(&root).unwrap();
    let with = |variables: &[(&str, &str)]| {
        let all = [("HOME", home.to_str().unwrap())].into_iter().chain(variables.iter().copied());
        paths(&outer(&Environment::from_iter(all), &root))
    };
    let count = |number| {
        let value = ("GIT_CONFIG_VALUE_0", "tools/hooks");
        with(&[("GIT_CONFIG_COUNT", number), ("GIT_CONFIG_KEY_0", "core.hooksPath"), value])
    };
    assert_eq!(count("0"), [""; 0]);
    assert_eq!(count("1"), ["tools/hooks"]);
    let template = root.join("template");
    let variable = with(&[("GIT_TEMPLATE_DIR", template.to_str().unwrap())]);
    assert_eq!(variable, ["template", "template/hooks"]);
    write(home.join(".gitconfig"), "[init]\n\ttemplateDir = ~/project/template\n");
    assert_eq!(with(&[]), ["template", "template/hooks"]);
    write(home.join(".gitconfig"), "[core]\n\thooksPath = ~/project\n");
    assert!(with(&[]).contains(&"pre-commit".to_owned()), "the workspace is the folder of hooks");
}

#[test]
fn configurations_of_other_forms_count_and_what_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("project");
    fs::create_dir_all(&root).unwrap();
    let environment = environment(&home);
    let outer = outer(&environment, &root);
    let hooks = b"[core]\n\thooksPath = ~/project/hooks\n".as_slice();
    write(home.join(".gitconfig"), [b"[user]\n\tname = J\xf6rg\n", hooks].concat());
    assert_eq!(paths(&outer), ["hooks"]);
    write(home.join(".gitconfig"), [hooks, &[b'#'; 1 << 20]].concat());
    assert!(matches!(led(&outer), Err(UnknownLeads::NotUnderstood(_))));
    let ordinary = "[include]\n\tpath = none\n\tpath = project\n\tpath = /dev/null\n\
                    [includeIf \"gitdir:/x/\"]\n\tpath = ~/none\n";
    write(home.join(".gitconfig"), ordinary);
    assert_eq!(paths(&outer), [""; 0]);
}

#[test]
fn a_nested_working_tree_brings_the_configuration_of_its_git_folder() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let root = top.join("project");
    let own = top.join("other/.git/worktrees/wt");
    write(own.join("commondir"), "../..\n");
    write(top.join("other/.git/config"), "[core]\n\thooksPath = tools/hooks\n");
    write(root.join("wt/.git"), format!("gitdir: {}\n", own.display()));
    write(root.join("in/.git/config"), "[core]\n\thooksPath = tools/hooks\n");
    let environment = environment(&top.join("home"));
    let control = outer(&environment, &root);
    assert_eq!(paths(&control), [""; 0]);
    let repositories = ["wt/.git", "in/.git", "lost/.git"].map(PathBuf::from).into();
    let outer = Outer { repositories: &repositories, ..control };
    assert_eq!(paths(&outer), ["wt/tools/hooks"], "the judge has those inside");
}
