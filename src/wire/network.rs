//! What a guest answers of the network: names and ports. The host judges each connection anew.

use crate::codec::WireError;
use crate::frame::Kind;
use serde::{Deserialize, Serialize};

/// Most names of an order.
pub const NAMES_MAX: usize = 4_096;

/// Most ports of an order: each is a listener.
pub const PORTS_MAX: usize = 128;

/// Names and ports for which the guest accepts connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Names in lower case; `*.` before one stands for every name below it, `*` alone for every name.
    pub names: Vec<String>,
    /// Ports.
    pub ports: Vec<u16>,
}

impl Network {
    /// Whether a name, in lower case and without a final dot, is one of them.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        self.names.iter().any(|known| match known.strip_prefix('*') {
            Some("") => true,
            Some(parent) => name.len() > parent.len() && name.ends_with(parent),
            None => known == name,
        })
    }

    /// Whether it is within its bounds.
    ///
    /// # Errors
    /// It has more names or ports than a guest takes.
    pub fn check(&self) -> Result<(), WireError> {
        if self.names.len() <= NAMES_MAX && self.ports.len() <= PORTS_MAX {
            return Ok(());
        }
        let reason = format!("{} names and {} ports", self.names.len(), self.ports.len());
        Err(WireError::Payload { kind: Kind::Start, reason })
    }
}

/// Whether a text is a host name as programs ask for it: labels of letters, digits, `-` and `_`.
#[must_use]
pub(crate) fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
            })
    };
    name.len() <= 253 && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_names_below() {
        let network = Network { names: vec!["a.b".to_owned(), "*.c.d".to_owned()], ports: vec![] };
        for (name, known) in [
            ("a.b", true),
            ("x.a.b", false),
            ("x.c.d", true),
            ("x.y.c.d", true),
            ("c.d", false),
            (".c.d", false),
            ("xc.d", false),
        ] {
            assert_eq!(network.names(name), known, "{name}");
        }
    }

    #[test]
    fn odd_names_are_none() {
        for name in ["", ".", "a.", ".a", "a..b", "A", "a b", "a/b", "\u{e9}"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("registry.npmjs.org") && is_name("_x.y-z") && is_name("localhost"));
        assert!(!is_name(&"a".repeat(64)) && !is_name(&"a.".repeat(130)));
    }
}
