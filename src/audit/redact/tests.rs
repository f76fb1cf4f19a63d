use serde_json::json;

use super::*;

fn text(text: &str) -> String {
    Redactor::new().text(text).into_owned()
}

/// Made up while the test runs: a token that stands whole in a source looks like a leak to every scanner.
fn made(prefix: &str, alphabet: &str, length: usize) -> String {
    format!("{prefix}{}", alphabet.chars().cycle().take(length).collect::<String>())
}

#[test]
fn well_known_shapes_are_masked_and_what_stands_around_them_stays() {
    const MIXED: &str = "a1B2c3D4e5F6g7H8";
    for secret in [
        made("AKIA", "IOSFODNN7EXAMPLE", 16),
        made("ghp_", MIXED, 36),
        made("github_pat_", MIXED, 60),
        made("glpat-", MIXED, 20),
        made("xoxb-", "1234567890-", 30),
        made("sk_live_", MIXED, 24),
        made("AIza", MIXED, 35),
        made("ya29.", MIXED, 40),
        made("npm_", MIXED, 36),
        made("pypi-", MIXED, 60),
        made("sk-ant-", MIXED, 40),
        made("hf_", MIXED, 34),
        format!("{}.{}.{}", made("eyJ", MIXED, 20), made("eyJ", MIXED, 30), made("", MIXED, 43)),
    ] {
        for around in ["{}", "x {} y", "\"{}\"", "url?k={}&b=1", "({})", "a,{},b"] {
            let shown = text(&around.replace("{}", &secret));
            assert_eq!(shown, around.replace("{}", MASK), "{secret}");
        }
    }
}

