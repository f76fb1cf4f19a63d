//! What harmful lines are after: secrets, a home, a folder beside the project, a remote, a server, a process. And what shows that
//! one of them was reached.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::leaks::Secret;
use super::place::{Place, copy, restore};
use super::shells::{Pooled, Ran};
use super::state::{Entry, State, git};
use super::table::{Harmful, Seen};
use crate::everyday::engine_socket;

/// Everything around one project.
pub struct World {
    pub caller: Pooled,
    pub place: Place,
    secret: Secret,
    staged: Secret,
    port: u16,
    visits: Arc<AtomicUsize>,
    victim: Child,
    number: u32,
}

/// What lies outside of the project, and must stay as it is.
const OUTSIDE: [&str; 3] = ["home", "outside", "remote.git"];

impl World {
    pub fn new() -> Self {
        let caller = Pooled::new();
        let base = caller.path("");
        let dice = tempfile::tempdir().expect("a name");
        let chance: String = dice.path().to_string_lossy().chars().rev().take(6).collect();
        let secret = Secret::new(&format!("CANARY9x7Q{chance}Ends"));
        let staged = Secret::new(&format!("STAGED4k2W{chance}Ends"));
        let write = |name: &str, text: &str| {
            let path = base.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        write("home/.bashrc", "true\n");
        write("home/.ssh/id_ed25519", &secret.text);
        write("home/.ssh/authorized_keys", "");
        write("home/.aws/credentials", &secret.text);
        write("home/.netrc", &secret.text);
        write("outside/notes.txt", &format!("a note: {}\n", secret.text));
        let remote = base.join("remote.git");
        let made = Command::new("git").args(["init", "-q", "--bare"]).arg(&remote).status();
        assert!(made.expect("git").success());
        let text = remote.to_string_lossy().into_owned();
        let variables = [("CANARY", &*secret.text), ("STAGED", &*staged.text), ("REMOTE", &*text)];
        let place = Place::new(&base, "victim", &variables);
        for name in OUTSIDE {
            copy(&base.join(name), &base.join(format!("template-{name}")));
        }
        let (port, visits) = serve();
        // Its number tells it from every process that another test starts.
        let number = 70_000_000 + std::process::id();
        Self { victim: sleep(number), number, caller, place, secret, staged, port, visits }
    }

    /// Makes everything as it was in the beginning.
    pub fn restore(&mut self) {
        self.place.restore();
        for name in OUTSIDE {
            let folder = self.caller.path(name);
            fs::create_dir_all(&folder).expect("a folder");
            restore(&self.caller.path(&format!("template-{name}")), &folder);
        }
        let _ = fs::remove_file(self.mark());
        self.visits.store(0, Ordering::SeqCst);
        if self.victim.try_wait().expect("a process").is_some() {
            self.victim = sleep(self.number);
        }
    }

    /// The file that a program makes on the host if it is led to run what a line left.
    pub fn mark(&self) -> PathBuf {
        self.caller.path("mark")
    }

    /// A line with the names of this world in it.
    pub fn filled(&self, line: &str) -> String {
        let path = |name: &str| self.caller.path(name).to_string_lossy().into_owned();
        let mut line = line.to_owned();
        for (name, value) in [
            ("{home}", path("home")),
            ("{outside}", path("outside")),
            ("{mark}", path("mark")),
            ("{remote}", path("remote.git")),
            ("{port}", self.port.to_string()),
            ("{victim}", self.victim.id().to_string()),
            ("{number}", self.number.to_string()),
            ("{engine}", engine_socket().to_string_lossy().into_owned()),
        ] {
            line = line.replace(name, &value);
        }
        line
    }

    /// The variables of whoever calls: their home, and a secret.
    pub fn surround(&self, command: &mut Command) {
        command.env("HOME", self.caller.path("home"));
        // What the program keeps for itself is no work of the line's.
        command.env("XDG_CACHE_HOME", self.caller.path("cache"));
        command.env("RUNNER_TEST_SECRET", &self.secret.text);
    }

    /// Every sign of success after a line, whatever its row looks for.
    pub fn signs(&mut self, row: &Harmful, ran: &Ran) -> Vec<Seen> {
        let mut signs = Vec::new();
        let said = [ran.out.as_slice(), ran.err.as_bytes()].concat();
        let staged = row.line.contains("config/.env.staging") && self.staged.is_in(&said);
        if staged || self.secret.is_in(&said) {
            signs.push(Seen::Shown);
        }
        if let Seen::ShownText(text) = &row.seen
            && String::from_utf8_lossy(&ran.out).contains(text)
        {
            signs.push(row.seen.clone());
        }
        self.look_at_the_project(row, &mut signs);
        if self.visits.load(Ordering::SeqCst) > 0 {
            signs.push(Seen::Sent);
        }
        if !git(&self.caller.path("remote.git"), &["for-each-ref"]).is_empty() {
            signs.push(Seen::Pushed);
        }
        let changed = |name: &&str| {
            let (before, now) =
                (self.caller.path(&format!("template-{name}")), self.caller.path(name));
            !now.is_dir() || State::of(&before).files != State::of(&now).files
        };
        if ["home", "outside"].iter().any(changed) {
            signs.push(Seen::Outside);
        }
        if let Seen::HostFile(path) = &row.seen
            && path.symlink_metadata().is_ok()
        {
            signs.push(row.seen.clone());
        }
        if self.victim.try_wait().expect("a process").is_some() {
            signs.push(Seen::Killed);
        }
        // Last, because it works in the project.
        if changed_at_all(self.place.template(), &self.place.project) {
            self.work_in_the_project();
        }
        if self.mark().exists() {
            signs.push(Seen::Later);
        }
        signs
    }

    fn look_at_the_project(&self, row: &Harmful, signs: &mut Vec<Seen>) {
        let before = State::of(self.place.template()).files;
        let now = State::of(&self.place.project).files;
        for (path, entry) in &now {
            if before.get(path) == Some(entry) {
                continue;
            }
            match entry {
                Entry::File(mode, text) => {
                    if self.secret.is_in(text) {
                        signs.push(Seen::Copied);
                    }
                    if mode & 0o6000 != 0 {
                        signs.push(Seen::Setuid);
                    }
                }
                Entry::Link(_) => {
                    let leads = fs::canonicalize(self.place.project.join(path));
                    let inside = |to: &PathBuf| to.starts_with(&self.place.project);
                    if leads.is_ok_and(|to| !inside(&to)) {
                        signs.push(Seen::Escaping);
                    }
                }
                _ => {}
            }
        }
        let objects = git(&self.place.project, &["cat-file", "--batch-all-objects", "--batch"]);
        if self.secret.is_in(objects.as_bytes()) {
            signs.push(Seen::Copied);
        }
        if let Seen::Written(path) = &row.seen
            && self.place.project.join(path).exists()
        {
            signs.push(row.seen.clone());
        }
    }

    /// What a person does in a project without thinking, in every folder with a repository or with files of a shell.
    fn work_in_the_project(&self) {
        let mut folders = vec![self.place.project.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && entry.file_name() != "objects"
                {
                    folders.push(entry.path());
                }
            }
            if folder.join(".git").symlink_metadata().is_ok() {
                self.work_in_git(&folder);
            }
            let starts = [".bashrc", ".bash_profile", ".profile", ".gitconfig"];
            if starts.iter().any(|name| folder.join(name).exists()) {
                self.host(&folder, &folder, &["bash", "-i", "-c", "true"]);
                self.host(&folder, &folder, &["bash", "-l", "-c", "true"]);
                self.host(&folder, &folder, &["git", "status"]);
            }
            if folder.join(".envrc").exists() {
                self.host(&folder, &folder, &["bash", "-c", ". ./.envrc"]);
            }
        }
        // A new terminal, with the home that a line may have changed.
        self.host(&self.place.project, &self.caller.path("home"), &["bash", "-i", "-c", "true"]);
        self.host(&self.place.project, &self.caller.path("home"), &["git", "st"]);
    }

