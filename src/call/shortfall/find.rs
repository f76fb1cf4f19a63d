//! The entries of a call that ended: what applies by itself, and what the output selects.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runner_policy::decide::{Code, NETWORK_WITHHELD, NO_NETWORK, Query, What, decide, granting};
use runner_policy::effect::{Class, Classes};
use runner_policy::limits::Limit;
use runner_policy::paths;

use super::bounds::{Met, limits, of_limit, rest};
use super::entry::{Kind, Shortfall};
use super::evidence::{self, Evidence, Line, Symptom};
use super::outside::{REMEDY, is_outside, missing, outside, shown, words};
use crate::call::launch::outcome::Outcome;
use crate::call::launch::run::Keep;
use crate::call::request::{Command, Decided};
use crate::engine::plan::{OverlayRole, OverlayWrites, SandboxPlan, TmpfsExec};
use crate::policy_files::choosable;
use crate::sandbox::outcome::{CancelCause, Verdict};

/// Most entries of one kind.
const NAMED_MAX: usize = 3;

/// Folders of a host that hold files of its users and services.
const HOST_FOLDERS: [&str; 8] =
    ["/home", "/root", "/opt", "/srv", "/mnt", "/media", "/var", "/run"];

/// Programs that run a line, whose output may come from anywhere in it.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// A command that ended, and what its result holds of its output.
pub(in crate::call) struct Ended<'a> {
    /// How it ran.
    pub outcome: &'a Outcome,
    /// In what.
    pub plan: &'a SandboxPlan,
    /// What is kept of the output for a result; `None` if the caller has all of it.
    pub keep: Option<Keep>,
}

/// The entries of a command. `path` is the caller's `PATH`, which is not for a tool to know.
pub(in crate::call) fn of_command(
    decided: &Decided,
    ended: &Ended<'_>,
    path: Option<&OsStr>,
) -> Vec<Shortfall> {
    let verdict = &ended.outcome.verdict;
    if let Verdict::NotFound { program } = verdict {
        let found = missing(ended.plan, &program.as_os().to_string_lossy(), path);
        return found.map(|path| not_shown(shown(&path))).into_iter().collect();
    }
    // The command did not run, or its result is not awaited.
    let unread = matches!(
        verdict,
        Verdict::NotExecutable { .. }
            | Verdict::NoCwd { .. }
            | Verdict::Assumption(_)
            | Verdict::Cancelled(CancelCause::OutputClosed)
    );
    if unread {
        return Vec::new();
    }
    let failed = *verdict != Verdict::Completed;
    let Outcome { stdout, stderr, .. } = ended.outcome;
    let everything = Evidence::of(&[stderr, stdout]);
    // What a command that succeeded prints is its data, unless it is a line: there the last command decides.
    let complaints = match failed || is_line(&decided.request.command) {
        true => Evidence::of(&[stderr, stdout]),
        false => Evidence::of(&[stderr]),
    };
    let words = words(&decided.request.command);
    let case = Case { decided, plan: ended.plan, failed, complaints, words };
    let mut found = limits(ended, Some(decided));
    case.scarce(&mut found);
    case.network(&mut found);
    case.read_only(&mut found);
    case.outside(verdict, path, &mut found);
    case.covered(&everything, &mut found);
    case.hidden(&mut found);
    case.no_programs(&mut found);
    found.extend(rest(ended));
    found
}

/// The entries of what ran without a command of the caller's: a tool.
pub(in crate::call) fn of_sandbox(ended: &Ended<'_>) -> Vec<Shortfall> {
    let mut found = limits(ended, None);
    found.extend(rest(ended));
    found
}

/// Whether several commands can have written the output.
fn is_line(command: &Command) -> bool {
    match command {
        Command::Line(_) => true,
        Command::Argv(argv) => {
            let program = argv.first().map(Path::new);
            let name = program.and_then(Path::file_name).and_then(OsStr::to_str);
            name.is_some_and(|name| SHELLS.contains(&name))
        }
    }
}

/// A command that ended, with what is looked at.
struct Case<'a> {
    decided: &'a Decided,
    plan: &'a SandboxPlan,
    failed: bool,
    complaints: Evidence,
    words: Vec<String>,
}

