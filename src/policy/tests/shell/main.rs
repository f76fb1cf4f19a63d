//! Shell lines: the table of cases, properties of parser and printer, and a comparison with bash.

mod bash;
mod cases;
mod lines;
mod model;
mod notation;
mod properties;
