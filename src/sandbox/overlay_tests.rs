//! What a command sees of small, nasty workspaces.

use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, Mode, mknodat};

use super::*;
use crate::environment::Environment;
use crate::ids::Identity;
use crate::workspace::grants::Code;
use crate::workspace::grants::tests::globs;
use crate::workspace::survey::Shown;

struct Case {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

/// On the disk: a layer needs extended attributes. A name that ends with `/` is a folder.
fn case(paths: &[&str]) -> Case {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = dir.path().canonicalize().unwrap().join("w");
    for path in paths {
        let full = root.join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        if path.ends_with('/') {
            std::fs::create_dir_all(full).unwrap();
        } else {
            std::fs::write(full, "secret").unwrap();
        }
    }
    let workspace = Workspace::find(Some(&root), &Environment::default()).unwrap();
    Case { dir, workspace }
}

const DENY: &[&str] = &["**/.env", "secrets/**"];

impl Case {
    fn view(&self, read: &[&str], write: &[&str]) -> Result<View, MountError> {
        self.view_with(read, write, &[], &MountPoints::read())
    }

    fn view_with(
        &self,
        read: &[&str],
        write: &[&str],
        unscanned: &[Unscanned],
        points: &MountPoints,
    ) -> Result<View, MountError> {
        let (read, write_set, none) = (globs(read), globs(write), globs(&[]));
        let grants = FileGrants {
            policy: [0; 32],
            read: &read,
            write: &write_set,
            readonly: &none,
            deny: &globs(DENY),
            create: &[],
            writes: if write.is_empty() { Writes::None } else { Writes::Some },
            code: Code::Granted,
        };
        let around = Surroundings {
            state: &self.dir.path().join("state"),
            memory: None,
            unscanned,
            points,
            missing: Missing::Make,
        };
        view(&self.workspace, &grants, self.workspace.owner(), around)
    }

