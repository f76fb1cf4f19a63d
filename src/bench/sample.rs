//! Times of one command, and running it for them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::deadline::Deadline;
use super::error::BenchError;
use super::idle::wait_until_idle;

/// The longest that one command may take. All that are measured take seconds at the most.
const LONGEST: Duration = Duration::from_secs(120);

/// Times of one thing.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The middle one.
    pub fn median(&self) -> Duration {
        self.at(50)
    }

    /// The one that 95 of 100 are not above.
    pub fn p95(&self) -> Duration {
        self.at(95)
    }

    fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }
}

/// Runs a command that must go well on an idle machine; its time from start to end. What is a sample comes from here.
///
/// # Errors
/// It did not go well.
pub fn measured(command: &mut Command) -> Result<Duration, BenchError> {
    wait_until_idle();
    timed(command).map(|(took, _)| took)
}

/// Runs a command that must go well; its time from start to end, and what it wrote.
///
/// # Errors
/// It did not go well.
pub fn timed(command: &mut Command) -> Result<(Duration, Vec<u8>), BenchError> {
    timed_within(command, LONGEST)
}

fn timed_within(
    command: &mut Command,
    longest: Duration,
) -> Result<(Duration, Vec<u8>), BenchError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.spawn().and_then(|child| {
        let deadline = Deadline::of(&child, longest);
        Ok((child.wait_with_output()?, deadline))
    });
    let took = begun.elapsed();
    let failed = |how: String| {
        let words: Vec<String> = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| word.to_string_lossy().chars().take(80).collect())
            .collect();
        BenchError::Command { line: words.join(" ").chars().take(400).collect(), how }
    };
    let (output, deadline) = output.map_err(|error| failed(format!("cannot be run: {error}")))?;
    if deadline.over() {
        let how = format!("did not end within {} s; is the engine stuck?", longest.as_secs());
        return Err(failed(how));
    }
    if output.status.success() {
        return Ok((took, output.stdout));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(failed(format!("ended with {}: {last}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_nearly_the_last_are_found() {
        let mut samples = Samples::default();
        for ms in (1..=100).rev() {
            samples.push(Duration::from_millis(ms));
        }
        assert_eq!(samples.median(), Duration::from_millis(51));
        assert_eq!(samples.p95(), Duration::from_millis(96));
        assert_eq!(Samples::default().median(), Duration::ZERO);
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_and_says_so() {
        let mut endless = Command::new("sleep");
        let error = timed_within(endless.arg("3600"), Duration::from_millis(1)).unwrap_err();
        assert!(error.to_string().contains("did not end within 0 s"), "{error}");
        let (_, text) = timed_within(Command::new("echo").arg("x"), LONGEST).unwrap();
        assert_eq!(text, b"x\n", "the control");
    }

    #[test]
    fn a_command_that_fails_says_how() {
        let error = timed(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`sh -c") && text.contains('3') && text.contains("no"), "{text}");
    }
}
