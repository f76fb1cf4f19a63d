//! What can go wrong around the server: where it listens, its tokens, and its entries at clients.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// The server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Others on the network could read the tokens.
    #[error("{0} is not a loopback address, and tokens would travel unencrypted")]
    NotLoopback(SocketAddr),
    /// There can be no socket at that place.
    #[error("cannot serve at the socket {path}: {source}")]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operating system refused something.
    #[error("cannot serve: {0}")]
    Local(io::Error),
}

impl Failure for ServeError {
    fn code(&self) -> Code {
        match self {
            Self::Listen { .. } | Self::NotLoopback(_) | Self::Socket { .. } => Code::McpListen,
            Self::Local(_) => Code::LocalError,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Listen { .. } => Some("choose another address or port".to_owned()),
            Self::NotLoopback(_) => Some(
                "listen at 127.0.0.1 behind a proxy with TLS, or pass --plain to accept that"
                    .to_owned(),
            ),
            Self::Socket { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => Some(
                "another server listens there, or it is no socket; name another path".to_owned(),
            ),
            Self::Socket { .. } => Some("name a path in a folder of your own".to_owned()),
            Self::Local(_) => None,
        }
    }
}

/// The file of tokens cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// There is no folder for it.
    #[error("there is no folder for the file of tokens")]
    NoFolder,
    /// It cannot be read or written.
    #[error("cannot use the file of tokens {path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others own it or can read it.
    #[error("the file of tokens {0} belongs to another user, or others can read or change it")]
    Unsafe(PathBuf),
    /// It is not what was written.
    #[error("the file of tokens {path} is damaged: {why}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A token has this name.
    #[error("a token has the name {0} already")]
    Exists(String),
    /// No token has this name.
    #[error("no token has the name {0}")]
    Unknown(String),
}

impl Failure for TokenError {
    fn code(&self) -> Code {
        match self {
            Self::NoFolder | Self::Io { .. } | Self::Unsafe(_) | Self::Damaged { .. } => {
                Code::McpTokens
            }
            Self::Exists(_) | Self::Unknown(_) => Code::McpTokenName,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoFolder => "set HOME or XDG_STATE_HOME".to_owned(),
            Self::Io { .. } => "check the permissions of your state folder".to_owned(),
            Self::Unsafe(path) => format!("look at it, then chmod 600 {}", path.display()),
            Self::Damaged { .. } => "remove it, and make new tokens".to_owned(),
            Self::Exists(name) => format!("choose another name, or runner mcp token revoke {name}"),
            Self::Unknown(_) => "runner mcp token list shows all".to_owned(),
        })
    }
}

/// No entry was written for a client.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no home folder.
    #[error("there is no home folder to write the entry in")]
    NoHome,
    /// The client has no file in a project, or none for a user.
    #[error("{agent} has no configuration file {place}")]
    NoFile {
        /// Which client.
        agent: &'static str,
        /// Where.
        place: &'static str,
    },
    /// The file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not of a form that can be changed safely.
    #[error("cannot change {path}: {why}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What is in the way.
        why: String,
    },
}

impl Failure for InstallError {
    fn code(&self) -> Code {
        Code::McpInstall
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoHome => "set HOME".to_owned(),
            Self::NoFile { .. } => "leave --project out, or add it".to_owned(),
            Self::Io { .. } | Self::Unreadable { .. } => {
                "add the entry by hand: --print shows it".to_owned()
            }
        })
    }
}
