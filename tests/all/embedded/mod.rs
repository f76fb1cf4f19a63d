//! The embedded engine: what the kernel may refuse, and what may die, while it makes a sandbox; and what waits.

mod faults;
pub mod traces;
mod waiting;
