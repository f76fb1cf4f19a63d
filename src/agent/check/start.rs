//! How each agent's program is started without a person, at a model of ours.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;

use crate::agent::error::AgentError;
use crate::agent::kind::Agent;
use crate::agent::pin::Pinned;

/// The most that is shown of what a program said.
const SHOWN: usize = 2000;

/// The name of an agent's program.
pub(super) fn program(agent: Agent) -> &'static str {
    match agent {
        Agent::Cursor => "cursor-agent",
        agent => agent.word(),
    }
}

/// What a program says of its version.
pub(super) fn version(program: &Path, pinned: &Pinned) -> Result<String, AgentError> {
    let mut command = command(program, pinned);
    command.arg("--version");
    let failed = |source| AgentError::Start { program: program.display().to_string(), source };
    let output = command.output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Some say more around it.
    let version = text.lines().find(|line| line.chars().any(|letter| letter.is_ascii_digit()));
    Ok(version.unwrap_or("unknown").trim().to_owned())
}

/// Runs the agent to its end; the end of what it said.
pub(super) fn run(
    agent: Agent,
    program: &Path,
    pinned: &Pinned,
    folder: &Path,
    port: u16,
    patience: Duration,
) -> Result<String, AgentError> {
    let mut command = command(program, pinned);
    command.current_dir(folder).stdin(Stdio::null());
    at_model(agent, &mut command, port);
    let said = folder.join(".said");
    let failed = |source| AgentError::Start { program: program.display().to_string(), source };
    let file = std::fs::File::create(&said).map_err(failed)?;
    let both = [file.try_clone().map_err(failed)?, file];
    let [out, err] = both;
    let mut child = command.stdout(out).stderr(err).spawn().map_err(failed)?;
    wait(&mut child, patience).map_err(failed)?;
    let mut text = Vec::new();
    let read = std::fs::File::open(&said).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(failed)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
    Ok(text[from..].to_owned())
}

/// The program in the pinned environment.
fn command(program: &Path, pinned: &Pinned) -> Command {
    let environment = pinned.environment();
    let mut command = Command::new(program);
    command.env_clear();
    for name in crate::agent::pin::VARIABLES {
        if let Some(value) = environment.get(name) {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Leads an agent to the model, and away from everything else.
fn at_model(agent: Agent, command: &mut Command, port: u16) {
    let url = format!("http://127.0.0.1:{port}");
    let v1 = format!("{url}/v1");
    match agent {
        Agent::Claude => {
            command.args(["-p", "go", "--model", "stub-model"]);
            command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "stub");
            command
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_AUTOUPDATER", "1");
        }
        Agent::Codex => {
            let provider = format!(
                "model_providers.stub={{name=\"stub\",base_url=\"{v1}\",wire_api=\"responses\",env_key=\"STUB_KEY\"}}"
            );
            command.args([
                "exec",
                "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox",
            ]);
            command.args([
                "-c",
                &provider,
                "-c",
                "model_provider=\"stub\"",
                "-c",
                "model=\"stub-model\"",
                "go",
            ]);
            command.env("STUB_KEY", "stub");
        }
        Agent::Gemini => {
            command.args(["-p", "go", "--yolo", "--model", "gemini-2.5-flash"]);
            command.env("GOOGLE_GEMINI_BASE_URL", url).env("GEMINI_API_KEY", "stub");
            command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        }
        Agent::Copilot => {
            command.args(["-p", "go", "--allow-all-tools"]);
            command.env("COPILOT_PROVIDER_BASE_URL", v1).env("COPILOT_MODEL", "stub-model");
            command.env("COPILOT_OFFLINE", "true");
        }
        Agent::OpenCode => {
            let config = json!({
                "model": "stub/stub-model", "autoupdate": false, "share": "disabled",
                "provider": { "stub": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": { "baseURL": v1, "apiKey": "stub" },
                    "models": { "stub-model": { "name": "stub", "tool_call": true } },
                } },
            });
            command.args(["run", "go"]).env("OPENCODE_CONFIG_CONTENT", config.to_string());
        }
        Agent::Qwen => {
            command.args(["-p", "go", "--yolo"]);
            command.env("OPENAI_BASE_URL", v1).env("OPENAI_API_KEY", "stub");
            command.env("OPENAI_MODEL", "stub-model");
        }
        Agent::Cursor => {
            command.args(["-p", "go"]);
        }
    }
}

/// Waits for the end, and ends a program that takes too long.
fn wait(child: &mut Child, patience: Duration) -> io::Result<()> {
    let waited = ends_within(child, patience);
    if !matches!(waited, Ok(true)) {
        child.kill()?;
    }
    child.wait()?;
    match waited? {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::TimedOut)),
    }
}

/// Whether a child ends within this time.
fn ends_within(child: &Child, patience: Duration) -> io::Result<bool> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let spawn = |seconds| Command::new("sleep").arg(seconds).spawn().unwrap();
        let mut slow = spawn("1000");
        let error = wait(&mut slow, Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(slow.try_wait().unwrap().is_some());
        wait(&mut spawn("0"), Duration::from_secs(1000)).unwrap();
    }
}
