//! Paths: the policy's lists, and what holds for everyone.

use super::{Code, Decision, Query, RuleRef};
use crate::effect::Place;
use crate::effective::Effective;
use crate::finding::At;
use crate::model::{Policy, Verdict};
use crate::paths::{self, List};

/// What is asked of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// To read it.
    Read,
    /// To write, delete, rename it or change its metadata.
    Write,
}

/// Why a path is refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub code: Code,
    pub message: String,
    pub rule: Option<RuleRef>,
}

/// A question about one path.
pub(super) fn question(
    policy: &Effective,
    query: &Query<'_>,
    path: &str,
    access: Access,
) -> Decision {
    if path.contains('\0') || path.is_empty() {
        return Decision::new(
            policy,
            Verdict::Deny,
            Code::BadArgument,
            "this is no path".to_owned(),
        );
    }
    if path.len() > 4096 || path.split('/').any(|part| part.len() > 255) {
        return Decision::new(
            policy,
            Verdict::Deny,
            Code::TooLarge,
            "no path is that long".to_owned(),
        );
    }
    let full = paths::join(query.cwd, path);
    match judge(policy, query.workspace, &full, access) {
        Ok(rule) => {
            let verb = if access == Access::Read { "read" } else { "written" };
            let mut decision = Decision::new(
                policy,
                Verdict::Allow,
                Code::Allowed,
                format!("{} may be {verb}", short(query.workspace, &full)),
            );
            decision.rule = rule;
            decision
        }
        Err(refused) => {
            let mut decision = Decision::new(policy, Verdict::Deny, refused.code, refused.message);
            decision.rule = refused.rule;
            decision
        }
    }
}

/// Whether everything that a place stands for may be accessed, as far as names tell. What a pattern or a
/// folder holds besides is covered by the sandbox's mounts and masks.
pub(super) fn place(
    policy: &Effective,
    workspace: &str,
    of: &Place,
    access: Access,
) -> Result<(), Refused> {
    let check = |path: &str| judge(policy, workspace, path, access).map(drop);
    match of {
        Place::Exact(path) => check(path),
        Place::Tree(path) => {
            check(path)?;
            check(&paths::join(path, "x"))
        }
        Place::Glob(pattern) => paths::skeletons(pattern).iter().try_for_each(|path| check(path)),
        Place::Prefix(path) => {
            check(path)?;
            check(&format!("{path}x"))
        }
        Place::Any => {
            check(workspace)?;
            check(&paths::join(workspace, "x"))
        }
    }
}

/// Judges one absolute path; the answer names the pattern that allowed it.
pub(super) fn judge(
    policy: &Effective,
    workspace: &str,
    path: &str,
    access: Access,
) -> Result<Option<RuleRef>, Refused> {
    if paths::is_void(path) {
        return Ok(None);
    }
    let relative = paths::below(workspace, path);
    let name = short(workspace, path);
    let refuse = |code, message: String, rule| Err(Refused { code, message, rule });
    if access == Access::Write && paths::is_protected(path) {
        return refuse(Code::ProtectedPath, format!("{name} is never writable"), None);
    }
    if paths::is_key_material(path) {
        return refuse(Code::KeyMaterial, format!("{name} is key material"), None);
    }
    let find = |list: fn(&Policy) -> &List, key: &str| {
        policy.layers.iter().find_map(|layer| {
            list(layer).find(path, relative).map(|(text, at)| pattern_ref(layer, key, text, *at))
        })
    };
    if let Some(rule) = find(|layer| &layer.files.deny, "deny") {
        return refuse(
            Code::PathDenied,
            format!("{name} is denied by `{}`", rule.text),
            Some(rule),
        );
    }
    match access {
        Access::Read => match find(|layer| &layer.files.read, "read") {
            Some(rule) => Ok(Some(rule)),
            None if relative.is_none() => {
                refuse(Code::PathOutside, format!("{name} is outside the workspace"), None)
            }
            None => refuse(Code::PathNotReadable, format!("{name} is not in `files.read`"), None),
        },
        Access::Write => {
            if let Some(rule) = find(|layer| &layer.files.readonly, "readonly") {
                return refuse(
                    Code::PathReadonly,
                    format!("{name} is read-only by `{}`", rule.text),
                    Some(rule),
                );
            }
            match find(|layer| &layer.files.write, "write") {
                Some(rule) => Ok(Some(rule)),
                None if relative.is_none() => {
                    refuse(Code::PathOutside, format!("{name} is outside the workspace"), None)
                }
                None => {
                    refuse(Code::PathNotWritable, format!("{name} is not in `files.write`"), None)
                }
            }
        }
    }
}

fn pattern_ref(layer: &Policy, key: &str, text: &str, at: At) -> RuleRef {
    RuleRef {
        id: format!("{}/files.{key}", layer.name),
        file: layer.file.clone(),
        line: at.line,
        text: text.to_owned(),
    }
}

fn short(workspace: &str, path: &str) -> String {
    match paths::below(workspace, path) {
        Some(".") => "the workspace".to_owned(),
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}
