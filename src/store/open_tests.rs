//! What the database is like when it is opened, who may use it, and how long its log gets.

use super::*;
use crate::store::log::{LONG_LOG, SETTLED_PAGES};

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
        let settings =
            ["journal_mode", "synchronous", "wal_autocheckpoint", "busy_timeout", "foreign_keys"];
        assert_eq!(
            settings.map(|name| asked(&format!("PRAGMA {name}"))),
            [r#"Text("wal")"#, "Integer(1)", "Integer(256)", "Integer(60000)", "Integer(1)"]
        );
        store.connection().execute_batch(leave).unwrap();
    }
}

/// Where the build did not read `.cargo/config.toml`, each process makes the settings itself.
#[test]
fn the_settings_are_the_same_if_they_are_not_built_in() {
    let connection = Connection::open_in_memory().unwrap();
    let other =
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 9; PRAGMA journal_size_limit = 9";
    connection.execute_batch(other).unwrap();
    set_defaults(&connection).unwrap();
    let asked = |pragma: &str| -> i64 {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
    };
    let settings = ["synchronous", "wal_autocheckpoint", "journal_size_limit"];
    assert_eq!(settings.map(asked), [1, 256, 65_536]);
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

#[test]
fn an_index_of_the_log_that_was_left_behind_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("store.db-shm");
    let put = |digest: &str| {
        let store = Store::open(Some(folder.path())).unwrap();
        let text = "INSERT INTO descriptions VALUES (?1, '{}')";
        store.connection().execute(text, [digest]).unwrap();
    };
    let digests = || {
        let store = Store::open(Some(folder.path())).unwrap();
        let text = "SELECT group_concat(digest, ' ' ORDER BY digest) FROM descriptions";
        store.connection().query_row(text, [], |row| row.get::<_, String>(0)).unwrap()
    };
    put("a");
    let early = std::fs::read(&index).unwrap();
    put("b");
    let late = std::fs::read(&index).unwrap();
    let damaged: Vec<u8> = (0..late.len()).map(|at| (at % 251) as u8).collect();
    let longer = [late.as_slice(), &damaged].concat();
    for left in [early.as_slice(), &[], &late[..3], &late[..100], &damaged, &longer] {
        std::fs::write(&index, left).unwrap();
        assert_eq!(digests(), "a b");
    }
    // Of a log that was begun anew since.
    Store::open(Some(folder.path()))
        .unwrap()
        .connection()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    for left in [early.as_slice(), &late] {
        std::fs::write(&index, left).unwrap();
        assert_eq!(digests(), "a b");
    }
    put("c");
    assert_eq!(digests(), "a b c");
}
