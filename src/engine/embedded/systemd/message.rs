//! Messages of D-Bus, as far as two of them go: the call that we send, and what comes back.
//!
//! Layout: sixteen bytes (byte order, type, flags, version, length of the body, serial, length of the
//! fields), the fields as an array of `(yv)`, padding to eight, the body. Everything that we read is
//! checked against what is left before it is taken. A message in another byte order, or with a field whose
//! type is not a plain one, is an error: the managers of this machine send none.

use std::io;

/// The longest message that is read. A manager also sends changes of other units, which are passed over.
pub(super) const MESSAGE_MAX: usize = 4 << 20;

/// What every message begins with.
pub(super) const HEAD: usize = 16;

/// The serial of the one call.
pub(super) const SERIAL: u32 = 1;

/// Where systemd's manager is.
const PATH: &str = "/org/freedesktop/systemd1";
const INTERFACE: &str = "org.freedesktop.systemd1.Manager";

/// Writes values, each where its type must begin.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, value: u32) {
        self.align(4);
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, value: &str) {
        self.number(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.0.extend(value.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, value: &str) {
        self.0.push(u8::try_from(value.len()).unwrap_or(u8::MAX));
        self.0.extend(value.as_bytes());
        self.0.push(0);
    }

    /// An array: its length is known when it is written.
    fn array(&mut self, align: usize, write: impl FnOnce(&mut Self)) {
        self.number(0);
        let length = self.0.len() - 4;
        self.align(align);
        let begin = self.0.len();
        write(self);
        let count = u32::try_from(self.0.len() - begin).unwrap_or(u32::MAX);
        self.0[length..length + 4].copy_from_slice(&count.to_le_bytes());
    }

    /// One `(sv)`.
    fn property(&mut self, name: &str, kind: &str, write: impl FnOnce(&mut Self)) {
        self.align(8);
        self.text(name);
        self.signature(kind);
        write(self);
    }

    /// One field of a header, `(yv)`.
    fn field(&mut self, code: u8, kind: &str, write: impl FnOnce(&mut Self)) {
        self.align(8);
        self.0.push(code);
        self.signature(kind);
        write(self);
    }
}

/// `StartTransientUnit(name, "fail", properties, [])` for a scope with one process.
pub(super) fn start_scope(name: &str, pid: u32, description: &str) -> Vec<u8> {
    let mut body = Writer::default();
    body.text(name);
    body.text("fail");
    body.array(8, |it| {
        it.property("Description", "s", |it| it.text(description));
        it.property("PIDs", "au", |it| it.array(4, |it| it.number(pid)));
        it.property("Delegate", "b", |it| it.number(1));
        it.property("CollectMode", "s", |it| it.text("inactive-or-failed"));
    });
    body.array(8, |_| {});
    let mut all = Writer::default();
    // Little endian, a call, no flags, version 1.
    all.0.extend(*b"l\x01\x00\x01");
    all.number(u32::try_from(body.0.len()).unwrap_or(u32::MAX));
    all.number(SERIAL);
    all.array(8, |it| {
        it.field(1, "o", |it| it.text(PATH));
        it.field(2, "s", |it| it.text(INTERFACE));
        it.field(3, "s", |it| it.text("StartTransientUnit"));
        it.field(8, "g", |it| it.signature("ssa(sv)a(sa(sv))"));
    });
    all.align(8);
    all.0.extend(body.0);
    all.0
}

/// How long a message is that begins so.
pub(super) fn length(head: &[u8; HEAD]) -> io::Result<usize> {
    let mut reader = Reader { bytes: head, at: 0 };
    let begin = reader.take(4)?;
    if begin[0] != b'l' || begin[3] != 1 {
        return Err(wrong());
    }
    let (body, _, fields) = (reader.number()?, reader.number()?, reader.number()?);
    let size = |value: u32| usize::try_from(value).map_err(|_| wrong());
    let (body, fields) = (size(body)?, size(fields)?);
    if body > MESSAGE_MAX || fields > MESSAGE_MAX {
        return Err(wrong());
    }
    let all = (HEAD + fields).next_multiple_of(8) + body;
    if all > MESSAGE_MAX { Err(wrong()) } else { Ok(all) }
}

/// What came from the manager.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The call was taken: what it asks for is on its way.
    Taken,
    /// The call was refused, with this name of an error.
    Refused(String),
    /// A job of a unit has ended so.
    Ended { unit: String, result: String },
    /// About something else.
    Other,
}

