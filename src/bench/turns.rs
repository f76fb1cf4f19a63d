//! Several things that are measured in turn, so that a busy moment of the machine weighs on all of them.
//!
//! One that fails is measured no further, and named in the report with what was measured of it before; the others go on.

use std::time::Duration;

use super::error::BenchError;
use super::report::{Report, Row};
use super::sample::Samples;

/// What one measurement found.
#[derive(Debug, Default)]
pub struct Taken {
    /// From start to end.
    pub whole: Duration,
    /// Of that, the plan: the look through the workspace. Only calls of this program tell it.
    pub plan: Option<Duration>,
    /// How often it was made again, because no sandbox had waited.
    pub missed: usize,
}

impl From<Duration> for Taken {
    fn from(whole: Duration) -> Self {
        Self { whole, ..Self::default() }
    }
}

/// What is measured in turn.
#[derive(Default)]
pub struct Turns<'a>(Vec<Contender<'a>>);

type Once<'a> = Box<dyn FnMut() -> Result<Taken, BenchError> + 'a>;

struct Contender<'a> {
    name: String,
    beside: Vec<String>,
    rounds: usize,
    once: Once<'a>,
    whole: Samples,
    plan: Samples,
    missed: usize,
    failed: Option<BenchError>,
}

impl<'a> Turns<'a> {
    /// Adds what becomes the row `name`, beside those rows. It is measured in the first `rounds` rounds.
    pub fn add<T: Into<Taken>>(
        &mut self,
        name: impl Into<String>,
        beside: &[&str],
        rounds: usize,
        mut once: impl FnMut() -> Result<T, BenchError> + 'a,
    ) {
        self.0.push(Contender {
            name: name.into(),
            beside: beside.iter().map(|&name| name.to_owned()).collect(),
            rounds,
            once: Box::new(move || once().map(Into::into)),
            whole: Samples::default(),
            plan: Samples::default(),
            missed: 0,
            failed: None,
        });
    }

    /// Measures all of them, and adds their rows in the order in which they were added here. The times of plans are
    /// returned by the name of the row.
    pub fn run(
        mut self,
        report: &mut Report,
        mut tell: impl FnMut(usize, usize),
    ) -> Vec<(String, Samples)> {
        let rounds = self.0.iter().map(|one| one.rounds).max().unwrap_or(0);
        for round in 0..rounds {
            tell(round, rounds);
            for one in &mut self.0 {
                if round < one.rounds && one.failed.is_none() {
                    one.turn();
                }
            }
        }
        self.0.into_iter().map(|one| one.report(report)).collect()
    }
}

impl Contender<'_> {
    fn turn(&mut self) {
        match (self.once)() {
            Ok(taken) => {
                self.whole.push(taken.whole);
                if let Some(plan) = taken.plan {
                    self.plan.push(plan);
                }
                self.missed += taken.missed;
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn report(self, report: &mut Report) -> (String, Samples) {
        let Self { name, beside, whole, plan, missed, failed, .. } = self;
        if missed > 0 {
            report.note(format!("{name}: {missed} found no sandbox that waited, and do not count"));
        }
        if whole.len() > 0 {
            let row = Row::times(&name, &whole);
            report.add(beside.iter().fold(row, |row, peer| row.beside(peer)));
        }
        if let Some(error) = failed {
            report.failed(&name, &error);
        }
        (name, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> BenchError {
        BenchError::Command { line: "x".to_owned(), how: "ended".to_owned() }
    }

    #[test]
    fn one_that_fails_keeps_what_it_has_and_stops_nobody() {
        let (mut left, mut asked) = (2, 0);
        let mut report = Report::new(&[]);
        let mut turns = Turns::default();
        turns.add("peer", &[], 4, || Ok(Duration::from_millis(2)));
        turns.add("breaks", &["peer"], 4, || {
            asked += 1;
            let well = left > 0;
            left = i32::max(left - 1, 0);
            if well { Ok(Duration::from_millis(6)) } else { Err(broken()) }
        });
        turns.add("never", &["peer"], 4, || Err::<Taken, _>(broken()));
        let plans = turns.run(&mut report, |_, _| {});
        assert_eq!(asked, 3, "it is not measured any more");
        assert_eq!(plans.len(), 3);
        let rows: Vec<_> = report.rows.iter().map(|row| (row.name.as_str(), row.samples)).collect();
        assert_eq!(rows, [("peer", 4), ("breaks", 2)]);
        assert_eq!(report.rows[1].ratios, [("peer".to_owned(), 3.0)]);
        let failed: Vec<_> = report.failed.iter().map(|failed| failed.what.as_str()).collect();
        assert_eq!(failed, ["breaks", "never"]);
    }
}
