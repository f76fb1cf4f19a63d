//! Frames from a stream, one at a time.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{Decoder, Frame};
use super::{ProtocolError, ServeError};

/// A stream of frames. Waiting for the next one can be given up and taken up again.
#[derive(Debug)]
pub(super) struct Reader<R> {
    stream: R,
    decoder: Decoder,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, decoder: Decoder::default() }
    }

    /// The next frame; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Frame>, ServeError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(Some(frame));
            }
            if self.fill().await.map_err(ServeError::Stream)? == 0 {
                return if self.decoder.is_empty() {
                    Ok(None)
                } else {
                    Err(ProtocolError::Cut.into())
                };
            }
        }
    }

    /// Whether anything at all comes before the end of the stream.
    pub(super) async fn is_over(&mut self) -> bool {
        if !self.decoder.is_empty() {
            return false;
        }
        // A stream that breaks now has nothing more to say either.
        self.fill().await.unwrap_or(0) == 0
    }

    async fn fill(&mut self) -> io::Result<usize> {
        match self.stream.read_buf(self.decoder.room()).await {
            // The other end was killed: that is an end like any other.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            result => result,
        }
    }
}
