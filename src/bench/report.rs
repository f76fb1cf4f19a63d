//! What was measured, as rows with ratios.

use serde::Serialize;

use super::engines::Measured;
use super::error::BenchError;
use super::sample::Samples;
use crate::codes::Code;
use crate::engine::EngineName;
use crate::error::Failure as _;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Mebibytes.
    MiB,
    /// Calls in a second.
    #[serde(rename = "per_second")]
    PerSecond,
}

/// One thing that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// What its figures count.
    pub unit: Unit,
    /// The middle one.
    pub median: f64,
    /// The one that 95 of 100 are not above; `None` for a single figure.
    pub p95: Option<f64>,
    /// How many there were.
    pub samples: usize,
    /// Rows beside which it stands, and this one's median divided by theirs.
    pub ratios: Vec<(String, f64)>,
    #[serde(skip)]
    beside: Vec<String>,
}

impl Row {
    /// Of times.
    pub(super) fn times(name: &str, samples: &Samples) -> Self {
        let ms = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            p95: Some(ms(samples.p95())),
            ..Self::one(name, ms(samples.median()), Unit::Milliseconds, samples.len())
        }
    }

    /// Of one figure.
    pub(super) fn one(name: &str, figure: f64, unit: Unit, samples: usize) -> Self {
        let median = (figure * 1e3).round() / 1e3;
        let name = name.to_owned();
        Self { name, unit, median, p95: None, samples, ratios: Vec::new(), beside: Vec::new() }
    }

    /// Stands beside another row.
    pub(super) fn beside(mut self, other: &str) -> Self {
        self.beside.push(other.to_owned());
        self
    }
}

/// Where something was measured.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Its processors.
    pub processors: usize,
    /// The release of its kernel.
    pub kernel: String,
    /// The engines that were asked to make sandboxes.
    pub engines: Vec<EngineSeen>,
    /// The version of this program.
    pub runner: &'static str,
}

/// An engine that was measured.
#[derive(Debug, Serialize)]
pub struct EngineSeen {
    /// Its name.
    pub name: EngineName,
    /// Its version, for people.
    pub version: String,
}

/// A measurement that broke.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// What was measured: the name of its row, or of the step.
    pub what: String,
    /// The stable code.
    pub code: Code,
    /// Why.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// The figures.
    pub rows: Vec<Row>,
    /// What is not measured here, and why.
    pub left_out: Vec<String>,
    /// What was to be measured and broke. What came before it is in `rows`.
    pub failed: Vec<Failed>,
    /// What else to know about the figures.
    pub notes: Vec<String>,
}

impl Report {
    pub(super) fn new(engines: &[Measured]) -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            machine: Machine {
                processors: std::thread::available_parallelism().map_or(1, usize::from),
                kernel: kernel.trim().to_owned(),
                engines: engines
                    .iter()
                    .map(|engine| EngineSeen {
                        name: engine.name,
                        version: engine.facts.version.clone(),
                    })
                    .collect(),
                runner: env!("CARGO_PKG_VERSION"),
            },
            rows: Vec::new(),
            left_out: Vec::new(),
            failed: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, mut row: Row) {
        for name in &row.beside {
            let peer = self.rows.iter().find(|other| other.name == *name);
            if let Some(peer) = peer.filter(|peer| peer.median > 0.0 && peer.unit == row.unit) {
                let ratio = (row.median / peer.median * 1e3).round() / 1e3;
                row.ratios.push((peer.name.clone(), ratio));
            }
        }
        self.rows.push(row);
    }

    pub(super) fn left_out(&mut self, why: &str) {
        // Several rows may want the same peer.
        if self.left_out.iter().all(|told| told != why) {
            self.left_out.push(why.to_owned());
        }
    }

    /// Names what broke.
    pub(super) fn failed(&mut self, what: &str, error: &BenchError) {
        self.failed.push(Failed {
            what: what.to_owned(),
            code: error.code(),
            message: error.to_string(),
            hint: error.hint(),
        });
    }

    /// Names a step that broke; whether it went well.
    pub(super) fn attempt(&mut self, what: &str, result: Result<(), BenchError>) -> bool {
        if let Err(error) = &result {
            self.failed(what, error);
        }
        result.is_ok()
    }

    pub(super) fn note(&mut self, text: String) {
        self.notes.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_row_stands_beside_those_that_were_measured() {
        let mut report = Report::new(&[]);
        let mut samples = Samples::default();
        samples.push(Duration::from_millis(10));
        report.add(Row::times("peer", &samples));
        samples.push(Duration::from_millis(20));
        samples.push(Duration::from_millis(20));
        report.add(Row::times("ours", &samples).beside("peer").beside("nobody"));
        assert_eq!(report.rows[1].ratios, [("peer".to_owned(), 2.0)]);
        assert_eq!((report.rows[1].median, report.rows[1].samples), (20.0, 3));
    }
}
