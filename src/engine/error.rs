//! Why an engine could not do something, told apart by what to do next.

use std::path::PathBuf;

use super::docker::settings::SettingsError;
use super::embedded::LaunchError;
use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;

/// What an engine could not do.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Nobody answers.
    #[error("no Docker engine answers at {endpoint}")]
    Missing {
        /// Where.
        endpoint: String,
    },
    /// This user may not use it.
    #[error("this user may not use the Docker engine at {endpoint}")]
    NotPermitted {
        /// Where.
        endpoint: String,
    },
    /// An address that this program does not speak to.
    #[error("DOCKER_HOST is {endpoint:?}, which runner does not speak to")]
    BadEndpoint {
        /// As it was given.
        endpoint: String,
    },
    /// The daemon is older than what is needed.
    #[error(
        "the Docker engine speaks protocol {api}; at least {} is needed",
        super::docker::API_MIN
    )]
    TooOld {
        /// The version of its protocol.
        api: String,
    },
    /// The daemon does not run Linux containers.
    #[error("the Docker engine runs {os} containers")]
    NotLinux {
        /// What it runs.
        os: String,
    },
    /// Its disk is full.
    #[error("cannot {operation}: the Docker engine's disk is full")]
    OutOfDisk {
        /// What was tried.
        operation: &'static str,
    },
    /// The image is not there.
    #[error("image {reference} is not there")]
    ImageMissing {
        /// Its reference.
        reference: String,
    },
    /// The runtime is not there.
    #[error("the Docker engine has no runtime {runtime}")]
    RuntimeMissing {
        /// Its name.
        runtime: String,
    },
    /// What should be mounted is gone.
    #[error("{path} vanished before it was mounted")]
    MountGone {
        /// Its path.
        path: PathBuf,
    },
    /// The kernel refuses an overlay of the workspace.
    #[error("the workspace cannot be shown as an overlay: {why}")]
    NoOverlay {
        /// The daemon's words.
        why: String,
    },
    /// The daemon's file system is not ours, and the `host` image needs that.
    #[error("the Docker engine at {endpoint} does not see this machine's files")]
    AnotherFileSystem {
        /// Where the daemon is.
        endpoint: String,
    },
    /// The plan cannot be made into settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The daemon says no.
    #[error("cannot {operation}: Docker answered {status}: {message}")]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// Its status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The daemon stopped answering.
    #[error("cannot {operation}: the Docker engine stopped answering: {why}")]
    Lost {
        /// What was tried.
        operation: &'static str,
        /// What happened.
        why: String,
    },
    /// The daemon takes too long.
    #[error("cannot {operation}: the Docker engine takes too long")]
    Slow {
        /// What was tried.
        operation: &'static str,
    },
    /// The kernel made no sandbox.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// None of the engines that may be used can be.
    #[error("no engine can be used: {first}; and {last}")]
    NoneUsable {
        /// Why the first cannot.
        first: Box<EngineError>,
        /// Why the last cannot.
        last: Box<EngineError>,
    },
    /// A file of our own cannot be read or written.
    #[error("cannot {operation}: {source}")]
    Local {
        /// What was tried.
        operation: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

impl EngineError {
    /// Whether there is no engine for this user: another one may be.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::NotPermitted { .. } => true,
            Self::Launch(error) => error.is_out_of_reach(),
            _ => false,
        }
    }

    /// Whether the daemon said that the thing is not there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. } | Self::ImageMissing { .. })
    }
}

impl Failure for EngineError {
    fn code(&self) -> Code {
        match self {
            Self::Missing { .. } => Code::EngineMissing,
            Self::NotPermitted { .. } => Code::EngineNotPermitted,
            Self::BadEndpoint { .. } => Code::EngineBadEndpoint,
            Self::TooOld { .. } => Code::EngineTooOld,
            Self::NotLinux { .. } => Code::EngineNotLinux,
            Self::OutOfDisk { .. } => Code::EngineOutOfDisk,
            Self::ImageMissing { .. } => Code::ImageMissing,
            Self::RuntimeMissing { .. } => Code::RuntimeMissing,
            Self::MountGone { .. } => Code::MountGone,
            Self::NoOverlay { .. } => Code::OverlayRefused,
            Self::AnotherFileSystem { .. } => Code::EngineElsewhere,
            Self::Settings(_) => Code::UnmountablePath,
            Self::Refused { .. } => Code::EngineRefused,
            Self::Lost { .. } => Code::EngineLost,
            Self::Slow { .. } => Code::EngineSlow,
            Self::Launch(error) => error.code(),
            Self::NoneUsable { last, .. } => last.code(),
            Self::Local { .. } => Code::LocalFile,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        match self {
            Self::BadEndpoint { .. } | Self::Settings(_) => Fault::Usage,
            Self::ImageMissing { .. }
            | Self::RuntimeMissing { .. }
            | Self::Launch(LaunchError::ForeignImage { .. } | LaunchError::ForeignRuntime { .. }) => {
                Fault::Policy
            }
            _ => Fault::Engine,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Lost { .. }
            | Self::Slow { .. }
            | Self::MountGone { .. }
            | Self::Launch(LaunchError::GroupsChanged) => Retry::CanHelp,
            _ => Retry::CannotHelp,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing { .. } => {
                "install Docker and start it (systemctl start docker), or point DOCKER_HOST at a running engine"
                    .to_owned()
            }
            Self::NotPermitted { .. } => {
                "add yourself to the docker group and log in again, or use rootless Docker".to_owned()
            }
            Self::BadEndpoint { .. } => {
                "use unix:///path/to/docker.sock or tcp://host:port; for ssh, forward the socket".to_owned()
            }
            Self::TooOld { .. } => "upgrade Docker to 20.10 or newer".to_owned(),
            Self::NotLinux { .. } => "switch the engine to Linux containers".to_owned(),
            Self::OutOfDisk { .. } => {
                "free space (docker system df shows where it went, docker system prune frees it)".to_owned()
            }
            Self::ImageMissing { reference } => format!("docker pull {reference}"),
            Self::RuntimeMissing { .. } => {
                "install the runtime and name it in the engine's daemon.json, or choose another in the policy"
                    .to_owned()
            }
            Self::AnotherFileSystem { .. } => {
                "name an image in the policy (image: …) instead of host, or use an engine on this machine"
                    .to_owned()
            }
            Self::Lost { .. } | Self::Slow { .. } => {
                "look at the engine's log (journalctl -u docker) and try again".to_owned()
            }
            Self::MountGone { .. } => "try again when nothing else changes the workspace".to_owned(),
            Self::NoOverlay { .. } => {
                "the state folder must be on a file system that overlayfs can write to (ext4, xfs, btrfs or tmpfs: set \
                 XDG_STATE_HOME), and the workspace on one that it can read; see docs/staged-writes.md"
                    .to_owned()
            }
            Self::Launch(error) => return error.hint(),
            Self::NoneUsable { first, last } => {
                let hints = [first.hint(), last.hint()];
                hints.into_iter().flatten().collect::<Vec<_>>().join("\nor ")
            }
            Self::Settings(_) | Self::Refused { .. } | Self::Local { .. } => return None,
        })
    }
}
