//! Tools compiled by the real program, and run by the real Node.

mod bombs;
mod cache;
mod confined;
mod escapes;
mod findings;
mod language;
mod packages;
mod support;
