//! The net: targets as written in rules and in requests, the terms of a rule, and kinds of addresses.
//!
//! Pure: nothing is resolved or dialled here. [`Target`] compares names; [`kind`] says what an address is;
//! [`Terms`] are a rule's figures, its reach and what the host adds to a request ([`Send`]). Values of secrets
//! never come here: only their names and where the host finds them. [`ForCommands`] and [`Passage`] are about the
//! connections of commands.

mod address;
mod egress;
mod send;
mod target;
mod terms;

pub use address::{Kind, kind};
pub use egress::{
    Audience, BOUNDS, Bound, BoundKey, Bounded, Bounds, Fixed, ForCommands, Passage, Registry,
    RegistryHost,
};
pub use send::{Part, Secret, SecretSource, Send, Template, is_header_name, is_reserved_header};
pub use target::{Target, connection, request, rule};
pub use terms::{Count, FIGURES, Figure, FigureKey, Figures, Reach, Terms};
