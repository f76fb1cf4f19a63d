//! The tool's end of a talk, for tools that are part of this program.
//!
//! Duty: speak the same frames as the JavaScript runtime, so that a built-in tool has no way of its own: whatever it
//! wants, it asks the broker for, over a stream, and gets an answer or a refusal. Non-goals: deciding anything. Trust
//! boundary: none here. Both ends are ours; but what a built-in tool reads is foreign, so what an answer may
//! hold is bounded by whoever asks.
//!
//! | part | duty |
//! | --- | --- |
//! | [`converse`] | one talk: the job, the work, the result |
//! | `link` | numbers of requests, answers to whom they belong, credit |
//! | [`Client`] | every request as a function |
//! | [`Refused`], [`Thrown`] | what comes instead of an answer, and what a tool ends with instead of a value |

mod ask;
mod converse;
mod link;
mod thrown;

pub use ask::{Client, Contents, Entry, Exec, Fetch, Listing, Paths, Ran, Response, Stat};
pub use converse::{Call, converse};
pub use thrown::{Refused, Thrown};
