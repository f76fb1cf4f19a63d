//! Remembers which compositions have passed their own examples and tests.
//!
//! An empty file in the user's state folder, named by the policy's digest and by what judged it. It
//! saves time and nothing else: without the folder, or with a file that cannot be written, the
//! tests run again.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use runner_policy::effective::Effective;

use super::layer::Places;

/// Stands for the engine and catalog that judged: another one may judge otherwise.
const JUDGE: &str = env!("RUNNER_JUDGE");

/// The place of one composition's mark.
#[derive(Debug)]
pub(super) struct Memory(Option<PathBuf>);

impl Memory {
    pub(super) fn of(policy: &Effective, places: &Places) -> Self {
        let name = format!("{}-{JUDGE}", policy.digest.to_hex());
        Self(places.state.as_ref().map(|state| state.join("checked").join(name)))
    }

    pub(super) fn passed(&self) -> bool {
        self.0.as_ref().is_some_and(|mark| mark.symlink_metadata().is_ok_and(|meta| meta.is_file()))
    }

    pub(super) fn remember(&self) {
        let Some(folder) = self.0.as_ref().and_then(|mark| mark.parent().zip(Some(mark))) else {
            return;
        };
        let (folder, mark) = folder;
        // Failing to remember costs time only.
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(mark);
    }
}
