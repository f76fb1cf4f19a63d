//! Shapes of secrets in text: tokens of well-known services, keys, headers, assignments, credentials in URLs.
//!
//! One set says in one pass whether anything is there at all; only the patterns that are get applied. A pattern
//! never matches the mask, nor a quote or a backslash that it does not also give back: JSON stays JSON.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::{Captures, Regex, RegexSet};

use super::MASK;

/// Patterns. Group 1, if there is one, is kept before the mask; group 2 after it.
const PATTERNS: &[&str] = &[
    // Private keys, whole or cut off.
    r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?:(?:[A-Za-z0-9+/=:,.() \t\r\n-]|\\[nrt])*?-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----|(?:[A-Za-z0-9+/=\t\r\n]|\\[nrt])*)",
    // AWS.
    r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}",
    // GitHub, GitLab.
    r"(?-u:\b)gh[oprsu]_[A-Za-z0-9]{20,}",
    r"(?-u:\b)github_pat_[A-Za-z0-9_]{20,}",
    r"(?-u:\b)gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt|oas|wt)-[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{2,}){0,2}",
    // Slack.
    r"(?-u:\b)xox[abceoprs]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)xapp-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)(hooks\.slack\.com/services/)[A-Za-z0-9/_-]{16,}",
    // Stripe.
    r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"(?-u:\b)whsec_[A-Za-z0-9+/=]{16,}",
    // Google.
    r"(?-u:\b)AIza[A-Za-z0-9_-]{30,}",
    r"(?-u:\b)ya29\.[A-Za-z0-9_-]{20,}",
    r"(?-u:\b)GOCSPX-[A-Za-z0-9_-]{20,}",
    // Registries of packages.
    r"(?-u:\b)npm_[A-Za-z0-9]{30,}",
    r"(?-u:\b)pypi-[A-Za-z0-9_-]{40,}",
    r"(?-u:\b)dckr_pat_[A-Za-z0-9_-]{20,}",
    // Models, mail, hosting.
    r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}",
    r"(?-u:\b)hf_[A-Za-z0-9]{30,}",
    r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)do[opr]_v1_[a-f0-9]{40,}",
    // JSON Web Tokens, signed or encrypted.
    r"(?-u:\b)eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,3}",
    // Credentials of a header, wherever it is quoted.
    r#"(?i)(?-u:\b)((?:proxy-)?authorization\s?[:=]\s?'?)[^\s"'\\\[][^\r\n"'\\]*"#,
    r#"(?i)(?-u:\b)((?:set-)?cookie\s?:\s?'?)[^\s"'\\\[][^\r\n"'\\]*"#,
    r"(?i)(?-u:\b)(bearer\s)(?:[A-Za-z0-9._~+/-]{20,}|[A-Za-z._~+/-]*[0-9][A-Za-z0-9._~+/-]{6,})=*",
    r"(?i)(?-u:\b)(basic\s)[A-Za-z0-9+/]{6,}={1,2}",
    // A password in a URL, or a token alone.
    r#"(://[^\s/?#@:\[\]"'\\<>]*:)[^\s/?#@\["'\\<>][^\s/?#@"'\\<>]*(@)"#,
    r#"(://)[A-Za-z0-9_.~%+-]{20,}(@)"#,
    // A member of JSON.
    r#"(?i)("[a-z0-9_.-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization|cookie|x-amz-signature|x-goog-signature)"\s{0,4}:\s{0,4}")(?:[^"\\\[]|\\.)(?:[^"\\]|\\.)*(")"#,
    // An assignment, as in an environment, a query or an option.
    r#"(?i)(?-u:\b)((?:[a-z0-9_.-]{0,40}[_.-])?(?:passw(?:or)?d|passphrase|pgpassword|sshpass|mysql_pwd|secret|(?:access|api|auth|bearer|client|csrf|deploy|id|job|private|refresh|session|xsrf)?[_-]?token|client[_-]?secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|credentials?)='?)[^\s"'&,;\\\[][^\s"'&,;\\]{3,}"#,
    // What signs a URL.
    r#"(?i)(?-u:\b)(x-(?:amz|goog)-(?:signature|credential)='?)[^\s"'&,;\\\[][^\s"'&,;\\]{3,}"#,
    r#"(?i)([?&](?:sig|signature)=)[^\s"'&,;\\\[][^\s"'&,;\\]{7,}"#,
    r#"(?i)(?-u:\b)((?:[a-z0-9_.-]{0,40}[_.-])?(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|(?:access|auth|api|refresh|bearer)[_ -]?token|(?:[a-z0-9]{1,20}-){1,4}token): ?'?)[^\s"'&,;\\\[][^\s"'&,;\\]{3,}"#,
    r#"(?i)((?:^|\s)--?(?:[a-z0-9]{1,20}-){0,3}(?:passw(?:or)?d|passphrase|secret|token|api-?key|access-?key)\s'?)[^\s"'\\\[-][^\s"'\\]{3,}"#,
];

/// In double quotes, which are the borders of strings in JSON: not for texts that could be that.
const QUOTED: &str = r#"(?i)(?-u:\b)((?:[a-z0-9_.-]{0,40}[_.-])?(?:passw(?:or)?d|passphrase|pgpassword|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)(?:=|: ?|\s)")[^"\\\[][^"\\]*(")"#;

/// Redaction can lay bare what was glued to a secret; it is done again at most so often.
pub(super) const ROUNDS: usize = 8;

