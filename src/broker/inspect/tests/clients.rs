//! Real package managers and git, over inspected connections, to registries on loopback.
//!
//! The clients run as they would in a sandbox: an environment from nothing, the variables and files of
//! [`inside`], no credential. A proxy of the test stands for the tunnels: each CONNECT becomes one.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use runner_policy::net::{Passage, Reach, Registry};
use runner_policy::{Effective, Origin, PolicySet, parse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::RootCertStore;

use super::super::{Authority, ByPolicy, Inspector, bundle};
use super::support::{Notes, Seen, Upstream, ok};
use crate::audit::Redactor;
use crate::broker::Boxed;
use crate::broker::egress::{Dial, Dialled, Inspect, NotConnected, Tunnel};
use crate::broker::net::{Roots, tls_config};
use crate::environment::Environment;
use crate::registries::{Registries, Source, Use, inside};

const PASSWORD: &str = "c4n4ry-password";

/// The way to the server of a test, whatever the name.
struct Way(u16);

impl Dial for Way {
    fn dial(&self) -> Boxed<'_, Result<Dialled, NotConnected>> {
        Box::pin(async move {
            let address = SocketAddr::from(([127, 0, 0, 1], self.0));
            let stream = TcpStream::connect(address).await.unwrap();
            Ok(Dialled { stream, address })
        })
    }
}

/// A client's surroundings.
struct Scene {
    home: tempfile::TempDir,
    proxy: u16,
    registries: Registries,
    notes: Arc<Notes>,
}

fn policy(rules: &str) -> Arc<Effective> {
    let text = format!("policy: 1\nname: p\nnet:\n{rules}");
    let source = runner_policy::Source { file: "p.yml", text: &text, origin: Origin::User };
    let mut set = PolicySet::default();
    set.add(parse(source).unwrap_or_else(|findings| panic!("{findings:?}"))).unwrap();
    Arc::new(set.effective("p").unwrap())
}

impl Scene {
    async fn new(rules: &str, name: &str, upstream: &Upstream, sources: Vec<Source>) -> Self {
        let registries = Registries { sources, files: Vec::new() };
        let authority = Arc::new(Authority::new(&[name.to_owned()]).unwrap());
        let home = tempfile::tempdir().unwrap();
        std::fs::write(inside::certificates(home.path()), bundle(&authority)).unwrap();
        for (path, content) in inside::clients(&registries, home.path()).1 {
            std::fs::write(path, content).unwrap();
        }
        let (notes, redactor) = (Arc::new(Notes::default()), Redactor::new());
        let judge = ByPolicy::new(
            policy(rules),
            Arc::new(registries.clone()),
            redactor.clone(),
            Environment::default(),
        );
        let mut inspector = Inspector::new(authority, Arc::new(judge), notes.clone(), redactor);
        let mut roots = RootCertStore::empty();
        roots.add(upstream.root.clone()).unwrap();
        inspector.roots = Arc::new(Roots::Only(tls_config(roots).unwrap()));
        let proxy = proxy(inspector, name.to_owned(), upstream.port).await;
        Self { home, proxy, registries, notes }
    }

