use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::environment::Environment;
use crate::workspace::Workspace;

struct Case {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

/// On the disk: a layer needs extended attributes.
fn case(paths: &[&str]) -> Case {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = dir.path().join("w");
    for path in paths {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "secret").unwrap();
    }
    let workspace = Workspace::find(Some(&root), &Environment::default()).unwrap();
    Case { dir, workspace }
}

fn owner() -> Owner {
    Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

impl Case {
    fn layer(&self, covers: &[(&str, Cover)], missing: Missing) -> Layer {
        let covers = covers.iter().map(|(path, cover)| (PathBuf::from(path), *cover)).collect();
        layer(&Covering {
            over: self.workspace.handle(),
            identity: self.workspace.identity(),
            covers: &covers,
            contents: &BTreeMap::new(),
            owner: owner(),
            state: &self.dir.path().join("state"),
            missing,
        })
        .unwrap()
    }
}

#[test]
fn a_layer_holds_the_covers_and_nothing_else() {
    let case = case(&[".env", "a/b/.env", "a/x", "secrets/y", ".ssh/id_rsa"]);
    let covers = [
        (".env", Cover::EmptyFile),
        ("a/b/.env", Cover::EmptyFile),
        ("secrets", Cover::EmptyFolder),
        (".ssh", Cover::ClosedFolder),
    ];
    let layer = case.layer(&covers, Missing::Make);
    let mut names: Vec<_> =
        std::fs::read_dir(&layer.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".env", ".ssh", "a", "secrets"]);
    let mode = |path: &str| layer.path.join(path).metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode(".env"), mode("secrets"), mode(".ssh")), (0o644, 0o755, 0));
    assert_eq!(std::fs::read(layer.path.join("a/b/.env")).unwrap(), b"");
    let same = |path: &str| layer.path.join(path).metadata().unwrap().ino();
    assert_eq!(same(".env"), same("a/b/.env"), "covers of a kind are one file");
    assert_eq!(case.layer(&covers, Missing::Make), layer, "it is made once");
    assert_ne!(case.layer(&covers[..3], Missing::Make).path, layer.path);
}

#[test]
fn folders_above_a_cover_look_like_the_real_ones_also_later() {
    let case = case(&["a/.env"]);
    let real = case.workspace.root().join("a");
    let set = |mode| std::fs::set_permissions(&real, PermissionsExt::from_mode(mode)).unwrap();
    set(0o2775);
    let covers = [("a/.env", Cover::EmptyFile)];
    let layer = case.layer(&covers, Missing::Make);
    let facts = |path: &Path| {
        let found = path.metadata().unwrap();
        (found.mode(), found.uid(), found.gid(), found.mtime(), found.mtime_nsec())
    };
    assert_eq!(facts(&layer.path.join("a")), facts(&real));
    assert_eq!(facts(&layer.path), facts(case.workspace.root()));
    set(0o700);
    std::fs::write(real.join("new"), "").unwrap();
    case.layer(&covers, Missing::Make);
    assert_eq!(facts(&layer.path.join("a")), facts(&real));
}

#[test]
fn calls_at_once_get_the_same_layer_and_leave_nothing_else() {
    let case = case(&[".env"]);
    let covers = [(".env", Cover::EmptyFile)];
    let layers: Vec<Layer> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| case.layer(&covers, Missing::Make))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(layers.windows(2).all(|pair| pair[0] == pair[1]));
    let left = std::fs::read_dir(layers[0].path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "the layer and the note of its use");
    assert_eq!(forget(&case.dir.path().join("state")), 0, "it was used just now");
}

#[test]
fn a_description_makes_nothing() {
    let case = case(&[".env"]);
    let layer = case.layer(&[(".env", Cover::EmptyFile)], Missing::Describe);
    assert_eq!(layer.identity, Identity::UNMADE);
    assert!(!case.dir.path().join("state").exists());
}
