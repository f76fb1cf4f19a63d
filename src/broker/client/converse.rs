//! One talk, from the tool's end: the job, the work beside the frames, the result.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::ask::Client;
use super::link::Link;
use super::thrown::Thrown;
use crate::broker::frame::{HEADER, HostKind, Kind, RESULT_MAX, START_MAX};
use crate::codes::Code;

/// What a built-in tool is given.
#[derive(Debug)]
pub struct Call {
    /// Its arguments, which its schema has checked.
    pub args: Value,
    /// The id of the call, by which what it changes can be undone.
    pub id: String,
    /// The broker.
    pub client: Client,
}

/// Speaks one talk to its end: reads the job, lets `work` do it, sends what came of it. If the host wants the end,
/// the work is dropped where it waits.
///
/// # Errors
/// The stream broke, or there was no job.
pub async fn converse<S, F>(stream: S, work: impl FnOnce(Call) -> F) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    F: Future<Output = Result<Value, Thrown>>,
{
    let (mut read, write) = tokio::io::split(stream);
    let job = job(&mut read).await?;
    let (out, queue) = mpsc::unbounded_channel();
    // A frame must not be cut off, so its writer is a task of its own.
    let writer = tokio::spawn(writing(write, queue));
    let link = Arc::new(Link::new(out));
    let id = job.pointer("/conversation/id").and_then(Value::as_str).unwrap_or_default();
    let call = Call {
        id: id.to_owned(),
        args: job.get("args").cloned().unwrap_or_default(),
        client: Client::new(Arc::clone(&link)),
    };
    let result = tokio::select! {
        result = work(call) => result,
        reason = listening(&mut read, &link) => Err(Thrown::new(Code::Cancelled, reason)),
    };
    link.close();
    link.say(Kind::Result, payload(result).as_bytes());
    link.end();
    writer.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// The result as JSON; one that is too large becomes an error.
fn payload(result: Result<Value, Thrown>) -> String {
    let value = match result {
        Ok(value) => json!({ "value": value }).to_string(),
        Err(thrown) => return thrown.json().to_string(),
    };
    if value.len() <= RESULT_MAX {
        return value;
    }
    let message = format!("the result has {} bytes as JSON; the most is {RESULT_MAX}", value.len());
    Thrown::new(Code::ResultTooLarge, message).hint("ask for a smaller part").json().to_string()
}

/// The job: everything up to the end of the code, which a built-in tool does not have.
async fn job<R: AsyncRead + Unpin>(read: &mut R) -> io::Result<Value> {
    let mut job = None;
    loop {
        match frame(read).await? {
            Some((HostKind::Start, _, payload)) => job = Some(serde_json::from_slice(&payload)?),
            Some((HostKind::End, ..)) => break,
            Some(_) => {}
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    job.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "there is no job"))
}

/// Hands frames to whom they belong until the host wants the end; its reason.
async fn listening<R: AsyncRead + Unpin>(read: &mut R, link: &Link) -> String {
    loop {
        match frame(read).await {
            Ok(Some((HostKind::Abort, _, payload))) => {
                let said: Option<Value> = serde_json::from_slice(&payload).ok();
                let reason = said.as_ref().and_then(|said| said.get("reason")?.as_str());
                return reason.unwrap_or("the call is ending").to_owned();
            }
            Ok(Some((kind, id, payload))) => link.take(kind, id, &payload),
            Ok(None) | Err(_) => return "the talk with the host is over".to_owned(),
        }
    }
}

/// The next frame of the host; `None` at the end of the stream.
async fn frame<R: AsyncRead + Unpin>(read: &mut R) -> io::Result<Option<(HostKind, u32, Vec<u8>)>> {
    let mut head = [0; HEADER];
    match read.read_exact(&mut head).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let [l0, l1, l2, l3, number, i0, i1, i2, i3] = head;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let kind = HostKind::from_number(number).filter(|_| length <= START_MAX);
    let kind = kind.ok_or(io::ErrorKind::InvalidData)?;
    let mut payload = vec![0; length];
    read.read_exact(&mut payload).await?;
    Ok(Some((kind, u32::from_le_bytes([i0, i1, i2, i3]), payload)))
}

async fn writing<W: AsyncWrite + Unpin>(
    mut write: W,
    mut queue: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
) -> io::Result<()> {
    while let Some(Some(frame)) = queue.recv().await {
        write.write_all(&frame).await?;
    }
    write.shutdown().await
}
