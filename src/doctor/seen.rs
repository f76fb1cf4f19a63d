//! What the probe inside a sandbox tells the host: what it tried, and what came of it.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

/// What the probe must know of the host to try to reach it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    /// A port on which a process of the host listens, on the host's loopback device.
    pub port: u16,
    /// The abstract name of a unix socket on which a process of the host listens.
    pub socket: String,
    /// A process of the host.
    pub process: u32,
    /// A file of the host outside of the workspace.
    pub outside: String,
    /// A word that is in every file that the probe may not read.
    pub canary: String,
    /// The namespaces of the host's process, by kind.
    pub namespaces: BTreeMap<String, String>,
    /// The limits that are in force.
    pub limits: Figures,
}

/// Limits that the probe tries to pass.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Figures {
    /// Files that one process may have open.
    pub open_files: u64,
    /// Bytes of one file.
    pub file_size: u64,
    /// Bytes of scratch space.
    pub scratch: u64,
    /// Files in scratch space.
    pub inodes: u64,
}

/// Everything that one run of the probe tried.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// In the order in which it was tried.
    pub tries: Vec<Try>,
}

/// One thing that was tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Try {
    /// The protection that it is about, by its name in the table of protections.
    pub protection: String,
    /// What was tried, after "to".
    pub what: String,
    /// Whether it must succeed or fail.
    pub part: Part,
    /// Whether it succeeded.
    pub done: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a try is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// It must fail.
    Attack,
    /// It must succeed: it shows that the attack beside it fails for the right reason.
    Control,
}

impl Seen {
    /// Notes something that must fail.
    pub fn attack<T>(&mut self, protection: &str, what: impl Into<String>, result: io::Result<T>) {
        self.add(protection, what.into(), Part::Attack, result);
    }

    /// Notes something that must succeed.
    pub fn control<T>(&mut self, protection: &str, what: impl Into<String>, result: io::Result<T>) {
        self.add(protection, what.into(), Part::Control, result);
    }

    fn add<T>(&mut self, protection: &str, what: String, part: Part, result: io::Result<T>) {
        let why = result.as_ref().err().map(ToString::to_string);
        let protection = protection.to_owned();
        self.tries.push(Try { protection, what, part, done: result.is_ok(), why });
    }
}
