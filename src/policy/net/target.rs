//! Targets as written in rules and in commands, normalised once and compared.
//!
//! Only names are judged here. Which address a name leads to is checked where it is dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a rule names, or a command asks for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Target {
    /// `connect`, or HTTP methods in capitals; empty for any method.
    pub methods: Vec<String>,
    /// Whether only a connection is asked for.
    pub connect: bool,
    /// Lower case, without a trailing dot; in a rule `*.` may stand before it, or `*` alone.
    pub host: String,
    /// The port; `None` in a rule for any.
    pub port: Option<u16>,
    /// The scheme of a URL.
    pub scheme: Option<String>,
    /// The path of a URL, without query; a pattern in a rule.
    pub path: Option<String>,
}

/// Reads a rule: `connect HOST:PORT`, `GET https://HOST/PATH/**`, `GET,HEAD https://HOST/**`.
///
/// # Errors
/// The right form, in words.
pub fn rule(text: &str) -> Result<Target, String> {
    let form = || {
        "`connect HOST:PORT`, or `GET https://HOST/PATH/**` (several methods: `GET,HEAD`)"
            .to_owned()
    };
    let (verb, rest) = text.split_once(' ').ok_or_else(form)?;
    let rest = rest.trim();
    if verb == "connect" {
        let (host, port) = authority(rest).ok_or_else(form)?;
        let any = rest.ends_with(":*");
        if port.is_none() && !any {
            return Err(format!("a port after the host, such as `connect {host}:443`"));
        }
        check_host(&host)?;
        return Ok(Target {
            methods: Vec::new(),
            connect: true,
            host,
            port,
            scheme: None,
            path: None,
        });
    }
    let methods: Vec<String> = verb.split(',').map(str::to_owned).collect();
    if !methods
        .iter()
        .all(|method| !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase()))
    {
        return Err(form());
    }
    let mut target = url(rest).ok_or_else(form)?;
    check_host(&target.host)?;
    let path = target.path.take().unwrap_or_default();
    target.path = Some(if path.is_empty() { "/**".to_owned() } else { path });
    crate::paths::check_pattern(target.path.as_deref().unwrap_or_default()).or_else(|why| {
        // A URL path may end in a slash or be the root.
        if target.path.as_deref().is_some_and(|path| path.ends_with('/')) {
            Ok(())
        } else {
            Err(why)
        }
    })?;
    target.methods = methods;
    Ok(target)
}

fn check_host(host: &str) -> Result<(), String> {
    let plain = host.strip_prefix("*.").unwrap_or(host);
    if plain.is_empty() || (plain.contains('*') && host != "*") {
        return Err("a host name; `*.` may stand before it, or `*` alone".to_owned());
    }
    Ok(())
}

/// Reads what a command asks for: a URL, or `HOST[:PORT]`. `None` if it is not plain.
#[must_use]
pub fn request(method: &str, text: &str) -> Option<Target> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut target = url(&text)?;
    if target.host.contains('*') || method == "*" || any_port(&text) {
        return None;
    }
    if target.path.as_deref() == Some("") {
        target.path = Some("/".to_owned());
    }
    target.methods = vec![method.to_owned()];
    Some(target)
}

/// Reads a connection that a command asks for.
#[must_use]
pub fn connection(text: &str) -> Option<Target> {
    let (host, port) = authority(text)?;
    (!host.contains('*')).then_some(Target {
        methods: Vec::new(),
        connect: true,
        host,
        port,
        scheme: None,
        path: None,
    })
}

fn url(text: &str) -> Option<Target> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme.is_empty()
        || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, tail) = rest.split_at(end);
    // User information, backslashes and odd characters are read differently by different programs.
    if place.contains(['@', '\\']) || tail.chars().any(|c| c.is_control() || c == ' ' || c == '\\')
    {
        return None;
    }
    let (host, port) = authority(place)?;
    let port = port.or(match scheme.as_str() {
        _ if any_port(text) => None,
        "http" => Some(80),
        "https" => Some(443),
        "ftp" => Some(21),
        _ => None,
    });
    let path = &tail[..tail.find(['?', '#']).unwrap_or(tail.len())];
    // Dots and encoded dots or slashes could lead elsewhere than they read.
    let lower = path.to_ascii_lowercase();
    if path.split('/').any(|part| part == ".." || part == ".")
        || lower.contains("%2e")
        || lower.contains("%2f")
        || lower.contains("%5c")
    {
        return None;
    }
    Some(Target {
        methods: Vec::new(),
        connect: false,
        host,
        port,
        scheme: Some(scheme),
        path: Some(path.to_owned()),
    })
}

/// Whether a URL says `:*` after its host: any port, which a rule may name and a request cannot have.
fn any_port(url: &str) -> bool {
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    place.split(['/', '?', '#']).next().is_some_and(|place| place.ends_with(":*"))
}

/// `HOST`, `HOST:PORT`, `[::1]:PORT`; `:*` is any port.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest.split_once(']')?;
            let address = address.parse::<Ipv6Addr>().ok()?;
            // One spelling for one address; a mapped one is the address that it carries.
            let host = match address.to_ipv4_mapped() {
                Some(mapped) => mapped.to_string(),
                None => format!("[{address}]"),
            };
            (host, after.strip_prefix(':').or(after.is_empty().then_some("")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (text.to_owned(), Some("")),
        },
    };
    let port = match port? {
        "" | "*" => None,
        digits => Some(digits.parse().ok()?),
    };
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._*[]:".contains(c);
    // `127.1`, `0x7f.1` and `2130706433` are addresses to some programs and names to others.
    let numeric = host.rsplit('.').next().is_some_and(|last| {
        last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x")
    });
    let odd = numeric && !host.starts_with('[') && host.parse::<Ipv4Addr>().is_err();
    (!host.is_empty() && !odd && host.chars().all(plain)).then_some((host, port))
}

