//! What a project holds, as far as it counts: files by their bytes, git's own folder by its meaning.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Folder(u32),
    File(u32, Vec<u8>),
    Link(Vec<u8>),
    Special,
    /// What is only known to be there.
    There,
}

/// A project after a line.
#[derive(Clone, Debug)]
pub struct State {
    pub files: BTreeMap<String, Entry>,
    /// What git says, as one text for each question.
    pub git: BTreeMap<String, String>,
    /// The subjects of commits by their hashes.
    subjects: HashMap<String, String>,
}

/// What tools keep for themselves and make again.
const CACHES: [&str; 2] = ["__pycache__", ".pytest_cache"];

impl State {
    pub fn of(project: &Path) -> Self {
        let mut state =
            Self { files: BTreeMap::new(), git: BTreeMap::new(), subjects: HashMap::new() };
        let mut folders = vec![project.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                let short = path.strip_prefix(project).expect("below").to_string_lossy();
                let found = fs::symlink_metadata(&path).expect("there");
                let mode = found.permissions().mode() & 0o7777;
                let seen = if name == ".git" || CACHES.iter().any(|cache| name == *cache) {
                    continue;
                } else if found.is_symlink() {
                    let target = fs::read_link(&path).expect("a link");
                    Entry::Link(target.into_os_string().into_encoded_bytes())
                } else if found.is_file() {
                    Entry::File(mode, fs::read(&path).expect("a file"))
                } else if !found.is_dir() {
                    Entry::Special
                } else if name == "target" {
                    state.add_build(&short, &path);
                    Entry::There
                } else {
                    folders.push(path.clone());
                    Entry::Folder(mode)
                };
                state.files.insert(short.into_owned(), seen);
            }
        }
        if project.join(".git").exists() {
            state.add_git(project);
        }
        state
    }

    /// The names of what cargo built; the files below are full of hashes and times.
    fn add_build(&mut self, short: &str, target: &Path) {
        for profile in ["debug", "release"] {
            for entry in fs::read_dir(target.join(profile)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if !name.starts_with('.') {
                    self.files.insert(format!("{short}/{profile}/{name}"), Entry::There);
                }
            }
        }
    }

    fn add_git(&mut self, project: &Path) {
        let mut commits = commits(project);
        self.subjects =
            commits.iter().map(|(hash, it)| (hash.clone(), it.subject.clone())).collect();
        // A revert says which commit it takes back.
        for (_, commit) in &mut commits {
            commit.said = self.without_hashes(&commit.said);
        }
        let meanings = meanings(&commits);
        let name = |hash: &str| meanings.get(hash).cloned().unwrap_or_else(|| hash.to_owned());
        let format = "--format=%(refname) %(objectname) %(*objectname) %(contents:subject)";
        for line in git(project, &["for-each-ref", format]).lines() {
            let mut words = line.splitn(4, ' ');
            let reference = words.next().unwrap_or_default().to_owned();
            let (object, peeled) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let commit = if peeled.is_empty() { name(object) } else { name(peeled) };
            let kind = if peeled.is_empty() { "" } else { words.next().unwrap_or("") };
            // Notes are commits of a tree that names commits by their hashes.
            let commit = if reference.starts_with("refs/notes/") { String::new() } else { commit };
            self.git.insert(reference, format!("{commit} {kind}"));
        }
        let head = git(project, &["symbolic-ref", "-q", "HEAD"]);
        let head = match head.as_str() {
            "" => name(git(project, &["rev-parse", "-q", "--verify", "HEAD"]).trim()),
            branch => branch.to_owned(),
        };
        self.git.insert("HEAD".to_owned(), head);
        for words in [
            &["ls-files", "-s"][..],
            &["stash", "list", "--format=%gs"],
            &["config", "--local", "--list"],
            &["worktree", "list", "--porcelain"],
        ] {
            let text = self.without_hashes(&git(project, words));
            let sorted: BTreeSet<&str> = text.lines().collect();
            let sorted: Vec<&str> = sorted.into_iter().collect();
            self.git.insert(words[0].to_owned(), sorted.join("\n"));
        }
        for unfinished in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "rebase-merge", "BISECT_LOG"] {
            if project.join(".git").join(unfinished).exists() {
                self.git.insert(unfinished.to_owned(), String::new());
            }
        }
    }

    /// A text in which hashes of this project's commits are replaced by the commits' subjects.
    pub fn without_hashes(&self, text: &str) -> String {
        let (mut plain, mut word) = (String::with_capacity(text.len()), String::new());
        for letter in text.chars().chain(['\0']) {
            if letter.is_ascii_alphanumeric() {
                word.push(letter);
                continue;
            }
            match self.subject(&word) {
                Some(subject) => plain.extend(["<", subject, ">"]),
                None => plain.push_str(&word),
            }
            word.clear();
            plain.push(letter);
        }
        plain.pop();
        plain
    }

    fn subject(&self, word: &str) -> Option<&str> {
        let hash = word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut all = self.subjects.iter();
        all.find(|(full, _)| hash && full.starts_with(word)).map(|(_, subject)| subject.as_str())
    }
}

/// A commit as git shows it.
struct Commit {
    parents: Vec<String>,
    said: String,
    subject: String,
}

/// Every commit that a reference or its history leads to.
fn commits(project: &Path) -> Vec<(String, Commit)> {
    let format = "--format=%H%x1f%P%x1f%T %an %ae %B%x1f%s%x1e";
    let all = git(project, &["log", "--all", "--reflog", "--topo-order", "--reverse", format]);
    let commit = |text: &str| {
        let mut parts = text.trim_start().split('\x1f').map(str::to_owned);
        let hash = parts.next().filter(|hash| !hash.is_empty())?;
        let parents = parts.next()?.split_whitespace().map(str::to_owned).collect();
        Some((hash, Commit { parents, said: parts.next()?, subject: parts.next()? }))
    };
    all.split('\x1e').filter_map(commit).collect()
}

/// For each commit a text that does not depend on time: what it says and holds, and the same of its parents.
fn meanings(commits: &[(String, Commit)]) -> HashMap<String, String> {
    let mut meanings: HashMap<String, String> = HashMap::new();
    for (hash, commit) in commits {
        let meaning = |parent: &String| meanings.get(parent).unwrap_or(parent).clone();
        let parents: Vec<String> = commit.parents.iter().map(meaning).collect();
        let text = format!("{}({})", commit.said, parents.join(", "));
        meanings.insert(hash.clone(), text);
    }
    meanings
}

/// What git says about a project, whatever its configuration would make it run.
pub fn git(project: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null"]);
    command.args(["-c", "safe.directory=*", "--no-pager"]).args(words);
    command
        .current_dir(project)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_CONFIG_SYSTEM", "/dev/null").stdin(Stdio::null());
    String::from_utf8_lossy(&command.output().expect("git").stdout).into_owned()
}
