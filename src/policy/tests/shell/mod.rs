//! Shell lines: the table of cases, properties of parser and printer, and a comparison with bash.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise, and run a real bash in a folder of their own"
)]

mod bash;
mod cases;
mod lines;
mod model;
mod notation;
mod properties;
