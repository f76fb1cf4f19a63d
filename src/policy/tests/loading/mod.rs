//! Strict loading: every kind of mistake with its code, place and help, and what a hostile file may cost.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test binary that tells figures"
)]

mod cases;
mod cost;
mod sets;
