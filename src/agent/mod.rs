//! Coding agents as callers: hooks that rewrite an agent's shell call, and the command they rewrite it to.
//!
//! ```text
//!  agent --JSON--> runner hook AGENT --JSON--> agent --sh -c--> runner agent exec AGENT SESSION TICKET LINE
//!                       |                                                |
//!                    pin, decide                               pin, ticket, call::run
//! ```
//!
//! Duty: read what an agent says of a tool call ([`input`]), answer in its own form ([`answer`]), run what was rewritten
//! ([`exec`]), and put the hook into the agent's configuration and out of it again ([`install`]). Non-goals: deciding
//! and running, which are [`crate::call`]'s.
//!
//! Trust boundary: everything that an agent sends, and every variable of its environment, may be the adversary's: a
//! repository's agent settings can set variables, and the model writes the line. So `hook` and `exec` read no variable.
//! What holds was pinned by the person who installed the hook, in a file below the home of the user's account
//! ([`pin`]), which no workspace can hold.

mod account;
mod answer;
pub mod check;
mod error;
mod exec;
mod hook;
mod input;
pub mod install;
mod judge;
mod kind;
mod pin;
mod place;
mod quote;
mod rules;
mod session;
mod status;
mod ticket;

pub use account::account_home;
pub use answer::{Answer, Said, refusal};
pub use error::AgentError;
pub use exec::{Order, Ran, run};
pub use hook::{answer, answer_in_time, read_bounded};
pub use kind::{Agent, Layer};
pub use pin::{Pin, Pinned, Prompts};
pub use place::Place;
pub use quote::quoted;
pub use rules::{Rules, rules_of};
pub use status::{Standing, standing};
