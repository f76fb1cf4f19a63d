//! A guest that is slow to read, one that never reads, and one that is gone.

use std::time::Duration;

use futures_util::stream;
use runner_wire::{Bytes, Hello, MountSeen, Seen, VERSION};
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::time::timeout;

use super::*;

/// What the pipes between host and guest hold.
const PIPE: usize = 4 << 10;

fn hello(paths: usize) -> HostMessage {
    HostMessage::Hello(Hello {
        version: VERSION,
        key: Key::new([7; 32]),
        targets: (0..paths).map(|at| Bytes::from(format!("/w/{at}").into_bytes())).collect(),
        lease_ms: 1,
    })
}

fn wire(chunks: Chunks) -> (Wire, DuplexStream) {
    let (input, guest) = tokio::io::duplex(PIPE);
    (Wire::new(Attached { output: chunks, input: Box::pin(input) }), guest)
}

/// Reads the hello to its end, and only then answers: as a guest does.
async fn answer(mut guest: DuplexStream) -> Vec<u8> {
    let (mut decoder, mut encoder) = (Decoder::new(Side::Host), Encoder::new(Side::Guest));
    let mut piece = vec![0; 1 << 10];
    let hello = loop {
        if let Some(frame) = decoder.next_frame().unwrap() {
            match HostMessage::from_frame(frame).unwrap() {
                HostMessage::Hello(hello) => break hello,
                other => panic!("{other:?}"),
            }
        }
        let count = guest.read(&mut piece).await.unwrap();
        assert!(count > 0, "the host went away");
        decoder.push(&piece[..count]);
    };
    encoder.rekey(&hello.key);
    let mounts = hello.targets.into_iter().map(|target| MountSeen {
        target,
        dev: 1,
        ino: 2,
        read_only: true,
        mark: None,
    });
    let seen = Seen { uid: 1, gid: 1, capabilities: 0, no_new_privs: None, seccomp: None };
    let ready = Ready { version: VERSION, mounts: mounts.collect(), seen };
    let mut bytes = Vec::new();
    GuestMessage::Ready(ready).encode(&mut encoder, &mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_hello_that_no_pipe_holds_is_written_while_the_guest_reads_it() {
    for paths in [1, 20_000] {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let said = stream::once(async { Ok(Chunk::Wire(receiver.await.unwrap())) });
        let (mut wire, guest) = wire(Box::pin(said.chain(stream::pending())));
        wire.queue(&hello(paths)).unwrap();
        wire.rekey(&Key::new([7; 32]));
        // The guest does not run yet: this must not wait for it.
        timeout(Duration::from_secs(60), wire.flush_if_short()).await.expect("it waits");
        tokio::spawn(async { sender.send(answer(guest).await).unwrap() });
        let ready = timeout(Duration::from_secs(60), wire.ready()).await.expect("it waits");
        assert_eq!(ready.unwrap().mounts.len(), paths);
        assert!(!wire.outbox.busy());
    }
}

#[tokio::test]
async fn a_guest_that_never_reads_is_waited_for_no_longer_than_the_caller_says() {
    let (mut wire, _guest) = wire(Box::pin(stream::pending()));
    wire.queue(&hello(20_000)).unwrap();
    let (before, most) = (wire.outbox.len(), Duration::from_millis(50));
    assert!(timeout(most, wire.ready()).await.is_err());
    // What was written before is not written again.
    assert_eq!(wire.outbox.len(), before - PIPE);
}

#[tokio::test]
async fn a_guest_that_is_gone_has_the_last_word() {
    let words = stream::iter([Ok(Chunk::Noise(b"no memory\n".to_vec()))]);
    let (mut wire, guest) = wire(Box::pin(words));
    drop(guest);
    wire.queue(&hello(20_000)).unwrap();
    match wire.ready().await {
        Err(RunError::GuestLost { noise }) => assert_eq!(noise, "no memory"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_longer_than_a_message_may_be_is_refused_in_plain_words() {
    let (mut wire, _guest) = wire(Box::pin(stream::pending()));
    let error = wire.queue(&hello(700_000)).unwrap_err();
    assert!(matches!(error, RunError::TooLong { .. }), "{error}");
    assert!(!wire.outbox.busy(), "nothing of it is sent");
}
