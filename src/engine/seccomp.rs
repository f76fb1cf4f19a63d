//! The system call filter of sandboxes.

/// The system calls that a sandbox may make, as OCI runtimes read them.
pub const PROFILE: &str = include_str!("../../images/seccomp.json");
