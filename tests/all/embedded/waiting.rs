//! Sandboxes of tools that wait on the embedded engine: held by a process of their own, for one call of their own user.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use runner::engine::{self, Address, Engine, EngineName};
use runner::ids::CallId;
use runner::sys;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::traces::groups;
use crate::engine::block_on;
use crate::everyday::caller::Caller as Person;
use crate::pool::{Caller, files, processes, until};
use crate::support::{Ran, choose_engine, needs_root};

/// Someone whom no file belongs to.
const NOBODY: u32 = 65_534;

/// A tool that succeeds in a sandbox that no call used before, and asks the broker once.
const ONCE: &str = "name: once\ndescription: Looks once.\nschema: { type: object }\ncode: |\n  export async function execute(_: {}, { platform }: ToolContext) {\n    const { existsSync, writeFileSync } = await import('node:fs');\n    const used = existsSync('/tmp/used');\n    writeFileSync('/tmp/used', '');\n    return { used, there: await platform.fs.exists('f0') };\n  }\n";

/// A caller with that tool, on this engine.
fn caller(pool: &str) -> Caller {
    choose_engine(EngineName::Embedded);
    let caller = Caller::new(pool);
    fs::create_dir_all(caller.file(".runner/tools")).unwrap();
    fs::write(caller.file(".runner/tools/once.yml"), ONCE).unwrap();
    fs::write(caller.file("f0"), "").unwrap();
    caller
}

const CALL: [&str; 5] = ["tool", "run", "once", "--yes", "--json=full"];

/// Runs the tool, which goes well; what the result says of the call.
fn call(caller: &Caller) -> Value {
    called(&caller.0.run(CALL))
}

fn called(ran: &Ran) -> Value {
    let result = ran.json();
    assert_eq!(result["value"], json!({ "used": false, "there": true }), "{result:#}");
    result["metadata"].clone()
}

fn is_warm(caller: &Caller) -> bool {
    call(caller)["warm"].as_bool().unwrap()
}

/// Has one wait, and gives what holds it.
fn warmed(caller: &Caller) -> Held {
    let ran = caller.0.run(["pool", "warm", "--tool", "once", "--json"]);
    assert_eq!(ran.json()["made"], 1, "{} {}", ran.out, ran.err);
    held(caller, &caller.settled(1)[0])
}

/// The folder of a caller's sockets.
fn folder(caller: &Caller) -> PathBuf {
    caller.0.path("state/runner/waiting")
}

/// The engine as another process of the caller finds it.
fn engine(caller: &Caller) -> Arc<dyn Engine> {
    let address: Address = format!("embedded:{}", folder(caller).display()).parse().unwrap();
    block_on(async { engine::at(&address, None).await.unwrap() })
}

/// A sandbox that waits, and its processes.
struct Held {
    label: CallId,
    socket: PathBuf,
    holder: Pid,
    /// Launcher, guest and Node, in this order, once Node was started.
    below: Vec<Pid>,
}

fn held(caller: &Caller, entry: &Value) -> Held {
    let label = CallId::new(entry["sandbox"].as_str().unwrap()).unwrap();
    let socket = folder(caller).join(format!("{label}.socket"));
    // A client that says nothing is no harm.
    let peer = sys::peer(UnixStream::connect(&socket).unwrap()).unwrap();
    let holder = Pid::from_raw(peer.pid.unwrap().cast_signed()).unwrap();
    let mut below = Vec::new();
    until("Node is started", || {
        below = descend(holder);
        below.len() == 3
    });
    Held { label, socket, holder, below }
}

/// The only child of each, from this process on.
fn descend(from: Pid) -> Vec<Pid> {
    let child = |pid: &Pid| {
        let pid = pid.as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
    };
    std::iter::successors(child(&from), child).collect()
}

