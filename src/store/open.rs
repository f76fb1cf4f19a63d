//! Opening the database and bringing its schema up to date.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;

use super::log::{has_log, set_defaults, turn_log_on};
use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;

/// The database's file.
const FILE: &str = "store.db";

/// How long a writer waits for others. Transactions here take microseconds, but a hundred processes that come at once on
/// a busy machine are served in no order.
pub(super) const BUSY: Duration = Duration::from_secs(60);

/// Steps from one version of the schema to the next; never changed, only added to.
const STEPS: &[&str] = &["
    -- The ledger: one row an event, in the order of `seq`; rows are only ever added.
    CREATE TABLE events (
        seq  INTEGER PRIMARY KEY,
        at   INTEGER NOT NULL,          -- milliseconds since 1970
        call TEXT    NOT NULL,
        kind TEXT    NOT NULL,          -- start | end | refused | aborted
        body TEXT    NOT NULL           -- JSON
    ) STRICT;
    CREATE INDEX events_by_call ON events (call, seq);
    CREATE INDEX events_by_time ON events (at);
    -- Calls that have started and not ended: what `ps` shows and what a later process finds aborted.
    CREATE TABLE running (
        call    TEXT PRIMARY KEY,
        pid     INTEGER NOT NULL,
        started INTEGER NOT NULL,       -- the kernel's start time of that process
        place   TEXT    NOT NULL        -- machine, boot and process namespace
    ) STRICT, WITHOUT ROWID;
", "
    -- What tools in module form say they are, by the digest of everything they are made from.
    CREATE TABLE descriptions (
        digest TEXT NOT NULL UNIQUE,
        text   TEXT NOT NULL            -- JSON
    ) STRICT;
", "
    -- The chain over the ledger. Rows of before have no links, and nobody vouches for them.
    ALTER TABLE events ADD COLUMN link BLOB;          -- digest of this row and of all before it
    ALTER TABLE events ADD COLUMN vouches INTEGER;    -- how many rows, up to this one, the signature is for
    ALTER TABLE events ADD COLUMN signature BLOB;
    -- Requests of tools are many: lists look at calls only.
    DROP INDEX events_by_time;
    CREATE INDEX events_of_calls ON events (seq) WHERE kind IN ('start', 'refused');
", super::approvals::STEP, super::tool_calls::STEP, super::changes::STEP, super::offers::STEP];

/// An open database.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
}

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no place for it.
    #[error("there is no folder for the audit records")]
    NoFolder,
    /// Its folder cannot be made or is not the caller's own.
    #[error("the folder {0} cannot hold the audit records: {1}")]
    Folder(PathBuf, String),
    /// It was written by a newer version of this program.
    #[error("{0} has schema {1}, written by a newer runner")]
    Newer(PathBuf, u32),
    /// SQLite refused.
    #[error("cannot {0} {1}: {2}")]
    Database(&'static str, PathBuf, rusqlite::Error),
    /// The ledger's key or head cannot be used.
    #[error("cannot {0} {1}: {2}")]
    Seal(&'static str, PathBuf, String),
}

impl Store {
    /// Opens the database in `folder`, making both if they are missing.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(folder: Option<&Path>) -> Result<Self, StoreError> {
        let folder = folder.ok_or(StoreError::NoFolder)?;
        let (mut connection, path) = Self::connect(folder)?;
        migrate(&mut connection, &path)?;
        Ok(Self { connection, path })
    }

    /// The database in this folder if it has the current schema; `None` if it needs a migration, which is left to a caller
    /// that will certainly use it.
    pub(crate) fn open_if_ready(folder: &Path) -> Option<Result<Self, StoreError>> {
        let open = || {
            let (connection, path) = Self::connect(folder)?;
            let ready = Self::state(&connection, &path)? == (newest(), true);
            Ok(ready.then(|| Self { connection, path }))
        };
        open().transpose()
    }

    fn connect(folder: &Path) -> Result<(Connection, PathBuf), StoreError> {
        own_folder(folder)?;
        let path = folder.join(FILE);
        own_file(&path)
            .map_err(|error| StoreError::Folder(folder.to_owned(), error.to_string()))?;
        let fail = |what| {
            let path = path.clone();
            move |error| StoreError::Database(what, path, error)
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&path, flags).map_err(fail("open"))?;
        connection.busy_timeout(BUSY).map_err(fail("set up"))?;
        // The last process to leave would write everything back, and wait for the disk four times a call.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(fail("set up"))?;
        if !cfg!(sqlite_settings_built_in) {
            set_defaults(&connection).map_err(fail("set up"))?;
        }
        Ok((connection, path))
    }

    /// What the database is like: how many of the [`STEPS`] it has taken, and whether its log is on.
    fn state(connection: &Connection, path: &Path) -> Result<(u32, bool), StoreError> {
        let state = || Ok((user_version(connection)?, has_log(connection)?));
        let (found, logs) =
            state().map_err(|error| StoreError::Database("read", path.to_owned(), error))?;
        if found > newest() {
            return Err(StoreError::Newer(path.to_owned(), found));
        }
        Ok((found, logs))
    }

    /// Whether something was ever recorded in this folder.
    #[must_use]
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// The one in this folder, for who only looks: where nothing was ever recorded, nothing is made.
    ///
    /// # Errors
    /// There is one, and it cannot be used.
    pub fn existing(state: Option<&Path>) -> Result<Option<Self>, StoreError> {
        match state {
            Some(folder) if Self::is_in(folder) => Self::open(state).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// The connection, for the parts that keep their rows here.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The folder that it lies in, the caller's own.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// A transaction that holds the write lock from its beginning: what it reads stays true until it commits.
    ///
    /// # Errors
    /// SQLite refused.
    pub fn writing(&self) -> rusqlite::Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
    }

    /// Wraps an error of a part's own statement.
    #[must_use]
    pub fn failed(&self, what: &'static str, error: rusqlite::Error) -> StoreError {
        StoreError::Database(what, self.path.clone(), error)
    }
}

/// The version of the schema that this program uses.
fn newest() -> u32 {
    u32::try_from(STEPS.len()).unwrap_or(u32::MAX)
}

/// Brings a database up to date.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |what| move |error| StoreError::Database(what, path.to_owned(), error);
    let (found, logs) = Store::state(connection, path)?;
    if !logs {
        turn_log_on(connection).map_err(fail("set up"))?;
    }
    if found == newest() {
        return Ok(());
    }
    let fail = fail("bring up to date");
    // Two processes may find an old schema at once: look again inside the transaction.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let found = user_version(&transaction).map_err(fail)?;
    if found > newest() {
        return Err(StoreError::Newer(path.to_owned(), found));
    }
    for step in &STEPS[found as usize..] {
        transaction.execute_batch(step).map_err(fail)?;
    }
    transaction.pragma_update(None, "user_version", newest()).map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// How many of the [`STEPS`] a database has taken.
pub(super) fn user_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes the folder for the caller alone, or checks that it is so.
fn own_folder(folder: &Path) -> Result<(), StoreError> {
    let fail = |why: String| StoreError::Folder(folder.to_owned(), why);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| fail(error.to_string()))?;
    let found = std::fs::symlink_metadata(folder).map_err(|error| fail(error.to_string()))?;
    if !found.is_dir() {
        return Err(fail("it is not a folder".to_owned()));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(fail("it belongs to another user".to_owned()));
    }
    let mode = found.permissions().mode();
    if mode & 0o022 != 0 {
        return Err(fail("others can write in it".to_owned()));
    }
    if mode & 0o077 != 0 {
        close(folder, 0o700).map_err(|error| fail(error.to_string()))?;
    }
    Ok(())
}