    /// Runs a program; its output and whether it succeeded.
    async fn run(&self, cwd: &Path, program: &str, words: &[&str]) -> (bool, String) {
        let proxy = format!("http://127.0.0.1:{}", self.proxy);
        let path = std::env::var_os("PATH").unwrap();
        let mut command = tokio::process::Command::new(program);
        command.args(words).current_dir(cwd).env_clear().env("PATH", path);
        // Shims of version managers look for what they start below the real home.
        for name in ["PYENV_ROOT", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        if let (None, Some(home)) = (std::env::var_os("RUSTUP_HOME"), std::env::var_os("HOME")) {
            command.env("RUSTUP_HOME", Path::new(&home).join(".rustup"));
        }
        command.env("HOME", self.home.path()).env("LANG", "C.UTF-8");
        command.envs(inside::trust(self.home.path()));
        command.envs(inside::clients(&self.registries, self.home.path()).0);
        for name in ["HTTPS_PROXY", "https_proxy"] {
            command.env(name, &proxy);
        }
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn asked(&self) -> Vec<String> {
        let exchanges = self.notes.exchanges.lock().unwrap();
        exchanges
            .iter()
            .map(|one| format!("{} {} {:?}", one.method, one.path, one.status))
            .collect()
    }
}

/// Turns each CONNECT to the name into a tunnel; every other name is refused.
async fn proxy(inspector: Inspector, name: String, upstream: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (inspector, name) = (inspector.clone(), name.clone());
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let line = String::from_utf8_lossy(&head).into_owned();
                if !line.starts_with(&format!("CONNECT {name}:443 ")) {
                    let _ = stream.write_all(b"HTTP/1.1 403 no such name\r\n\r\n").await;
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let passage = Passage {
                    rule: "p/r".to_owned(),
                    counted: Vec::new(),
                    reach: Reach::Public,
                    at: None,
                    inspect: true,
                    registry: None,
                };
                let stream = Box::new(stream);
                let dialer = Box::new(Way(upstream));
                let _ =
                    inspector.inspect(Tunnel { stream, name, port: 443, passage, dialer }).await;
            });
        }
    });
    port
}

fn not_found() -> Response<Full<Bytes>> {
    let mut response = ok("not found");
    *response.status_mut() = hyper::StatusCode::NOT_FOUND;
    response
}

fn bytes(content: Vec<u8>, kind: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(content)));
    response.headers_mut().insert("content-type", kind.parse().unwrap());
    response
}

/// Runs a program outside of any scene, to prepare what a server offers.
fn prepared(cwd: &Path, program: &str, words: &[&str]) -> String {
    let output = std::process::Command::new(program).args(words).current_dir(cwd).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("demo-1.0-py3-none-any.whl", "w") as z:
    z.writestr("demo.py", "print('installed')")
    z.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    z.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
"#;

#[tokio::test]
async fn pip_installs_with_a_password_that_it_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    prepared(folder.path(), "python3", &["-c", WHEEL]);
    let wheel = std::fs::read(folder.path().join("demo-1.0-py3-none-any.whl")).unwrap();
    let name = "pip.test";
    let upstream = Upstream::start(name, move |seen: &Seen| {
        let expected = crate::registries::Credential::of("reader", PASSWORD).header();
        if seen.header("authorization") != Some(expected.as_str()) {
            let mut refused = ok("who are you?");
            *refused.status_mut() = hyper::StatusCode::UNAUTHORIZED;
            return refused;
        }
        match seen.line.as_str() {
            "/simple/demo/" => bytes(
                b"<a href=\"/files/demo-1.0-py3-none-any.whl\">demo-1.0-py3-none-any.whl</a>"
                    .to_vec(),
                "text/html",
            ),
            "/files/demo-1.0-py3-none-any.whl" => bytes(wheel.clone(), "application/zip"),
            _ => not_found(),
        }
    })
    .await;
    let url = format!("https://reader:{PASSWORD}@{name}/");
    let mut source = Source::parse(Registry::Pip, Use::Default, &url).unwrap();
    let files = Source { used: Use::Files, ..source.clone() };
    source.path = "/simple".to_owned();
    let rules = "  - { id: pip, for: commands, registry: pip, inspect: true }\n";
    let scene = Scene::new(rules, name, &upstream, vec![source, files]).await;
    let words = ["-m", "pip", "install", "--no-cache-dir", "--target", "out", "demo"];
    let (ended, said) = scene.run(folder.path(), "python3", &words).await;
    assert!(ended, "{said}\n{:?}", scene.asked());
    assert!(folder.path().join("out/demo.py").exists());
    assert!(!said.contains("c4n4ry"), "{said}");
    // Another index, named by a file of the project.
    std::fs::write(folder.path().join("r.txt"), "--index-url https://evil.test/simple\ndemo\n")
        .unwrap();
    let words = ["-m", "pip", "download", "--no-cache-dir", "--retries", "0", "-r", "r.txt"];
    let (ended, said) = scene.run(folder.path(), "python3", &words).await;
    assert!(!ended, "{said}");
    let sent = upstream.seen();
    assert!(sent.iter().all(|seen| seen.method == "GET" && seen.body.is_empty()));
}

