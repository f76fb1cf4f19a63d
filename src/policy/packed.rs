//! A valid policy as bytes: shipped policies are read when the program is built, and only unpacked when it runs.
//!
//! Trust boundary: what is unpacked is believed to be what [`pack`] wrote, so it must come from the executable
//! itself. Everything else is text, and goes through [`crate::load`].

use crate::model::Policy;

/// The bytes of a policy.
///
/// # Errors
/// It holds something that cannot be written.
pub fn pack(policy: &Policy) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_stdvec(policy)
}

/// The policy in these bytes of the executable; `None` if they are anything but one.
#[must_use]
pub fn unpack(bytes: &'static [u8]) -> Option<Policy> {
    postcard::take_from_bytes(bytes)
        .ok()
        .filter(|(_, rest)| rest.is_empty())
        .map(|(policy, _)| policy)
}
