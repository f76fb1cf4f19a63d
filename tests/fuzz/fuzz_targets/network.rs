//! What a command sends to the resolver, and as the first bytes of a connection: read or refused, never a panic; an
//! answer repeats its question and nothing else, and a name that is read stands in the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::Ipv4Addr;

#[allow(dead_code)]
#[path = "../../../src/guest/net/dns.rs"]
mod dns;
#[allow(dead_code)]
#[path = "../../../src/broker/egress/hello.rs"]
mod hello;

fuzz_target!(|data: &[u8]| {
    resolver(data);
    first_bytes(data);
});

fn resolver(data: &[u8]) {
    let dns::Query::Question(question) = dns::read(data) else { return };
    assert!(question.name.len() <= 254);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.?".contains(c);
    assert!(question.name.chars().all(plain), "{:?}", question.name);
    for answer in [dns::Answer::Address(Ipv4Addr::LOCALHOST), dns::Answer::NoSuchName] {
        let bytes = dns::answer(&question, answer);
        assert!(bytes.len() <= dns::MESSAGE_MAX);
        assert_eq!(bytes[..2], data[..2]);
        assert!(matches!(dns::read(&bytes), dns::Query::Nothing), "an answer is no query");
    }
}

fn first_bytes(data: &[u8]) {
    if let hello::Hello::Name(Some(name)) = hello::read(data) {
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_graphic()));
        let lower = data.to_ascii_lowercase();
        // In one record the name stands as it is; records may part it.
        let whole = data.len() < 5 || usize::from(u16::from_be_bytes([data[3], data[4]])) + 5 >= data.len();
        assert!(!whole || lower.windows(name.len()).any(|part| part == name.as_bytes()));
    }
    // More bytes change an answer only while it is not complete.
    if let Some((_, less)) = data.split_last() {
        let before = hello::read(less);
        assert!(before == hello::Hello::Incomplete || before == hello::read(data));
    }
}
