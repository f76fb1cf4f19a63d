//! Foreign indexes of git: read or refused, never a panic. What is hidden in one is revealed as it
//! was, and nothing that is read has a path that leads out.
#![no_main]

#[allow(dead_code, unused_imports, reason = "not everything is used here")]
#[path = "../../../src/git_index/mod.rs"]
mod index;

use libfuzzer_sys::fuzz_target;
use ring::digest;

use index::{Entry, Index, IndexError, hide, reveal, same_but_stat};

fn covered(path: &[u8]) -> bool {
    path.first().is_some_and(|byte| byte % 2 == 0)
}

/// The input with its last bytes made the right checksum, which no fuzzer finds by itself.
fn sealed(data: &[u8], algorithm: &'static digest::Algorithm) -> Vec<u8> {
    let mut bytes = data.to_vec();
    bytes.extend_from_slice(digest::digest(algorithm, data).as_ref());
    bytes
}

fn check(bytes: &[u8]) {
    let Ok(index) = Index::read(bytes) else {
        assert!(hide(bytes, &covered).is_err());
        return;
    };
    for entry in index.entries() {
        let path = index.path(entry);
        assert!(!path.is_empty() && !path.starts_with(b"/") && !path.contains(&0));
        assert!(path.split(|byte| *byte == b'/').all(|part| part != b".." && part != b".git"));
    }
    assert!(same_but_stat(bytes, bytes));
    let unmerged = |entry: &Entry<'_>| entry.stage() != 0 && covered(index.path(entry));
    let hidden = match hide(bytes, &covered) {
        Err(IndexError::Unmerged(_)) => {
            assert!(index.entries().iter().any(unmerged));
            return;
        }
        hidden => hidden.expect("only unmerged paths are refused"),
    };
    let staged = hidden.as_deref().unwrap_or(bytes);
    let again = Index::read(staged).expect("what is written is read");
    for entry in again.entries() {
        assert!(entry.is_folder() || entry.is_skipped() || !covered(again.path(entry)));
    }
    let revealed = reveal(staged, bytes, &covered).expect("nothing was changed");
    assert!(same_but_stat(&revealed, bytes));
}

fuzz_target!(|data: &[u8]| {
    check(data);
    check(&sealed(data, &digest::SHA1_FOR_LEGACY_USE_ONLY));
    check(&sealed(data, &digest::SHA256));
    // One half as the host's index, the other as a staged one.
    let (one, other) = data.split_at(data.len() / 2);
    let [one, other] = [one, other].map(|half| sealed(half, &digest::SHA1_FOR_LEGACY_USE_ONLY));
    if let Ok(revealed) = reveal(&other, &one, &covered) {
        let [old, new] = [&one, &revealed].map(|bytes| Index::read(bytes).expect("it was read"));
        let covers = |index: &Index<'_>| -> Vec<_> {
            let entries = index.entries().iter().filter(|entry| covered(index.path(entry)));
            entries.map(|entry| (index.path(entry).to_vec(), entry.id().to_vec())).collect()
        };
        assert_eq!(covers(&old), covers(&new));
    }
});
