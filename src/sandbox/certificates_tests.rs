//! Which denied files are shown, in small workspaces on the disk.

use std::os::unix::fs::symlink;

use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::environment::Environment;
use crate::workspace::grants::Code;
use crate::workspace::grants::tests::globs;
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::survey::{Looking, survey};

struct Case {
    dir: tempfile::TempDir,
    workspace: Workspace,
    good: String,
    secret: String,
}

fn case() -> Case {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = dir.path().canonicalize().unwrap().join("w");
    std::fs::create_dir(&root).unwrap();
    let key = KeyPair::generate().unwrap();
    let good = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap().pem();
    let workspace = Workspace::find(Some(&root), &Environment::default()).unwrap();
    Case { dir, workspace, good, secret: key.serialize_pem() }
}

const DENY: &[&str] = &["**/*.pem", "**/.env", "**/secrets/**", "own.pem", "**/*-tls.pem"];

impl Case {
    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.workspace.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn shown_with(&self, read: &[&str], missing: Missing) -> BTreeMap<PathBuf, Content> {
        let (read, none, deny) = (globs(read), globs(&[]), globs(DENY));
        let grants = FileGrants {
            policy: [0; 32],
            read: &read,
            write: &none,
            readonly: &none,
            deny: &deny,
            create: &[],
            writes: Writes::None,
            code: Code::Granted,
        };
        let found = survey(&Looking {
            workspace: &self.workspace,
            grants: &grants,
            memory: None,
            unscanned: &[],
            mounted_below: MountPoints::read().below(self.workspace.root()).next().is_some(),
        });
        let state = self.dir.path().join("state");
        public(&self.workspace, &grants, &found.unwrap().hidden, &state, missing)
    }

    fn shown(&self) -> Vec<String> {
        let shown = self.shown_with(&["**"], Missing::Make);
        shown.keys().map(|path| path.display().to_string()).collect()
    }

    /// The bytes that a command would see.
    fn seen(&self, path: &str) -> Option<String> {
        let shown = self.shown_with(&["**"], Missing::Make);
        let content = shown.get(Path::new(path))?;
        Some(std::fs::read_to_string(&content.source).unwrap())
    }
}

#[test]
fn what_is_public_and_denied_for_its_end_alone_is_shown() {
    let case = case();
    for path in ["a.pem", "deep/ca.pem", "own.pem", "x-tls.pem", "secrets/b.pem"] {
        case.put(path, &case.good);
    }
    case.put("key.pem", &case.secret);
    case.put("both.pem", &format!("{}{}", case.good, case.secret));
    case.put(".env", &case.good);
    case.put("late.pem", &format!("{}{}{}", case.good, "\n".repeat(1 << 20), case.secret));
    for _ in 0..2 {
        assert_eq!(case.shown(), ["a.pem", "deep/ca.pem"]);
    }
    assert_eq!(case.seen("a.pem").unwrap(), case.good);
    assert!(case.shown_with(&["src/**"], Missing::Make).is_empty(), "they may not be read");
}

#[test]
fn a_description_leaves_nothing_behind() {
    let case = case();
    case.put("a.pem", &case.good);
    assert_eq!(case.shown_with(&["**"], Missing::Describe).len(), 1);
    assert!(!case.dir.path().join("state").exists());
}

#[test]
fn what_is_shown_is_what_was_checked() {
    let case = case();
    let path = case.put("a.pem", &case.good);
    let before = case.shown_with(&["**"], Missing::Make);
    let source = &before[Path::new("a.pem")].source;
    // After the check the file becomes a key: what is shown is a copy.
    std::fs::write(&path, &case.secret).unwrap();
    assert_eq!(std::fs::read_to_string(source).unwrap(), case.good);
    assert_eq!(case.seen("a.pem"), None, "the next call reads it again");
    case.put("new", &case.good);
    std::fs::rename(case.workspace.root().join("new"), &path).unwrap();
    assert_eq!(case.seen("a.pem").unwrap(), case.good);
    // Another content is another layer of covers, which a waiting sandbox does not have.
    case.put("a.pem", &format!("# another\n{}", case.good));
    let after = case.shown_with(&["**"], Missing::Make);
    assert_ne!(before[Path::new("a.pem")].digest, after[Path::new("a.pem")].digest);
    case.put("a.pem", &case.good);
    // What was kept is gone: it is made again.
    std::fs::remove_file(source).unwrap();
    assert_eq!(case.seen("a.pem").unwrap(), case.good);
}

#[test]
fn links_show_nothing_but_what_was_checked() {
    let case = case();
    let outside = case.dir.path().join("outside.pem");
    std::fs::write(&outside, &case.good).unwrap();
    symlink(&outside, case.workspace.root().join("out.pem")).unwrap();
    let key = case.put("key", &case.secret);
    symlink("key", case.workspace.root().join("in.pem")).unwrap();
    // A second name of a key, and of a certificate.
    std::fs::hard_link(&key, case.workspace.root().join("hard.pem")).unwrap();
    let one = case.put("one.pem", &case.good);
    std::fs::hard_link(&one, case.workspace.root().join("two.pem")).unwrap();
    std::fs::hard_link(&one, case.workspace.root().join("three")).unwrap();
    assert_eq!(case.shown(), ["one.pem", "two.pem"]);
}

#[test]
fn files_that_are_as_they_were_are_not_read_again() {
    let case = case();
    for at in 0..50 {
        case.put(&format!("many/{at}.pem"), if at % 2 == 0 { &case.good } else { &case.secret });
    }
    assert_eq!(case.shown().len(), 25);
    let state = case.dir.path().join("state").join(FOLDER);
    let memory = || {
        let mut entries = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.extension().is_some()).unwrap()
    };
    assert_eq!(load(&memory()).len(), 50);
    // A memory that says another thing is believed: so nothing is read.
    let text = std::fs::read_to_string(memory()).unwrap();
    let forged: String = text
        .lines()
        .map(|line| match line.rsplit_once(' ') {
            Some((facts, _)) if line != FORMAT => format!("{facts} -\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(memory(), forged).unwrap();
    assert_eq!(case.shown().len(), 0);
    for broken in ["", "certificates 0\n", "certificates 1\n1 2 3 -\n", "certificates 1\nx\n"] {
        std::fs::write(memory(), broken).unwrap();
        assert_eq!(case.shown().len(), 25, "{broken:?}");
    }
}
