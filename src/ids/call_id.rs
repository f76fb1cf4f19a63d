//! The id of a call, in characters that nothing has to quote.

use std::fmt;
use std::io;

use crate::sys::now;

/// The longest id: as part of a container's name it must stay readable.
const CALL_ID_MAX: usize = 40;

/// The id of a call: lowercase letters, digits and inner hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(String);

impl CallId {
    /// Takes an id of safe characters; `None` for anything else.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let ends = !text.starts_with('-') && !text.ends_with('-');
        (!text.is_empty() && text.len() <= CALL_ID_MAX && ends && text.bytes().all(safe))
            .then(|| Self(text.to_owned()))
    }

    /// A new id: the time in milliseconds, then chance. Ids sort by time.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub fn fresh() -> io::Result<Self> {
        let chance: [u8; 8] = crate::sys::random()?;
        let millis = now().as_millis();
        Ok(Self(format!("{millis:011x}-{:016x}", u64::from_le_bytes(chance))))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_safe_characters_only() {
        for good in ["a", "0198-ab", "x".repeat(40).as_str()] {
            assert!(CallId::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a b", "a/b", "a=b", "ä", "a\n", "x".repeat(41).as_str()]
        {
            assert!(CallId::new(bad).is_none(), "{bad:?}");
        }
        let fresh = CallId::fresh().unwrap();
        assert_eq!(CallId::new(fresh.as_str()), Some(fresh));
    }
}
