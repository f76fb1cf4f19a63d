//! A project at one path: made by its script, and restored after each line by changing only what the line changed, so that
//! waiting sandboxes stay fit, as they do for an agent that works in a project.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{shells, table};

/// A project and the copy that it is restored from.
pub struct Place {
    pub project: PathBuf,
    template: PathBuf,
}

impl Place {
    /// Makes the project of this name as `base/project`.
    pub fn new(base: &Path, name: &str, variables: &[(&str, &str)]) -> Self {
        let place = Self { project: base.join("project"), template: base.join("template") };
        fs::create_dir(&place.project).expect("a folder");
        let script = table::folder().join(format!("projects/{name}.sh"));
        let mut command = Command::new("bash");
        command.arg(script).current_dir(&place.project).env_clear().stdin(Stdio::null());
        command.envs(shells::variables(base)).envs(variables.iter().copied());
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(name, "2026-01-02T03:04:05+00:00");
        }
        let output = command.output().expect("bash");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "the project {name} cannot be made: {said}");
        copy(&place.project, &place.template);
        place
    }

    /// Makes the project as it was in the beginning.
    pub fn restore(&self) {
        restore(&self.template, &self.project);
    }

    /// The project as it was in the beginning; it is never changed.
    pub fn template(&self) -> &Path {
        &self.template
    }
}

/// Copies a folder with all that is in it, and its times.
pub fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg("--").arg(from).arg(to).status();
    assert!(done.expect("cp").success(), "{} cannot be copied", from.display());
}

/// Makes `to` equal to `from`, and touches nothing that is equal already.
pub fn restore(from: &Path, to: &Path) {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    let mut visited = Vec::new();
    while let Some((from, to)) = folders.pop() {
        // A line may have taken the permission to change the folder.
        let mode = found(&from).expect("the template").permissions();
        fs::set_permissions(&to, mode).expect("permissions");
        let (wanted, present) = (names(&from), names(&to));
        for name in present.difference(&wanted) {
            remove(&to.join(name));
        }
        for name in wanted {
            let (one, two) = (from.join(&name), to.join(&name));
            let template = found(&one).expect("the template");
            if template.is_dir() {
                if !found(&two).is_some_and(|found| found.is_dir()) {
                    remove(&two);
                    fs::create_dir(&two).expect("a folder");
                }
                folders.push((one, two));
            } else if !equal(&one, &template, &two) {
                remove(&two);
                copy_file(&one, &template, &two);
            }
        }
        visited.push((from, to));
    }
    for (from, to) in visited.into_iter().rev() {
        let modified = found(&from).and_then(|found| found.modified().ok()).expect("a time");
        let folder = File::open(&to).expect("a folder");
        folder.set_modified(modified).expect("a time");
    }
}

fn found(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok()
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect()
}

fn remove(path: &Path) {
    let done = match found(path) {
        None => Ok(()),
        Some(found) if found.is_dir() => fs::remove_dir_all(path),
        Some(_) => fs::remove_file(path),
    };
    done.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Whether a file or link is as in the template, with its time.
fn equal(one: &Path, template: &Metadata, two: &Path) -> bool {
    let Some(other) = found(two) else { return false };
    if template.file_type() != other.file_type() {
        return false;
    }
    if template.is_symlink() {
        return fs::read_link(one).ok() == fs::read_link(two).ok();
    }
    template.permissions().mode() == other.permissions().mode()
        && template.len() == other.len()
        && template.modified().ok() == other.modified().ok()
        && fs::read(one).ok() == fs::read(two).ok()
}

fn copy_file(one: &Path, template: &Metadata, two: &Path) {
    if template.is_symlink() {
        symlink(fs::read_link(one).expect("a link"), two).expect("a link");
        return;
    }
    fs::copy(one, two).expect("a copy");
    let file = File::open(two).expect("a file");
    file.set_modified(template.modified().expect("a time")).expect("a time");
}
