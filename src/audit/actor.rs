//! Who called, as records have it: the account and the process, as the kernel tells them; the front and the kind of
//! credential; and what the client claims to be.

use std::fs;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::Value;

use crate::caller::Caller;

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
    /// What turned the request into a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    /// The kind of what tells the caller from others of the same user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// What the client says of itself. Nothing proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed: Option<String>,
}

impl Actor {
    /// A caller, in this process.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        Self {
            uid: caller.uid,
            user: user(caller.uid),
            pid: Some(std::process::id()),
            front: Some(caller.front.word().to_owned()),
            credential: Some(caller.credential.word().to_owned()),
            claimed: caller.claimed.clone(),
        }
    }

    /// As a record has it. Records of before have the number alone.
    pub(super) fn of_body(body: &Value) -> Self {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let actor = &body["actor"];
        let text = |name: &str| actor[name].as_str().map(str::to_owned);
        Self {
            uid: number(&actor["uid"]).or_else(|| number(&body["uid"])).unwrap_or(u32::MAX),
            user: text("user"),
            pid: number(&actor["pid"]),
            front: text("front"),
            credential: text("credential"),
            claimed: text("claimed"),
        }
    }

    /// Whether this name or number is it.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.user.as_deref() == Some(word) || self.uid.to_string() == word
    }
}

/// The name of a user. That of this process's own user is kept: an account is not renamed while it runs something, and
/// one process records many calls.
fn user(uid: u32) -> Option<String> {
    static OWN: OnceLock<Option<String>> = OnceLock::new();
    let look = || name_of(uid, &fs::read_to_string("/etc/passwd").ok()?);
    match uid == rustix::process::getuid().as_raw() {
        true => OWN.get_or_init(look).clone(),
        false => look(),
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
        let body = serde_json::json!({ "actor": { "uid": 1000, "user": "ann" } });
        let ann = Actor::of_body(&body);
        assert!(ann.is("ann") && ann.is("1000") && !ann.is("an") && !ann.is("100"));
        assert_eq!(Actor::of_body(&serde_json::json!({ "uid": 1000 })).uid, 1000);
    }
}
