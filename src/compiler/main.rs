//! The compiler of tools: started by the host program with a folder, given one job, ended with one answer.
//!
//! Duty: bundle a tool with rolldown, or parse a text. Trust boundary: source is foreign bytes, and a parser is where
//! they first reach our own code. So this process confines itself before it reads its job: it can read one folder, for
//! a while, with so much memory, and do nothing else. A panic aborts it: half a compiler must not go on waiting
//! for the other half.
//!
//! | part | duty |
//! | --- | --- |
//! | `confine`, `descriptors` | what the process may do, and what it must not have |
//! | `bundle`, `files`, `plugin`, `map`, `report` | rolldown and what we put around it |
//! | `parse` | a text's imports, exports and errors |

mod bundle;
mod confine;
mod descriptors;
mod files;
mod map;
mod parse;
mod plugin;
mod report;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use runner_compiler::folder::{Folder, Identity};
use runner_compiler::job::{Answer, Confinement, Done, Job};
use runner_compiler::limits::{ANSWER_BYTES, JOB_BYTES, STACK};
use runner_compiler::outline::{Said, Text};
use runner_compiler::{BUNDLE, PARSE};

use bundle::{Bundled, bundle};
use confine::{confine, die_with_parent};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let told = match words.as_slice() {
        [_, word] if word == PARSE => tell(&parsed()),
        [_, word, folder, dev, ino] if word == BUNDLE => {
            let number = |word: &OsString| word.to_str().and_then(|word| word.parse().ok());
            tell(&match number(dev).zip(number(ino)) {
                Some((dev, ino)) => answer(Path::new(folder), Identity { dev, ino }),
                None => Answer::Folder("no identity was given".to_owned()),
            })
        }
        _ => tell(&Answer::Broken("these are no words of a compiler".to_owned())),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(folder: &Path, expected: Identity) -> Answer {
    if let Err(error) = descriptors::close() {
        return Answer::Unconfined(format!("closing inherited descriptors: {error}"));
    }
    if let Err(error) = die_with_parent() {
        return Answer::Unconfined(error.to_string());
    }
    let folder = match Folder::open(folder) {
        Ok(folder) if folder.identity() == expected => folder,
        Ok(_) => return Answer::Folder("another folder is there now".to_owned()),
        Err(error) => return Answer::Folder(error.to_string()),
    };
    let confinement = match confine(Some(folder.handle())) {
        Ok(confinement) => confinement,
        Err(error) => return Answer::Unconfined(error.to_string()),
    };
    aside(move || work(folder, confinement)).unwrap_or_else(Answer::Broken)
}

/// Does the work whose confinement is in force.
fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    // From here on, and not before, foreign bytes are read.
    std::panic::set_hook(Box::new(|info| {
        // The parent keeps the beginning of it.
        let _ = writeln!(io::stderr(), "{info}");
        std::process::abort();
    }));
    // A thread of our own: the stack of the first one is as large as our caller likes it.
    let work = thread::Builder::new().name("compile".to_owned()).stack_size(STACK).spawn(work);
    match work.map(thread::JoinHandle::join) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err("the compiler panicked".to_owned()),
        Err(error) => Err(format!("the compiler cannot start a thread: {error}")),
    }
}

/// The same life for a text that is only parsed: no folder, nothing to read but the job.
fn parsed() -> Said {
    if let Err(error) = descriptors::close() {
        return Said::Unconfined(format!("closing inherited descriptors: {error}"));
    }
    let confined = die_with_parent().and_then(|()| confine(None));
    let confinement = match confined {
        Ok(confinement) => confinement,
        Err(error) => return Said::Unconfined(error.to_string()),
    };
    let work = move || match job::<Text>() {
        Ok(text) => parse::read(&text, confinement),
        Err(why) => Said::Broken(why),
    };
    aside(work).unwrap_or_else(Said::Broken)
}

/// Reads the job.
fn job<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("the job cannot be read: {error}");
    let mut text = Vec::new();
    io::stdin().take(JOB_BYTES).read_to_end(&mut text).map_err(|error| wrong(&error))?;
    serde_json::from_slice(&text).map_err(|error| wrong(&error))
}

fn work(folder: Folder, confinement: Confinement) -> Answer {
    // The bundler hands parts of its work to a pool of threads, and for a tool the handing takes longer than the work: this
    // thread is the pool.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    if let Err(error) = pool {
        return Answer::Broken(format!("the compiler cannot start: {error}"));
    }
    let job: Job = match job() {
        Ok(job) => job,
        Err(why) => return Answer::Broken(why),
    };
    let started = Instant::now();
    match bundle(folder, &job) {
        Ok(Bundled { code, exports, files }) => {
            let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            let (observed, repeatable) = files.observed();
            Answer::Done(Done { code, exports, observed, repeatable, micros, confinement })
        }
        Err(findings) => Answer::Findings(findings),
    }
}

fn tell(answer: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    if text.len() > ANSWER_BYTES {
        // Both kinds of answer say it in the same form.
        text = serde_json::to_vec(&Answer::Broken("the answer is too long".to_owned()))?;
    }
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}
