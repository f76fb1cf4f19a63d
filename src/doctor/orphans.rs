//! Processes that a call leaves behind: when it ends, and when the process that made it is killed.
//!
//! The second needs a process of its own to kill: this program, started once more ([`stand_in`]). It makes one call in a
//! place of its own, runs the probe in it and nothing else, and passes on what the probe prints.

use std::fs;
use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use super::error::DoctorError;
use super::folder::TrialFolder;
use super::judge::{Evidence, ORPHANS};
use super::seen::Seen;
use super::trial::Trial;
use crate::call::launch::run::{Keep, Streams, this_program};
use crate::call::{CallResult, Context, Output};
use crate::engine::EngineName;
use crate::json;
use crate::policy_files::Places;
use crate::sandbox::cancel::Cancel;

/// The variable of the host that must not be in a sandbox.
const VARIABLE: &str = "RUNNER_DOCTOR_CANARY";

/// How long processes may take to be gone on a busy machine.
const GONE: Duration = Duration::from_secs(10);

/// How long the first words of a process may take.
const WORDS: Duration = Duration::from_secs(60);

/// Most bytes of a line.
const LINE: u64 = 64 << 10;

/// Time between two looks at the processes of this machine.
const PAUSE: Duration = Duration::from_millis(20);

/// Tries both.
///
/// # Errors
/// The doctor was told to end.
pub async fn try_all(
    trial: &Trial<'_>,
    evidence: &mut Evidence,
    cancel: &mut Cancel,
) -> Result<(), DoctorError> {
    let mut seen = Seen::default();
    let word = format!("{}-left", trial.place.canary());
    match trial.kept(&["linger", &word], &[], cancel).await {
        Ok(result) if result.status == crate::exit::Status::Cancelled => {
            return Err(DoctorError::Cancelled);
        }
        Ok(result) if result.status == crate::exit::Status::Completed => {
            seen.control(ORPHANS, "start a process in a session of its own", Ok(()));
            seen.attack(ORPHANS, "leave it behind when the call is over", stays(&word).await);
        }
        Ok(result) => {
            evidence.broken.push((vec![ORPHANS], format!("the call was {}", result.status.word())))
        }
        Err(error) => evidence.broken.push((vec![ORPHANS], error.to_string())),
    }
    match after_a_kill(trial, &mut seen).await {
        Ok(()) => {}
        Err(error) => {
            let why = format!("a call in another process cannot be tried: {error}");
            evidence.broken.push((vec![ORPHANS, "environment"], why));
        }
    }
    evidence.tries.extend(seen.tries);
    Ok(())
}

/// Kills the process that made a call, and looks what stays of the call.
async fn after_a_kill(trial: &Trial<'_>, seen: &mut Seen) -> io::Result<()> {
    let word = format!("{}-killed", trial.place.canary());
    let mut child = Command::new(this_program())
        .args(["doctor", "--stand-in", &word, "--engine", trial.engine.as_str()])
        .env(VARIABLE, &word)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let out = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut lines = BufReader::new(out.take(LINE)).lines();
    let mut line = async || {
        let line = tokio::time::timeout(WORDS, lines.next_line()).await;
        line.map_err(|_| io::ErrorKind::TimedOut)?
    };
    let place = line().await?;
    let said = line().await?;
    let words = said
        .as_deref()
        .and_then(|text| json::read_as::<Seen>(text.as_bytes(), json::Limits::USUAL).ok());
    let began = processes_with(&word).len();
    let killed = child.start_kill();
    let _ = child.wait().await;
    if let Some(folder) = place.filter(|folder| folder.starts_with('/')) {
        let state = Places::of(&trial.context.environment, None).state;
        super::folder::remove(std::path::Path::new(&folder), state.as_deref());
    }
    killed?;
    let Some(words) = words else {
        let mut error = String::new();
        if let Some(stream) = child.stderr.take() {
            let _ = stream.take(LINE).read_to_string(&mut error).await;
        }
        return Err(io::Error::other(error.lines().next().unwrap_or("it said nothing").to_owned()));
    };
    seen.tries.extend(words.tries);
    // A runtime with a kernel of its own shows the host no processes: then nothing can be seen to stay either.
    if began > 0 {
        seen.attack(ORPHANS, "outlive the process that made the call", stays(&word).await);
    }
    Ok(())
}

/// Whether processes with a word stay.
async fn stays(word: &str) -> io::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < GONE {
        if processes_with(word).is_empty() {
            return Err(io::Error::other("it is gone"));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Probes with this word among their words.
fn processes_with(word: &str) -> Vec<u32> {
    let with = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0).skip(1);
        words.next() == Some(super::inside::VERB.as_bytes())
            && words.any(|it| it == word.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(with).collect()
}

/// The process that is killed: one call of the probe, in a place of its own, which it names first.
///
/// # Errors
/// The call could not be made.
pub async fn stand_in(
    engine: EngineName,
    word: &str,
    context: &Context,
    cancel: &mut Cancel,
) -> Result<CallResult, DoctorError> {
    let place = TrialFolder::make(&context.environment).map_err(DoctorError::TrialFolder)?;
    let mut out = tokio::io::stdout();
    let named = format!("{}\n", place.root().display());
    tokio::io::AsyncWriteExt::write_all(&mut out, named.as_bytes())
        .await
        .map_err(DoctorError::TrialFolder)?;
    let trial = Trial { place: &place, engine, context };
    let streams = Streams { stdout: Some(Box::pin(out)), keep: Keep::Limit, ..Streams::default() };
    let output = Output::Streamed(streams);
    trial.run(&["linger-on", word], &[], output, cancel).await.map_err(DoctorError::from)
}
