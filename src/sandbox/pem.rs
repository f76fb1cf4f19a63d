//! Whether a PEM file holds public material and nothing else.
//!
//! Duty: read the whole of a file strictly, and say yes only if every byte of it is accounted for: blocks of
//! certificates, revocation lists and public keys, blank lines, and comments as bundles of authorities have
//! them. Non-goals: whether a certificate is valid, trusted or current.
//!
//! Trust boundary: the file is the adversary's, and the answer decides whether a command may see it. What is
//! promised: no block of another label, in whatever case or line end; in a block no other object of ASN.1,
//! so no private key under a public label; nothing in comments that looks like a block or an encoded key.
//! What is not: that fields and extensions inside a well-formed certificate are harmless. Who put a secret
//! there has published it with the certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The longest file that is read.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The longest comment.
const MAX_COMMENT: usize = 400;

/// The longest run of letters and digits in a comment. Encoded keys have lines of 64; the longest words of
/// names are shorter.
const MAX_RUN: usize = 32;

/// The longest line of a block. RFC 7468 has 64, MIME 76.
const MAX_LINE: usize = 76;

/// The longest identifier of a key: a digest.
const MAX_KEY_ID: usize = 64;

/// What a block says that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Certificate,
    Trusted,
    Revocations,
    PublicKey,
}

const LABELS: [(&str, Label); 4] = [
    ("CERTIFICATE", Label::Certificate),
    ("TRUSTED CERTIFICATE", Label::Trusted),
    ("X509 CRL", Label::Revocations),
    ("PUBLIC KEY", Label::PublicKey),
];

/// Whether a whole file holds nothing but public blocks, at least one, and what may stand around them.
pub(super) fn is_public(file: &[u8]) -> bool {
    if file.len() > MAX_BYTES {
        return false;
    }
    let Ok(text) = std::str::from_utf8(file) else { return false };
    let mut blocks = 0;
    let mut open: Option<(Label, String)> = None;
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match &mut open {
            None if line.is_empty() => {}
            None if line.starts_with('#') => {
                if !is_comment(line) {
                    return false;
                }
            }
            None => match label(line, "-----BEGIN ") {
                Some(label) => open = Some((label, String::new())),
                None => return false,
            },
            Some((begun, encoded)) => {
                if let Some(ended) = label(line, "-----END ") {
                    if ended != *begun || !is_object(*begun, encoded) {
                        return false;
                    }
                    blocks += 1;
                    open = None;
                } else if line.is_empty() || line.len() > MAX_LINE {
                    return false;
                } else {
                    // What is not base64 is found when the block ends.
                    encoded.push_str(line);
                }
            }
        }
    }
    open.is_none() && blocks > 0
}

fn label(line: &str, start: &str) -> Option<Label> {
    let name = line.strip_prefix(start)?.strip_suffix("-----")?;
    LABELS.iter().find(|(known, _)| *known == name).map(|(_, label)| *label)
}

/// Whether a comment can hold no key: no dashes as around blocks, no long run of encoded bytes, no control
/// characters. Serial numbers and fingerprints are figures alone, or have colons.
fn is_comment(line: &str) -> bool {
    let encoded = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    let short = |run: &str| {
        let figures = run.bytes().all(|byte| byte.is_ascii_digit());
        run.len() <= MAX_RUN || (figures && run.len() <= 2 * MAX_RUN)
    };
    line.len() <= MAX_COMMENT
        && !line.contains("-----")
        && !line.chars().any(char::is_control)
        && line.split(|c| !encoded(c)).all(short)
}

/// Whether a block holds what its label says, by the outer structure of its bytes.
fn is_object(label: Label, encoded: &str) -> bool {
    let Ok(der) = STANDARD.decode(encoded) else { return false };
    match label {
        Label::Certificate => {
            der::all(&der).is_some_and(|all| matches!(all[..], [one] if signed(one, certificate)))
        }
        Label::Trusted => der::all(&der).is_some_and(|all| match all[..] {
            [one] => signed(one, certificate),
            [one, trust] => signed(one, certificate) && is_trust(trust),
            _ => false,
        }),
        Label::Revocations => {
            der::all(&der).is_some_and(|all| matches!(all[..], [one] if signed(one, revocations)))
        }
        Label::PublicKey => {
            der::all(&der).is_some_and(|all| matches!(all[..], [one] if public_key(one)))
        }
    }
}

/// What OpenSSL says of a certificate behind it: purposes that it is trusted for, and that it is not, a name,
/// the identifier of its key.
fn is_trust((tag, content): Object<'_>) -> bool {
    let Some(members) = der::all(content).filter(|_| tag == der::SEQUENCE) else { return false };
    fn purposes(content: &[u8]) -> bool {
        der::all(content).is_some_and(|all| all.iter().all(|(tag, _)| *tag == der::OBJECT))
    }
    let place = |(tag, content): &Object<'_>| match *tag {
        der::SEQUENCE if purposes(content) => Some(0),
        der::CONTEXT_0 if purposes(content) => Some(1),
        der::UTF8_STRING => Some(2),
        der::OCTET_STRING if content.len() <= MAX_KEY_ID => Some(3),
        _ => None,
    };
    let places: Option<Vec<u8>> = members.iter().map(place).collect();
    places.is_some_and(|places| places.is_sorted_by(|one, next| one < next))
}

