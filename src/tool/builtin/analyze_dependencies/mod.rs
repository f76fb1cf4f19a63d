//! `analyze_dependencies`: what manifests and lock files say.
//!
//! Both are foreign text: sizes, depth and counts are bounded, and what is no manifest is told as such.

mod cargo;
mod npm;
mod project;
mod run;

pub(super) use run::run;
