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
    /// The same of each tool.
    pub tools: Vec<OfTool>,
    /// Denied calls, by the rule that denied them.
    pub denials: Vec<(String, u64)>,
    /// Denied calls that no rule is about, by code.
    pub denials_without_rule: Vec<(String, u64)>,
    /// Calls that were not started for another reason than a denial, by code: a limit, a missing approval.
    pub held: Vec<(String, u64)>,
    /// Refused requests of tools, by rule, or by code where no rule decided.
    pub requests: Vec<(String, u64)>,
    /// US dollars by day (UTC), oldest first, where a cost is known.
    pub cost_by_day: Vec<(String, f64)>,
}

/// Figures over the calls of one tool.
#[derive(Debug, Serialize)]
pub struct OfTool {
    /// Its name.
    pub tool: String,
    /// Calls.
    pub calls: u64,
    /// The part of those that ran to an end which was a success.
    pub success: Option<f64>,
    /// How long those took that ended.
    pub duration_ms: Option<Times>,
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
    denials_without_rule: HashMap<String, u64>,
    held: HashMap<String, u64>,
    requests: HashMap<String, u64>,
    all: Runs,
    tools: HashMap<String, Runs>,
    costs: BTreeMap<String, u64>,
}

/// How calls went.
#[derive(Default)]
struct Runs {
    calls: u64,
    times: Vec<u64>,
    ended: u64,
    succeeded: u64,
}

impl Runs {
    fn count(&mut self, call: &Summary) {
        self.calls += 1;
        self.times.extend(call.duration_ms);
        if call.outcome == Outcome::Ran && call.duration_ms.is_some() {
            self.ended += 1;
            self.succeeded += u64::from(call.status == Status::Completed.word());
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a part is a figure to read")]
    fn success(&self) -> Option<f64> {
        (self.ended > 0).then(|| self.succeeded as f64 / self.ended as f64)
    }
}

impl Counted {
    fn count(&mut self, call: Summary) {
        *self.statuses.entry(call.status.clone()).or_default() += 1;
        self.all.count(&call);
        if let Some(tool) = &call.tool {
            self.tools.entry(tool.clone()).or_default().count(&call);
        }
        let code = call.error.unwrap_or(call.code);
        let counts = match (call.outcome, call.rule) {
            (Outcome::Denied, Some(rule)) => Some((&mut self.denials, rule)),
            (Outcome::Denied, None) => Some((&mut self.denials_without_rule, code)),
            (Outcome::NeedsApproval | Outcome::Held, _) => Some((&mut self.held, code)),
            (Outcome::Ran, _) => None,
        };
        if let Some((counts, by)) = counts {
            *counts.entry(by).or_default() += 1;
        }
        if let (Some(cost), Ok(at)) = (call.cost_microdollars, Timestamp::from_millisecond(call.at))
        {
            let day = self.costs.entry(at.strftime("%Y-%m-%d").to_string()).or_default();
            *day = day.saturating_add(cost);
        }
        self.ids.insert(call.call);
    }

    #[expect(clippy::cast_precision_loss, reason = "dollars are a figure to read")]
    fn stats(self) -> Stats {
        let mut tools: Vec<OfTool> = self
            .tools
            .into_iter()
            .map(|(tool, runs)| OfTool {
                tool,
                calls: runs.calls,
                success: runs.success(),
                duration_ms: Times::of(runs.times),
            })
            .collect();
        tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        Stats {
            calls: self.ids.len() as u64,
            statuses: sorted(self.statuses),
            success: self.all.success(),
            duration_ms: Times::of(self.all.times),
            tools,
            denials: sorted(self.denials),
            denials_without_rule: sorted(self.denials_without_rule),
            held: sorted(self.held),
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
