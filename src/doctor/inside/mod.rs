//! The probe: this program, run inside a sandbox, tries what no sandbox may allow.
//!
//! Duty: try, beside a control that must succeed, and print what came of it. Non-goals: judging it; the host does
//! ([`judge`](super::judge)). Every try is bounded: a sandbox that does not hold it must not cost the host its memory, disk or
//! process table. Trust boundary: what is printed comes from a sandbox, and is read as such.

mod look;
mod strain;

use std::io::Write as _;
use std::process::ExitCode;

use super::seen::Asked;
use crate::json;

/// The first word that makes this program the probe.
pub const VERB: &str = "doctor-probe";

/// Ends of the probe.
const DONE: u8 = 0;
const MISUSED: u8 = 2;

/// Runs the probe, if these words ask for it.
#[must_use]
pub fn main(words: &[std::ffi::OsString]) -> Option<ExitCode> {
    let words: Vec<&str> = words.iter().skip(1).map_while(|word| word.to_str()).collect();
    let (&verb, words) = words.split_first()?;
    (verb == VERB).then(|| ExitCode::from(probe(words)))
}

fn probe(words: &[&str]) -> u8 {
    let figure = |word: &str| word.parse::<u64>().ok();
    match *words {
        ["look", asked] => match json::read_as::<Asked>(asked.as_bytes(), json::Limits::USUAL) {
            Ok(asked) => print(&look::look(&asked)),
            Err(_) => MISUSED,
        },
        ["memory", bytes] => figure(bytes).map_or(MISUSED, |bytes| say(strain::memory(bytes))),
        ["threads", count] => figure(count).map_or(MISUSED, |count| say(strain::threads(count))),
        ["processors", millis] => figure(millis).map_or(MISUSED, |it| say(strain::processors(it))),
        ["spin"] => say(strain::spin()),
        ["output", bytes] => figure(bytes).map_or(MISUSED, strain::output),
        ["hang"] => strain::hang(),
        ["linger", word] => strain::linger(word),
        ["linger-on", word] => match strain::linger(word) {
            DONE => strain::stay_on(word),
            failed => failed,
        },
        ["stay", _word] => strain::stay(),
        _ => MISUSED,
    }
}

/// Prints a figure.
fn say(figure: u64) -> u8 {
    print(&figure)
}

/// Prints one line of JSON.
pub(super) fn print(value: &impl serde::Serialize) -> u8 {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => DONE,
        Err(_) => MISUSED,
    }
}
