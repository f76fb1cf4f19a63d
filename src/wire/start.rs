//! The order to start: what runs, in what, and within which limits; or that what waits is taken over.

use crate::bytes::Bytes;
use crate::codec::WireError;
use crate::line::Line;
use crate::network::Network;
use crate::script::Script;
use serde::{Deserialize, Serialize};

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// A command, a line, or what runs already.
    pub work: Work,
    /// The whole environment.
    pub env: Vec<(Bytes, Bytes)>,
    /// The working directory, absolute.
    pub cwd: Bytes,
    /// Permission bits that new files never get.
    pub umask: u32,
    /// What the command has as standard input.
    pub stdin: Stdin,
    /// What the command has as descriptor 3.
    pub port: Port,
    /// What the guest enforces.
    pub limits: StartLimits,
    /// Which connections the guest accepts; none without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// What a command has as standard input. Programs tell the two apart: some read a pipe and do something
/// else without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// The null device.
    Null,
    /// A pipe, into which the host's bytes go.
    Pipe,
}

/// What a command has as descriptor 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Port {
    /// Nothing.
    Closed,
    /// A socket; what goes through it is the channel [`Channel::TOOL`].
    Tool,
}

/// A command, a line, or what runs already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Work {
    /// One program.
    Argv {
        /// Its arguments; the first is its name.
        argv: Vec<Bytes>,
        /// The file to execute, if the host bound the name to one; else PATH is searched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<Bytes>,
    },
    /// A line that only a shell reads: for `bash` where PATH has one, else for `sh`.
    Shell {
        /// The line.
        text: Bytes,
    },
    /// A line that the guest executes itself.
    Line(Line),
    /// A line with variables, conditions or loops.
    Script(Box<Script>),
    /// The process that the guest started before its first word, and that waits. All but the time
    /// and the output of this order must be what that process was started with.
    Waiting,
}

/// What the guest enforces; memory, processors and pids are the container's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartLimits {
    /// Time to the end.
    pub wall_ms: u64,
    /// Processor time of one process.
    pub cpu_ms: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Size of one written file.
    pub file_size: u64,
    /// Bytes of both output streams at which the call ends.
    pub output_max: u64,
    /// Memory of all processes together, if no control group holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_memory: Option<u64>,
    /// Processes and threads, if neither a control group nor a limit of the user holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched_pids: Option<u64>,
}

impl Start {
    /// Whether this order may take over what was started by `earlier`, which has been waiting since.
    ///
    /// # Errors
    /// It asks for other work, or for what a running process cannot become.
    pub fn takes_over(&self, earlier: &Self) -> Result<(), WireError> {
        if self.work != Work::Waiting {
            return Err(WireError::Occupied);
        }
        let limits = StartLimits {
            wall_ms: self.limits.wall_ms,
            output_max: self.limits.output_max,
            ..earlier.limits
        };
        let same = Self { work: Work::Waiting, limits, ..earlier.clone() };
        if *self == same { Ok(()) } else { Err(WireError::Differs) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier() -> Start {
        Start {
            work: Work::Argv { argv: vec![Bytes::from("node")], program: None },
            env: vec![(Bytes::from("PATH"), Bytes::from("/usr/bin"))],
            cwd: Bytes::from("/"),
            umask: 0o077,
            stdin: Stdin::Null,
            port: Port::Tool,
            limits: StartLimits {
                wall_ms: 1,
                cpu_ms: 2,
                open_files: 3,
                file_size: 4,
                output_max: 5,
                watched_memory: None,
                watched_pids: None,
            },
            network: None,
        }
    }

    #[test]
    fn time_and_output_are_those_of_the_call() {
        let mut start = Start { work: Work::Waiting, ..earlier() };
        start.limits.wall_ms = 100;
        start.limits.output_max = 200;
        assert_eq!(start.takes_over(&earlier()), Ok(()));
    }

    #[test]
    fn what_a_running_process_cannot_become_is_refused() {
        assert_eq!(earlier().takes_over(&earlier()), Err(WireError::Occupied));
        let changes: [fn(&mut Start); 9] = [
            |start| start.env.clear(),
            |start| start.cwd = Bytes::from("/w"),
            |start| start.umask = 0,
            |start| start.stdin = Stdin::Pipe,
            |start| start.port = Port::Closed,
            |start| start.limits.cpu_ms += 1,
            |start| start.limits.open_files += 1,
            |start| start.limits.file_size += 1,
            |start| start.network = Some(Network { names: vec![], ports: vec![443] }),
        ];
        for change in changes {
            let mut start = Start { work: Work::Waiting, ..earlier() };
            change(&mut start);
            assert_eq!(start.takes_over(&earlier()), Err(WireError::Differs), "{start:?}");
        }
    }
}
