//! Names that say that a secret follows.

/// A key that ends in one of these holds a secret, whatever stands before.
const LAST: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "jwt",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pwd",
    "secret",
    "secrets",
    "token",
];

/// The same of two words.
const LAST_TWO: &[(&str, &str)] = &[
    ("access", "key"),
    ("account", "key"),
    ("api", "key"),
    ("app", "key"),
    ("auth", "key"),
    ("connection", "string"),
    ("encryption", "key"),
    ("master", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("service", "key"),
    ("session", "id"),
    ("session", "key"),
    ("signing", "key"),
    ("token", "value"),
];

/// Longest name that is looked at: longer ones are texts.
const LONGEST: usize = 128;

/// Whether what stands under this key of a JSON object, or variable, is a secret.
#[must_use]
pub(super) fn is_secret_key(key: &str) -> bool {
    // `/etc/passwd` is a path; `//host/:_authToken` is a key of npm.
    let is_path = key.contains('/') && !key.contains(':');
    if key.len() > LONGEST || is_path {
        return false;
    }
    let words = words(key);
    let Some(last) = words.last() else { return false };
    if LAST.contains(&last.as_str()) || words.len() > 1 && LAST.contains(&words.concat().as_str()) {
        return true;
    }
    let before = words.len().checked_sub(2).and_then(|at| words.get(at));
    before.is_some_and(|before| LAST_TWO.contains(&(before.as_str(), last.as_str())))
}

/// Whether the word after this one is a secret: `--password`, `--api-key`, `-token`.
#[must_use]
pub(super) fn is_secret_option(word: &str) -> bool {
    let Some(name) = word.strip_prefix('-') else { return false };
    let name = name.strip_prefix('-').unwrap_or(name);
    name.len() > 2 && !name.contains('=') && is_secret_key(name)
}

/// `clientSecret`, `client_secret` and `CLIENT-SECRET` are the words client and secret.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let mut lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        if !open || (c.is_uppercase() && lower) {
            words.push(String::new());
            open = true;
        }
        lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "password",
            "PASSWORD",
            "dbPassword",
            "db_password",
            "client-secret",
            "clientSecret",
            "apiKey",
            "api_key",
            "API_KEY",
            "x-api-key",
            "APIKEY",
            "authorization",
            "Authorization",
            "Set-Cookie",
            "accessToken",
            "refresh_token",
            "github.token",
            "AWS_SECRET_ACCESS_KEY",
            "privateKey",
            "sessionId",
            "secrets",
            "//host.example/:_authToken",
            "PGPASSWORD",
        ] {
            let known = is_secret_key(name);
            // Without a border between words there is no telling.
            assert_eq!(known, name != "PGPASSWORD", "{name}");
        }
    }

    #[test]
    fn innocent_names_stay() {
        for name in [
            "tokenCost",
            "tokens",
            "max_tokens",
            "tokenizer",
            "passwordPolicy",
            "secretName",
            "key",
            "publicKey",
            "author",
            "id",
            "compass",
            "keyboard",
            "path",
            "securityTier",
            "name",
            "",
            "-",
            "monkey",
            "/etc/passwd",
            "src/auth",
        ] {
            assert!(!is_secret_key(name), "{name}");
        }
    }

    #[test]
    fn options_hide_the_next_word_only_if_they_are_named_so() {
        for word in ["--password", "--api-key", "-token", "--auth-token"] {
            assert!(is_secret_option(word), "{word}");
        }
        for word in ["-p", "--token-file", "--password=x", "password", "--", "-"] {
            assert!(!is_secret_option(word), "{word}");
        }
    }
}
