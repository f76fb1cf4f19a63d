//! The life of a process that holds one sandbox until a call wants it.
//!
//! It runs no event loop and starts no thread: it waits in one place for a client, for the guest's end and for its time to
//! be over. Whatever goes wrong ends it, and the sandbox with it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use runner_wire::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::folder::Folder;
use super::words::{Answer, END, Order, TAKE, hand_over, peer};
use crate::engine::embedded::guest_folder;
use crate::engine::embedded::process::{self, END_WAIT, WORDS_MAX};
use crate::engine::error::EngineError;
use crate::sys;
use crate::sys::lease::{Exclusive, Lease};

/// The first argument of a holder: not an option that a person would type.
pub(super) const ARGUMENT: &str = "--internal-holder";

/// How much later than the guest's clock the holder's ends a sandbox.
const SLACK: Duration = Duration::from_secs(5);

/// Clients that may be connected and have said nothing. One that knows what it wants says it at once; of more than these,
/// the oldest is let go.
const SILENT_MAX: usize = 8;

/// The whole life of a holder, if these are the words of one.
#[must_use]
pub fn main(words: &[OsString]) -> Option<ExitCode> {
    let [_, argument] = words else { return None };
    if argument != ARGUMENT {
        return None;
    }
    Some(if hold().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn hold() -> io::Result<()> {
    sys::unblock_signals()?;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let mut maker = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // One copy alone, so that closing it is an end for its maker.
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    let mut text = Vec::new();
    maker.read_to_end(&mut text)?;
    let order: Order = serde_json::from_slice(&text)?;
    drop(text);
    match Holding::begin(&order, &maker) {
        Ok(holding) => {
            // Who made it is gone: nobody knows of it.
            if tell(&mut maker, &Answer::Waits).is_err() {
                return holding.end();
            }
            drop((maker, order));
            holding.wait()
        }
        Err(failed) => tell(&mut maker, &failed),
    }
}

fn tell(maker: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    maker.write_all(&serde_json::to_vec(answer)?)
}

/// A sandbox in which the guest waits.
struct Holding {
    launcher: Launcher,
    wire: UnixStream,
    listener: UnixListener,
    folder: Folder,
    label: String,
    lease: Lease<Exclusive>,
    until: Instant,
}

/// The launcher of a sandbox. Dropped, it is waited for by whoever is the parent then.
struct Launcher {
    child: Child,
    handle: OwnedFd,
}

/// What ended the wait.
enum Next {
    /// A client wants the wire.
    Take(UnixStream),
    /// A client wants an end.
    End(UnixStream),
    /// The guest has ended, or said something unasked; or its time is over.
    Over,
}

impl Holding {
    /// Makes the sandbox.
    fn begin(order: &Order, maker: &UnixStream) -> Result<Self, Answer> {
        let local =
            |what: &'static str| move |error: io::Error| failed(&format!("cannot {what}: {error}"));
        let engine = |error: EngineError| failed(&error);
        let folder = Folder::make(Path::new(order.folder.as_os())).map_err(engine)?;
        let lease = folder.hold(&order.label, &order.labels);
        let lease = lease.map_err(local("say whose the sandbox is"))?;
        match Made::by(order, &folder, maker) {
            Ok(Made { launcher, wire, listener, until }) => {
                let label = order.label.clone();
                Ok(Self { launcher, wire, listener, folder, label, lease, until })
            }
            Err(answer) => {
                let _ = lease.remove();
                Err(answer)
            }
        }
    }

    /// Waits for whatever comes first.
    fn wait(self) -> io::Result<()> {
        match self.next()? {
            Next::Take(client) => self.give(&client),
            Next::End(mut client) => {
                self.end()?;
                client.write_all(&[END])
            }
            Next::Over => self.end(),
        }
    }

    fn next(&self) -> io::Result<Next> {
        let mut clients: Vec<UnixStream> = Vec::new();
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Next::Over);
            }
            let mut polls = vec![
                PollFd::new(&self.wire, PollFlags::IN | PollFlags::RDHUP),
                PollFd::new(&self.listener, PollFlags::IN),
            ];
            polls.extend(clients.iter().map(|client| PollFd::new(client, PollFlags::IN)));
            match poll(&mut polls, Some(&timespec(left)?)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = polls.iter().map(|poll| !poll.revents().is_empty()).collect();
            drop(polls);
            // A guest that waits says nothing: it has ended, or what waits in it has.
            if ready[0] {
                return Ok(Next::Over);
            }
            let mut silent = Vec::new();
            for (client, speaks) in clients.into_iter().zip(&ready[2..]) {
                if !speaks {
                    silent.push(client);
                    continue;
                }
                match word(&client) {
                    Some(TAKE) => return Ok(Next::Take(client)),
                    Some(END) => return Ok(Next::End(client)),
                    _ => {}
                }
            }
            clients = silent;
            if ready[1] {
                match self.listener.accept() {
                    // Another user's is let go without a word.
                    Ok((client, _)) => clients.extend(peer(&client).is_ok().then_some(client)),
                    // It went again before it was looked at.
                    Err(error) if went(&error) => {}
                    Err(error) => return Err(error),
                }
                let many = clients.len().saturating_sub(SILENT_MAX);
                clients.drain(..many);
            }
        }
    }

    /// Gives the wire to a client, whatever becomes of it: the sandbox ends when the last copy of the wire is closed.
    fn give(self, client: &UnixStream) -> io::Result<()> {
        let Self { launcher, wire, listener, folder, label, lease, .. } = self;
        drop(listener);
        let _ = fs::remove_file(folder.socket(&label));
        let given = hand_over(client.as_fd(), wire.as_fd(), launcher.handle.as_fd());
        let _ = lease.remove();
        given
    }

    /// Ends the sandbox, and waits until it is gone.
    fn end(self) -> io::Result<()> {
        let Self { launcher, wire, listener, folder, label, lease, .. } = self;
        drop(listener);
        let _ = fs::remove_file(folder.socket(&label));
        drop(wire);
        launcher.end();
        lease.remove()
    }
}

