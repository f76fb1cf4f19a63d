//! From a plan to an outcome: a call's sandbox is claimed or made, proved, run and let go.
//!
//! Duty: the order of these steps, and that no sandbox outlives its call, whatever kills this process.
//! Non-goals: planning a sandbox and moving its streams (`sandbox` does), keeping sandboxes that wait
//! (`pool` does), records (the call does). Trust boundary: a guest is believed nothing before it has
//! answered for every mount, whether its sandbox is new or waited in the pool.
//!
//! | part | duty |
//! | --- | --- |
//! | [`run`] | the steps, as types that consume each other |
//! | [`ahead`] | what a call has before its plan: a watchdog, and perhaps a sandbox on a guess |
//! | `wake` | the first words with a guest, new or waiting |
//! | [`watchdog`] | a child process that removes the sandbox if this process dies |
//! | [`farewell`] | the end of a sandbox, after its answer is given |
//! | [`outcome`] | what is left of a call that ended |

pub mod ahead;
pub mod farewell;
pub mod outcome;
pub mod run;
mod wake;
pub mod watchdog;