/// Without one of these, in any case, no pattern matches: most texts need no patterns compiled.
#[rustfmt::skip]
const HINTS: &[&str] = &[
    "private key", "akia", "asia", "abia", "acca", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_",
    "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-", "glagent-", "glimt-", "gloas-", "glwt-",
    "sshpass", "mysql_pwd", "-signature", "-credential", "?sig", "&sig", "xox", "xapp-", "hooks.slack.com", "_live_", "_test_", "whsec_",
    "aiza", "ya29.", "gocspx-", "npm_", "pypi-", "dckr_pat_", "sk-", "hf_", "sg.", "_v1_", "eyj", "authorization",
    "cookie", "bearer", "basic", "passw", "passphrase", "secret", "token", "api_key", "api-key", "apikey",
    "access_key", "access-key", "accesskey", "account_key", "account-key", "accountkey", "private_key",
    "private-key", "privatekey", "credential",
];

pub(super) fn could_hold(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    (lower.contains("://") && lower.contains('@')) || HINTS.iter().any(|hint| lower.contains(hint))
}

struct Shapes {
    set: RegexSet,
    each: Vec<Regex>,
    quoted: Regex,
}

/// Compiled when the first text is redacted.
fn shapes() -> Option<&'static Shapes> {
    static SHAPES: OnceLock<Option<Shapes>> = OnceLock::new();
    let compile = || {
        let set = RegexSet::new(PATTERNS).ok()?;
        let each =
            PATTERNS.iter().map(|pattern| Regex::new(pattern).ok()).collect::<Option<_>>()?;
        Some(Shapes { set, each, quoted: Regex::new(QUOTED).ok()? })
    };
    SHAPES.get_or_init(compile).as_ref()
}

/// The text with masks where shapes of secrets stood.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    if !could_hold(text) {
        return Cow::Borrowed(text);
    }
    let Some(shapes) = shapes() else {
        // A test compiles the patterns, so this cannot happen; if it does, nothing is told.
        return Cow::Borrowed(MASK);
    };
    let mut redacted = Cow::Borrowed(text);
    if !text.trim_start().starts_with(['{', '[', '"']) {
        redacted = shapes.quoted.replace_all(text, masked);
    }
    for _ in 0..ROUNDS {
        let found: Vec<usize> = shapes.set.matches(&redacted).into_iter().collect();
        if found.is_empty() {
            break;
        }
        let mut next = redacted.clone().into_owned();
        for at in found {
            if let Cow::Owned(changed) = shapes.each[at].replace_all(&next, masked) {
                next = changed;
            }
        }
        redacted = Cow::Owned(next);
    }
    redacted
}

/// The text without private keys, which are many lines.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    match shapes() {
        Some(shapes) => shapes.each[0].replace_all(text, masked),
        None => Cow::Borrowed(MASK),
    }
}

fn masked(found: &Captures<'_>) -> String {
    let group = |at| found.get(at).map_or("", |group: regex::Match<'_>| group.as_str());
    format!("{}{MASK}{}", group(1), group(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One text for each pattern, in their order; parts are joined here so that no scanner takes them for real.
    fn samples() -> Vec<String> {
        let filler = "a1B2c3D4".repeat(8);
        let with = |before: &str| format!("{before}{filler}");
        vec![
            format!("-----BEGIN RSA PRIVATE KEY{}", "-----"),
            format!("AKIA{}", "A1B2".repeat(4)),
            with("ghp_"),
            with("github_pat_"),
            with("glpat-"),
            with("xoxb-"),
            with("xapp-"),
            with("hooks.slack.com/services/"),
            with("sk_live_"),
            with("whsec_"),
            with("AIza"),
            with("ya29."),
            with("GOCSPX-"),
            with("npm_"),
            with("pypi-"),
            with("dckr_pat_"),
            with("sk-"),
            with("hf_"),
            format!("SG.{filler}.{filler}"),
            format!("dop_v1_{}", "a1b2".repeat(16)),
            format!("eyJ{filler}.{filler}.{filler}"),
            "Authorization: x".to_owned(),
            "Cookie: x".to_owned(),
            with("Bearer "),
            "Basic YWJjZGVm==".to_owned(),
            "x://u:p@h".to_owned(),
            format!("x://{filler}@h"),
            "\"api_key\":\"x\"".to_owned(),
            "ACCOUNT-KEY=abcd".to_owned(),
            "X-Amz-Signature=abcd".to_owned(),
            "?sig=abcdefgh".to_owned(),
            "auth token: abcd".to_owned(),
            "x --access-key abcd".to_owned(),
        ]
    }

    #[test]
    fn every_pattern_matches_its_sample_and_has_a_hint() {
        let shapes = shapes().unwrap();
        let samples = samples();
        assert_eq!(samples.len(), PATTERNS.len());
        for ((pattern, regex), sample) in PATTERNS.iter().zip(&shapes.each).zip(&samples) {
            assert!(regex.is_match(sample), "{pattern} {sample}");
            assert!(could_hold(sample), "{pattern} {sample}");
        }
        assert!(shapes.quoted.is_match("TOKEN=\"x\"") && could_hold("TOKEN=\"x\""));
    }

    #[test]
    fn patterns_compile_and_leave_the_mask_alone() {
        let shapes = shapes().unwrap();
        for (pattern, regex) in PATTERNS.iter().zip(&shapes.each) {
            assert!(!regex.is_match(MASK), "{pattern}");
        }
    }
}
