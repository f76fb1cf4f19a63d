//! The database's write-ahead log (WAL): turned on, checkpointed, and reset before it is long.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::open::{BUSY, Store, StoreError, user_version};

/// How many pages of the log are worth writing back: those of one call. Reading a page costs some ten microseconds of the
/// next call, writing them back makes a call that comes at the same moment wait.
pub(super) const SETTLED_PAGES: i64 = 10;

/// A log of this many bytes is long: 256 pages. Reading it takes a millisecond, which every call would pay.
pub(super) const LONG_LOG: u64 = 256 * 4096;

impl Store {
    /// Checkpoints and resets the WAL once it has grown, so that no call waits for the disk or reads a long log: the first
    /// process to open the database reads all of it. It is called by background processes. Pages that other processes still
    /// read stay for the next time.
    ///
    /// # Errors
    /// SQLite refused.
    pub fn settle(&self) -> Result<(), StoreError> {
        let settle = || {
            let pages: i64 =
                self.connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
            if pages < SETTLED_PAGES {
                return Ok(());
            }
            let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                let (busy, pages, back): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(busy == 0 && pages == back)
            })?;
            if !done {
                // Others read it, or write it back: one more page would only make it longer.
                return Ok(());
            }
            // The first write after that waits for the log's new header, so it is made here. The transaction keeps a newer
            // program from changing the schema in between.
            let transaction = self.writing()?;
            let version = user_version(&transaction)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()
        };
        settle().map_err(|error| self.failed("write back the log of", error))
    }
}

impl Drop for Store {
    /// Resets a long WAL. For most calls a watchdog does that afterwards, at a shorter length; a call that is refused, or
    /// needs no sandbox, has no watchdog. SQLite checkpoints a long log by itself, but if no other process has the database
    /// open, the next one does not know that, and appends to it.
    fn drop(&mut self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > LONG_LOG) {
            // If others are busy with the database, the next process tries again.
            let _ = self.connection.busy_timeout(Duration::ZERO).map(|()| self.settle());
        }
    }
}

/// Whether the write-ahead log is on.
pub(super) fn has_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA journal_mode", [], |row| Ok(row.get_ref(0)?.as_str()? == "wal"))
}

/// Sets what `.cargo/config.toml` compiles into SQLite, for a build that did not read that file.
///
/// - `synchronous = NORMAL`: a commit survives the death of any process; only a power cut can lose the last rows.
/// - `wal_autocheckpoint = 256`: the process that makes the log longer than 256 pages writes them back, which waits for the
///   disk twice. A call adds about ten pages. Reading 256 takes a fraction of a millisecond.
/// - `journal_size_limit = 65536`: a log that is begun anew is truncated.
pub(super) fn set_defaults(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 65536",
    )
}

/// Turns the write-ahead log on, which a database remembers. Where a file system cannot have a log, calls are recorded
/// without one, and wait longer for each other.
pub(super) fn turn_log_on(connection: &Connection) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        // A connection that was opened without a log keeps waiting for the disk, unless it is told.
        match connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL") {
            // SQLite waits for other writers by itself, but not for one that turns the log on at the same moment.
            Err(error) if is_busy(&error) && begun.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}
