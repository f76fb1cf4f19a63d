use super::*;
use crate::broker::testing::Random;

fn ok(text: &str) -> Request {
    decode(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn code(text: &str) -> &'static str {
    match decode(text.as_bytes()) {
        Ok(request) => panic!("{text}: {request:?}"),
        Err(error) => error.code().as_str(),
    }
}

#[test]
fn every_method_of_the_table_is_read() {
    let table = [
        (r#"{"method":"file.read","params":{"path":"a"}}"#, "file.read"),
        (
            r#"{"method":"file.read","params":{"path":"a","offset":1,"length":2},"body":false}"#,
            "file.read",
        ),
        (
            r#"{"body":true,"params":{"path":"a","exclusive":true},"method":"file.write"}"#,
            "file.write",
        ),
        (r#"{"method":"file.append","params":{"path":"a"},"body":true}"#, "file.append"),
        (r#"{"method":"file.list","params":{"path":"."}}"#, "file.list"),
        (r#"{"method":"file.stat","params":{"path":"a"}}"#, "file.stat"),
        (
            r#"{"method":"file.remove","params":{"path":"a","recursive":true,"force":true}}"#,
            "file.remove",
        ),
        (r#"{"method":"file.rename","params":{"from":"a","to":"b"}}"#, "file.rename"),
        (r#"{"method":"file.mkdir","params":{"path":"a","recursive":true}}"#, "file.mkdir"),
        (
            r#"{"method":"file.glob","params":{"pattern":"**","cwd":"a","dot":true,"limit":5}}"#,
            "file.glob",
        ),
        (
            r#"{"method":"exec.run","params":{"command":"ls","args":["-l"],"env":{"A":"b"},"cwd":".","timeoutMs":5},"body":true}"#,
            "exec.run",
        ),
        (r#"{"method":"exec.run","params":{"line":"ls | wc"}}"#, "exec.run"),
        (
            r#"{"method":"net.fetch","params":{"method":"GET","url":"https://a/","headers":[["a","b"],["a","c"]],"redirect":"manual"}}"#,
            "net.fetch",
        ),
    ];
    for (text, method) in table {
        assert_eq!(ok(text).action.method(), method);
    }
    assert_eq!(
        ok(table[10].0).action,
        Action::Exec {
            command: Command::Argv(vec!["ls".to_owned(), "-l".to_owned()]),
            cwd: Some(".".to_owned()),
            env: vec![("A".to_owned(), "b".to_owned())],
            timeout: Some(Duration::from_millis(5)),
        }
    );
}

/// Row 13: every kind of broken JSON, wrong types, unknown methods.
#[test]
fn what_is_out_of_form_is_a_protocol_error() {
    for text in [
        "",
        "{",
        "null",
        "[]",
        "1",
        "\u{feff}{}",
        r#"{"method":"file.read"}"#,
        r#"{"params":{"path":"a"}}"#,
        r#"{"method":"file.read","params":{"path":"a"}} x"#,
        r#"{"method":"file.read","params":{"path":"a"},"id":1}"#,
        r#"{"method":"file.read","method":"file.read","params":{"path":"a"}}"#,
        r#"{"method":"file.read","params":{"path":"a"},"params":{"path":"b"}}"#,
        r#"{"method":"file.read","params":{"path":"a"},"body":1}"#,
        r#"{"method":1,"params":{"path":"a"}}"#,
        r#"["file.read",{"path":"a"},false]"#,
        r#"{'method':'file.read'}"#,
        r#"{"method":"file.read","params":{"path":"a"},}"#,
    ] {
        assert_eq!(code(text), "protocol_bad_json", "{text}");
    }
    for text in [
        r#"{"method":"file.read","params":{}}"#,
        r#"{"method":"file.read","params":null}"#,
        r#"{"method":"file.read","params":["a"]}"#,
        r#"{"method":"file.read","params":{"path":1}}"#,
        r#"{"method":"file.read","params":{"path":"a","path":"b"}}"#,
        r#"{"method":"file.read","params":{"path":"a","\u0070ath":"b"}}"#,
        r#"{"method":"file.read","params":{"path":"a","offset":-1}}"#,
        r#"{"method":"file.read","params":{"path":"a","offset":1.5}}"#,
        r#"{"method":"file.read","params":{"path":"a","offset":"1"}}"#,
        r#"{"method":"file.read","params":{"path":"a","flags":1}}"#,
        r#"{"method":"file.read","params":{"path":"\ud800"}}"#,
        r#"{"method":"file.write","params":{"path":"a","exclusive":"yes"}}"#,
        r#"{"method":"exec.run","params":{}}"#,
        r#"{"method":"exec.run","params":{"command":"a","line":"b"}}"#,
        r#"{"method":"exec.run","params":{"line":"a","args":[]}}"#,
        r#"{"method":"exec.run","params":{"command":"a","args":"b"}}"#,
        r#"{"method":"exec.run","params":{"command":"a","env":{"A":"1","A":"2"}}}"#,
        r#"{"method":"exec.run","params":{"command":"a","env":{"A":1}}}"#,
        r#"{"method":"exec.run","params":{"command":"a","env":[["A","1"]]}}"#,
        r#"{"method":"net.fetch","params":{"method":"GET","url":"u","headers":[["a"]]}}"#,
        r#"{"method":"net.fetch","params":{"method":"GET","url":"u","headers":[["a","b","c"]]}}"#,
        r#"{"method":"net.fetch","params":{"method":"GET","url":"u","redirect":"Follow"}}"#,
    ] {
        let found = code(text);
        assert!(["protocol_bad_params", "protocol_bad_json"].contains(&found), "{text}: {found}");
    }
    for method in ["", "file", "file.Read", "file.read ", "fs.read", "file.exec", "__proto__"] {
        let text = format!(r#"{{"method":"{method}","params":{{}}}}"#);
        assert_eq!(code(&text), "protocol_unknown_method");
    }
    for method in ["file.read", "file.stat", "file.list"] {
        let text = format!(r#"{{"method":"{method}","params":{{"path":"a"}},"body":true}}"#);
        assert_eq!(code(&text), "protocol_unwanted_body");
    }
    assert_eq!(decode(b"{\"method\":\"\xff\"}").unwrap_err().code(), "protocol_bad_json");
}

#[test]
fn depth_and_quotes_of_foreign_text_are_bounded() {
    let deep = format!(r#"{{"method":"file.read","params":{}"#, "[".repeat(500_000));
    assert_eq!(code(&deep), "protocol_bad_json");
    let long = format!(r#"{{"method":"{}","params":{{}}}}"#, "x".repeat(100_000));
    assert!(decode(long.as_bytes()).unwrap_err().to_string().len() < 1000);
    let wide = format!(r#"{{"method":"file.read","params":{{"{}":1}}}}"#, "x".repeat(100_000));
    assert!(decode(wide.as_bytes()).unwrap_err().to_string().len() < 1000);
}

#[test]
fn any_bytes_are_a_request_or_an_error() {
    let start = br#"{"method":"file.read","params":{"path":"a","offset":1},"body":false}"#;
    for seed in 1..5000 {
        let mut random = Random::new(seed);
        let mut bytes = start.to_vec();
        for _ in 0..random.below(6) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.byte(),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b"{}[]\":,\\0a"[random.below(10)]),
            }
        }
        drop(decode(&bytes));
    }
}

#[test]
fn any_path_arrives_as_it_is() {
    for seed in 1..2000 {
        let mut random = Random::new(seed);
        let path: String = (0..random.below(40))
            .filter_map(|_| char::from_u32(random.next() % 0x11_0000))
            .collect();
        let text = serde_json::json!({"method": "file.stat", "params": {"path": path}}).to_string();
        assert_eq!(ok(&text).action, Action::Stat { path });
    }
}
