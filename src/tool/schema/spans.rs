//! Where each part of a schema stands in its file.

use std::collections::BTreeMap;

use runner_policy::finding::At;

/// Places by JSON pointer.
#[derive(Debug, Clone, Default)]
pub struct Spans(BTreeMap<String, At>);

impl Spans {
    /// All of it stands at one place: a schema that did not come from a text of its own.
    #[must_use]
    pub fn all_at(at: At) -> Self {
        Self(BTreeMap::from([(String::new(), at)]))
    }

    /// Notes where a part stands.
    pub fn note(&mut self, pointer: &str, at: At) {
        self.0.insert(pointer.to_owned(), at);
    }

    /// Where a part stands, or the nearest part around it.
    #[must_use]
    pub fn at(&self, pointer: &str) -> At {
        let mut pointer = pointer;
        loop {
            if let Some(at) = self.0.get(pointer) {
                return *at;
            }
            match pointer.rfind('/') {
                Some(end) => pointer = &pointer[..end],
                None => return At::default(),
            }
        }
    }
}

/// A JSON pointer one step further.
#[must_use]
pub fn step(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
