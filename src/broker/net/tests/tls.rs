//! https: the other end proves the name that was judged.

use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::super::fetch::Fetcher;
use super::super::tls::{Roots, config};
use super::server::{Server, leads_to, ok};
use super::support::{CANARY, code, fetcher, get};

use crate::codes::Code;

/// An authority, and servers that it vouches for.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn server(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        acceptor(certificate.der().clone(), &key)
    }

    fn trusted_by(&self, mut fetcher: Fetcher) -> Fetcher {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        fetcher.roots = Roots::Only(config(roots).unwrap());
        fetcher
    }
}

fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn rules(port: u16) -> String {
    format!(
        "  - {{ allow: \"GET https://a.test:{port}/**\", private: true, send: {{ Authorization: \"Bearer ${{secret:CANARY}}\" }} }}\n"
    )
}

#[tokio::test]
async fn a_proved_server_gets_the_secret_and_no_other_does() {
    let authority = Authority::new();
    let server = Server::with(Some(authority.server("a.test")), |seen| {
        ok(&format!("you sent {}", seen.header("authorization").unwrap()))
    })
    .await;
    let port = server.port();
    let fetcher = authority.trusted_by(fetcher(&rules(port)));
    let whole = get(&fetcher, &format!("https://a.test:{port}/")).await.unwrap();
    assert_eq!(whole.text(), "you sent Bearer [redacted]");
    assert_eq!(server.seen()[0].header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
}

#[tokio::test]
async fn other_names_and_other_authorities_prove_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let own = KeyPair::generate().unwrap();
    let alone =
        CertificateParams::new(vec!["a.test".to_owned()]).unwrap().self_signed(&own).unwrap();
    for (why, tls) in [
        ("another name", authority.server("b.test")),
        ("another authority", other.server("a.test")),
        ("itself", acceptor(alone.der().clone(), &own)),
    ] {
        let server = Server::with(Some(tls), |_| ok("x")).await;
        let port = server.port();
        let fetcher = authority.trusted_by(fetcher(&rules(port)));
        assert_eq!(code(&fetcher, &format!("https://a.test:{port}/")).await, Code::NetTls, "{why}");
        assert!(server.seen().is_empty(), "{why}");
    }
    // No TLS at all.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await.unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        heard
    });
    let fetcher = authority.trusted_by(fetcher(&rules(port)));
    assert_eq!(code(&fetcher, &format!("https://a.test:{port}/")).await, Code::NetTls);
    let heard = String::from_utf8_lossy(&plain.await.unwrap()).into_owned();
    assert!(!heard.contains(CANARY) && !heard.contains("GET"), "{heard}");
}

#[tokio::test]
async fn a_secret_does_not_follow_a_redirection_into_the_open() {
    let authority = Authority::new();
    let open = Server::start(|_| ok("open")).await;
    let there = open.port();
    let server = Server::with(Some(authority.server("a.test")), move |_| {
        leads_to("307 Down", &format!("http://a.test:{there}/"))
    })
    .await;
    let port = server.port();
    let more = format!(
        "{}  - {{ allow: \"GET http://a.test:{there}/**\", private: true }}\n",
        rules(port)
    );
    let fetcher = authority.trusted_by(fetcher(&more));
    let whole = get(&fetcher, &format!("https://a.test:{port}/")).await.unwrap();
    assert_eq!(whole.text(), "open");
    assert_eq!(open.seen()[0].header("authorization"), None);
}
