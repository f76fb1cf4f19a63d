//! One project, whatever its ecosystem.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Direct dependencies that are listed.
const DIRECT_MAX: usize = 1_000;
/// Packages in several versions that are listed.
const DUPLICATES_MAX: usize = 200;

/// A direct dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Direct {
    /// Its name.
    pub name: String,
    /// What was asked for: a range, a path, an address.
    pub requirement: String,
    /// For what: `normal`, `dev`, `build`, `peer`, `optional`.
    pub kind: &'static str,
    /// The version that is locked.
    pub locked: Option<String>,
}

/// What a manifest and its lock file say.
#[derive(Debug, Default)]
pub(super) struct Project {
    /// `npm` or `cargo`.
    pub ecosystem: &'static str,
    /// The manifest's path, if there is one.
    pub manifest: Option<String>,
    /// The lock file's path, if there is one.
    pub lock: Option<String>,
    /// What it calls itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it asks for.
    pub direct: Vec<Direct>,
    /// Every locked package, with its versions.
    pub locked: BTreeMap<String, BTreeSet<String>>,
    /// What could not be read.
    pub notes: Vec<String>,
}

impl Project {
    /// Packages in all.
    pub(super) fn total(&self) -> usize {
        match &self.lock {
            Some(_) => self.locked.values().map(BTreeSet::len).sum(),
            None => self.direct.len(),
        }
    }

    /// Locks direct dependencies of which there is one version only.
    pub(super) fn settle(&mut self) {
        for direct in self.direct.iter_mut().filter(|it| it.locked.is_none()) {
            let versions = self.locked.get(&direct.name).filter(|versions| versions.len() == 1);
            direct.locked = versions.and_then(|versions| versions.first().cloned());
        }
    }

    /// For the result.
    pub(super) fn json(&self) -> Value {
        let several: Vec<_> =
            self.locked.iter().filter(|(_, versions)| versions.len() > 1).collect();
        let direct = self.direct.iter().take(DIRECT_MAX).map(|it| {
            json!({ "name": it.name, "requirement": it.requirement, "kind": it.kind, "locked": it.locked })
        });
        let duplicates = several
            .iter()
            .take(DUPLICATES_MAX)
            .map(|(name, versions)| json!({ "name": name, "versions": versions }));
        json!({
            "ecosystem": self.ecosystem,
            "manifest": self.manifest,
            "lock": self.lock,
            "name": self.name,
            "version": self.version,
            "directCount": self.direct.len(),
            "direct": direct.collect::<Vec<_>>(),
            "total": self.total(),
            "duplicateCount": several.len(),
            "duplicates": duplicates.collect::<Vec<_>>(),
            "truncated": self.direct.len() > DIRECT_MAX || several.len() > DUPLICATES_MAX,
            "notes": self.notes,
        })
    }
}
