//! What makes sandboxes.

pub mod docker;
pub mod guest;
