//! `runner doctor`: proves by trying that each protection holds on this machine.
//!
//! ```text
//! doctor                           sandbox, made as for every call
//!   | place: workspace, policy       |
//!   | call: ./probe look ----------> |  tries what must fail, and a control beside it
//!   | <------------- tries as JSON - |
//!   | calls: memory, threads, …  --> |  a limit ends each
//!   | kills a process with a call    |
//!   | judge: promised? tried? held?
//! ```
//!
//! Duty: for each engine that answers, one row for each protection of [`crate::sandbox::protection`], which is also what the
//! documentation is made from; and rows about the machine. Non-goals: mending anything but what `runner gc` mends. Trust
//! boundary: the trials run this program and nothing else, so they need no policy of this machine; what the probe says comes
//! from a sandbox.

mod error;
mod examine;
mod folder;
mod holes;
pub mod inside;
mod judge;
mod machine;
mod orphans;
mod record;
mod report;
mod seen;
mod trial;

pub use error::DoctorError;
pub use examine::examine;
pub use machine::{look as look_at_machine, release};
pub use orphans::stand_in;
pub use record::recorded;
pub use report::{Examined, Outcome, Report, Row, Unusable};
