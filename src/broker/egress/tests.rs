//! Dialling: what a name may lead to, and what is dialled.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use runner_policy::{Effective, Origin, PolicySet, Source, parse};
use tokio::sync::OnceCell;

use super::dial::Dialer;
use super::tunnel::{Dial, NotConnected};
use crate::broker::Boxed;
use crate::broker::net::resolve::Resolve;
use crate::codes::Code;

/// Answers with the first addresses once, and with others from then on.
struct Rebinding {
    first: Vec<IpAddr>,
    later: Vec<IpAddr>,
    asked: AtomicUsize,
}

impl Resolve for Rebinding {
    fn resolve<'a>(&'a self, name: &'a str) -> Boxed<'a, io::Result<Vec<IpAddr>>> {
        assert!(name.ends_with('.'), "no search list of the host may add to {name}");
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = if asked == 0 { &self.first } else { &self.later };
        Box::pin(std::future::ready(Ok(answer.clone())))
    }
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn policy(rule: &str) -> Arc<Effective> {
    let text = format!(
        "policy: 1\nname: p\nnet:\n  - {rule}\n  - {{ id: not-nine, for: commands, deny: \"connect 127.0.0.9:*\" }}\n"
    );
    let mut set = PolicySet::default();
    let source = Source { file: "p.yml", text: &text, origin: Origin::User };
    set.add(parse(source).unwrap_or_else(|found| panic!("{found:?}"))).unwrap();
    Arc::new(set.effective("p").unwrap())
}

fn dialer(rule: &str, port: u16, first: &[&str], later: &[&str]) -> Dialer {
    let policy = policy(rule);
    let passage =
        runner_policy::connect(&policy, Timestamp::now(), &[], "a.example", port).unwrap();
    Dialer {
        policy,
        resolver: Arc::new(Rebinding {
            first: addresses(first),
            later: addresses(later),
            asked: AtomicUsize::new(0),
        }),
        name: "a.example".to_owned(),
        port,
        passage,
        checked: OnceCell::new(),
    }
}

async fn dial(rule: &str, port: u16, first: &[&str]) -> Result<IpAddr, NotConnected> {
    dialer(rule, port, first, &[]).dial().await.map(|dialled| dialled.address.ip())
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_dialled_unless_the_rule_says_so() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let open = format!("{{ id: a, for: commands, allow: \"connect a.example:{port}\" }}");
    for inside in [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.1.1",
        "100.64.0.1",
        "::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "0.0.0.0",
    ] {
        let refused = dial(&open, port, &[inside]).await.unwrap_err();
        assert_eq!(refused.code, Code::NetAddress, "{inside}: {}", refused.why);
        // A public one beside it does not help.
        let refused = dial(&open, port, &["192.0.2.1", inside]).await.unwrap_err();
        assert_eq!(refused.code, Code::NetAddress, "{inside}");
    }
    let private = open.replace(" }", ", private: true }");
    assert!(dial(&private, port, &["127.0.0.1"]).await.is_ok());
    for never in ["169.254.169.254", "::ffff:127.0.0.1", "127.0.0.9"] {
        let refused = dial(&private, port, &[never]).await.unwrap_err();
        assert_eq!(refused.code, Code::NetAddress, "{never}");
    }
}

#[tokio::test]
async fn what_is_dialled_is_what_was_checked_however_the_name_changes() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let rule =
        format!("{{ id: a, for: commands, allow: \"connect a.example:{port}\", private: true }}");
    let dialer = dialer(&rule, port, &["127.0.0.1"], &["169.254.169.254"]);
    for _ in 0..3 {
        let address = dialer.dial().await.ok().unwrap().address;
        assert_eq!(address.ip(), addresses(&["127.0.0.1"])[0]);
    }
}

#[tokio::test]
async fn a_rule_that_names_the_address_asks_no_resolver() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = server.local_addr().unwrap();
    let rule =
        format!("{{ id: a, for: commands, allow: \"connect a.example:443\", at: \"{place}\" }}");
    let dialer = dialer(&rule, 443, &["169.254.169.254"], &[]);
    assert_eq!(dialer.dial().await.ok().unwrap().address, place);
}
