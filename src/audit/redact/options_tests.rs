//! Secrets in options, each beside harmless words of the same shape.

use serde_json::json;

use super::{MASK, Redactor};

/// A command, its secret, and what is shown. The words have no quotes, so the three readings agree.
const HIDDEN: &[(&str, &str, &str)] = &[
    (
        "curl -u ann:hunter2 https://h.example",
        "hunter2",
        "curl -u ann:[redacted] https://h.example",
    ),
    ("curl -uann:hunter2 x", "hunter2", "curl -uann:[redacted] x"),
    ("curl -sSfu ann:hunter2 x", "hunter2", "curl -sSfu ann:[redacted] x"),
    ("/usr/bin/curl x --user ann:hunter2", "hunter2", "/usr/bin/curl x --user ann:[redacted]"),
    ("curl --user=ann:hunter2 x", "hunter2", "curl --user=ann:[redacted] x"),
    ("fetcher --user=ann:hunter2 x", "hunter2", "fetcher --user=ann:[redacted] x"),
    ("fetcher -u ann:hunter2 x", "hunter2", "fetcher -u ann:[redacted] x"),
    ("curl -U ann:hunter2 x", "hunter2", "curl -U ann:[redacted] x"),
    ("curl --proxy-user ann:hunter2 x", "hunter2", "curl --proxy-user ann:[redacted] x"),
    ("curl --proxy-user=ann:hunter2 x", "hunter2", "curl --proxy-user=ann:[redacted] x"),
    ("curl -b session=hunter2 x", "hunter2", "curl -b [redacted] x"),
    ("curl --cookie session=hunter2 x", "hunter2", "curl --cookie [redacted] x"),
    ("curl --oauth2-bearer hunter2 x", "hunter2", "curl --oauth2-bearer [redacted] x"),
    ("curl --oauth2-bearer=hunter2 x", "hunter2", "curl --oauth2-bearer=[redacted] x"),
    (
        "curl --pass hunter2 -E cert.pem:hunter3 x",
        "hunter",
        "curl --pass [redacted] -E cert.pem:[redacted] x",
    ),
    ("timeout 5 curl -u ann:hunter2 x", "hunter2", "timeout 5 curl -u ann:[redacted] x"),
    ("sudo -E mysql -phunter2 db", "hunter2", "sudo -E mysql -p[redacted] db"),
    ("mysql -uapp -phunter2 -e x", "hunter2", "mysql -uapp -p[redacted] -e x"),
    ("mysqldump db -pX", "X", "mysqldump db -p[redacted]"),
    ("sshpass -p hunter2 ssh -p 22 host", "hunter2", "sshpass -p [redacted] ssh -p 22 host"),
    ("sshpass -phunter2 scp a host:b", "hunter2", "sshpass -p[redacted] scp a host:b"),
    ("sshpass -p -hunter2 ssh host", "hunter2", "sshpass -p [redacted] ssh host"),
    ("SSHPASS=hunter2 sshpass -e ssh host", "hunter2", "SSHPASS=[redacted] sshpass -e ssh host"),
    (
        "docker login -u ann -p hunter2 r.example",
        "hunter2",
        "docker login -u ann -p [redacted] r.example",
    ),
    ("podman login -phunter2 r.example", "hunter2", "podman login -p[redacted] r.example"),
    (
        "docker exec db mysql -uroot -phunter2",
        "hunter2",
        "docker exec db mysql -uroot -p[redacted]",
    ),
    ("redis-cli -h db -a hunter2 ping", "hunter2", "redis-cli -h db -a [redacted] ping"),
    ("mongosh -u ann -p hunter2", "hunter2", "mongosh -u ann -p [redacted]"),
    ("ldapsearch -D cn=a -w hunter2", "hunter2", "ldapsearch -D cn=a -w [redacted]"),
    ("smbclient //h/s -U ann%hunter2", "hunter2", "smbclient //h/s -U ann%[redacted]"),
    ("unzip -P hunter2 a.zip", "hunter2", "unzip -P [redacted] a.zip"),
    ("7z x -phunter2 a.7z", "hunter2", "7z x -p[redacted] a.7z"),
    (
        "openssl rsa -passin pass:hunter2 -in k",
        "hunter2",
        "openssl rsa -passin pass:[redacted] -in k",
    ),
    (
        "openssl enc -pass pass:hunter2 -k hunter3",
        "hunter",
        "openssl enc -pass pass:[redacted] -k [redacted]",
    ),
    (
        "npm config set //r.example/:_authToken abcdef",
        "abcdef",
        "npm config set //r.example/:_authToken [redacted]",
    ),
    (
        "npm config set //r.example/:_authToken=abcdef",
        "abcdef",
        "npm config set //r.example/:_authToken=[redacted]",
    ),
    ("curl -H Private-Token:abcdef x", "abcdef", "curl -H Private-Token:[redacted] x"),
    ("curl -H PRIVATE-TOKEN:glpat-abcdefgh x", "abcdefgh", "curl -H PRIVATE-TOKEN:[redacted] x"),
    (
        "git clone https://oauth2:glpat-abcdefgh@h.example/x",
        "abcdefgh",
        "git clone https://oauth2:[redacted]@h.example/x",
    ),
    ("echo glpat-abcdefgh.01.0ab x", "abcdefgh.01", "echo [redacted] x"),
    (
        "curl h.example/k?X-Amz-Date=1&X-Amz-Signature=0a1b2c3d",
        "0a1b2c3d",
        "curl h.example/k?X-Amz-Date=1&X-Amz-Signature=[redacted]",
    ),
    ("curl h.example/k?sig=0a1b2c3d4e&sv=1", "0a1b2c3d4e", "curl h.example/k?sig=[redacted]&sv=1"),
];

