//! The embedded engine: what the kernel may refuse, and what may die, while it makes a sandbox.

mod bare;
mod faults;
mod killed;
pub mod traces;
