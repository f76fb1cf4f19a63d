//! Patterns: what a name or a path is matched by, and which texts braces stand for.
//!
//! Duty: the one implementation for policies, the broker's `file.glob`, tools, approvals and the guest.
//! Non-goals: looking for files; the braces of a shell, which bash expands by rules of their own
//! (`shell/brace.rs` of the policy). No input and output, no dependency.
//!
//! What differs between its users, and is an option here:
//!
//! | user | marks | a leading dot | `/` |
//! | --- | --- | --- | --- |
//! | lists of a policy | `*` `?` `[…]` `**` `{…}` `\` | any mark covers it | only `**` crosses |
//! | `file.glob` of the broker | the same | must be written, unless asked otherwise | only `**` crosses |
//! | `include`, `exclude` of the file search | the same | any mark covers it | only `**` crosses |
//! | words of a shell line | `*` `?` `[…]` `\` | must be written | nothing crosses |
//! | words of a command pattern | `*` `{a,b}` | any mark covers it | crosses, but not in a program's name |
//! | values in an approval | `*` | any mark covers it | nothing crosses, nor do operators of a shell |
//!
//! In a path pattern an unclosed bracket is an error; in a shell's word it is a character.

#![forbid(unsafe_code)]

mod braces;
mod name;
mod path;

pub use braces::{BraceError, Braces, Grammar};
pub use name::{Token, Unclosed, fits, fits_within, path_tokens, shell_tokens, star_tokens};
pub use path::{Dots, Fit, Glob, GlobError};
