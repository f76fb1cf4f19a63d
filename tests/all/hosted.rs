//! Many calls inside one process and one event loop, for two callers with a workspace and a policy each: nothing of one
//! is seen by the other. The command line is one host of `call`; this is another.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runner::approvals::{Given, Scope};
use runner::audit::Redactor;
use runner::broker::Silent;
use runner::call::launch::run::{Keep, Streams};
use runner::call::tool::{self, Front, ToolRequest};
use runner::call::{
    self, Always, Asking, CallResult, Command, Context, Output, Reply, Request, Spent, Variables,
    Warmth,
};
use runner::caller::{self, Caller, Credential};
use runner::codes::Code;
use runner::engine::EngineName;
use runner::environment::Environment;
use runner::exit::Status;
use runner::latency::Early;
use runner::policy_files::Choice;
use runner::sandbox::cancel::Cancel;
use runner::sandbox::outcome::CancelCause;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;

use crate::embedded::traces;
use crate::support::{Home, choose_engine, needs_engine};
use crate::tools::write_yaml;

/// A caller with a home, a workspace and a policy of its own.
struct Tenant {
    home: Home,
    word: &'static str,
    context: Context,
}

impl Tenant {
    fn new(word: &'static str, rules: &str, config: &str) -> Self {
        let home = Home::new();
        home.config(&format!("{}{config}", Home::CONFIG));
        home.user_policy(
            "own",
            &format!("policy: 1\nname: own\nextends: [readonly]\ncommands:\n{rules}"),
        );
        fs::write(home.path("project/name.txt"), word).unwrap();
        write_yaml(&home, "say", "", &format!("export const execute = () => '{word}';"));
        let context = context(&home, word);
        Self { home, word, context }
    }

    fn exec(&self, words: &[&str]) -> Request {
        Request {
            command: Command::Argv(words.iter().map(Into::into).collect()),
            cwd: Some(self.home.path("project")),
            policy: Choice::Named("own".to_owned()),
            image: None,
            engine: None,
            tighten: Vec::new(),
            warmth: Warmth::Pool,
            variables: Variables::Told,
            writes: Default::default(),
            on_held: Default::default(),
        }
    }

    fn tool(&self, name: &str, args: &Value) -> ToolRequest {
        ToolRequest {
            name: name.parse().unwrap(),
            given: tool::Given { json: Some(args.to_string()), pairs: Vec::new() },
            cwd: Some(self.home.path("project")),
            policy: Choice::Named("own".to_owned()),
            tools: Vec::new(),
            image: None,
            engine: None,
            tighten: Vec::new(),
            warmth: Warmth::Pool,
        }
    }

    fn read(&self) -> ToolRequest {
        self.tool("file_operations", &json!({ "operation": "read", "path": "name.txt" }))
    }

    /// What is in this caller's ledger.
    fn records(&self) -> Vec<Value> {
        let listed = self.home.run(["--json", "audit", "list", "-n", "10000"]).json();
        assert_eq!(self.home.run(["audit", "verify"]).code, Some(0));
        listed["calls"].as_array().unwrap().clone()
    }
}

/// A caller that is told from others by a token, with the environment of this home.
fn context(home: &Home, token: &str) -> Context {
    let path = |name: &str| home.path(name).into_os_string();
    let mut variables = vec![
        ("HOME".into(), path("")),
        ("XDG_CONFIG_HOME".into(), path("config")),
        ("XDG_STATE_HOME".into(), path("state")),
    ];
    let engine = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "DOCKER_HOST");
    variables.extend(engine);
    Context {
        caller: Caller {
            uid: rustix::process::getuid().as_raw(),
            front: caller::Front::Mcp,
            credential: Credential::Token(token.to_owned()),
            claimed: Some("the same client".to_owned()),
        },
        environment: Environment::from_iter(variables),
        early: Early::default(),
        watchdog: PathBuf::from(env!("CARGO_BIN_EXE_runner")),
        notices: runner::call::Notices::default(),
    }
}

fn session() -> Reply {
    Reply::Given(Given { scope: Scope::Session, time: None, patterns: Vec::new() })
}

async fn run_command(request: Request, context: Context, reply: Reply) -> CallResult {
    let mut decided = request.decide(&context).unwrap();
    let asking = Asking {
        approver: Arc::new(Always(reply)),
        named: Vec::new(),
        places: decided.places.clone(),
        times: decided.config.approvals(),
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: context.caller.clone(),
    };
    let (_canceller, mut cancel) = Cancel::pair();
    let asking = Some(Arc::new(asking));
    call::run(&mut decided, Output::Kept(None, Keep::Limit), asking, &mut cancel).await.unwrap()
}

