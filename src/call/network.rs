//! The network of a command: whether it has one, what it reached, and what is said of that.

use std::sync::Arc;

use jiff::Timestamp;
use runner_policy::model::Verdict;
use runner_policy::{Network as Granted, reachable};
use runner_wire::{NAMES_MAX, Network, PORTS_MAX};

use super::exchanges::Exchanges;
use super::inspection::Inspection;
use super::request::Decided;
use super::shortfall::{Shortfall, not_reached};
use crate::audit::{Redactor, Requested};
use crate::broker::egress::{Connection, Egress, Inspect, Reached};
use crate::codes::Code;
use crate::sandbox::tunnels::Connections;

/// The method by which connections are recorded.
pub(super) const METHOD: &str = "net.connect";

/// The names and ports that a call's commands can reach; none for a call without a network: only a rule whose effects
/// list `net` gives one, and only where rules for commands name something.
pub(super) fn of(decided: &Decided, inspection: &Inspection) -> Option<Network> {
    if decided.decision.grant.network != Granted::Granted {
        return None;
    }
    let reachable = reachable(&decided.policy, Timestamp::now(), &inspection.registries.hosts());
    // Each name and port costs memory or a listener in the sandbox.
    let network = Network {
        names: reachable.names.into_iter().take(NAMES_MAX).collect(),
        ports: reachable.ports.into_iter().take(PORTS_MAX).collect(),
    };
    (!network.ports.is_empty()).then_some(network)
}

/// Begins to carry on the call's connections, if it has a network. `exchanges` takes note of requests where
/// connections are inspected.
pub(super) fn begin(
    decided: &Decided,
    network: Option<&Network>,
    inspection: &Inspection,
    exchanges: &Arc<Exchanges>,
) -> (Option<Egress>, Option<Box<dyn Connections>>) {
    if network.is_none() {
        return (None, None);
    }
    let environment = &decided.places.environment;
    let records = Arc::clone(exchanges);
    let inspector = inspection
        .inspector(&decided.policy, environment, &Redactor::new(), records)
        .map(|inspector| Arc::new(inspector) as Arc<dyn Inspect>);
    let hosts = inspection.registries.hosts();
    let (egress, connections) = Egress::begin(Arc::clone(&decided.policy), hosts, inspector);
    (Some(egress), Some(connections))
}

/// What came of the connections.
pub(super) async fn finish(egress: Option<Egress>) -> Reached {
    match egress {
        Some(egress) => egress.finish().await,
        None => Reached::default(),
    }
}

/// What the sandbox kept from the command, one entry a name and port.
pub(super) fn shortfalls(reached: &Reached) -> Vec<Shortfall> {
    /// More would bury the others.
    const MOST: usize = 16;
    let mut entries: Vec<Shortfall> = Vec::new();
    let mut add = |entry: Shortfall| {
        if !entries.contains(&entry) && entries.len() < MOST {
            entries.push(entry);
        }
    };
    for connection in &reached.connections {
        let Some(failed) = &connection.failed else { continue };
        // Where a server was reached, it or the program ended the connection, not the sandbox.
        if connection.address.is_some() && failed.code == Code::NetConnect {
            continue;
        }
        let next = failed.next.clone().unwrap_or_else(|| match failed.code {
            Code::NetDenied => allow(&connection.name, connection.port),
            _ => "see `runner audit list --net` for every connection".to_owned(),
        });
        add(not_reached(
            (&connection.name, Some(connection.port)),
            failed.why.clone(),
            connection.rule.clone(),
            next,
        ));
    }
    for name in &reached.missed {
        let why = format!("no `net` rule allows commands to connect to `{name}`");
        add(not_reached((name, None), why, None, allow(name, 443)));
    }
    entries
}

fn allow(name: &str, port: u16) -> String {
    format!(
        "ask the policy's owner for `net: [{{ for: commands, allow: \"connect {name}:{port}\" }}]`"
    )
}

/// The records of the connections.
pub(super) fn records(reached: &Reached) -> Vec<Requested> {
    let records = reached.connections.iter().zip(0..).map(|(connection, request)| {
        let Connection { name, port, address, rule, sent, received, duration, failed } = connection;
        Requested {
            request,
            method: METHOD,
            object: format!("{name}:{port}"),
            address: address.map(|address| address.to_string()),
            decision: match failed.as_ref().map(|failed| failed.code) {
                Some(Code::NetDenied | Code::NetAddress | Code::NetTls) => Verdict::Deny,
                Some(_) | None => Verdict::Allow,
            },
            code: failed.as_ref().map(|failed| failed.code),
            rule: rule.clone(),
            bytes_in: *sent,
            bytes_out: *received,
            us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            call: None,
        }
    });
    records.collect()
}
