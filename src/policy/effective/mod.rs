//! Composition: a policy with all that it extends, and within what it must stay.
//!
//! `extends` is the union of rules and lists; for single values the nearest wins. `within`, and every
//! managed policy that is a ceiling, is an intersection: each of them decides for itself and the
//! strictest answer holds.

mod composed;
mod index;
mod set;

pub use composed::Effective;
pub use set::PolicySet;
