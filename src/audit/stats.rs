//! Figures over calls.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use serde::Serialize;

use super::Ledger;
use super::read::{Filter, Outcome, Summary};
use crate::exit::Status;
use crate::store::StoreError;

/// Figures over calls. Lists are sorted, the largest first.
#[derive(Debug, Default, Serialize)]
pub struct Stats {
    /// Calls.
    pub calls: u64,
    /// How many came to what.
    pub statuses: Vec<(String, u64)>,
    /// The part of those that ran to an end which was a success.
    pub success: Option<f64>,
    /// How long those took that ended.
    pub duration_ms: Option<Times>,
    /// Refused calls, by rule, or by code where no rule decided.
    pub denials: Vec<(String, u64)>,
    /// Refused requests of tools, by rule, or by code where no rule decided.
    pub requests: Vec<(String, u64)>,
    /// US dollars by day (UTC), oldest first, where a cost is known.
    pub cost_by_day: Vec<(String, f64)>,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// The mean.
    pub mean: f64,
    /// Half of them took no longer.
    pub median: u64,
    /// 95 of a hundred took no longer.
    pub p95: u64,
}

impl Times {
    /// Of at least one time.
    fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a mean of milliseconds is a figure to read"
        )]
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
        // The smallest one that is not exceeded by so many of a hundred.
        let rank =
            |part: usize| times.get((times.len() * part).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { mean, median: rank(50)?, p95: rank(95)? })
    }
}

impl Ledger {
    /// Figures over the calls that a filter takes.
    ///
    /// # Errors
    /// The store refused.
    pub fn stats(&self, filter: &Filter) -> Result<Stats, StoreError> {
        let mut counted = Counted::default();
        self.each_call(filter, |call| counted.count(call))?;
        for (call, body) in self.refused_requests(filter)? {
            if counted.ids.contains(&call) {
                let by = body["rule"].as_str().or(body["code"].as_str()).unwrap_or_default();
                *counted.requests.entry(by.to_owned()).or_default() += 1;
            }
        }
        Ok(counted.stats())
    }
}

#[derive(Default)]
struct Counted {
    ids: HashSet<String>,
    statuses: HashMap<String, u64>,
    denials: HashMap<String, u64>,
    requests: HashMap<String, u64>,
    times: Vec<u64>,
    ended: u64,
    succeeded: u64,
    costs: BTreeMap<String, u64>,
}

impl Counted {
    fn count(&mut self, call: Summary) {
        *self.statuses.entry(call.status.clone()).or_default() += 1;
        match call.outcome() {
            Outcome::Denied | Outcome::NeedsApproval => {
                let by = call.rule.or(call.error).unwrap_or(call.code);
                *self.denials.entry(by).or_default() += 1;
            }
            Outcome::Ran if call.duration_ms.is_some() => {
                self.ended += 1;
                self.succeeded += u64::from(call.status == Status::Completed.word());
            }
            Outcome::Ran => {}
        }
        self.times.extend(call.duration_ms);
        if let (Some(cost), Ok(at)) = (call.cost_microdollars, Timestamp::from_millisecond(call.at))
        {
            *self.costs.entry(at.strftime("%Y-%m-%d").to_string()).or_default() += cost;
        }
        self.ids.insert(call.call);
    }

    #[expect(clippy::cast_precision_loss, reason = "parts and dollars are figures to read")]
    fn stats(self) -> Stats {
        Stats {
            calls: self.ids.len() as u64,
            statuses: sorted(self.statuses),
            success: (self.ended > 0).then(|| self.succeeded as f64 / self.ended as f64),
            duration_ms: Times::of(self.times),
            denials: sorted(self.denials),
            requests: sorted(self.requests),
            cost_by_day: self
                .costs
                .into_iter()
                .map(|(day, cost)| (day, cost as f64 / 1e6))
                .collect(),
        }
    }
}

fn sorted(counts: HashMap<String, u64>) -> Vec<(String, u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_times_that_happened() {
        assert_eq!(Times::of(Vec::new()), None);
        let one = Times::of(vec![7]).unwrap();
        assert_eq!((one.median, one.p95), (7, 7));
        let many = Times::of((1..=100).rev().collect()).unwrap();
        assert_eq!((many.mean, many.median, many.p95), (50.5, 50, 95));
        let two = Times::of(vec![1, 9]).unwrap();
        assert_eq!((two.median, two.p95), (1, 9));
    }
}
