//! The embedded engine: what a machine may forbid, what the kernel may refuse, and what may die, while it makes a sandbox;
//! and what waits.

mod bare;
mod faults;
mod forbidden;
mod killed;
pub mod traces;
mod waiting;
