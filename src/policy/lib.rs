//! policy
pub mod limits;
