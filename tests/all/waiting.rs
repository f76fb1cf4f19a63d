//! Guests that start their process before anybody asks for it, by hand through the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use runner::call::tool::tool_order;
use runner::engine::plan::{Runtime, SandboxPlan};
use runner::engine::{Attached, Chunk, Engine, Hold, Labels, Purpose, SandboxId, Spec, guest};
use runner::ids::{CallId, Owner};
use runner::sandbox::order::order;
use runner::stage::folder::Stage;
use runner::sys::now;
use runner_wire::{
    Bytes, Channel, Decoder, Encoder, Ending, Exit, Fatal, GuestMessage, Hello, HostMessage, Key,
    Phase, Port, Side, Start, Stdin, VERSION, Work,
};
use tokio::io::AsyncWriteExt;

use crate::death::gone;
use crate::engine::{argv, block_on, engine, plan, state, workspace};
use crate::image::docker;

/// What a waiting tool may cost: its shim, the guest and Node together.
const TOOL_KIB: u64 = 60 << 10;

/// Both kinds of kernel that a sandbox can have.
const RUNTIMES: [&str; 2] = ["runc", "runsc"];

/// How long a guest waits where the test does not want to see the end of it.
const LONG: Duration = Duration::from_secs(120);

fn shell(plan: &SandboxPlan, script: &str) -> Start {
    order(plan, argv(&["sh", "-c", script]), 0o077, Stdin::Null, Port::Tool)
}

fn waiting(start: &Start) -> Start {
    Start { work: Work::Waiting, ..start.clone() }
}

/// A sandbox that was started by hand.
struct Sandbox {
    engine: Arc<dyn Engine>,
    id: SandboxId,
    call: CallId,
}

impl Sandbox {
    async fn start(plan: &SandboxPlan, wait: Duration, beforehand: Option<&Start>) -> Self {
        let engine = engine().await;
        let prepared = engine.prepare(&plan.image).await.unwrap();
        let call = CallId::fresh().unwrap();
        let labels = Labels {
            call: call.clone(),
            owner: Owner::this().unwrap(),
            deadline: now() + Duration::from_secs(300),
            purpose: Purpose::Call,
        };
        let arguments = guest::arguments(wait, beforehand).unwrap();
        let (prepared, labels, arguments) = (&prepared, &labels, &arguments);
        let stage = Stage::of_plan(&state(), &call, plan).unwrap();
        let stage = stage.as_ref().map(Stage::folder);
        let spec = Spec { plan, prepared, labels, arguments, stage };
        let program = Path::new(env!("CARGO_BIN_EXE_runner"));
        let id = engine.park(spec, Hold { program, wait }).await.unwrap();
        Self { engine, id, call }
    }

    async fn attach(&self) -> Talk {
        let attached = self.engine.attach(&self.call).await.unwrap().attached;
        let (decoder, encoder) = (Decoder::new(Side::Guest), Encoder::new(Side::Host));
        Talk { attached, decoder, encoder }
    }

    /// The guest's process, as the host sees it.
    fn pid(&self) -> String {
        docker(&["inspect", "-f", "{{.State.Pid}}", self.id.as_str()])
    }

    /// Memory of the sandbox's processes and of what holds it, each page shared out among its users.
    /// Only root may read it.
    fn memory_kib(&self) -> u64 {
        let (guest, mut all) = (self.pid(), 0);
        let stat = std::fs::read_to_string(format!("/proc/{guest}/stat")).unwrap();
        let shim = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned();
        let children = format!("/proc/{guest}/task/{guest}/children");
        let children = std::fs::read_to_string(children).unwrap();
        assert_eq!(children.split_whitespace().count(), 1, "{children}");
        for pid in [shim.as_str(), guest.as_str()].into_iter().chain(children.split_whitespace()) {
            let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
            let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
            println!("{pid}: {kib} KiB");
            all += kib;
        }
        all
    }

