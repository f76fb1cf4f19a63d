//! The rows of questions and answers. What they mean is the business of `approvals`.

use rusqlite::{OptionalExtension as _, Row as SqlRow, TransactionBehavior, params};

use super::{Store, StoreError};

/// The step of the schema that makes the table.
pub(super) const STEP: &str = "
    -- Questions about calls, and their answers.
    CREATE TABLE approvals (
        id        TEXT    PRIMARY KEY,
        asked     INTEGER NOT NULL,      -- milliseconds since 1970
        ends      INTEGER NOT NULL,      -- until when it waits or holds
        state     TEXT    NOT NULL,      -- pending | granted | denied | used | void
        scope     TEXT    NOT NULL,      -- once | session | time | never
        subject   TEXT    NOT NULL,      -- exec, tool:NAME, tool:NAME/exec, …
        workspace TEXT    NOT NULL,
        session   TEXT,                  -- for the scope of that name
        call      TEXT    NOT NULL,      -- the call that asked
        binding   TEXT    NOT NULL,      -- JSON: what the answer covers
        question  TEXT    NOT NULL       -- JSON: what is shown
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX approvals_by_subject ON approvals (subject, workspace);
";

/// How long a row is kept after its end, in milliseconds: `runner approvals --all` shows what was.
const KEPT: i64 = 7 * 24 * 3_600_000;

const COLUMNS: &str =
    "id, asked, ends, state, scope, subject, workspace, session, call, binding, question";

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: String,
    pub asked: i64,
    pub ends: i64,
    pub state: String,
    pub scope: String,
    pub subject: String,
    pub workspace: String,
    pub session: Option<String>,
    pub call: String,
    pub binding: String,
    pub question: String,
}

impl ApprovalRow {
    fn read(row: &SqlRow<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            asked: row.get(1)?,
            ends: row.get(2)?,
            state: row.get(3)?,
            scope: row.get(4)?,
            subject: row.get(5)?,
            workspace: row.get(6)?,
            session: row.get(7)?,
            call: row.get(8)?,
            binding: row.get(9)?,
            question: row.get(10)?,
        })
    }
}

/// The rows in a store.
#[derive(Debug)]
pub struct ApprovalRows<'s> {
    store: &'s Store,
}

impl<'s> ApprovalRows<'s> {
    /// Those of a store.
    #[must_use]
    pub fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Adds one; what ended long ago goes.
    ///
    /// # Errors
    /// The store refused.
    pub fn add(&self, row: &ApprovalRow) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.store.connection().unchecked_transaction()?;
            transaction.execute(
                &format!("INSERT INTO approvals ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"),
                params![
                    row.id, row.asked, row.ends, row.state, row.scope, row.subject, row.workspace,
                    row.session, row.call, row.binding, row.question
                ],
            )?;
            transaction.execute("DELETE FROM approvals WHERE ends < ?1", [row.asked - KEPT])?;
            transaction.commit()
        };
        write().map_err(|error| self.store.failed("keep an approval in", error))
    }

    /// The one with this id.
    ///
    /// # Errors
    /// The store refused.
    pub fn get(&self, id: &str) -> Result<Option<ApprovalRow>, StoreError> {
        self.store
            .connection()
            .query_row(
                &format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1"),
                [id],
                ApprovalRow::read,
            )
            .optional()
            .map_err(|error| self.store.failed("read an approval in", error))
    }

    /// Those about a subject in a workspace, newest first; all if `None`.
    ///
    /// # Errors
    /// The store refused.
    pub fn list(&self, about: Option<(&str, &str)>) -> Result<Vec<ApprovalRow>, StoreError> {
        let (subject, workspace) = about.unzip();
        let read = || {
            let mut statement = self.store.connection().prepare_cached(&format!(
                "SELECT {COLUMNS} FROM approvals WHERE (?1 IS NULL OR subject = ?1) AND (?2 IS NULL OR workspace = ?2) ORDER BY asked DESC, id"
            ))?;
            let rows = statement.query_map(params![subject, workspace], ApprovalRow::read)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read approvals in", error))
    }

    /// Those that say never to something in a workspace, newest first.
    ///
    /// # Errors
    /// The store refused.
    pub fn nevers(&self, workspace: &str) -> Result<Vec<ApprovalRow>, StoreError> {
        let read = || {
            let mut statement = self.store.connection().prepare_cached(&format!(
                "SELECT {COLUMNS} FROM approvals WHERE scope = 'never' AND workspace = ?1 ORDER BY asked DESC, id"
            ))?;
            let rows = statement.query_map([workspace], ApprovalRow::read)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read approvals in", error))
    }

    /// Puts a new form in place of a row, if its state is still the one that was seen; whether it was.
    ///
    /// # Errors
    /// The store refused.
    pub fn replace(&mut self, seen: &str, row: &ApprovalRow) -> Result<bool, StoreError> {
        let write = || {
            // Two processes may want to use up the same answer: one of them does.
            let transaction = rusqlite::Transaction::new_unchecked(
                self.store.connection(),
                TransactionBehavior::Immediate,
            )?;
            let changed = transaction.execute(
                "UPDATE approvals SET ends = ?3, state = ?4, scope = ?5, session = ?6, binding = ?7 WHERE id = ?1 AND state = ?2",
                params![row.id, seen, row.ends, row.state, row.scope, row.session, row.binding],
            )?;
            transaction.commit()?;
            Ok(changed == 1)
        };
        write().map_err(|error| self.store.failed("change an approval in", error))
    }
}
