//! The first message of TLS, read as far as it says which host is meant. Nothing is decrypted or changed.
//!
//! Trust boundary: the bytes are the command's. What is not exactly one ClientHello with one name is refused.

/// The longest message that is read: a ClientHello with the keys of two post-quantum exchanges has 4 KiB.
pub const HELLO_MAX: usize = 16 << 10;

/// A record of TLS is no longer.
const RECORD_MAX: usize = 16 << 10;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// Earlier drafts, of which servers and clients exist.
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;

/// What the first bytes of a connection are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// Not all of it has come.
    Incomplete,
    /// It means this host, in lower case; none if it does not say.
    Name(Option<String>),
    /// Another host is meant than the one that can be read.
    Encrypted,
    /// Something else.
    NotTls,
}

/// Reads the beginning of a connection.
#[must_use]
pub fn read(bytes: &[u8]) -> Hello {
    match message(bytes) {
        Ok(None) => Hello::Incomplete,
        Ok(Some(message)) => client_hello(&message).unwrap_or(Hello::NotTls),
        Err(NotTls) => Hello::NotTls,
    }
}

struct NotTls;

/// The first handshake message, which may lie in several records.
fn message(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, NotTls> {
    let mut message = Vec::new();
    loop {
        match bytes {
            [] => return Ok(None),
            [kind, ..] if *kind != HANDSHAKE => return Err(NotTls),
            [_, major, ..] if *major != 3 => return Err(NotTls),
            [_, _, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 || length > RECORD_MAX {
                    return Err(NotTls);
                }
                let Some((record, after)) = rest.split_at_checked(length) else {
                    return if starts_hello(&message, rest) { Ok(None) } else { Err(NotTls) };
                };
                message.extend_from_slice(record);
                bytes = after;
            }
            _ => return Ok(None),
        }
        if !starts_hello(&message, &[]) || message.len() > HELLO_MAX {
            return Err(NotTls);
        }
        if let [_, a, b, c, body @ ..] = message.as_slice() {
            let length = usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).unwrap_or(usize::MAX);
            if length > HELLO_MAX {
                return Err(NotTls);
            }
            if let Some(body) = body.get(..length) {
                return Ok(Some(body.to_vec()));
            }
        }
    }
}

fn starts_hello(message: &[u8], rest: &[u8]) -> bool {
    message.first().or(rest.first()).is_none_or(|kind| *kind == CLIENT_HELLO)
}

/// Bytes that are taken from the front.
struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector behind its length in one byte.
    fn short(&mut self) -> Option<&'b [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    /// A vector behind its length in two bytes.
    fn long(&mut self) -> Option<&'b [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

fn client_hello(message: &[u8]) -> Option<Hello> {
    let mut cursor = Cursor(message);
    // Version and random, session, ciphers, compressions.
    cursor.take(34)?;
    cursor.short()?;
    cursor.long()?;
    cursor.short()?;
    if cursor.0.is_empty() {
        return Some(Hello::Name(None));
    }
    let mut extensions = Cursor(cursor.long()?);
    if !cursor.0.is_empty() {
        return None;
    }
    let (mut name, mut encrypted) = (None, false);
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let body = extensions.long()?;
        match kind {
            // Twice is an error to a server, or a second opinion to another.
            SERVER_NAME if name.is_some() => return None,
            SERVER_NAME => name = Some(server_name(body)?),
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => encrypted = true,
            _ => {}
        }
    }
    Some(if encrypted { Hello::Encrypted } else { Hello::Name(name) })
}

/// The one name of the extension.
fn server_name(body: &[u8]) -> Option<String> {
    let mut cursor = Cursor(body);
    let mut list = Cursor(cursor.long()?);
    let kind = list.take(1)?[0];
    let name = list.long()?;
    let whole = cursor.0.is_empty() && list.0.is_empty() && kind == 0 && !name.is_empty();
    let plain = name.iter().all(|byte| byte.is_ascii_graphic());
    let text = String::from_utf8(name.to_vec()).ok().filter(|_| whole && plain)?;
    Some(text.to_ascii_lowercase())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap();
        [&kind.to_be_bytes()[..], &length.to_be_bytes(), body].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        let length = u16::try_from(name.len()).unwrap();
        let entry = [&[0][..], &length.to_be_bytes(), name].concat();
        let list = u16::try_from(entry.len()).unwrap();
        extension(SERVER_NAME, &[&list.to_be_bytes()[..], &entry].concat())
    }

    fn record(body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap();
        [&[HANDSHAKE, 3, 1][..], &length.to_be_bytes(), body].concat()
    }

    fn message_of(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend_from_slice(&[7; 32]);
        body.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0]);
        body.extend_from_slice(&u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend_from_slice(extensions);
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[CLIENT_HELLO][..], &length[1..], &body].concat()
    }

    /// A ClientHello that means this host.
    pub fn hello(name: &str) -> Vec<u8> {
        record(&message_of(&[extension(43, &[2, 3, 4]), sni(name.as_bytes())].concat()))
    }

    #[test]
    fn the_name_is_found_in_one_record_and_in_several() {
        let whole = hello("Registry.Example");
        let expected = Hello::Name(Some("registry.example".to_owned()));
        assert_eq!(read(&whole), expected);
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Hello::Incomplete, "{end}");
        }
        let message = message_of(&sni(b"registry.example"));
        let pieces: Vec<u8> = message.chunks(7).flat_map(record).collect();
        assert_eq!(read(&pieces), expected);
        // What follows is not looked at.
        assert_eq!(read(&[whole, vec![20, 3, 3, 0, 1, 1]].concat()), expected);
    }

    #[test]
    fn a_hidden_or_missing_name_is_told_apart() {
        assert_eq!(read(&record(&message_of(&extension(43, &[2, 3, 4])))), Hello::Name(None));
        for kind in [ENCRYPTED_CLIENT_HELLO, ENCRYPTED_SERVER_NAME] {
            let both = [sni(b"a.example"), extension(kind, &[0; 8])].concat();
            assert_eq!(read(&record(&message_of(&both))), Hello::Encrypted);
        }
    }

    #[test]
    fn anything_else_is_not_tls() {
        let twice = [sni(b"a.example"), sni(b"b.example")].concat();
        let mut torn = message_of(&sni(b"a.example"));
        torn[3] -= 1;
        for bytes in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"SSH-2.0-x\r\n".to_vec(),
            vec![HANDSHAKE, 3, 1, 0, 0],
            vec![HANDSHAKE, 3, 1, 255, 255, 1],
            vec![HANDSHAKE, 2, 1, 0, 5, 1],
            vec![HANDSHAKE, 3, 1, 0, 5, 2],
            vec![HANDSHAKE, 3, 1, 0, 4, CLIENT_HELLO, 255, 255, 255],
            record(&message_of(&twice)),
            record(&message_of(&sni(b""))),
            record(&message_of(&sni(b"a b"))),
            record(&torn),
        ] {
            assert_eq!(read(&bytes), Hello::NotTls, "{bytes:?}");
        }
    }
}