#[tokio::test]
async fn npm_installs_and_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("demo");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(
        package.join("package.json"),
        r#"{"name":"@mine/demo","version":"1.0.0","scripts":{"postinstall":"touch ran"}}"#,
    )
    .unwrap();
    prepared(&package, "npm", &["pack", "--silent", "--offline"]);
    let tarball = std::fs::read(package.join("mine-demo-1.0.0.tgz")).unwrap();
    let name = "npm.test";
    let upstream = Upstream::start(name, move |seen: &Seen| {
        if seen.header("authorization") != Some(&format!("Bearer {PASSWORD}")) {
            return not_found();
        }
        match seen.line.as_str() {
            "/all/@mine%2fdemo" => bytes(
                br#"{"name":"@mine/demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"@mine/demo","version":"1.0.0","hasInstallScript":true,"scripts":{"postinstall":"touch ran"},"dist":{"tarball":"https://npm.test/all/t/demo.tgz"}}}}"#.to_vec(),
                "application/json",
            ),
            "/all/t/demo.tgz" => bytes(tarball.clone(), "application/octet-stream"),
            _ => not_found(),
        }
    })
    .await;
    let mut source =
        Source::parse(Registry::Npm, Use::Default, &format!("https://{name}/all/")).unwrap();
    source.credential =
        Some(crate::registries::Credential::Bearer(crate::registries::Secret(PASSWORD.to_owned())));
    let rules = "  - { id: npm, for: commands, registry: npm, inspect: true }\n";
    let scene = Scene::new(rules, name, &upstream, vec![source]).await;
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("package.json"), r#"{"name":"project","version":"1.0.0"}"#)
        .unwrap();
    let (ended, said) = scene.run(&project, "npm", &["install", "@mine/demo"]).await;
    assert!(ended, "{said}\n{:?}", scene.asked());
    let installed = project.join("node_modules/@mine/demo");
    assert!(installed.join("package.json").exists());
    assert!(!installed.join("ran").exists(), "install scripts are off");
    assert!(!said.contains("c4n4ry"), "{said}");
    std::fs::remove_dir_all(project.join("node_modules")).unwrap();
    // With the audit that npm does unless it is told not to: refused, and not fatal.
    let (ended, said) = scene.run(&project, "npm", &["ci", "--audit"]).await;
    assert!(ended && installed.join("package.json").exists(), "{said}");
    let posts = || scene.asked().iter().filter(|one| one.starts_with("POST")).count();
    assert!(posts() > 0, "npm asked for its audit: {:?}", scene.asked());
    let (ended, said) = scene.run(&package, "npm", &["publish", "--access", "public"]).await;
    assert!(!ended, "{said}");
    assert!(upstream.seen().iter().all(|seen| ["GET", "HEAD"].contains(&seen.method.as_str())));
}

