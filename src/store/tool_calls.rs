//! The rows by which calls of tools are counted: when, at what cost, with what end. What they mean is the business
//! of `queue`.

use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::{Store, StoreError};

/// The step of the schema that makes the tables.
pub(super) const STEP: &str = "
    -- Calls of tools of the last two days, for limits.
    CREATE TABLE tool_calls (
        call   TEXT    PRIMARY KEY,
        tool   TEXT    NOT NULL,
        at     INTEGER NOT NULL,         -- milliseconds since 1970
        cost   INTEGER NOT NULL,         -- millionths of a US dollar
        failed INTEGER                   -- NULL until it has ended
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX tool_calls_by_tool ON tool_calls (tool, at);
    CREATE INDEX tool_calls_by_time ON tool_calls (at);
    -- Tools that failed too often.
    CREATE TABLE breakers (
        tool   TEXT    PRIMARY KEY,
        opened INTEGER NOT NULL,         -- milliseconds since 1970
        probe  INTEGER                   -- when a call was let through to try
    ) STRICT, WITHOUT ROWID;
";

/// How long a row is counted by anything, in milliseconds.
const KEPT: i64 = 2 * 24 * 3_600_000;

/// Whether a tool is called, as kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRow {
    /// When it opened.
    pub opened: i64,
    /// When a call was let through to try.
    pub probe: Option<i64>,
}

/// The rows in a store, within one transaction: what was counted is still so when something is written.
#[derive(Debug)]
pub struct ToolCalls<'s> {
    store: &'s Store,
    transaction: Transaction<'s>,
}

impl<'s> ToolCalls<'s> {
    /// Begins. Nothing stays unless [`commit`](Self::commit) is called.
    ///
    /// # Errors
    /// The store refused.
    pub fn begin(store: &'s Store) -> Result<Self, StoreError> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(store.connection(), behavior)
            .map_err(|error| store.failed("count calls in", error))?;
        Ok(Self { store, transaction })
    }

    /// Ends, and keeps what was written.
    ///
    /// # Errors
    /// The store refused.
    pub fn commit(self) -> Result<(), StoreError> {
        let Self { store, transaction } = self;
        transaction.commit().map_err(|error| store.failed("count calls in", error))
    }

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| self.store.failed("count calls in", error))
    }

    /// Calls of a tool since a moment, and when the first of them was.
    ///
    /// # Errors
    /// The store refused.
    pub fn since(&self, tool: &str, moment: i64) -> Result<(u64, Option<i64>), StoreError> {
        let counted = self.transaction.query_row(
            "SELECT count(*), min(at) FROM tool_calls WHERE tool = ?1 AND at > ?2",
            params![tool, moment],
            |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)),
        );
        self.done(counted).map(|(count, first)| (count.unsigned_abs(), first))
    }

    /// Calls of a tool that ended since a moment, and how many of them failed.
    ///
    /// # Errors
    /// The store refused.
    pub fn failures(&self, tool: &str, moment: i64) -> Result<(u64, u64), StoreError> {
        let counted = self.transaction.query_row(
            "SELECT count(failed), coalesce(sum(failed), 0) FROM tool_calls WHERE tool = ?1 AND at > ?2",
            params![tool, moment],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        );
        self.done(counted).map(|(ended, failed)| (ended.unsigned_abs(), failed.unsigned_abs()))
    }

    /// What all calls since a moment cost.
    ///
    /// # Errors
    /// The store refused.
    pub fn cost(&self, moment: i64) -> Result<u64, StoreError> {
        let counted = self.transaction.query_row(
            // In floating point: a sum of integers would fail where tools claim absurd costs.
            "SELECT CAST(min(total(cost), 9e18) AS INTEGER) FROM tool_calls WHERE at >= ?1",
            [moment],
            |row| row.get::<_, i64>(0),
        );
        self.done(counted).map(i64::unsigned_abs)
    }

    /// What the most expensive call of a tool since a moment cost.
    ///
    /// # Errors
    /// The store refused.
    pub fn dearest(&self, tool: &str, moment: i64) -> Result<u64, StoreError> {
        let found = self.transaction.query_row(
            "SELECT coalesce(max(cost), 0) FROM tool_calls WHERE tool = ?1 AND at >= ?2",
            params![tool, moment],
            |row| row.get::<_, i64>(0),
        );
        self.done(found).map(i64::unsigned_abs)
    }

    /// A call begins.
    ///
    /// # Errors
    /// The store refused.
    pub fn add(&self, call: &str, tool: &str, at: i64, cost: u64) -> Result<(), StoreError> {
        let cost = i64::try_from(cost).unwrap_or(i64::MAX);
        let added = self.transaction.execute(
            "INSERT INTO tool_calls (call, tool, at, cost) VALUES (?1, ?2, ?3, ?4)",
            params![call, tool, at, cost],
        );
        self.done(added)?;
        let old = self.transaction.execute("DELETE FROM tool_calls WHERE at < ?1", [at - KEPT]);
        self.done(old).map(drop)
    }

    /// A call cost more than it began with.
    ///
    /// # Errors
    /// The store refused.
    pub fn charge(&self, call: &str, more: u64) -> Result<(), StoreError> {
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let charged = self.transaction.execute(
            "UPDATE tool_calls SET cost = CAST(min(cost + CAST(?2 AS REAL), 9e18) AS INTEGER) WHERE call = ?1",
            params![call, more],
        );
        self.done(charged).map(drop)
    }

    /// A call has ended; what neither failed nor went well is not counted.
    ///
    /// # Errors
    /// The store refused.
    pub fn ended(&self, call: &str, failed: bool) -> Result<(), StoreError> {
        let ended = self.transaction.execute(
            "UPDATE tool_calls SET failed = ?2 WHERE call = ?1",
            params![call, i64::from(failed)],
        );
        self.done(ended).map(drop)
    }

    /// What a tool's calls came to before counts no more.
    ///
    /// # Errors
    /// The store refused.
    pub fn forget(&self, tool: &str) -> Result<(), StoreError> {
        let sql = "UPDATE tool_calls SET failed = NULL WHERE tool = ?1";
        self.done(self.transaction.execute(sql, [tool])).map(drop)
    }

    /// Whether a tool is called.
    ///
    /// # Errors
    /// The store refused.
    pub fn breaker(&self, tool: &str) -> Result<Option<BreakerRow>, StoreError> {
        let found = self.transaction.query_row(
            "SELECT opened, probe FROM breakers WHERE tool = ?1",
            [tool],
            |row| Ok(BreakerRow { opened: row.get(0)?, probe: row.get(1)? }),
        );
        self.done(found.optional())
    }

    /// Sets it, or takes it away.
    ///
    /// # Errors
    /// The store refused.
    pub fn set_breaker(&self, tool: &str, row: Option<BreakerRow>) -> Result<(), StoreError> {
        let set = match row {
            Some(row) => self.transaction.execute(
                "INSERT OR REPLACE INTO breakers (tool, opened, probe) VALUES (?1, ?2, ?3)",
                params![tool, row.opened, row.probe],
            ),
            None => self.transaction.execute("DELETE FROM breakers WHERE tool = ?1", [tool]),
        };
        self.done(set).map(drop)
    }
}
