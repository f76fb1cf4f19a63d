//! `runner hook AGENT`: answers a coding agent that is about to run a shell command.
//!
//! It writes to its streams itself: the printer follows variables of the environment, which a repository can set.

use std::io::{self, Write as _};
use std::os::fd::AsFd;

use rustix::fs::{FileType, fstat, makedev};

use crate::agent::{self, Agent, Answer};
use crate::cli::agent::agent_parser;
use crate::exit::ExitCode;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Reads one JSON object from standard input and answers in the agent's form. `runner agent install AGENT` writes this command into the agent's configuration; it takes no options, because what holds was pinned then.\n\nExit codes: 0 answered, 2 refused.\n\nExamples:\n  runner hook claude\n  runner hook codex"
)]
pub struct Args {
    /// The agent that calls
    #[arg(value_name = "AGENT", value_parser = agent_parser())]
    agent: Agent,
}

impl Args {
    /// Answers.
    pub(super) fn run(&self) -> ExitCode {
        answer(self.agent)
    }
}

/// Answers an agent on this process's streams.
pub(super) fn answer(agent: Agent) -> ExitCode {
    let said = agent::answer_in_time(agent, move || {
        agent::answer(agent, agent::read_bounded(io::stdin().lock()))
    });
    tell(&said)
}

/// Answers an agent that is not known: whichever it is, it understands the exit code.
pub(super) fn refuse_unknown(word: &str) -> ExitCode {
    let known: Vec<&str> = Agent::ALL.iter().map(|agent| agent.word()).collect();
    let reason = format!("runner knows no agent {word:?}; known: {}", known.join(", "));
    tell(&Answer::Refuse(reason).said(Agent::Claude))
}

/// Says it; an answer that cannot be written is a refusal.
fn tell(said: &agent::Said) -> ExitCode {
    if let Some(reason) = &said.err {
        let _ = writeln!(io::stderr(), "{reason}");
    }
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", said.out).and_then(|()| out.flush()) {
        Ok(()) if is_read(&out) => ExitCode::of_command(said.code),
        Ok(()) | Err(_) => ExitCode::USAGE,
    }
}

/// Whether an agent can read what is written there. Where a process starts with its output closed, Rust's runtime opens
/// `/dev/null` in its place, and writing succeeds.
fn is_read(out: impl AsFd) -> bool {
    let null = makedev(1, 3);
    fstat(out).is_ok_and(|stat| {
        !(FileType::from_raw_mode(stat.st_mode).is_char_device() && stat.st_rdev == null)
    })
}
