//! The client's end of a holder: takes its sandbox, ends it, or finds out that it is there.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Pair;
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::folder::{Folder, Listed};
use super::words::{END, TAKE, peer, receive};
use crate::engine::embedded::failure::LaunchError;
use crate::engine::embedded::process::{END_WAIT, Launched};
use crate::engine::error::EngineError;
use crate::ids::CallId;

/// How long a holder may take to end its sandbox: as long as its launcher, and a moment.
const HOLDER_WAIT: Duration = END_WAIT.saturating_add(Duration::from_secs(2));

/// Takes a sandbox that waits: from here on it ends with this process.
pub(in crate::engine::embedded) async fn attach(
    folder: &Path,
    label: &CallId,
) -> Result<Launched, EngineError> {
    let folder = Folder::find(folder)?.ok_or(LaunchError::NothingWaits)?;
    let (mut holder, _) = connect(&folder, label).await?.ok_or(LaunchError::NothingWaits)?;
    let failed = |source| EngineError::Local { operation: "take a sandbox that waits", source };
    holder.write_all(&[TAKE]).await.map_err(failed)?;
    let handed = holder.async_io(Interest::READABLE, || receive(holder.as_fd())).await;
    let (wire, launcher) = handed.map_err(failed)?;
    let is_stream = sockopt::socket_type(&wire).is_ok_and(|found| found == SocketType::STREAM)
        && sockopt::socket_domain(&wire).is_ok_and(|found| found == AddressFamily::UNIX);
    if !is_stream {
        return Err(failed(io::ErrorKind::InvalidData.into()));
    }
    Ok(Launched::of_holder(Pair::from(wire), launcher))
}

/// Ends a sandbox that waits; one that is gone is no error.
pub(in crate::engine::embedded) async fn end(
    folder: &Path,
    label: &CallId,
) -> Result<(), EngineError> {
    let failed = |source| EngineError::Local { operation: "end a sandbox that waits", source };
    let Some(folder) = Folder::find(folder)? else { return Ok(()) };
    let Some((mut holder, pid)) = connect(&folder, label).await? else { return Ok(()) };
    let ended = async {
        holder.write_all(&[END]).await?;
        holder.read_exact(&mut [0]).await
    };
    // One that ends without an answer has ended its sandbox all the same, or gave it to somebody else.
    if timeout(HOLDER_WAIT, ended).await.is_ok() {
        return Ok(());
    }
    kill(&folder, label, pid).map_err(failed)?;
    Err(failed(io::ErrorKind::TimedOut.into()))
}

/// Every sandbox that waits, by its label.
pub(in crate::engine::embedded) fn list(folder: &Path) -> Result<Vec<Listed>, EngineError> {
    let failed = |source| EngineError::Local { operation: "list sandboxes that wait", source };
    Folder::find(folder)?.map_or_else(|| Ok(Vec::new()), |folder| folder.list().map_err(failed))
}

/// Connects to the holder of a sandbox; `None` if it is gone.
async fn connect(
    folder: &Folder,
    label: &CallId,
) -> Result<Option<(UnixStream, Pid)>, EngineError> {
    match UnixStream::connect(folder.socket(label.as_str())).await {
        Ok(holder) => {
            let pid = peer(&holder)?;
            Ok(Some((holder, pid)))
        }
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(EngineError::Local {
                operation: "connect to a sandbox that waits",
                source: error,
            }),
        },
    }
}

/// Kills a holder that does not answer; its sandbox ends with the wire.
fn kill(folder: &Folder, label: &CallId, pid: Pid) -> io::Result<()> {
    let holder = pidfd_open(pid, PidfdFlags::empty())?;
    // It lives, so the number was its own when it was opened.
    if folder.is_held(label.as_str()) {
        pidfd_send_signal(&holder, Signal::KILL)?;
    }
    Ok(())
}
