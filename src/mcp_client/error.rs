//! Why a talk with a server came to nothing.

use super::client::PROTOCOLS;
use super::lines::{MAX_BYTES, MAX_LINE, MAX_MESSAGES};
use super::offer::{MAX_PAGES, MAX_TOOLS};
use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::json::JsonError;

/// The talk with a server broke.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// It ended before it answered.
    #[error("the server ended before it answered `{method}`")]
    Ended {
        /// What it was asked.
        method: &'static str,
    },
    /// A line is longer than any message.
    #[error("the server wrote a line of more than {MAX_LINE} bytes")]
    LongLine,
    /// It said more than anybody has to say in one talk.
    #[error("the server said more than {MAX_MESSAGES} messages or {MAX_BYTES} bytes in one talk")]
    TooMuch,
    /// A line is no JSON that is read here.
    #[error("the server wrote a line that is no JSON: {0}")]
    NotJson(JsonError),
    /// A line is JSON, and no message.
    #[error("the server wrote a line that is no message: {0}")]
    NotMessage(String),
    /// It answered a question that nobody asked.
    #[error("the server answered a question that nobody asked it")]
    NotAsked,
    /// It speaks another version of the protocol.
    #[error(
        "the server speaks version {0:?} of the protocol, and this program {ours}",
        ours = PROTOCOLS.join(", ")
    )]
    Version(String),
    /// Its answer is not what the protocol says.
    #[error("the server's answer to `{method}` is not one: {why}")]
    BadAnswer {
        /// What it was asked.
        method: &'static str,
        /// What is wrong.
        why: String,
    },
    /// It offers more tools, or more pages of them, than are taken.
    #[error(
        "the server offers more than {MAX_TOOLS} tools, or more than {MAX_PAGES} pages of them"
    )]
    TooMany,
    /// It answered with an error.
    #[error("the server answered `{method}` with error {number}: {message}")]
    Refused {
        /// What it was asked.
        method: &'static str,
        /// Its number.
        number: i64,
        /// Its words.
        message: String,
    },
    /// Its streams broke.
    #[error("the talk with the server broke: {0}")]
    Stream(#[source] std::io::Error),
}

impl Failure for McpError {
    fn code(&self) -> Code {
        match self {
            Self::Ended { .. } | Self::Stream(_) => Code::McpEnded,
            Self::LongLine | Self::TooMuch | Self::TooMany => Code::McpTooLarge,
            Self::NotJson(_) | Self::NotMessage(_) | Self::NotAsked | Self::BadAnswer { .. } => {
                Code::McpProtocol
            }
            Self::Version(_) => Code::McpVersion,
            Self::Refused { .. } => Code::McpRefused,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Command
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Ended { .. } => Some(
                "look at what it wrote to standard error; under this policy it may lack a file, a variable or the net"
                    .to_owned(),
            ),
            Self::NotJson(_) | Self::NotMessage(_) => Some(
                "a server says nothing but messages on standard output; its log belongs on standard error"
                    .to_owned(),
            ),
            Self::TooMany => {
                Some("split the server; `tools` in the configuration takes a part of a list, not of its size".to_owned())
            }
            _ => None,
        }
    }
}
