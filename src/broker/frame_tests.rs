use super::*;
use crate::broker::testing::Random;

const KINDS: [Kind; 6] =
    [Kind::Request, Kind::Chunk, Kind::End, Kind::Cancel, Kind::Note, Kind::Result];

/// A frame that may be sent, made from random numbers.
fn frame(random: &mut Random) -> Frame {
    let kind = KINDS[random.below(KINDS.len())];
    let id = if kind.takes(0) { 0 } else { random.next() | 1 };
    let length = if kind.cap() == 0 { 0 } else { random.below(300) };
    Frame { kind, id, payload: (0..length).map(|_| random.byte()).collect() }
}

fn read(bytes: &[u8], piece: usize) -> (Vec<Frame>, Result<(), ProtocolError>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for chunk in bytes.chunks(piece) {
        decoder.room().extend_from_slice(chunk);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(()))
}

#[test]
fn frames_survive_any_cutting() {
    for seed in 1..500 {
        let mut random = Random::new(seed);
        let frames: Vec<Frame> = (0..random.below(8)).map(|_| frame(&mut random)).collect();
        let bytes: Vec<u8> = frames
            .iter()
            .flat_map(|frame| encode(frame.kind.number(), frame.id, &frame.payload))
            .collect();
        let (read, end) = read(&bytes, 1 + random.below(400));
        assert_eq!(end, Ok(()), "seed {seed}");
        assert_eq!(read, frames, "seed {seed}");
    }
}

#[test]
fn any_bytes_are_frames_or_an_error_and_memory_stays_small() {
    for seed in 1..2000 {
        let mut random = Random::new(seed);
        let mut decoder = Decoder::default();
        // Half of the inputs look like frames at first.
        let mut bytes = Vec::new();
        while bytes.len() < 2000 {
            if random.below(2) == 0 {
                let frame = frame(&mut random);
                bytes.extend(encode(frame.kind.number(), frame.id, &frame.payload));
            } else {
                bytes.extend((0..random.below(20)).map(|_| random.byte()));
            }
        }
        for chunk in bytes.chunks(1 + random.below(400)) {
            decoder.room().extend_from_slice(chunk);
            while let Ok(Some(_)) = decoder.next_frame() {}
            assert!(decoder.buffer.capacity() <= bytes.len() + 2 * CHUNK_MAX, "seed {seed}");
        }
    }
}

#[test]
fn a_length_is_refused_by_its_header_alone() {
    for kind in KINDS {
        let over = u32::try_from(kind.cap()).unwrap() + 1;
        for length in [over, u32::MAX] {
            let id = u32::from(!kind.takes(0));
            let mut bytes = header(kind.number(), id, 0);
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            let (frames, end) = read(&bytes, 3);
            assert!(frames.is_empty());
            let code = end.unwrap_err().code();
            let expected = if kind.cap() == 0 { "protocol_not_empty" } else { "protocol_too_long" };
            assert_eq!(code, expected, "{kind:?}");
        }
        // One byte less is waited for.
        let bytes = header(kind.number(), u32::from(!kind.takes(0)), kind.cap());
        assert_eq!(read(&bytes, 9).1, Ok(()));
    }
}

#[test]
fn kinds_and_ids_that_cannot_be_are_refused() {
    for number in [0, 7, 16, 17, 255] {
        assert_eq!(read(&encode(number, 1, b""), 9).1, Err(ProtocolError::UnknownKind(number)));
    }
    for kind in KINDS {
        let wrong = u32::from(kind.takes(0));
        let (_, end) = read(&encode(kind.number(), wrong, b""), 9);
        assert_eq!(end, Err(ProtocolError::BadId { kind: kind.name(), id: wrong }));
    }
}
