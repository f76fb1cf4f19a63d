//! Approvals: questions that wait for a person, and answers that hold.
//!
//! ```text
//! a call that must be asked about
//!    |-- an answer covers it ------------> runs, or is refused (never)
//!    |-- a person is at the terminal ----> once | this session | until a time | no | never
//!    +-- no terminal ------------------> a question with an id; `runner approve ID` answers it later
//! ```
//!
//! Duty: what an answer is about, how long it holds, and that it is kept: each question and each answer is a row of
//! its own and a record ([`Recorder`], which the ledger implements). An answer is bound ([`Binding`]) to who is
//! called, to the very content of that tool with all that it imports, to its arguments (exactly, or by a pattern that
//! the person gave), to the workspace and to the terms: policy, image, folder. A tool that has changed since voids the
//! answer, and the call says which file it was. An answer about a command holds for the files of the workspace that
//! its code is known to come from, as they were.
//! A never is the other way round: any doubt keeps it ([`Binding::forbids`]).
//!
//! Non-goals: deciding whether a question is needed (the policy and the tool's tier do), and putting it to a person
//! (the front does). Trust boundary: the call that asks is the adversary's; the rows are in the caller's own state
//! folder, which no sandbox sees. Answering needs a terminal, or a configuration that says otherwise.

mod binding;
mod book;
mod error;
mod id;
mod recorder;

pub(crate) use binding::first_difference;
pub use binding::{Asked, Binding, Bound, Covers, Deed, Part, Terms, Weight};
pub use book::{Book, Fits, Given, HIDDEN, Never, Ruling, Scope, State, Waiting};
pub(crate) use error::ANSWERED_THERE;
pub use error::ApprovalError;
pub use id::{ApprovalId, QuestionRef};
pub use recorder::{Note, Recorder};
