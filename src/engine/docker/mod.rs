//! Sandboxes as containers of a Docker daemon.

pub mod settings;
