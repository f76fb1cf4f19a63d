//! A caller at the command line, on one runtime: the real program with policies of its own.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::harness::On;
use crate::support::{Home, Ran};

/// An ordinary user, to whom the workspace belongs when the tests run as root.
const ORDINARY: u32 = 1000;

/// Policies that every seat has: the shipped ones, on this runtime.
const POLICIES: [(&str, &str); 3] =
    [("look", "readonly"), ("make", "develop"), ("all", "contained")];

/// A caller with a workspace.
pub struct Seat {
    pub home: Home,
    pub on: On,
}

impl Seat {
    /// With these files in the workspace.
    pub fn new(on: On, files: &[(&str, &str)]) -> Self {
        let seat = Self { home: Home::new(), on };
        for (name, base) in POLICIES {
            seat.policy(name, &format!("extends: [{base}]\n"), "");
        }
        for (name, text) in files {
            let path = seat.file(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        seat.give_away();
        seat
    }

    /// Everything in the workspace belongs to an ordinary user.
    pub fn give_away(&self) {
        if rustix::process::geteuid().is_root() {
            let owner = format!("{ORDINARY}:{ORDINARY}");
            let project = self.file("");
            let mut chown = std::process::Command::new("chown");
            assert!(chown.args(["-hR", &owner]).arg(project).status().unwrap().success());
        }
    }

    /// A policy of the caller on this runtime. `sandbox` are further lines of that section.
    pub fn policy(&self, name: &str, text: &str, sandbox: &str) {
        let runtime = self.on.name().map(|name| format!("  runtime: {name}\n")).unwrap_or_default();
        let mut whole = format!("policy: 1\nname: {name}\n{text}");
        if !(runtime.is_empty() && sandbox.is_empty()) {
            whole.push_str(&format!("sandbox:\n{runtime}{sandbox}"));
        }
        self.home.user_policy(name, &whole);
    }

    /// A path in the workspace.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path("project").join(name)
    }

    /// What a file of the workspace holds.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a command under a policy.
    pub fn exec<S: AsRef<OsStr>>(&self, policy: &str, words: &[S]) -> Ran {
        let ours = ["exec", "--policy", policy, "--"].map(OsStr::new);
        self.home.run(ours.into_iter().chain(words.iter().map(AsRef::as_ref)))
    }

    /// Runs a line under a policy.
    pub fn line(&self, policy: &str, line: &str) -> Ran {
        self.home.run(["exec", "--policy", policy, "--shell", line])
    }

    /// Runs a command, and it goes well.
    pub fn works<S: AsRef<OsStr>>(&self, policy: &str, words: &[S]) -> String {
        let ran = self.exec(policy, words);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        ran.out
    }

    /// Every call in the ledger, newest first.
    pub fn calls(&self) -> Vec<Value> {
        let shown = self.home.run(["audit", "list", "--json", "-n", "100000"]).json();
        shown["calls"].as_array().unwrap().clone()
    }

    /// Something that must be denied: exit code 126, nothing ran, one record of it. The code.
    pub fn denied(&self, args: &[&str]) -> String {
        let ran = self.home.run(["exec", "--json"].iter().chain(args));
        assert_eq!(ran.code, Some(126), "{args:?}: {}{}", ran.out, ran.err);
        let result = ran.json();
        assert_eq!(result["status"], "denied", "{args:?}");
        for stream in ["stdout", "stderr"] {
            assert!(result[stream].is_null() || result[stream] == "", "{args:?}: {result}");
        }
        let call = result["call"].as_str().unwrap();
        let shown = self.home.run(["audit", "show", call, "--json"]).json();
        let events = shown["events"].as_array().unwrap();
        assert_eq!(events.len(), 1, "{args:?}: {shown}");
        assert_eq!(events[0]["kind"], "refused", "{args:?}");
        result["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// A word as a shell would read it back.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
