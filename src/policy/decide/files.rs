//! Paths: the policy's lists, and what holds for everyone.

use super::{Code, Decision, Query, RuleRef};
use crate::effect::{Effect, Place};
use crate::effective::Effective;
use crate::finding::At;
use crate::model::{Policy, Verdict};
use crate::paths::{self, List};
use crate::spelled;

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
    // The common case makes no list.
    if let Place::Exact(path) = of {
        return judge(policy, workspace, path, access).map(drop);
    }
    stands_for(policy, workspace, of)
        .iter()
        .try_for_each(|path| judge(policy, workspace, path, access).map(drop))
}

/// Whether everything that a place stands for is scratch, which ends with the sandbox.
pub(super) fn is_scratch(policy: &Effective, workspace: &str, of: &Place) -> bool {
    let paths = stands_for(policy, workspace, of);
    !paths.is_empty() && paths.iter().all(|path| paths::is_free(workspace, path))
}

/// The paths by which a place is judged.
fn stands_for(policy: &Effective, workspace: &str, of: &Place) -> Vec<String> {
    match of {
        Place::Exact(path) => vec![path.clone()],
        Place::Tree(path) => vec![path.clone(), paths::join(path, "x")],
        Place::Below(path) => vec![paths::join(path, "x")],
        Place::Glob(pattern) => glob(policy, pattern),
        Place::Prefix(path) => {
            vec![path.strip_suffix('/').unwrap_or(path).to_owned(), format!("{path}x")]
        }
        Place::Any => vec![workspace.to_owned(), paths::join(workspace, "x")],
    }
}

/// Whether an effect is refused for everyone, whatever a policy says.
pub(super) fn fixed(policy: &Effective, workspace: &str, effect: &Effect) -> Option<Refused> {
    let (of, access) = match effect {
        Effect::Read(of) => (of, Access::Read),
        Effect::Write(of) => (of, Access::Write),
        Effect::Net(_) | Effect::Env(_) | Effect::Code | Effect::System | Effect::Unknown => {
            return None;
        }
    };
    stands_for(policy, workspace, of).iter().find_map(|path| mandatory(workspace, path, access))
}

/// What holds for everyone, for one absolute path.
fn mandatory(workspace: &str, path: &str, access: Access) -> Option<Refused> {
    let name = || short(workspace, path);
    if access == Access::Write && paths::is_protected(path) {
        let message = format!("{} is never writable", name());
        return Some(Refused { code: Code::ProtectedPath, message, rule: None });
    }
    paths::is_key_material(path).then(|| {
        let message = format!("{} is key material", name());
        Refused { code: Code::KeyMaterial, message, rule: None }
    })
}

/// The paths that a shell pattern spells out, among them the names that are denied or protected.
fn glob(policy: &Effective, pattern: &str) -> Vec<String> {
    let own = policy
        .layers
        .iter()
        .flat_map(|layer| layer.files.deny.patterns.iter().chain(&layer.files.readonly.patterns))
        .map(|(text, _)| text.as_str());
    let fixed = paths::PROTECTED.iter().chain(paths::KEY_MATERIAL).copied();
    spelled::candidates(pattern, paths::written_names(own.chain(fixed)))
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
    if let Some(refused) = mandatory(workspace, path, access) {
        return Err(refused);
    }
    let relative = paths::below(workspace, path);
    let name = short(workspace, path);
    let refuse = |code, message: String, rule| Err(Refused { code, message, rule });
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
