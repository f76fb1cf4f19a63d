//! A call's output on a terminal, as it comes: [`Terminal`] for a stream that may not take all at once.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{io, mem};

use tokio::io::AsyncWrite;

use super::terminal::Terminal;

/// Most bytes that are taken at once. What they become is written before more are taken.
const CHUNK: usize = 8 << 10;

/// Shows foreign bytes on a terminal.
#[derive(Debug)]
pub struct TerminalSink<W> {
    inner: W,
    filter: Option<Terminal<Vec<u8>>>,
    waiting: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> TerminalSink<W> {
    /// Shows on `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, filter: Some(Terminal::new(Vec::new())), waiting: Vec::new(), written: 0 }
    }

    fn drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            let rest = &self.waiting[self.written..];
            let taken = ready!(Pin::new(&mut self.inner).poll_write(context, rest))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += taken;
        }
        self.waiting.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for TerminalSink<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.drain(context))?;
        let taken = bytes.len().min(CHUNK);
        if let Some(filter) = &mut self.filter {
            filter.write_all(&bytes[..taken])?;
            let shown = mem::take(filter.get_mut());
            self.waiting = shown;
        }
        // What does not go out now goes out before more is taken.
        let _ = self.drain(context)?;
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.drain(context))?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.drain(context))?;
        if let Some(filter) = self.filter.take() {
            self.waiting = filter.finish()?;
            ready!(self.drain(context))?;
        }
        Pin::new(&mut self.inner).poll_flush(context)
    }
}
