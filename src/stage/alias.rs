//! Symlinks of the host that stand where it runs something: `.git/hooks/pre-commit` that leads to a
//! script of the project, `.vscode` that leads to a folder of it.
//!
//! Duty: say of a changed path whether the host runs it by another name. Trust boundary: the link is
//! the host's, what it leads through and to can be the adversary's. So each symlink on the way counts,
//! as well as the end.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::change::{Change, Host, What};
use super::led::starts_with;
use super::merged::Merged;
use super::repository::Repositories;
use crate::workspace::protected::table::{self, Class, Row};

/// A second name of a place in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The symlink by which the host finds it.
    pub link: PathBuf,
    /// The place: another symlink on the way, or the end.
    pub place: PathBuf,
}

/// The places that these symlinks of the host lead to.
#[must_use]
pub fn find(
    links: &BTreeSet<PathBuf>,
    merged: &Merged<'_>,
    repositories: &Repositories<'_>,
) -> Vec<Alias> {
    let mut found = Vec::new();
    for link in links.iter().filter(|link| row(link, repositories).is_some()) {
        let Host::Link { target, .. } = merged.on_host(link) else { continue };
        let folder = link.parent().unwrap_or(Path::new(""));
        let places = merged.trail(folder, &target).into_iter();
        let inside = places.filter(|place| !place.as_os_str().is_empty());
        found.extend(inside.map(|place| Alias { link: link.clone(), place }));
    }
    found
}

impl Alias {
    /// Why the host runs a changed path by this name, if it does.
    #[must_use]
    pub fn runs(&self, change: &Change, repositories: &Repositories<'_>) -> Option<&'static Row> {
        if starts_with(&change.path, &self.place) {
            let below: PathBuf = change.path.iter().skip(self.place.iter().count()).collect();
            return row(&join(&self.link, &below), repositories);
        }
        let replaced =
            matches!(change.what, What::Link { .. }) && starts_with(&self.place, &change.path);
        if replaced { row(&self.link, repositories) } else { None }
    }
}

fn join(link: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { link.to_owned() } else { link.join(below) }
}

/// Why the host runs what is at a path, or below it.
fn row(path: &Path, repositories: &Repositories<'_>) -> Option<&'static Row> {
    let by_name = table::find_for_link(path).filter(|row| row.class == Class::Never);
    by_name.or_else(|| {
        path.ancestors().skip(1).find_map(|folder| {
            let below = path.strip_prefix(folder).ok().filter(|it| *it != OsStr::new(""))?;
            table::run_in_git(below).filter(|_| repositories.is_git_on_host(folder))
        })
    })
}
