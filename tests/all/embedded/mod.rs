//! The embedded engine: what a machine may forbid, what the kernel may refuse, and what may die, while it makes a sandbox.

mod faults;
mod forbidden;
pub mod traces;
