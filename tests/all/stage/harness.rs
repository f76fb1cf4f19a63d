//! A project of a caller, commands that write in it, and a host that then looks at what they left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Home, Ran, needs_engine};

/// A caller with a repository as workspace, and a file that no host program may make.
pub struct Project {
    pub home: Home,
}

impl Project {
    /// A repository with one commit, and a denied file that git ignores.
    pub fn new() -> Self {
        needs_engine();
        let project = Self { home: Home::new() };
        fs::remove_dir_all(project.file(".runner")).unwrap();
        for folder in ["src", "build"] {
            fs::create_dir(project.file(folder)).unwrap();
        }
        project.write("src/a", "original\n");
        project.write(".gitignore", ".env\nbuild\n");
        project.write(".env", "SECRET=1\n");
        project.home.git(&["init", "-q", "-b", "main"]);
        project.home.git(&["add", "-A"]);
        project.home.git(&["commit", "-q", "-m", "first"]);
        project
    }

    /// A path in the workspace.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path("project").join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn exists(&self, name: &str) -> bool {
        self.file(name).symlink_metadata().is_ok()
    }

    /// The file that a host program makes if it runs what a command left.
    pub fn canary(&self) -> PathBuf {
        self.home.path("canary")
    }

    /// The words that run a script. The script is no word of the command, so that no policy reads it, and it lies
    /// outside of what is compared.
    fn words(&self, script: &str) -> [String; 3] {
        let name = "build/script.sh";
        self.write(name, script);
        let run =
            "import subprocess; raise SystemExit(subprocess.call(['bash', 'build/script.sh']))";
        ["python3".to_owned(), "-c".to_owned(), run.to_owned()]
    }

    /// The program, about to run this script under a policy.
    pub fn command(&self, policy: &str, script: &str) -> Command {
        let mut command = self.home.runner();
        command.args(["exec", "--json", "--policy", policy, "--"]).args(self.words(script));
        command
    }

    /// Runs a script under a policy; what came of it.
    pub fn sh(&self, policy: &str, script: &str) -> Value {
        let ran = Ran::from(self.command(policy, script).output().expect("the program starts"));
        let result = ran.json();
        assert!(!result["changes"].is_null(), "{result:#} {}", ran.err);
        result
    }

    /// The records are as they were written.
    pub fn assert_sound(&self) {
        let ran = self.home.run(["audit", "verify"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    }
}

/// The paths that a result says were held back.
pub fn held(result: &Value) -> Vec<&str> {
    let held = result["changes"]["held"].as_array().expect("a list");
    held.iter().map(|one| one["path"].as_str().expect("a path")).collect()
}

/// The reason for one path by kind.
pub fn why<'a>(result: &'a Value, path: &str) -> &'a str {
    why_of(&result["changes"], path)
}

/// The same, of what `runner stage show` tells.
pub fn why_of<'a>(shown: &'a Value, path: &str) -> &'a str {
    let held = shown["held"].as_array().expect("a list");
    let one = held.iter().find(|one| one["path"] == path);
    one.unwrap_or_else(|| panic!("{path} is not held: {held:#?}"))["why"].as_str().expect("a kind")
}

/// Runs a program of the host in a folder. Its end does not matter: what it left behind does.
pub fn host(folder: &Path, home: &Path, words: &[&str]) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).env("HOME", home);
    for (name, value) in [
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@b.example"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@b.example"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
        ("GIT_EDITOR", "true"),
        ("PAGER", "cat"),
    ] {
        command.env(name, value);
    }
    command.env_remove("XDG_CONFIG_HOME").stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("{words:?}: {error}"));
}

/// Every folder below one, but those of git's own data.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let mut all = vec![root.to_owned()];
    let mut at = 0;
    while let Some(folder) = all.get(at).cloned() {
        at += 1;
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let data =
                ["objects", "refs", "logs", "info"].iter().any(|it| entry.file_name() == *it);
            if entry.file_type().unwrap().is_dir() && !data {
                all.push(entry.path());
            }
        }
    }
    all
}

/// What a person does in a project without thinking: git in every folder, a shell whose home or folder it is, and
/// hooks of shells that look for files on the way up.
pub fn look_around(root: &Path) {
    for folder in folders(root) {
        for words in [
            &["git", "status"][..],
            &["git", "log", "-1"],
            &["git", "diff"],
            &["git", "commit", "--allow-empty", "-q", "-a", "-m", "x"],
        ] {
            host(&folder, &root.join("../nobody"), words);
        }
        shells(&folder);
    }
}

/// Shells that start with this folder as home, and a hook that is led by `.envrc`.
pub fn shells(folder: &Path) {
    let names = [".bashrc", ".bash_profile", ".profile", ".gitconfig", ".config"];
    if names.iter().any(|name| folder.join(name).symlink_metadata().is_ok()) {
        host(folder, folder, &["bash", "-i", "-c", "true"]);
        host(folder, folder, &["bash", "-l", "-c", "true"]);
        host(folder, folder, &["git", "status"]);
    }
    if folder.join(".envrc").exists() {
        host(folder, folder, &["bash", "-c", ". ./.envrc"]);
    }
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg("--").arg(from).arg(to).status();
    assert!(done.expect("cp").success());
}

/// Everything below a folder but what `skip` says: path, mode, content or target.
pub fn tree(root: &Path, skip: &dyn Fn(&str) -> bool) -> Vec<(String, u32, Vec<u8>)> {
    let (mut all, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
            if skip(&name) {
                continue;
            }
            let found = fs::symlink_metadata(&path).expect("there");
            let content = if found.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else if found.is_file() {
                fs::read(&path).expect("a file")
            } else {
                Vec::new()
            };
            if found.is_dir() {
                folders.push(path);
            }
            all.push((name, found.permissions().mode() & 0o7777, content));
        }
    }
    all.sort();
    all
}

/// Asserts that two trees are the same, and names the first that differ.
pub fn assert_same(one: &[(String, u32, Vec<u8>)], two: &[(String, u32, Vec<u8>)], what: &str) {
    let shown = |rows: &[(String, u32, Vec<u8>)], others: &[(String, u32, Vec<u8>)]| {
        let mut only: Vec<String> = Vec::new();
        for row in rows.iter().filter(|row| !others.contains(row)).take(12) {
            let start = String::from_utf8_lossy(&row.2[..row.2.len().min(60)]).into_owned();
            only.push(format!("{} {:o} {start:?}", row.0, row.1));
        }
        only
    };
    if one != two {
        panic!("{what}: left {:#?}, right {:#?}", shown(one, two), shown(two, one));
    }
}

/// Numbers that look random and are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % end as u64).expect("a small number")
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
