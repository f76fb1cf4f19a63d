//! Why the kernel did not resolve a path: the right word for a refusal.
//!
//! Nothing is decided here. The kernel has refused already; this walks the names once more to tell a link
//! into `/proc` from one to somebody's home. What it finds may have changed meanwhile, which can
//! make the word wrong, never the answer.

use std::collections::VecDeque;
use std::path::PathBuf;

use runner_policy::paths;
use rustix::fs::{FileType, readlinkat};

use super::Files;
use super::spelled::{Named, outside};
use crate::broker::Refusal;
use crate::codes::Code;

/// Most links that the kernel follows in one path.
const MAX_LINKS: usize = 40;

impl Files {
    /// The refusal for a path that leaves the workspace.
    pub(super) fn escape(&self, named: &Named) -> Refusal {
        let shown = named.lexical();
        let mut rest: VecDeque<String> = parts(named.relative()).collect();
        let mut at: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                if at.pop().is_none() {
                    let beyond = format!("../{}", joined(rest));
                    return outside(&paths::join(&self.root, &beyond), shown);
                }
                continue;
            }
            at.push(part);
            let Ok(found) = self.workspace.open(&at.iter().collect::<PathBuf>()) else { break };
            if found.kind != FileType::Symlink {
                continue;
            }
            links += 1;
            let Ok(target) = readlinkat(&found.handle, "", Vec::new()) else { break };
            let target = target.to_string_lossy().into_owned();
            if target.starts_with('/') {
                return outside(&format!("{target}/{}", joined(rest)), shown);
            }
            if links > MAX_LINKS {
                let message = format!("{shown} leads through too many links");
                return Refusal::new(Code::InvalidArgument, message).at(shown);
            }
            at.pop();
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(part);
            }
        }
        outside(&paths::join(&self.root, ".."), shown)
    }
}

fn parts(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned)
}

fn joined(parts: VecDeque<String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("/")
}
