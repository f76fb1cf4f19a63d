//! The resolver: names of the order have an address inside, every other name does not exist. Nothing is ever asked.

use super::dns::{self, Answer, MESSAGE_MAX, Query, Question};
use super::names::Names;
use crate::link::retry;
use crate::sys::Poll;
use runner_wire::Network;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

/// The port of name servers.
pub const PORT: u16 = 53;

/// Connections at once; over one, queries come one after the other.
const CONNECTIONS_MAX: usize = 16;

/// Queries that are answered in a turn.
const ANSWERED_MAX: usize = 64;

/// Both ways to ask.
pub struct Resolver {
    datagrams: UdpSocket,
    listener: TcpListener,
    connections: Vec<Asking>,
}

/// A connection over which queries come.
struct Asking {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Resolver {
    /// Takes the port.
    pub fn open() -> io::Result<Self> {
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT))?;
        datagrams.set_nonblocking(true)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
        listener.set_nonblocking(true)?;
        Ok(Self { datagrams, listener, connections: Vec::new() })
    }

    /// What to wait for.
    pub fn polls(&self, polls: &mut Vec<Poll>) {
        let accepts = self.connections.len() < CONNECTIONS_MAX;
        polls.push(Poll::read(self.datagrams.as_raw_fd()));
        polls.push(if accepts { Poll::read(self.listener.as_raw_fd()) } else { Poll::none() });
        polls.extend(self.connections.iter().map(|asking| Poll::read(asking.stream.as_raw_fd())));
    }

    /// Answers what came; names that do not exist here.
    pub fn turn(&mut self, polls: &[Poll], order: &Network, names: &mut Names) -> Vec<String> {
        let mut missed = Vec::new();
        let mut answer = |message: &[u8]| respond(message, order, names, &mut missed);
        let [datagrams, listener, connections @ ..] = polls else { return missed };
        if datagrams.ready() {
            let mut message = [0; MESSAGE_MAX + 1];
            for _ in 0..ANSWERED_MAX {
                let Ok((length, from)) = self.datagrams.recv_from(&mut message) else { break };
                if let Some(answer) = answer(&message[..length]) {
                    // An asker that is gone, or does not read, has no answer.
                    let _ = self.datagrams.send_to(&answer, from);
                }
            }
        }
        let mut at = 0;
        self.connections.retain_mut(|asking| {
            let ready = connections.get(at).is_some_and(|poll| poll.ready());
            at += 1;
            !ready || asking.turn(&mut answer)
        });
        if listener.ready()
            && let Ok((stream, _)) = self.listener.accept()
            && stream.set_nonblocking(true).is_ok()
        {
            self.connections.push(Asking { stream, read: Vec::new() });
        }
        missed
    }
}

impl Asking {
    /// Reads and answers; whether more may come.
    fn turn(&mut self, answer: &mut impl FnMut(&[u8]) -> Option<Vec<u8>>) -> bool {
        let mut buffer = [0; MESSAGE_MAX];
        match self.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => self.read.extend_from_slice(&buffer[..count]),
            Err(error) => return retry(&error),
        }
        while let Some((head, rest)) = self.read.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*head));
            if length > MESSAGE_MAX {
                return false;
            }
            let Some(message) = rest.get(..length) else { return true };
            let Some(answered) = answer(message) else { return false };
            let Ok(size) = u16::try_from(answered.len()) else { return false };
            let whole = [&size.to_be_bytes()[..], &answered].concat();
            // A few hundred bytes fit the socket of an asker that reads.
            if !matches!(self.stream.write(&whole), Ok(count) if count == whole.len()) {
                return false;
            }
            self.read.drain(..2 + length);
        }
        true
    }
}

/// The answer to a message; none to what is no query.
fn respond(
    message: &[u8],
    order: &Network,
    names: &mut Names,
    missed: &mut Vec<String>,
) -> Option<Vec<u8>> {
    match dns::read(message) {
        Query::Nothing => None,
        Query::Malformed(id) => Some(dns::malformed(id)),
        Query::Question(question) => {
            Some(dns::answer(&question, judged(&question, order, names, missed)))
        }
    }
}

fn judged(
    question: &Question<'_>,
    order: &Network,
    names: &mut Names,
    missed: &mut Vec<String>,
) -> Answer {
    let name = question.name.as_str();
    let asks_address = [dns::TYPE_A, dns::TYPE_AAAA].contains(&question.kind);
    if !question.internet {
        return Answer::Refused;
    }
    // Programs that do not read the hosts file ask for it here.
    if name == "localhost" || name.ends_with(".localhost") {
        return match question.kind {
            dns::TYPE_A => Answer::Address(Ipv4Addr::LOCALHOST),
            _ => Answer::Empty,
        };
    }
    let odd = name.is_empty() || name.contains('?') || name.contains("..");
    if odd || !order.names(name) {
        if asks_address && !odd {
            missed.push(name.to_owned());
        }
        return Answer::NoSuchName;
    }
    match question.kind {
        dns::TYPE_A => names.address(name).map_or(Answer::Failed, Answer::Address),
        _ => Answer::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, kind: u16) -> (u8, Vec<u8>, Vec<String>) {
        let order = Network {
            names: vec!["a.example".to_owned(), "*.b.example".to_owned()],
            ports: vec![443],
        };
        let mut message = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend_from_slice(label.as_bytes());
        }
        message.push(0);
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        let mut missed = Vec::new();
        let answer = respond(&message, &order, &mut Names::default(), &mut missed).unwrap();
        let address = if answer[7] == 1 { answer[answer.len() - 4..].to_vec() } else { vec![] };
        (answer[3] & 0xf, address, missed)
    }

    #[test]
    fn only_names_of_the_order_exist() {
        assert_eq!(ask("a.example", 1), (0, vec![127, 64, 0, 1], vec![]));
        assert_eq!(ask("X.Y.b.example", 1), (0, vec![127, 64, 0, 1], vec![]));
        assert_eq!(ask("a.example", 28), (0, vec![], vec![]));
        assert_eq!(ask("a.example", 65), (0, vec![], vec![]));
        assert_eq!(ask("localhost", 1), (0, vec![127, 0, 0, 1], vec![]));
        assert_eq!(
            ask("secret.evil.example", 1),
            (3, vec![], vec!["secret.evil.example".to_owned()])
        );
        assert_eq!(ask("secret.evil.example", 16), (3, vec![], vec![]));
    }
}