    /// All processes in the sandbox, each by its number and words, and the processor time that they have used, children
    /// that have ended among them, in ticks of the kernel's clock.
    fn used(&self) -> (Vec<String>, u64) {
        let listed = docker(&["top", self.id.as_str()]);
        let pids = listed.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap());
        let one = |pid: &str| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            // Its name, in brackets, is the second field; its times are the 14th to the 17th.
            let times = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(4);
            let ticks: u64 = times.map(|time| time.parse::<u64>().unwrap()).sum();
            (format!("{pid} {words}"), ticks)
        };
        let (names, ticks): (Vec<String>, Vec<u64>) = pids.map(one).unzip();
        (names, ticks.into_iter().sum())
    }

    /// Waits until nothing in it has run for two seconds, but for a tick. Node may still be starting, and V8 tidies up once,
    /// eight seconds after that. What works for ever while it waits does not pass.
    async fn rests(&self) {
        let mut seen = self.used();
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let before = std::mem::replace(&mut seen, self.used());
            println!("{before:?}, two seconds later {seen:?}");
            if seen.0 == before.0 && seen.1 - before.1 <= 1 {
                let node = |words: &String| {
                    words.split(' ').any(|word| word == "node" || word.ends_with("/node"))
                };
                assert!(seen.0.iter().any(node), "the control: {seen:?}");
                return;
            }
        }
        panic!("it works while it waits: {seen:?}");
    }

    /// Waits until it has ended, and the engine knows no more of it.
    async fn over(&self) {
        let begun = Instant::now();
        while !self.engine.list(Some(&self.call)).await.unwrap().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} is still there", self.id);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The guest's child, as the host sees it, once it is there.
    fn child(&self) -> Option<String> {
        let guest = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{guest}/task/{guest}/children"));
        children.unwrap().split_whitespace().next().map(str::to_owned)
    }

    /// Waits until the kernel has these scores of the guest and its child for when memory runs out.
    async fn scores(&self, guest: &str, child: &str) {
        let score = |pid: String| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
            text.unwrap_or_default().trim().to_owned()
        };
        let wanted = (guest.to_owned(), Some(child.to_owned()));
        let begun = Instant::now();
        loop {
            let found = (score(self.pid()), self.child().map(score));
            if found == wanted {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{found:?}, not {wanted:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What the kernel counts as the sleeps of the guest, each of which ended with some work.
    fn sleeps(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().to_owned()
    }
}

/// The host's end of the wire.
struct Talk {
    attached: Attached,
    decoder: Decoder,
    encoder: Encoder,
}

impl Talk {
    async fn say(&mut self, message: &HostMessage) {
        let mut bytes = Vec::new();
        message.encode(&mut self.encoder, &mut bytes).unwrap();
        // A guest that has ended does not hear it.
        let _ = self.attached.input.write_all(&bytes).await;
        let _ = self.attached.input.flush().await;
    }

    /// The next word; `None` once the guest is gone.
    async fn hear(&mut self) -> Option<GuestMessage> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(GuestMessage::from_frame(frame).unwrap());
            }
            match self.attached.output.next().await {
                Some(Ok(Chunk::Wire(bytes))) => self.decoder.push(&bytes),
                Some(Ok(Chunk::Noise(_))) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    async fn hello(&mut self) {
        let key = Key::new([7; 32]);
        let hello = Hello {
            version: VERSION,
            key: key.clone(),
            targets: vec![Bytes::from("/usr")],
            lease_ms: 60_000,
        };
        self.say(&HostMessage::Hello(hello)).await;
        self.decoder.rekey(&key);
    }

    async fn ready(&mut self) {
        self.hello().await;
        let Some(GuestMessage::Ready(ready)) = self.hear().await else { panic!("not ready") };
        assert!(ready.mounts[0].ino != 0 && ready.mounts[0].read_only, "{ready:?}");
    }

    /// Everything up to the last word.
    async fn end(&mut self) -> (String, Result<Exit, Fatal>) {
        let mut out = Vec::new();
        loop {
            match self.hear().await.expect("a last word") {
                GuestMessage::Data(Channel::STDOUT | Channel::STDERR, bytes) => out.extend(bytes),
                GuestMessage::Exit(exit) => return (String::from_utf8(out).unwrap(), Ok(exit)),
                GuestMessage::Fatal(fatal) => {
                    return (String::from_utf8(out).unwrap(), Err(fatal));
                }
                _ => {}
            }
        }
    }

    async fn fatal(&mut self) -> Fatal {
        self.end().await.1.unwrap_err()
    }
}

fn plan_for(runtime: &str) -> (tempfile::TempDir, SandboxPlan) {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = Runtime::new(runtime);
    (folder, plan)
}

#[test]
fn what_waits_is_taken_over_and_counted_from_then_on() {
    for runtime in RUNTIMES {
        let (folder, plan) = plan_for(runtime);
        // It works before anybody asks, prints, and then waits for a line of the talk.
        let start = shell(
            &plan,
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo early; echo said >&2; : > done; \
             read line <&3; echo \"$line, $PATH\"; exit 3",
        );
        let call = block_on(async {
            let sandbox = Sandbox::start(&plan, LONG, Some(&start)).await;
            until_there(&staged(&sandbox.call).join("done")).await;
            assert!(!folder.path().join("done").exists());
            let mut talk = sandbox.attach().await;
            talk.ready().await;
            let begun = Instant::now();
            talk.say(&HostMessage::Start(waiting(&start))).await;
            talk.say(&HostMessage::Data(Channel::TOOL, b"hello\n".to_vec())).await;
            let (out, exit) = talk.end().await;
            let since = u64::try_from(begun.elapsed().as_micros()).unwrap();
            let exit = exit.unwrap();
            assert_eq!(exit.ending, Ending::Exited { status: 3 }, "{runtime} {out}");
            for text in ["early\n", "said\n", "hello, /usr/bin:/bin\n"] {
                assert!(out.contains(text), "{runtime}: {out}");
            }
            let usage = exit.usage;
            assert_eq!(usage.written.stdout + usage.written.stderr, out.len() as u64);
            assert!(usage.wall_us <= since, "{runtime}: {usage:?} in {since}");
            // Only its controller knows what was used before; gVisor shows none.
            if runtime == "runc" {
                assert!(usage.cpu_us.unwrap() <= since, "{usage:?} in {since}");
            }
            sandbox.call
        });
        gone(&call);
    }
}

/// Where the stage of a sandbox holds what is written into the workspace.
fn staged(call: &CallId) -> PathBuf {
    state().join("stages").join(call.as_str()).join("0/upper")
}

/// Waits until a file is there.
async fn until_there(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} does not come", path.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A frame of the talk between the broker and the runtime.
fn talk_frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&length.to_le_bytes()[..], &[kind], &[0; 4], payload].concat()
}

