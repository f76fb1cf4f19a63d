//! Names and the addresses that they have inside.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Most names of a call: each costs memory of the sandbox.
const NAMES_MAX: usize = 4_096;

/// The network in which each name has an address: 127.64.0.0/10, apart from 127.0.0.1.
const FIRST: u32 = u32::from_be_bytes([127, 64, 0, 1]);

/// Names in the order in which they were asked for.
#[derive(Default)]
pub struct Names {
    addresses: BTreeMap<String, Ipv4Addr>,
    names: Vec<String>,
}

impl Names {
    /// The address of a name, new or known; none if there are too many.
    pub fn address(&mut self, name: &str) -> Option<Ipv4Addr> {
        if let Some(known) = self.addresses.get(name) {
            return Some(*known);
        }
        if self.names.len() >= NAMES_MAX {
            return None;
        }
        let address = Ipv4Addr::from(FIRST + u32::try_from(self.names.len()).ok()?);
        self.names.push(name.to_owned());
        self.addresses.insert(name.to_owned(), address);
        Some(address)
    }

    /// The name of an address.
    pub fn of(&self, address: IpAddr) -> Option<&str> {
        let IpAddr::V4(address) = address else { return None };
        let at = u32::from(address).checked_sub(FIRST)?;
        self.names.get(usize::try_from(at).ok()?).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_an_address_of_its_own() {
        let mut names = Names::default();
        let first = names.address("a.example").unwrap();
        let second = names.address("b.example").unwrap();
        assert_eq!([first, second], [Ipv4Addr::new(127, 64, 0, 1), Ipv4Addr::new(127, 64, 0, 2)]);
        assert_eq!(names.address("a.example"), Some(first));
        assert_eq!(names.of(IpAddr::V4(second)), Some("b.example"));
        for none in ["127.0.0.1", "127.64.0.3", "127.64.0.0", "0.0.0.0", "::1"] {
            assert_eq!(names.of(none.parse().unwrap()), None, "{none}");
        }
    }

    #[test]
    fn names_are_bounded_and_known_ones_still_answered() {
        let mut names = Names::default();
        for at in 0..NAMES_MAX {
            assert!(names.address(&format!("n{at}")).is_some());
        }
        assert_eq!(names.address("more"), None);
        assert!(names.address("n0").is_some());
    }
}
