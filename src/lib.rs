//! map
pub mod sandbox;
