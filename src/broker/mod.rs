//! The host end of a tool's talk: answers what a tool asks, and asks the policy before each answer.
//!
//! Duty: speak the frames of the talk with the JavaScript runtime, turn each request into one typed
//! action, have it decided and done, answer. Non-goals: starting the sandbox and carrying bytes into it
//! (`sandbox`), running commands (behind [`Exec`]), reaching the net (behind [`Net`]). Trust boundary:
//! every byte of the stream is the tool's. What is not exactly a frame of the talk ends the call with
//! a typed error; what is, is judged by the policy on what it *resolved* to, and acts on the handle
//! that was judged.
//!
//! ```text
//! host                                            runtime (in the sandbox)
//!  | -- Start(job), Chunk* (code), End ----------> |
//!  | <------------------- Request(id, method) ---- |   several at once; answered as they complete
//!  | <------------------- Chunk*, End (body) ----- |   within the credit of that body
//!  | -- Credit(id) ------------------------------> |
//!  | -- Chunk*, Reply(id) -----------------------> |   exactly one Reply
//!  | <------------------- Cancel(id) ------------- |
//!  | <------------------- Note (log, progress) --- |
//!  | -- Abort(reason) ---------------------------> |   the host's own wish to end
//!  | <------------------- Result ----------------- |   the last frame
//! ```
//!
//! | part | duty |
//! | --- | --- |
//! | [`Refusal`] | what a tool gets instead of an answer |
//! | [`Exec`], [`Net`], [`Keep`](crate::undo::Keep), [`Body`] | the powers that others implement, and streamed bytes |
//! | [`Job`], [`Authority`], [`BrokerLimits`] | what a call is given |
//! | [`Served`], [`ServeError`] | how it went |
//! | [`serve`], `talk`, `answer` | the loop, its state, one request |
//! | [`frame`], [`request`], `said`, `strict` | bytes to frames, actions, notes and results |
//! | `incoming`, `outgoing`, `reader`, `meter` | bodies with credit, the writer's fair queue, counts |
//! | `files` | every `file.*` request |
//! | [`egress`] | connections of commands |
//! | [`inspect`] | requests of commands, where a rule inspects their connections |
//! | [`client`] | the other end, for tools that are part of this program |

mod answer;
mod authority;
mod body;
pub mod client;
pub mod egress;
mod events;
mod exec;
mod fetch;
mod files;
pub mod frame;
#[cfg(test)]
mod golden_tests;
mod incoming;
pub mod inspect;
mod job;
mod meter;
mod net;
mod outgoing;
mod reader;
mod refusal;
mod removals;
pub mod request;
mod said;
mod serve;
mod served;
mod talk;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use authority::{Authority, BrokerLimits};
pub use body::{Body, Source};
pub use events::{Events, Level, Log, Progress, Silent};
pub use exec::{Command, Exec, ExecReply, ExecRequest, NoExec};
pub use fetch::{FetchRequest, Fetched, Net, NoNet, Redirect};
pub(crate) use files::Files;
pub use job::{Conversation, Form, Job, Mode};
pub(crate) use net::spelled;
pub use net::{AllApproved, Asked, Fetcher, NetApproval, NoneApproved, Sent};
pub use refusal::{Refusal, Unanswered, verdict};
pub use removals::{Destroys, FreeRemovals, Removals};
pub use serve::serve;
pub use served::{
    BrokerUsage, Brokered, Issue, ProtocolError, ServeError, Served, ToolEnd, ToolError,
};

/// A future behind a trait object.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
