//! Shell lines: the table of cases, properties of parser and printer, and a comparison with bash.

mod cases;
mod notation;
