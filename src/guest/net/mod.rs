//! The network of a command inside its sandbox: names that lead here, and connections that go on as tunnels.
//!
//! ```text
//! program -- A? registry.example --> resolver (127.0.0.1:53)    known: an address of its own; else NXDOMAIN
//! program -- connect 127.64.0.1:443 -> listener (0.0.0.0:443)   the address tells which name was meant
//!                                       |
//!                                       +-- Open(name, port), Data, Close, Reset --> host: judges, dials
//! ```
//!
//! Duty: answer without asking anyone, and carry bytes within their credit. Non-goals: deciding; the host judges each
//! connection. Trust boundary: queries and connections are the command's, and bounded in number and size. What a
//! process of the same user could do to a listener gains it nothing that the host would not judge.

mod dns;
mod names;
mod resolver;
mod tunnel;

use crate::link::{Link, LinkError};
use crate::sys::{self, Poll};
use names::Names;
use resolver::Resolver;
use runner_wire::{Channel, GuestMessage, Missed, Network, Open, TUNNEL_DATA_MAX, WireError};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use tunnel::{Step, Tunnel};

/// Most tunnels at once. Others wait in the listeners' queues.
const TUNNELS_MAX: usize = 1_024;

/// Descriptors that the guest needs for everything else.
const OTHER_DESCRIPTORS: u64 = 64;

/// Most names of which the host is told that they lead nowhere.
const MISSED_MAX: usize = 64;

/// Connections that are accepted of one listener in a turn: no port keeps the others waiting.
const ACCEPTED_MAX: usize = 64;

/// Listeners, the resolver and the tunnels of a call.
pub struct Net {
    order: Network,
    names: Names,
    resolver: Resolver,
    listeners: Vec<TcpListener>,
    tunnels: BTreeMap<u32, Tunnel>,
    /// The number of the next tunnel.
    next: u32,
    /// Which tunnel has its turn first.
    first: u32,
    at_once: usize,
    missed: BTreeSet<String>,
    buffer: Vec<u8>,
}

/// Which of the polls of a turn are whose.
pub struct Plan {
    resolver: usize,
    tunnels: Vec<u32>,
}

impl Net {
    /// Binds every port. It happens before the command starts, so that no process of it has taken one.
    pub fn open(order: Network) -> Result<Self, LinkError> {
        order.check()?;
        let bound = |port: u16, result: io::Result<TcpListener>| {
            result.map_err(|error| {
                let why = format!("the sandbox's port {port} cannot be bound: {error}");
                io::Error::new(error.kind(), why)
            })
        };
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let mut listeners = Vec::new();
        for port in order.ports.iter().copied().filter(|port| *port != resolver::PORT) {
            let listener = bound(port, TcpListener::bind(SocketAddr::new(any, port)))?;
            listener.set_nonblocking(true)?;
            listeners.push(listener);
        }
        let resolver = Resolver::open().map_err(|error| {
            io::Error::new(error.kind(), format!("the sandbox's resolver cannot start: {error}"))
        })?;
        let descriptors = sys::raise_descriptors().saturating_sub(OTHER_DESCRIPTORS);
        let at_once = usize::try_from(descriptors).unwrap_or(TUNNELS_MAX).clamp(1, TUNNELS_MAX);
        Ok(Self {
            order,
            names: Names::default(),
            resolver,
            listeners,
            tunnels: BTreeMap::new(),
            next: Channel::FIRST_TUNNEL.0,
            first: 0,
            at_once,
            missed: BTreeSet::new(),
            buffer: vec![0; TUNNEL_DATA_MAX],
        })
    }

    /// What to wait for; `room` says whether the link takes data.
    pub fn polls(&self, room: bool, polls: &mut Vec<Poll>) -> Plan {
        let before = polls.len();
        self.resolver.polls(polls);
        let resolver = polls.len() - before;
        let accepts = self.tunnels.len() < self.at_once;
        polls.extend(
            self.listeners.iter().map(|listener| {
                if accepts { Poll::read(listener.as_raw_fd()) } else { Poll::none() }
            }),
        );
        let mut tunnels = Vec::new();
        // The one after the last that was served comes first.
        let later = self.tunnels.range(self.first..);
        for (number, tunnel) in later.chain(self.tunnels.range(..self.first)) {
            if let Some(poll) = tunnel.poll(room) {
                polls.push(poll);
                tunnels.push(*number);
            }
        }
        Plan { resolver, tunnels }
    }

