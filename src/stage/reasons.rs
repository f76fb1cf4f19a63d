//! Why a change is held back and what to do, in words.

use std::ffi::OsStr;
use std::path::Path;

use super::change::{Held, Why};
use super::leads::UnknownLeads;
use super::led::Led;
use crate::workspace::protected::table::{Class, Row};

/// The next step where no policy can help.
const YOURSELF: &str =
    "look at it with `runner stage diff`, and make the change yourself if it is right";

pub(super) fn held(
    why: Why,
    rule: impl Into<String>,
    reason: impl Into<String>,
    next: &str,
) -> Held {
    Held { why, reason: reason.into(), rule: rule.into(), next: next.to_owned() }
}

pub(super) fn covered(path: &Path, covered: &Path) -> Held {
    let reason = if path.starts_with(covered) {
        format!(
            "{} was hidden from the call, which cannot know what it replaces",
            covered.display()
        )
    } else {
        format!("it holds {}, which was hidden from the call", covered.display())
    };
    held(Why::Covered, "built-in/covered", reason, YOURSELF)
}

pub(super) fn special(what: &str) -> Held {
    let next = "let the command leave ordinary files, without special bits";
    held(Why::Special, "built-in/special", what, next)
}

pub(super) fn key_material() -> Held {
    let next = "keep keys outside the workspace; no policy opens them";
    held(Why::Denied, "built-in/key-material", "it is key material", next)
}

pub(super) fn denied(policy: &str) -> Held {
    let reason = format!("policy `{policy}` denies it");
    let next = "take it off `files.deny` of the policy, if the command should see and write it";
    held(Why::Denied, format!("{policy}/files.deny"), reason, next)
}

pub(super) fn never(row: &Row) -> Held {
    held(Why::RunsOnHost, "built-in/never", format!("it is run by {}", row.runs), YOURSELF)
}

pub(super) fn new_repository(folder: Option<&Path>) -> Held {
    let reason = match folder {
        Some(folder) if folder.as_os_str().is_empty() => {
            "the workspace itself would become a git repository, whose configuration git runs"
                .to_owned()
        }
        Some(folder) => format!(
            "{} would become a git repository, whose configuration git runs in it",
            folder.display()
        ),
        None => "it would make a git repository, whose configuration git runs in it".to_owned(),
    };
    let next = "run `git init`, `git clone` or `git worktree add` yourself, outside the sandbox";
    held(Why::RunsOnHost, "built-in/never", reason, next)
}

pub(super) fn git_folder() -> Held {
    let reason = "a repository of the host is not removed or replaced";
    held(Why::RunsOnHost, "built-in/never", reason, "remove or replace the repository yourself")
}

pub(super) fn link_in_git() -> Held {
    let reason = "git would follow this symlink in its own folder";
    held(Why::RunsOnHost, "built-in/never", reason, YOURSELF)
}

pub(super) fn by_another_name(row: &Row, link: &Path) -> Held {
    let reason = format!("the symlink {} leads to it: it is run by {}", link.display(), row.runs);
    held(Why::RunsOnHost, "built-in/never", reason, YOURSELF)
}

pub(super) fn led(led: &Led) -> Held {
    let reason = format!("the host runs or reads it by {}", led.by);
    held(Why::RunsOnHost, "built-in/never", reason, YOURSELF)
}

/// Everything, where it is not known what git runs.
pub(super) fn unknown_leads(why: &UnknownLeads) -> Held {
    let reason = format!("it is not known what git runs: {why}");
    let next = match why {
        UnknownLeads::NotUnderstood(_) => "mend that configuration, then `runner stage apply CALL`",
        UnknownLeads::TooMany(_) => "look at their `include.path` for a circle",
    };
    held(Why::RunsOnHost, "built-in/never", reason, next)
}

pub(super) fn leads_out(target: &OsStr) -> Held {
    let shown: String = target.to_string_lossy().chars().take(200).collect();
    let reason =
        format!("the symlink to `{}` leads out of the workspace, or could", shown.escape_debug());
    let next = "link to a path below the workspace, with `..` only at the beginning";
    held(Why::LeadsOut, "built-in/links", reason, next)
}

pub(super) fn read_only(policy: &str) -> Held {
    let reason = format!("policy `{policy}` has it in `files.readonly`");
    let next = "take it off `files.readonly` of the policy, if the command should write it";
    held(Why::NotWritable, format!("{policy}/files.readonly"), reason, next)
}

pub(super) fn not_writable(policy: &str) -> Held {
    let reason = format!("policy `{policy}` does not have it in `files.write`");
    let next = "add it to `files.write` of the policy, or let the command write elsewhere";
    held(Why::NotWritable, format!("{policy}/files.write"), reason, next)
}

pub(super) fn named(row: &Row, path: &Path) -> Held {
    debug_assert_eq!(row.class, Class::Named);
    let reason = format!("it is run by {}, and the policy does not name it", row.runs);
    let next = format!("name `{}` itself in `files.write` of the policy", path.display());
    held(Why::Named, "built-in/named", reason, &next)
}

/// What is below a new folder that is held.
pub(super) fn below_held(above: &Held) -> Held {
    Held {
        reason: format!("the folder that it is in is held back: {}", above.reason),
        ..above.clone()
    }
}

/// A folder that keeps a name.
pub(super) fn keeps(kept: &Held, name: &Path) -> Held {
    Held { reason: format!("{} in it stays: {}", name.display(), kept.reason), ..kept.clone() }
}
