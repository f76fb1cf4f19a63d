//! Asking the policy about a path below the workspace.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use runner_policy::{Code as Why, Effective, Query, Verdict, What as Asked, decide, may};

use super::Files;
use super::place::{self, Found};
use super::spelled::Named;
use crate::broker::Refusal;
use crate::codes::Code;
use crate::stage::change::{Change, Held, RootKind, What, Why as HeldFor};
use crate::stage::judge::{Rules, System, judge_file};
use crate::stage::merged::Merged;
use crate::stage::repository::{Place, Repositories};
use crate::workspace::grants::{Code as Granted, Writes};
use crate::workspace::lists::Lists;
use crate::workspace::protected::{self, Guard};

impl Files {
    /// The absolute path of one below the workspace.
    pub(super) fn absolute(&self, relative: &str) -> String {
        if relative == "." { self.root.clone() } else { format!("{}/{relative}", self.root) }
    }

    /// Whether it may be read.
    pub(super) fn may_read(&self, relative: &str) -> Result<(), Refusal> {
        self.ask(relative, &self.absolute(relative), false)
    }

    /// Whether it may be written, removed, renamed or replaced.
    pub(super) fn may_write(&self, relative: &str) -> Result<(), Refusal> {
        if self.is_protected(relative) {
            let message = format!("{relative} is never writable, whatever a policy says");
            return Err(Refusal::new(Code::ProtectedPath, message)
                .at(relative)
                .hint("write to another path"));
        }
        if self.is_in_git(relative) {
            let message = format!(
                "{relative} is in a git folder, where only git's own commands may change something"
            );
            return Err(Refusal::new(Code::ProtectedPath, message)
                .at(relative)
                .hint("run a git command for it"));
        }
        self.ask(relative, &self.absolute(relative), true)?;
        match self.runs_on_host(relative)? {
            Some(held) => {
                let message = format!("{relative} may not be written: {}", held.reason);
                Err(Refusal::new(Code::ProtectedPath, message).at(relative).hint(&held.next))
            }
            None => Ok(()),
        }
    }

    /// Whether its being there may be known: to whoever may read it or write it.
    pub(super) fn may_see(&self, relative: &str) -> Result<(), Refusal> {
        self.may_read(relative).or_else(|refusal| self.may_write(relative).map_err(|_| refusal))
    }

    /// Resolves a folder to start from, for a search or a command. It need not be readable: `**/package.json`
    /// alone lets every folder be looked through for that name. What is denied is denied whether it
    /// is there or not, and of what is merely not readable only folders are told.
    pub(super) fn enter(&self, named: &Named) -> Result<Found, Refusal> {
        let lexical = named.lexical();
        self.may_enter(lexical)?;
        let found = self.find(named).and_then(|found| {
            self.may_enter(&found.relative)?;
            place::demand_folder(&found)?;
            Ok(found)
        });
        found.map_err(|refusal| match refusal.code {
            // A file that may not be seen answers as one that is not there.
            Code::NotFound | Code::NotADirectory if self.may_see(lexical).is_err() => {
                Refusal::new(Code::NotFound, format!("there is no folder {lexical}")).at(lexical)
            }
            _ => refusal,
        })
    }

    /// Whether a folder may be started from: unless it is denied. That the workspace is there is no secret.
    fn may_enter(&self, relative: &str) -> Result<(), Refusal> {
        if relative == "." || !self.is_denied(&self.policy, &self.absolute(relative)) {
            return Ok(());
        }
        self.may_read(relative)
    }

    /// Whether a policy, or one that it stays within, denies a path; not to allow it is less than that.
    fn is_denied(&self, policy: &Effective, absolute: &str) -> bool {
        let query = self.query(Asked::Read(absolute));
        let decision = decide(policy, &query);
        let unlisted = matches!(decision.code, Why::PathNotReadable);
        decision.decision != Verdict::Allow && !unlisted
            // Of several policies that refuse only one is heard.
            || policy.within.iter().any(|other| self.is_denied(other, absolute))
    }

    fn query<'a>(&'a self, what: Asked<'a>) -> Query<'a> {
        Query { workspace: &self.root, cwd: &self.root, now: Timestamp::now(), what }
    }

    /// Whether an entry may be moved: written in both places, and not made readable by its new name.
    pub(super) fn may_move(&self, from: &str, to: &str) -> Result<(), Refusal> {
        self.may_write(from)?;
        self.may_write(to)?;
        match self.may_read(from) {
            Err(refusal) if self.may_read(to).is_ok() => Err(refusal),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn ask(&self, relative: &str, absolute: &str, write: bool) -> Result<(), Refusal> {
        // The short question first: most answers are yes, and need no words.
        if may(&self.policy, &self.root, absolute, write) {
            return Ok(());
        }
        let what = if write { Asked::Write(absolute) } else { Asked::Read(absolute) };
        let decision = decide(&self.policy, &self.query(what));
        if decision.decision == Verdict::Allow {
            // Both questions ask the same lists. If they ever differ, the stricter one counts.
            let message = format!("the policy does not allow {relative}");
            return Err(Refusal::new(Code::AccessDenied, message).at(relative));
        }
        let refused = |code| Refusal::of_decision(code, &decision).at(relative);
        Err(match decision.code {
            Why::ProtectedPath => refused(Code::ProtectedPath).hint("write to another path"),
            Why::PathOutside => refused(Code::PathEscape),
            _ => refused(Code::AccessDenied),
        })
    }

    /// What nobody may write, by its name in any case of letters.
    fn is_protected(&self, relative: &str) -> bool {
        protected::guard(Path::new(relative)) != Guard::Open
    }

    /// Whether it is in a git folder of any name, or is one. What a command changes there is compared with
    /// the index and the commits as a whole before it is applied, and no single write could be.
    fn is_in_git(&self, relative: &str) -> bool {
        let path = Path::new(relative);
        let host = self.workspace.handle();
        let merged = Merged::new(host, host, Path::new(&self.root), &[]);
        let repositories = Repositories::new(&merged, RootKind::Workspace, None);
        let (path, host) = (path.to_owned(), merged.on_host(path));
        let change = Change { path, what: What::Removed, host, lost: false };
        repositories.place(&change) != Place::Plain
    }

    /// Why the host would run it, or be led by it: a file there is judged as one that a command stages.
    fn runs_on_host(&self, relative: &str) -> Result<Option<Held>, Refusal> {
        let around = self.around.get_or_init(|| (self.look_around)()).as_ref().map_err(|why| {
            Refusal::new(Code::IoError, format!("it is not known what the host runs: {why}"))
                .at(relative)
        })?;
        let lists = Lists::new(&self.policy);
        let rules = Rules {
            grants: &lists.grants(Writes::Some, Granted::Granted),
            policy: self.policy.name(),
            covered: &BTreeSet::new(),
            root: Path::new(&self.root),
            kind: RootKind::Workspace,
            host: self.workspace.handle(),
            // Nothing is read from there: what a tool writes is not staged, and the configuration of a
            // repository is protected by its name.
            upper: self.workspace.handle(),
            repositories: &around.repositories,
            links: &around.links,
            home: around.home.as_deref(),
            led: &around.led,
            system: &System::default(),
        };
        let held = judge_file(Path::new(relative), &rules);
        Ok(held.filter(|held| matches!(held.why, HeldFor::RunsOnHost | HeldFor::Named)))
    }
}
