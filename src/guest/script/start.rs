//! Processes of a line: programs, and copies of this process for subshells, pipelines and `$(…)`.

use super::{Leave, Shell, broken};
use crate::program::{Said, Teller};
use crate::stage::{self, Env};
use crate::sys;
use runner_wire::{Block, Broken, Bytes, Programs, Redirect, Why};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The most that `$(…)` takes.
const OUTPUT_MAX: usize = 8 << 20;

/// The most bytes of a report that a copy writes before its end. A pipe takes as much while nobody reads.
const REPORT_MAX: usize = 32 << 10;

/// The status of a line that ended at a word which was not what had been assumed.
const BROKEN: u8 = 126;

/// A process that was started.
pub(super) struct Child {
    pid: u32,
    report: File,
}

/// How a process ended.
pub(super) struct Ended {
    pub status: u8,
    /// Whether it wrote where nobody reads.
    pub piped: bool,
    pub broken: Option<Broken>,
}

impl Shell {
    /// Starts a copy of this process with these standard streams, which does one thing and ends. `ours` is the end of a
    /// pipe that the copy must not hold: who writes into the pipe would not learn that nobody reads.
    pub(super) fn fork(
        &mut self,
        streams: [Option<OwnedFd>; 2],
        ours: Option<&OwnedFd>,
        does: impl FnOnce(&mut Self, Teller) -> u8,
    ) -> io::Result<Child> {
        let (report, writer) = io::pipe()?;
        let (report, writer) = (sys::high(report.as_fd())?, sys::high(writer.as_fd())?);
        match sys::fork()? {
            Some(pid) => Ok(Child { pid, report: File::from(report) }),
            None => {
                drop(report);
                if let Some(ours) = ours {
                    sys::close(ours.as_raw_fd());
                }
                self.programs = Programs::default();
                self.ear = None;
                let mut placed = Ok(());
                for (number, stream) in (0..).zip(&streams) {
                    if let Some(stream) = stream {
                        placed = placed.and_then(|()| sys::place(stream.as_raw_fd(), number));
                    }
                }
                drop(streams);
                let status = match placed {
                    Ok(()) => does(self, Teller::new(File::from(writer))),
                    Err(_) => 126,
                };
                sys::exit(status)
            }
        }
    }

    /// A copy that runs part of the line.
    pub(super) fn copy(
        &mut self,
        streams: [Option<OwnedFd>; 2],
        ours: Option<&OwnedFd>,
        does: impl FnOnce(&mut Self) -> Result<(), Leave>,
    ) -> io::Result<Child> {
        self.fork(streams, ours, |shell, teller| {
            let left = does(shell);
            shell.tell(left, teller)
        })
    }

    /// The last word of a process of the line: what ran, and why it ended.
    pub(super) fn tell(&mut self, left: Result<(), Leave>, mut teller: Teller) -> u8 {
        let broken = match left {
            Err(Leave::Broken(broken)) => {
                self.status = BROKEN;
                Some(broken)
            }
            _ => None,
        };
        let mut programs = std::mem::take(&mut self.programs);
        let mut size = 0;
        let all = programs.ran.len();
        let fits = programs.ran.iter().take_while(|ran| {
            // At worst six characters a byte.
            size += 6 * (ran.name.0.len() + ran.path.0.len()) + 64;
            size <= REPORT_MAX
        });
        let count = fits.count();
        programs.ran.truncate(count);
        programs.left_out += (all - count) as u64;
        teller.ended(programs, broken);
        self.status
    }

    /// Waits for a process, and takes over what it tells.
    pub(super) fn wait(&mut self, child: Child) -> Ended {
        let mut told = Vec::new();
        let mut report = child.report;
        let _ = report.read_to_end(&mut told);
        let mut broken = None;
        let known = self.programs.ran.len();
        match Said::last(&told) {
            // It is that program from now on.
            Some(Said::Trying(ran)) => self.programs.add(ran),
            Some(Said::Ended { programs, broken: found }) => {
                programs.ran.into_iter().for_each(|ran| self.programs.add(ran));
                self.programs.left_out += programs.left_out;
                broken = found;
            }
            Some(Said::NotIt | Said::Failed(_)) | None => {}
        }
        if let Some(ear) = self.ear.as_mut().filter(|_| self.programs.ran.len() > known) {
            ear.so_far(&self.programs);
        }
        let reaped = sys::wait_for(child.pid);
        let (status, piped) = match reaped {
            Some(reaped) => {
                let signal = reaped.signal.map(|signal| 128 + signal);
                let status = reaped.status.or(signal).unwrap_or(126);
                (u8::try_from(status & 0xff).unwrap_or(126), reaped.signal == Some(libc::SIGPIPE))
            }
            None => (126, false),
        };
        Ended { status, piped, broken }
    }

    /// What a block writes to standard output.
    pub(super) fn capture(&mut self, block: Block) -> Result<Vec<u8>, Leave> {
        let Ok(pipe) = io::pipe() else { return Err(self.cannot_start()) };
        let (Ok(reader), Ok(writer)) = (sys::high(pipe.0.as_fd()), sys::high(pipe.1.as_fd()))
        else {
            return Err(self.cannot_start());
        };
        drop(pipe);
        let child = self.copy([None, Some(writer)], Some(&reader), |shell| {
            // As bash has it.
            shell.errexit = false;
            shell.block(block)
        });
        let Ok(child) = child else { return Err(self.cannot_start()) };
        let mut text = Vec::new();
        let mut reader = File::from(reader);
        let mut most = Read::by_ref(&mut reader).take(OUTPUT_MAX as u64 + 1);
        let _ = most.read_to_end(&mut text);
        drop(reader);
        let ended = self.wait(child);
        if let Some(broken) = ended.broken {
            return Err(Leave::Broken(broken));
        }
        if text.len() > OUTPUT_MAX {
            return Err(broken(&text, Why::Count));
        }
        self.status = ended.status;
        self.substituted = true;
        Ok(text)
    }

    fn cannot_start(&mut self) -> Leave {
        self.say(b"fork: Resource temporarily unavailable");
        self.status = 254;
        Leave::Exit
    }

    pub(super) fn say(&self, text: &[u8]) {
        let _ = io::stderr().write_all(&[text, b"\n"].concat());
    }
}

/// Becomes a program, in a copy of the shell; its status if that failed.
pub(super) fn become_program(
    words: Vec<Bytes>,
    env: &Env,
    redirects: &[Redirect],
    mut teller: Teller,
) -> u8 {
    // Redirections may name `/dev/stdout`.
    let _ = sys::set_dumpable();
    for redirect in redirects {
        if let Err((what, error)) = stage::apply(redirect) {
            return stage::complain(&what, &error, 1);
        }
    }
    let _ = sys::set_undumpable();
    let name = words.first().cloned().unwrap_or_default();
    let error = stage::execute(None, words, env, None, &mut teller);
    stage::complain(&name.0, &error, stage::cannot_start(&error))
}
