//! Sandboxes as containers of a Docker daemon, on a local socket, a rootless one, or `DOCKER_HOST`.
//!
//! Protocol versions from 20.10 (1.41) to the newest that the client library knows.

mod archive;
mod cache;
mod connect;
mod container;
mod error;
mod image;
mod line;
mod overlay;
mod probe;
pub(crate) mod settings;
mod starting;
mod volume;

pub use connect::{API_MIN, Docker};
pub use image::volume_name;
