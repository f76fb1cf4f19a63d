//! One connection of a command, and its tunnel.

use crate::link::retry;
use crate::sys::{self, Poll};
use runner_wire::{Channel, Receiver, Sender, WireError};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

/// What a read came to.
pub enum Step {
    /// So many bytes.
    Bytes(usize),
    /// The program sends nothing more.
    End,
    /// Nothing now.
    Nothing,
}

/// A connection that was accepted.
pub struct Tunnel {
    stream: TcpStream,
    /// How much may be sent to the host.
    to_host: Sender,
    /// What the host sends, and may send.
    from_host: Receiver,
    waiting: VecDeque<u8>,
    /// Whether the program may still send.
    reads: bool,
    /// Whether the host may still send.
    writes: bool,
    failed: bool,
}

impl Tunnel {
    /// A connection on its channel.
    pub fn new(stream: TcpStream, channel: Channel) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // What comes of the host is written when it comes.
        let _ = stream.set_nodelay(true);
        Ok(Self {
            stream,
            to_host: Sender::new(channel),
            from_host: Receiver::new(channel),
            waiting: VecDeque::new(),
            reads: true,
            writes: true,
            failed: false,
        })
    }

    /// What to wait for, if anything.
    pub fn poll(&self, room: bool) -> Option<Poll> {
        let reads = self.reads && room && self.to_host.room() > 0;
        let writes = !self.waiting.is_empty();
        let fd = self.stream.as_raw_fd();
        match (reads, writes) {
            (true, true) => Some(Poll::both(fd)),
            (true, false) => Some(Poll::read(fd)),
            (false, true) => Some(Poll::write(fd)),
            (false, false) => None,
        }
    }

    /// Reads once, as much as may be sent.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Step, WireError> {
        let room = self.to_host.room().min(buffer.len());
        if !self.reads || room == 0 {
            return Ok(Step::Nothing);
        }
        match self.stream.read(&mut buffer[..room]) {
            Ok(0) => {
                self.reads = false;
                Ok(Step::End)
            }
            Ok(count) => {
                self.to_host.spend(count)?;
                Ok(Step::Bytes(count))
            }
            Err(error) if retry(&error) => Ok(Step::Nothing),
            Err(_) => {
                self.failed = true;
                Ok(Step::Nothing)
            }
        }
    }

    /// Takes bytes of the host; the credit to give back.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<u32>, WireError> {
        self.from_host.receive(bytes.len())?;
        self.waiting.extend(bytes);
        Ok(self.write())
    }

    /// Writes what can be written; the credit to give back.
    pub fn write(&mut self) -> Option<u32> {
        let mut gone = 0;
        loop {
            let (front, _) = self.waiting.as_slices();
            if front.is_empty() || self.failed {
                break;
            }
            match self.stream.write(front) {
                Ok(count) => {
                    self.waiting.drain(..count);
                    gone += count;
                }
                Err(error) if retry(&error) => break,
                Err(_) => self.failed = true,
            }
        }
        self.finish();
        self.from_host.release(gone)
    }

    /// The host sends nothing more.
    pub fn close(&mut self) {
        self.writes = false;
        self.finish();
    }

    fn finish(&mut self) {
        if !self.writes && self.waiting.is_empty() {
            // It fails if the program has closed already.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }

    /// Takes credit of the host.
    pub fn grant(&mut self, bytes: u32) -> Result<(), WireError> {
        self.to_host.grant(bytes)
    }

    /// Ends the connection so that the program sees a failure.
    pub fn abort(&mut self) {
        reset(&self.stream);
    }

    /// Whether it broke.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether both sides have said all.
    pub fn is_over(&self) -> bool {
        !self.reads && !self.writes && self.waiting.is_empty()
    }
}

/// Makes the end of a connection a reset.
pub fn reset(stream: &TcpStream) {
    // Without it the program sees a plain end, which is no failure.
    let _ = sys::linger_none(stream.as_fd());
}