/// Harmless commands of the same shapes.
const SHOWN: &[&str] = &[
    "tar -u x",
    "tar -uf a:b x",
    "ls -b a=b",
    "mkdir -p a/b",
    "sort -u file",
    "sort -u a:b",
    "git checkout -b name=x",
    "git push -u origin HEAD:main",
    "git log -p file",
    "rsync -u host:src dst",
    "scp -p a host:b",
    "curl -u ann x",
    "curl -b cookies.txt x",
    "curl -o out:put -H Accept:x y",
    "curl --user-agent a:b x",
    "docker run -u 1000:1000 -p 80:80 image",
    "docker run --user=app:app image",
    "docker run --user 1000:1000 image",
    "docker build -p login x",
    "fetcher --user 1000:1000 x",
    "fetcher --user ann x",
    "mysql -u root -p db",
    "mysql -uapp -h host db",
    "psql -p 5432 -U ann",
    "ssh -p 22 host",
    "cp -p a b",
    "redis-cli -p 6379 ping",
    "openssl req -passin env:NAME -keyout k -key file:x",
    "openssl rsa -passin file:k.txt",
    "pass:12 fail:3",
    "npm config set registry https://r.example",
    "grep -u pass: src",
    "gl-project-x glpat",
    "unexpected-token 5",
];

#[test]
fn secrets_of_options_are_hidden_and_harmless_words_stay() {
    let redactor = Redactor::new();
    let readings = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        [
            ("line", redactor.line(line)),
            ("text", redactor.text(line).into_owned()),
            ("argv", redactor.argv(&words).join(" ")),
            ("quoted", redactor.text(&json!(line).to_string()).trim_matches('"').to_owned()),
        ]
    };
    for (line, secret, shown) in HIDDEN {
        for (reading, seen) in readings(line) {
            assert_eq!(seen, *shown, "{reading}");
            assert!(!seen.contains(secret), "{reading}: {seen}");
        }
        for (reading, seen) in readings(shown) {
            assert_eq!(seen, *shown, "{reading}, again");
        }
        // A list of words in the arguments of a tool.
        let words: Vec<&str> = line.split(' ').collect();
        let value = json!({ "argv": words });
        for seen in [redactor.json(&value).to_string(), redactor.text(&value.to_string()).into()] {
            assert!(!seen.contains(secret) && seen.contains(MASK), "{seen}");
        }
    }
    for line in SHOWN {
        for (reading, seen) in readings(line) {
            assert_eq!(seen, *line, "{reading}");
        }
    }
}

