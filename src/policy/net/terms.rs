//! The terms on which a rule lets a request through: figures, reach, and what the host adds.

use serde::ser::SerializeMap;

use super::address::Kind;
use super::send::Send;
use crate::limits::Unit;

/// A figure that a `net` rule can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKey {
    /// Bytes of a response.
    Size,
    /// Requests in a call.
    Count,
    /// Time of one request.
    Time,
}

/// One row of [`FIGURES`].
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Which figure.
    pub figure: FigureKey,
    /// Its key in a rule's `limits`.
    pub key: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Without a word from the rule.
    pub default: u64,
    /// The loosest figure that any rule can set.
    pub ceiling: u64,
    /// What it bounds.
    pub about: &'static str,
}

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000;

/// The figures of a `net` rule. The defaults fit an API that answers with documents: a page of results is
/// far below 8 MiB and 30 s, and a tool that asks more than a hundred times in one call should say so.
#[rustfmt::skip]
pub const FIGURES: [Figure; 3] = [
    Figure { figure: FigureKey::Size,  key: "size",  unit: Unit::Bytes, default: 8 * MIB,     ceiling: 1024 * MIB,   about: "body of one response" },
    Figure { figure: FigureKey::Count, key: "count", unit: Unit::Count, default: 100,         ceiling: 1_000_000,    about: "requests in one call, redirections too" },
    Figure { figure: FigureKey::Time,  key: "time",  unit: Unit::Time,  default: 30 * SECOND, ceiling: 600 * SECOND, about: "one request, from resolving the name to the last byte" },
];

/// A value for each of [`FIGURES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Figures([u64; FIGURES.len()]);

impl Default for Figures {
    fn default() -> Self {
        Self(FIGURES.map(|row| row.default))
    }
}

impl Figures {
    /// The figure in force.
    #[must_use]
    pub fn get(&self, figure: FigureKey) -> u64 {
        self.0[figure as usize]
    }

    /// Sets a figure as a rule does.
    pub fn set(&mut self, figure: FigureKey, value: u64) {
        self.0[figure as usize] = value;
    }

    /// As a rule writes them.
    #[must_use]
    pub fn show(&self) -> String {
        let shown =
            FIGURES.map(|row| format!("{}: {}", row.key, row.unit.show(self.get(row.figure))));
        shown.join(", ")
    }
}

/// Which addresses a name may lead to. The order is from less to more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Public ones.
    Public,
    /// Also this host and private networks (`private: true`).
    Private,
    /// The address that the rule itself names.
    Named,
}

impl Reach {
    /// Whether an address of this kind may be dialled.
    #[must_use]
    pub fn admits(self, kind: Kind) -> bool {
        match kind {
            Kind::Public => true,
            Kind::Loopback | Kind::Private | Kind::LinkLocal | Kind::Shared => {
                self >= Self::Private
            }
            // Whoever owns a name could lead it here; so only the address itself is proof of what was meant.
            Kind::Metadata => self >= Self::Named,
            Kind::Translated
            | Kind::Multicast
            | Kind::Unspecified
            | Kind::Broadcast
            | Kind::Reserved => false,
        }
    }
}

/// How often the requests of one rule may be made in a call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// `policy/id`.
    pub rule: String,
    /// At most so often.
    pub most: u64,
}

/// What a request is let through on. Never more than every policy that has a say agrees to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Most bytes of the response's body.
    pub size: u64,
    /// Most milliseconds.
    pub time: u64,
    /// Every rule that counts it.
    pub counts: Vec<Count>,
    /// Which addresses it may reach.
    pub reach: Reach,
    /// What the host adds: only by the policy itself, never by what it stays within.
    pub send: Vec<Send>,
}

impl Terms {
    /// These terms within others.
    #[must_use]
    pub fn within(mut self, other: Self) -> Self {
        self.size = self.size.min(other.size);
        self.time = self.time.min(other.time);
        self.reach = self.reach.min(other.reach);
        self.counts.extend(other.counts);
        self
    }
}

impl serde::Serialize for Terms {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("size", &Unit::Bytes.show(self.size))?;
        map.serialize_entry("time", &Unit::Time.show(self.time))?;
        map.serialize_entry("count", &self.counts)?;
        map.serialize_entry("reach", &self.reach)?;
        let send: Vec<_> = self
            .send
            .iter()
            .map(|send| {
                let secrets: Vec<&str> = send.template.secrets().collect();
                serde_json::json!({ "header": send.header, "secrets": secrets })
            })
            .collect();
        map.serialize_entry("send", &send)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_defaults_are_below_ceilings() {
        for (at, row) in FIGURES.iter().enumerate() {
            assert_eq!(row.figure as usize, at, "{}", row.key);
            assert!(row.default <= row.ceiling, "{}", row.key);
            assert_eq!(row.unit.parse(&row.unit.show(row.default)), Ok(row.default));
        }
    }

    #[test]
    fn terms_within_others_are_the_tighter_and_send_only_their_own() {
        let send = |header: &str| Send {
            header: header.to_owned(),
            template: super::super::Template::parse("x").unwrap(),
            secrets: Vec::new(),
        };
        let of = |size, time, reach, header: &str| Terms {
            size,
            time,
            counts: vec![Count { rule: header.to_owned(), most: 1 }],
            reach,
            send: vec![send(header)],
        };
        let both = of(5, 9, Reach::Private, "own").within(of(7, 3, Reach::Named, "other"));
        assert_eq!((both.size, both.time, both.reach), (5, 3, Reach::Private));
        assert_eq!(both.counts.len(), 2);
        assert_eq!(both.send, vec![send("own")]);
    }
}