/// `git http-backend`, as a web server runs it.
fn backend(root: &Path, seen: &Seen) -> Response<Full<Bytes>> {
    use std::io::Write;
    let (path, query) = seen.line.split_once('?').unwrap_or((&seen.line, ""));
    let mut command = std::process::Command::new("git");
    command
        .args(["-c", "http.receivepack=true", "http-backend"])
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &seen.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_LENGTH", seen.body.len().to_string());
    for (name, header) in [
        ("CONTENT_TYPE", "content-type"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ("GIT_PROTOCOL", "git-protocol"),
    ] {
        command.envs(seen.header(header).map(|value| (name, value)));
    }
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&seen.body).unwrap();
    let out = child.wait_with_output().unwrap().stdout;
    let Some(end) = out.windows(4).position(|four| four == b"\r\n\r\n") else { return not_found() };
    let mut response = Response::new(Full::new(Bytes::from(out[end + 4..].to_vec())));
    for line in String::from_utf8_lossy(&out[..end]).lines() {
        let (name, value) = line.split_once(": ").unwrap();
        if name == "Status" {
            *response.status_mut() = value[..3].parse().unwrap();
        } else {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    response
}

#[tokio::test]
async fn git_clones_and_fetches_and_pushes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("served");
    std::fs::create_dir_all(root.join("work")).unwrap();
    let git = |cwd: &str, words: &[&str]| {
        let who =
            ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgSign=false"];
        prepared(&root.join(cwd), "git", &[&who[..], words].concat())
    };
    git("work", &["init", "-q", "-b", "main"]);
    git("work", &["commit", "-q", "--allow-empty", "-m", "one"]);
    git("", &["clone", "-q", "--bare", "work", "r.git"]);
    let name = "git.test";
    let served = root.clone();
    let upstream = Upstream::start(name, move |seen: &Seen| backend(&served, seen)).await;
    let rules = "  - { id: git, for: commands, inspect: true, allow: [\"GET https://git.test/**\", \"POST https://git.test/**/git-upload-pack\"] }\n";
    let scene = Scene::new(rules, name, &upstream, Vec::new()).await;
    let url = format!("https://{name}/r.git");
    let (ended, said) = scene.run(folder.path(), "git", &["clone", &url, "copy"]).await;
    assert!(ended, "{said}\n{:?}", scene.asked());
    git("work", &["commit", "-q", "--allow-empty", "-m", "two"]);
    git("work", &["push", "-q", "../r.git", "main"]);
    let copy = folder.path().join("copy");
    let (ended, said) = scene.run(&copy, "git", &["fetch"]).await;
    assert!(ended, "{said}");
    let log = prepared(&copy, "git", &["log", "--format=%s", "origin/main"]);
    assert_eq!(log, "two\none\n");
    let (ended, said) = scene.run(&copy, "git", &["push", "origin", "HEAD:refs/heads/new"]).await;
    assert!(!ended && said.contains("403"), "{said}");
    assert!(!git("r.git", &["branch"]).contains("new"));
    let (ended, said) =
        scene.run(folder.path(), "git", &["clone", "https://evil.test/r.git"]).await;
    assert!(!ended, "{said}");
}

#[tokio::test]
async fn cargo_fetches_from_what_stands_for_crates_io() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, more: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("src/lib.rs"), "").unwrap();
        let text = format!(
            "[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2021\"\ndescription = \"d\"\nlicense = \"MIT\"\n[workspace]\n{more}"
        );
        std::fs::write(folder.join("Cargo.toml"), text).unwrap();
        folder
    };
    let demo = make("demo", "");
    prepared(&demo, "cargo", &["package", "-q", "--no-verify", "--allow-dirty", "--offline"]);
    let packed = std::fs::read(demo.join("target/package/demo-1.0.0.crate")).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, &packed);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let name = "cargo.test";
    let upstream = Upstream::start(name, move |seen: &Seen| match seen.line.as_str() {
        "/index/config.json" => ok("{\"dl\":\"https://cargo.test/crates\"}"),
        "/index/de/mo/demo" => ok(&format!(
            "{{\"name\":\"demo\",\"vers\":\"1.0.0\",\"deps\":[],\"features\":{{}},\"yanked\":false,\"cksum\":\"{digest}\"}}\n"
        )),
        "/crates/demo/1.0.0/download" => bytes(packed.clone(), "application/octet-stream"),
        _ => not_found(),
    })
    .await;
    let source =
        Source::parse(Registry::Cargo, Use::Default, &format!("https://{name}/index/")).unwrap();
    let rules = "  - { id: cargo, for: commands, registry: cargo, inspect: true }\n";
    let scene = Scene::new(rules, name, &upstream, vec![source]).await;
    let project = make("project", "[dependencies]\ndemo = \"1\"\n");
    let (ended, said) = scene.run(&project, "cargo", &["fetch"]).await;
    assert!(ended, "{said}\n{:?}", scene.asked());
    let lock = std::fs::read_to_string(project.join("Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"demo\""), "{lock}");
}
