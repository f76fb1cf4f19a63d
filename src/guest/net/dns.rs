//! The messages of DNS, as little of them as an answer needs: one question, at most one address.
//!
//! Trust boundary: a query is any process's. It is read strictly, and nothing is taken from it but its number, one
//! flag and its question, which the answer repeats byte for byte.

use std::net::Ipv4Addr;

/// The largest message that is read or written: what every resolver takes over UDP.
pub const MESSAGE_MAX: usize = 512;

const HEADER: usize = 12;
/// The code of an address of IPv4.
pub const TYPE_A: u16 = 1;
/// The code of an address of IPv6.
pub const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;

/// Seconds for which an answer may be kept. Addresses hold for the whole call.
const TTL: u32 = 60;

/// Whether a query can be answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Query<'q> {
    /// It asks this.
    Question(Question<'q>),
    /// It has a number, and cannot be read: the answer says so.
    Malformed(u16),
    /// It is no query: it gets no answer.
    Nothing,
}

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub struct Question<'q> {
    id: u16,
    recursion: bool,
    /// The name, in lower case and without a final dot.
    pub name: String,
    /// What is asked of it.
    pub kind: u16,
    /// Whether it is asked of the internet's names.
    pub internet: bool,
    bytes: &'q [u8],
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This address.
    Address(Ipv4Addr),
    /// The name exists and has nothing of that kind.
    Empty,
    /// There is no such name.
    NoSuchName,
    /// It cannot be answered now.
    Failed,
    /// It is not answered here.
    Refused,
}

impl Answer {
    fn code(self) -> u8 {
        match self {
            Self::Address(_) | Self::Empty => 0,
            Self::Failed => 2,
            Self::NoSuchName => 3,
            Self::Refused => 5,
        }
    }
}

/// Reads a query.
pub fn read(message: &[u8]) -> Query<'_> {
    let Some((header, body)) = message.split_at_checked(HEADER) else { return Query::Nothing };
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (id, flags) = (word(0), word(2));
    // An answer, or another operation than a query.
    if flags & 0x8000 != 0 {
        return Query::Nothing;
    }
    let one_question = word(4) == 1 && word(6) == 0 && word(8) == 0;
    if flags & 0x7800 != 0 || !one_question || message.len() > MESSAGE_MAX {
        return Query::Malformed(id);
    }
    let Some((name, length)) = name(body) else { return Query::Malformed(id) };
    let Some(tail) = body.get(length..length + 4) else { return Query::Malformed(id) };
    Query::Question(Question {
        id,
        recursion: flags & 0x0100 != 0,
        name,
        kind: u16::from_be_bytes([tail[0], tail[1]]),
        internet: u16::from_be_bytes([tail[2], tail[3]]) == CLASS_IN,
        bytes: &body[..length + 4],
    })
}

/// A name at the start of a question, and its length there. A question has nothing to refer back to: references are
/// not read.
fn name(body: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), 0);
    loop {
        let length = usize::from(*body.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        let label = body.get(at..at + length).filter(|_| length <= 63)?;
        at += length;
        if at > 254 {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        for byte in label {
            // Anything else stands in no host name, and must not look like one.
            let plain = byte.is_ascii_alphanumeric() || b"-_".contains(byte);
            name.push(if plain { char::from(byte.to_ascii_lowercase()) } else { '?' });
        }
    }
}

/// The answer to a question.
pub fn answer(question: &Question<'_>, answer: Answer) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + question.bytes.len() + 16);
    let count = u8::from(matches!(answer, Answer::Address(_)));
    header(&mut message, question.id, question.recursion, answer.code(), [1, count]);
    message.extend_from_slice(question.bytes);
    if let Answer::Address(address) = answer {
        // The name is that of the question.
        message.extend_from_slice(&[0xc0, HEADER as u8]);
        message.extend_from_slice(&TYPE_A.to_be_bytes());
        message.extend_from_slice(&CLASS_IN.to_be_bytes());
        message.extend_from_slice(&TTL.to_be_bytes());
        message.extend_from_slice(&4_u16.to_be_bytes());
        message.extend_from_slice(&address.octets());
    }
    message
}

/// The answer to what cannot be read.
pub fn malformed(id: u16) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER);
    header(&mut message, id, false, 1, [0, 0]);
    message
}

fn header(message: &mut Vec<u8>, id: u16, recursion: bool, code: u8, counts: [u8; 2]) {
    let [questions, answers] = counts;
    message.extend_from_slice(&id.to_be_bytes());
    // An answer with authority; recursion is as good as offered, since nothing is left to ask.
    message.extend_from_slice(&[0x84 | u8::from(recursion), 0x80 | code]);
    message.extend_from_slice(&[0, questions, 0, answers, 0, 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &[u8], kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend_from_slice(name);
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        message
    }

    #[test]
    fn a_question_is_read_and_answered_byte_for_byte() {
        let message = query(b"\x08ReGistry\x07example\x00", TYPE_A);
        let Query::Question(question) = read(&message) else { panic!() };
        assert_eq!(question.name, "registry.example");
        assert!(question.internet);
        let answered = answer(&question, Answer::Address(Ipv4Addr::new(127, 64, 0, 1)));
        let mut expected = vec![0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
        expected.extend_from_slice(&message[12..]);
        expected.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 64, 0, 1]);
        assert_eq!(answered, expected);
        assert_eq!(answer(&question, Answer::NoSuchName)[3], 0x83);
    }

    #[test]
    fn what_resolvers_add_to_a_question_is_no_matter() {
        let mut message = query(b"\x01a\x00", TYPE_AAAA);
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        assert!(matches!(read(&message), Query::Question(question) if question.kind == TYPE_AAAA));
    }

    #[test]
    fn what_is_no_plain_query_is_not_answered_as_one() {
        let plain = query(b"\x01a\x00", TYPE_A);
        let changed = |at: usize, byte: u8| {
            let mut message = plain.clone();
            message[at] = byte;
            message
        };
        assert_eq!(read(&changed(2, 0x81)), Query::Nothing);
        assert_eq!(read(&[]), Query::Nothing);
        for message in [
            changed(2, 0x29),
            changed(5, 2),
            changed(5, 0),
            changed(7, 1),
            query(b"\xc0\x0c", TYPE_A),
            query(b"\x40a", TYPE_A),
            plain[..14].to_vec(),
            plain[..plain.len() - 1].to_vec(),
            query(&[b"\x3f".as_slice(), &[b'a'; 63]].concat().repeat(5), TYPE_A),
        ] {
            assert_eq!(read(&message), Query::Malformed(0xabcd), "{message:?}");
        }
    }

    #[test]
    fn odd_letters_make_no_name() {
        let message = query(b"\x05a.b\x00\xff\x00", TYPE_A);
        assert!(matches!(read(&message), Query::Question(question) if question.name == "a?b??"));
    }
}
