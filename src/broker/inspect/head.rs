//! From a parsed request to the one that is judged and sent. Pure.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Version};

use super::relay::{Place, Protocol};
use super::{Asked, limits};
use crate::broker::Refusal;
use crate::broker::net::Url;
use crate::codes::Code;

/// Headers about one connection. Each end of it has its own.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers by which some servers take another method, host or path than the request's line has.
const MISLEADING: &[&str] = &[
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];

/// Services of git's HTTP protocol: to list what one offers is part of its use.
const GIT_SERVICE: &str = "/info/refs";

/// A request that can be judged and sent.
#[derive(Debug)]
pub(super) struct Head {
    pub method: Method,
    /// What stands in the request's line: the path as the client wrote it, and the query.
    pub line: String,
    /// Every reading of the request. Each must be allowed.
    pub asked: Vec<Asked>,
    pub headers: HeaderMap,
}

/// Reads the head of a request.
///
/// # Errors
/// It is not plain HTTP/1.1 to this place, or servers could read it in two ways.
pub(super) fn read(parts: &Parts, place: &Place, has_body: bool) -> Result<Head, Refusal> {
    let refused = |why: String| Refusal::new(Code::InvalidArgument, why);
    let shown = place.authority();
    if !matches!(parts.version, Version::HTTP_10 | Version::HTTP_11) {
        return Err(Refusal::new(Code::NetProtocol, format!("{shown} is asked in HTTP/2")));
    }
    let method = method(&parts.method, has_body)?;
    if parts.headers.contains_key(header::UPGRADE) {
        return Err(Refusal::new(
            Code::NetProtocol,
            format!("{shown} is inspected: WebSockets and other upgrades do not pass"),
        )
        .hint("a `connect` rule without `inspect` would let them through unread"));
    }
    let uri = &parts.uri;
    if uri.scheme().is_some() || uri.authority().is_some() {
        return Err(refused(format!("a request to {shown} names a proxy's target in its line")));
    }
    let line = uri.path_and_query().map_or("", |line| line.as_str());
    if !line.starts_with('/') || line.len() > limits::URL {
        return Err(refused(format!("a request to {shown} has no path, or one that is too long")));
    }
    host(&parts.headers, place)?;
    let asked = readings(line, &method, place)?;
    Ok(Head { line: line.to_owned(), asked, headers: passed(&parts.headers), method })
}

fn method(method: &Method, has_body: bool) -> Result<Method, Refusal> {
    let refused = |why: &str| Err(Refusal::new(Code::InvalidArgument, why.to_owned()));
    let word = method.as_str();
    if word.len() > 32 || !word.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return refused("the method of a request is no word of capitals");
    }
    if ["CONNECT", "TRACE", "TRACK"].contains(&word) {
        return refused("CONNECT, TRACE and TRACK are not offered");
    }
    if has_body && ["GET", "HEAD"].contains(&word) {
        return refused("GET and HEAD have no body");
    }
    Ok(method.clone())
}

/// Exactly one `Host`, which is the place that was judged.
fn host(headers: &HeaderMap, place: &Place) -> Result<(), Refusal> {
    let mut all = headers.get_all(header::HOST).iter();
    let shown = place.authority();
    let found = match (all.next(), all.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default().to_ascii_lowercase(),
        _ => {
            let message = format!("a request to {shown} does not have exactly one Host header");
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
    };
    let (name, port) = match found.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (found.as_str(), Some(place.protocol.port())),
    };
    if name.trim_end_matches('.') == place.name && port == Some(place.port) {
        return Ok(());
    }
    let message = format!("a request to {shown} is for another host by its Host header");
    Err(Refusal::new(Code::NetDenied, message).hint("connect to the host that the request is for"))
}

/// The URLs as which servers may read the request's line.
fn readings(line: &str, method: &Method, place: &Place) -> Result<Vec<Asked>, Refusal> {
    let (path, query) =
        line.split_once('?').map_or((line, None), |(path, query)| (path, Some(query)));
    let odd = |why: &str| {
        let message = format!("a request to {}: {why}", place.authority());
        Refusal::new(Code::InvalidArgument, message)
    };
    let lower = path.to_ascii_lowercase();
    let mut paths = vec![path.to_owned()];
    if lower.contains("%2f") {
        // Package names with a slash in them: to some servers one part of the path, to others two.
        let with = |slash: &str| path.replace("%2f", slash).replace("%2F", slash);
        paths = vec![with("/"), with("-")];
    }
    let dots = |path: &String| path.split('/').any(|part| part == "." || part == "..");
    if paths.iter().any(dots) {
        return Err(odd("`.` and `..` in a path are read differently by different servers"));
    }
    let mut asked = Vec::new();
    let mut ask = |method: &str, path: &str| -> Result<(), Refusal> {
        let url = format!("{}://{}{path}", place.protocol.scheme(), place.authority());
        let url = Url::parse(&url).map_err(|why| odd(why.reason()))?;
        asked.push(Asked { method: method.to_owned(), url: url.text() });
        Ok(())
    };
    for path in &paths {
        match query {
            Some(query) => ask(method.as_str(), &format!("{path}?{query}"))?,
            None => ask(method.as_str(), path)?,
        }
        if let Some(service) = git_service(path, query) {
            ask("POST", &service)?;
        }
    }
    Ok(asked)
}

/// Where a git client sends its requests after it listed what a service other than reading offers.
fn git_service(path: &str, query: Option<&str>) -> Option<String> {
    let repository = path.strip_suffix(GIT_SERVICE)?;
    let service = query?.split('&').find_map(|pair| pair.strip_prefix("service="))?;
    (service != "git-upload-pack").then(|| format!("{repository}/git-receive-pack"))
}

/// The client's headers without those of its connection, and without those that mislead servers.
fn passed(headers: &HeaderMap) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut passed = HeaderMap::new();
    for (name, value) in headers {
        let own = [header::HOST, header::CONTENT_LENGTH, header::EXPECT];
        if is_hop_by_hop(name, &named)
            || own.contains(name)
            || MISLEADING.contains(&name.as_str())
            // Servers that pass headers to programs as variables read both characters alike.
            || name.as_str().contains('_')
        {
            continue;
        }
        passed.append(name.clone(), value.clone());
    }
    passed
}

/// Headers that a `Connection` header makes part of the connection.
pub(super) fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::CONNECTION).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

/// Whether a header is about one connection.
pub(super) fn is_hop_by_hop(name: &HeaderName, named: &[String]) -> bool {
    HOP_BY_HOP.contains(&name.as_str()) || named.iter().any(|other| other == name.as_str())
}

/// Puts the host's own headers in: the place, and what the rule adds.
pub(super) fn complete(
    headers: &mut HeaderMap,
    place: &Place,
    added: &[(HeaderName, HeaderValue)],
    masks: bool,
) {
    if let Ok(host) = HeaderValue::from_str(&place.authority()) {
        headers.insert(header::HOST, host);
    }
    if !added.is_empty() || masks {
        // A credential in a compressed answer, or in a part of one, could not be found.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
    }
    for (name, value) in added {
        headers.insert(name.clone(), value.clone());
    }
}

impl Protocol {
    /// The scheme of its URLs.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The port that its URLs need not say.
    pub(super) fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}
