//! How a question is named, as it is.
#![allow(dead_code, unused_imports, reason = "not everything is used here")]

#[path = "../../../src/approvals/id.rs"]
mod id;

pub use id::{ApprovalId, QuestionRef};