    /// Takes what came.
    pub fn turn(&mut self, plan: &Plan, polls: &[Poll], link: &mut Link) -> Result<(), LinkError> {
        let (resolver, rest) = polls.split_at(plan.resolver.min(polls.len()));
        for missed in self.resolver.turn(resolver, &self.order, &mut self.names) {
            if self.missed.len() < MISSED_MAX && self.missed.insert(missed.clone()) {
                link.send(&GuestMessage::Missed(Missed { name: missed }))?;
            }
        }
        let (listeners, tunnels) = rest.split_at(self.listeners.len().min(rest.len()));
        for (at, poll) in listeners.iter().enumerate() {
            if poll.ready() {
                self.accept(at, link)?;
            }
        }
        for (number, poll) in plan.tunnels.iter().zip(tunnels) {
            if poll.ready() {
                self.serve(*number, link)?;
            }
        }
        Ok(())
    }

    fn accept(&mut self, at: usize, link: &mut Link) -> Result<(), LinkError> {
        for _ in 0..ACCEPTED_MAX {
            if self.tunnels.len() >= self.at_once {
                return Ok(());
            }
            let accepted = self.listeners.get(at).map(TcpListener::accept);
            let Some(Ok((stream, _))) = accepted else { return Ok(()) };
            let place = stream.local_addr().ok();
            let name = place.and_then(|place| Some((self.names.of(place.ip())?, place.port())));
            // An address that belongs to no name: the connection is reset.
            let Some((name, port)) = name else {
                tunnel::reset(&stream);
                continue;
            };
            let channel = Channel(self.next);
            let Some(next) = self.next.checked_add(1) else { return Ok(()) };
            self.next = next;
            let open = Open { name: name.to_owned(), port };
            self.tunnels.insert(channel.0, Tunnel::new(stream, channel)?);
            link.send(&GuestMessage::Open(channel, open))?;
        }
        Ok(())
    }

    fn serve(&mut self, number: u32, link: &mut Link) -> Result<(), LinkError> {
        let Some(tunnel) = self.tunnels.get_mut(&number) else { return Ok(()) };
        let channel = Channel(number);
        if let Some(grant) = tunnel.write() {
            link.send(&GuestMessage::Credit(channel, grant))?;
        }
        if !link.has_room() {
            link.write()?;
        }
        let step = if link.has_room() { tunnel.read(&mut self.buffer)? } else { Step::Nothing };
        match step {
            Step::Bytes(count) => {
                self.first = number.wrapping_add(1);
                let bytes = self.buffer[..count].to_vec();
                link.send(&GuestMessage::Data(channel, bytes))?;
            }
            Step::End => link.send(&GuestMessage::Close(channel))?,
            Step::Nothing => {}
        }
        self.settle(number, link)
    }

    /// Forgets a tunnel that is over, and says so if it failed.
    fn settle(&mut self, number: u32, link: &mut Link) -> Result<(), LinkError> {
        let Some(tunnel) = self.tunnels.get(&number) else { return Ok(()) };
        if tunnel.has_failed() {
            link.send(&GuestMessage::Reset(Channel(number)))?;
        } else if !tunnel.is_over() {
            return Ok(());
        }
        self.tunnels.remove(&number);
        Ok(())
    }

    /// The tunnel of a channel; none for one that is over, whose last frames may still come.
    fn known(&mut self, channel: Channel) -> Result<Option<&mut Tunnel>, WireError> {
        if channel.0 >= self.next {
            return Err(WireError::Credit(channel.0));
        }
        Ok(self.tunnels.get_mut(&channel.0))
    }

    /// Takes bytes of the host.
    pub fn data(
        &mut self,
        channel: Channel,
        bytes: &[u8],
        link: &mut Link,
    ) -> Result<(), LinkError> {
        if let Some(tunnel) = self.known(channel)? {
            if let Some(grant) = tunnel.take(bytes)? {
                link.send(&GuestMessage::Credit(channel, grant))?;
            }
            self.settle(channel.0, link)?;
        }
        Ok(())
    }

    /// Takes the end of what the host sends.
    pub fn close(&mut self, channel: Channel, link: &mut Link) -> Result<(), LinkError> {
        if let Some(tunnel) = self.known(channel)? {
            tunnel.close();
        }
        self.settle(channel.0, link)
    }

    /// Takes credit.
    pub fn credit(&mut self, channel: Channel, bytes: u32) -> Result<(), LinkError> {
        match self.known(channel)? {
            Some(tunnel) => Ok(tunnel.grant(bytes)?),
            None => Ok(()),
        }
    }

    /// The host has given a tunnel up.
    pub fn reset(&mut self, channel: Channel) -> Result<(), LinkError> {
        if let Some(tunnel) = self.known(channel)? {
            tunnel.abort();
        }
        self.tunnels.remove(&channel.0);
        Ok(())
    }
}
