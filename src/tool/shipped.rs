//! The tools in the executable: every tool of the repository's `tools/`, and what they import.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

macro_rules! embedded {
    ($($(#[$about:meta])* $name:ident: [$($file:literal),* $(,)?])*) => {$(
        $(#[$about])*
        pub const $name: &[(&str, &str)] = &[$(($file, include_str!(concat!("../../tools/", $file)))),*];
    )*};
}

embedded! {
    /// The name of each file and its text, in the order of names. A test holds the list equal to the folder.
    TOOLS: [
        "changelog.yml",
        "dependency_report.tool.ts",
        "file_summary.yml",
        "http_probe.tool.ts",
        "json_query.tool.ts",
        "license_check.tool.ts",
        "run_tests.yml",
        "todo_finder.yml",
    ]
    /// The same, of modules that they import.
    PARTS: ["lib/manifests.ts"]
}

/// Puts the shipped tools into a folder of our own state, where they can be compiled like any others, and
/// gives that folder. It is named by its content, so two versions of this program do not meet.
///
/// # Errors
/// There is no folder for our state, or it cannot be written.
pub fn lay_out_shipped(state: Option<&Path>) -> io::Result<PathBuf> {
    let state = state.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "neither HOME nor XDG_STATE_HOME is set")
    })?;
    let mut hasher = blake3::Hasher::new();
    for (file, text) in TOOLS.iter().chain(PARTS) {
        for part in [file, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    let folder = state.join("tools").join(&hasher.finalize().to_hex()[..32]);
    for (file, text) in TOOLS.iter().chain(PARTS) {
        put(&folder.join(file), text)?;
    }
    make(&folder)?;
    Ok(folder)
}

/// Writes a file unless it is there as it should be. Another process may do the same: each writes a file of its
/// own and moves it into place.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let is_plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if is_plain && fs::read(path)? == text.as_bytes() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(path);
    make(parent)?;
    let own =
        parent.join(format!(".{}-{}", std::process::id(), blake3::hash(text.as_bytes()).to_hex()));
    let _ = fs::remove_file(&own);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&own, path)
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::super::folder::shipped;
    use super::super::read;
    use super::*;

    #[test]
    fn the_list_is_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .map(|entries| {
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
            })
            .unwrap_or_default();
        files.retain(|file| file.ends_with(".yml") || file.contains(".tool."));
        files.sort();
        assert_eq!(TOOLS.iter().map(|(file, _)| *file).collect::<Vec<_>>(), files);
        let parts = std::fs::read_dir(format!("{folder}/lib")).into_iter().flatten();
        let name = |name: std::ffi::OsString| format!("lib/{}", name.into_string().unwrap());
        let mut parts: Vec<String> = parts.map(|it| name(it.unwrap().file_name())).collect();
        parts.retain(|file| !file.starts_with("lib/."));
        parts.sort();
        assert_eq!(PARTS.iter().map(|(file, _)| *file).collect::<Vec<_>>(), parts);
    }

    #[test]
    fn they_can_be_laid_out_again_and_again() {
        let state = tempfile::tempdir().unwrap();
        let folder = lay_out_shipped(Some(state.path())).unwrap();
        if let Some((file, text)) = TOOLS.first() {
            std::fs::write(folder.join(file), "changed").unwrap();
            assert_eq!(lay_out_shipped(Some(state.path())).unwrap(), folder);
            assert_eq!(&std::fs::read_to_string(folder.join(file)).unwrap(), text);
        }
        assert!(folder.is_dir() && lay_out_shipped(None).is_err());
    }

    #[test]
    fn every_one_of_them_is_valid() {
        for (file, text) in TOOLS {
            let found = shipped(file, text).unwrap_or_else(|| panic!("{file} names no tool"));
            if file.ends_with(".yml") {
                let read = read::parse(file, text, &found.name);
                assert!(read.is_ok(), "{:#?}", read.err());
            }
        }
    }
}
