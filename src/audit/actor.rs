//! Who called: the account and the process, as the kernel tells them.

use std::fs;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::Value;

/// Who called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    /// The user id.
    pub uid: u32,
    /// The name that the system has for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl Actor {
    /// This process and its user.
    #[must_use]
    pub fn this() -> Self {
        static USER: OnceLock<Option<String>> = OnceLock::new();
        let uid = rustix::process::getuid().as_raw();
        let user =
            USER.get_or_init(|| name_of(uid, &fs::read_to_string("/etc/passwd").ok()?)).clone();
        Self { uid, user, pid: Some(std::process::id()) }
    }

    /// As a record has it. Records of before have the number alone.
    pub(super) fn of_body(body: &Value) -> Self {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let actor = &body["actor"];
        Self {
            uid: number(&actor["uid"]).or_else(|| number(&body["uid"])).unwrap_or(u32::MAX),
            user: actor["user"].as_str().map(str::to_owned),
            pid: number(&actor["pid"]),
        }
    }

    /// Whether this name or number is it.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.user.as_deref() == Some(word) || self.uid.to_string() == word
    }
}

/// The first name that a number has.
fn name_of(uid: u32, accounts: &str) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_number() {
        let accounts = "root:x:0:0::/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_of(1000, accounts).as_deref(), Some("ann"));
        assert_eq!(name_of(7, accounts), None);
        let ann = Actor { uid: 1000, user: Some("ann".to_owned()), pid: None };
        assert!(ann.is("ann") && ann.is("1000") && !ann.is("an") && !ann.is("100"));
        assert_eq!(Actor::of_body(&serde_json::json!({ "uid": 1000 })).uid, 1000);
    }
}