fn lives(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // A zombie that nobody waited for is dead.
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

impl Held {
    /// Waits until no process and no control group of it is left.
    fn until_gone(&self) {
        until("its processes are gone", || {
            !self.below.iter().chain([&self.holder]).any(|pid| lives(*pid))
        });
        until("its control groups are gone", || self.groups().is_empty());
    }

    fn groups(&self) -> Vec<PathBuf> {
        let name = format!("runner-sandbox-{}", self.label);
        groups().into_iter().filter(|group| group.ends_with(&name)).collect()
    }

    /// Waits until what it had in the folder is gone too.
    fn until_nothing_is_left(&self) {
        self.until_gone();
        until("its files are gone", || {
            !self.socket.exists() && !self.socket.with_extension("holder").exists()
        });
    }
}

fn file(pid: Pid, name: &str) -> Vec<u8> {
    fs::read(format!("/proc/{}/{name}", pid.as_raw_nonzero())).unwrap()
}

/// THREATS rows 15 and 41, and the order of a call's end: who waits for the end of our output gets it at once.
#[test]
fn a_tool_waits_with_node_started_and_nothing_of_the_caller_in_it() {
    needs_root();
    const CANARY: &str = "canary-15-embedded";
    let caller = caller("size: 2");
    fs::write(caller.file("f0"), CANARY).unwrap();
    let warm = || {
        let mut command = caller.0.runner();
        command.env("LANG", "C.UTF-8").env("SECRET_TOKEN", CANARY).args(CALL);
        // It reads until the last copy of the output is closed.
        called(&Ran::from(command.output().unwrap()))["warm"].as_bool().unwrap()
    };
    assert!(!warm());
    for _ in 0..3 {
        let entry = caller.settled(1).remove(0);
        assert_eq!((&entry["for"], &entry["tool"]), (&"tool".into(), &"once".into()));
        let held = held(&caller, &entry);
        for pid in held.below.iter().chain([&held.holder]) {
            for name in ["cmdline", "environ"] {
                let text = String::from_utf8_lossy(&file(*pid, name)).into_owned();
                assert!(!text.contains(CANARY), "{name}: {text}");
            }
        }
        assert_eq!(file(held.holder, "environ"), b"", "the holder has no variables");
        let words = String::from_utf8(file(held.below[2], "cmdline")).unwrap();
        assert!(words.contains("runtime/main.mjs"), "{words}");
        holds_nothing_of_the_callers(held.holder);
        assert!(warm());
        held.until_nothing_is_left();
    }
}

/// No terminal, no folder, no pipe and no file but its own.
fn holds_nothing_of_the_callers(holder: Pid) {
    let proc = PathBuf::from(format!("/proc/{}", holder.as_raw_nonzero()));
    assert_eq!(fs::read_link(proc.join("cwd")).unwrap(), Path::new("/"));
    let stat = String::from_utf8(file(holder, "stat")).unwrap();
    let fields: Vec<i32> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .skip(2)
        .take(3)
        .map(|field| field.parse().unwrap())
        .collect();
    let number = holder.as_raw_nonzero().get();
    assert_eq!(fields, [number, number, 0], "group and session are its own; no terminal");
    for entry in fs::read_dir(proc.join("fd")).unwrap().flatten() {
        let Ok(to) = fs::read_link(entry.path()) else { continue };
        let to = to.to_str().unwrap();
        let own = to == "/dev/null"
            || to.starts_with("socket:")
            || to.contains("[pidfd]")
            || to.contains("/runner/waiting")
            || to.contains("/engine/guest-");
        assert!(own, "it has {to} open");
    }
}

#[test]
fn what_waits_ends_by_its_time_by_a_drain_and_by_gc() {
    let caller = caller("size: 3, ttl: 4s");
    let held = warmed(&caller);
    assert!(!held.groups().is_empty() || groups().is_empty(), "it waits in its control group");
    held.until_nothing_is_left();
    assert_eq!(caller.waiting(), Vec::<Value>::new());
    caller.0.config("pool: { size: 3 }\napprovals: { withoutTerminal: true }\n");

    let held = warmed(&caller);
    assert_eq!(caller.0.run(["pool", "drain", "--json"]).json()["ended"], 1);
    held.until_nothing_is_left();

    // As a call leaves it that is killed when it has claimed, and not attached.
    let held = warmed(&caller);
    let entry = files(&caller, "waiting").remove(0);
    fs::rename(&entry, entry.with_file_name(format!("{}.claimed", held.label))).unwrap();
    assert_eq!(caller.0.run(["gc"]).code, Some(0));
    held.until_nothing_is_left();
    assert_eq!(files(&caller, "claimed"), Vec::<PathBuf>::new());
}

#[test]
fn a_command_makes_its_own_and_that_is_said() {
    let caller = caller("size: 2");
    for _ in 0..2 {
        assert!(!caller.warm(&["--", "true"]));
    }
    let warmed = caller.0.run(["pool", "warm", "--json"]).json();
    assert_eq!(warmed["made"], 0, "{warmed}");
    assert!(warmed["note"].as_str().unwrap().contains("embedded"), "{warmed}");
    assert_eq!(caller.waiting(), Vec::<Value>::new());
    assert!(processes(&caller).is_empty(), "no watchdog watches over what ends by itself");
}

#[test]
fn a_killed_holder_takes_its_sandbox_along_and_the_next_call_makes_its_own() {
    let caller = caller("size: 2");
    for signal in [Signal::KILL, Signal::TERM] {
        let held = warmed(&caller);
        kill_process(held.holder, signal).unwrap();
        held.until_gone();
        assert!(held.socket.exists(), "its socket is left, with nobody behind it");
        let metadata = call(&caller);
        assert_eq!((&metadata["warm"], &metadata["discarded"]), (&false.into(), &1.into()));
        // The next one was made behind that call; the files of the dead went then.
        caller.settled(1);
        held.until_nothing_is_left();
        assert!(is_warm(&caller), "the control");
        caller.settled(1);
        caller.0.run(["pool", "drain"]);
    }
    // What waits in a sandbox may die too; its guest ends then, and its holder.
    let held = warmed(&caller);
    kill_process(held.below[2], Signal::KILL).unwrap();
    held.until_nothing_is_left();
    assert!(!is_warm(&caller));
}

/// THREATS row 41: one of many gets it, whatever they do.
#[test]
fn of_many_clients_one_gets_it_and_it_ends_with_that_one() {
    let caller = caller("size: 2");
    let held = warmed(&caller);
    let engine = engine(&caller);
    let got = block_on(async {
        let all = (0..12).map(|_| {
            let (engine, label) = (Arc::clone(&engine), held.label.clone());
            tokio::spawn(async move { engine.attach(&label).await.ok() })
        });
        let mut got = Vec::new();
        for one in all.collect::<Vec<_>>() {
            got.extend(one.await.unwrap());
        }
        got
    });
    assert_eq!(got.len(), 1);
    until("its holder has ended", || !lives(held.holder));
    assert!(held.below.iter().all(|pid| lives(*pid)), "it waits for that one's first word");
    drop(got);
    held.until_nothing_is_left();
}

#[test]
fn a_client_that_dies_with_it_or_says_nothing_or_nonsense_harms_no_other() {
    let caller = caller("size: 2");
    let held = warmed(&caller);
    let connect = || UnixStream::connect(&held.socket).unwrap();
    let silent: Vec<UnixStream> = (0..20).map(|_| connect()).collect();
    for nonsense in [&b"x"[..], &[0; 4096], b"\xff"] {
        // It may be let go before it has said all.
        let _ = connect().write_all(nonsense);
    }
    assert!(is_warm(&caller), "all of them stand before it");
    drop(silent);
    held.until_nothing_is_left();
    caller.settled(1);
    caller.0.run(["pool", "drain"]);
    // Claimed, and gone with the answer unread.
    let held = warmed(&caller);
    UnixStream::connect(&held.socket).unwrap().write_all(b"t").unwrap();
    held.until_nothing_is_left();
    assert!(!is_warm(&caller), "it is not used again");
}

/// A program of another user, in Python.
fn as_nobody(script: &str, argument: &Path) -> Child {
    let user = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--", "python3", "-c"]);
    command.arg(script).arg(argument).env_clear().env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Says what came of asking for a sandbox.
const ASK: &str = "import socket, sys, array\ns = socket.socket(socket.AF_UNIX)\ntry:\n  s.connect(sys.argv[1])\nexcept PermissionError:\n  print('forbidden'); sys.exit()\ntry:\n  s.sendall(b't')\n  bytes, rights, _, _ = s.recvmsg(16, 256)\nexcept OSError:\n  bytes, rights = b'', []\nprint('got', len(bytes), len(rights))";

#[test]
fn another_user_gets_nothing_even_if_the_folder_is_open() {
    needs_root();
    let caller = caller("size: 2");
    let held = warmed(&caller);
    let ask = || Ran::from(as_nobody(ASK, &held.socket).wait_with_output().unwrap()).out;
    assert_eq!(ask(), "forbidden\n", "the folder is shut");
    assert_eq!(fs::metadata(&held.socket).unwrap().mode() & 0o777, 0o600);
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let home = caller.0.path("");
    for path in held.socket.ancestors().take_while(|path| path.starts_with(&home)) {
        // As open as it can be without letting others write into our records.
        mode(path, if path == held.socket { 0o777 } else { 0o711 });
    }
    assert_eq!(ask(), "got 0 0\n");
    assert!(lives(held.holder) && held.below.iter().all(|pid| lives(*pid)));
    // A folder that others may use is not used by us either.
    assert!(!is_warm(&caller));
    mode(&folder(&caller), 0o700);
    held.until_gone_or(&caller);
}

impl Held {
    /// The call that did not dare to use it has given it up; whoever looks next ends it.
    fn until_gone_or(&self, caller: &Caller) {
        assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
        assert_eq!(caller.0.run(["gc"]).code, Some(0));
        self.until_gone();
    }
}

/// Listens at a path, and says what it is told.
const LISTEN: &str = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1]); s.listen()\nimport os; os.chmod(sys.argv[1], 0o777)\nprint('listens', flush=True)\nwhile True:\n  c, _ = s.accept()\n  print('told', len(c.recv(16)), flush=True)";

