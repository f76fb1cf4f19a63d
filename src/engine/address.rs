//! Where an engine is, as text that another process of this program can use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::choice::EngineName;

/// Which engine, and where it is. Watchdogs and the pool's files carry it; [`super::at`] reaches the engine again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Address {
    engine: EngineName,
    place: String,
}

impl Address {
    /// The address of an engine at a place that its own implementation understands. That of an
    /// engine that is a part of this program is where its sandboxes wait.
    #[must_use]
    pub fn new(engine: EngineName, place: &str) -> Self {
        Self { engine, place: place.to_owned() }
    }

    /// Which engine.
    #[must_use]
    pub fn engine(&self) -> EngineName {
        self.engine
    }

    /// Where it is, in its own words.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.engine, self.place)
    }
}

/// A text that is no address of an engine of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the address of an engine that this runner has")]
pub struct NoAddress;

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (engine, place) = text.split_once(':').ok_or(NoAddress)?;
        Ok(Self::new(EngineName::named(engine).ok_or(NoAddress)?, place))
    }
}

impl TryFrom<String> for Address {
    type Error = NoAddress;

    fn try_from(text: String) -> Result<Self, NoAddress> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_as_it_was_written() {
        for place in ["unix:///var/run/docker.sock", "tcp://[::1]:2375", ""] {
            let address = Address::new(EngineName::Docker, place);
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for text in ["", "docker", "podman:unix:///x", "unix:///var/run/docker.sock"] {
            assert_eq!(text.parse::<Address>(), Err(NoAddress), "{text}");
        }
    }
}
