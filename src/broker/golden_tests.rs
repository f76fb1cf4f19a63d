//! The talk as the runtime writes it: `tests/cases/talk.golden`, which the runtime's own tests hold it to.

use super::frame::{Decoder, Frame, Kind, encode};
use super::{request, said};

const GOLDEN: &str = include_str!("../../tests/cases/talk.golden");

struct Line<'g> {
    side: &'g str,
    name: &'g str,
    number: u8,
    id: u32,
    payload: Vec<u8>,
    bytes: Vec<u8>,
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn lines() -> Vec<Line<'static>> {
    let rows = GOLDEN.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let [side, name, number, id, payload, bytes] = cells[..] else { panic!("{row}") };
        let payload = match payload.split_once(' ').unwrap() {
            ("text", text) => text.as_bytes().to_vec(),
            (_, digits) => hex(digits),
        };
        let (number, id) = (number.parse().unwrap(), id.parse().unwrap());
        Line { side, name, number, id, payload, bytes: hex(bytes) }
    })
    .collect()
}

#[test]
fn every_frame_is_the_bytes_that_the_runtime_has() {
    let lines = lines();
    assert!(lines.len() > 30);
    for line in &lines {
        assert_eq!(encode(line.number, line.id, &line.payload), line.bytes, "{}", line.name);
    }
}

#[test]
fn what_the_runtime_sends_is_understood() {
    let mut decoder = Decoder::default();
    let mut requests = 0;
    for line in lines().iter().filter(|line| line.side == "runtime") {
        decoder.room().extend_from_slice(&line.bytes);
        let Frame { kind, id, payload } = decoder.next_frame().unwrap().unwrap();
        assert_eq!((kind.number(), id, &payload), (line.number, line.id, &line.payload));
        assert_eq!(kind.name(), line.name.to_lowercase());
        match kind {
            Kind::Request => {
                let request = request::decode(&payload).unwrap_or_else(|error| {
                    panic!("{error}: {}", String::from_utf8_lossy(&payload))
                });
                let text = String::from_utf8(payload).unwrap();
                assert!(text.contains(request.action.method()), "{text}");
                requests += 1;
            }
            Kind::Note => drop(said::note(&payload).unwrap()),
            Kind::Result => drop(said::result(&payload).unwrap()),
            Kind::Chunk | Kind::End | Kind::Cancel => {}
        }
    }
    assert!(requests > 12, "{requests}");
    assert!(decoder.next_frame().unwrap().is_none());
}
