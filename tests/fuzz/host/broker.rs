//! The broker's own files, compiled without the rest of the host program: the bundler and the engine
//! would cost many minutes of instrumented building, and take part in nothing that is tried here. The
//! net is left out for the same reason; `NoNet` stands in.
#![allow(dead_code, unused_imports, reason = "not everything is used here")]

#[path = "../../../src/broker/answer.rs"]
mod answer;
#[path = "../../../src/broker/authority.rs"]
mod authority;
#[path = "../../../src/broker/body.rs"]
mod body;
#[path = "../../../src/broker/events.rs"]
mod events;
#[path = "../../../src/broker/exec.rs"]
mod exec;
#[path = "../../../src/broker/fetch.rs"]
mod fetch;
#[path = "../../../src/broker/files/mod.rs"]
mod files;
#[path = "../../../src/broker/frame.rs"]
pub mod frame;
#[path = "../../../src/broker/incoming.rs"]
mod incoming;
#[path = "../../../src/broker/job.rs"]
mod job;
#[path = "../../../src/broker/meter.rs"]
mod meter;
#[path = "../../../src/broker/outgoing.rs"]
mod outgoing;
#[path = "../../../src/broker/reader.rs"]
mod reader;
#[path = "../../../src/broker/refusal.rs"]
mod refusal;
#[path = "../../../src/broker/removals.rs"]
mod removals;
#[path = "../../../src/broker/request.rs"]
pub mod request;
#[path = "../../../src/broker/said.rs"]
mod said;
#[path = "../../../src/broker/serve.rs"]
mod serve;
#[path = "../../../src/broker/served.rs"]
mod served;
#[path = "../../../src/broker/talk.rs"]
mod talk;

pub use authority::{Authority, BrokerLimits};
pub use body::{Body, Source};
pub use events::{Events, Level, Log, Progress, Silent};
pub use exec::{Command, Exec, ExecReply, ExecRequest, NoExec};
pub use fetch::{FetchRequest, Fetched, Net, NoNet, Redirect};
pub use job::{Conversation, Form, Job, Mode};
pub use refusal::{Refusal, Unanswered, verdict};
pub use removals::{Destroys, FreeRemovals, Removals};
pub use serve::serve;
pub use served::{
    BrokerUsage, Brokered, Issue, ProtocolError, ServeError, Served, ToolEnd, ToolError,
};

pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
