//! The release archive and the Debian package, as `images/release/make` makes them, tried in clean roots.

use std::path::Path;
use std::process::Command;

fn recipe(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("images/release").join(name))
}

#[test]
fn an_archive_and_a_package_work_in_clean_roots() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = recipe("make")
        .args(["--binary", env!("CARGO_BIN_EXE_runner")])
        .arg(folder.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{said}");
    let files = String::from_utf8(made.stdout).expect("UTF-8");
    let files: Vec<&str> = files.lines().collect();
    assert!(
        matches!(files[..], [archive, package] if archive.ends_with(".tar.gz") && package.ends_with(".deb"))
    );
    let tried = recipe("try").args(files).output().expect("it starts");
    assert!(tried.status.success(), "{}", String::from_utf8_lossy(&tried.stderr));
}

/// It allows what the hint of `userns_apparmor` tells people to allow, and nothing else.
#[test]
fn the_profile_allows_user_namespaces() {
    let profile = include_str!("../../images/release/apparmor");
    let lines: Vec<&str> = profile.lines().map(str::trim).collect();
    assert!(lines.contains(&"abi <abi/4.0>,") && lines.contains(&"userns,"));
    assert!(lines.contains(&"profile runner /usr/bin/runner flags=(unconfined) {"));
}
