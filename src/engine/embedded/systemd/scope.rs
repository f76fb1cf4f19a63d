//! Asks a manager for a scope around a launcher.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::manager::Manager;
use super::message::{self, Answer, HEAD};
use crate::engine::embedded::groups;

/// How long a manager may take. It takes milliseconds; one that hangs must not hang a call.
const WAIT: Duration = Duration::from_secs(10);

/// The longest line of the greeting.
const LINE_MAX: u64 = 1 << 10;

/// Why there is no scope.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// The manager cannot be reached, or its answer cannot be read.
    #[error("its socket {} failed: {source}", socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// What the kernel said, or what is wrong with the answer.
        source: io::Error,
    },
    /// It does not answer.
    #[error("it did not answer within {} s", WAIT.as_secs())]
    Silent,
    /// Another user's process is at the socket, or one that numbers processes in another way.
    #[error("the process at {} is not a manager of this user on this machine", .0.display())]
    Stranger(PathBuf),
    /// It knows the caller as someone else.
    #[error("it does not take the caller's word for who it is")]
    NotWelcome,
    /// It refused.
    #[error("it refused ({0})")]
    Refused(String),
    /// It tried and did not succeed.
    #[error("its job ended as `{0}`")]
    Job(String),
    /// The launcher is not where the scope should be.
    #[error("the launcher is not in the scope afterwards")]
    Elsewhere,
    /// The scope cannot hold what was planned.
    #[error("groups in its scope have no controller for {0}")]
    Controller(&'static str),
}

impl Manager {
    /// Has the launcher with this number moved into a scope of its own; the scope's group. `name` is no other sandbox's.
    ///
    /// # Errors
    /// The launcher is not in a group of its own that can be divided.
    pub(in crate::engine::embedded) async fn adopt(
        &self,
        pid: u32,
        name: &str,
    ) -> Result<PathBuf, ScopeError> {
        let unit = format!("{name}.scope");
        timeout(WAIT, self.ask(pid, &unit)).await.map_err(|_| ScopeError::Silent)??;
        let group = groups::unified_group_of(pid).ok_or(ScopeError::Elsewhere)?;
        if group.file_name() == Some(unit.as_ref()) && group.starts_with(&self.group) {
            Ok(group)
        } else {
            Err(ScopeError::Elsewhere)
        }
    }

    async fn ask(&self, pid: u32, unit: &str) -> Result<(), ScopeError> {
        let failed = |source| ScopeError::Socket { socket: self.socket.clone(), source };
        let stream = UnixStream::connect(&self.socket).await.map_err(failed)?;
        if !self.is_at(&stream).map_err(failed)? {
            return Err(ScopeError::Stranger(self.socket.clone()));
        }
        let mut stream = BufReader::new(stream);
        // The greeting says who we are, which the kernel tells the manager as well.
        let user: String = self.uid.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
        let hello = format!("\0AUTH EXTERNAL {user}\r\n");
        stream.write_all(hello.as_bytes()).await.map_err(failed)?;
        let mut line = String::new();
        (&mut stream).take(LINE_MAX).read_line(&mut line).await.map_err(failed)?;
        if !line.starts_with("OK ") {
            return Err(ScopeError::NotWelcome);
        }
        stream.write_all(b"BEGIN\r\n").await.map_err(failed)?;
        let call = message::start_scope(unit, pid, "A sandbox of runner");
        stream.write_all(&call).await.map_err(failed)?;
        loop {
            match next(&mut stream).await.map_err(failed)? {
                Answer::Refused(name) => return Err(ScopeError::Refused(name)),
                Answer::Ended { unit: of, result } if of == unit => {
                    return if result == "done" { Ok(()) } else { Err(ScopeError::Job(result)) };
                }
                Answer::Taken | Answer::Ended { .. } | Answer::Other => {}
            }
        }
    }

    /// Whether a process of our user is at the other end, which has the same number for a process as we have.
    fn is_at(&self, stream: &UnixStream) -> io::Result<bool> {
        let peer = stream.peer_cred()?;
        let Some(pid) = peer.pid().filter(|pid| *pid > 0) else { return Ok(false) };
        let same = [pid.to_string(), "self".to_owned()].iter().all(|it| has_one_number(it));
        Ok(peer.uid() == self.uid && same)
    }
}

/// Whether a process is in the namespace of processes that our `/proc` shows, and not in one inside it.
fn has_one_number(process: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(process).join("status"));
    let status = status.unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().count() == 1)
}

async fn next(stream: &mut BufReader<UnixStream>) -> io::Result<Answer> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).await?;
    let mut whole = head.to_vec();
    whole.resize(message::length(&head)?, 0);
    stream.read_exact(&mut whole[HEAD..]).await?;
    message::read(&whole)
}
