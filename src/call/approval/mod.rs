//! Asking before something runs that a policy, a tool's author or a tool's tier wants a person to see.
//!
//! Duty: the question, whole, and the way from it to an answer: first what the book of approvals says, then a person
//! if one is there, else a question that waits with an id. Non-goals: how a question looks (the front's), how answers
//! are kept (`approvals`). Trust boundary: everything in a question may be the adversary's text.

mod action;
mod deeds;
mod question;
mod settle;

pub(super) use action::Action;
pub(super) use deeds::{removal, request};
pub use question::{About, Question};
pub(super) use question::{Fed, effects};
pub use settle::{Always, Approver, Asking, Reply, Spent, Unapproved};
pub(super) use settle::{Answer, Inquiry, put};
