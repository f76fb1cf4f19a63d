//! Where this machine's own package managers install from.
//!
//! Duty: read the files of the user and of the system in which npm, pip and cargo say where their registries are, and
//! with which credentials; say the same, without credentials, to the clients inside a sandbox. Non-goals: judging
//! requests (the policy), sending them (`broker`). Trust boundary: the files are the caller's and the administrator's. A
//! project's files and the caller's variables never count, because a project can bring the first and a shell of an
//! agent the second. The clients themselves are not started: their files hold credentials, which no
//! sandbox may read, and a client of the workspace could answer anything.
//!
//! | part | duty |
//! | --- | --- |
//! | [`Source`], [`Credential`] | one registry |
//! | `npm`, `pip`, `cargo` | what each client's files say; pure |
//! | [`find`], [`Registries`] | which files there are, read once, with their digests |
//! | [`inside`] | variables and files for the clients in a sandbox |

mod cargo;
mod find;
pub mod inside;
mod npm;
mod pip;
mod source;
#[cfg(test)]
mod tests;

pub use find::{ReadFile, Registries, RegistryError, find};
pub use source::{Credential, Secret, Source, Use};
