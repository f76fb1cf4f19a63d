//! Properties of the codec: whatever is cut, repeated, moved or changed is noticed.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use proptest::prelude::*;
use runner_wire::*;

fn key() -> Key {
    Key::new([9; 32])
}

fn encode(messages: &[(Channel, Vec<u8>)]) -> Vec<u8> {
    let mut encoder = Encoder::new(Side::Guest);
    encoder.rekey(&key());
    let mut bytes = Vec::new();
    for (channel, payload) in messages {
        encoder.frame(Kind::Data, *channel, payload, &mut bytes).unwrap();
    }
    bytes
}

fn decode(bytes: &[u8], piece: usize) -> Result<Vec<(Channel, Vec<u8>)>, WireError> {
    let mut decoder = Decoder::new(Side::Guest);
    decoder.rekey(&key());
    let mut frames = Vec::new();
    for chunk in bytes.chunks(piece.max(1)) {
        decoder.push(chunk);
        while let Some(frame) = decoder.next_frame()? {
            frames.push((frame.channel, frame.payload));
        }
    }
    decoder.finish()?;
    Ok(frames)
}

fn streams() -> impl Strategy<Value = Vec<(Channel, Vec<u8>)>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..300);
    proptest::collection::vec(
        (prop_oneof![Just(Channel::STDOUT), Just(Channel::STDERR)], payload),
        1..8,
    )
}

proptest! {
    #[test]
    fn frames_survive_any_cut_into_pieces(stream in streams(), piece in 1_usize..400) {
        prop_assert_eq!(decode(&encode(&stream), piece).unwrap(), stream);
    }

    #[test]
    fn one_changed_bit_is_an_error(stream in streams(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = encode(&stream);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(decode(&bytes, 64).is_err());
    }

    #[test]
    fn a_cut_end_is_an_error_or_a_shorter_stream(stream in streams(), at in any::<prop::sample::Index>()) {
        let bytes = encode(&stream);
        let cut = &bytes[..at.index(bytes.len())];
        if let Ok(frames) = decode(cut, 64) {
            prop_assert!(frames.len() < stream.len() && stream.starts_with(&frames));
        }
    }

    #[test]
    fn foreign_bytes_never_become_a_frame(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        if let Ok(frames) = decode(&bytes, 128) {
            prop_assert!(frames.is_empty());
        }
    }

    #[test]
    fn byte_strings_survive(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let value = Bytes(bytes);
        let text = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<Bytes>(&text).unwrap(), value);
    }

    #[test]
    fn any_json_is_a_message_or_an_error(payload in ".{0,200}", kind in 0_usize..Kind::ALL.len(), channel in 0_u32..5) {
        let frame = |kind| Frame { kind, channel: Channel(channel), payload: payload.clone().into_bytes() };
        let _ = HostMessage::from_frame(frame(Kind::ALL[kind]));
        let _ = GuestMessage::from_frame(frame(Kind::ALL[kind]));
    }
}

#[test]
fn a_repeated_or_moved_frame_is_an_error() {
    let stream: Vec<_> = (0..3).map(|at| (Channel::STDOUT, vec![at; 10])).collect();
    let bytes = encode(&stream);
    let frames: Vec<_> = bytes.chunks(HEADER + 10).collect();
    for order in [vec![0, 0, 1], vec![1, 0, 2], vec![0, 2], vec![1]] {
        let mixed: Vec<u8> = order.iter().flat_map(|at: &usize| frames[*at]).copied().collect();
        assert!(matches!(decode(&mixed, 1000), Err(WireError::Sequence { .. })), "{order:?}");
    }
}

#[test]
fn another_key_or_side_is_forged() {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(Side::Guest);
    encoder.rekey(&Key::new([8; 32]));
    encoder.frame(Kind::Data, Channel::STDOUT, b"x", &mut bytes).unwrap();
    assert_eq!(decode(&bytes, 1000), Err(WireError::Forged));

    bytes.clear();
    let mut encoder = Encoder::new(Side::Host);
    encoder.rekey(&key());
    encoder.frame(Kind::Data, Channel::STDOUT, b"x", &mut bytes).unwrap();
    assert_eq!(decode(&bytes, 1000), Err(WireError::Forged));
}

#[test]
fn a_length_is_refused_before_its_payload_comes() {
    for kind in Kind::ALL {
        let mut header = vec![0; HEADER];
        header[..4].copy_from_slice(&u32::try_from(kind.cap() + 1).unwrap().to_le_bytes());
        header[4] = kind as u8;
        let mut decoder = Decoder::new(Side::Guest);
        decoder.push(&header);
        assert!(matches!(decoder.next_frame(), Err(WireError::TooLong { .. })), "{kind:?}");
    }
    let mut encoder = Encoder::new(Side::Host);
    let long = vec![0; DATA_MAX + 1];
    assert!(encoder.frame(Kind::Data, Channel::STDIN, &long, &mut Vec::new()).is_err());
}

#[test]
fn a_message_from_the_wrong_side_or_channel_is_refused() {
    let frame = |kind, channel, payload: &str| Frame {
        kind,
        channel: Channel(channel),
        payload: payload.as_bytes().to_vec(),
    };
    for (kind, channel, payload) in [
        (Kind::Data, 1, "x"),
        (Kind::Data, 9, "x"),
        (Kind::Start, 0, "{}"),
        (Kind::Hello, 0, "{}"),
        (Kind::Resize, 0, "{}"),
        (Kind::Started, 1, r#"{"spawn_us":1}"#),
        (Kind::Started, 0, r#"{"spawn_us":1,"spawn_us":2}"#),
        (Kind::Started, 0, r#"{"spawn_us":1,"more":2}"#),
        (Kind::Started, 0, r#"{"spawn_us":-1}"#),
        (Kind::Started, 0, r#"{"spawn_us":1} x"#),
        (Kind::Started, 0, r"{}"),
        (Kind::Started, 0, "[1]x"),
        (Kind::Credit, 1, r#"{"bytes":5000000000}"#),
        (Kind::Close, 2, r#"{"x":1}"#),
        (
            Kind::Exit,
            0,
            r#"{"ending":{"exited":{"status":0},"exited":{"status":1}},"hits":[],"usage":{}}"#,
        ),
    ] {
        assert!(
            GuestMessage::from_frame(frame(kind, channel, payload)).is_err(),
            "{kind:?} {payload}"
        );
    }
}

#[test]
fn a_key_is_not_shown() {
    let shown = format!("{:?}", Key::new([0x41; 32]));
    assert_eq!(shown, "Key(hidden)");
}
