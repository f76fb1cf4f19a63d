//! Proof that the hook wrapped a line: for this agent, this session, this workspace.
//!
//! Duty: a keyed digest in the wrapped command. A model that types `runner agent exec` itself has none, also where the
//! hook did not run at all, and one for a line does not fit another line, session or workspace. Non-goal: a secret
//! towards programs of the same user on the host: they can read the key.

use std::path::Path;

use super::error::AgentError;
use super::kind::Agent;
use super::place::{Place, read_own, write_own};
use crate::sys;

/// The file of the key, in the user's folder.
const KEY: &str = "key";

/// Characters of a ticket: 128 bits.
const LENGTH: usize = 32;

/// What a ticket is for.
#[derive(Debug, Clone, Copy)]
pub struct Wrapped<'a> {
    /// The agent.
    pub agent: Agent,
    /// Its session, or nothing.
    pub session: &'a str,
    /// The workspace.
    pub workspace: &'a Path,
    /// The line.
    pub line: &'a str,
}

impl Wrapped<'_> {
    /// The ticket. The first one of an account makes its key.
    ///
    /// # Errors
    /// The key cannot be read, made or believed.
    pub fn ticket(&self, place: &Place) -> Result<String, AgentError> {
        Ok(self.digest(&key(place)?))
    }

    /// Whether this is the ticket.
    ///
    /// # Errors
    /// The key cannot be read or believed.
    pub fn fits(&self, ticket: &str, place: &Place) -> Result<bool, AgentError> {
        let wanted = self.digest(&key(place)?);
        // All characters are compared, so that time tells nothing.
        let differ = wanted.bytes().zip(ticket.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        Ok(ticket.len() == LENGTH && differ == 0)
    }

    fn digest(&self, key: &[u8; 32]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(key);
        let workspace = self.workspace.as_os_str().as_encoded_bytes();
        let parts = [
            self.agent.word().as_bytes(),
            self.session.as_bytes(),
            workspace,
            self.line.as_bytes(),
        ];
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut digest = hasher.finalize().to_hex().to_string();
        digest.truncate(LENGTH);
        digest
    }
}

/// The account's key.
fn key(place: &Place) -> Result<[u8; 32], AgentError> {
    let (path, uid) = (place.folder.join(KEY), rustix::process::getuid().as_raw());
    for _ in 0..2 {
        if let Some(bytes) = read_own(&path, uid)? {
            let why = || "it is no key".to_owned();
            return <[u8; 32]>::try_from(bytes.as_slice())
                .map_err(|_| AgentError::Damaged { path: path.clone(), why: why() });
        }
        place.make()?;
        let failed = |source| AgentError::Io { path: path.clone(), source };
        let fresh = sys::random::<32>().map_err(failed)?;
        // Of two processes at once the first one's key stays: a link does not replace.
        let chance = sys::random::<8>().map_err(failed)?;
        let temporary = place.folder.join(format!("{KEY}.{:016x}", u64::from_ne_bytes(chance)));
        write_own(&temporary, &fresh, 0o600)?;
        let linked = std::fs::hard_link(&temporary, &path);
        let _ = std::fs::remove_file(&temporary);
        match linked {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    Err(AgentError::Damaged { path, why: "it goes away while it is read".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_fits_its_line_session_workspace_and_account_alone() {
        let place = |folder: &Path| Place {
            home: folder.to_owned(),
            folder: folder.join("agents"),
            managed: folder.join("etc"),
        };
        let (ann, bob) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (ann, bob) = (place(ann.path()), place(bob.path()));
        let workspace = Path::new("/w");
        let wrapped = Wrapped { agent: Agent::Claude, session: "s", workspace, line: "ls" };
        let ticket = wrapped.ticket(&ann).unwrap();
        assert_eq!(ticket.len(), LENGTH);
        assert!(wrapped.fits(&ticket, &ann).unwrap());
        assert!(!wrapped.fits(&ticket, &bob).unwrap());
        for other in [
            Wrapped { agent: Agent::Codex, ..wrapped },
            Wrapped { session: "t", ..wrapped },
            Wrapped { workspace: Path::new("/w2"), ..wrapped },
            Wrapped { line: "ls ", ..wrapped },
            Wrapped { session: "", line: "sls", ..wrapped },
        ] {
            assert!(!other.fits(&ticket, &ann).unwrap(), "{other:?}");
        }
        for forged in ["", "0", &ticket[1..], &format!("{ticket}0"), &"0".repeat(LENGTH)] {
            assert!(!wrapped.fits(forged, &ann).unwrap(), "{forged}");
        }
    }
}
