//! What the sandbox has to do with how a command ended: `sandbox` of a result, and one line on standard error.
//!
//! A failure that the sandbox causes looks like any other: a file that is empty, a name that does not resolve. The
//! entries say what the sandbox has to do with it, by which rule, and what to do next.
//!
//! | part | duty |
//! | --- | --- |
//! | `entry` | one entry: what it is about, why, the rule, the next step |
//! | `evidence` | which words and symptoms stand in a command's output |
//! | `bounds` | limits that were met, processes that ran on, output that is cut |
//! | `find` | the entries of a call: what applies, and what the output selects |
//! | `outside` | files and programs of the host that the sandbox does not show |
//!
//! Trust boundary: the output is the command's, and a hostile one prints what it likes. It can *select* an entry, and
//! nothing more: every word of an entry comes from the policy, the plan, the command as the caller gave it, or this
//! program, and every entry is true of this sandbox whatever was printed. Non-goal: whether the command failed
//! because of it; only the command knows.

mod bounds;
mod entry;
mod evidence;
mod find;
mod outside;

pub(super) use entry::not_reached;
pub use entry::{Kind, Shortfall, line};
pub(super) use evidence::EVIDENCE_MAX;
pub(super) use find::{Ended, of_command, of_sandbox};
pub(super) use outside::error;
