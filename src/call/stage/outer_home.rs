//! Where symlinks in the caller's home lead into a workspace: `.bashrc` that lies in a repository of
//! dotfiles.
//!
//! Duty: note what the names of the table with the class *never* lead to, as far as symlinks in the home
//! stand at them or in their folders. Non-goals: what such a file reads in its turn. Trust boundary: the
//! home is the host's. What cannot be read in it is passed over, because the caller's shell does that too.

use std::path::PathBuf;

use crate::environment::Environment;
use crate::stage::leads::Leads;
use crate::workspace::protected::table::{self, Class, Row, TABLE};

/// Names in a home that run programs, and are key material in a workspace.
const SSH: Row =
    Row { pattern: ".ssh/config", class: Class::Never, runs: "ssh, which starts what it names" };

/// How many names deep symlinks are looked for.
const MAX_DEPTH: usize = 4;

/// Most entries of folders of one depth that are looked at: some editors keep thousands of files there.
const MAX_ENTRIES: usize = 4096;

/// Notes the places.
pub(super) fn note(leads: &mut Leads<'_>, environment: &Environment) {
    let Some(home) = environment.home() else { return };
    let config_home = environment.config_home();
    let never = TABLE.iter().filter(|row| row.class == Class::Never);
    for row in never.chain([&SSH]).filter(|row| !row.pattern.contains('*')) {
        leads.note_in_home(&home.join(row.pattern), row);
        let rest = row.pattern.strip_prefix(".config/");
        if let (Some(rest), Some(folder)) = (rest, &config_home) {
            leads.note_in_home(&folder.join(rest), row);
        }
    }
    let mut folders = vec![(home, PathBuf::new())];
    folders.extend(config_home.map(|folder| (folder, PathBuf::from(".config"))));
    within(leads, folders);
}

/// Notes what symlinks in folders of the table lead to, the shallow ones first.
fn within(leads: &mut Leads<'_>, mut folders: Vec<(PathBuf, PathBuf)>) {
    for _ in 0..MAX_DEPTH {
        let mut left = MAX_ENTRIES;
        for (folder, name) in std::mem::take(&mut folders) {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries {
                let Some(less) = left.checked_sub(1) else { return };
                left = less;
                let (path, name) = (entry.path(), name.join(entry.file_name()));
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_symlink()
                    && let Some(row) = never(table::find(&name))
                {
                    leads.note_in_home(&path, row);
                } else if kind.is_dir() && never(table::find_for_link(&name)).is_some() {
                    folders.push((path, name));
                }
            }
        }
    }
}

fn never(row: Option<&'static Row>) -> Option<&'static Row> {
    row.filter(|row| row.class == Class::Never)
}

#[cfg(test)]
#[path = "outer_home_tests.rs"]
mod tests;