impl Target {
    /// The address, if the host is one and not a name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self.host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?.parse().ok().map(IpAddr::V6),
            None => self.host.parse().ok().map(IpAddr::V4),
        }
    }

    /// The same target at an address.
    #[must_use]
    pub fn at(&self, address: IpAddr) -> Self {
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        Self { host, ..self.clone() }
    }

    /// Whether the host is this very machine, by its name or address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.address() {
            Some(address) => super::kind(address) == super::Kind::Loopback,
            None => self.host == "localhost",
        }
    }

    /// Whether the host is one name or address, without a star.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        !self.host.contains('*')
    }

    /// How exactly a rule speaks: a request before a connection, a fixed host before a star, a longer path
    /// before a shorter one, a port before any. Where several rules allow a request, the most exact counts.
    #[must_use]
    pub fn exactness(&self) -> (bool, bool, usize, bool) {
        let path = self.path.as_deref().unwrap_or_default();
        let literal = path.find(['*', '?', '[', '{']).map_or(usize::MAX, |at| at);
        (
            !self.connect,
            self.is_fixed(),
            if self.connect { 0 } else { literal },
            self.port.is_some(),
        )
    }

    /// Whether a request or connection is within this rule.
    #[must_use]
    pub fn covers(&self, asked: &Self) -> bool {
        let host = match self.host.strip_prefix("*.") {
            Some(parent) => asked
                .host
                .strip_suffix(parent)
                .is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
            None => self.host == "*" || self.host == asked.host,
        };
        let port = self.port.is_none() || self.port == asked.port;
        if self.connect {
            // Who may connect may send any request.
            return host && port && (asked.connect || asked.port.is_some());
        }
        let scheme = self.scheme == asked.scheme;
        let method = asked.methods.iter().all(|method| self.methods.contains(method));
        let path = match (&self.path, &asked.path) {
            (Some(pattern), Some(path)) => path_matches(pattern, path),
            _ => false,
        };
        !asked.connect && host && port && scheme && method && path
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let list = crate::paths::List::new(
        crate::paths::Meaning::Grants,
        vec![(pattern.to_owned(), crate::finding::At::default())],
    );
    list.find(path, None).is_some()
        || pattern == path
        || (pattern == "/**" && path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(rule_text: &str, method: &str, url: &str) -> bool {
        request(method, url).is_some_and(|asked| rule(rule_text).unwrap().covers(&asked))
    }

    #[test]
    fn requests_are_judged_by_method_host_port_and_path() {
        let api = "GET https://api.example/v1/**";
        assert!(covers(api, "GET", "https://api.example/v1/users?id=1"));
        assert!(covers(api, "GET", "https://API.example.:443/v1/users"));
        for (method, url) in [
            ("POST", "https://api.example/v1/users"),
            ("GET", "http://api.example/v1/users"),
            ("GET", "https://api.example/v2/users"),
            ("GET", "https://api.example:8443/v1/users"),
            ("GET", "https://api.example.evil/v1/users"),
            ("GET", "https://evil/api.example/v1/"),
            ("GET", "https://api.example@evil/v1/users"),
            ("GET", "https://api.example/v1/../v2"),
            ("GET", "https://api.example/v1/%2e%2e/v2"),
            ("*", "https://api.example/v1/users"),
        ] {
            assert!(!covers(api, method, url), "{method} {url}");
        }
    }

    #[test]
    fn any_port_is_said_and_never_asked_for() {
        for port in ["", ":80", ":8080"] {
            let url = format!("http://a.example{port}/x");
            assert!(covers("GET http://a.example:*/**", "GET", &url), "{url}");
            assert!(covers("GET http://*:*/**", "GET", &url), "{url}");
            assert_eq!(covers("GET http://a.example/**", "GET", &url), port != ":8080", "{url}");
        }
        assert!(!covers("GET http://a.example:*/**", "GET", "https://a.example:8080/x"));
        for url in ["http://a.example:*/x", "http://a.example:*", "a.example:*"] {
            assert!(request("GET", url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_connection_covers_requests_to_the_same_port() {
        assert!(covers("connect registry.example:443", "PUT", "https://registry.example/x"));
        assert!(!covers("connect registry.example:443", "GET", "http://registry.example/x"));
        assert!(
            rule("connect registry.example:443")
                .unwrap()
                .covers(&connection("registry.example:443").unwrap())
        );
        assert!(
            !rule("connect registry.example:443")
                .unwrap()
                .covers(&connection("registry.example").unwrap())
        );
        assert!(
            !rule("GET https://a.example/**")
                .unwrap()
                .covers(&connection("a.example:443").unwrap())
        );
    }

    #[test]
    fn a_star_stands_for_subdomains_only() {
        assert!(covers("GET https://*.example.org/**", "GET", "https://a.b.example.org/x"));
        assert!(!covers("GET https://*.example.org/**", "GET", "https://example.org/x"));
        assert!(!covers("GET https://*.example.org/**", "GET", "https://evilexample.org/x"));
    }

    #[test]
    fn malformed_rules_say_the_right_form() {
        for text in [
            "",
            "connect",
            "connect host",
            "get https://a/",
            "GET a.example",
            "GET https://a*b/",
            "connect ho st:1",
            "GET https://u@h/",
        ] {
            assert!(rule(text).is_err(), "{text}");
        }
    }
}