async fn run_tool(request: ToolRequest, context: Context) -> CallResult {
    let (_canceller, mut cancel) = Cancel::pair();
    let prepared = request.prepare(&context, &mut cancel).await.unwrap();
    let asking = Asking {
        approver: Arc::new(Always(Reply::Option)),
        named: Vec::new(),
        places: prepared.places().clone(),
        times: prepared.config().approvals(),
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: context.caller.clone(),
    };
    let front = Front {
        events: Arc::new(Silent),
        streams: Arc::new(|| Streams { keep: Keep::Limit, ..Streams::default() }),
        asking: Arc::new(asking),
        redactor: Redactor::new(),
        retry: None,
    };
    tool::run(&prepared, &front, &mut cancel).await.unwrap()
}

/// A command that does not end by itself. It is cancelled once it runs.
async fn run_cancelled(request: Request, context: Context) -> CallResult {
    let mut decided = request.decide(&context).unwrap();
    let (canceller, mut cancel) = Cancel::pair();
    let (stdout, mut heard) = tokio::io::duplex(1 << 10);
    let listener = tokio::spawn(async move {
        heard.read_u8().await.unwrap();
        canceller.cancel(CancelCause::Terminate);
        heard
    });
    let streams = Streams { stdout: Some(Box::pin(stdout)), ..Streams::default() };
    let result =
        call::run(&mut decided, Output::Streamed(streams), None, &mut cancel).await.unwrap();
    listener.await.unwrap();
    result
}

/// What a call was for, whose it was, and what came of it.
type Came = (&'static str, &'static str, CallResult);

fn printed(result: CallResult) -> String {
    let (bytes, _) = result.stdout.expect("output was kept").into_bytes();
    String::from_utf8(bytes).unwrap()
}

/// The calls of one caller: 25, of which `cancelled` are cancelled.
fn start(calls: &mut JoinSet<Came>, tenant: &Tenant, reply: &Reply, cancelled: usize) {
    let word = tenant.word;
    let command = |calls: &mut JoinSet<Came>, what, words: &[&str]| {
        let (request, context) = (tenant.exec(words), tenant.context.clone());
        let reply = reply.clone();
        calls.spawn(async move { (what, word, run_command(request, context, reply).await) });
    };
    for _ in 0..3 {
        command(calls, "command", &["cat", "name.txt"]);
        command(calls, "policy", &["wc", "-c", "name.txt"]);
    }
    for _ in 0..8 {
        command(calls, "denial", &["rm", "name.txt"]);
    }
    command(calls, "question", &["head", "-c", "3", "name.txt"]);
    for _ in 0..2 {
        let (request, context) = (tenant.tool("say", &json!({})), tenant.context.clone());
        calls.spawn(async move { ("custom", word, run_tool(request, context).await) });
    }
    for _ in 0..8 - cancelled {
        let (request, context) = (tenant.read(), tenant.context.clone());
        calls.spawn(async move { ("built-in", word, run_tool(request, context).await) });
    }
    for _ in 0..cancelled {
        let request = tenant.exec(&["tail", "-f", "name.txt"]);
        let context = tenant.context.clone();
        calls.spawn(async move { ("cancelled", word, run_cancelled(request, context).await) });
    }
}

const ASKS: &str = "  - { id: ask, ask: 'head ...' }\n";
const NO_COUNT: &str = "  - { id: no-count, deny: 'wc ...', reason: Not counted here. }\n";

