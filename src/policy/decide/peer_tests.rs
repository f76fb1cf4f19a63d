//! Requests: which rule counts, on what terms, and which addresses may be dialled.

use std::net::IpAddr;

use jiff::Timestamp;

use super::*;
use crate::effective::PolicySet;
use crate::load::{Origin, Source, parse};
use crate::net::{self, Reach};

const OWN: &str = r#"
policy: 1
name: own
secrets: { API: "env:API_TOKEN", KEY: "file:/run/secrets/key" }
net:
  - { id: open, allow: "GET https://api.example/**" }
  - id: v1
    allow: "GET,POST https://api.example/v1/**"
    limits: { size: 1MiB, count: 5, time: 2s }
    send: { Authorization: "Bearer ${secret:API}" }
  - { id: public, allow: "GET https://api.example/v1/public/**" }
  - { id: careful, ask: "DELETE https://api.example/v1/**", send: { X-Key: "${secret:KEY}" } }
  - { id: here, allow: "GET http://127.0.0.1:8080/**" }
  - { id: six, allow: "GET http://[::1]:8080/**" }
  - { id: inside, allow: "GET http://intranet.example/**", private: true }
  - { id: any, allow: "GET http://*/**" }
  - { id: meta, allow: "GET http://169.254.169.254/latest/**" }
  - { id: not-there, deny: "connect 10.9.9.9:*" }
"#;

fn policy(texts: &[(&str, Origin)], name: &str) -> Effective {
    let mut set = PolicySet::default();
    for (text, origin) in texts {
        let source = Source { file: "t.yml", text, origin: *origin };
        set.add(parse(source).unwrap_or_else(|found| panic!("{found:?}"))).unwrap();
    }
    set.effective(name).unwrap()
}

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn ask(policy: &Effective, target: &str) -> Decision {
    decide(policy, &Query { workspace: "/w", cwd: "/w", now: now(), what: What::Net(target) })
}

fn rule(decision: &Decision) -> &str {
    decision.rule.as_ref().map_or("", |rule| &rule.id)
}

fn dialled(policy: &Effective, target: &str, address: &str) -> Result<(), String> {
    let decision = ask(policy, target);
    let (method, url) = target.split_once(' ').unwrap();
    let asked = net::request(method, url).unwrap();
    let address: IpAddr = address.parse().unwrap();
    let terms = decision.terms.ok_or(decision.message)?;
    dial(policy, now(), &asked, &terms, address).map_err(|refused| refused.to_string())
}

#[test]
fn the_most_exact_rule_counts() {
    let own = policy(&[(OWN, Origin::User)], "own");
    for (target, id, header) in [
        ("GET https://api.example/x", "own/open", None),
        ("GET https://api.example/v1/x", "own/v1", Some("authorization")),
        ("POST https://api.example/v1/x", "own/v1", Some("authorization")),
        ("GET https://api.example/v1/public/x", "own/public", None),
        ("DELETE https://api.example/v1/x", "own/careful", Some("x-key")),
        ("GET http://127.0.0.1:8080/x", "own/here", None),
        ("GET http://other.example/x", "own/any", None),
    ] {
        let decision = ask(&own, target);
        assert_eq!(rule(&decision), id, "{target}");
        let sent = decision.terms.unwrap().send;
        assert_eq!(sent.first().map(|send| send.header.as_str()), header, "{target}");
    }
    let terms = ask(&own, "GET https://api.example/v1/x").terms.unwrap();
    assert_eq!((terms.size, terms.time, terms.counts[0].most), (1 << 20, 2_000, 5));
    assert_eq!(terms.send[0].secrets[0].source.to_string(), "env:API_TOKEN");
    let terms = ask(&own, "GET https://api.example/x").terms.unwrap();
    assert_eq!((terms.size, terms.time, terms.counts[0].most), (8 << 20, 30_000, 100));
    assert_eq!(ask(&own, "DELETE https://api.example/v1/x").decision, Verdict::Ask);
    assert_eq!(ask(&own, "PUT https://api.example/v1/x").terms, None);
}

#[test]
fn private_addresses_need_a_rule_that_names_them() {
    let own = policy(&[(OWN, Origin::User)], "own");
    for (target, address, admitted) in [
        ("GET https://api.example/x", "93.184.216.34", true),
        ("GET https://api.example/x", "2606:4700::1", true),
        ("GET https://api.example/x", "127.0.0.1", false),
        ("GET https://api.example/x", "10.0.0.5", false),
        ("GET https://api.example/x", "100.64.1.1", false),
        ("GET https://api.example/x", "169.254.169.254", false),
        ("GET https://api.example/x", "::1", false),
        ("GET https://api.example/x", "::ffff:127.0.0.1", false),
        ("GET https://api.example/x", "2002:7f00:1::", false),
        ("GET https://api.example/x", "0.0.0.0", false),
        ("GET http://127.0.0.1:8080/x", "127.0.0.1", true),
        ("GET http://[::1]:8080/x", "::1", true),
        ("GET http://intranet.example/x", "10.0.0.5", true),
        ("GET http://intranet.example/x", "127.0.0.1", true),
        ("GET http://intranet.example/x", "fd12::1", true),
        // Only the address itself says that a metadata service is meant.
        ("GET http://intranet.example/x", "169.254.169.254", false),
        ("GET http://169.254.169.254/latest/x", "169.254.169.254", true),
        ("GET http://intranet.example/x", "0.0.0.0", false),
        ("GET http://intranet.example/x", "224.0.0.1", false),
        // A deny of an address holds by any name.
        ("GET http://intranet.example/x", "10.9.9.9", false),
        ("GET http://other.example/x", "8.8.8.8", true),
        ("GET http://other.example/x", "192.168.0.1", false),
        ("GET http://localhost/x", "127.0.0.1", false),
    ] {
        let seen = dialled(&own, target, address);
        assert_eq!(seen.is_ok(), admitted, "{target} at {address}: {seen:?}");
    }
}

