//! TLS: the system's roots, read when the first https request is made, and never a weaker check.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{IpAddr, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::url::Url;
use crate::broker::Refusal;
use crate::codes::Code;

/// Which certificates are trusted.
pub(in crate::broker) enum Roots {
    /// The system's (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured), shared by all calls of a process.
    System,
    /// These.
    #[cfg(test)]
    Only(Arc<ClientConfig>),
}

impl Roots {
    async fn config(&self) -> Result<Arc<ClientConfig>, Refusal> {
        match self {
            Self::System => {
                static SYSTEM: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();
                SYSTEM.get_or_try_init(load).await.cloned()
            }
            #[cfg(test)]
            Self::Only(config) => Ok(Arc::clone(config)),
        }
    }

    /// A connection whose other end proved that it is the URL's host.
    pub(super) async fn handshake(
        &self,
        url: &Url,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Refusal> {
        self.connect(&url.host, &url.authority(), stream).await
    }

    /// A connection whose other end proved that it is this host. `shown` is for messages.
    pub(in crate::broker) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        shown: &str,
        stream: S,
    ) -> Result<TlsStream<S>, Refusal> {
        let failed = |why: String| {
            let message = format!("no trusted connection to {shown}: {why}");
            Refusal::new(Code::NetTls, message)
        };
        let name = server_name(host).ok_or_else(|| failed("odd name".to_owned()))?;
        let connector = TlsConnector::from(self.config().await?);
        connector.connect(name, stream).await.map_err(|error| failed(error.to_string()))
    }
}

async fn load() -> Result<Arc<ClientConfig>, Refusal> {
    let failed = |why: String| {
        Refusal::new(Code::NetTls, format!("the system's certificates cannot be used: {why}"))
            .hint("install the ca-certificates package, or set SSL_CERT_FILE")
    };
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or("there are none".to_owned(), ToString::to_string);
        return Err(failed(why));
    }
    config(roots).map_err(failed)
}

/// A client that trusts these roots and speaks HTTP/1.1.
pub(in crate::broker) fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn server_name(host: &str) -> Option<ServerName<'static>> {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => {
            let address = address.parse::<std::net::Ipv6Addr>().ok()?;
            Some(ServerName::IpAddress(IpAddr::from(std::net::IpAddr::V6(address))))
        }
        None => ServerName::try_from(host.to_owned()).ok(),
    }
}
