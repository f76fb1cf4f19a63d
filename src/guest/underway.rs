//! What was started, with its streams: the part of a call that may exist before the call does.

use crate::job::Job;
use crate::link::LinkError;
use crate::stdio::{self, Input, Output};
use runner_wire::{Channel, Port, Start, Stdin};

/// Processes and the guest's ends of their streams.
pub struct Underway {
    /// The processes.
    pub job: Job,
    /// Standard input, and what the broker says.
    pub inputs: [Input; 2],
    /// Standard output, standard error, and what a tool says.
    pub outputs: [Output; 3],
    /// Which of the outputs the host knows to be over, or never had.
    pub closed: [bool; 3],
}

impl Underway {
    /// Starts what the order says.
    pub fn begin(start: Start) -> Result<Self, LinkError> {
        let (input, stdin) = match start.stdin {
            Stdin::Pipe => Input::open()?,
            Stdin::Null => Input::none()?,
        };
        let (out, stdout) = Output::open(Channel::STDOUT)?;
        let (err, stderr) = Output::open(Channel::STDERR)?;
        let (heard, said, port) = match start.port {
            Port::Tool => {
                let (heard, said, port) = stdio::talk()?;
                (heard, said, Some(port))
            }
            Port::Closed => {
                let (heard, said) = stdio::no_talk();
                (heard, said, None)
            }
        };
        let closed = [false, false, port.is_none()];
        Ok(Self {
            job: Job::begin(start, [stdin, stdout, stderr], port)?,
            inputs: [input, heard],
            outputs: [out, err, said],
            closed,
        })
    }
}
