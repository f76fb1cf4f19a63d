//! Credit: how many bytes of a stream may be on their way.
//!
//! Each stream starts with [`WINDOW`], a tunnel with [`TUNNEL_WINDOW`]. The sender spends it, the receiver gives it back when the
//! bytes have left its hands. So a slow reader stops its own stream and nothing else, and memory
//! stays flat on both ends.

use crate::codec::WireError;
use crate::frame::Channel;

/// Bytes of one stream that may be under way.
pub const WINDOW: u32 = 256 << 10;

/// Bytes of one tunnel that may be under way, each way. There can be a thousand of them.
pub const TUNNEL_WINDOW: u32 = 128 << 10;

fn window(channel: Channel) -> u32 {
    if channel.is_tunnel() { TUNNEL_WINDOW } else { WINDOW }
}

/// Credit is given back in pieces of at least this size, not for every byte.
fn piece(channel: Channel) -> u32 {
    window(channel) / 4
}

/// The sending end of a stream.
#[derive(Debug)]
pub struct Sender {
    channel: Channel,
    left: u32,
}

impl Sender {
    /// A stream with a full window.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self { channel, left: window(channel) }
    }

    /// How many bytes may be sent now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.left as usize
    }

    /// Counts bytes that are sent.
    ///
    /// # Errors
    /// More than there was room for.
    pub fn spend(&mut self, bytes: usize) -> Result<(), WireError> {
        self.left = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| self.left.checked_sub(bytes))
            .ok_or(WireError::Credit(self.channel.0))?;
        Ok(())
    }

    /// Takes credit that the receiver gave back.
    ///
    /// # Errors
    /// More than was ever spent.
    pub fn grant(&mut self, bytes: u32) -> Result<(), WireError> {
        self.left = self
            .left
            .checked_add(bytes)
            .filter(|left| *left <= window(self.channel))
            .ok_or(WireError::Credit(self.channel.0))?;
        Ok(())
    }
}

/// The receiving end of a stream.
#[derive(Debug)]
pub struct Receiver {
    channel: Channel,
    left: u32,
    returned: u32,
}

impl Receiver {
    /// A stream with a full window.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self { channel, left: window(channel), returned: 0 }
    }

    /// Counts bytes that came.
    ///
    /// # Errors
    /// More than there was credit for.
    pub fn receive(&mut self, bytes: usize) -> Result<(), WireError> {
        self.left = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| self.left.checked_sub(bytes))
            .ok_or(WireError::Credit(self.channel.0))?;
        Ok(())
    }

    /// Counts bytes that have left our hands; the credit to send back, when it is worth a frame.
    #[must_use]
    pub fn release(&mut self, bytes: usize) -> Option<u32> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.returned = self.returned.saturating_add(bytes).min(window(self.channel) - self.left);
        (self.returned >= piece(self.channel)).then(|| {
            let grant = std::mem::take(&mut self.returned);
            self.left += grant;
            grant
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_never_has_more_than_the_window() {
        let mut sender = Sender::new(Channel::STDOUT);
        assert_eq!(sender.grant(1), Err(WireError::Credit(2)));
        assert_eq!(sender.spend(WINDOW as usize), Ok(()));
        assert_eq!(sender.spend(1), Err(WireError::Credit(2)));
        assert_eq!(sender.grant(WINDOW), Ok(()));
    }

    #[test]
    fn a_receiver_returns_what_it_took() {
        let mut receiver = Receiver::new(Channel::STDIN);
        let mut sender = Sender::new(Channel::STDIN);
        let mut total = 0_u64;
        for _ in 0..1000 {
            let size = sender.room().min(10_000);
            sender.spend(size).unwrap();
            receiver.receive(size).unwrap();
            total += size as u64;
            if let Some(grant) = receiver.release(size) {
                sender.grant(grant).unwrap();
            }
        }
        assert_eq!(total, 10_000_000);
        assert!(receiver.receive(WINDOW as usize + 1).is_err());
    }
}
