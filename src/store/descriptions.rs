//! What modules say they are, remembered by their content.
//!
//! A description is the module's own word, and is read as strictly when it comes from here as when it was
//! just said.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError};

/// More descriptions than this, and the oldest go.
const MOST: usize = 10_000;

/// The descriptions in a store.
#[derive(Debug)]
pub struct Descriptions<'s> {
    store: &'s Store,
}

impl<'s> Descriptions<'s> {
    /// Those of a store.
    #[must_use]
    pub fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// What was said by the module with this digest.
    ///
    /// # Errors
    /// The store refused.
    pub fn get(&self, digest: &str) -> Result<Option<String>, StoreError> {
        self.store
            .connection()
            .query_row("SELECT text FROM descriptions WHERE digest = ?1", [digest], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|error| self.store.failed("read", error))
    }

    /// Remembers what a module said.
    ///
    /// # Errors
    /// The store refused.
    pub fn put(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        let write = || {
            let transaction = self.store.connection().unchecked_transaction()?;
            transaction.execute(
                "INSERT OR REPLACE INTO descriptions (digest, text) VALUES (?1, ?2)",
                [digest, text],
            )?;
            transaction.execute(
                "DELETE FROM descriptions WHERE rowid <= (SELECT max(rowid) FROM descriptions) - ?1",
                params![i64::try_from(MOST).unwrap_or(i64::MAX)],
            )?;
            transaction.commit()
        };
        write().map_err(|error| self.store.failed("remember a description in", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_found_by_its_digest_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Some(folder.path())).unwrap();
        let descriptions = Descriptions::new(&store);
        assert_eq!(descriptions.get("a").unwrap(), None);
        descriptions.put("a", "{}").unwrap();
        descriptions.put("a", "{\"name\":1}").unwrap();
        assert_eq!(descriptions.get("a").unwrap().as_deref(), Some("{\"name\":1}"));
        assert_eq!(descriptions.get("b").unwrap(), None);
    }
}
