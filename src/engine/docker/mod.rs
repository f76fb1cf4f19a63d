//! Sandboxes as containers of a Docker daemon, on a local socket, a rootless one, or `DOCKER_HOST`.
//!
//! Protocol versions from 20.10 (1.41) to the newest that the client library knows.

mod archive;
mod cache;
mod connect;
mod container;
mod image;
mod line;
mod probe;
pub mod settings;

pub use cache::folder as cache_folder;
pub use connect::{API_MIN, Docker, REQUEST_WAIT};
pub use image::volume_name;
pub use line::Line;
pub use settings::recipe;
