//! All trials of one engine, one after the other.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use runner_policy::limits::Limit;

use super::error::DoctorError as Error;
use super::folder::{self, ALLOWED, FORBIDDEN, TrialFolder};
use super::judge::{Evidence, OUTPUT, rows};
use super::orphans;
use super::report::{Examined, Unusable};
use super::seen::{Asked, Figures, Seen};
use super::trial::Trial;
use crate::call::{CallError, CallResult, Context};
use crate::engine::{self, EngineName};
use crate::exit::Status;
use crate::json;
use crate::sandbox::cancel::Cancel;

/// Protections that one run of the probe is about.
const LOOKED_AT: [&str; 14] = [
    "network",
    "root",
    "capabilities",
    "namespaces",
    "system-calls",
    "setuid-bits",
    "file-grants",
    "protected-paths",
    "denied-files",
    "open-files",
    "file-size",
    "scratch",
    "shared-memory",
    "inodes",
];

/// How much more than its limit a trial wants.
const TIMES: u64 = 4;

/// The protection of the file systems that a call writes to.
const SPACE: &str = "workspace-space";

/// What is tried at the limit of processes and threads.
const MANY: &str = "have four times as many threads as its limit";

/// More free space than any disk has.
const ENDLESS: u64 = 1 << 60;

/// How long processors are used, in milliseconds.
const BUSY: u64 = 1_000;

/// What a limit of one processor may become by the way in which the kernel counts, in thousandths.
const ONE_PROCESSOR: u64 = 1_300;

/// Examines an engine.
///
/// # Errors
/// There is no place for the trials, or the doctor was told to end.
pub async fn examine(
    name: EngineName,
    context: &Context,
    cancel: &mut Cancel,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<Examined, Error> {
    let variable = |name: &str| context.environment.get(name);
    let opened = engine::open(&name.into(), &variable).await;
    let (engine, facts) = match opened {
        Ok(engine) => match engine.probe_anew().await {
            Ok(facts) => (engine, facts),
            Err(error) => return Ok(unusable(name, Unusable::from(&error))),
        },
        Err(error) => return Ok(unusable(name, Unusable::from(&error))),
    };
    let parts = engine.parts().await.unwrap_or_default();
    let place = TrialFolder::make(&context.environment).map_err(Error::TrialFolder)?;
    let trial = Trial { place: &place, engine: name, context };
    let promised = match trial.promised().await {
        Ok(promised) => promised,
        Err(error) => return Ok(unusable(name, of_call(&error))),
    };
    let mut evidence = Evidence::default();
    tell(&format!("{name}: files, network, privileges, system calls"));
    look(&trial, &mut evidence, cancel).await?;
    strain(&trial, &mut evidence, cancel, tell).await?;
    tell(&format!("{name}: processes that are left behind"));
    orphans::try_all(&trial, &mut evidence, cancel).await?;
    Ok(Examined {
        engine: name,
        version: Some(facts.version),
        parts,
        unusable: None,
        rows: rows(&promised, &evidence),
    })
}

fn unusable(engine: EngineName, why: Unusable) -> Examined {
    Examined { engine, version: None, parts: Vec::new(), unusable: Some(why), rows: Vec::new() }
}

fn of_call(error: &CallError) -> Unusable {
    use crate::error::Failure as _;
    Unusable { code: error.code(), message: error.to_string(), change: error.hint() }
}

/// What most tries are made by: one run of the probe, and a look at what it left on the host.
async fn look(
    trial: &Trial<'_>,
    evidence: &mut Evidence,
    cancel: &mut Cancel,
) -> Result<(), Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::TrialFolder)?;
    let socket = format!("{}-listens", trial.place.canary());
    let address = SocketAddr::from_abstract_name(&socket).map_err(Error::TrialFolder)?;
    let _socket = UnixListener::bind_addr(&address).map_err(Error::TrialFolder)?;
    let asked = Asked {
        port: listener.local_addr().map_err(Error::TrialFolder)?.port(),
        socket,
        process: std::process::id(),
        outside: trial.place.outside().display().to_string(),
        canary: trial.place.canary().to_owned(),
        namespaces: namespaces(),
        limits: Figures {
            open_files: folder::OPEN_FILES,
            file_size: folder::FILE_SIZE,
            scratch: folder::SCRATCH,
            inodes: folder::INODES,
        },
    };
    let asked = serde_json::to_string(&asked).unwrap_or_default();
    let result = trial.kept(&["look", &asked], &[], cancel).await;
    let result = match ended(result)? {
        Ok(result) => result,
        Err(why) => {
            evidence.broken.push((LOOKED_AT.to_vec(), why));
            return Ok(());
        }
    };
    let held: Vec<String> =
        result.changes.iter().flat_map(|it| &it.held).map(|it| it.path.clone()).collect();
    match read_output::<Seen>(result) {
        Ok(seen) => evidence.tries.extend(seen.tries),
        Err(why) => evidence.broken.push((LOOKED_AT.to_vec(), why)),
    }
    evidence.tries.extend(left_on_host(&trial.place.workspace(), &held).tries);
    Ok(())
}