#[test]
fn quotes_around_a_secret_stay_and_variables_are_no_secrets() {
    let redactor = Redactor::new();
    for (line, shown) in [
        ("curl -u 'ann:hun ter2' x && ls", "curl -u 'ann:[redacted]' x && ls"),
        ("curl -u'ann:hun ter2' x", "curl -u'ann:[redacted]' x"),
        ("curl \"-uann:hunter2\" x", "curl \"-uann:[redacted]\" x"),
        ("curl --user=\"ann:hunter2\" x", "curl --user=\"ann:[redacted]\" x"),
        ("curl -u ann:'hunter2' x", "curl -u ann:'[redacted]' x"),
        ("mysql -p'hun ter2' db", "mysql -p'[redacted]' db"),
        ("mysql -p\"$PW\" db", "mysql -p\"$PW\" db"),
        ("curl -u \"ann:$PW\" x", "curl -u \"ann:$PW\" x"),
        ("curl -u ann:$PW x", "curl -u ann:$PW x"),
        ("curl -u 'ann:$PW' x", "curl -u 'ann:[redacted]' x"),
        ("curl -u ann:a; mkdir -p x", "curl -u ann:[redacted]; mkdir -p x"),
        ("curl x; tool -b a=b", "curl x; tool -b a=b"),
        ("sh -c 'mysql -phunter2 db'", "sh -c 'mysql -p[redacted] db'"),
        ("ssh host \"mysql -phunter2 db\"", "ssh host \"mysql -p[redacted] db\""),
        ("curl -H 'Private-Token: abcdef' x", "curl -H 'Private-Token: [redacted]' x"),
        ("curl -u \"ann:$(git push)\" x", "curl -u \"ann:$(git push)\" x"),
        ("curl -u \"ann:x$(git push)\" x", "curl -u \"ann:[redacted](git push)\" x"),
    ] {
        assert_eq!(redactor.line(line), shown);
        assert_eq!(redactor.line(shown), shown);
    }
    // In texts, and where they are written as JSON.
    for (text, shown) in [
        ("failed: curl -u 'ann:hun ter2' x", "failed: curl -u 'ann:[redacted]' x"),
        ("failed: mysql -p'hun ter2' db", "failed: mysql -p'[redacted]' db"),
        (r#"ran "curl" "-u" "ann:hun ter2" "x""#, r#"ran "curl" "-u" "ann:[redacted]" "x""#),
        (r#"{"c":"curl --user=\"ann:p w\" x"}"#, r#"{"c":"curl --user=\"ann:[redacted]\" x"}"#),
        (r#"["sshpass -p",5,"x"]"#, r#"["sshpass -p",5,"x"]"#),
        ("first: curl x\nthen: tool -b a=b", "first: curl x\nthen: tool -b a=b"),
        ("Private-Token: abcdef", "Private-Token: [redacted]"),
        ("//r.example/:_authToken=abcdef", "//r.example/:_authToken=[redacted]"),
    ] {
        assert_eq!(redactor.text(text), shown);
        assert_eq!(redactor.text(shown), shown);
    }
}

#[test]
fn what_is_said_of_a_command_does_not_tell_its_secrets() {
    let redactor = Redactor::new();
    for (line, shown) in [
        ("`mysql -phunter2 db` would run code", "`mysql -p[redacted] db` would run code"),
        ("`docker login -p hunter2` is denied", "`docker login -p [redacted]` is denied"),
        ("`mysql -phunter2` is denied", "`mysql -p[redacted]` is denied"),
        ("`mkdir -p a` is denied", "`mkdir -p a` is denied"),
    ] {
        assert_eq!(redactor.line(line), shown);
        assert_eq!(redactor.text(line), shown);
    }
    // An effect names the value without its option.
    let secrets =
        redactor.secrets("sh -c 'curl -b sid=hunter2 x' && curl -b 'a=b c' y; mysql -pdb db");
    assert_eq!(secrets, ["sid=hunter2", "a=b c", "db"]);
    for (line, shown) in [
        ("read sid=hunter2", "read [redacted]"),
        ("read a=b c", "read [redacted]"),
        ("read sid=hunter2.txt dbs", "read sid=hunter2.txt dbs"),
        ("`db` is not there", "[redacted] is not there"),
    ] {
        assert_eq!(redactor.line_about(line, &secrets), shown);
    }
}
