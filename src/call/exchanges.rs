//! Requests of a command on connections that were inspected: each is recorded, and what was refused is told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use runner_policy::model::Verdict;

use super::shortfall::{Shortfall, not_reached};
use crate::audit::Requested;
use crate::broker::inspect::{Exchange, Records};
use crate::broker::{Refusal, verdict};

/// The method by which requests are recorded.
const METHOD: &str = "net.request";

/// Most requests of which each has a record of its own. Those beyond are refused: none goes unrecorded.
const RECORDS_MAX: usize = 100_000;

/// Most refusals that a result tells. More would bury the others.
const TOLD_MAX: usize = 16;

/// What is kept of a call's requests.
#[derive(Debug, Default)]
pub(super) struct Exchanges(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    exchanges: Vec<Exchange>,
    refused: Vec<Shortfall>,
    begun: usize,
}

impl Exchanges {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records, numbered from here on.
    pub(super) fn records(&self, first: usize) -> Vec<Requested> {
        let kept = self.kept();
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        let records = kept.exchanges.iter().zip(first..).map(|(exchange, request)| {
            let Exchange { name, port, method, path, .. } = exchange;
            let query = match exchange.query {
                0 => String::new(),
                length => format!(" (query of {length} bytes)"),
            };
            let status = exchange.status.map(|status| format!(" -> {status}"));
            Requested {
                request,
                method: METHOD,
                object: format!(
                    "{method} {name}:{port}{path}{query}{}",
                    status.unwrap_or_default()
                ),
                address: None,
                decision: exchange.code.map_or(Verdict::Allow, verdict),
                code: exchange.code,
                rule: exchange.rule.clone(),
                bytes_in: exchange.sent,
                bytes_out: exchange.received,
                us: u64::try_from(exchange.took.as_micros()).unwrap_or(u64::MAX),
                call: None,
            }
        });
        records.collect()
    }

    /// What the sandbox kept from the command, without what is told already.
    pub(super) fn shortfalls(&self, told: &[Shortfall]) -> Vec<Shortfall> {
        let kept = self.kept();
        let new = |entry: &&Shortfall| !told.iter().any(|known| known.why == entry.why);
        kept.refused.iter().filter(new).cloned().collect()
    }
}

impl Records for Exchanges {
    fn begin(&self) -> bool {
        let mut kept = self.kept();
        let room = kept.begun < RECORDS_MAX;
        kept.begun += usize::from(room);
        room
    }

    fn exchanged(&self, exchange: Exchange) {
        self.kept().exchanges.push(exchange);
    }

    fn refused(&self, name: &str, port: u16, refusal: &Refusal) {
        let next = refusal.suggestion.clone().unwrap_or_else(|| {
            "ask the policy's owner for a `net` rule that allows the request".to_owned()
        });
        let rule = refusal.rule.as_ref().map(|rule| rule.id.clone());
        let entry = not_reached((name, Some(port)), refusal.message.clone(), rule, next);
        let mut kept = self.kept();
        if kept.refused.len() < TOLD_MAX && !kept.refused.contains(&entry) {
            kept.refused.push(entry);
        }
    }
}
