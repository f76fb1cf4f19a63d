//! What holds for every policy and every command, tried with generated ones.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test binary")]

mod algebra;
mod make;
mod options;
mod order;
mod shells;
mod text;
mod total;
mod wrappers;