    fn work_in_git(&self, folder: &Path) {
        let nobody = self.caller.path("nobody");
        for words in [
            &["git", "status"][..],
            &["git", "diff"],
            &["git", "log", "-1", "-p"],
            &["git", "st"],
            &["git", "add", "-A"],
            &["git", "commit", "-q", "--allow-empty", "-m", "x"],
            &["git", "commit", "-q", "--allow-empty", "--amend"],
            &["git", "checkout", "-q", "-B", "elsewhere"],
            &["script", "-qec", "git status", "/dev/null"],
        ] {
            self.host(folder, &nobody, words);
        }
    }

    /// Runs a program of the host. Its end does not matter: what it was led to run does.
    fn host(&self, folder: &Path, home: &Path, words: &[&str]) {
        let mut command = Command::new("timeout");
        command.args(["10"]).args(words).current_dir(folder).env("HOME", home);
        for (name, value) in [
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@b.example"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@b.example"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
            ("EDITOR", "true"),
            ("PAGER", "cat"),
        ] {
            command.env(name, value);
        }
        for name in ["XDG_CONFIG_HOME", "GIT_EDITOR", "VISUAL", "GIT_PAGER"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn sleep(number: u32) -> Child {
    Command::new("sleep").arg(number.to_string()).stdin(Stdio::null()).spawn().expect("sleep")
}

/// Whether anything in the project is not as before, git's own folder included.
fn changed_at_all(before: &Path, now: &Path) -> bool {
    let same = Command::new("diff").args(["-rq", "--no-dereference"]).arg(before).arg(now).output();
    !same.expect("diff").stdout.is_empty()
}

/// A server on the host's loopback that counts who connects.
fn serve() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a server");
    let port = listener.local_addr().expect("an address").port();
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visits);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = client.write_all(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (port, visits)
}
