//! Sandboxes that wait: used once, by exactly the calls that they were planned for, and gone by themselves.

mod caller;
mod changed;
mod crowd;
mod ends;
mod killed;
mod large;
mod tools;
mod unfit;
mod warm;

pub use caller::{
    Caller, files, processes, sandbox, sandboxes, state, until, until_gone, until_nothing_is_left,
    used_once,
};