impl Case<'_> {
    /// Where a word leads, seen from the folder that the command starts in.
    fn resolve(&self, word: &str) -> Option<PathBuf> {
        Some(paths::join(self.plan.cwd.to_str()?, word).into())
    }

    /// The words of the command, and those that stand in one: code that is given as a word names files too.
    fn tokens(&self) -> impl Iterator<Item = &str> {
        self.words.iter().flat_map(|word| {
            std::iter::once(word.as_str()).chain(evidence::words(word).filter(move |it| it != word))
        })
    }

    /// Words that may be paths, with what they lead to.
    fn paths<'w>(
        &'w self,
        words: impl Iterator<Item = &'w str>,
    ) -> impl Iterator<Item = (&'w str, PathBuf)> {
        words.filter_map(|word| Some((word, self.resolve(word)?)))
    }

    /// What the output says that there is too little of.
    fn scarce(&self, found: &mut Vec<Shortfall>) {
        for (symptom, limit) in [
            (Symptom::Memory, Limit::Memory),
            (Symptom::Full, Limit::Scratch),
            (Symptom::FileSize, Limit::FileSize),
            (Symptom::OpenFiles, Limit::OpenFiles),
        ] {
            let told = found.iter().any(|entry| entry.name.as_deref() == Some(limit.row().key));
            if !told && self.complaints.showing(symptom).next().is_some() {
                let limits = &self.plan.limits;
                found.push(of_limit(limit, limits, Some(self.decided), Met::Felt));
            }
        }
    }

    fn network(&self, found: &mut Vec<Shortfall>) {
        // What it did not reach is told by name.
        if self.plan.network.is_some() {
            return;
        }
        let mut lines = self.complaints.showing(Symptom::Network).peekable();
        let wants = self.failed && self.decided.decision.reaches_out;
        if lines.peek().is_none() && !wants {
            return;
        }
        // The name of a host comes from the command; the output tells which of them.
        let hosts: Vec<&str> = self.words.iter().filter_map(|word| host(word)).collect();
        let named = lines.find_map(|line| hosts.iter().find(|host| line.names(host)));
        let name = named.map_or_else(|| "network".to_owned(), |host| (*host).to_owned());
        let withheld = self.decided.policy.connects(jiff::Timestamp::now());
        let reason = if withheld { NETWORK_WITHHELD } else { NO_NETWORK };
        let why = format!("cannot be reached: {reason}");
        let next = "get what it needs before the call, outside the sandbox".to_owned();
        found.push(Shortfall::of_name(Kind::NoNetwork, name, why, next));
    }

    fn read_only(&self, found: &mut Vec<Shortfall>) {
        let mut entries: Vec<Shortfall> = Vec::new();
        for line in self.complaints.showing(Symptom::ReadOnly) {
            let Some(entry) = self.read_only_place(line) else { continue };
            if entries.len() < NAMED_MAX && !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        found.extend(entries);
    }

    /// The read-only place that a line is about. A path is named only if the command itself names it; else the place
    /// that it lies in is.
    fn read_only_place(&self, line: &Line) -> Option<Shortfall> {
        let scratch = |path: &Path| self.plan.tmpfs.iter().any(|it| path.starts_with(&it.target));
        let own: Vec<PathBuf> = self.tokens().filter_map(|word| self.resolve(word)).collect();
        let words: Vec<(&str, PathBuf)> =
            self.paths(line.words()).filter(|(_, path)| !scratch(path)).collect();
        let is_own = |path: &PathBuf| own.contains(path) && *path != self.plan.cwd;
        let absolute = words.iter().find(|(word, _)| word.starts_with('/'));
        // Any word could be a relative path: it counts if the command has it too.
        let named = absolute.or_else(|| words.iter().find(|(_, path)| is_own(path)));
        let path = named.map_or(&self.plan.cwd, |(_, path)| path);
        let mut refused =
            self.plan.overlays.iter().filter(|it| it.writes == OverlayWrites::Refused);
        if let Some(overlay) = refused.find(|overlay| path.starts_with(&overlay.target)) {
            return Some(self.refused(if is_own(path) { path } else { &overlay.target }));
        }
        // In a stage everything can be written.
        named.filter(|(_, path)| {
            !self.plan.overlays.iter().any(|it| path.starts_with(&it.target))
        })?;
        let mounts = self.plan.mounts.iter().map(|mount| &mount.target);
        let place =
            mounts.filter(|target| path.starts_with(target)).max_by_key(|it| it.as_os_str().len());
        let place = place.map_or_else(|| "/".to_owned(), |place| shown(place));
        let why = "is read-only in every sandbox".to_owned();
        let next = "write to the workspace, to /tmp or to HOME".to_owned();
        Some(Shortfall::of_path(Kind::ReadOnly, place, why, next))
    }

    /// A folder of the host that this call does not write, or what the command names in it.
    fn refused(&self, path: &Path) -> Shortfall {
        let decision = &self.decided.decision;
        let rule = decision.rule.as_ref().map(|rule| rule.id.clone());
        let by = rule.as_ref().map_or_else(
            || format!("the policy `{}` grants it no `write`", decision.policy),
            |rule| format!("`{rule}` grants this command no `write`"),
        );
        let next = match self.writing() {
            Some(policy) => format!("choose a policy that lets it write: --policy {policy}"),
            None => "write to /tmp or HOME, which end with the call".to_owned(),
        };
        let why = format!("is read-only for this call: {by}");
        Shortfall::of_path(Kind::ReadOnly, self.told(path), why, next).by(rule)
    }

    /// The narrowest policy that lets this command write.
    fn writing(&self) -> Option<String> {
        let others = choosable(&self.decided.places);
        let classes = Classes::default().with(Class::Write);
        let policies = self.decided.read(|policy, query| granting(policy, query, &others, classes));
        policies.ok()?.into_iter().next()
    }

    fn outside(&self, verdict: &Verdict, path: Option<&OsStr>, found: &mut Vec<Shortfall>) {
        let by_itself = matches!(
            verdict,
            Verdict::Failed { .. } | Verdict::Cancelled(CancelCause::BrokerEnded)
        );
        let lines: Vec<&Line> = self.complaints.showing(Symptom::Missing).collect();
        if !by_itself && lines.is_empty() {
            return;
        }
        let is_named = |word: &str| lines.iter().any(|line| line.names(word));
        let mut entries: Vec<Shortfall> = Vec::new();
        // Only what is there: a word that begins with a slash can be anything.
        for word in self.tokens() {
            let there = outside(self.plan, word).filter(|path| path.symlink_metadata().is_ok());
            let told = there.filter(|path| by_itself || is_named(&path.to_string_lossy()));
            entries.extend(told.map(|path| not_shown(shown(&path))));
        }
        // A program of the caller's that a line calls by its name.
        for name in self.tokens().filter(|name| !name.contains('/') && is_named(name)) {
            entries.extend(missing(self.plan, name, path).map(|path| not_shown(shown(&path))));
        }
        // A path that only the output has is not repeated. Which folder it lies in is ours to say.
        if entries.is_empty() {
            let paths = lines.iter().flat_map(|line| line.words());
            let away = paths.filter(|word| word.starts_with('/')).map(Path::new);
            let away: Vec<&Path> = away.filter(|path| is_outside(self.plan, path)).collect();
            let folders = HOST_FOLDERS.iter().filter(|folder| {
                let folder = Path::new(folder);
                away.iter().any(|path| path.starts_with(folder) && *path != folder)
            });
            entries.extend(folders.map(|folder| {
                let why = "is of the host, and the sandbox does not show all of it".to_owned();
                Shortfall::of_path(Kind::OutsideSandbox, *folder, why, REMEDY.to_owned())
            }));
        }
        entries.dedup();
        entries.truncate(NAMED_MAX);
        found.extend(entries);
    }

    /// Covered paths that the command or its output names.
    fn covered(&self, output: &Evidence, found: &mut Vec<Shortfall>) {
        let covers = Covers::of(self.plan);
        if covers.is_empty() {
            return;
        }
        // After `cd` a word can be about any folder.
        let moves = self.tokens().any(|word| matches!(word, "cd" | "pushd"));
        let mut named: Vec<&Path> = Vec::new();
        for word in self.tokens().chain(output.words()) {
            let Some(path) = self.resolve(word) else { continue };
            let at = covers.over(&path);
            let elsewhere = covers.ending(word).filter(|_| moves || at.is_none());
            for cover in at.into_iter().chain(elsewhere) {
                if named.len() < NAMED_MAX && !named.contains(&cover) {
                    named.push(cover);
                }
            }
        }
        found.extend(named.into_iter().map(|cover| self.cover(cover)));
    }

    /// A covered path, by what the policy says of it.
    fn cover(&self, cover: &Path) -> Shortfall {
        let path = self.plan.workspace.join(cover);
        let asked = path.to_string_lossy();
        let decision = self
            .decided
            .read(|policy, query| decide(policy, &Query { what: What::Read(&asked), ..*query }));
        let decision = decision.ok();
        let rule = decision.as_ref().and_then(|decision| decision.rule.as_ref());
        let (why, next) = match decision.as_ref().map(|decision| decision.code) {
            Some(Code::KeyMaterial) => (
                "cannot be read: it is key material".to_owned(),
                "no policy gives key material to a command; use one made for tests".to_owned(),
            ),
            Some(Code::PathDenied) => (
                format!(
                    "reads as empty: it is denied by `{}`",
                    rule.map_or_else(String::new, |rule| rule.text.clone())
                ),
                "use a file that is not denied, such as an example of it".to_owned(),
            ),
            Some(Code::PathNotReadable) => (
                "reads as empty: it is not in `files.read` of the policy".to_owned(),
                "choose a policy that reads it".to_owned(),
            ),
            _ => (
                "is covered: it is a socket, a pipe, a device or an unreadable folder".to_owned(),
                "use a regular file of yours".to_owned(),
            ),
        };
        let entry = Shortfall::of_path(Kind::Covered, self.told(&path), why, next);
        entry.by(rule.map(|rule| rule.id.clone()))
    }

    /// Credentials of toolchains.
    fn hidden(&self, found: &mut Vec<Shortfall>) {
        let masks = self.plan.masks.iter().filter(|mask| {
            let mut lines = self.complaints.showing(Symptom::Denied);
            lines.any(|line| {
                self.paths(line.words()).any(|(_, path)| path.starts_with(&mask.target))
            })
        });
        found.extend(masks.take(NAMED_MAX).map(|mask| {
            let why = "is hidden: it can hold credentials".to_owned();
            let next = "get what needs them before the call, outside the sandbox".to_owned();
            Shortfall::of_path(Kind::HiddenCredentials, shown(&mask.target), why, next)
        }));
    }

    /// Scratch folders in which nothing can be executed.
    fn no_programs(&self, found: &mut Vec<Shortfall>) {
        let scratch = self.plan.tmpfs.iter().filter(|it| it.exec == TmpfsExec::NoExec);
        let named = scratch.filter(|it| {
            let mut lines = self.complaints.showing(Symptom::Denied);
            lines.any(|line| self.paths(line.words()).any(|(_, path)| path.starts_with(&it.target)))
        });
        found.extend(named.take(NAMED_MAX).map(|it| {
            let why = "takes files, and no program in it can be started".to_owned();
            let next = "put the program into the workspace or /tmp".to_owned();
            Shortfall::of_path(Kind::NoPrograms, shown(&it.target), why, next)
        }));
    }

    /// A path as it is told: below the workspace where it is.
    fn told(&self, path: &Path) -> String {
        match path.strip_prefix(&self.plan.workspace) {
            Ok(below) if !below.as_os_str().is_empty() => shown(below),
            Ok(_) | Err(_) => shown(path),
        }
    }
}

