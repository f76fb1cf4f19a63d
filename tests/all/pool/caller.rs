//! A caller whose sandboxes wait, what there is of theirs, and how tests wait until it is gone.

use std::fs;
use std::time::{Duration, Instant};

use runner::engine::{SandboxId, State};
use rustix::process::Pid;
use serde_json::Value;

use crate::aborted::engine;
use crate::engine::block_on;
use crate::support::{Home, Ran};

/// How long what is left may stay, while somebody looks for it.
const LEFT: Duration = Duration::from_secs(60);

/// A caller whose sandboxes wait; `Home` ends them when it goes.
pub struct Caller(pub Home);

impl Caller {
    pub fn new(pool: &str) -> Self {
        let home = Home::new();
        home.config(&format!("pool: {{ {pool} }}\napprovals: {{ withoutTerminal: true }}\n"));
        Self(home)
    }

    pub fn exec(&self, words: &[&str]) -> Ran {
        let mut all = vec!["exec", "--json=full"];
        all.extend(words);
        self.0.run(all)
    }

    /// Runs a command and says whether its sandbox had waited.
    pub fn warm(&self, words: &[&str]) -> bool {
        let ran = self.exec(words);
        let result = ran.json();
        assert_eq!(result["status"], "completed", "{result:#}");
        result["metadata"]["warm"].as_bool().unwrap()
    }

    pub fn status(&self) -> Value {
        self.0.run(["pool", "status", "--json=full"]).json()
    }

    pub fn waiting(&self) -> Vec<Value> {
        self.status()["waiting"].as_array().unwrap().clone()
    }

    /// Waits until this many sandboxes wait and none is being made.
    pub fn settled(&self, count: usize) -> Vec<Value> {
        self.until(|waiting| waiting == count)
    }

    /// Waits until none is being made, and as many wait as are expected.
    pub fn until(&self, expected: impl Fn(usize) -> bool) -> Vec<Value> {
        for _ in 0..600 {
            let status = self.status();
            let waiting = status["waiting"].as_array().unwrap();
            if expected(waiting.len()) && status["being_made"] == 0 {
                return waiting.clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("other numbers should wait: {:#}", self.status());
    }

    /// A policy beside the project, by its path.
    pub fn policy(&self, name: &str, text: &str) -> String {
        let path = self.0.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.path(&format!("project/{name}"))
    }
}

/// The words of two calls that succeed only where nobody was before: the sandbox of the first only reads, and is taken on a
/// guess; that of the second can write.
pub fn used_once(caller: &Caller) -> [[String; 6]; 2] {
    let look = "policy: 1\nname: look\nextends: [readonly]\nsandbox: { limits: { wall: 10m } }\ncommands:\n  - { id: look, allow: \"perl ...\", effects: [read, code] }\n";
    let look = caller.policy("look.yml", look);
    let script = "mkdir '/tmp/used' or die $!; select undef, undef, undef, 0.05";
    [look.as_str(), "contained"]
        .map(|policy| ["-p", policy, "--", "perl", "-e", script].map(str::to_owned))
}

pub fn sandbox(entry: &Value) -> SandboxId {
    SandboxId::new(entry["sandbox"].as_str().unwrap().to_owned())
}

pub fn state(id: &SandboxId) -> Option<State> {
    block_on(async {
        let engine = crate::engine::engine().await;
        let found = engine.list(None).await.unwrap();
        found.into_iter().find(|found| found.id == *id).map(|found| found.state)
    })
}

pub fn until_gone(id: &SandboxId) -> Duration {
    let begun = Instant::now();
    while state(id).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{id} is still there");
        std::thread::sleep(Duration::from_millis(100));
    }
    begun.elapsed()
}

/// The files of the pool with this ending.
pub fn files(caller: &Caller, ending: &str) -> Vec<std::path::PathBuf> {
    let pool = fs::read_dir(caller.0.path("state/runner/pool")).unwrap();
    let paths = pool.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// All processes that a caller has: calls, and the watchdogs that see to their end and make sandboxes. Of a call's
/// variables a watchdog keeps `HOME`. Only root sees those of a program that may not be inspected; anybody sees the
/// words of a watchdog, which name its call's ledger.
pub fn processes(caller: &Caller) -> Vec<Pid> {
    let home = caller.0.path("").display().to_string();
    let variable = format!("HOME={home}");
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let texts = |name: &str| -> Vec<String> {
            let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let texts = bytes.split(|byte| *byte == 0);
            texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
        };
        let words = texts("cmdline");
        let watchdog = words.get(1).is_some_and(|word| word.starts_with("--internal-watchdog"))
            && words.iter().any(|word| word.starts_with(&home));
        let mine = watchdog || texts("environ").contains(&variable);
        mine.then(|| Pid::from_raw(pid)).flatten()
    });
    all.collect()
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LEFT, "it never was so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All containers that show something of a caller's.
pub fn sandboxes(caller: &Caller) -> Vec<String> {
    let home = caller.0.path("").display().to_string();
    let listed = engine("/containers/json?all=1");
    let mounts = |one: &Value| one["Mounts"].as_array().cloned().unwrap_or_default();
    let source = |mount: &Value| mount["Source"].as_str().map(str::to_owned);
    let mine = |one: &&Value| {
        mounts(one).iter().filter_map(source).any(|source| source.starts_with(&home))
    };
    let found = listed.as_array().expect("a list").iter().filter(mine);
    found.map(|one| format!("{} {}", one["Names"], one["State"])).collect()
}

/// The files of a caller's pool, but for its lock.
fn left_in_pool(caller: &Caller) -> Vec<String> {
    let folder = fs::read_dir(caller.0.path("state/runner/pool")).into_iter().flatten();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

/// Ends what waits, and waits until nothing is there that a caller had.
pub fn until_nothing_is_left(caller: &Caller) {
    // A watchdog that has yet to make a sandbox would add it after the drain.
    until("all watchdogs have ended", || processes(caller).is_empty());
    assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
    let begun = Instant::now();
    loop {
        // The engine may still make what a dead one has asked for.
        assert_eq!(caller.0.run(["gc"]).code, Some(0));
        let left = (sandboxes(caller), left_in_pool(caller), processes(caller));
        if left == (Vec::new(), Vec::new(), Vec::new()) {
            break;
        }
        assert!(begun.elapsed() < LEFT, "{left:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("all was gone after {:?}", begun.elapsed());
}