#[test]
fn headers_assignments_and_urls_keep_their_names() {
    for (before, after) in [
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ("-H 'authorization: Basic dXNlcjpwYXNz' x", "-H 'authorization: [redacted]' x"),
        ("Cookie: a=b; c=d", "Cookie: [redacted]"),
        ("bearer 0123456789abcdef", "bearer [redacted]"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic [redacted]"),
        ("https://user:hunter2@host.example/x", "https://user:[redacted]@host.example/x"),
        ("postgres://u:p%40ss@db/x", "postgres://u:[redacted]@db/x"),
        ("PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"),
        ("API_KEY=abcdef make", "API_KEY=[redacted] make"),
        ("mysql --password=hunter2 db", "mysql --password=[redacted] db"),
        ("tool --auth-token abcdef x", "tool --auth-token [redacted] x"),
        ("x?access_token=abcdef&y=1", "x?access_token=[redacted]&y=1"),
        ("password: hunter2, ok", "password: [redacted], ok"),
        (r#"{"apiKey":"x","n":1}"#, r#"{"apiKey":"[redacted]","n":1}"#),
        (r#"{"db_password": "a\"b"}"#, r#"{"db_password": "[redacted]"}"#),
        ("export TOKEN=\"ab cd\" x", "export TOKEN=\"[redacted]\" x"),
        (r#"{"Authorization":"x y","n":1}"#, r#"{"Authorization":"[redacted]","n":1}"#),
        ("AccountKey=abcdefgh;x", "AccountKey=[redacted];x"),
    ] {
        assert_eq!(text(before), after);
    }
}

#[test]
fn keys_are_masked_whole_or_cut_off() {
    let body = "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJ\nAbCd+/==\n";
    let (begin, end) = ("-----BEGIN RSA PRIVATE ", "-----END RSA PRIVATE ");
    let whole = format!("a {begin}KEY-----\n{body}{end}KEY----- b");
    assert_eq!(text(&whole), "a [redacted] b");
    assert_eq!(text(&format!("a {begin}KEY-----\n{body}")), "a [redacted]");
    let quoted =
        format!("{{\"k\":\"{begin}KEY-----\\n{}{end}KEY-----\\n\"}}", body.replace('\n', "\\n"));
    assert_eq!(text(&quoted), "{\"k\":\"[redacted]\\n\"}");
}

#[test]
fn innocent_text_stays() {
    for innocent in [
        "git log --oneline -n 5 -- src",
        "unexpected token: foo at line 3",
        "grep -rn password= src",
        "basic authentication is needed",
        "Bearer authentication",
        "ssh://git@host.example/repo.git",
        "cargo test token_is_read",
        "--token-file secrets.txt",
        "https://host.example/a@b",
        "0123456789abcdef0123456789abcdef01234567",
        "password",
        "tokenCost=5",
    ] {
        assert_eq!(text(innocent), innocent);
    }
}

#[test]
fn json_is_masked_by_its_keys_at_every_depth() {
    let redactor = Redactor::new();
    assert!(redactor.learn("canary-canary"));
    let seen = redactor.json(&json!({
        "user": "ann", "password": "x", "nested": [{ "clientSecret": { "a": "b", "n": 5, "t": true } }],
        "token": null, "tokenCost": 5, "note": "see canary-canary", "secret": "", "canary-canary": 1,
    }));
    assert_eq!(
        seen,
        json!({
            "user": "ann", "password": MASK,
            "nested": [{ "clientSecret": { "a": MASK, "n": MASK, "t": true } }],
            "token": null, "tokenCost": 5, "note": "see [redacted]", "secret": "", "[redacted]": 1,
        })
    );
}

#[test]
fn words_of_a_command_keep_their_order_and_number() {
    let argv: Vec<String> =
        ["curl", "--password", "hunter2", "--token", "-v", "A_TOKEN=abcdef", "x"]
            .map(str::to_owned)
            .into();
    assert_eq!(
        Redactor::new().argv(&argv),
        ["curl", "--password", MASK, "--token", "-v", "A_TOKEN=[redacted]", "x"]
    );
}

#[test]
fn known_values_are_found_in_every_encoding() {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    let secret = "s3cr3t/va+lue?&\"x";
    let redactor = Redactor::new();
    assert!(redactor.learn(secret));
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    for seen in [
        secret.to_owned(),
        percent.clone(),
        percent.to_lowercase(),
        "s3cr3t%2Fva%2Blue%3F%26%22x".to_owned(),
        "s3cr3t/va+lue?&amp;&quot;x".to_owned(),
        r#"s3cr3t\/va+lue?\u0026\"x"#.to_owned(),
        hex.clone(),
        hex.to_uppercase(),
    ] {
        assert_eq!(redactor.values(&format!("<{seen}>")), format!("<{MASK}>"), "{seen}");
    }
    for before in ["", "a", "ab", "abc", "Bearer "] {
        for after in ["", "y", "yz"] {
            let whole = format!("{before}{secret}{after}");
            for encoded in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let shown = redactor.values(&encoded).into_owned();
                assert!(shown.contains(MASK), "{encoded} {shown}");
                // What is left tells at most the characters at the borders.
                assert!(
                    shown.len() <= MASK.len() + before.len() * 2 + after.len() * 2 + 6,
                    "{shown}"
                );
            }
        }
    }
    assert_eq!(redactor.values("s3cr3t/va+lue"), "s3cr3t/va+lue");
}

#[test]
fn encoded_values_are_found_across_line_breaks() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let secret = "s3cr3t-value-of-some-length";
    let redactor = Redactor::new();
    assert!(redactor.learn(secret));
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let wrapped = |text: &str, width: usize, end: &str| {
        let lines: Vec<&str> =
            text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
        lines.join(end)
    };
    for before in ["", "a", "ab", "user:"] {
        for encoded in [STANDARD.encode(format!("{before}{secret}")), hex.clone()] {
            for width in [1, 4, 10, 19] {
                for end in ["\n", "\r\n", "\\n", "\\r\\n", "%0A", "%0d%0a", "\n    "] {
                    let text = wrapped(&encoded, width, end);
                    let shown = redactor.values(&text).into_owned();
                    assert!(shown.contains(MASK), "{text:?}");
                    // At the borders a few characters belong to what stands around.
                    assert!(
                        shown.len() <= MASK.len() + (before.len() * 2 + 6) * (1 + end.len()),
                        "{text:?} {shown:?}"
                    );
                    let mut stream = redactor.stream();
                    let mut out = Vec::new();
                    for piece in text.as_bytes().chunks(3) {
                        out.extend(stream.push(piece.to_vec()));
                    }
                    out.extend(stream.finish());
                    assert_eq!(String::from_utf8(out).unwrap(), shown);
                }
            }
        }
    }
    // Other text in lines stays, and so does a value that is only a part.
    for harmless in ["s3cr3t\n-value", "c2Vj\ncmV0", "one\ntwo\n    three"] {
        assert_eq!(redactor.values(harmless), harmless);
    }
}

#[test]
fn what_is_inside_encoded_credentials_is_known_too() {
    let redactor = Redactor::new();
    // ann:correct-horse
    assert!(redactor.learn("YW5uOmNvcnJlY3QtaG9yc2U="));
    assert_eq!(redactor.values("user ann:correct-horse"), "user [redacted]");
    assert_eq!(redactor.values("pass correct-horse!"), "pass [redacted]!");
}

#[test]
fn weak_values_cannot_be_learned() {
    let redactor = Redactor::new();
    for weak in ["", "short", "redacted", "[redacted]"] {
        assert!(!redactor.learn(weak), "{weak}");
    }
    assert!(!redactor.learn(&"x".repeat(known::LONGEST + 1)));
    assert!(!redactor.has_learned());
}

/// Generated texts: a fixed seed, so that a failure comes again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn part(&mut self) -> String {
        let parts = [
            "canary/canary".to_owned(),
            "canary%2Fcanary".to_owned(),
            "Y2FuYXJ5L2NhbmFyeQ==".to_owned(),
            "canary/canary-and-more".to_owned(),
            "canary/".to_owned(),
            "%2".to_owned(),
            made("AKIA", "ABCDEFGH12345678", 16),
            made("ghp_", "aB3", 36),
            made("eyJ", "aB3", 20) + ".eyJhYmMi.abc",
            "password=".to_owned(),
            "hunter2".to_owned(),
            "://u:p@h".to_owned(),
            "Bearer ".to_owned(),
            "Authorization: ".to_owned(),
            "--token ".to_owned(),
            "curl -u a:".to_owned(),
            "mysql -p".to_owned(),
            " -b a=".to_owned(),
            " sshpass -p ".to_owned(),
            "\"secret\":\"".to_owned(),
            "\"".to_owned(),
            "\\".to_owned(),
            " ".to_owned(),
            "\n".to_owned(),
            MASK.to_owned(),
            "-----BEGIN PRIVATE ".to_owned() + "KEY-----",
            "é".to_owned(),
        ];
        match parts.get(self.roll(parts.len() + 2)) {
            Some(part) => part.clone(),
            None => (0..self.roll(12))
                .filter_map(|_| char::from_u32(u32::try_from(self.roll(0x300)).unwrap()))
                .collect(),
        }
    }

    fn text(&mut self) -> String {
        (0..self.roll(9)).map(|_| self.part()).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 4 } else { 8 }) {
            0 => Value::Null,
            1 => Value::from(self.roll(1000)),
            2 | 3 => Value::String(self.text()),
            4 | 5 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let keys = ["password", "token", "a", "api_key"];
                let pairs = (0..self.roll(4)).map(|_| {
                    let key = match keys.get(self.roll(keys.len() * 2)) {
                        Some(key) => (*key).to_owned(),
                        None => self.text(),
                    };
                    (key, self.value(depth - 1))
                });
                Value::Object(pairs.collect())
            }
        }
    }
}