/// The covered paths of a workspace.
struct Covers<'p> {
    plan: &'p SandboxPlan,
    by_name: HashMap<&'p OsStr, Vec<&'p Path>>,
}

impl<'p> Covers<'p> {
    fn of(plan: &'p SandboxPlan) -> Self {
        let mut by_name: HashMap<&OsStr, Vec<&Path>> = HashMap::new();
        let overlay = plan.overlays.iter().any(|overlay| overlay.role == OverlayRole::Workspace);
        for path in plan.covered.iter().filter(|_| overlay) {
            if let Some(name) = path.file_name() {
                by_name.entry(name).or_default().push(path);
            }
        }
        Self { plan, by_name }
    }

    fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The cover at or above a path.
    fn over(&self, path: &Path) -> Option<&'p Path> {
        let below = path.strip_prefix(&self.plan.workspace).ok()?;
        below.ancestors().find_map(|path| self.plan.covered.get(path)).map(PathBuf::as_path)
    }

    /// Covers whose path ends with what a word says.
    fn ending(&self, word: &str) -> impl Iterator<Item = &'p Path> {
        let word = Path::new(word.strip_prefix("./").unwrap_or(word));
        let named = word.file_name().filter(|_| word.is_relative());
        let named = named.and_then(|name| self.by_name.get(name)).into_iter().flatten();
        named.filter(move |cover| cover.ends_with(word)).copied()
    }
}

/// Something of the host that is not in the sandbox.
fn not_shown(path: String) -> Shortfall {
    let why = "is outside the sandbox".to_owned();
    Shortfall::of_path(Kind::OutsideSandbox, path, why, REMEDY.to_owned())
}

/// The host that a word names as a URL does.
fn host(word: &str) -> Option<&str> {
    let (_, rest) = word.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.split(':').next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn a_host_is_what_stands_where_a_url_has_it() {
        for (word, expected) in [
            ("https://a.example/x", Some("a.example")),
            ("http://u:p@a.example:80?x", Some("a.example")),
            ("--url=ssh://git@a.example/r.git", Some("a.example")),
            ("a.example/x", None),
            ("http:///x", None),
            ("http://a b/", None),
            ("http://\u{1b}[31m/", None),
        ] {
            assert_eq!(host(word), expected, "{word}");
        }
    }
}
