//! Each fact of the upper layer's format, on entries made by hand.

use super::*;
use rustix::fs::{XattrFlags, mknodat, setxattr};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Case {
    dir: tempfile::TempDir,
    handle: fs::File,
}

fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let handle = fs::File::open(dir.path()).unwrap();
    Case { dir, handle }
}

impl Case {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> Result<Entry, EntryError> {
        read(self.handle.as_fd(), OsStr::new(name))
    }

    fn note(&self, name: &str, attribute: &str, value: &[u8]) {
        setxattr(self.path(name), attribute, value, XattrFlags::empty()).unwrap();
    }

    fn node(&self, name: &str, kind: FileType, device: u64) {
        mknodat(&self.handle, name, kind, Mode::from(0o600), device).unwrap();
    }
}

#[test]
fn kinds_are_told_apart() {
    let case = case();
    case.node("gone", FileType::CharacterDevice, 0);
    case.node("null", FileType::CharacterDevice, makedev(1, 3));
    case.node("block", FileType::BlockDevice, 0);
    case.node("pipe", FileType::Fifo, 0);
    fs::write(case.path("file"), "abc").unwrap();
    symlink("nowhere", case.path("link")).unwrap();
    fs::create_dir(case.path("folder")).unwrap();
    fs::set_permissions(case.path("folder"), fs::Permissions::from_mode(0o2750)).unwrap();
    assert_eq!(case.read("gone"), Ok(Entry::Whiteout));
    for name in ["null", "block", "pipe"] {
        assert!(matches!(case.read(name), Ok(Entry::Special { .. })), "{name}");
    }
    assert!(matches!(case.read("file"), Ok(Entry::File(staged, _)) if staged.size == 3));
    assert_eq!(case.read("link"), Ok(Entry::Link("nowhere".into())));
    assert_eq!(
        case.read("folder"),
        Ok(Entry::Folder { mode: 0o2750, view: View::Merged, copied: false, listed: false })
    );
    assert_eq!(case.read("none"), Err(EntryError::Refused(Errno::NOENT)));
}

#[test]
fn only_the_kernels_own_attributes_count() {
    let case = case();
    for name in ["plain", "opaque", "forged", "xwhiteouts"] {
        fs::create_dir(case.path(name)).unwrap();
    }
    case.note("plain", "user.overlay.impure", b"y");
    case.note("plain", "user.overlay.origin", b"");
    case.note("opaque", "user.overlay.opaque", b"y");
    case.note("forged", "user.overlay.overlay.opaque", b"y");
    case.note("xwhiteouts", "user.overlay.opaque", b"x");
    let view = |name: &str| match case.read(name) {
        Ok(Entry::Folder { view, .. }) => Some(view),
        _ => None,
    };
    assert_eq!(view("plain"), Some(View::Merged));
    assert_eq!(view("opaque"), Some(View::Opaque));
    assert_eq!(view("forged"), Some(View::Merged));
    assert!(matches!(case.read("xwhiteouts"), Err(EntryError::Attribute(_))));
    for attribute in ["whiteout", "metacopy", "redirect", "upper", "made-up"] {
        fs::write(case.path(attribute), "").unwrap();
        case.note(attribute, &format!("user.overlay.{attribute}"), b"y");
        assert!(matches!(case.read(attribute), Err(EntryError::Attribute(_))), "{attribute}");
        let escaped = format!("escaped-{attribute}");
        fs::write(case.path(&escaped), "").unwrap();
        case.note(&escaped, &format!("user.overlay.overlay.{attribute}"), b"y");
        assert!(matches!(case.read(&escaped), Ok(Entry::File(..))), "{escaped}");
    }
}

#[test]
fn a_file_with_capabilities_is_special() {
    let case = case();
    fs::write(case.path("file"), "").unwrap();
    assert!(matches!(case.read("file"), Ok(Entry::File(..))));
    // VFS_CAP_REVISION_2, effective, `cap_setuid`.
    let capability = [1, 0, 0, 2, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    case.note("file", "security.capability", &capability);
    assert!(matches!(case.read("file"), Ok(Entry::Special { .. })));
}

/// An `origin` as the kernel writes it.
fn noted(handle: &FileHandle) -> Vec<u8> {
    let mut origin = vec![0, 0xfb, u8::try_from(21 + handle.bytes.len()).unwrap(), 0];
    origin.push(u8::try_from(handle.kind).unwrap());
    origin.extend([0; 16]);
    origin.extend(&handle.bytes);
    origin
}

#[test]
fn an_origin_is_compared_with_the_file_that_the_host_has_now() {
    let (stage, host) = (case(), case());
    for name in ["kept", "replaced", "removed"] {
        fs::write(host.path(name), "").unwrap();
        fs::write(stage.path(name), "x").unwrap();
        let handle = file_handle(host.handle.as_fd(), OsStr::new(name)).unwrap();
        stage.note(name, "user.overlay.origin", &noted(&handle));
    }
    fs::write(stage.path("new"), "").unwrap();
    fs::write(host.path("other"), "").unwrap();
    fs::rename(host.path("other"), host.path("replaced")).unwrap();
    fs::remove_file(host.path("removed")).unwrap();
    let origin = |name: &str| match stage.read(name).unwrap() {
        Entry::File(_, attributes) => {
            attributes.origin(Some(host.handle.as_fd()), OsStr::new(name))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(origin("kept"), Origin::Host);
    assert_eq!(origin("replaced"), Origin::Unknown);
    assert_eq!(origin("removed"), Origin::Unknown);
    assert_eq!(origin("new"), Origin::New);
}

#[test]
fn a_damaged_origin_names_no_file() {
    let whole = noted(&FileHandle { kind: 1, bytes: vec![1, 2, 3, 4, 5, 6, 7, 8] });
    assert!(noted_handle(&whole).is_some());
    for end in 0..whole.len() {
        assert_eq!(noted_handle(&whole[..end]), None, "{end}");
    }
    let mut other = whole.clone();
    other[1] = 0xfa;
    assert_eq!(noted_handle(&other), None);
}
