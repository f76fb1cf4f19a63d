//! Packages are installed through connections that the host inspects: by a real client, from a registry on loopback.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::Caller;
use crate::support::{Ran, needs_engine};

const NAME: &str = "npm.test";
/// npm is told of the registry as a caller would tell it.
const REGISTRY: &str = "npm_config_registry=https://npm.test/";

const TOKEN: &str = "c4n4ry-registry-token";

/// A request: method, path, `Authorization`.
type Seen = Arc<Mutex<Vec<(String, String, String)>>>;

/// A registry with one package, over TLS, for requests with the token.
fn registry(tarball: Vec<u8>, roots: &Path) -> (u16, Seen) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
    let issuer = issuer.expect("an authority");
    std::fs::write(roots, issuer.pem()).expect("a file");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![NAME.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let seen = Seen::default();
    let into = Arc::clone(&seen);
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(serve(listener, TlsAcceptor::from(Arc::new(config)), into, tarball));
    });
    (port, seen)
}

async fn serve(listener: std::net::TcpListener, tls: TlsAcceptor, seen: Seen, tarball: Vec<u8>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, seen, tarball) = (tls.clone(), Arc::clone(&seen), tarball.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                let (seen, tarball) = (Arc::clone(&seen), tarball.clone());
                async move { Ok::<_, Infallible>(answer(request, &seen, tarball).await) }
            });
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: &Seen,
    tarball: Vec<u8>,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let _ = body.collect().await;
    let sent = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().to_owned();
    let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
    let content = match path.as_str() {
        _ if sent != format!("Bearer {TOKEN}") => None,
        "/demo" => Some(Bytes::from_static(
            br#"{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0","dist":{"tarball":"https://npm.test/t/demo.tgz"}}}}"#,
        )),
        "/t/demo.tgz" => Some(Bytes::from(tarball)),
        "/echo" => Some(Bytes::from(format!("you sent {sent}"))),
        _ => None,
    };
    seen.lock().expect("requests").push((method, path, sent));
    let mut response = Response::new(Full::new(content.clone().unwrap_or_default()));
    if content.is_none() {
        *response.status_mut() = hyper::StatusCode::NOT_FOUND;
    }
    response
}

/// A caller with a project, a registry, and a policy that lets npm read it.
struct Stage {
    caller: Caller,
    project: std::path::PathBuf,
    seen: Seen,
}

impl Stage {
    fn new() -> Self {
        let caller = Caller::ourselves("/var/tmp");
        let package =
            caller.project("demo", &[("package.json", r#"{"name":"demo","version":"1.0.0"}"#)]);
        let packed = std::process::Command::new("npm")
            .args(["pack", "--silent", "--offline"])
            .current_dir(&package)
            .output()
            .expect("npm");
        assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
        let tarball = std::fs::read(package.join("demo-1.0.0.tgz")).expect("a package");
        let (port, seen) = registry(tarball, &caller.path("roots.pem"));
        let policy = format!(
            "policy: 1\nname: mine\nextends: [edit]\nsecrets: {{ T: \"env:TOKEN\" }}\nnet:\n  - {{ id: npm, for: commands, inspect: true, at: \"127.0.0.1:{port}\", allow: \"GET https://{NAME}/**\", send: {{ Authorization: \"Bearer ${{secret:T}}\" }} }}\n\
             commands:\n  - {{ id: net, allow: [\"npm {{install,publish}} ...\", \"node ...\"], effects: [read, write, code, net] }}\n"
        );
        let folder = caller.path("config/runner/policies");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("mine.yml"), policy).expect("a policy");
        let project = caller.project(
            "project",
            &[(".runner/.keep", ""), ("package.json", r#"{"name":"project","version":"1.0.0"}"#)],
        );
        Self { caller, project, seen }
    }

    fn exec(&self, words: &[&str]) -> Ran {
        let mut command = self.caller.runner(&self.project);
        command
            .env("TOKEN", TOKEN)
            .env("SSL_CERT_FILE", self.caller.path("roots.pem"))
            .env_remove("SSL_CERT_DIR")
            .args(["exec", "--policy", "mine", "--json", "--"])
            .args(words);
        Ran::from(command.output().expect("the program starts"))
    }
}

#[test]
fn npm_installs_over_an_inspected_connection_and_publishes_nothing() {
    needs_engine();
    let stage = Stage::new();
    let ran = stage.exec(&["env", REGISTRY, "npm", "install", "demo"]);
    let result = ran.json();
    assert_eq!(result["exit"], 0, "{result:#}");
    assert!(stage.project.join("node_modules/demo/package.json").exists(), "{result:#}");
    assert!(!result.to_string().contains("c4n4ry"), "{result:#}");
    let seen = stage.seen.lock().expect("requests").clone();
    assert!(seen.iter().any(|(method, path, _)| (method == "GET") && path == "/t/demo.tgz"));
    let call = result["call"].as_str().expect("an id").to_owned();
    let shown = stage.caller.works(&stage.project, &["audit", "show", "--json", &call]);
    assert!(shown.contains("GET npm.test:443/t/demo.tgz -> 200"), "{shown}");
    assert!(!shown.contains("c4n4ry"), "{shown}");

    let publish = "fetch('https://npm.test/project',{method:'PUT',body:'x'}).then((r) => process.exit(r.status === 403 ? 0 : 1))";
    let result = stage.exec(&["node", "-e", publish]).json();
    assert_eq!(result["exit"], 0, "{result:#}");
    let told = result["sandbox"].to_string();
    assert!(told.contains("PUT https://npm.test/project"), "{result:#}");
    let seen = stage.seen.lock().expect("requests").clone();
    assert!(seen.iter().all(|(method, ..)| method == "GET"), "{seen:?}");
}

#[test]
fn a_credential_that_the_host_sends_is_not_in_the_sandbox() {
    needs_engine();
    let stage = Stage::new();
    let look = "fetch('https://npm.test/echo').then(async (r) => console.log(r.status, await r.text(), JSON.stringify(process.env), require('fs').readdirSync(process.env.HOME)))";
    let result = stage.exec(&["node", "-e", look]).json();
    assert_eq!(result["exit"], 0, "{result:#}");
    assert!(result["stdout"].to_string().contains("you sent Bearer"), "{result:#}");
    assert!(!result.to_string().contains("c4n4ry"), "{result:#}");
    let other = "fetch('https://evil.test/').then((r) => console.log(r.status))";
    let result = stage.exec(&["node", "-e", other]).json();
    assert_ne!(result["exit"], 0, "{result:#}");
    assert!(result["sandbox"].to_string().contains("evil.test"), "{result:#}");
}
