//! The client's TLS: the name that it says must be the name that it asked for.

use std::io;

use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

use super::limits;
use super::powers::Stream;
use super::{Authority, Place};
use crate::broker::Refusal;
use crate::codes::Code;

/// Completes the client's handshake.
///
/// An encrypted name (ECH) has no effect: TLS ends here, no key for it exists, and the connection goes to the name
/// that was judged whatever the hidden one is.
///
/// # Errors
/// The client speaks something else than TLS, says another name or none, or does not trust the call's authority.
pub(super) async fn accept<S: Stream>(
    authority: &Authority,
    place: &Place,
    stream: S,
) -> Result<TlsStream<S>, Refusal> {
    let shown = place.authority();
    let acceptor = LazyConfigAcceptor::new(Acceptor::default(), stream);
    let start = timeout(limits::HANDSHAKE, acceptor)
        .await
        .map_err(|_| slow(&shown))?
        .map_err(|error| no_tls(&shown, &error))?;
    let said = start.client_hello().server_name().map(str::to_ascii_lowercase);
    match said {
        Some(said) if said.trim_end_matches('.') == place.name => {}
        Some(said) => {
            // A name of the TLS library has no characters but those of host names.
            let message = format!("the connection to {shown} names another server, `{said}`");
            return Err(Refusal::new(Code::NetDenied, message)
                .hint("connect to the name that the request is for"));
        }
        None => {
            let message = format!("the connection to {shown} names no server");
            return Err(Refusal::new(Code::NetProtocol, message)
                .hint("use a TLS client that sends the server's name (SNI)"));
        }
    }
    let config = authority
        .server(&place.name)
        .map_err(|error| Refusal::new(Code::NetTls, error.to_string()))?;
    timeout(limits::HANDSHAKE, start.into_stream(config))
        .await
        .map_err(|_| slow(&shown))?
        .map_err(|error| not_trusted(&shown, &error))
}

fn slow(shown: &str) -> Refusal {
    Refusal::new(Code::Timeout, format!("no TLS handshake with {shown} was completed in time"))
}

fn no_tls(shown: &str, error: &io::Error) -> Refusal {
    let message = format!("{shown} is inspected, and the program does not speak TLS: {error}");
    Refusal::new(Code::NetProtocol, message)
        .hint("use https; other protocols need a `connect` rule without `inspect`")
}

fn not_trusted(shown: &str, error: &io::Error) -> Refusal {
    let message = format!("the program ended its TLS handshake with {shown}: {error}");
    Refusal::new(Code::NetTls, message).hint(
        "the program does not read SSL_CERT_FILE and its like, or speaks no HTTP/1.1; a `connect` \
         rule without `inspect` would let it through unread",
    )
}
