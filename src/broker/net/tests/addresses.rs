//! Where names lead: loopback, private and metadata addresses, and names that lead elsewhere the second time.

use std::sync::Arc;

use super::super::fetch::{Fetcher, NoneApproved};
use super::super::resolve::System;
use super::server::{Server, ok};
use super::support::{Names, code, get, with};
use crate::audit::Redactor;
use crate::codes::Code;

fn named(rules: &str, names: &[(&str, &[&[&str]])]) -> (Fetcher, Names) {
    let names = Names::of(names);
    (with(rules, names.clone(), Arc::new(NoneApproved), Redactor::new()), names)
}

#[tokio::test]
async fn a_public_name_does_not_lead_inside() {
    let server = Server::start(|_| ok("inside")).await;
    let port = server.port();
    for address in [
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.5",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "fd00:ec2::254",
        "fe80::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::127.0.0.1",
        "::",
    ] {
        let one: &[&[&str]] = &[&[address]];
        // One bad address among good ones is enough: nobody says which would be dialled.
        let two: &[&[&str]] = &[&["93.184.216.34", address]];
        for answers in [one, two] {
            let (fetcher, _) = named(
                &format!("  - {{ allow: \"GET http://a.test:{port}/**\" }}\n"),
                &[("a.test", answers)],
            );
            let seen = code(&fetcher, &format!("http://a.test:{port}/")).await;
            assert_eq!(seen, Code::NetAddress, "{address}");
        }
    }
    assert!(server.seen().is_empty());
    // The control: the same name and address, by a rule that means it.
    let (fetcher, _) = named(
        &format!("  - {{ allow: \"GET http://a.test:{port}/**\", private: true }}\n"),
        &[("a.test", &[&["127.0.0.1"]])],
    );
    assert_eq!(get(&fetcher, &format!("http://a.test:{port}/")).await.unwrap().text(), "inside");
}

#[tokio::test]
async fn an_address_is_reached_by_a_rule_that_names_it() {
    let server = Server::start(|_| ok("here")).await;
    let port = server.port();
    let (exact, names) =
        named(&format!("  - {{ allow: \"GET http://127.0.0.1:{port}/**\" }}\n"), &[]);
    assert_eq!(get(&exact, &format!("http://127.0.0.1:{port}/")).await.unwrap().text(), "here");
    let mapped = get(&exact, &format!("http://[::ffff:127.0.0.1]:{port}/")).await.unwrap();
    assert_eq!(mapped.head.url, format!("http://127.0.0.1:{port}/"));
    assert!(names.asked().is_empty(), "an address needs no resolving");
    let (star, _) = named("  - { allow: [\"connect *:*\"] }\n", &[]);
    assert_eq!(code(&star, &format!("http://127.0.0.1:{port}/")).await, Code::NetAddress);
    for odd in ["127.1", "0x7f000001", "2130706433", "0177.0.0.1"] {
        assert_eq!(
            code(&star, &format!("http://{odd}:{port}/")).await,
            Code::InvalidArgument,
            "{odd}"
        );
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn localhost_of_the_system_needs_private_too() {
    let server = Server::start(|_| ok("here")).await;
    let port = server.port();
    for (private, reached) in [("", false), (", private: true", true)] {
        let rules = format!("  - {{ allow: \"GET http://localhost:{port}/**\"{private} }}\n");
        let (mut fetcher, _) = named(&rules, &[]);
        fetcher.resolver = Box::new(System);
        let seen = get(&fetcher, &format!("http://localhost:{port}/")).await;
        assert_eq!(seen.is_ok(), reached, "{seen:?}");
        assert!(reached || seen.unwrap_err().code == Code::NetAddress);
    }
    let (mut fetcher, _) = named("  - { allow: \"GET http://nosuch.invalid/**\" }\n", &[]);
    fetcher.resolver = Box::new(System);
    assert_eq!(code(&fetcher, "http://nosuch.invalid/").await, Code::NetDns);
}

#[tokio::test]
async fn what_was_checked_is_dialled_and_a_name_is_asked_for_once() {
    let server = Server::start(|_| ok("checked")).await;
    let port = server.port();
    // Who asks twice would dial 127.0.0.2, where nobody listens, or be led to the metadata service.
    let (fetcher, names) = named(
        &format!("  - {{ allow: \"GET http://a.test:{port}/**\", private: true }}\n"),
        &[("a.test", &[&["127.0.0.1"], &["169.254.169.254"]])],
    );
    let url = format!("http://a.test:{port}/");
    assert_eq!(get(&fetcher, &url).await.unwrap().text(), "checked");
    assert_eq!(names.asked(), ["a.test"]);
    // The second request asks anew, and is judged by what it is told.
    assert_eq!(code(&fetcher, &url).await, Code::NetAddress);
    assert_eq!(names.asked().len(), 2);
}

#[tokio::test]
async fn the_next_address_is_tried_and_a_denied_one_holds_by_any_name() {
    let server = Server::start(|_| ok("second")).await;
    let port = server.port();
    let both: &[&[&str]] = &[&["127.0.0.2", "127.0.0.1"]];
    let rules = format!("  - {{ allow: \"GET http://a.test:{port}/**\", private: true }}\n");
    let (fetcher, _) = named(&rules, &[("a.test", both)]);
    assert_eq!(get(&fetcher, &format!("http://a.test:{port}/")).await.unwrap().text(), "second");
    let denied = format!("{rules}  - {{ id: not, deny: \"connect 127.0.0.2:*\" }}\n");
    let (fetcher, _) = named(&denied, &[("a.test", both)]);
    let refusal = get(&fetcher, &format!("http://a.test:{port}/")).await.unwrap_err();
    assert_eq!((refusal.code, refusal.rule.unwrap().id.as_str()), (Code::NetAddress, "p/not"));
}

#[tokio::test]
async fn nobody_there_is_told_so() {
    let closed = Server::start(|_| ok("x")).await.port();
    let (fetcher, _) = named(
        &format!(
            "  - {{ allow: \"GET http://a.test:{closed}/**\", private: true }}\n  - {{ allow: \"GET http://none.test/**\" }}\n"
        ),
        &[("a.test", &[&["127.0.0.1"]])],
    );
    let refusal = get(&fetcher, &format!("http://a.test:{closed}/")).await.unwrap_err();
    assert_eq!((refusal.code, refusal.recoverable), (Code::NetConnect, true));
    assert_eq!(code(&fetcher, "http://none.test/").await, Code::NetDns);
}
