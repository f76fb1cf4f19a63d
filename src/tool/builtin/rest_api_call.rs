//! `rest_api_call`: one HTTP request through the broker, which decides about the peer, its address, redirects and secrets.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::intent::Intent;
use super::problem::Problem;
use crate::broker::client::{Call, Fetch, Response, Thrown};
use crate::json;

/// Bytes of a body that are given: as JSON, with every character escaped, it is still within a result.
const BODY_MAX: usize = 512 << 10;

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
struct Args {
    method: String,
    url: String,
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
    timeout: u64,
}

/// Makes the request.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let mut headers: Vec<(String, String)> = args.headers.into_iter().collect();
    let named = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let (body, kind) = match args.body {
        Value::Null => (None, None),
        Value::String(text) => (Some(text.into_bytes()), Some("text/plain; charset=utf-8")),
        value => (Some(value.to_string().into_bytes()), Some("application/json")),
    };
    if let Some(kind) = kind.filter(|_| !named("content-type")) {
        headers.push(("content-type".to_owned(), kind.to_owned()));
    }
    let begun = Instant::now();
    let fetch = Fetch {
        method: &args.method,
        url: &args.url,
        headers: &headers,
        body: body.as_deref(),
        timeout: Some(args.timeout),
        most: BODY_MAX,
    };
    let response = call.client.fetch(fetch).await?;
    let duration = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(answer(response, duration))
}

/// What a call will reach.
pub(super) fn intends(args: &Value) -> Vec<Intent> {
    let Ok(Args { method, url, .. }) = Args::deserialize(args) else { return Vec::new() };
    vec![Intent::Reach { method, url }]
}

fn answer(response: Response, duration: u64) -> Value {
    let Response { status, status_text, url, headers, body, more } = response;
    let headers = by_name(headers);
    let kind = headers.get("content-type").and_then(Value::as_str).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|it| {
        let it = it.trim();
        it.ends_with("/json") || it.ends_with("+json")
    });
    let (body, encoding) = match String::from_utf8(body) {
        Ok(text) => match json::read(&text) {
            Ok(value) if is_json && !more => (value, "json"),
            _ => (text.into(), "utf8"),
        },
        Err(bytes) => (BASE64_STANDARD.encode(bytes.into_bytes()).into(), "base64"),
    };
    json!({
        "status": status, "statusText": status_text, "ok": (200..300).contains(&status), "url": url,
        "headers": headers, "body": body, "encoding": encoding, "truncated": more, "duration": duration,
    })
}

/// Headers by their names in small letters; one that stands several times is a list.
fn by_name(headers: Vec<(String, String)>) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        match map.get_mut(&name) {
            None => drop(map.insert(name, value.into())),
            Some(Value::Array(several)) => several.push(value.into()),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, body: &[u8], more: bool) -> Value {
        let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        let response = Response {
            status: 201,
            status_text: String::new(),
            url: "http://a/".to_owned(),
            headers,
            body: body.to_vec(),
            more,
        };
        answer(response, 1)
    }

    #[test]
    fn a_body_is_data_where_it_says_so_and_is() {
        assert_eq!(of("application/json; charset=utf-8", b"{\"a\":1}", false)["body"]["a"], 1);
        assert_eq!(of("application/problem+json", b"{\"a\":1}", false)["encoding"], "json");
        assert_eq!(of("application/json", b"{\"a\"", false)["encoding"], "utf8");
        assert_eq!(of("application/json", b"[1]", true)["encoding"], "utf8", "it is cut");
        assert_eq!(of("text/plain", b"[1]", false)["body"], "[1]");
        assert_eq!(of("image/png", b"\xff\xd8", false)["body"], "/9g=");
        assert_eq!(of("text/plain", b"", false)["ok"], true);
    }

    #[test]
    fn headers_that_repeat_are_lists() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let map = by_name(vec![
            pair("Set-Cookie", "a"),
            pair("set-cookie", "b"),
            pair("X", "c"),
            pair("SET-COOKIE", "d"),
        ]);
        assert_eq!(Value::Object(map), json!({ "set-cookie": ["a", "b", "d"], "x": "c" }));
    }
}
