//! What the client library and the daemon's sentences mean, as errors of an engine.

use std::path::PathBuf;

use crate::engine::error::EngineError;

impl EngineError {
    /// An error that the client library reports for an operation.
    pub(super) fn from_client(operation: &'static str, error: bollard::errors::Error) -> Self {
        use bollard::errors::Error;
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                Self::refused(operation, status_code, message)
            }
            Error::DockerStreamError { error } => Self::refused(operation, 500, error),
            Error::RequestTimeoutError => Self::Slow { operation },
            Error::SocketNotFoundError(endpoint) => Self::Missing { endpoint },
            other => Self::Lost { operation, why: other.to_string() },
        }
    }

    /// The daemon has no codes for most of what can go wrong, only sentences.
    fn refused(operation: &'static str, status: u16, message: String) -> Self {
        let lower = message.to_lowercase();
        if lower.contains("no space left on device") || lower.contains("disk quota exceeded") {
            return Self::OutOfDisk { operation };
        }
        if let Some((_, path)) = message.split_once("bind source path does not exist: ") {
            return Self::MountGone { path: PathBuf::from(path.trim()) };
        }
        if let Some((_, why)) = message.split_once("failed to mount local volume: ") {
            return Self::NoOverlay { why: why.trim().to_owned() };
        }
        if lower.contains("unknown runtime") || lower.contains("unknown or invalid runtime") {
            let runtime = message.rsplit([' ', ':']).next().unwrap_or("").to_owned();
            return Self::RuntimeMissing { runtime };
        }
        if status == 404 && lower.contains("no such image") {
            let reference = message.rsplit(": ").next().unwrap_or("").to_owned();
            return Self::ImageMissing { reference };
        }
        Self::Refused { operation, status, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure as _;

    #[test]
    fn sentences_of_the_daemon_become_errors_of_their_own() {
        let read = |status, message: &str| {
            EngineError::refused("make a sandbox", status, message.to_owned()).code()
        };
        assert_eq!(read(500, "write /x: no space left on device"), "engine_out_of_disk");
        assert_eq!(read(404, "No such image: a:b"), "image_missing");
        assert_eq!(read(404, "No such container: a"), "engine_refused");
        assert_eq!(
            read(
                400,
                "invalid mount config for type \"bind\": bind source path does not exist: /a b"
            ),
            "mount_gone"
        );
        assert_eq!(
            read(
                500,
                "failed to mount local volume: mount overlay:/x, data: lowerdir=/a:/b: invalid argument"
            ),
            "overlay_refused"
        );
        assert_eq!(read(400, "Unknown runtime specified runsc"), "runtime_missing");
    }
}