const CASES: usize = 1_500;

#[test]
fn redacting_again_changes_nothing_and_nothing_grows() {
    let redactor = Redactor::new();
    assert!(redactor.learn("canary/canary"));
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..CASES {
        let text = dice.text();
        let once = redactor.text(&text).into_owned();
        assert_eq!(redactor.text(&once), once, "{text:?}");
        assert!(once.len() <= 4 * text.len() + MASK.len(), "{text:?} {once:?}");
        assert!(!once.contains("canary/canary"), "{text:?}");
        let line = redactor.line(&text);
        assert!(!line.contains("canary/canary"), "{text:?}");
        assert!(line.len() <= 4 * text.len() + MASK.len(), "{text:?} {line:?}");
    }
}

#[test]
fn json_stays_json() {
    let redactor = Redactor::new();
    assert!(redactor.learn("canary/canary"));
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for _ in 0..CASES {
        let value = dice.value(3);
        let written = value.to_string();
        let shown = redactor.text(&written).into_owned();
        assert!(serde_json::from_str::<Value>(&shown).is_ok(), "{written} {shown}");
        let masked = redactor.json(&value);
        assert_eq!(redactor.json(&masked), masked, "{written}");
        assert!(!masked.to_string().contains("canary/canary"), "{written}");
    }
}

#[test]
fn pieces_do_not_matter() {
    let redactor = Redactor::new();
    assert!(redactor.learn("canary/canary") && redactor.learn("canary/canary-and-more"));
    let mut dice = Dice(0x1234_5678_9abc_def1);
    for _ in 0..CASES {
        let whole = dice.text();
        let expected = redactor.values(&whole).into_owned();
        let mut stream = redactor.stream();
        let mut out = Vec::new();
        let mut rest = whole.as_bytes();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + dice.roll(30)).min(rest.len()));
            out.extend(stream.push(piece.to_vec()));
            rest = after;
        }
        out.extend(stream.finish());
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{whole:?}");
        assert_eq!(stream.found(), whole != expected, "{whole:?}");
    }
}
