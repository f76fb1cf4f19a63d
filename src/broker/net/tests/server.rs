//! A server that does as it is told: it may break every rule of HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a server does next.
pub enum Act {
    Write(Vec<u8>),
    Sleep(Duration),
    /// The same bytes again and again, until nobody listens.
    Flood(Vec<u8>),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Everything before the body.
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    pub fn path(&self) -> &str {
        self.line().split(' ').nth(1).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub struct Server {
    pub place: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Answer = dyn Fn(&Seen) -> Vec<Act> + Send + Sync;

impl Server {
    pub async fn start(answer: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::with(None, answer).await
    }

    pub async fn with(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, list): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, list, tls) = (Arc::clone(&answer), Arc::clone(&list), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &list, answer.as_ref()).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &list, answer.as_ref()).await;
                            }
                        }
                    }
                });
            }
        });
        Self { place, seen, task }
    }

    pub fn port(&self) -> u16 {
        self.place.port()
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    list: &Mutex<Vec<Seen>>,
    answer: &Answer,
) {
    let mut bytes = Vec::new();
    let head = loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
    };
    let mut seen =
        Seen { head: String::from_utf8_lossy(&bytes[..head]).into_owned(), body: Vec::new() };
    let length: usize = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
    seen.body = bytes.split_off(head + 4);
    while seen.body.len() < length {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(count) => seen.body.extend_from_slice(&piece[..count]),
        }
    }
    list.lock().unwrap().push(seen.clone());
    for act in answer(&seen) {
        let done = match act {
            Act::Write(bytes) => stream.write_all(&bytes).await,
            Act::Sleep(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Act::Flood(bytes) => loop {
                if let Err(error) = stream.write_all(&bytes).await {
                    break Err(error);
                }
            },
        };
        if done.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

/// An answer with a length.
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<Act> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    vec![Act::Write([head.as_bytes(), body].concat())]
}

pub fn ok(body: &str) -> Vec<Act> {
    answer("200 OK", "", body.as_bytes())
}

pub fn leads_to(status: &str, location: &str) -> Vec<Act> {
    answer(status, &format!("Location: {location}\r\n"), b"moved")
}