/// Makes the database's file for the caller alone, or makes it so. SQLite gives its log and its index the same mode.
///
/// The file is not opened: to close it again would end the locks that this process holds on it.
fn own_file(path: &Path) -> io::Result<()> {
    let made = mknodat(CWD, path, FileType::RegularFile, Mode::from(0o600), 0);
    match made {
        Ok(()) => return Ok(()),
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let found = std::fs::symlink_metadata(path)?;
    if !found.is_file() || found.permissions().mode() & 0o077 == 0 {
        // What is no file is refused by SQLite.
        return Ok(());
    }
    for beside in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(beside);
        match close(Path::new(&name), 0o600) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            closed => closed?,
        }
    }
    Ok(())
}

/// Removes the permissions of others. No other user can write in the folder, so the path keeps naming this file.
fn close(path: &Path, mode: u32) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

impl Failure for StoreError {
    fn code(&self) -> Code {
        match self {
            Self::NoFolder => Code::StoreNoFolder,
            Self::Folder(..) => Code::StoreFolder,
            Self::Newer(..) => Code::StoreNewer,
            Self::Database(..) => Code::StoreDatabase,
            Self::Seal(..) => Code::LedgerSeal,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Engine
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Database(..) => Retry::CanHelp,
            Self::NoFolder | Self::Folder(..) | Self::Newer(..) | Self::Seal(..) => {
                Retry::CannotHelp
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoFolder => "set HOME, or XDG_STATE_HOME to an absolute path".to_owned(),
            Self::Folder(path, _) => format!(
                "make {} a folder of your own with mode 700, or set XDG_STATE_HOME",
                path.display()
            ),
            Self::Newer(..) => "use that version of runner".to_owned(),
            Self::Database(..) => {
                "nothing runs without an audit record; check free space and permissions".to_owned()
            }
            Self::Seal(_, path, _) => format!(
                "nothing runs without a signed record; put {} back from a copy, or move the whole folder away to begin a new ledger",
                path.display()
            ),
        })
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
