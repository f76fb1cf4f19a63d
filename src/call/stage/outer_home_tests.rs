//! A home with symlinks into a repository of dotfiles.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

fn found(home: &Path, root: &Path) -> Vec<String> {
    let environment = Environment::from_iter([("HOME", home)]);
    let mut leads = Leads::outside(root, Some(home), 1);
    note(&mut leads, &environment);
    let mut found: Vec<String> =
        leads.found().into_iter().map(|led| led.path.display().to_string()).collect();
    found.sort();
    found
}

#[test]
fn what_a_shell_or_an_editor_reads_through_a_symlink_is_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("dotfiles");
    for folder in ["dotfiles/nvim", ".config/fish/conf.d", ".claude/hooks", ".ssh", "docs"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    assert!(found(&home, &root).is_empty());
    for (link, target) in [
        (".bashrc", "dotfiles/rc"),
        (".zshrc", "/none"),
        (".config/nvim", "../dotfiles/nvim"),
        (".config/fish/conf.d/x.fish", "../../../dotfiles/x.fish"),
        (".claude/hooks/check.sh", "../../dotfiles/check.sh"),
        (".envrc.local", "dotfiles/env"),
        (".ssh/config", "../dotfiles/ssh"),
        ("notes", "dotfiles/notes"),
        ("docs/x", "../dotfiles/docs"),
    ] {
        symlink(target, home.join(link)).unwrap();
    }
    let wanted = ["check.sh", "env", "nvim", "rc", "ssh", "x.fish"];
    assert_eq!(found(&home, &root), wanted, "`notes` and `docs` are no such names");
    // As a workspace, the home has those names itself, and what they lead to.
    let inside = found(&home, &home);
    assert!(inside.contains(&"dotfiles/rc".to_owned()), "{inside:?}");
    assert!(!inside.contains(&".profile".to_owned()), "the table has it");
}

#[test]
fn a_folder_of_configurations_may_be_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    let root = home.join("dotfiles");
    fs::create_dir_all(root.join("config/fish")).unwrap();
    symlink("dotfiles/config", home.join(".config")).unwrap();
    let places = found(&home, &root);
    assert!(places.contains(&"config/fish".to_owned()), "{places:?}");
    assert!(!places.contains(&"config".to_owned()), "the rest of it is source: {places:?}");
}