#[tokio::test]
async fn fifty_calls_of_two_callers_in_one_process_do_not_meet() {
    needs_engine();
    let rate = "tools: { file_operations: { callsPerMinute: 3 } }\n";
    let ann = Tenant::new("ann", ASKS, rate);
    let bob = Tenant::new("bob", &format!("{ASKS}{NO_COUNT}"), "");
    let mut calls = JoinSet::new();
    start(&mut calls, &ann, &session(), 1);
    start(&mut calls, &bob, &Reply::Nobody, 0);
    let all = calls.join_all().await;
    assert_eq!(all.len(), 50);
    let (mut limited, mut read) = (0, 0);
    for (what, word, result) in all {
        let told = format!("{what} of {word}: {result:?}");
        let status = result.status;
        match (what, word) {
            ("command", _) => assert_eq!(printed(result), word, "{told}"),
            ("policy", "ann") => assert_eq!(printed(result), "3 name.txt\n", "{told}"),
            ("policy", _) => {
                assert_eq!(status, Status::Denied, "{told}");
                assert_eq!(result.error.unwrap().rule.unwrap().id, "own/no-count", "{told}");
            }
            ("denial", _) => assert_eq!(status, Status::Denied, "{told}"),
            ("question", "ann") => assert_eq!(printed(result), word, "{told}"),
            ("question", _) => assert_eq!(status, Status::NeedsApproval, "{told}"),
            ("custom", _) => assert_eq!(result.value, Some(json!(word)), "{told}"),
            ("cancelled", _) => assert_eq!(status, Status::Cancelled, "{told}"),
            (_, "ann") if result.value.is_none() => {
                assert_eq!(result.error.unwrap().code, Code::RateLimitExceeded, "{told}");
                limited += 1;
            }
            _ => {
                assert!(result.value.unwrap().to_string().contains(word), "{told}");
                read += 1;
            }
        }
    }
    // The limit is ann's, and counts her calls alone.
    assert_eq!((limited, read), (7 - 3, 3 + 8));
    for tenant in [&ann, &bob] {
        let records = tenant.records();
        assert_eq!(records.len(), 25, "{records:?}");
        let project = tenant.home.path("project");
        for record in records {
            assert_eq!(record["workspace"], json!(project), "{record}");
            let actor = &record["actor"];
            let said = [&actor["front"], &actor["credential"], &actor["claimed"]];
            assert_eq!(said, ["mcp", "token", "the same client"], "{record}");
        }
    }
    // An answer for a session is the caller's who got it: another with the same files, and the same claim, is asked.
    let question = || ann.exec(&["head", "-c", "3", "name.txt"]);
    let again = run_command(question(), ann.context.clone(), Reply::Nobody).await;
    assert_eq!(again.status, Status::Completed, "{again:?}");
    let other = run_command(question(), context(&ann.home, "carl"), Reply::Nobody).await;
    assert_eq!(other.status, Status::NeedsApproval, "{other:?}");
}

/// The memory of this process, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Calls before the memory is measured for the first time: caches and heaps have their size then.
const BEFORE: usize = 400;
const CALLS: usize = 2_000;
/// What measuring may be off by, in KiB. A kilobyte that each call left behind would be more.
const SLACK: u64 = 1_500;

#[tokio::test]
async fn two_thousand_calls_in_one_process_leave_nothing_in_its_memory() {
    let (ann, bob) = (Tenant::new("ann", ASKS, ""), Tenant::new("bob", ASKS, ""));
    let mut before = 0;
    for round in 0..CALLS / 50 {
        if round == BEFORE / 50 {
            before = resident();
        }
        let mut calls = JoinSet::new();
        for at in 0..50 {
            let tenant = if at % 2 == 0 { &ann } else { &bob };
            let context = tenant.context.clone();
            if at % 5 == 0 {
                let request = tenant.read();
                calls.spawn(async move { run_tool(request, context).await.status });
            } else {
                let request = tenant.exec(&["rm", "name.txt"]);
                calls.spawn(
                    async move { run_command(request, context, Reply::Nobody).await.status },
                );
            }
        }
        let all = calls.join_all().await;
        let done = all.iter().filter(|status| **status == Status::Completed).count();
        assert_eq!((done, all.len()), (10, 50), "{all:?}");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < SLACK, "the memory grew by {grown} KiB in {} calls", CALLS - BEFORE);
}

/// A rule for a command that writes one file.
const WRITES: &str = "  - { id: mark, allow: 'touch ...', effects: [read, write] }\n\
                      files: { write: [out, 'out/**'] }\n";
/// Calls with a sandbox each, those before the first measurement, and how many run at once.
const SANDBOXES: usize = 10_000;
const FIRST: usize = 1_000;
const AT_ONCE: usize = 20;
/// What measuring may be off by, in KiB: a third of a kilobyte for each call.
const SANDBOX_SLACK: u64 = 3_000;
/// What a call leaves to others, such as the removal of its control groups, takes a moment on a busy machine.
const LEFT_WAIT: Duration = Duration::from_secs(60);

/// What this process has at a moment when no call runs.
#[derive(Debug, Clone, Copy)]
struct Held {
    memory: u64,
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn now() -> Self {
        let entries = |folder| fs::read_dir(folder).unwrap().count();
        Self {
            memory: resident(),
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
        }
    }

