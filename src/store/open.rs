//! Opening the database and bringing its schema up to date.

use std::fmt;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;

use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;

/// The database's file.
pub(super) const FILE: &str = "store.db";

/// How long a writer waits for others. Transactions here take microseconds, but a hundred processes that come at once on
/// a busy machine are served in no order.
const BUSY: Duration = Duration::from_secs(60);

/// How many pages of the log are worth writing back: those of one call. Reading a page costs some ten microseconds of the
/// next call, writing them back makes a call that comes at the same moment wait.
const SETTLED_PAGES: i64 = 10;

/// A log of this many bytes is long: 256 pages. Reading it takes a millisecond, which every call would pay.
const LONG_LOG: u64 = 256 * 4096;

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
    connection: Connection,
    path: PathBuf,
}

/// Why the database cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// There is no place for it.
    NoFolder,
    /// Its folder cannot be made or is not the caller's own.
    Folder(PathBuf, String),
    /// It was written by a newer version of this program.
    Newer(PathBuf, u32),
    /// SQLite refused.
    Database(&'static str, PathBuf, rusqlite::Error),
    /// The ledger's key or head cannot be used.
    Seal(&'static str, PathBuf, String),
}

impl Store {
    /// Opens the database in `folder`, making both if they are missing.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(folder: Option<&Path>) -> Result<Self, StoreError> {
        let folder = folder.ok_or(StoreError::NoFolder)?;
        Self::taken(folder).unwrap_or_else(|| Self::open_now(folder))
    }

    pub(super) fn open_now(folder: &Path) -> Result<Self, StoreError> {
        let (mut connection, path) = Self::connect(folder)?;
        migrate(&mut connection, &path)?;
        Ok(Self { connection, path })
    }

    /// The one in this folder if it is as this version needs it; `None` if somebody has to bring it up to date, which is for
    /// who really wants to use it.
    pub(super) fn open_if_ready(folder: &Path) -> Option<Result<Self, StoreError>> {
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

    /// The one in this folder, for who only looks: where nothing was ever recorded, nothing is made.
    ///
    /// # Errors
    /// There is one, and it cannot be used.
    pub fn existing(state: Option<&Path>) -> Result<Option<Self>, StoreError> {
        match state {
            Some(folder) if folder.join(FILE).is_file() => Self::open(state).map(Some),
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

    /// Writes the log back and begins it anew once it has grown, so that no call has to wait for the disk, and none has to
    /// read a long log: whoever opens the database alone reads all of it. For processes that nobody waits for. What
    /// others still read stays for the next time.
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
            // Whoever writes first after that waits for the log's new head: it is us. A newer program may be changing
            // the schema: what is read stays true until it is written.
            let transaction = self.writing()?;
            let version = user_version(&transaction)?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()
        };
        settle().map_err(|error| self.failed("write back the log of", error))
    }
}

impl Drop for Store {
    /// Begins a long log anew. Most calls have somebody who does that behind their backs, at a shorter length; but what is
    /// refused, or needs no sandbox, has nobody. SQLite by itself writes a long log back, but where no other process has the
    /// database open, the next one does not know that, and goes on at its end.
    fn drop(&mut self) {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > LONG_LOG) {
            // Nobody waits for it: where others are busy with the database, who comes next will try again.
            let _ = self.connection.busy_timeout(Duration::ZERO).map(|()| self.settle());
        }
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

/// Whether the write-ahead log is on.
fn has_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA journal_mode", [], |row| Ok(row.get_ref(0)?.as_str()? == "wal"))
}

/// Turns the write-ahead log on, which a database remembers until somebody changes it. How it is used is built into the
/// library by `.cargo/config.toml`, so that no process has to say it: a commit survives the death of any process, and only a
/// power cut can lose the last rows (`synchronous = NORMAL`); whoever makes the log longer than 256 pages writes them back,
/// which waits for the disk twice; a log that is begun anew gives its file's room back. A call adds about ten, and reading
/// what was left of these many takes a fraction of a millisecond. Where a file system cannot have a log, calls are recorded without one, and wait longer for each other.
fn turn_log_on(connection: &Connection) -> rusqlite::Result<()> {
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

/// How many of the [`STEPS`] a database has taken.
fn user_version(connection: &Connection) -> rusqlite::Result<u32> {
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

/// Takes from others what they may do. Nobody else can write in the folder, so the name stays what it was.
fn close(path: &Path, mode: u32) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder => f.write_str("there is no folder for the audit records"),
            Self::Folder(path, why) => {
                write!(f, "the folder {} cannot hold the audit records: {why}", path.display())
            }
            Self::Newer(path, version) => {
                write!(f, "{} has schema {version}, written by a newer runner", path.display())
            }
            Self::Database(what, path, error) => {
                write!(f, "cannot {what} {}: {error}", path.display())
            }
            Self::Seal(what, path, why) => {
                write!(f, "cannot {what} {}: {why}", path.display())
            }
        }
    }
}

impl std::error::Error for StoreError {}

impl Failure for StoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoFolder => "store_no_folder",
            Self::Folder(..) => "store_folder",
            Self::Newer(..) => "store_newer",
            Self::Database(..) => "store_database",
            Self::Seal(..) => "ledger_seal",
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
mod tests {
    use super::*;

