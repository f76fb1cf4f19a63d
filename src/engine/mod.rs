//! What makes sandboxes.

pub mod docker;
