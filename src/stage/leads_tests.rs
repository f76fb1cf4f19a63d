//! Paths that are followed, on disk.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_path_is_followed_through_each_symlink_into_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let root = top.join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    symlink("root/../root", top.join("way")).unwrap();
    symlink("a/b", root.join("short")).unwrap();
    symlink("circle", root.join("circle")).unwrap();
    let leads = Leads::outside(&root, None, 1);
    assert_eq!(leads.end(&root.join("none/x")), Some(root.join("none/x")));
    assert_eq!(leads.end(&top.join("way/short/../x")), Some(root.join("a/x")));
    let trail = leads.trail(&top.join("way/short")).0;
    assert_eq!(trail, [top.join("way"), root.join("short"), root.join("a/b")]);
    assert_eq!(leads.end(&root.join("circle/x")), None);
    // A root that is named through a symlink itself.
    let alias = top.join("way");
    let leads = Leads::outside(&alias, None, 1);
    assert_eq!(leads.end(&root.join("short")), Some(alias.join("a/b")));
}

#[test]
fn a_tilde_stands_for_the_callers_home() {
    let leads = Leads::outside(Path::new("/w"), Some(Path::new("/home/me")), 1);
    for (written, path) in [
        ("~/x", "/home/me/x"),
        ("~me/x", "/home/me/x"),
        ("~you/x", "/base/~you/x"),
        ("~mex", "/base/~mex"),
        ("x", "/base/x"),
        ("/x", "/x"),
    ] {
        assert_eq!(leads.absolute(Path::new("/base"), OsStr::new(written)), Path::new(path));
    }
}

#[test]
fn variables_make_a_configuration() {
    let config = given(&|name| match name {
        "GIT_CONFIG_COUNT" => Some("2".into()),
        "GIT_CONFIG_KEY_0" => Some("Core.HooksPath".into()),
        "GIT_CONFIG_VALUE_0" => Some("h".into()),
        "GIT_CONFIG_KEY_1" => Some("filter.a.b.clean".into()),
        "GIT_CONFIG_VALUE_1" => Some("./run".into()),
        "GIT_TEMPLATE_DIR" => Some("/t".into()),
        _ => None,
    });
    assert_eq!(config.hooks_paths().collect::<Vec<_>>(), ["h"]);
    assert_eq!(config.commands().collect::<Vec<_>>(), ["./run"]);
    assert_eq!(config.templates().collect::<Vec<_>>(), ["/t"]);
    assert_eq!(config.settings[1].subsection.as_deref(), Some(b"a.b".as_slice()));
}
