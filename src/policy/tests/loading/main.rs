//! Strict loading: every kind of mistake with its code, place and help, and what a hostile file may cost.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test binary")]

mod cases;
mod cost;
mod sets;
