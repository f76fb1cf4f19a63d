//! Bytes that are streamed, piece by piece, in either direction: never a whole file in memory.

use std::fmt;

use super::{Boxed, Refusal};

/// What gives bytes, piece by piece.
pub trait Source: Send {
    /// The next piece, not empty; `None` at the end. After an error or the end it is not asked again.
    fn next(&mut self) -> Boxed<'_, Result<Option<Vec<u8>>, Refusal>>;
}

/// A stream of bytes.
pub struct Body(Box<dyn Source>);

impl Body {
    /// What this source gives.
    pub fn new(source: impl Source + 'static) -> Self {
        Self(Box::new(source))
    }

    /// Nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self::of(Vec::new())
    }

    /// These bytes, in one piece.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self::new(Once(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The stream broke, was cancelled, or met a limit.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Refusal> {
        self.0.next().await
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body(..)")
    }
}

struct Once(Option<Vec<u8>>);

impl Source for Once {
    fn next(&mut self) -> Boxed<'_, Result<Option<Vec<u8>>, Refusal>> {
        let piece = self.0.take();
        Box::pin(async move { Ok(piece) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_of_bytes_gives_them_once() {
        let mut body = Body::of(b"ab".to_vec());
        assert_eq!(body.next().await, Ok(Some(b"ab".to_vec())));
        assert_eq!(body.next().await, Ok(None));
        assert_eq!(Body::empty().next().await, Ok(None));
    }
}
