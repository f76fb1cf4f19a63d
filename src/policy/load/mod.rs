//! Loading: from text to a valid policy, all findings at once.
//!
//! Raw text never leaves this module: only a [`Policy`] whose every key was understood does.
//! Reading files, and who may have written them, is the caller's duty.

mod commands;
mod egress;
mod net;
mod secrets;
mod sections;

use crate::finding::{Finding, Report};
use crate::model::Policy;
use crate::yaml::{self, Node};

/// A policy as text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'t> {
    /// The file, as shown in messages.
    pub file: &'t str,
    /// Its content.
    pub text: &'t str,
    /// Whose it is.
    pub origin: Origin,
}

/// Whose a policy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Part of this program.
    Shipped,
    /// The administrator's.
    Managed,
    /// The user's.
    User,
    /// The project's; untrusted until pinned.
    Project,
    /// Named by its path.
    Path,
    /// A tool's own permissions: they only narrow what the others grant.
    Tool,
}

impl Origin {
    /// Whether its rules may send secrets. They are read outside of every workspace and leave the host, so
    /// only whoever owns the host may say which and where to: neither a repository nor a tool.
    #[must_use]
    pub fn may_send(self) -> bool {
        match self {
            Self::Shipped | Self::Managed | Self::User | Self::Path => true,
            Self::Project | Self::Tool => false,
        }
    }
}

/// Reads one policy.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(source: Source<'_>) -> Result<Policy, Vec<Finding>> {
    let mut report = Report::new(source.file, source.text);
    let policy = yaml::read(source.text, &mut report)
        .and_then(|root| sections::policy(&root, source, &mut report));
    match policy {
        Some(policy) if report.is_clean() => Ok(policy),
        _ => Err(report.finish()),
    }
}

/// Reads a policy from a tree that another format made, such as the permissions of a tool. The tree
/// keeps the places of that format's file, so findings and rules point there.
pub fn from_tree(root: &Node, source: Source<'_>, report: &mut Report<'_>) -> Option<Policy> {
    sections::policy(root, source, report)
}