/// Reads a whole message.
pub(super) fn read(message: &[u8]) -> io::Result<Answer> {
    let mut reader = Reader { bytes: message, at: 0 };
    let kind = reader.take(4)?[1];
    let (_, _, fields) = (reader.number()?, reader.number()?, reader.number()?);
    let end = reader.at.saturating_add(usize::try_from(fields).map_err(|_| wrong())?);
    let (mut member, mut error, mut serial, mut body) = (None, None, None, None);
    while reader.at < end {
        reader.align(8)?;
        let code = reader.take(1)?[0];
        let kind = reader.signature()?;
        match (code, kind) {
            (3, "s") => member = Some(reader.text()?),
            (4, "s") => error = Some(reader.text()?),
            (5, "u") => serial = Some(reader.number()?),
            (8, "g") => body = Some(reader.signature()?),
            (_, "s" | "o") => drop(reader.text()?),
            (_, "u") => drop(reader.number()?),
            (_, "g") => drop(reader.signature()?),
            _ => return Err(wrong()),
        }
    }
    reader.align(8)?;
    Ok(match (kind, member, body) {
        (2, _, _) if serial == Some(SERIAL) => Answer::Taken,
        (3, _, _) if serial == Some(SERIAL) => Answer::Refused(error.ok_or_else(wrong)?.to_owned()),
        (4, Some("JobRemoved"), Some("uoss")) => {
            reader.number()?;
            reader.text()?;
            let (unit, result) = (reader.text()?, reader.text()?);
            Answer::Ended { unit: unit.to_owned(), result: result.to_owned() }
        }
        _ => Answer::Other,
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or_else(wrong)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(wrong)?;
        self.at = end;
        Ok(taken)
    }

    fn align(&mut self, to: usize) -> io::Result<()> {
        let count = self.at.next_multiple_of(to) - self.at;
        self.take(count).map(drop)
    }

    fn number(&mut self) -> io::Result<u32> {
        self.align(4)?;
        let bytes = self.take(4)?.try_into().map_err(|_| wrong())?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn text(&mut self) -> io::Result<&'a str> {
        let length = usize::try_from(self.number()?).map_err(|_| wrong())?;
        self.rest_of_text(length)
    }

    fn signature(&mut self) -> io::Result<&'a str> {
        let length = usize::from(self.take(1)?[0]);
        self.rest_of_text(length)
    }

    fn rest_of_text(&mut self, length: usize) -> io::Result<&'a str> {
        let text = self.take(length)?;
        match self.take(1)? {
            [0] => std::str::from_utf8(text).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is not a message that runner knows")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of this type with these fields and this body.
    fn message(kind: u8, fields: impl FnOnce(&mut Writer), body: &[u8]) -> Vec<u8> {
        let mut all = Writer::default();
        all.0.extend([b'l', kind, 1, 1]);
        all.number(u32::try_from(body.len()).unwrap());
        all.number(9);
        all.array(8, fields);
        all.align(8);
        all.0.extend(body);
        all.0
    }

    fn job_removed(unit: &str, result: &str) -> Vec<u8> {
        let mut body = Writer::default();
        body.number(49);
        body.text("/org/freedesktop/systemd1/job/49");
        body.text(unit);
        body.text(result);
        let fields = |it: &mut Writer| {
            it.field(1, "o", |it| it.text(PATH));
            it.field(2, "s", |it| it.text(INTERFACE));
            it.field(3, "s", |it| it.text("JobRemoved"));
            it.field(8, "g", |it| it.signature("uoss"));
        };
        message(4, fields, &body.0)
    }

    fn head(message: &[u8]) -> [u8; HEAD] {
        message[..HEAD].try_into().unwrap()
    }

    #[test]
    fn the_call_is_as_long_as_it_says_and_can_be_read() {
        let call = start_scope("runner-sandbox-1.scope", 77, "a sandbox");
        assert_eq!(length(&head(&call)).unwrap(), call.len());
        assert_eq!(read(&call).unwrap(), Answer::Other);
        assert!(call.windows(4).any(|four| four == 77_u32.to_le_bytes()));
    }

    #[test]
    fn the_end_of_a_job_is_understood() {
        let signal = job_removed("a.scope", "done");
        assert_eq!(length(&head(&signal)).unwrap(), signal.len());
        let expected = Answer::Ended { unit: "a.scope".into(), result: "done".into() };
        assert_eq!(read(&signal).unwrap(), expected);
    }

    #[test]
    fn an_answer_belongs_to_the_call() {
        let to = |serial| move |it: &mut Writer| it.field(5, "u", |it| it.number(serial));
        assert_eq!(read(&message(2, to(SERIAL), &[])).unwrap(), Answer::Taken);
        assert_eq!(read(&message(2, to(2), &[])).unwrap(), Answer::Other);
        let refused = |it: &mut Writer| {
            it.field(4, "s", |it| it.text("org.freedesktop.DBus.Error.AccessDenied"));
            it.field(5, "u", |it| it.number(SERIAL));
        };
        let expected = Answer::Refused("org.freedesktop.DBus.Error.AccessDenied".into());
        assert_eq!(read(&message(3, refused, &[])).unwrap(), expected);
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_an_error() {
        let signal = job_removed("a.scope", "done");
        for end in 0..signal.len() {
            assert!(read(&signal[..end]).is_err(), "{end}");
        }
        for at in 0..signal.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = signal.clone();
                changed[at] = value;
                // It is read or refused, and no byte makes it fail in another way.
                let _ = read(&changed);
                let _ = length(&head(&changed));
            }
        }
        let mut long = head(&signal);
        long[12..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(length(&long).is_err());
        let big_endian = [b'B', 4, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        assert!(length(&big_endian).is_err());
    }
}
