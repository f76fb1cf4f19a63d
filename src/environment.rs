//! The caller's environment, as a value.
//!
//! Duty: the front reads the variables of its process once and passes them on with this type. No part below a front asks the
//! process: two calls in one process can have two environments, and a test makes its own.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Variables and their values. A clone shares them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(Arc<HashMap<OsString, OsString>>);

impl Environment {
    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<OsString> {
        self.0.get(name.as_ref()).cloned()
    }

    /// `HOME`, as it is set.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// The folder of the caller's configurations: `XDG_CONFIG_HOME`, or `.config` in the home.
    #[must_use]
    pub fn config_home(&self) -> Option<PathBuf> {
        let named = self.get("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
        named.map(PathBuf::from).or_else(|| Some(self.home()?.join(".config")))
    }

    /// The folder that a variable names by the base directory specification, else one below `HOME`. Relative values are
    /// invalid and ignored.
    #[must_use]
    pub fn base_folder(&self, name: &str, below_home: &str) -> Option<PathBuf> {
        let absolute = |name| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute(name).or_else(|| Some(absolute("HOME")?.join(below_home)))
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let pairs = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Arc::new(pairs.collect()))
    }
}

/// How many there are. Values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_and_not_shown() {
        let environment = Environment::from_iter([("HOME", "/h"), ("TOKEN", "s3cret")]);
        assert_eq!(environment.home(), Some("/h".into()));
        assert_eq!(environment.get("TOKEN"), Some("s3cret".into()));
        assert_eq!(environment.get("token"), None);
        assert!(!format!("{environment:?}").contains("s3cret"));
    }
}
