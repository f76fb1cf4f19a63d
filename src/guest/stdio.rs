//! The command's streams: pipes, or one socket for the talk of a tool, on one side, channels with
//! credit on the other.

use crate::link::retry;
use crate::sys;
use runner_wire::{Channel, DATA_MAX, Receiver, Sender, WINDOW, WireError};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// A stream into the command: from the host into a pipe.
pub struct Input {
    /// Its channel.
    pub channel: Channel,
    pipe: Option<File>,
    waiting: VecDeque<u8>,
    credit: Receiver,
    closed: bool,
}

impl Input {
    /// The input and the end that a command reads.
    pub fn open() -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self::into(writer.into(), Channel::STDIN)?, reader.into()))
    }

    fn into(writer: OwnedFd, channel: Channel) -> io::Result<Self> {
        let pipe = File::from(writer);
        sys::set_nonblocking(pipe.as_fd())?;
        Ok(Self {
            channel,
            pipe: Some(pipe),
            waiting: VecDeque::with_capacity(WINDOW as usize),
            credit: Receiver::new(channel),
            closed: false,
        })
    }

    /// No input: what a command reads is the null device.
    pub fn none() -> io::Result<(Self, OwnedFd)> {
        Ok((Self::nowhere(Channel::STDIN), File::open("/dev/null")?.into()))
    }

    fn nowhere(channel: Channel) -> Self {
        Self {
            channel,
            pipe: None,
            waiting: VecDeque::new(),
            credit: Receiver::new(channel),
            closed: true,
        }
    }

    /// The descriptor to wait for, while bytes are waiting.
    pub fn wants(&self) -> Option<RawFd> {
        (!self.waiting.is_empty()).then(|| self.pipe.as_ref().map(AsRawFd::as_raw_fd)).flatten()
    }

    /// Takes bytes of the host; the credit to give back.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<u32>, WireError> {
        if self.closed {
            return Err(WireError::Credit(self.channel.0));
        }
        self.credit.receive(bytes.len())?;
        self.waiting.extend(bytes);
        Ok(self.write())
    }

    /// No more bytes will come.
    pub fn close(&mut self) {
        self.closed = true;
        self.end();
    }

    /// Writes what can be written; the credit to give back.
    pub fn write(&mut self) -> Option<u32> {
        let mut gone = 0;
        while let Some(pipe) = &mut self.pipe {
            let (front, _) = self.waiting.as_slices();
            if front.is_empty() {
                break;
            }
            match pipe.write(front) {
                Ok(count) => {
                    self.waiting.drain(..count);
                    gone += count;
                }
                Err(error) if retry(&error) => break,
                // Nobody reads any more: what is left and what still comes is dropped.
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() {
            gone += self.waiting.len();
            self.waiting.clear();
        }
        self.end();
        self.credit.release(gone)
    }

    fn end(&mut self) {
        if self.closed && self.waiting.is_empty() {
            self.pipe = None;
        }
    }

    /// Drops the pipe: the command is over.
    pub fn stop(&mut self) {
        self.pipe = None;
        self.waiting.clear();
    }
}

/// One output stream: from a pipe to the host.
pub struct Output {
    /// Its channel.
    pub channel: Channel,
    /// Bytes that the command wrote.
    pub total: u64,
    pipe: Option<File>,
    credit: Sender,
}

impl Output {
    /// The output and the end that commands write.
    pub fn open(channel: Channel) -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self::from(reader.into(), channel)?, writer.into()))
    }

    fn from(reader: OwnedFd, channel: Channel) -> io::Result<Self> {
        let pipe = File::from(reader);
        sys::set_nonblocking(pipe.as_fd())?;
        Ok(Self { channel, total: 0, pipe: Some(pipe), credit: Sender::new(channel) })
    }

    /// The descriptor, while anybody may write.
    pub fn fd(&self) -> Option<RawFd> {
        self.pipe.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// The descriptor to wait for, while the host has room.
    pub fn wants(&self) -> Option<RawFd> {
        self.fd().filter(|_| self.credit.room() > 0)
    }

    /// Whether nobody writes any more.
    pub fn ended(&self) -> bool {
        self.pipe.is_none()
    }

    /// Takes credit of the host.
    pub fn grant(&mut self, bytes: u32) -> Result<(), WireError> {
        self.credit.grant(bytes)
    }

    /// Reads once, no more than may be sent; empty if there is nothing now.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let room = self.credit.room().min(DATA_MAX).min(buffer.len());
        let Some(pipe) = &mut self.pipe else {
            return Ok(0);
        };
        match pipe.read(&mut buffer[..room]) {
            Ok(0) if room > 0 => self.pipe = None,
            Ok(count) => {
                self.credit.spend(count)?;
                self.total += count as u64;
                return Ok(count);
            }
            Err(error) if retry(&error) => {}
            Err(_) => self.pipe = None,
        }
        Ok(0)
    }

    /// Drops what nobody will read.
    pub fn stop(&mut self) {
        self.pipe = None;
    }
}

/// The talk of a tool: one socket, both ways. The third is the end that the tool's runtime has.
pub fn talk() -> io::Result<(Input, Output, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    let ours = OwnedFd::from(ours);
    let input = Input::into(ours.try_clone()?, Channel::TOOL)?;
    let output = Output::from(ours, Channel::TOOL)?;
    Ok((input, output, theirs.into()))
}

/// No talk: nothing comes, and nothing may be sent.
pub fn no_talk() -> (Input, Output) {
    let channel = Channel::TOOL;
    let output = Output { channel, total: 0, pipe: None, credit: Sender::new(channel) };
    (Input::nowhere(channel), output)
}