    /// What the layer of covers holds: type, permissions and size of each entry that is a cover.
    fn covers(&self, view: &View) -> Vec<(String, &'static str)> {
        let of = |path: &PathBuf| {
            let found = view.overlay.covers.path.join(path).symlink_metadata().unwrap();
            let closed = found.mode() & 0o777 == 0;
            let what = match (found.is_dir(), closed) {
                (false, false) => "empty file",
                (false, true) => "closed file",
                (true, false) => "empty folder",
                (true, true) => "closed folder",
            };
            assert!(found.is_dir() || found.is_file() && found.size() == 0, "{path:?}");
            (path.to_str().unwrap().to_owned(), what)
        };
        view.covered.iter().map(of).collect()
    }
}

fn text<'a>(list: &'a [(String, &'static str)]) -> Vec<(&'a str, &'static str)> {
    list.iter().map(|(path, what)| (path.as_str(), *what)).collect()
}

#[test]
fn a_denied_file_is_empty_and_key_material_is_closed() {
    let case = case(&[
        ".env",
        "a/.env",
        "id_rsa",
        ".ssh/config",
        "secrets/deep/x",
        "src/main.rs",
        "deploy/id_ed25519",
    ]);
    let view = case.view(&["**"], &[]).unwrap();
    assert_eq!(
        text(&case.covers(&view)),
        [
            (".env", "empty file"),
            (".ssh", "closed folder"),
            ("a/.env", "empty file"),
            ("deploy/id_ed25519", "closed file"),
            ("id_rsa", "closed file"),
            ("secrets", "empty folder"),
        ]
    );
    // A folder above a cover is no cover: what else is in it shines through.
    let layer = &view.overlay.covers.path;
    assert!(opaque(&layer.join("secrets")) && opaque(&layer.join(".ssh")));
    assert!(!opaque(&layer.join("a")) && !opaque(layer));
    assert!(!layer.join("src").exists());
}

fn opaque(path: &Path) -> bool {
    let mut value = [0; 8];
    let length = rustix::fs::getxattr(path, "user.overlay.opaque", &mut value).unwrap_or(0);
    &value[..length] == b"y"
}

#[test]
fn what_leads_out_of_the_sandbox_is_closed() {
    let case = case(&["src/"]);
    let root = case.workspace.root();
    let _socket = UnixListener::bind(root.join("agent.sock")).unwrap();
    mknodat(CWD, root.join("src/pipe"), FileType::Fifo, Mode::from(0o666), 0).unwrap();
    let view = case.view(&["**"], &[]).unwrap();
    let covers = case.covers(&view);
    assert_eq!(text(&covers), [("agent.sock", "closed file"), ("src/pipe", "closed file")]);
}

#[test]
fn every_name_of_a_denied_file_is_covered() {
    let case = case(&[".env", "config/real", "src/"]);
    let root = case.workspace.root();
    std::fs::hard_link(root.join(".env"), root.join("src/innocent")).unwrap();
    symlink("../config/real", root.join("src/.env")).unwrap();
    let view = case.view(&["**"], &["**"]).unwrap();
    let covers = case.covers(&view);
    let file = "empty file";
    assert_eq!(text(&covers), [(".env", file), ("config/real", file), ("src/innocent", file)]);
}

#[test]
fn what_the_read_list_leaves_out_is_covered_but_not_what_may_be_written() {
    let case = case(&["src/a.rs", "docs/x.md", "private/z", "out/x", "mixed/a.rs", "mixed/b"]);
    let read = ["src/**", "mixed/*.rs"];
    let view = case.view(&read, &[]).unwrap();
    assert_eq!(
        text(&case.covers(&view)),
        [
            ("docs", "empty folder"),
            ("mixed/b", "empty file"),
            ("out", "empty folder"),
            ("private", "empty folder"),
        ]
    );
    let view = case.view(&read, &["out/**"]).unwrap();
    assert!(!view.covered.contains(Path::new("out")));
    assert!(view.covered.contains(Path::new("private")));
}

#[test]
fn a_folder_that_is_not_scanned_is_covered_or_named() {
    let case = case(&["big/.env", "cache/.env", "src/.env"]);
    let unscanned = [
        Unscanned { folder: "big".into(), shown: Shown::Everything },
        Unscanned { folder: "cache".into(), shown: Shown::Nothing },
    ];
    let view = case.view_with(&["**"], &[], &unscanned, &MountPoints::read()).unwrap();
    let covers = case.covers(&view);
    assert_eq!(text(&covers), [("cache", "empty folder"), ("src/.env", "empty file")]);
    assert_eq!(view.not_scanned, [PathBuf::from("big")]);
    let notes: Vec<&str> = view.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(notes[0].contains("`big`") && notes[0].contains(SEEN), "{notes:?}");
    assert!(notes[1].contains("`cache`") && notes[1].contains(COVERED), "{notes:?}");
}

#[test]
fn a_command_cannot_start_where_it_sees_nothing() {
    let mut case = case(&["secrets/deep/x", "src/x"]);
    let root = case.workspace.root().to_owned();
    for (start, starts) in [("secrets", false), ("secrets/deep", false), ("src", true)] {
        let cwd = root.join(start);
        case.workspace = Workspace::open_at(&root, &cwd, &Environment::default()).unwrap();
        match case.view(&["**"], &[]) {
            Ok(_) => assert!(starts, "{start}"),
            Err(MountError::StartHidden(path)) => assert_eq!((path, starts), (cwd, false)),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_call_that_writes_has_a_stage_over_the_same_covers() {
    let case = case(&[".env", "src/x"]);
    let reads = case.view(&["**"], &[]).unwrap();
    let writes = case.view(&["**"], &["src/**"]).unwrap();
    assert_eq!(reads.overlay.writes, OverlayWrites::Refused);
    assert_eq!(writes.overlay.writes, OverlayWrites::Staged);
    assert_eq!(reads.overlay.covers, writes.overlay.covers);
    assert_eq!(writes.overlay.identity, case.workspace.identity());
    assert_ne!(writes.overlay.covers.identity, Identity::UNMADE);
}

/// A file system that the host has mounted below the workspace is shown read-only. A bind of it would lie over the
/// covers, so one that holds something hidden is an overlay of its own.
#[test]
fn what_is_mounted_below_is_shown_unless_it_is_hidden() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    let case = case(&["data/x", "secrets/deep/x", "open/x"]);
    let root = case.workspace.root();
    let places = [root.join("data"), root.join("secrets/deep"), root.join("open")];
    for place in &places {
        mount("none", place, "tmpfs", MountFlags::empty(), None).unwrap();
    }
    std::fs::create_dir(root.join("data/a")).unwrap();
    for name in ["data/.env", "data/a/.env", "secrets/deep/.env"] {
        std::fs::write(root.join(name), "secret").unwrap();
    }
    let identity = root.join("data").metadata().unwrap().ino();
    let seen = case.view(&["**"], &["**"]);
    for place in &places {
        unmount(place, UnmountFlags::DETACH).unwrap();
    }
    let view = seen.unwrap();
    let below: Vec<&Path> = view.below.iter().map(|mount| mount.target.as_path()).collect();
    assert_eq!(below, [root.join("open")]);
    let [data] = &view.below_covered[..] else { panic!("{:?}", view.below_covered) };
    assert_eq!((data.target.clone(), data.identity.ino), (root.join("data"), identity));
    assert_eq!((data.writes, data.role), (OverlayWrites::Refused, OverlayRole::Below));
    for name in [".env", "a/.env"] {
        assert_eq!(std::fs::read(data.covers.path.join(name)).unwrap(), b"", "{name}");
    }
    assert_eq!(view.notes.iter().filter(|note| note.code == "mounted_below").count(), 2);
}
