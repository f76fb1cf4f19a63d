//! What the broker uses of the sandbox: the workspace, walks and protected paths, as they are.
#![allow(dead_code, reason = "not everything is used here")]

#[path = "../../../src/sandbox/cancel.rs"]
pub mod cancel;
#[path = "../../../src/sandbox/protected.rs"]
pub mod protected;
#[path = "../../../src/sandbox/walk.rs"]
pub mod walk;
#[path = "../../../src/sandbox/workspace.rs"]
pub mod workspace;

pub mod outcome {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CancelCause {
        Interrupt,
        Terminate,
        OutputClosed,
    }
}

pub mod plan {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Identity {
        pub dev: u64,
        pub ino: u64,
    }
}
