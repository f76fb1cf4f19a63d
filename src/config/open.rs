//! Opening configuration files: one failed open if there is none, every check on a handle if there is one.

use std::path::{Path, PathBuf};

use runner_policy::finding::{At, Finding};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::layer::{FILE, Layer, folder};
use crate::policy_files::{FileProblem, Places, Writers, open_folder, read_handle};

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub layer: Layer,
    /// As shown in messages.
    pub file: String,
    pub text: String,
}

const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Reads the file of a layer; `None` if there is none.
pub(super) fn open(layer: Layer, places: &Places) -> Result<Option<Text>, Box<Finding>> {
    let Some((base, below)) = folder(layer, places) else { return Ok(None) };
    let path = base.join(below).join(FILE);
    // Most callers have no file at all. Whatever else is wrong is found below, on handles.
    if matches!(openat(CWD, &path, FLAGS, Mode::empty()), Err(Errno::NOENT | Errno::NOTDIR)) {
        return Ok(None);
    }
    let writers = match layer {
        Layer::Managed => Writers::RootOnly,
        Layer::Default | Layer::Project | Layer::User => Writers::Anyone,
    };
    let read = || {
        let Some(folder) = open_folder(&base, below, writers)? else { return Ok(None) };
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(&folder, FILE, FLAGS, Mode::empty(), within) {
            Ok(handle) => read_handle(handle, writers).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileProblem::opening(errno)),
        }
    };
    let text = read().map_err(|problem| Box::new(finding(&problem, &path)))?;
    Ok(text.map(|text| Text { layer, file: path.display().to_string(), text }))
}

/// Reads a file that the caller named, as if it were of a layer. Links are followed: the caller chose the path.
pub(super) fn open_given(path: &PathBuf, layer: Layer) -> Result<Text, Box<Finding>> {
    let opened = openat(CWD, path, FLAGS, Mode::empty()).map_err(FileProblem::opening);
    let text = opened.and_then(|handle| read_handle(handle, Writers::Anyone));
    match text {
        Ok(text) => Ok(Text { layer, file: path.display().to_string(), text }),
        Err(problem) => Err(Box::new(finding(&problem, path))),
    }
}

fn finding(problem: &FileProblem, file: &Path) -> Finding {
    let mut at = At::default();
    let (code, message, help): (_, String, Option<String>) = match problem {
        FileProblem::Missing => ("config_missing", "there is no such file".into(), None),
        FileProblem::Unreadable(error) => (
            "config_unreadable",
            format!("cannot be read: {error}"),
            Some("make it readable or remove it".into()),
        ),
        FileProblem::NotAFile | FileProblem::BadName | FileProblem::WrongEnding => {
            ("config_not_a_file", "is not a regular file".into(), None)
        }
        FileProblem::NotAFolder => (
            "config_folder_invalid",
            "is in no folder, or reached through a link".into(),
            Some("make it a real folder; a link could lead to files of another user".into()),
        ),
        FileProblem::LinkOutside => (
            "config_link_outside",
            "is a link that leads out of its folder".into(),
            Some("copy the file here; only links within the folder are followed".into()),
        ),
        FileProblem::TooLarge | FileProblem::TooMany(_) => {
            ("too_large", "is larger than any configuration".into(), None)
        }
        FileProblem::NotUtf8(place) => {
            at = *place;
            ("not_utf8", "is not valid UTF-8 from here on".into(), Some("save it as UTF-8".into()))
        }
        FileProblem::NotRoots(uid) => (
            "managed_not_root",
            format!("belongs to user {uid}; the managed configuration must belong to root"),
            Some(format!("chown root:root {}", file.display())),
        ),
        FileProblem::WritableByOthers => (
            "managed_writable",
            "can be changed by others than root".into(),
            Some(format!("chmod go-w {}", file.display())),
        ),
    };
    let file = file.display().to_string();
    Finding { code, file, at, message, help, excerpt: String::new() }
}
