//! Removes all sandboxes of a call, as soon as the engine can.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

use super::watch::Heard;
use crate::engine::{self, Address, EngineError, REQUEST_WAIT, remove_labelled, sweep};
use crate::ids::CallId;

/// How long a sandbox whose guest told its end may take to be gone.
const ORDERLY: Duration = Duration::from_millis(1500);

/// How long an engine that fails is asked again: it may be restarting. What is left then is found by the next sweep.
const RESTART: Duration = Duration::from_secs(3);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// Removes the call's sandboxes until none is left.
///
/// It ends: the engine is done with a request, or breaks the connection; no request is awaited longer than any other of
/// ours; and an engine that fails, or cannot get rid of a sandbox, is given up.
pub(super) fn remove_sandboxes(
    runtime: &tokio::runtime::Runtime,
    address: &Address,
    heard: &Heard,
) {
    let look = || runtime.block_on(clear(address, &heard.labels, heard.ended));
    if heard.ended {
        std::thread::sleep(ORDERLY);
    } else if let Some(socket) = &heard.pending {
        // What the call took has no need to wait for the engine.
        let _ = look();
        wait_until_closed(socket);
    }
    let begun = Instant::now();
    let mut answered = begun;
    while begun.elapsed() < REQUEST_WAIT {
        match look() {
            Ok(0) => return,
            Ok(_) => answered = Instant::now(),
            Err(_) if answered.elapsed() >= RESTART => return,
            Err(_) => {}
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until the engine is done with what it was asked for: it closes the other end then.
fn wait_until_closed(socket: &OwnedFd) {
    // Nothing more is asked: a request that was cut off by the death is refused, and over.
    let _ = shutdown(socket, Shutdown::Write);
    let begun = Instant::now();
    let mut answer = [0; 4 << 10];
    loop {
        let left = REQUEST_WAIT.saturating_sub(begun.elapsed());
        let Ok(left) = Timespec::try_from(left) else { return };
        match poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)], Some(&left)) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        match recv(socket, &mut answer, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return,
            // What it says is told by what there is afterwards.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Removes what there is of a call; how many there were. After a death also what else that process has left.
async fn clear(address: &Address, labels: &[CallId], orderly: bool) -> Result<usize, EngineError> {
    let engine = engine::at(address, None).await?;
    let mut count = 0;
    for label in labels {
        count += remove_labelled(engine.as_ref(), label).await?;
    }
    if !orderly {
        sweep(engine.as_ref()).await?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn it_waits_until_the_engine_is_done_and_no_longer() {
        let (line, mut daemon) = UnixStream::pair().unwrap();
        // As the host left it: the event loop's descriptors never block.
        line.set_nonblocking(true).unwrap();
        let line = OwnedFd::from(line);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_until_closed(&line));
            // No more is asked.
            assert_eq!(daemon.read(&mut [0]).unwrap(), 0);
            daemon.write_all(b"HTTP/1.1 201 Created\r\n").unwrap();
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waiting.is_finished(), "an answer is not the end of it");
            drop(daemon);
            waiting.join().unwrap();
        });
    }
}