#[test]
fn an_address_in_a_url_is_judged_at_once() {
    let own = policy(&[(OWN, Origin::User)], "own");
    for target in [
        "GET http://127.0.0.1/x",
        "GET http://[::ffff:127.0.0.1]/x",
        "GET http://169.254.169.254/other",
        "GET http://10.0.0.1/",
        "GET http://0.0.0.0/",
    ] {
        let decision = ask(&own, target);
        assert_eq!(
            (decision.decision, decision.code),
            (Verdict::Deny, Code::NetAddress),
            "{target}"
        );
    }
    assert_eq!(ask(&own, "GET http://8.8.8.8/").decision, Verdict::Allow);
    assert_eq!(ask(&own, "GET http://[::ffff:127.0.0.1]:8080/x").decision, Verdict::Allow);
}

#[test]
fn a_tool_narrows_and_never_sends() {
    let tool = "policy: 1\nname: tool\nnet: [{ allow: [\"GET https://api.example/v1/**\", \"GET http://intranet.example/**\"], limits: { count: 2 } }]\n";
    let within = OWN.replace("name: own", "name: own\nwithin: [tool]");
    let both = policy(&[(&within, Origin::User), (tool, Origin::Tool)], "own");
    let decision = ask(&both, "GET https://api.example/v1/x");
    let terms = decision.terms.unwrap();
    assert_eq!(terms.send.len(), 1);
    assert_eq!(terms.counts.iter().map(|count| count.most).min(), Some(2));
    assert_eq!(ask(&both, "POST https://api.example/v1/x").decision, Verdict::Deny);
    assert_eq!(ask(&both, "GET https://api.example/x").decision, Verdict::Deny);
    // Where a name may lead is for the policy to say, not for the tool.
    assert_eq!(dialled(&both, "GET http://intranet.example/x", "10.0.0.5"), Ok(()));
    assert!(dialled(&both, "GET https://api.example/v1/x", "10.0.0.5").is_err());
    for origin in [Origin::Tool, Origin::Project] {
        let source = Source { file: "t.yml", text: OWN, origin };
        let codes: Vec<_> = parse(source).unwrap_err().iter().map(|found| found.code).collect();
        assert_eq!(codes, ["forbidden_setting"; 3], "{origin:?}");
    }
}

#[test]
fn what_a_policy_stays_within_takes_reach_away() {
    let ceiling = "policy: 1\nname: most\nceiling: true\nnet: [{ allow: [\"connect *:*\"], limits: { size: 1KiB } }]\n";
    let both = policy(&[(OWN, Origin::User), (ceiling, Origin::Managed)], "own");
    let terms = ask(&both, "GET http://intranet.example/x").terms.unwrap();
    assert_eq!((terms.reach, terms.size, terms.counts.len()), (Reach::Public, 1 << 10, 2));
    assert!(dialled(&both, "GET http://intranet.example/x", "10.0.0.5").is_err());
    assert_eq!(ask(&both, "GET http://127.0.0.1:8080/x").code, Code::NetAddress);
    // What the policy itself sends is still sent.
    assert_eq!(ask(&both, "GET https://api.example/v1/x").terms.unwrap().send.len(), 1);
}

#[test]
fn what_is_sent_over_http_stays_on_this_host() {
    let text = "policy: 1\nname: p\nsecrets: { A: \"env:A\" }\nnet: [{ id: l, allow: \"GET http://localhost:80/**\", private: true, send: { x: \"${secret:A}\" } }]\n";
    let p = policy(&[(text, Origin::User)], "p");
    assert_eq!(dialled(&p, "GET http://localhost/x", "127.0.0.1"), Ok(()));
    let refused = dialled(&p, "GET http://localhost/x", "10.0.0.1").unwrap_err();
    assert!(refused.contains("readable"), "{refused}");
}

#[test]
fn terms_tell_names_of_secrets_only() {
    let own = policy(&[(OWN, Origin::User)], "own");
    let json = serde_json::to_value(ask(&own, "GET https://api.example/v1/x")).unwrap();
    assert_eq!(
        json["terms"],
        serde_json::json!({
            "size": "1MiB", "time": "2s", "count": [{ "rule": "own/v1", "most": 5 }], "reach": "public",
            "send": [{ "header": "authorization", "secrets": ["API"] }],
        })
    );
}
