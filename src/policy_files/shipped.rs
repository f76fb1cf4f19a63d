//! The policies in the executable: every file of `policies/`, found, checked and read by the build script.

/// One of them.
pub(super) struct Shipped {
    pub(super) name: &'static str,
    /// What it says.
    pub(super) text: &'static str,
    /// What was read from that, as [`runner_policy::packed`] writes it.
    pub(super) read: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));
