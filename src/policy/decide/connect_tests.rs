//! Connections of commands: which rule counts, on what terms, and which addresses may be dialled.

use jiff::Timestamp;

use super::*;
use crate::effective::PolicySet;
use crate::load::{Origin, Source, parse};
use crate::net::{BoundKey, Reach};

const OWN: &str = r#"
policy: 1
name: own
files: { read: ["**"], write: ["**"] }
commands:
  - { id: go, allow: ["npm ...", "python3 ..."], effects: [read, write, code, net] }
  - { id: any, allow: "node ...", effects: [read, code] }
  - { id: careful, ask: "make ..." }
net:
  - { id: exact, for: commands, allow: "connect a.example:443", limits: { connections: 5 } }
  - { id: below, for: commands, allow: "connect *.b.example:443" }
  - { id: inside, for: commands, allow: "connect db.internal:5432", at: "10.0.0.5:15432" }
  - { id: lan, for: commands, allow: "connect lan.example:80", private: true }
  - { id: tool, allow: "GET https://tool.example/**" }
  - { id: not-c, for: commands, deny: "connect c.b.example:*" }
  - { id: no-d, deny: "connect d.b.example:*" }
  - { id: not-there, for: commands, deny: "connect 10.9.9.9:*" }
"#;

fn policy(texts: &[&str]) -> Effective {
    let mut set = PolicySet::default();
    for text in texts {
        let source = Source { file: "t.yml", text, origin: Origin::User };
        set.add(parse(source).unwrap_or_else(|found| panic!("{found:?}"))).unwrap();
    }
    set.effective("own").unwrap()
}

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn to(policy: &Effective, name: &str, port: u16) -> Result<String, String> {
    let made = connect(policy, now(), &[], name, port);
    made.map(|passage| passage.rule).map_err(|refused| refused.to_string())
}

#[test]
fn only_names_and_ports_of_rules_for_commands_are_reached() {
    let own = policy(&[OWN]);
    for (name, port, rule) in [
        ("a.example", 443, "own/exact"),
        ("x.b.example", 443, "own/below"),
        ("x.y.b.example", 443, "own/below"),
        ("db.internal", 5432, "own/inside"),
    ] {
        assert_eq!(to(&own, name, port).as_deref(), Ok(rule), "{name}");
    }
    for (name, port) in [
        ("a.example", 80),
        ("b.example", 443),
        ("a.example.evil", 443),
        ("tool.example", 443),
        ("c.b.example", 443),
        ("d.b.example", 443),
        ("10.0.0.5", 15432),
        ("127.1", 443),
        ("A.example", 443),
        ("a.example.", 443),
        ("*", 443),
        ("", 443),
    ] {
        assert!(to(&own, name, port).is_err(), "{name}:{port}");
    }
    let wrong_port = to(&own, "a.example", 80).unwrap_err();
    assert!(wrong_port.ends_with("only port 443"), "{wrong_port}");
    let denied = to(&own, "c.b.example", 443).unwrap_err();
    assert!(denied.contains("`own/not-c`"), "{denied}");
    // A rule for commands gives a tool nothing.
    let asked =
        Query { workspace: "/w", cwd: "/w", now: now(), what: What::Net("GET https://a.example/") };
    assert_eq!(decide(&own, &asked).decision, Verdict::Deny);
}

#[test]
fn terms_and_addresses() {
    let own = policy(&[OWN]);
    let passage = |name: &str, port| connect(&own, now(), &[], name, port).unwrap();
    let exact = passage("a.example", 443);
    assert_eq!((exact.reach, exact.at), (Reach::Public, None));
    assert_eq!(exact.counted[0].bounds.get(BoundKey::Connections), 5);
    let inside = passage("db.internal", 5432);
    assert_eq!(inside.at.unwrap().place(5432).to_string(), "10.0.0.5:15432");
    let dials = |name: &str, port: u16, address: &str| {
        let passage = passage(name, port);
        dial_connection(&own, now(), (name, port), &passage, address.parse().unwrap()).is_ok()
    };
    assert!(dials("a.example", 443, "93.184.216.34"));
    assert!(dials("db.internal", 5432, "10.0.0.5"));
    assert!(dials("lan.example", 80, "192.168.1.1"));
    for (name, port, address) in [
        ("a.example", 443, "10.0.0.5"),
        ("a.example", 443, "127.0.0.1"),
        ("lan.example", 80, "169.254.169.254"),
        ("lan.example", 80, "10.9.9.9"),
        ("lan.example", 80, "::ffff:10.0.0.1"),
    ] {
        assert!(!dials(name, port, address), "{name} {address}");
    }
}

#[test]
fn what_a_policy_stays_within_must_agree() {
    let within = |rules: &str| {
        let own = OWN.replace("name: own", "name: own\nwithin: [outer]");
        let outer = format!("policy: 1\nname: outer\nnet:\n{rules}");
        policy(&[&own, &outer])
    };
    let same = within(
        "  - { for: commands, allow: \"connect a.example:443\", limits: { connections: 2 } }\n",
    );
    let passage = connect(&same, now(), &[], "a.example", 443).unwrap();
    assert_eq!(passage.counted.len(), 2);
    assert!(to(&same, "x.b.example", 443).is_err());
    // The address that our rule names is no business of the outer policy, unless that says so.
    let named = within("  - { for: commands, allow: \"connect db.internal:5432\" }\n");
    let passage = connect(&named, now(), &[], "db.internal", 5432).unwrap();
    let address = "10.0.0.5".parse().unwrap();
    assert!(dial_connection(&named, now(), ("db.internal", 5432), &passage, address).is_err());
}

#[test]
fn a_network_comes_with_the_effect_net_for_every_part_that_could_use_it() {
    // A deny that is not for commands alone holds back commands whose peers are not known before they run.
    let own = policy(&[&OWN.replace("  - { id: no-d, deny: \"connect d.b.example:*\" }\n", "")]);
    let network = |line: &str| {
        let asked = Query { workspace: "/w", cwd: "/w", now: now(), what: What::Line(line) };
        decide(&own, &asked).grant.network
    };
    assert_eq!(network("npm install"), Network::Granted);
    assert_eq!(network("cd src && npm install"), Network::Granted);
    assert_eq!(network("node x.js"), Network::Withheld);
    assert_eq!(network("npm install && node x.js"), Network::Withheld);
    assert_eq!(network("python3 x.py | node x.js"), Network::Withheld);
    // `ask` without `effects` stands for everything, and lists nothing.
    assert_eq!(network("make"), Network::Withheld);
}
