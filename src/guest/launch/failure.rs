//! Which step of a launch failed, at what, and why.

use runner_wire::{Bytes, LaunchFailure, LaunchStep};
use std::io;

/// A launch that failed.
#[derive(Debug)]
pub struct Failed(pub LaunchFailure);

impl Failed {
    /// The kernel, or a file, refused.
    pub fn io(step: LaunchStep, error: &io::Error) -> Self {
        Self(LaunchFailure { step, object: None, errno: error.raw_os_error() })
    }

    /// The same at one object.
    pub fn at(step: LaunchStep, object: &Bytes, errno: Option<i32>) -> Self {
        Self(LaunchFailure { step, object: Some(object.clone()), errno })
    }
}

/// Says which step an operation belongs to.
pub trait Trying<T> {
    /// A step without an object.
    fn trying(self, step: LaunchStep) -> Result<T, Failed>;

    /// A step at this path or name.
    fn trying_at(self, step: LaunchStep, object: &Bytes) -> Result<T, Failed>;
}

impl<T> Trying<T> for io::Result<T> {
    fn trying(self, step: LaunchStep) -> Result<T, Failed> {
        self.map_err(|error| Failed::io(step, &error))
    }

    fn trying_at(self, step: LaunchStep, object: &Bytes) -> Result<T, Failed> {
        self.map_err(|error| Failed::at(step, object, error.raw_os_error()))
    }
}