#[test]
fn an_impostor_of_another_user_is_told_nothing() {
    needs_root();
    let caller = caller("size: 2");
    let held = warmed(&caller);
    let place = tempfile::tempdir().unwrap();
    chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let socket = place.path().join("s");
    let mut impostor = as_nobody(LISTEN, &socket);
    let mut said = impostor.stdout.take().unwrap();
    let mut first = [0; 8];
    said.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"listens\n");
    // Whoever could do this would be root or the caller; what is connected to is looked at all the same.
    fs::rename(&socket, place.path().join("moved")).unwrap();
    fs::remove_file(&held.socket).unwrap();
    move_over(&place.path().join("moved"), &held.socket);
    let metadata = call(&caller);
    assert_eq!((&metadata["warm"], &metadata["discarded"]), (&false.into(), &1.into()));
    // It is asked once more: a connection without a word is all that it was given before.
    let mut probe = UnixStream::connect(&held.socket).unwrap();
    probe.write_all(b"probe").unwrap();
    let mut told = String::new();
    let mut byte = [0];
    while !told.contains("told 5\n") {
        assert_eq!(said.read(&mut byte).unwrap(), 1, "{told}");
        told.push(char::from(byte[0]));
    }
    assert!(told.lines().all(|line| line == "told 0" || line == "told 5"), "{told}");
    impostor.kill().unwrap();
    impostor.wait().unwrap();
    kill_process(held.holder, Signal::KILL).unwrap();
    held.until_gone();
}

