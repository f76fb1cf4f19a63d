//! Redirections, as the fetch standard has them. Pure.

use hyper::StatusCode;
use hyper::header::{HeaderMap, LOCATION};

/// What a redirection does to the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// It stays, and so does the body.
    Kept,
    /// It becomes GET, without a body.
    Get,
}

/// Whether an answer is a redirection: where to, and what becomes of the method.
pub(super) fn of(
    status: StatusCode,
    headers: &HeaderMap,
    method: &str,
) -> Option<(String, Method)> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    // Several that differ are none: nobody could say which one was judged.
    let mut all = headers.get_all(LOCATION).iter();
    let first = all.next()?;
    if all.any(|other| other != first) {
        return None;
    }
    let location = String::from_utf8(first.as_bytes().to_vec())
        .unwrap_or_else(|_| first.as_bytes().iter().map(|byte| char::from(*byte)).collect());
    let becomes_get = match status.as_u16() {
        301 | 302 => method == "POST",
        303 => method != "GET" && method != "HEAD",
        _ => false,
    };
    Some((location.trim().to_owned(), if becomes_get { Method::Get } else { Method::Kept }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_change_as_the_standard_has_it() {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, "/x".parse().unwrap());
        for (status, method, becomes) in [
            (301, "POST", Some(Method::Get)),
            (302, "POST", Some(Method::Get)),
            (301, "PUT", Some(Method::Kept)),
            (303, "PUT", Some(Method::Get)),
            (303, "HEAD", Some(Method::Kept)),
            (307, "POST", Some(Method::Kept)),
            (308, "DELETE", Some(Method::Kept)),
            (300, "GET", None),
            (304, "GET", None),
            (200, "GET", None),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of(status, &headers, method).map(|(_, method)| method), becomes, "{status}");
        }
        headers.append(LOCATION, "/y".parse().unwrap());
        assert_eq!(of(StatusCode::FOUND, &headers, "GET"), None);
        assert_eq!(of(StatusCode::FOUND, &HeaderMap::new(), "GET"), None);
    }
}
