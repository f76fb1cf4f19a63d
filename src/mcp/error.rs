//! Why a talk with a server came to nothing.

use std::fmt;

use super::client::PROTOCOLS;
use super::lines::{MAX_BYTES, MAX_LINE, MAX_MESSAGES};
use super::offer::{MAX_PAGES, MAX_TOOLS};
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::json::JsonError;

/// The talk with a server broke.
#[derive(Debug)]
pub enum McpError {
    /// It ended before it answered.
    Ended {
        /// What it was asked.
        method: &'static str,
    },
    /// A line is longer than any message.
    LongLine,
    /// It said more than anybody has to say in one talk.
    TooMuch,
    /// A line is no JSON that is read here.
    NotJson(JsonError),
    /// A line is JSON, and no message.
    NotMessage(String),
    /// It answered a question that nobody asked.
    NotAsked,
    /// It speaks another version of the protocol.
    Version(String),
    /// Its answer is not what the protocol says.
    BadAnswer {
        /// What it was asked.
        method: &'static str,
        /// What is wrong.
        why: String,
    },
    /// It offers more tools, or more pages of them, than are taken.
    TooMany,
    /// It answered with an error.
    Refused {
        /// What it was asked.
        method: &'static str,
        /// Its number.
        number: i64,
        /// Its words.
        message: String,
    },
    /// Its streams broke.
    Stream(std::io::Error),
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { method } => write!(f, "the server ended before it answered `{method}`"),
            Self::LongLine => {
                write!(f, "the server wrote a line of more than {MAX_LINE} bytes")
            }
            Self::TooMuch => write!(
                f,
                "the server said more than {MAX_MESSAGES} messages or {MAX_BYTES} bytes in one talk"
            ),
            Self::NotJson(error) => write!(f, "the server wrote a line that is no JSON: {error}"),
            Self::NotMessage(why) => {
                write!(f, "the server wrote a line that is no message: {why}")
            }
            Self::NotAsked => f.write_str("the server answered a question that nobody asked it"),
            Self::Version(version) => write!(
                f,
                "the server speaks version {version:?} of the protocol, and this program {}",
                PROTOCOLS.join(", ")
            ),
            Self::BadAnswer { method, why } => {
                write!(f, "the server's answer to `{method}` is not one: {why}")
            }
            Self::TooMany => write!(
                f,
                "the server offers more than {MAX_TOOLS} tools, or more than {MAX_PAGES} pages of them"
            ),
            Self::Refused { method, number, message } => {
                write!(f, "the server answered `{method}` with error {number}: {message}")
            }
            Self::Stream(error) => write!(f, "the talk with the server broke: {error}"),
        }
    }
}

impl std::error::Error for McpError {}

impl Failure for McpError {
    fn code(&self) -> &'static str {
        match self {
            Self::Ended { .. } | Self::Stream(_) => "mcp_ended",
            Self::LongLine | Self::TooMuch | Self::TooMany => "mcp_too_large",
            Self::NotJson(_) | Self::NotMessage(_) | Self::NotAsked | Self::BadAnswer { .. } => {
                "mcp_protocol"
            }
            Self::Version(_) => "mcp_version",
            Self::Refused { .. } => "mcp_refused",
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