    /// The same, once there are no more descriptors and threads than this, or after a while.
    async fn at_most(other: Self) -> Self {
        let begun = Instant::now();
        loop {
            let now = Self::now();
            let more = now.descriptors > other.descriptors || now.threads > other.threads;
            if !more || begun.elapsed() > LEFT_WAIT {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Files and folders in the folder for stages: one of a call that is over would be left over.
fn stages(tenant: &Tenant) -> Vec<PathBuf> {
    let all = fs::read_dir(tenant.home.path("state/runner/stages")).into_iter().flatten();
    all.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The control groups of these calls that are still there after a while.
async fn groups(calls: &BTreeSet<String>) -> Vec<PathBuf> {
    let begun = Instant::now();
    loop {
        let ours = |folder: &PathBuf| {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            name.strip_prefix("runner-sandbox-").is_some_and(|call| calls.contains(call))
        };
        let left: Vec<PathBuf> = traces::groups().into_iter().filter(ours).collect();
        if left.is_empty() || begun.elapsed() > LEFT_WAIT {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One of many calls: most read, some write a file, a few are cancelled or run a tool.
fn one_of_many(calls: &mut JoinSet<(Status, CallResult)>, tenant: &Tenant, at: usize) {
    let context = tenant.context.clone();
    if at % 500 == 7 {
        let request = tenant.tool("say", &json!({}));
        calls.spawn(async move { (Status::Completed, run_tool(request, context).await) });
    } else if at % 100 == 3 {
        let request = tenant.exec(&["tail", "-f", "name.txt"]);
        calls.spawn(async move { (Status::Cancelled, run_cancelled(request, context).await) });
    } else {
        let words: &[&str] =
            if at % 10 == 1 { &["touch", "out/file"] } else { &["cat", "name.txt"] };
        let request = tenant.exec(words);
        calls.spawn(async move {
            (Status::Completed, run_command(request, context, Reply::Nobody).await)
        });
    }
}

/// Each call has a sandbox of this machine's kernel. The threads of the event loop go as soon as they have nothing to do:
/// those that stay are left over.
#[test]
fn ten_thousand_sandboxes_from_one_process_leave_nothing() {
    choose_engine(EngineName::Embedded);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().thread_keep_alive(Duration::from_millis(1)).build().unwrap();
    runtime.block_on(async {
        let (ann, bob) = (Tenant::new("ann", WRITES, ""), Tenant::new("bob", WRITES, ""));
        for tenant in [&ann, &bob] {
            fs::create_dir(tenant.home.path("project/out")).unwrap();
        }
        let start = Held::now();
        let mut before = start;
        let mut ids = BTreeSet::new();
        for first in (0..SANDBOXES).step_by(AT_ONCE) {
            if first == FIRST {
                // Files that stay open are opened by then; threads do not stay.
                before = Held { threads: start.threads, ..Held::now() };
                before = Held::at_most(before).await;
            }
            let mut calls = JoinSet::new();
            for at in first..first + AT_ONCE {
                one_of_many(&mut calls, if at % 2 == 0 { &ann } else { &bob }, at);
            }
            for (wanted, result) in calls.join_all().await {
                assert_eq!(result.status, wanted, "{result:?}");
                assert_eq!(json!(result.metadata)["engine"], "embedded", "{result:?}");
                ids.insert(result.call);
            }
        }
        assert_eq!(ids.len(), SANDBOXES);
        let after = Held::at_most(before).await;
        let told = format!("at the start {start:?}, then {before:?}, in the end {after:?}");
        eprintln!("{told}");
        let grown = after.memory.saturating_sub(before.memory);
        assert!(grown < SANDBOX_SLACK, "the memory grew by {grown} KiB: {told}");
        assert!(after.descriptors <= before.descriptors, "open files were left: {told}");
        assert!(after.threads <= start.threads, "threads were left: {told}");
        assert_eq!(groups(&ids).await, [] as [PathBuf; 0], "control groups were left");
        // The answer to a writing call does not wait until its stage is unmounted: the next one removes it, or `gc`.
        for tenant in [&ann, &bob] {
            let swept = tenant.home.run(["gc", "--engine", "embedded"]);
            assert_eq!(swept.code, Some(0), "{}", swept.err);
        }
        assert_eq!([stages(&ann), stages(&bob)].concat(), [] as [PathBuf; 0], "stages were left");
    });
}
