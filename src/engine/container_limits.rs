//! The limits that are part of a container, as numbers.
//!
//! Every other limit is enforced by the guest, the broker or the host, and travels with the call.

use std::collections::BTreeMap;

use runner_policy::limits::{Isolation, Limit, Limits};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// What the engine sets when a container is made. Scratch, inodes and shared memory are in the plan's tmpfs.
pub const FIXED: [Limit; 6] =
    [Limit::Memory, Limit::Cpus, Limit::Pids, Limit::CpuTime, Limit::OpenFiles, Limit::FileSize];

/// Writes them, by key.
pub fn serialize<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(FIXED.iter().map(|limit| (limit.row().key, limits.get(*limit))))
}

/// Reads them; what is not among them has the strictest preset's figure, which nobody uses.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
    let figures = BTreeMap::<String, u64>::deserialize(deserializer)?;
    let mut limits = Limits::preset(Isolation::Paranoid);
    for limit in FIXED {
        let key = limit.row().key;
        let figure = figures.get(key).ok_or_else(|| D::Error::custom(format!("no `{key}`")))?;
        limits.set(limit, *figure);
    }
    Ok(limits)
}