type Object<'d> = (u8, &'d [u8]);

/// `SEQUENCE { what is signed, SEQUENCE algorithm, BIT STRING signature }`. Private keys begin with a number
/// (PKCS #1, PKCS #8, SEC 1), or have two members (encrypted PKCS #8).
fn signed((tag, content): Object<'_>, what: fn(&[Object<'_>]) -> bool) -> bool {
    let Some(members) = der::all(content).filter(|_| tag == der::SEQUENCE) else { return false };
    match members[..] {
        [(der::SEQUENCE, inner), (der::SEQUENCE, _), (der::BIT_STRING, _)] => {
            der::all(inner).is_some_and(|inner| what(&inner))
        }
        _ => false,
    }
}

/// Version, serial number, algorithm, issuer, validity, subject, key; identifiers and extensions.
fn certificate(members: &[Object<'_>]) -> bool {
    let mut members = members;
    if let [(der::CONTEXT_0, _), rest @ ..] = members {
        members = rest;
    }
    let tags: Vec<u8> = members.iter().map(|(tag, _)| *tag).collect();
    let Some((must, may)) = tags.split_at_checked(6) else { return false };
    let key = members.get(5).copied();
    must == [
        der::INTEGER,
        der::SEQUENCE,
        der::SEQUENCE,
        der::SEQUENCE,
        der::SEQUENCE,
        der::SEQUENCE,
    ] && key.is_some_and(public_key)
        && may.is_sorted()
        && may.iter().all(|tag| [0x81, 0x82, 0xA1, 0xA2, 0xA3].contains(tag))
}

/// Version, algorithm, issuer, times, what is revoked, extensions.
fn revocations(members: &[Object<'_>]) -> bool {
    let mut tags = members.iter().map(|(tag, _)| *tag).peekable();
    let _ = tags.next_if_eq(&der::INTEGER);
    let is_time = |tag: &u8| [der::UTC_TIME, der::GENERALIZED_TIME].contains(tag);
    let must = tags.next() == Some(der::SEQUENCE)
        && tags.next() == Some(der::SEQUENCE)
        && tags.next().as_ref().is_some_and(is_time);
    let _ = tags.next_if(is_time);
    let _ = tags.next_if_eq(&der::SEQUENCE);
    let _ = tags.next_if_eq(&der::CONTEXT_0);
    must && tags.next().is_none()
}

/// `SEQUENCE { SEQUENCE { OBJECT IDENTIFIER, … }, BIT STRING }`.
fn public_key((tag, content): Object<'_>) -> bool {
    let Some(members) = der::all(content).filter(|_| tag == der::SEQUENCE) else { return false };
    match members[..] {
        [(der::SEQUENCE, algorithm), (der::BIT_STRING, _)] => der::all(algorithm)
            .is_some_and(|algorithm| algorithm.first().is_some_and(|(tag, _)| *tag == der::OBJECT)),
        _ => false,
    }
}

/// Objects in the distinguished encoding of ASN.1, one level deep.
mod der {
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const BIT_STRING: u8 = 0x03;
    pub(super) const OCTET_STRING: u8 = 0x04;
    pub(super) const OBJECT: u8 = 0x06;
    pub(super) const UTF8_STRING: u8 = 0x0C;
    pub(super) const UTC_TIME: u8 = 0x17;
    pub(super) const GENERALIZED_TIME: u8 = 0x18;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const CONTEXT_0: u8 = 0xA0;

    /// Most objects that are looked at beside each other.
    const MAX_OBJECTS: usize = 16;

    /// The objects that some bytes are, one behind the other, to the last byte.
    pub(super) fn all(bytes: &[u8]) -> Option<Vec<super::Object<'_>>> {
        let mut rest = bytes;
        let mut all = Vec::new();
        while !rest.is_empty() {
            let (object, behind) = one(rest).filter(|_| all.len() < MAX_OBJECTS)?;
            all.push(object);
            rest = behind;
        }
        Some(all)
    }

    fn one(bytes: &[u8]) -> Option<(super::Object<'_>, &[u8])> {
        let (&tag, rest) = bytes.split_first()?;
        // A tag of several bytes stands nowhere in what is looked at.
        let (&first, rest) = rest.split_first().filter(|_| tag & 0x1F != 0x1F)?;
        let (length, rest) = match first {
            ..=0x7F => (usize::from(first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
                let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
                // The shortest form is the only one.
                (length, (digits.first() != Some(&0) && length >= 0x80).then_some(rest)?)
            }
            _ => return None,
        };
        let (content, behind) = rest.split_at_checked(length)?;
        Some(((tag, content), behind))
    }
}

#[cfg(test)]
#[path = "pem_tests.rs"]
mod tests;
