//! From a judged tunnel to an inspected one.

use std::io::Cursor;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::limits;
use super::powers::{Dialer, Stream};
use super::relay::{Inspector, Place, Protocol};
use crate::broker::egress::{Dial, Inspect, NotConnected, Tunnel};
use crate::broker::{Boxed, Refusal};
use crate::codes::Code;

/// The first byte of every TLS connection: a handshake record.
const TLS: u8 = 0x16;

impl Inspect for Inspector {
    fn inspect(&self, tunnel: Tunnel) -> Boxed<'_, Result<(), NotConnected>> {
        Box::pin(async move {
            let Tunnel { mut stream, name, port, dialer, .. } = tunnel;
            let Some(first) = first(&mut stream, &name, port).await? else { return Ok(()) };
            // The request is judged with the scheme that is spoken, so a rule for https allows none in the open.
            let protocol = if first == TLS { Protocol::Https } else { Protocol::Http };
            let place = Place { name, port, protocol };
            let (reader, writer) = tokio::io::split(stream);
            let whole = tokio::io::join(Cursor::new([first]).chain(reader), writer);
            self.serve(&place, whole, &Checked(dialer)).await.map_err(ended)
        })
    }
}

/// The first byte that the program sends; `None` if it closes without one.
async fn first(
    stream: &mut (impl Stream + ?Sized),
    name: &str,
    port: u16,
) -> Result<Option<u8>, NotConnected> {
    let mut first = [0];
    match timeout(limits::HANDSHAKE, stream.read(&mut first)).await {
        Ok(Ok(0) | Err(_)) => Ok(None),
        Ok(Ok(_)) => Ok(Some(first[0])),
        Err(_) => Err(NotConnected {
            code: Code::NetProtocol,
            why: format!(
                "{name}:{port} is inspected, and the program waits for the server to speak first"
            ),
            next: Some(
                "use https; other protocols need a `connect` rule without `inspect`".to_owned(),
            ),
        }),
    }
}

fn ended(refusal: Refusal) -> NotConnected {
    NotConnected { code: refusal.code, why: refusal.message, next: refusal.suggestion }
}

/// The way to the address that was checked for the tunnel.
struct Checked(Box<dyn Dial>);

impl Dialer for Checked {
    fn dial(&self) -> Boxed<'_, Result<Box<dyn Stream>, Refusal>> {
        Box::pin(async move {
            let dialled = self.0.dial().await.map_err(|failed| {
                let mut refusal = Refusal::new(failed.code, failed.why);
                refusal.suggestion = failed.next;
                refusal
            })?;
            // A request is one write; waiting for more to send would only cost time.
            let _ = dialled.stream.set_nodelay(true);
            Ok(Box::new(dialled.stream) as Box<dyn Stream>)
        })
    }
}
