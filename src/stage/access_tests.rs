//! Lists made by hand, and by the kernel.

use super::*;
use rustix::fs::{XattrFlags, setxattr};
use std::fs;
use std::os::fd::AsFd as _;

/// A list with these entries between those that every list has.
fn list(named: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = VERSION.to_le_bytes().to_vec();
    let all = [
        &[(0x01, 7, u32::MAX)],
        named,
        &[(0x04, 5, u32::MAX), (0x10, 7, u32::MAX), (0x20, 0, u32::MAX)],
    ];
    let mut all = all.concat();
    all.sort_unstable();
    for (tag, rights, id) in all {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn only_named_users_and_groups_count() {
    assert_eq!(read(&list(&[])), Some(vec![]));
    let user = Grant { tag: 0x02, id: 1234, rights: 6 };
    assert_eq!(read(&list(&[(0x02, 6, 1234)])), Some(vec![user]));
    for broken in [
        &b""[..],
        b"\x02\0\0",
        b"\x03\0\0\0",
        b"\x02\0\0\0\x02\0\x06\0",
        b"\x02\0\0\0\x03\0\x06\0\0\0\0\0",
    ] {
        assert_eq!(read(broken), None, "{broken:?}");
    }
}

#[test]
fn a_grant_must_be_the_hosts_with_all_its_rights() {
    let grant = |tag, id, rights| Grant { tag, id, rights };
    let host = [grant(2, 7, 6), grant(8, 9, 4)];
    for (staged, more) in [
        (vec![], false),
        (vec![grant(2, 7, 6)], false),
        (vec![grant(2, 7, 4), grant(8, 9, 4)], false),
        (vec![grant(2, 7, 7)], true),
        (vec![grant(2, 9, 4)], true),
        (vec![grant(8, 7, 4)], true),
        (vec![grant(2, 7, 6), grant(8, 9, 6)], true),
    ] {
        assert_eq!(gives_more(Some(&staged), &host), more, "{staged:?}");
    }
    assert!(gives_more(None, &host));
}

#[test]
fn the_kernels_lists_are_read_of_the_entry_itself() {
    let dir = tempfile::tempdir().unwrap();
    let handle = fs::File::open(dir.path()).unwrap();
    let of = |name: &str, lists: &[&str]| grants(handle.as_fd(), OsStr::new(name), lists);
    fs::write(dir.path().join("plain"), "").unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    setxattr(dir.path().join("file"), ACCESS, &list(&[(0x08, 4, 77)]), XattrFlags::empty())
        .unwrap();
    setxattr(dir.path().join("folder"), DEFAULT, &list(&[(0x02, 6, 78)]), XattrFlags::empty())
        .unwrap();
    std::os::unix::fs::symlink("file", dir.path().join("link")).unwrap();
    assert_eq!(of("plain", &[ACCESS, DEFAULT]), Some(vec![]));
    assert_eq!(of("link", &[ACCESS, DEFAULT]), Some(vec![]));
    assert_eq!(of("file", &[ACCESS, DEFAULT]), Some(vec![Grant { tag: 8, id: 77, rights: 4 }]));
    assert_eq!(of("folder", &[ACCESS]), Some(vec![]));
    assert_eq!(of("folder", &[DEFAULT]), Some(vec![Grant { tag: 2, id: 78, rights: 6 }]));
    fs::write(dir.path().join("folder/new"), "").unwrap();
    assert_eq!(of("folder/new", &[ACCESS]), Some(vec![Grant { tag: 2, id: 78, rights: 6 }]));
    assert_eq!(of("none", &[ACCESS]), None);
}
