//! A policy's lists of files, as planner, broker and judge read them.

use std::path::Path;

use runner_policy::Effective;
use runner_policy::lists::FileList;

use super::grants::{Code, Companion, FileGrants, PathSet, Writes};

/// The lists of one policy.
pub struct Lists<'p> {
    policy: [u8; 32],
    read: Set<'p>,
    write: Set<'p>,
    create: Vec<Companion>,
    readonly: Set<'p>,
    deny: Set<'p>,
}

struct Set<'p> {
    policy: &'p Effective,
    list: FileList,
}

impl<'p> Lists<'p> {
    /// Those of this policy.
    #[must_use]
    pub fn new(policy: &'p Effective) -> Self {
        let set = |list| Set { policy, list };
        Self {
            policy: *policy.digest.as_bytes(),
            read: set(FileList::Read),
            write: set(FileList::Write),
            create: policy
                .created()
                .into_iter()
                .map(|own| Companion { file: (&own.file).into(), beside: (&own.beside).into() })
                .collect(),
            readonly: set(FileList::Readonly),
            deny: set(FileList::Deny),
        }
    }

    /// What the decision lets the call do with files.
    #[must_use]
    pub fn grants(&self, writes: Writes, code: Code) -> FileGrants<'_> {
        FileGrants {
            policy: self.policy,
            read: &self.read,
            write: &self.write,
            create: &self.create,
            readonly: &self.readonly,
            deny: &self.deny,
            writes,
            code,
        }
    }
}

impl PathSet for Set<'_> {
    fn matches(&self, relative: &Path) -> bool {
        // Patterns are text; what is not text in a name is matched by `*` alone.
        let text = relative.to_string_lossy();
        self.policy.holds(self.list, if text.is_empty() { "." } else { &text })
    }

    fn matches_where(&self, relative: &Path, has: &dyn Fn(&Path) -> bool) -> bool {
        let text = relative.to_string_lossy();
        self.matches(relative)
            || (self.list == FileList::Write
                && self.policy.may_write(&text, &|file| has(Path::new(file))))
    }

    fn patterns(&self) -> Vec<String> {
        self.policy.patterns(self.list)
    }
}