#[test]
fn a_tool_finds_its_runtime_waiting_at_a_small_price() {
    for runtime in RUNTIMES {
        let (_folder, plan) = plan_for(runtime);
        let start = tool_order(&plan);
        let call = block_on(async {
            let sandbox = Sandbox::start(&plan, LONG, Some(&start)).await;
            // gVisor shows no processes.
            if runtime == "runc" {
                sandbox.rests().await;
                let kib = sandbox.memory_kib();
                assert!(kib < TOOL_KIB, "{kib} KiB");
            }
            let mut talk = sandbox.attach().await;
            talk.ready().await;
            talk.say(&HostMessage::Start(waiting(&start))).await;
            let job = br#"{"mode":"run","form":"yaml","name":"t","file":"t.yml","args":{"n":20},"env":{"A":"2"},"config":{},"conversation":null,"workspace":"/w","attempt":1}"#;
            let code = b"export const execute = ({ n }) => n + Number(process.env.A);";
            let bytes = [talk_frame(16, job), talk_frame(17, code), talk_frame(18, b"")].concat();
            talk.say(&HostMessage::Data(Channel::TOOL, bytes)).await;
            let mut said = Vec::new();
            let exit = loop {
                match talk.hear().await.expect("a last word") {
                    GuestMessage::Data(Channel::TOOL, bytes) => said.extend(bytes),
                    GuestMessage::Exit(exit) => break exit,
                    GuestMessage::Fatal(fatal) => panic!("{runtime}: {fatal:?}"),
                    _ => {}
                }
            };
            assert_eq!(said, talk_frame(6, br#"{"value":22}"#), "{runtime}");
            assert_eq!(exit.ending, Ending::Exited { status: 0 }, "{runtime}");
            println!("{runtime}: {:?}", exit.usage);
            sandbox.call
        });
        gone(&call);
    }
}

#[test]
fn an_order_fits_what_waits_or_nothing_runs() {
    let (folder, plan) = plan_for("runc");
    let idle = shell(&plan, "read line <&3");
    let touch = Start { work: argv(&["touch", "ran"]), ..idle.clone() };
    let mut other = waiting(&idle);
    other.env.push((Bytes::from("A"), Bytes::from("b")));
    let cases = [
        (None, waiting(&idle), "no process waits for this order"),
        (Some(&idle), touch, "a process waits here, and this order is not for it"),
        (Some(&idle), other, "the process that waits was started with something else"),
    ];
    for (beforehand, start, why) in cases {
        let call = block_on(async {
            let sandbox = Sandbox::start(&plan, LONG, beforehand).await;
            let mut talk = sandbox.attach().await;
            talk.ready().await;
            talk.say(&HostMessage::Start(start)).await;
            assert_eq!(talk.fatal().await.message, why);
            sandbox.call
        });
        gone(&call);
    }
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn a_sandbox_is_used_once() {
    let (_folder, plan) = plan_for("runc");
    let idle = shell(&plan, "read line <&3");
    for beforehand in [None, Some(&idle)] {
        for again in ["Hello", "Start"] {
            let call = block_on(async {
                let sandbox = Sandbox::start(&plan, LONG, beforehand).await;
                let mut talk = sandbox.attach().await;
                talk.ready().await;
                let start = beforehand.map_or_else(|| idle.clone(), waiting);
                talk.say(&HostMessage::Start(start.clone())).await;
                match again {
                    "Hello" => talk.hello().await,
                    _ => talk.say(&HostMessage::Start(start)).await,
                }
                let fatal = talk.fatal().await;
                assert_eq!(fatal.phase, Phase::Run);
                assert_eq!(fatal.message, format!("unexpected {again} frame"));
                sandbox.call
            });
            gone(&call);
        }
    }
}

#[test]
fn what_is_dead_is_never_handed_out() {
    for runtime in RUNTIMES {
        let (folder, plan) = plan_for(runtime);
        // It ends, cannot be started, or has no folder: the sandbox is gone before anybody comes.
        let mut nowhere = shell(&plan, "read line <&3");
        nowhere.cwd = Bytes::from("/nosuch");
        let nosuch = Start { work: argv(&["nosuch"]), ..nowhere.clone() };
        let nosuch = Start { cwd: Bytes::from("/"), ..nosuch };
        for start in [shell(&plan, "exit 0"), shell(&plan, "kill -9 $$"), nosuch, nowhere] {
            let sandbox = block_on(Sandbox::start(&plan, LONG, Some(&start)));
            gone(&sandbox.call);
        }
        // Between the two words of the host: it is told, and no order is needed for it.
        // A name that is new on the host may never be seen inside; what is written into a file is.
        std::fs::write(folder.path().join("end"), "").unwrap();
        let start = shell(&plan, "until [ -s end ]; do sleep 0.1; done");
        let call = block_on(async {
            let sandbox = Sandbox::start(&plan, LONG, Some(&start)).await;
            let mut talk = sandbox.attach().await;
            talk.ready().await;
            std::fs::write(folder.path().join("end"), "now").unwrap();
            sandbox.over().await;
            talk.say(&HostMessage::Start(waiting(&start))).await;
            assert_eq!(talk.fatal().await.phase, Phase::Wait, "{runtime}");
            sandbox.call
        });
        gone(&call);
    }
}

#[test]
fn what_waits_goes_first_where_memory_runs_out_then_commands_then_guests() {
    let (_folder, plan) = plan_for("runc");
    // What it starts itself goes with it.
    let start = shell(&plan, "read line <&3; sh -c 'cat /proc/self/oom_score_adj'");
    let call = block_on(async {
        let sandbox = Sandbox::start(&plan, LONG, Some(&start)).await;
        sandbox.scores("1000", "1000").await;
        let mut talk = sandbox.attach().await;
        talk.ready().await;
        sandbox.scores("600", "800").await;
        talk.say(&HostMessage::Start(waiting(&start))).await;
        talk.say(&HostMessage::Data(Channel::TOOL, b"go\n".to_vec())).await;
        assert_eq!(talk.end().await.0, "800\n");
        sandbox.call
    });
    gone(&call);
}

#[test]
fn a_guest_sleeps_until_its_time_is_over_or_the_host_goes() {
    for runtime in RUNTIMES {
        let (_folder, plan) = plan_for(runtime);
        let idle = shell(&plan, "read line <&3");
        let brief = Duration::from_millis(500);
        gone(&block_on(Sandbox::start(&plan, brief, Some(&idle))).call);
        let call = block_on(async {
            let sandbox = Sandbox::start(&plan, LONG, Some(&idle)).await;
            if runtime == "runc" {
                // It may still be starting; one that works while it waits never stops.
                let mut looks = 0..20;
                loop {
                    assert!(looks.next().is_some(), "it works while it waits");
                    let before = sandbox.sleeps();
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    if sandbox.sleeps() == before {
                        break;
                    }
                }
            }
            // Whoever attaches and leaves has used it up.
            drop(sandbox.attach().await);
            sandbox.call
        });
        gone(&call);
    }
}
