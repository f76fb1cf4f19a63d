//! What servers of tools offered when they were asked, by what they were made from.
//!
//! It is the server's own word, and is read as strictly when it comes from here as when it was just said.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError};

/// The step of the schema that made its table.
pub(super) const STEP: &str = "
    -- What MCP servers offered. A server that changes is another identity; what it offered before is kept to compare with.
    CREATE TABLE offers (
        id       INTEGER PRIMARY KEY,
        server   TEXT NOT NULL,
        identity TEXT NOT NULL,         -- digest of its definition, its program and the files it is started with
        text     TEXT NOT NULL,         -- JSON
        UNIQUE (server, identity)
    ) STRICT;
";

/// More than these, and the oldest go.
const MOST: i64 = 1_000;

/// The offers in a store.
#[derive(Debug)]
pub struct Offers<'s> {
    store: &'s Store,
}

impl<'s> Offers<'s> {
    /// Those of a store.
    #[must_use]
    pub fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// What a server of this identity offered.
    ///
    /// # Errors
    /// The store refused.
    pub fn get(&self, server: &str, identity: &str) -> Result<Option<String>, StoreError> {
        let statement = "SELECT text FROM offers WHERE server = ?1 AND identity = ?2";
        self.store
            .connection()
            .query_row(statement, [server, identity], |row| row.get(0))
            .optional()
            .map_err(|error| self.store.failed("read", error))
    }

    /// What a server of this name offered last, whatever it was.
    ///
    /// # Errors
    /// The store refused.
    pub fn last(&self, server: &str) -> Result<Option<String>, StoreError> {
        let statement = "SELECT text FROM offers WHERE server = ?1 ORDER BY id DESC LIMIT 1";
        self.store
            .connection()
            .query_row(statement, [server], |row| row.get(0))
            .optional()
            .map_err(|error| self.store.failed("read", error))
    }

    /// Remembers what a server offered.
    ///
    /// # Errors
    /// The store refused.
    pub fn put(&self, server: &str, identity: &str, text: &str) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.store.connection().unchecked_transaction()?;
            transaction.execute(
                "INSERT OR REPLACE INTO offers (server, identity, text) VALUES (?1, ?2, ?3)",
                [server, identity, text],
            )?;
            transaction.execute(
                "DELETE FROM offers WHERE id <= (SELECT max(id) FROM offers) - ?1",
                params![MOST],
            )?;
            transaction.commit()
        };
        write().map_err(|error| self.store.failed("remember an offer in", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_found_by_what_made_it_and_the_last_by_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(folder.path())).unwrap();
        let offers = Offers::new(&store);
        assert_eq!((offers.get("s", "a").unwrap(), offers.last("s").unwrap()), (None, None));
        offers.put("s", "a", "1").unwrap();
        offers.put("s", "b", "2").unwrap();
        offers.put("t", "a", "3").unwrap();
        assert_eq!(offers.get("s", "a").unwrap().as_deref(), Some("1"));
        assert_eq!(offers.last("s").unwrap().as_deref(), Some("2"));
        offers.put("s", "a", "4").unwrap();
        assert_eq!(offers.get("s", "a").unwrap().as_deref(), Some("4"));
        assert_eq!(offers.last("s").unwrap().as_deref(), Some("4"), "asked again is the last");
    }
}
