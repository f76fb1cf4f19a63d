//! The network of commands: what a `net` rule with `for: commands` says beside its targets, and on what terms a
//! connection is made.
//!
//! A command never gets a device. Names that a rule allows lead to the guest, which tunnels each connection to the
//! host; there [`connect`](crate::connect) judges name and port, and the host dials the address that it checked.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::address::Kind;
use super::terms::Reach;
use crate::limits::Unit;

/// Whom a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Requests that the host makes for a tool.
    Tools,
    /// Connections of commands.
    Commands,
    /// What a command's arguments say that it would reach: it starts if either kind of rule covers that.
    Arguments,
}

/// What a rule for commands says beside its targets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForCommands {
    /// Whether TLS ends on the host, so that requests are judged one by one.
    pub inspect: bool,
    /// The package manager whose configured registries are the targets.
    pub registry: Option<Registry>,
    /// What is dialled in place of the name's own addresses.
    pub at: Option<Fixed>,
    /// Its bounds.
    pub bounds: Bounds,
}

/// A package manager that knows its registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// npm, and with it yarn and pnpm.
    Npm,
    /// pip, and with it uv.
    Pip,
    /// cargo.
    Cargo,
}

impl Registry {
    /// Every one with its word.
    pub const ALL: [(&'static str, Self); 3] =
        [("npm", Self::Npm), ("pip", Self::Pip), ("cargo", Self::Cargo)];

    /// The one written as this word.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, one)| *one)
    }

    /// The word it is written as.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Cargo => "cargo",
        }
    }
}

/// A host and port that a package manager of this machine is configured to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryHost {
    /// Whose.
    pub registry: Registry,
    /// Its name, in lower case.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// An address that a rule names, and the port there if it differs from the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixed {
    /// The address.
    pub address: IpAddr,
    /// The port; `None` for the one that was asked for.
    pub port: Option<u16>,
}

impl Fixed {
    /// Reads `10.0.0.5`, `10.0.0.5:8443`, `::1` or `[::1]:8443`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self { address, port: None });
        }
        let place = text.parse::<SocketAddr>().ok().filter(|place| place.port() != 0)?;
        Some(Self { address: place.ip(), port: Some(place.port()) })
    }

    /// Where a connection to `port` goes.
    #[must_use]
    pub fn place(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(port))
    }

    /// Whether something can answer there.
    #[must_use]
    pub fn can_be_named(self) -> bool {
        let kind = super::kind(self.address);
        kind.can_be_named() && kind != Kind::Translated
    }
}

/// A bound that a rule for commands can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKey {
    /// Connections in a call.
    Connections,
    /// Bytes of all connections, both ways.
    Bytes,
    /// Time of one connection.
    Time,
}

/// One row of [`BOUNDS`].
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Which bound.
    pub bound: BoundKey,
    /// Its key in a rule's `limits`.
    pub key: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Without a word from the rule.
    pub default: u64,
    /// The loosest that any rule can set.
    pub ceiling: u64,
    /// What it bounds.
    pub about: &'static str,
}

const GIB: u64 = 1 << 30;
const HOUR: u64 = 3_600_000;

/// The bounds of a rule for commands. The defaults fit an installation: a package manager opens tens of connections
/// and fetches far below 4 GiB, and one connection that is kept open for its downloads ends within an hour.
#[rustfmt::skip]
pub const BOUNDS: [Bound; 3] = [
    Bound { bound: BoundKey::Connections, key: "connections", unit: Unit::Count, default: 4_096,   ceiling: 1_000_000,  about: "connections in one call" },
    Bound { bound: BoundKey::Bytes,       key: "bytes",       unit: Unit::Bytes, default: 4 * GIB, ceiling: 1024 * GIB, about: "bytes of all connections of one call, both ways" },
    Bound { bound: BoundKey::Time,        key: "time",        unit: Unit::Time,  default: HOUR,    ceiling: 24 * HOUR,  about: "one connection, from resolving the name to its end" },
];

/// A value for each of [`BOUNDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds([u64; BOUNDS.len()]);

impl Default for Bounds {
    fn default() -> Self {
        Self(BOUNDS.map(|row| row.default))
    }
}

impl Bounds {
    /// The bound in force.
    #[must_use]
    pub fn get(&self, bound: BoundKey) -> u64 {
        self.0[bound as usize]
    }

    /// Sets a bound as a rule does.
    pub fn set(&mut self, bound: BoundKey, value: u64) {
        self.0[bound as usize] = value;
    }
}

/// A rule that counts a connection, with its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// `policy/id`.
    pub rule: String,
    /// Its bounds.
    pub bounds: Bounds,
}

/// On what terms a connection is made. Never more than every policy that has a say agrees to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The rule of the policy itself that allows it: `policy/id`.
    pub rule: String,
    /// Every rule that counts it.
    pub counted: Vec<Bounded>,
    /// Which addresses it may lead to.
    pub reach: Reach,
    /// What is dialled in place of the name's own addresses.
    pub at: Option<Fixed>,
    /// Whether TLS ends on the host.
    pub inspect: bool,
    /// The package manager whose configuration names the host, if that is why it is allowed.
    pub registry: Option<Registry>,
}

impl Passage {
    /// These terms within others.
    #[must_use]
    pub fn within(mut self, other: Self) -> Self {
        self.reach = self.reach.min(other.reach);
        self.inspect |= other.inspect;
        self.counted.extend(other.counted);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_defaults_are_below_ceilings() {
        for (at, row) in BOUNDS.iter().enumerate() {
            assert_eq!(row.bound as usize, at, "{}", row.key);
            assert!(row.default <= row.ceiling, "{}", row.key);
            assert_eq!(row.unit.parse(&row.unit.show(row.default)), Ok(row.default));
        }
    }

    #[test]
    fn an_address_is_written_with_or_without_a_port() {
        for (text, place) in [
            ("10.0.0.5", "10.0.0.5:443"),
            ("10.0.0.5:8443", "10.0.0.5:8443"),
            ("::1", "[::1]:443"),
            ("[::1]:8443", "[::1]:8443"),
        ] {
            assert_eq!(Fixed::parse(text).unwrap().place(443).to_string(), place);
        }
        for text in ["", "localhost", "10.0.0.5:0", "10.0.0:1", "10.0.0.5:", "[::1]", "a:1"] {
            assert_eq!(Fixed::parse(text), None, "{text}");
        }
    }
}
