//! The state that a client without a session carries between a question and its answer.
//!
//! It is in the client's hands, so it is signed with a key that lives as long as this process. It names the question and
//! is bound to the client's credential and to the whole request; it ends with time and counts once. The question itself is
//! bound in the book of approvals: to the call, the tool's digest and the policy's digest.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::approvals::ApprovalId;

/// States that were used and have not ended. More are refused until some have.
const USED: usize = 10_000;
/// Bytes of the end, the chance and the signature before the question's id.
const FIXED: usize = 8 + 16 + 32;
/// The longest state that is looked at.
const LONGEST: usize = 512;

/// Milliseconds since 1970.
pub fn now() -> i64 {
    i64::try_from(crate::sys::now().as_millis()).unwrap_or(i64::MAX)
}

/// Signs states and opens them.
pub struct Seal {
    key: [u8; 32],
    used: Mutex<HashMap<[u8; 16], i64>>,
}

/// Why a state counts for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It was not made here for this client and this request.
    Forged,
    /// Its time is over.
    Late,
    /// It was used before.
    Used,
}

impl Broken {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Forged => "requestState was not made for this client and this request",
            Self::Late => "requestState has expired; call the tool again without it",
            Self::Used => "requestState was used before; call the tool again without it",
        }
    }
}

impl Seal {
    /// With a fresh key.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { key: crate::sys::random()?, used: Mutex::default() })
    }

    /// Signs a state. `bound` is what the same client must send again.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn make(
        &self,
        question: &ApprovalId,
        bound: &[&[u8]],
        ends: i64,
    ) -> std::io::Result<String> {
        let chance: [u8; 16] = crate::sys::random()?;
        let id = question.as_str().as_bytes();
        let mac = self.sign(ends, &chance, id, bound);
        let state = [&ends.to_le_bytes()[..], &chance, mac.as_bytes(), id].concat();
        Ok(BASE64_URL_SAFE_NO_PAD.encode(state))
    }

    /// The question of a state. A state that is opened is used up.
    ///
    /// # Errors
    /// It counts for nothing.
    pub fn open(&self, state: &str, bound: &[&[u8]], now: i64) -> Result<ApprovalId, Broken> {
        let bytes = Some(state).filter(|state| state.len() <= LONGEST);
        let bytes = bytes.and_then(|state| BASE64_URL_SAFE_NO_PAD.decode(state).ok());
        let bytes = bytes.filter(|bytes| bytes.len() > FIXED).ok_or(Broken::Forged)?;
        let (fixed, id) = bytes.split_at(FIXED);
        let (ends, rest) = fixed.split_first_chunk::<8>().ok_or(Broken::Forged)?;
        let (chance, mac) = rest.split_first_chunk::<16>().ok_or(Broken::Forged)?;
        let mac: [u8; 32] = mac.try_into().map_err(|_| Broken::Forged)?;
        let ends = i64::from_le_bytes(*ends);
        // Digests of this type are compared in constant time.
        if self.sign(ends, chance, id, bound) != blake3::Hash::from_bytes(mac) {
            return Err(Broken::Forged);
        }
        if ends <= now {
            return Err(Broken::Late);
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, ends| *ends > now);
        if used.len() >= USED || used.insert(*chance, ends).is_some() {
            return Err(Broken::Used);
        }
        let id = std::str::from_utf8(id).map_err(|_| Broken::Forged)?;
        id.parse().map_err(|_| Broken::Forged)
    }

    fn sign(&self, ends: i64, chance: &[u8; 16], id: &[u8], bound: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&ends.to_le_bytes()).update(chance);
        for part in [&[id], bound].concat() {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_counts_once_for_its_client_and_request() {
        let seal = Seal::new().unwrap();
        let id = ApprovalId::fresh().unwrap();
        let bound: [&[u8]; 2] = [b"token:1", b"run_command {}"];
        let make = || seal.make(&id, &bound, 100).unwrap();
        let state = make();
        for other in [[&b"token:2"[..], bound[1]], [bound[0], b"run_command { }"]] {
            assert_eq!(seal.open(&state, &other, 1), Err(Broken::Forged));
        }
        // Where one part ends and the next begins counts too.
        assert_eq!(seal.open(&state, &[b"token:1run_command {}"], 1), Err(Broken::Forged));
        assert_eq!(seal.open(&state, &bound, 1), Ok(id.clone()));
        assert_eq!(seal.open(&state, &bound, 1), Err(Broken::Used));
        assert_eq!(seal.open(&make(), &bound, 100), Err(Broken::Late));
        let other = Seal::new().unwrap();
        assert_eq!(other.open(&make(), &bound, 1), Err(Broken::Forged));
    }

    #[test]
    fn every_changed_letter_is_noticed() {
        let seal = Seal::new().unwrap();
        let state = seal.make(&ApprovalId::fresh().unwrap(), &[b"x"], 100).unwrap();
        for at in 0..state.len() {
            let mut forged = state.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(seal.open(&forged, &[b"x"], 1), Err(Broken::Forged), "{at}");
        }
        for none in ["", "AAAA", &"A".repeat(10_000)] {
            assert_eq!(seal.open(none, &[b"x"], 1), Err(Broken::Forged));
        }
        assert!(seal.open(&state, &[b"x"], 1).is_ok());
    }
}
