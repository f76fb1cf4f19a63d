//! Policies on disk: where they are looked for, how they are opened, and which are trusted.
//!
//! Duty: turn a choice (a name, a path, nothing) into texts for the policy crate, which does no I/O, and
//! refuse what must not be believed. Non-goal: what a policy means. Trust boundary: the workspace
//! is the adversary's, so a policy in it counts only after a person pinned its digest; the managed
//! folder counts only if root alone can change it. Every check is made on the opened file.
//!
//! The default of a configuration is a choice too ([`Configured`]): its policy comes from a layer that is trusted
//! at least as far as the file that names it, and a project's file can only bound it.
//!
//! Layers, from the most to the least trusted. A policy may build on its own layer and those above
//! it, never on one below, so a repository cannot change what a managed or shipped policy means.
//!
//! | layer | where | believed because |
//! | --- | --- | --- |
//! | shipped | in the executable | it is ours |
//! | managed | `/etc/runner/policies` | root owns it and nobody else can write |
//! | user | `$XDG_CONFIG_HOME/runner/policies` | the caller's own folder |
//! | given | the file of `--policy PATH` | the caller typed it |
//! | project | `.runner/policies` of the workspace | `runner policy trust` pinned its digest |

mod choice;
mod error;
mod folder;
mod gather;
mod layer;
mod load;
mod memory;
mod shipped;
mod trust;

pub use choice::{Choice, ChoiceError, Configured, DEFAULT, Named};
pub use error::PolicyError;
pub(crate) use folder::{Problem as FileProblem, Writers, open_folder, read_handle};
pub use gather::{Depth, Gathered, Text, gather};
pub use layer::{Layer, Places};
pub use load::{
    Library, Loaded, Trust, check_trust, choosable, load, load_all, load_files, shipped,
};
pub use trust::{Pin, TrustError, TrustStore};
