//! What is kept of a call's connections: one record each, and names that led nowhere.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runner_policy::net::{BoundKey, Bounded};

use crate::codes::Code;

/// Most connections of which each has a record of its own. Those beyond are refused: none goes unrecorded.
pub(super) const RECORDS_MAX: usize = 100_000;

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The name that the program asked for.
    pub name: String,
    /// The port.
    pub port: u16,
    /// Where it led; none if nothing was dialled.
    pub address: Option<SocketAddr>,
    /// The rule that allowed or denied it, if one did.
    pub rule: Option<String>,
    /// Bytes that the command sent.
    pub sent: u64,
    /// Bytes that it received.
    pub received: u64,
    /// From the program's connecting to the end.
    pub duration: Duration,
    /// Why it was not made or ended before its time.
    pub failed: Option<Failed>,
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What kind of failure.
    pub code: Code,
    /// A sentence.
    pub why: String,
    /// What would help.
    pub next: Option<String>,
}

/// What a call's commands reached and did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Every connection, in the order in which they began.
    pub connections: Vec<Connection>,
    /// Names that no rule allows.
    pub missed: Vec<String>,
}

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Book {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    reached: Reached,
    used: HashMap<String, Used>,
}

/// What a rule's connections came to.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    connections: u64,
    bytes: u64,
}

/// Which way bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Sent,
    Received,
}

impl Book {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection begins; its place in the book, if there is one.
    pub fn begin(&self, name: String, port: u16) -> Option<usize> {
        let mut kept = self.kept();
        let at = kept.reached.connections.len();
        if at >= RECORDS_MAX {
            return None;
        }
        kept.reached.connections.push(Connection {
            name,
            port,
            address: None,
            rule: None,
            sent: 0,
            received: 0,
            duration: Duration::ZERO,
            failed: None,
        });
        Some(at)
    }

    /// More is known of a connection.
    pub fn note(&self, at: usize, more: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.kept().reached.connections.get_mut(at) {
            more(connection);
        }
    }

    /// A name that leads nowhere.
    pub fn missed(&self, name: String) {
        let mut kept = self.kept();
        if !kept.reached.missed.contains(&name) {
            kept.reached.missed.push(name);
        }
    }

    /// Counts a connection for every rule that counts it.
    ///
    /// # Errors
    /// The rule that has had as many as it may; then none counts it.
    pub fn count(&self, counted: &[Bounded]) -> Result<(), String> {
        let mut kept = self.kept();
        for Bounded { rule, bounds } in counted {
            let most = bounds.get(BoundKey::Connections);
            if kept.used.get(rule).is_some_and(|used| used.connections >= most) {
                return Err(format!("`{rule}` allows {most} connections in one call"));
            }
        }
        for Bounded { rule, .. } in counted {
            kept.used.entry(rule.clone()).or_default().connections += 1;
        }
        Ok(())
    }

    /// Counts bytes of a connection.
    ///
    /// # Errors
    /// The rule whose bytes are used up.
    pub fn charge(
        &self,
        at: usize,
        counted: &[Bounded],
        way: Way,
        bytes: u64,
    ) -> Result<(), String> {
        let mut kept = self.kept();
        if let Some(connection) = kept.reached.connections.get_mut(at) {
            match way {
                Way::Sent => connection.sent += bytes,
                Way::Received => connection.received += bytes,
            }
        }
        for Bounded { rule, bounds } in counted {
            let most = bounds.get(BoundKey::Bytes);
            let used = kept.used.entry(rule.clone()).or_default();
            used.bytes = used.bytes.saturating_add(bytes);
            if used.bytes > most {
                return Err(format!("`{rule}` allows {most} bytes in one call"));
            }
        }
        Ok(())
    }

    /// All that is known.
    pub fn take(&self) -> Reached {
        std::mem::take(&mut self.kept().reached)
    }
}
