//! A connection's stream whose bytes are counted as they pass. At a bound it fails.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use runner_policy::net::Bounded;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::record::{Book, Way};
use crate::sandbox::tunnels::End;

/// The sandbox's end of a connection.
pub(super) struct Metered {
    pub end: End,
    pub book: Arc<Book>,
    /// The connection's place in the book.
    pub at: usize,
    pub counted: Vec<Bounded>,
}

/// A rule's bytes are used up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsedUp(pub String);

impl Metered {
    fn charge(&self, way: Way, count: usize) -> io::Result<()> {
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        self.book
            .charge(self.at, &self.counted, way, bytes)
            .map_err(|why| io::Error::other(UsedUp(why)))
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.end).poll_read(context, buffer))?;
        Poll::Ready(self.charge(Way::Sent, buffer.filled().len() - before))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.end).poll_write(context, bytes))?;
        self.charge(Way::Received, count)?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_shutdown(context)
    }
}
