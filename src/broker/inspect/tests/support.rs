//! Servers on loopback with TLS of their own, and clients that reach them through an inspector.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName,
};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::super::relay::{Inspector, Place, Protocol};
use super::super::{Asked, Authority, Dialer, Exchange, Granted, Judge, Records, Stream};
use crate::audit::Redactor;
use crate::broker::net::{Roots, tls_config};
use crate::broker::{Boxed, Refusal};
use crate::codes::Code;

/// The credential of these tests.
pub const CANARY: &str = "c4n4ry-v+lue-0123456789";

/// The name of the server.
pub const NAME: &str = "registry.test";

/// What the server saw.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

type Handler = Arc<dyn Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync>;

pub fn ok(text: &str) -> Response<Full<Bytes>> {
    Response::new(Full::new(Bytes::from(text.to_owned())))
}

/// A server with a certificate of an authority of its own.
pub struct Upstream {
    pub port: u16,
    pub root: CertificateDer<'static>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    pub async fn start(
        certified: &str,
        handler: impl Fn(&Seen) -> Response<Full<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        let handler: Handler = Arc::new(handler);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![certified.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, connections) =
            (Arc::<Mutex<Vec<Seen>>>::default(), Arc::<AtomicUsize>::default());
        let (into, count) = (Arc::clone(&seen), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, into, handler) =
                    (acceptor.clone(), Arc::clone(&into), Arc::clone(&handler));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request: Request<Incoming>| {
                        let (into, handler) = (Arc::clone(&into), Arc::clone(&handler));
                        async move { Ok::<_, Infallible>(answer(request, &into, &handler).await) }
                    });
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { port, root: issuer.der().clone(), seen, connections }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn answer(
    request: Request<Incoming>,
    into: &Mutex<Vec<Seen>>,
    handler: &Handler,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return ok("broken off") };
    let seen = Seen {
        method: parts.method.to_string(),
        line: parts.uri.to_string(),
        headers: parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: body.to_bytes().to_vec(),
    };
    let response = handler(&seen);
    into.lock().unwrap().push(seen);
    response
}

/// Allows what a function allows.
pub struct Rules {
    pub allows: fn(&Asked) -> bool,
    pub granted: Granted,
}

impl Judge for Rules {
    fn judge<'a>(&'a self, asked: &'a Asked) -> Boxed<'a, Result<Granted, Refusal>> {
        Box::pin(async move {
            if (self.allows)(asked) {
                return Ok(self.granted.clone());
            }
            let message = format!("no rule allows `{} {}`", asked.method, asked.url);
            Err(Refusal::new(Code::NetDenied, message))
        })
    }
}

#[derive(Default)]
pub struct Notes {
    pub exchanges: Mutex<Vec<Exchange>>,
    pub refusals: Mutex<Vec<Refusal>>,
}

impl Records for Notes {
    fn begin(&self) -> bool {
        true
    }

    fn exchanged(&self, exchange: Exchange) {
        self.exchanges.lock().unwrap().push(exchange);
    }

    fn refused(&self, _: &str, _: u16, refusal: &Refusal) {
        self.refusals.lock().unwrap().push(refusal.clone());
    }
}

pub struct To(pub u16);

impl Dialer for To {
    fn dial(&self) -> Boxed<'_, Result<Box<dyn Stream>, Refusal>> {
        Box::pin(async move {
            let stream = TcpStream::connect(("127.0.0.1", self.0)).await;
            let stream = stream.map_err(|e| Refusal::new(Code::NetConnect, e.to_string()))?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// An inspector before one server.
pub struct Stage {
    pub inspector: Inspector,
    pub notes: Arc<Notes>,
    pub port: u16,
    pem: String,
}

pub fn terms() -> Granted {
    Granted {
        rule: "p/registry".to_owned(),
        size: 1 << 20,
        time: Duration::from_secs(60),
        headers: Vec::new(),
    }
}

pub fn with_credential() -> Granted {
    let value = HeaderValue::from_str(&format!("Bearer {CANARY}")).unwrap();
    Granted { headers: vec![(HeaderName::from_static("authorization"), value)], ..terms() }
}

impl Stage {
    pub fn new(upstream: &Upstream, allows: fn(&Asked) -> bool, granted: Granted) -> Self {
        let authority = Arc::new(Authority::new(&[NAME.to_owned()]).unwrap());
        let notes = Arc::new(Notes::default());
        let redactor = Redactor::new();
        if !granted.headers.is_empty() {
            assert!(redactor.learn(CANARY));
        }
        let pem = authority.pem();
        let judge = Arc::new(Rules { allows, granted });
        let mut inspector = Inspector::new(authority, judge, notes.clone(), redactor);
        let mut roots = RootCertStore::empty();
        roots.add(upstream.root.clone()).unwrap();
        inspector.roots = Arc::new(Roots::Only(tls_config(roots).unwrap()));
        Self { inspector, notes, port: upstream.port, pem }
    }

    /// A tunnel to the server: the program's end of it.
    pub fn tunnel(&self) -> DuplexStream {
        let (inside, outside) = tokio::io::duplex(16 << 10);
        let place = Place { name: NAME.to_owned(), port: 443, protocol: Protocol::Https };
        let (inspector, port) = (self.inspector.clone(), self.port);
        tokio::spawn(async move {
            let _ = inspector.serve(&place, outside, &To(port)).await;
        });
        inside
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        roots
    }

    /// A TLS client that trusts the call's authority.
    pub async fn client(
        &self,
        name: &str,
        alpn: &[&str],
    ) -> std::io::Result<TlsStream<DuplexStream>> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots())
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|one| one.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.tunnel()).await
    }

    /// Sends these bytes and reads what comes until the end.
    pub async fn raw(&self, bytes: &str) -> String {
        let mut stream = self.client(NAME, &["http/1.1"]).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        // The end of what is sent: a server that waits for more of it ends too.
        stream.shutdown().await.unwrap();
        let mut heard = Vec::new();
        // A server may end without a notice of TLS when it refuses.
        let _ = stream.read_to_end(&mut heard).await;
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Sends a request and reads the answer; the connection ends with it.
    pub async fn get(&self, path: &str, more: &str) -> String {
        self.raw(&format!("GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n{more}\r\n"))
            .await
    }

    pub fn exchanges(&self) -> Vec<Exchange> {
        self.notes.exchanges.lock().unwrap().clone()
    }

    pub fn codes(&self) -> Vec<Code> {
        self.notes.refusals.lock().unwrap().iter().map(|refusal| refusal.code).collect()
    }
}
