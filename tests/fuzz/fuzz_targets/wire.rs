//! Foreign bytes as frames, and foreign payloads as messages: an error or a value, never a panic, and a
//! value survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runner_wire::{Channel, Decoder, Encoder, Frame, GuestMessage, HostMessage, Key, Kind, Side};

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, channel, cut], payload)) = data.split_first_chunk::<3>() else {
        return;
    };
    frames(payload, usize::from(cut) + 1);
    if let Some(kind) = Kind::from_number(kind) {
        messages(kind, Channel(u32::from(channel)), payload);
    }
});

/// Bytes as they may come from a pipe, in pieces.
fn frames(bytes: &[u8], piece: usize) {
    let mut decoder = Decoder::new(Side::Guest);
    decoder.rekey(&Key::new([1; 32]));
    for chunk in bytes.chunks(piece) {
        decoder.push(chunk);
        match decoder.next_frame() {
            Ok(None) => {}
            Ok(Some(frame)) => panic!("made up without the key: {frame:?}"),
            Err(_) => return,
        }
    }
}

/// A payload behind a right code of authentication.
fn messages(kind: Kind, channel: Channel, payload: &[u8]) {
    if payload.len() > kind.cap() {
        return;
    }
    let frame = Frame { kind, channel, payload: payload.to_vec() };
    if let Ok(message) = HostMessage::from_frame(frame.clone()) {
        let mut bytes = Vec::new();
        if message.encode(&mut Encoder::new(Side::Host), &mut bytes).is_ok() {
            let again = HostMessage::from_frame(one(Side::Host, &bytes));
            assert_eq!(again.as_ref(), Ok(&message));
        }
    }
    if let Ok(message) = GuestMessage::from_frame(frame) {
        let mut bytes = Vec::new();
        if message.encode(&mut Encoder::new(Side::Guest), &mut bytes).is_ok() {
            let again = GuestMessage::from_frame(one(Side::Guest, &bytes));
            assert_eq!(again.as_ref(), Ok(&message));
        }
    }
}

fn one(side: Side, bytes: &[u8]) -> Frame {
    let mut decoder = Decoder::new(side);
    decoder.push(bytes);
    let frame = decoder.next_frame().expect("our own frame").expect("a whole frame");
    assert_eq!(decoder.finish(), Ok(()));
    frame
}