/// The namespaces of this process, by kind.
fn namespaces() -> BTreeMap<String, String> {
    let link = |kind: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
        Some((kind.to_owned(), link.display().to_string()))
    };
    ["cgroup", "ipc", "mnt", "net", "pid", "uts"].into_iter().filter_map(link).collect()
}

/// What the probe left in the workspace.
fn left_on_host(workspace: &Path, held: &[String]) -> Seen {
    let mut seen = Seen::default();
    let is_theirs = |path: &str| {
        let text = std::fs::read_to_string(workspace.join(path))?;
        if text == "doctor" { Ok(()) } else { Err(std::io::Error::other("it is as before")) }
    };
    let allowed = format!("{ALLOWED}/out.txt");
    seen.control("protected-paths", format!("leave {allowed} on the host"), is_theirs(&allowed));
    for path in FORBIDDEN {
        seen.attack("protected-paths", format!("leave {path} on the host"), is_theirs(path));
    }
    let named = match held.is_empty() {
        true => Err(std::io::Error::other("the result names none")),
        false => Ok(()),
    };
    seen.control("protected-paths", "be told what was held back", named);
    let bits = workspace.join(ALLOWED).join("bits").metadata().and_then(|found| {
        match found.permissions().mode() & 0o6000 {
            0 => Err(std::io::Error::other("the host's file has no such bit")),
            _ => Ok(()),
        }
    });
    seen.attack("setuid-bits", "leave a set-user-id file on the host", bits);
    seen
}

/// What uses up a machine.
async fn strain(
    trial: &Trial<'_>,
    evidence: &mut Evidence,
    cancel: &mut Cancel,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let name = trial.engine;
    let mut tried = Seen::default();

    tell(&format!("{name}: memory"));
    let some = (folder::MEMORY / TIMES).to_string();
    let small = ended(trial.kept(&["memory", &some], &[], cancel).await)?;
    tried.control("memory", "fill a quarter of its limit", as_ended(small, &[Status::Completed]));
    let much = (folder::MEMORY * TIMES).to_string();
    let large = ended(trial.kept(&["memory", &much], &[], cancel).await)?;
    tried.attack(
        "memory",
        "fill four times its limit",
        not_ended(large, &[Status::Oom], "memory", evidence),
    );

    tell(&format!("{name}: processes"));
    let count = (folder::THREADS * TIMES).to_string();
    let result = ended(trial.kept(&["threads", &count], &[], cancel).await)?;
    // A runtime may end the whole sandbox, which holds the limit too.
    match result.and_then(figure_or_end) {
        Ok(None) => {
            tried.control("pids", "start a thread", Ok(()));
            tried.attack("pids", MANY, so(false));
        }
        Ok(Some(started)) => {
            tried.control("pids", "start a thread", so(started > 0));
            tried.attack("pids", MANY, so(started > folder::THREADS));
        }
        Err(why) => evidence.broken.push((vec!["pids"], why)),
    }

    tell(&format!("{name}: processors and processor time"));
    match std::thread::available_parallelism().map_or(1, usize::from) {
        1 => evidence.untried.push(("cpus", "this machine has one processor".to_owned())),
        _ => {
            let busy = BUSY.to_string();
            let result = ended(trial.kept(&["processors", &busy], &[], cancel).await)?;
            match result.and_then(figure) {
                Ok(share) => {
                    tried.control("cpus", "use a processor", so(share > 0));
                    tried.attack(
                        "cpus",
                        "use more than the one processor of its limit",
                        so(share > ONE_PROCESSOR),
                    );
                }
                Err(why) => evidence.broken.push((vec!["cpus"], why)),
            }
        }
    }
    let one_second = [(Limit::CpuTime, 1_000), (Limit::Wall, 15_000)];
    let result = ended(trial.kept(&["spin"], &one_second, cancel).await)?;
    tried.control("cpu-time", "use a processor", Ok(()));
    let ends = [Status::Limit, Status::Failed];
    tried.attack(
        "cpu-time",
        "use a processor for longer than its limit",
        not_ended(result, &ends, "cpu-time", evidence),
    );

    tell(&format!("{name}: time, free space and output"));
    let result = ended(trial.kept(&["hang"], &[(Limit::Wall, 1_500)], cancel).await)?;
    tried.control("wall", "run", Ok(()));
    tried.attack(
        "wall",
        "run on after SIGTERM when its time is over",
        not_ended(result, &[Status::Timeout], "wall", evidence),
    );
    let no_room = [(Limit::FreeSpace, ENDLESS), (Limit::Wall, 15_000)];
    let result = ended(trial.kept(&["hang"], &no_room, cancel).await)?;
    tried.control(SPACE, "run", Ok(()));
    tried.attack(
        SPACE,
        "run on where less space is free than its limit",
        not_ended(result, &[Status::Limit], SPACE, evidence),
    );
    let much = (folder::OUTPUT * TIMES).to_string();
    let result = ended(trial.kept(&["output", &much], &[], cancel).await)?;
    tried.control(OUTPUT, "write output", Ok(()));
    tried.attack(
        OUTPUT,
        "write four times the output of its limit",
        not_ended(result, &[Status::Limit], OUTPUT, evidence),
    );
    evidence.tries.extend(tried.tries);
    Ok(())
}

