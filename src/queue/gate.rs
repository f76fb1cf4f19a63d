//! The gate of a tool: how often it may be called, what a day may cost, and whether it is called at all after it
//! failed again and again.
//!
//! ```text
//! closed --- so many calls, so large a part of them failed ---> open --- the pause is over ---> half open
//!    ^                                                            ^                                |
//!    |                                                            +------- the probe failed -------+
//!    +-------------------------------- the probe went well ----------------------------------------+
//! ```
//!
//! The gate reads no clock: its caller passes the time, as the time since 1970.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use crate::config::Limits;
use crate::ids::CallId;
use crate::ids::ToolName;
use crate::store::{BreakerRow, Store, StoreError, ToolCalls};

/// The window of the rate.
const MINUTE: i64 = 60_000;

/// Why a tool is not called now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shut {
    /// Why.
    pub why: Why,
    /// When trying again can help, in milliseconds since 1970.
    pub retry_at: i64,
}

/// Why a tool is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was called so often in the last minute.
    Rate {
        /// How often it may be.
        most: u64,
    },
    /// The day's calls would cost more than they may.
    Cost {
        /// What they cost already, in millionths of a US dollar.
        spent: u64,
        /// What this one would.
        more: u64,
        /// What they may.
        most: u64,
    },
    /// It failed too often.
    Open,
}

/// How the gate of a tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Breaker {
    /// It is called.
    Closed,
    /// It is not.
    Open,
    /// One call is let through to try.
    HalfOpen,
}

/// How a gate stands, for people and machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Whether it is called.
    pub breaker: Breaker,
    /// When it opened, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<i64>,
    /// When a call is let through to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<i64>,
    /// Calls that ended in the window.
    pub calls: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// How a call went, as far as the gate is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    /// Well.
    Well,
    /// The tool, or what it needs, failed.
    Badly,
    /// It shows nothing about the tool: the call was refused or cancelled.
    Neither,
}

/// The gate of one tool.
#[derive(Debug)]
pub struct Gate<'a> {
    store: &'a Store,
    tool: &'a ToolName,
    limits: Limits,
}

impl<'a> Gate<'a> {
    /// The gate of a tool under these figures.
    #[must_use]
    pub fn new(store: &'a Store, tool: &'a ToolName, limits: Limits) -> Self {
        Self { store, tool, limits }
    }

    /// Lets a call in at this time and counts it, or says why not.
    ///
    /// # Errors
    /// The store refused.
    pub fn enter(
        &self,
        call: &CallId,
        cost: u64,
        now: Duration,
    ) -> Result<Result<(), Shut>, StoreError> {
        let (now, tool) = (millis(now), self.tool.as_str());
        let rows = ToolCalls::begin(self.store)?;
        if let Some(row) = rows.breaker(tool)? {
            // A probe whose process died must not shut the gate for ever.
            let waits_for =
                row.probe.unwrap_or(row.opened).saturating_add(millis(self.limits.breaker.pause));
            if now < waits_for {
                return Ok(Err(Shut { why: Why::Open, retry_at: waits_for }));
            }
        }
        if let Some(most) = self.limits.calls_per_minute {
            let (count, first) = rows.since(tool, now - MINUTE)?;
            if count >= most {
                let retry_at = first.unwrap_or(now).saturating_add(MINUTE);
                return Ok(Err(Shut { why: Why::Rate { most }, retry_at }));
            }
        }
        if let Some(most) = self.limits.daily_cost {
            let (today, tomorrow) = day(now);
            // A tool that estimates less than it costs is expected to cost what it did before.
            let more = cost.max(rows.dearest(tool, today)?);
            let spent = if more > 0 { rows.cost(today)? } else { 0 };
            if spent.saturating_add(more) > most {
                let why = Why::Cost { spent, more, most };
                return Ok(Err(Shut { why, retry_at: tomorrow }));
            }
        }
        if let Some(row) = rows.breaker(tool)? {
            rows.set_breaker(tool, Some(BreakerRow { probe: Some(now), ..row }))?;
        }
        rows.add(call.as_str(), tool, now, cost)?;
        rows.commit()?;
        Ok(Ok(()))
    }

    /// A call that was let in has ended at this time. It cost `more` than it entered with.
    ///
    /// # Errors
    /// The store refused.
    pub fn leave(
        &self,
        call: &CallId,
        went: Went,
        more: u64,
        now: Duration,
    ) -> Result<(), StoreError> {
        let (now, tool) = (millis(now), self.tool.as_str());
        if went == Went::Neither && more == 0 {
            return Ok(());
        }
        let rows = ToolCalls::begin(self.store)?;
        if more > 0 {
            rows.charge(call.as_str(), more)?;
        }
        let failed = match went {
            Went::Well => false,
            Went::Badly => true,
            Went::Neither => return rows.commit(),
        };
        rows.ended(call.as_str(), failed)?;
        let breaker = rows.breaker(tool)?;
        let set = match (breaker, failed) {
            (Some(_), false) => Some(None),
            (Some(row), true) => row.probe.map(|_| Some(BreakerRow { opened: now, probe: None })),
            (None, true) if self.too_many(&rows, now)? => {
                Some(Some(BreakerRow { opened: now, probe: None }))
            }
            (None, _) => None,
        };
        if let Some(row) = set {
            // It starts anew, whether it is called again or not.
            rows.forget(tool)?;
            rows.set_breaker(tool, row)?;
        }
        rows.commit()
    }

    /// How it stands at this time.
    ///
    /// # Errors
    /// The store refused.
    pub fn standing(&self, now: Duration) -> Result<Standing, StoreError> {
        let (now, tool) = (millis(now), self.tool.as_str());
        let rows = ToolCalls::begin(self.store)?;
        let (calls, failed) = rows.failures(tool, now - millis(self.limits.breaker.window))?;
        let row = rows.breaker(tool)?;
        let retry_at = row.map(|row| {
            row.probe.unwrap_or(row.opened).saturating_add(millis(self.limits.breaker.pause))
        });
        let breaker = match retry_at {
            None => Breaker::Closed,
            Some(moment) if now < moment => Breaker::Open,
            Some(_) => Breaker::HalfOpen,
        };
        Ok(Standing { breaker, opened: row.map(|row| row.opened), retry_at, calls, failed })
    }

    fn too_many(&self, rows: &ToolCalls<'_>, now: i64) -> Result<bool, StoreError> {
        let limits = self.limits.breaker;
        let (calls, failed) = rows.failures(self.tool.as_str(), now - millis(limits.window))?;
        Ok(calls >= limits.calls && failed * 100 >= calls * limits.errors)
    }
}

/// Beginning and end of the day, as universal time has it.
fn day(now: i64) -> (i64, i64) {
    let bounds = || {
        let moment = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::UTC);
        let today = moment.start_of_day().ok()?;
        let tomorrow = today.checked_add(1.day()).ok()?;
        Some((today.timestamp().as_millisecond(), tomorrow.timestamp().as_millisecond()))
    };
    // The clock is beyond any calendar: nothing of before counts.
    bounds().unwrap_or((now, now))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