    #[test]
    fn it_opens_twice_and_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state/runner");
        let _one = Store::open(Some(&state)).unwrap();
        let _two = Store::open(Some(&state)).unwrap();
        let mode = std::fs::metadata(&state).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn every_process_finds_the_settings_of_the_records() {
        let folder = tempfile::tempdir().unwrap();
        // A new one, one that was left as it was, and one that somebody has changed to copy one file.
        for leave in ["", "PRAGMA journal_mode = DELETE", ""] {
            let store = Store::open(Some(folder.path())).unwrap();
            let asked = |pragma: &str| {
                let row = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
                format!("{:?}", store.connection().query_row(pragma, [], row).unwrap())
            };
            let settings = [
                "journal_mode",
                "synchronous",
                "wal_autocheckpoint",
                "busy_timeout",
                "foreign_keys",
            ];
            assert_eq!(
                settings.map(|name| asked(&format!("PRAGMA {name}"))),
                [r#"Text("wal")"#, "Integer(1)", "Integer(256)", "Integer(60000)", "Integer(1)"]
            );
            store.connection().execute_batch(leave).unwrap();
        }
    }

    #[test]
    fn what_was_written_stays_in_the_log_until_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("runner");
        let log = || std::fs::metadata(state.join("store.db-wal")).unwrap().len();
        let put = "INSERT INTO descriptions VALUES (?1, '{}')";
        let store = Store::open(Some(&state)).unwrap();
        store.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(store);
        let calls = SETTLED_PAGES + 1;
        for digest in 0..calls {
            let store = Store::open(Some(&state)).unwrap();
            store.connection().execute(put, [digest.to_string()]).unwrap();
            // A short log is left alone.
            if digest == 0 {
                let before = std::fs::read(state.join(FILE)).unwrap();
                store.settle().unwrap();
                assert_eq!(std::fs::read(state.join(FILE)).unwrap(), before);
            }
        }
        assert!(log() > 0);
        let before = std::fs::read(state.join("store.db")).unwrap();
        let store = Store::open(Some(&state)).unwrap();
        store.settle().unwrap();
        assert_ne!(std::fs::read(state.join("store.db")).unwrap(), before);
        let count = "SELECT count(*) FROM descriptions";
        let rows = |store: &Store| -> i64 {
            store.connection().query_row(count, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(rows(&store), calls);
        drop(store);
        assert_eq!(rows(&Store::open(Some(&state)).unwrap()), calls);
    }

    #[test]
    fn a_log_does_not_grow_where_nobody_settles_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("runner");
        let log = || std::fs::metadata(state.join("store.db-wal")).unwrap().len();
        let put = "INSERT INTO descriptions VALUES (?1, '{}')";
        let mut longest = 0;
        for digest in 0..400 {
            let store = Store::open(Some(&state)).unwrap();
            store.connection().execute(put, [digest.to_string()]).unwrap();
            drop(store);
            longest = longest.max(log());
        }
        assert!(longest > LONG_LOG / 2, "the control: it was written to");
        assert!(longest < LONG_LOG + 64 * 1024, "{longest}");
        assert!(log() < LONG_LOG);
        let count = "SELECT count(*) FROM descriptions";
        let store = Store::open(Some(&state)).unwrap();
        let rows: i64 = store.connection().query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 400);
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Store::open(Some(folder.path())), Err(StoreError::Folder(..))));
        assert!(matches!(Store::open(None), Err(StoreError::NoFolder)));
    }

    #[test]
    fn nobody_else_reads_it_also_where_they_could() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("runner");
        let files = ["store.db", "store.db-wal", "store.db-shm"].map(|name| state.join(name));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let put = "INSERT INTO descriptions VALUES (?1, '{}')";
        for digest in ["a", "b"] {
            let store = Store::open(Some(&state)).unwrap();
            store.connection().execute(put, [digest]).unwrap();
            assert_eq!(mode(&state), 0o700);
            assert!(files.iter().all(|file| mode(file) == 0o600));
            drop(store);
            // As an older version left it.
            set(&state, 0o755);
            files.iter().filter(|file| file.exists()).for_each(|file| set(file, 0o644));
        }
        let store = Store::open(Some(&state)).unwrap();
        assert!(mode(&state) == 0o700 && files.iter().all(|file| mode(file) == 0o600));
        let count = "SELECT count(*) FROM descriptions";
        let rows: u32 = store.connection().query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 2);
    }

    #[test]
    fn an_older_schema_is_brought_up_to_date_by_who_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("runner");
        let ready = || Store::open_if_ready(&state).map(Result::unwrap).is_some();
        drop(Store::open(Some(&state)).unwrap());
        assert!(ready(), "the control");
        for older in ["PRAGMA user_version = 1", "PRAGMA journal_mode = DELETE"] {
            let bare = || Connection::open(state.join(FILE)).unwrap();
            let (version, log) = {
                bare().execute_batch(older).unwrap();
                (user_version(&bare()).unwrap(), has_log(&bare()).unwrap())
            };
            assert!(!ready(), "{older}");
            assert_eq!((user_version(&bare()).unwrap(), has_log(&bare()).unwrap()), (version, log));
            // Nobody could bring up to date what is only half there.
            bare().pragma_update(None, "user_version", newest()).unwrap();
        }
        drop(Store::open(Some(&state)).unwrap());
        assert!(ready(), "now somebody has used it");
    }

    #[test]
    fn a_newer_schema_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("runner");
        let store = Store::open(Some(&state)).unwrap();
        store.connection().pragma_update(None, "user_version", 99).unwrap();
        drop(store);
        assert!(matches!(Store::open(Some(&state)), Err(StoreError::Newer(_, 99))));
    }
}
