//! The wire over the guest's own standard input and output, which never block.
//!
//! What is sent goes out together before anything is waited for: each write wakes the engine and the host, on the
//! processors that the work needs. A data frame is only made while little is waiting, so a control message
//! waits behind at most one of them.

use crate::sys::{self, Poll};
use runner_wire::{Decoder, Encoder, Frame, GuestMessage, Key, Side, WireError};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Instant;

/// No data frame is made while this much waits to be written.
const WAITING_MAX: usize = 16 << 10;

/// Why the link cannot be used any more.
#[derive(Debug)]
pub enum LinkError {
    /// The host is gone.
    Gone,
    /// The host's bytes are not frames.
    Wire(WireError),
    /// A pipe failed.
    Io(io::Error),
    /// What was started beforehand has ended before it was asked for.
    Ended,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the host is gone"),
            Self::Wire(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Ended => f.write_str("the process that waited has ended"),
        }
    }
}

impl From<WireError> for LinkError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The wire to the host.
pub struct Link {
    input: File,
    output: File,
    decoder: Decoder,
    encoder: Encoder,
    waiting: Vec<u8>,
    written: usize,
    /// Whether all that is waiting can wait for something to travel with.
    patient: bool,
    buffer: Vec<u8>,
}

impl Link {
    /// Takes standard input and output.
    pub fn open() -> io::Result<Self> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        sys::set_nonblocking(input.as_fd())?;
        sys::set_nonblocking(output.as_fd())?;
        Ok(Self {
            input,
            output,
            decoder: Decoder::new(Side::Host),
            encoder: Encoder::new(Side::Guest),
            waiting: Vec::new(),
            written: 0,
            patient: false,
            buffer: vec![0; 64 << 10],
        })
    }

    /// Uses the key in both directions.
    pub fn rekey(&mut self, key: &Key) {
        self.decoder.rekey(key);
        self.encoder.rekey(key);
    }

    /// The descriptor that frames come from.
    pub fn input(&self) -> RawFd {
        self.input.as_raw_fd()
    }

    /// The descriptor that frames go to, while some are waiting that cannot wait for others.
    pub fn output(&self) -> Option<RawFd> {
        (!self.flushed() && !self.patient).then(|| self.output.as_raw_fd())
    }

    /// Whether something waits for others to travel with.
    pub fn is_patient(&self) -> bool {
        self.patient
    }

    /// Whether everything was written.
    pub fn flushed(&self) -> bool {
        self.waiting.len() == self.written
    }

    /// Whether a data frame may be made now.
    pub fn has_room(&self) -> bool {
        self.waiting.len() - self.written < WAITING_MAX
    }

    /// Reads once; take all frames before reading again.
    pub fn read(&mut self) -> Result<(), LinkError> {
        match self.input.read(&mut self.buffer) {
            Ok(0) => Err(LinkError::Gone),
            Ok(count) => {
                self.decoder.push(&self.buffer[..count]);
                Ok(())
            }
            Err(error) if retry(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next frame that was read.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, LinkError> {
        Ok(self.decoder.next_frame()?)
    }

    /// Queues a message, which goes out with the next [`write`](Self::write).
    pub fn send(&mut self, message: &GuestMessage) -> Result<(), LinkError> {
        message.encode(&mut self.encoder, &mut self.waiting)?;
        self.patient = false;
        Ok(())
    }

    /// Queues a message that can wait for others to travel with.
    pub fn send_later(&mut self, message: &GuestMessage) -> Result<(), LinkError> {
        self.patient |= self.flushed();
        message.encode(&mut self.encoder, &mut self.waiting)?;
        Ok(())
    }

    /// Writes what can be written.
    pub fn write(&mut self) -> Result<(), LinkError> {
        self.patient = false;
        while !self.flushed() {
            match self.output.write(&self.waiting[self.written..]) {
                Ok(0) => return Err(LinkError::Gone),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(LinkError::Gone),
                Err(error) => return Err(error.into()),
            }
        }
        self.waiting.clear();
        self.written = 0;
        Ok(())
    }

    /// Waits until the host has nothing more to say, or the deadline; nobody listens any more.
    pub fn hear_out(&mut self, deadline: Instant) -> Result<(), LinkError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            sys::poll(&mut [Poll::read(self.input())], left)?;
            match self.input.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if retry(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes everything that waits, or gives up at the deadline.
    pub fn flush(&mut self, deadline: Instant) -> Result<(), LinkError> {
        loop {
            self.write()?;
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(output) = self.output() else {
                return Ok(());
            };
            if left.is_zero() {
                return Err(LinkError::Gone);
            }
            sys::poll(&mut [Poll::write(output)], left)?;
        }
    }
}

/// Whether a read or write should simply be tried again later.
pub fn retry(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
