use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("runner/policies")).unwrap();
        for folder in ["runner", "runner/policies"] {
            fs::set_permissions(dir.path().join(folder), fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("runner/policies").join(name)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn read(&self, writers: Writers) -> (Vec<String>, Vec<&'static str>) {
        let mut findings = Vec::new();
        let read = read_folder(self.dir.path(), "runner/policies", writers, &mut findings);
        let codes = findings.iter().map(|finding| finding.code).collect();
        (read.into_iter().map(|file| format!("{}={}", file.stem, file.text)).collect(), codes)
    }
}

#[test]
fn files_are_read_in_the_order_of_their_names() {
    let home = Home::new();
    home.put("b.yml", "2");
    home.put("a.yml", "1");
    home.put("README.md", "no policy");
    home.put(".hidden.yml", "an editor's");
    assert_eq!(home.read(Writers::Anyone), (vec!["a=1".into(), "b=2".into()], vec![]));
}

#[test]
fn a_missing_folder_holds_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    assert!(
        read_folder(empty.path(), "runner/policies", Writers::RootOnly, &mut findings).is_empty()
    );
    assert!(findings.is_empty());
}

#[test]
fn each_bad_file_is_a_finding_and_the_good_ones_are_read() {
    let home = Home::new();
    home.put("good.yml", "1");
    home.put("latin.yml", b"a: b\nc: \xe9");
    home.put("large.yml", vec![b'#'; (1 << 20) + 1]);
    home.put("other.yaml", "1");
    home.put("Upper.yml", "1");
    fs::create_dir(home.path("folder.yml")).unwrap();
    symlink("/etc/hostname", home.path("outside.yml")).unwrap();
    symlink("../../escape", home.path("parent.yml")).unwrap();
    symlink("good.yml", home.path("same.yml")).unwrap();
    symlink("/proc/self/fd/0", home.path("magic.yml")).unwrap();
    symlink("nowhere", home.path("nowhere.yml")).unwrap();
    let (read, codes) = home.read(Writers::Anyone);
    assert_eq!(read, ["good=1", "same=1"]);
    assert_eq!(
        codes,
        [
            "policy_name_invalid", // Upper
            "policy_not_a_file",   // folder
            "too_large",
            "not_utf8",
            "policy_link_outside", // magic
            "policy_missing",      // nowhere
            "policy_name_invalid", // other.yaml
            "policy_link_outside", // outside
            "policy_link_outside", // parent
        ]
    );
}

#[test]
fn a_named_pipe_neither_blocks_nor_counts() {
    let home = Home::new();
    let made = std::process::Command::new("mkfifo").arg(home.path("pipe.yml")).status().unwrap();
    assert!(made.success());
    assert_eq!(home.read(Writers::Anyone), (vec![], vec!["policy_not_a_file"]));
}

#[test]
fn the_place_of_bad_bytes_is_named() {
    let mut findings = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.yml");
    fs::write(&path, b"a: b\nc\xc3\xa4: \xff").unwrap();
    assert!(read_given(&path, &mut findings).is_none());
    assert_eq!((findings[0].at.line, findings[0].at.column), (2, 5));
}

#[test]
fn a_folder_that_is_a_link_is_refused() {
    let home = Home::new();
    home.put("a.yml", "1");
    let other = tempfile::tempdir().unwrap();
    symlink(home.dir.path().join("runner"), other.path().join("runner")).unwrap();
    let mut findings = Vec::new();
    assert!(
        read_folder(other.path(), "runner/policies", Writers::Anyone, &mut findings).is_empty()
    );
    assert_eq!(findings[0].code, "policy_folder_invalid");
}

/// Owners can only be set by root; elsewhere the refusal of a foreign owner is what is seen.
#[test]
fn managed_files_must_be_roots_and_closed() {
    let home = Home::new();
    home.put("a.yml", "1");
    if !rustix::process::geteuid().is_root() {
        assert_eq!(home.read(Writers::RootOnly), (vec![], vec!["managed_not_root"]));
        return;
    }
    assert_eq!(home.read(Writers::RootOnly), (vec!["a=1".into()], vec![]));
    for (path, mode) in
        [(home.path("a.yml"), 0o664), (home.path("a.yml"), 0o646), (home.path(""), 0o777)]
    {
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(home.read(Writers::RootOnly), (vec![], vec!["managed_writable"]));
        assert_eq!(home.read(Writers::Anyone).0, ["a=1"], "the control");
        fs::set_permissions(&path, before).unwrap();
    }
    std::os::unix::fs::chown(home.path("a.yml"), Some(65_534), None).unwrap();
    assert_eq!(home.read(Writers::RootOnly), (vec![], vec!["managed_not_root"]));
}

#[test]
fn too_many_files_are_refused_together() {
    let home = Home::new();
    for at in 0..=MAX_FILES {
        home.put(&format!("p{at}.yml"), "");
    }
    assert_eq!(home.read(Writers::Anyone), (vec![], vec!["too_many_policies"]));
}
