use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::*;

struct Kept(mpsc::UnboundedSender<(End, String, u16)>);

impl Connections for Kept {
    fn open(&mut self, end: End, name: String, port: u16) {
        self.0.send((end, name, port)).unwrap();
    }

    fn missed(&mut self, _: String) {}
}

fn tunnels() -> (Tunnels, mpsc::UnboundedReceiver<(End, String, u16)>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Tunnels::new(Some(Box::new(Kept(sender)))), receiver)
}

fn open() -> Open {
    Open { name: "a.example".to_owned(), port: 443 }
}

const FIRST: Channel = Channel::FIRST_TUNNEL;

async fn message(tunnels: &mut Tunnels) -> HostMessage {
    match tunnels.next(true).await {
        (_, Answer::Message(message)) => message,
        (_, Answer::Broken(error)) => panic!("{error}"),
    }
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_end_closes_for_itself() {
    let (mut tunnels, mut opened) = tunnels();
    tunnels.open(FIRST, open()).unwrap();
    let (mut end, name, port) = opened.recv().await.unwrap();
    assert_eq!((name.as_str(), port), ("a.example", 443));
    tunnels.take(FIRST, b"hello".to_vec()).unwrap();
    tunnels.close(FIRST).unwrap();
    let mut text = String::new();
    end.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello");
    end.write_all(b"back").await.unwrap();
    end.shutdown().await.unwrap();
    assert_eq!(message(&mut tunnels).await, HostMessage::Data(FIRST, b"back".to_vec()));
    assert_eq!(message(&mut tunnels).await, HostMessage::Close(FIRST));
    drop(end);
    // What is late for a channel that is over is no matter; the next one has the next number.
    tunnels.grant(FIRST, 4).unwrap();
    tunnels.open(Channel(FIRST.0 + 1), open()).unwrap();
}

#[tokio::test]
async fn an_end_sends_no_more_than_its_credit_and_others_go_on() {
    let (mut tunnels, mut opened) = tunnels();
    tunnels.open(FIRST, open()).unwrap();
    tunnels.open(Channel(FIRST.0 + 1), open()).unwrap();
    let (mut one, ..) = opened.recv().await.unwrap();
    let (mut other, ..) = opened.recv().await.unwrap();
    let much = vec![7; TUNNEL_WINDOW as usize + 1];
    let mut stuck = tokio::spawn(async move {
        one.write_all(&much).await.unwrap();
        one
    });
    let mut sent = 0;
    while sent < TUNNEL_WINDOW as usize {
        let HostMessage::Data(FIRST, bytes) = message(&mut tunnels).await else { panic!() };
        sent += bytes.len();
    }
    other.write_all(b"x").await.unwrap();
    let HostMessage::Data(channel, _) = message(&mut tunnels).await else { panic!() };
    assert_eq!(channel, Channel(FIRST.0 + 1));
    assert!(!stuck.is_finished());
    tunnels.grant(FIRST, 1).unwrap();
    let one = (&mut stuck).await.unwrap();
    let HostMessage::Data(FIRST, bytes) = message(&mut tunnels).await else { panic!() };
    assert_eq!(bytes.len(), 1);
    drop(one);
    assert_eq!(message(&mut tunnels).await, HostMessage::Reset(FIRST));
}

#[tokio::test]
async fn a_guest_that_does_not_keep_to_the_protocol_ends_the_call() {
    let (mut tunnels, mut opened) = tunnels();
    assert!(tunnels.open(Channel(FIRST.0 + 1), open()).is_err(), "a number was left out");
    assert!(tunnels.take(FIRST, vec![0]).is_err(), "no such channel");
    tunnels.open(FIRST, open()).unwrap();
    assert!(tunnels.open(FIRST, open()).is_err(), "a number came twice");
    let _end = opened.recv().await.unwrap();
    assert!(tunnels.grant(FIRST, 1).is_err(), "credit for nothing");
    assert!(tunnels.take(FIRST, vec![0; TUNNEL_WINDOW as usize + 1]).is_err());
    tunnels.close(FIRST).unwrap();
    assert!(tunnels.take(FIRST, vec![0]).is_err(), "bytes after the end");
    assert!(tunnels.close(FIRST).is_err(), "two ends");
    let mut none = Tunnels::new(None);
    assert!(none.open(FIRST, open()).is_err(), "a call without a network");
}

#[tokio::test]
async fn the_end_of_a_call_fails_what_is_open() {
    let (mut tunnels, mut opened) = tunnels();
    tunnels.open(FIRST, open()).unwrap();
    let (mut end, ..) = opened.recv().await.unwrap();
    drop(tunnels);
    assert!(end.read(&mut [0]).await.is_err());
    assert!(end.write(&[0]).await.is_err());
}
