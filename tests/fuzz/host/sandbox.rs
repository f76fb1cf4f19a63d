//! How a call is cancelled, as it is. `outcome` is a stand-in: the real one needs the engine.
#![allow(dead_code, reason = "not everything is used here")]

#[path = "../../../src/sandbox/cancel.rs"]
pub mod cancel;

pub mod outcome {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CancelCause {
        Interrupt,
        Terminate,
        OutputClosed,
        BrokerEnded,
    }
}
