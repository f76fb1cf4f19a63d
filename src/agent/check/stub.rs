//! A model on loopback that asks for given commands, one after the other.
//!
//! Duty: enough HTTP for the agents' own clients: one request a connection, bounded. How far a talk is, is counted by the
//! results of commands that stand in the request, so that requests beside it (titles, summaries) do not disturb it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::dialect;
use crate::agent::error::AgentError;
use crate::json;

/// The longest head of a request.
const HEAD: u64 = 64 << 10;

/// A client that says nothing for so long is left.
const SILENCE: Duration = Duration::from_secs(30);

/// The model.
pub(super) struct Stub {
    port: u16,
    results: Arc<Mutex<Vec<String>>>,
}

/// A reply.
pub(super) struct Reply {
    /// Its content type.
    pub kind: &'static str,
    /// Its body.
    pub body: String,
}

impl Stub {
    /// Starts it on a free port of loopback. Its threads end with this process.
    pub fn start(commands: Vec<String>) -> Result<Self, AgentError> {
        let failed =
            |source| AgentError::Start { program: "the model on loopback".to_owned(), source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let results = Arc::new(Mutex::new(Vec::new()));
        let (commands, seen) = (Arc::new(commands), Arc::clone(&results));
        std::thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (commands, seen) = (Arc::clone(&commands), Arc::clone(&seen));
                    // A client that breaks off has asked nothing.
                    let _ = std::thread::Builder::new().spawn(move || {
                        let _ = serve(&stream, &commands, &seen);
                    });
                }
            })
            .map_err(failed)?;
        Ok(Self { port, results })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the agent told the model of its commands.
    pub fn results(&self) -> Vec<String> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers one request.
fn serve(stream: &TcpStream, commands: &[String], seen: &Mutex<Vec<String>>) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream);
    let (path, body) = request(&mut reader)?;
    let asked = std::str::from_utf8(&body).ok().and_then(|text| json::read(text).ok());
    let talk = dialect::read(&path, asked.unwrap_or(Value::Null));
    let mut known = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if talk.results.len() > known.len() {
        known.clone_from(&talk.results);
    }
    drop(known);
    let Reply { kind, body } = talk.reply(commands);
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// The path and the body of a request.
fn request(reader: &mut BufReader<&TcpStream>) -> io::Result<(String, Vec<u8>)> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let mut line = String::new();
    let mut head = reader.by_ref().take(HEAD);
    head.read_line(&mut line)?;
    let path = line.split(' ').nth(1).ok_or_else(wrong)?.to_owned();
    let (mut length, mut chunked, mut waits) = (0_usize, false, false);
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(wrong());
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(':') {
            None => break,
            Some(("content-length", value)) => {
                length = value.trim().parse().map_err(|_| wrong())?
            }
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            Some(("expect", _)) => waits = true,
            Some(_) => {}
        }
    }
    if waits {
        let mut stream: &TcpStream = reader.get_ref();
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let mut size = String::new();
            reader.by_ref().take(HEAD).read_line(&mut size)?;
            let size = size.trim().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| wrong())?;
            piece(reader, size, &mut body)?;
            reader.by_ref().take(2).read_line(&mut String::new())?;
            if size == 0 {
                return Ok((path, body));
            }
        }
    }
    piece(reader, length, &mut body)?;
    Ok((path, body))
}

/// So many bytes of a body, within what is read of JSON.
fn piece(reader: &mut impl Read, size: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if size > json::MAX_BYTES.saturating_sub(body.len()) {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let read = reader.take(size as u64).read_to_end(body)?;
    if read == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