/// Moves a socket, also to another file system, where it is linked by another name.
fn move_over(from: &Path, to: &Path) {
    if fs::rename(from, to).is_err() {
        symlink(from, to).unwrap();
    }
}

#[test]
fn a_link_in_the_place_of_the_folder_is_refused_and_calls_go_on() {
    let caller = caller("size: 2");
    let elsewhere = caller.0.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(!is_warm(&caller));
    caller.settled(1);
    caller.0.run(["pool", "drain"]);
    fs::remove_dir_all(folder(&caller)).unwrap();
    symlink(&elsewhere, folder(&caller)).unwrap();
    let ran = caller.0.run(["pool", "warm", "--tool", "once"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.err.contains("it is a link, or no folder"), "{}", ran.err);
    assert!(!is_warm(&caller) && !is_warm(&caller), "calls go on");
    until("all watchdogs have ended", || processes(&caller).is_empty());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was made behind the link");
    fs::remove_file(folder(&caller)).unwrap();
    assert!(!is_warm(&caller));
    caller.settled(1);
    assert!(is_warm(&caller), "the control");
}

/// THREATS row 41: what a tool's sandbox was made from has changed.
#[test]
fn a_changed_toolchain_or_policy_discards_what_waits() {
    let caller = caller("size: 2");
    // Beside the home, where the user of the sandbox gets in.
    let outside =
        tempfile::Builder::new().prefix("runner-waiting-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let tools = outside.path().join("toolchain");
    let place = |folder: &Path| {
        fs::create_dir_all(folder).unwrap();
        let node = which("node");
        fs::copy(node, folder.join("node")).unwrap();
    };
    place(&tools.join("bin"));
    let path = format!("{}:/usr/bin:/bin", tools.join("bin").display());
    let warm = || {
        let mut command = caller.0.runner();
        command.env("PATH", &path).env("VOLTA_HOME", &tools).args(CALL);
        called(&Ran::from(command.output().unwrap()))["warm"].as_bool().unwrap()
    };
    assert!(!warm());
    let stale = held(&caller, &caller.settled(1)[0]);
    fs::rename(&tools, outside.path().join("old")).unwrap();
    place(&tools.join("bin"));
    assert!(!warm(), "another toolchain stands there");
    stale.until_nothing_is_left();
    let stale = held(&caller, &caller.settled(1)[0]);
    let limits = "limits: { wall: 25s }";
    let policy = format!("policy: 1\nname: other\nextends: [readonly]\nsandbox: {{ {limits} }}\n");
    let policy = caller.policy("other.yml", &policy);
    let mut other = caller.0.runner();
    other.env("PATH", &path).env("VOLTA_HOME", &tools).args(CALL).args(["--policy", &policy]);
    let other = called(&Ran::from(other.output().unwrap()));
    assert_eq!(other["warm"], false, "{other:#}");
    assert!(lives(stale.holder), "it waits for those of its own policy");
    caller.settled(2);
    assert!(warm(), "the control");
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.into_iter().find(|file| file.is_file()).unwrap().canonicalize().unwrap()
}

#[test]
fn no_sandbox_sees_the_folder_or_the_holder() {
    let caller = caller("size: 2");
    let held = warmed(&caller);
    let seen = format!(
        "ls -a {0} {1}; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo looked",
        folder(&caller).display(),
        held.socket.display()
    );
    let words = ["exec", "--policy", "contained", "--", "sh", "-c", seen.as_str()];
    let ran = caller.0.run(words);
    assert!(ran.out.contains("looked"), "{} {}", ran.out, ran.err);
    // The words of the call itself name both; nothing else does.
    assert!(!ran.out.contains("internal-holder") && !ran.out.contains("main.mjs"), "{}", ran.out);
    assert_eq!(ran.err.matches("No such file").count(), 2, "{}", ran.err);
    let control = Command::new("sh").args(["-c", &seen]).output().unwrap();
    let control = String::from_utf8_lossy(&control.stdout).into_owned();
    assert!(control.contains("internal-holder") && control.contains("main.mjs"), "{control}");
    // Nor is a workspace there.
    let mut inside = caller.0.runner();
    inside.env("XDG_RUNTIME_DIR", caller.0.path("project"));
    let ran = Ran::from(inside.args(["exec", "--json=full", "--", "true"]).output().unwrap());
    assert_eq!(ran.json()["error"]["code"], "workspace_is_ours", "{}", ran.out);
}

/// Calls, and those who make sandboxes behind them, killed at moments that lie in all of it.
#[test]
fn killed_at_many_moments_nothing_is_used_twice_and_nothing_stays() {
    let caller = caller("size: 2");
    assert!(!is_warm(&caller));
    caller.settled(1);
    for moment in 0..14_u64 {
        let mut child = caller.0.runner();
        let mut child =
            child.args(CALL).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 * moment));
        let _ = child.kill();
        child.wait().unwrap();
        if moment % 2 == 1 {
            for process in processes(&caller) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        // It fails if it is given what was used.
        is_warm(&caller);
    }
    until("all watchdogs have ended", || processes(&caller).is_empty());
    assert_eq!(caller.0.run(["pool", "drain"]).code, Some(0));
    // What was left is told by its name, if something stays.
    let mut seen = String::new();
    let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("nothing is left", || {
            assert_eq!(caller.0.run(["gc"]).code, Some(0));
            let waiting: Vec<_> = fs::read_dir(folder(&caller)).unwrap().flatten().collect();
            let (holders, launchers) = (holders(&caller), launchers(&caller));
            seen = format!("files {waiting:?}, holders {holders:?}, launchers {launchers}");
            waiting.is_empty() && holders.is_empty() && launchers == 0
        });
    }));
    assert!(gone.is_ok(), "left: {seen}");
}

