//! The maker's end of a holder: starts it, tells it what to make, and hears whether the sandbox waits.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream as Pair;
use std::path::Path;
use std::time::Duration;

use runner_wire::{Bytes, Recipe};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::holder::ARGUMENT;
use super::words::{Answer, Order};
use crate::engine::embedded::failure::LaunchError;
use crate::engine::embedded::process;
use crate::engine::error::EngineError;
use crate::sys;

/// What a holder answers at most.
const ANSWER_MAX: u64 = 64 << 10;

/// What is to wait, and where.
pub(in crate::engine::embedded) struct Waiting<'a> {
    /// This program.
    pub program: &'a Path,
    /// The folder of sockets.
    pub folder: &'a Path,
    /// The guest's folder.
    pub cache: &'a Path,
    /// The sandbox's own label.
    pub label: &'a str,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// How long it waits.
    pub wait: Duration,
    /// The sandbox.
    pub recipe: Recipe,
}

/// Makes a sandbox that waits, in the hands of a process of its own. Dropped before it is done, or dead, it leaves none:
/// the holder sees that.
pub(in crate::engine::embedded) async fn park(waiting: Waiting<'_>) -> Result<(), EngineError> {
    let local = |source| EngineError::Local { operation: "have a sandbox wait", source };
    let order = Order {
        folder: Bytes::from(waiting.folder.as_os_str()),
        label: waiting.label.to_owned(),
        labels: waiting.labels,
        wait_ms: u64::try_from(waiting.wait.as_millis()).unwrap_or(u64::MAX),
        cache: Bytes::from(waiting.cache.as_os_str()),
        recipe: waiting.recipe,
    };
    let order = serde_json::to_vec(&order).map_err(|error| local(error.into()))?;
    let mut holder = start(waiting.program).map_err(local)?;
    let answer = async {
        holder.write_all(&order).await?;
        holder.shutdown().await?;
        let mut answer = Vec::new();
        holder.take(ANSWER_MAX).read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = answer.await.map_err(local)?;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Waits) => Ok(()),
        Ok(Answer::Launcher(words)) => Err(process::explain(&words.0)),
        Ok(Answer::Failed(why)) => Err(LaunchError::NotHeld(why).into()),
        Err(_) => Err(LaunchError::NotHeld("its holder ended".to_owned()).into()),
    }
}

/// Starts this program as a holder; our end of what it hears and says.
fn start(program: &Path) -> io::Result<UnixStream> {
    let text = |text: &OsStr| CString::new(text.as_bytes());
    let path = text(program.as_os_str())?;
    let words = vec![path.clone(), text(ARGUMENT.as_ref())?];
    let (ours, theirs) = Pair::pair()?;
    let program = sys::Program { path, words, variables: Vec::new() };
    sys::sentinel(&OwnedFd::from(theirs), program, Duration::ZERO)?;
    ours.set_nonblocking(true)?;
    UnixStream::from_std(ours)
}