/// What is made for it.
struct Made {
    launcher: Launcher,
    wire: UnixStream,
    listener: UnixListener,
    until: Instant,
}

impl Made {
    /// The sandbox first, and its socket when the guest runs.
    fn by(order: &Order, folder: &Folder, maker: &UnixStream) -> Result<Self, Answer> {
        let local =
            |what: &'static str| move |error: io::Error| failed(&format!("cannot {what}: {error}"));
        let engine = |error: EngineError| failed(&error);
        let guest = guest_folder::place(Path::new(order.cache.as_os())).map_err(engine)?;
        let until = Instant::now() + Duration::from_millis(order.wait_ms) + SLACK;
        let (mut command, wire) = process::command(&guest).map_err(engine)?;
        let child = command.spawn().map_err(local("start the launcher of a sandbox"))?;
        drop(command);
        let handle = process::handle_of(child.id()).map_err(engine)?;
        let mut launcher = Launcher { child, handle };
        process::tell(&wire, &order.recipe).map_err(engine)?;
        if let Err(answer) = launcher.await_start(maker) {
            drop(wire);
            launcher.end();
            return Err(answer);
        }
        // Last, so that whoever connects finds a guest.
        let listen = || {
            // It is for nobody else from its first moment.
            rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
            let listener = UnixListener::bind(folder.socket(&order.label))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(local("make the socket of a sandbox"))?;
        Ok(Self { launcher, wire, listener, until })
    }
}

impl Launcher {
    /// Waits until the guest runs. It is ended if its maker goes before that.
    fn await_start(&mut self, maker: &UnixStream) -> Result<(), Answer> {
        let mut words =
            self.child.stderr.take().ok_or_else(|| failed(&"the launcher has no words"))?;
        let mut said = Vec::new();
        let mut piece = [0; 1 << 10];
        loop {
            let mut polls =
                [PollFd::new(&words, PollFlags::IN), PollFd::new(maker, PollFlags::empty())];
            match poll(&mut polls, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(failed(&error)),
            }
            let [speaks, maker] = polls.map(|poll| poll.revents());
            // Its maker closed its own half when the order was told; a whole end is another matter.
            if maker.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(failed(&"its maker is gone"));
            }
            if speaks.is_empty() {
                continue;
            }
            match words.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => said.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
            if said.len() >= WORDS_MAX {
                break;
            }
        }
        if said.is_empty() { Ok(()) } else { Err(Answer::Launcher(Bytes(said))) }
    }

    /// Has it kill every process of the sandbox, and waits for it.
    fn end(mut self) {
        let _ = pidfd_send_signal(&self.handle, Signal::TERM);
        if !process::ends_within(&self.handle, END_WAIT).unwrap_or(false) {
            let _ = pidfd_send_signal(&self.handle, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Whether a client was gone before it was let in.
fn went(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

/// The one byte that a client says.
fn word(client: &UnixStream) -> Option<u8> {
    let mut word = [0];
    (&*client).read_exact(&mut word).ok().map(|()| word[0])
}

fn failed(why: &dyn std::fmt::Display) -> Answer {
    Answer::Failed(why.to_string())
}

fn timespec(time: Duration) -> io::Result<Timespec> {
    Timespec::try_from(time).map_err(io::Error::other)
}
