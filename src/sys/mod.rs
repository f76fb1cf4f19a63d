//! The only unsafe code and raw system calls of the host program.
//!
//! Everything here has a safe signature. Other modules are compiled with `unsafe_code` denied.

mod account;
mod allocator;
mod clock;
mod fd;
mod file_handle;
pub mod forbidden;
mod harden;
mod landlock;
pub mod lease;
mod peer;
mod processors;
mod procfs;
mod random;
mod sentinel;
mod signal;

pub use account::account_home;
pub use allocator::one_arena;
pub use clock::{clocks, now, processor_time};
pub use fd::{StatusFdError, claim_status_fd};
pub use file_handle::{FileHandle, file_handle};
pub use harden::{HardenError, harden};
pub use landlock::landlock_version;
pub use peer::peer;
pub use processors::Processors;
pub use procfs::read_procfs;
pub use random::random;
pub use sentinel::{Program, sentinel, unblock_signals};
pub use signal::{catch_signals, default_signals};