/// A call that ended, or why it did not; an error only where the doctor itself was told to end.
fn ended(result: Result<CallResult, CallError>) -> Result<Result<CallResult, String>, Error> {
    match result {
        Ok(result) if result.status == Status::Cancelled => Err(Error::Cancelled),
        Ok(result) => Ok(Ok(result)),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn so(so: bool) -> std::io::Result<()> {
    if so { Ok(()) } else { Err(std::io::Error::other("the limit holds")) }
}

/// Whether a call ended in one of these ways.
fn as_ended(result: Result<CallResult, String>, ways: &[Status]) -> std::io::Result<()> {
    match result {
        Ok(result) if ways.contains(&result.status) => Ok(()),
        Ok(result) => Err(std::io::Error::other(told(&result))),
        Err(why) => Err(std::io::Error::other(why)),
    }
}

/// Whether a call ended in none of these ways: then what it tried succeeded, unless the trial broke.
fn not_ended(
    result: Result<CallResult, String>,
    ways: &[Status],
    name: &'static str,
    evidence: &mut Evidence,
) -> std::io::Result<()> {
    match result {
        Ok(result) if result.status == Status::Error => {
            evidence.broken.push((vec![name], told(&result)))
        }
        Ok(result) if ways.contains(&result.status) => {
            return Err(std::io::Error::other(format!("it ended as {}", result.status.word())));
        }
        Ok(_) => return Ok(()),
        Err(why) => evidence.broken.push((vec![name], why)),
    }
    Err(std::io::Error::other("the trial broke"))
}

/// How a call ended, for people.
fn told(result: &CallResult) -> String {
    match &result.error {
        Some(error) => format!("{}: {}", result.status.word(), error.message),
        None => format!("{} with exit code {}", result.status.word(), result.exit.get()),
    }
}

/// What the probe printed.
fn read_output<T: serde::de::DeserializeOwned>(result: CallResult) -> Result<T, String> {
    let how = told(&result);
    let bytes = result.stdout.map(|stream| stream.into_bytes().0).unwrap_or_default();
    json::read_as(&bytes, json::Limits::USUAL).map_err(|_| {
        let said = result.stderr.map(|stream| stream.into_bytes().0).unwrap_or_default();
        format!("the probe ended as {how} {}", String::from_utf8_lossy(&said).trim())
    })
}

fn figure(result: CallResult) -> Result<u64, String> {
    read_output(result)
}

/// The probe's figure; none if a limit ended it first.
fn figure_or_end(result: CallResult) -> Result<Option<u64>, String> {
    match result.status {
        Status::Limit | Status::Oom => Ok(None),
        _ => figure(result).map(Some),
    }
}
