//! One connection from its opening to its end.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use runner_policy::net::{BoundKey, Passage};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::dial::Dialer;
use super::egress::Shared;
use super::hello::{self, HELLO_MAX, Hello};
use super::metered::{Metered, UsedUp};
use super::record::{Book, Failed};
use super::tunnel::{Dial, Dialled, NotConnected, Tunnel};
use crate::broker::Boxed;
use crate::codes::Code;
use crate::sandbox::tunnels::End;

/// How long a program may take to say which host it means.
const HELLO_WAIT: Duration = Duration::from_secs(20);

/// The port on which the first bytes must be TLS.
const HTTPS: u16 = 443;

/// What is moved at once, each way.
const PIECE: usize = 32 << 10;

/// Judges a connection, carries it to its end and notes what came of it.
pub(super) async fn carry(shared: Arc<Shared>, end: End, name: String, port: u16) {
    let begun = Instant::now();
    let Some(at) = shared.book.begin(name.clone(), port) else { return };
    let ended = carry_judged(&shared, end, at, name, port).await;
    shared.book.note(at, |connection| {
        connection.duration = begun.elapsed();
        connection.failed =
            ended.err().map(|NotConnected { code, why, next }| Failed { code, why, next });
    });
}

async fn carry_judged(
    shared: &Shared,
    end: End,
    at: usize,
    name: String,
    port: u16,
) -> Result<(), NotConnected> {
    let passage = judge(shared, at, &name, port)?;
    let limit = passage.counted.iter().map(|it| it.bounds.get(BoundKey::Time)).min();
    let counted = passage.counted.clone();
    let mut stream = Metered { end, book: Arc::clone(&shared.book), at, counted };
    let dialer = Dialer {
        policy: Arc::clone(&shared.policy),
        resolver: Arc::clone(&shared.resolver),
        name: name.clone(),
        port,
        passage: passage.clone(),
        checked: OnceCell::new(),
    };
    let (rule, inspect) = (passage.rule.clone(), passage.inspect);
    let carried = async {
        if inspect {
            let inspector = shared.inspector.as_ref().ok_or_else(|| NotConnected {
                code: Code::NetDenied,
                why: format!("`{rule}` wants requests to be inspected, and nothing here does that"),
                next: None,
            })?;
            let dialer = Box::new(Noted { dialer, book: Arc::clone(&shared.book), at });
            let tunnel =
                Tunnel { stream: Box::new(stream), name: name.clone(), port, passage, dialer };
            return inspector.inspect(tunnel).await;
        }
        let first = if port == HTTPS { meant(&mut stream, &name).await? } else { Vec::new() };
        let dialled = dialer.dial().await?;
        shared.book.note(at, |connection| connection.address = Some(dialled.address));
        let mut upstream = dialled.stream;
        let moved = async {
            upstream.write_all(&first).await?;
            copy_bidirectional_with_sizes(&mut stream, &mut upstream, PIECE, PIECE).await
        };
        moved.await.map(drop).map_err(|error| broken(&name, port, &error))
    };
    let limit = Duration::from_millis(limit.unwrap_or_default());
    timeout(limit, carried).await.unwrap_or_else(|_| {
        Err(NotConnected {
            code: Code::LimitReached,
            why: format!("`{rule}` gives a connection {} s", limit.as_secs()),
            next: Some("a larger `limits: { time: … }` of the rule would give more".to_owned()),
        })
    })
}

/// The way to a name, which notes where it led.
struct Noted {
    dialer: Dialer,
    book: Arc<Book>,
    at: usize,
}

impl Dial for Noted {
    fn dial(&self) -> Boxed<'_, Result<Dialled, NotConnected>> {
        Box::pin(async move {
            let dialled = self.dialer.dial().await?;
            self.book.note(self.at, |connection| connection.address = Some(dialled.address));
            Ok(dialled)
        })
    }
}

/// Whether the rules allow the name and port, and have room for one more connection.
fn judge(shared: &Shared, at: usize, name: &str, port: u16) -> Result<Passage, NotConnected> {
    let now = Timestamp::now();
    let passage = runner_policy::connect(&shared.policy, now, &shared.registries, name, port)
        .map_err(|refused| {
            let rule = refused.rule.as_ref().map(|rule| rule.id.clone());
            shared.book.note(at, |connection| connection.rule = rule);
            NotConnected { code: Code::NetDenied, why: refused.to_string(), next: None }
        })?;
    shared.book.note(at, |connection| connection.rule = Some(passage.rule.clone()));
    shared.book.count(&passage.counted).map_err(|why| NotConnected {
        code: Code::LimitReached,
        why,
        next: Some("a larger `limits: { connections: … }` of the rule would allow more".to_owned()),
    })?;
    Ok(passage)
}

/// The first bytes, once they say that the host of the name is meant.
async fn meant(stream: &mut Metered, name: &str) -> Result<Vec<u8>, NotConnected> {
    let refused = |why: String, next: Option<&str>| NotConnected {
        code: Code::NetTls,
        why,
        next: next.map(str::to_owned),
    };
    let mut bytes = Vec::with_capacity(2 << 10);
    let read = async {
        loop {
            match hello::read(&bytes) {
                Hello::Incomplete if bytes.len() < HELLO_MAX + (1 << 10) => {}
                hello => return Ok(hello),
            }
            let mut piece = [0; 4 << 10];
            match stream.read(&mut piece).await {
                Ok(0) => return Ok(Hello::NotTls),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) => return Err(error),
            }
        }
    };
    let hello = timeout(HELLO_WAIT, read)
        .await
        .map_err(|_| refused(format!("nothing was said to {name}:443 in time"), None))?
        .map_err(|error| broken(name, HTTPS, &error))?;
    match hello {
        Hello::Name(Some(meant)) if meant == name => Ok(bytes),
        Hello::Name(Some(meant)) => Err(refused(
            format!("a connection to {name}:443 asked for another host, `{meant}`"),
            Some("let the program connect to the host that it means, by a rule that names it"),
        )),
        Hello::Name(None) => Err(refused(
            format!("a connection to {name}:443 does not say which host it means"),
            Some("use a program that sends the server's name, as every current one does"),
        )),
        Hello::Encrypted => Err(refused(
            format!("a connection to {name}:443 hides which host it means"),
            Some("turn off encrypted ClientHello (ECH) in the program"),
        )),
        Hello::Incomplete | Hello::NotTls => Err(refused(
            format!("what was said to {name}:443 is not TLS"),
            Some("let the server listen on another port, and the rule name that"),
        )),
    }
}

/// A connection that ended before its streams did.
fn broken(name: &str, port: u16, error: &io::Error) -> NotConnected {
    let used_up = error.get_ref().and_then(|inner| inner.downcast_ref::<UsedUp>());
    match used_up {
        Some(UsedUp(why)) => NotConnected {
            code: Code::LimitReached,
            why: why.clone(),
            next: Some("a larger `limits: { bytes: … }` of the rule would allow more".to_owned()),
        },
        None => NotConnected {
            code: Code::NetConnect,
            why: format!("the connection to {name}:{port} broke: {error}"),
            next: None,
        },
    }
}