/// Holders of a caller's sandboxes, by the folder that they have open.
fn holders(caller: &Caller) -> Vec<PathBuf> {
    let folder = folder(caller);
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let open = |process: &PathBuf| {
        let all = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        all.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|to| to == folder)
    };
    let is_holder = |process: &PathBuf| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        words.windows(17).any(|part| part == b"--internal-holder")
    };
    all.filter(is_holder).filter(open).collect()
}

/// Launchers of a caller's sandboxes: each ends last, when it has removed its control groups.
fn launchers(caller: &Caller) -> usize {
    let home = caller.0.path("").display().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let words = all.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    words.filter(|words| words.starts_with(home.as_bytes())).count()
}

/// In a user namespace, with the runtime folder of a session.
#[test]
fn an_ordinary_users_tools_wait_in_the_runtime_folder() {
    choose_engine(EngineName::Embedded);
    let person = Person::ordinary("/var/tmp");
    fs::write(
        person.path("config/runner/config.yml"),
        "pool: { size: 2 }\nengine: embedded\napprovals: { withoutTerminal: true }\n",
    )
    .unwrap();
    let project = person.project("project", &[(".runner/tools/once.yml", ONCE), ("f0", "")]);
    let runtime = person.path("run");
    fs::create_dir(&runtime).unwrap();
    person.own(&runtime);
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    let run = |words: &[&str]| {
        let mut command = person.runner(&project);
        command.env("XDG_RUNTIME_DIR", &runtime).args(words);
        Ran::from(command.output().unwrap())
    };
    let waits = || {
        let status = run(&["pool", "status", "--json"]).json();
        status["waiting"].as_array().unwrap().len() == 1 && status["being_made"] == 0
    };
    assert_eq!(called(&run(&CALL))["warm"], false);
    until("one waits", waits);
    let there = fs::read_dir(runtime.join("runner")).unwrap().flatten();
    let owners: Vec<u32> = there.map(|entry| entry.metadata().unwrap().uid()).collect();
    assert_eq!(owners, [person.uid(); 2], "a socket and a file beside it");
    assert_eq!(called(&run(&CALL))["warm"], true);
    until("one waits", waits);
    assert_eq!(run(&["pool", "drain", "--json"]).json()["ended"], 1);
    until("it is gone", || fs::read_dir(runtime.join("runner")).unwrap().count() == 0);
}

/// What one costs while it waits is what the pool counts, or less.
#[test]
fn one_that_waits_costs_no_more_than_is_counted() {
    needs_root();
    let caller = caller("size: 1");
    let held = warmed(&caller);
    let share = |pid: &Pid| -> u64 {
        let text = String::from_utf8(file(*pid, "smaps_rollup")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let all: Vec<u64> = [&held.holder].into_iter().chain(&held.below).map(share).collect();
    println!("holder, launcher, guest, node: {all:?} KiB");
    let counted = runner::pool::Class::Tool.cost(runner::engine::runtime_kind::RuntimeKind::Direct);
    assert!(all.iter().sum::<u64>() << 10 <= counted, "{all:?}");
}
