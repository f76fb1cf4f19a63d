//! What is about this machine and user, and no single engine.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::holes;
use super::report::{Examined, Outcome, Row};
use crate::audit::{Filter, Ledger};
use crate::call::{self, CallError, Context, Swept};
use crate::config;
use crate::engine::Choice;
use crate::environment::Environment;
use crate::error::Failure;
use crate::policy_files::{self, Places, Trust};
use crate::sys;
use crate::workspace::Workspace;

/// The oldest Node whose language the runtime of tools speaks.
const NODE: u32 = 20;

/// Free space below which calls that write end at their limit by default.
const FREE: u64 = 512 << 20;

/// Milliseconds that clocks of one machine may differ by.
const SLACK: i64 = 1_000;

/// All rows.
pub async fn look(ledger: &Ledger, engines: &[Examined], context: &Context) -> Vec<Row> {
    let places = Places::of(&context.environment, workspace(context).as_deref());
    let mut rows = vec![kernel()];
    rows.extend(engines.iter().flat_map(|engine| &engine.parts).filter_map(|part| {
        let holes = holes::of(&part.name, &part.version);
        (!holes.is_empty()).then(|| known(&part.name, &part.version, &holes))
    }));
    rows.push(settings(&places));
    rows.push(leftovers(ledger, context).await);
    rows.extend(places.state.as_deref().map(disk));
    rows.extend(places.state.as_deref().map(permissions));
    rows.push(clock(ledger));
    rows.push(node(&context.environment));
    rows
}

fn workspace(context: &Context) -> Option<std::path::PathBuf> {
    Workspace::find(None, &context.environment).ok().map(|it| it.root().to_owned())
}

fn row(name: &str, mechanism: impl Into<String>, tried: &str, result: Outcome) -> Row {
    Row {
        name: name.to_owned(),
        mechanism: mechanism.into(),
        tried: vec![tried.to_owned()],
        result,
        found: None,
        change: None,
    }
}

impl Row {
    fn found(self, found: impl Into<String>) -> Self {
        Self { found: Some(found.into()), ..self }
    }

    fn change(self, change: impl Into<String>) -> Self {
        Self { change: Some(change.into()), ..self }
    }
}

/// The release of the running kernel.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn kernel() -> Row {
    let release = release();
    let holes = holes::of("linux", &release);
    match holes.is_empty() {
        true => row("kernel", release, "compare its version with known holes", Outcome::Holds),
        false => known("kernel", &release, &holes),
    }
}

fn known(name: &str, version: &str, holes: &[String]) -> Row {
    row(name, version, "compare its version with known holes", Outcome::Note)
        .found(format!(
            "this version had {}; your distribution may have mended it",
            holes.join(", ")
        ))
        .change("install the updates of your distribution")
}

/// Whether configuration and default policy can be used.
fn settings(places: &Places) -> Row {
    let row = |result| row("settings", "configuration and default policy", "load them", result);
    let loaded = config::load(places).map_err(|error| told(&error)).and_then(|config| {
        let root = places.workspace.clone().unwrap_or_default();
        let choice = config.choice(&policy_files::Choice::Default, &root);
        policy_files::load(&choice, places, Trust::Required).map_err(|error| told(&error))
    });
    match loaded {
        Ok(loaded) => {
            row(Outcome::Holds).found(format!("the default policy is `{}`", loaded.policy.name()))
        }
        Err(why) => row(Outcome::Fails)
            .found(why)
            .change("`runner config show` and `runner policy check` show each place"),
    }
}

fn told(error: &impl Failure) -> String {
    let findings = error.findings().iter().map(|finding| finding.message.clone());
    std::iter::once(error.to_string()).chain(findings).collect::<Vec<_>>().join("; ")
}

/// Ends what calls left whose process died, as `runner gc` does.
async fn leftovers(ledger: &Ledger, context: &Context) -> Row {
    let row = |result| {
        row(
            "leftovers",
            "sandboxes, stages and records of dead calls",
            "end and remove them",
            result,
        )
    };
    let undo = match config::load(&Places::of(&context.environment, None)) {
        Ok(config) => config.undo(),
        Err(_) => return row(Outcome::NotTried).found("the configuration cannot be used"),
    };
    match call::gc(ledger, &Choice::default(), &context.environment, undo).await {
        Ok(Swept { aborted, removed, recovered }) => {
            if aborted.len() + removed + recovered.len() == 0 {
                return row(Outcome::Holds).found("there are none");
            }
            row(Outcome::Note).found(format!(
                "{} recorded as aborted, {} removed, {} finished or taken back",
                aborted.len(),
                removed,
                recovered.len()
            ))
        }
        Err(CallError::Engine(error)) if error.is_out_of_reach() => {
            row(Outcome::NotTried).found("no engine can be used")
        }
        Err(error) => row(Outcome::Fails)
            .found(error.to_string())
            .change("run `runner gc` for the whole error"),
    }
}

/// Whether stages and records have room.
fn disk(state: &Path) -> Row {
    let row = |result| row("disk", state.display().to_string(), "ask for its free space", result);
    let there = state.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let words = format!("{} MiB are free", free >> 20);
            match free < FREE {
                true => row(Outcome::Fails)
                    .found(words)
                    .change("free some space: a call that writes ends at its limit `free-space`"),
                false => row(Outcome::Holds).found(words),
            }
        }
        Err(error) => row(Outcome::Unproved).found(std::io::Error::from(error).to_string()),
    }
}

/// Whether other users can neither read nor change the state folder.
fn permissions(state: &Path) -> Row {
    let row =
        |result| row("permissions", state.display().to_string(), "look who may use it", result);
    let found = match fs::metadata(state) {
        Ok(found) => found,
        Err(error) => return row(Outcome::NotTried).found(error.to_string()),
    };
    let own = found.uid() == rustix::process::geteuid().as_raw();
    match (own, found.mode() & 0o077) {
        (true, 0) => row(Outcome::Holds),
        (true, _) => row(Outcome::Fails)
            .found(format!("other users may use it (mode {:o})", found.mode() & 0o777))
            .change(format!("chmod 700 {}", state.display())),
        (false, _) => row(Outcome::Fails)
            .found(format!("it belongs to user {}", found.uid()))
            .change("give it to the user who runs runner, or set XDG_STATE_HOME"),
    }
}

/// Whether time goes forward: approvals, limits of a day and records are ordered by it.
fn clock(ledger: &Ledger) -> Row {
    let row = |result| row("clock", "the newest record", "compare its time with the clock", result);
    let newest = ledger.list(&Filter { most: Some(1), ..Filter::default() });
    let newest = match newest {
        Ok(calls) => calls.first().map_or(0, |call| call.at),
        Err(error) => return row(Outcome::Unproved).found(error.to_string()),
    };
    let now = i64::try_from(sys::now().as_millis()).unwrap_or(i64::MAX);
    match newest > now.saturating_add(SLACK) {
        true => row(Outcome::Fails)
            .found("the newest record is from the future: the clock was set back")
            .change("set the clock; approvals and limits of a day count by it"),
        false => row(Outcome::Holds),
    }
}

/// Whether custom tools find what runs them.
fn node(environment: &Environment) -> Row {
    let row = |mechanism: String, result| row("node", mechanism, "ask for its version", result);
    let path = environment.get("PATH").unwrap_or_default();
    let program =
        std::env::split_paths(&path).map(|folder| folder.join("node")).find(|it| it.is_file());
    let Some(program) = program else {
        return row("node on PATH".to_owned(), Outcome::Note)
            .found("there is none: custom tools and MCP servers in JavaScript cannot run")
            .change(format!("install Node {NODE} or newer"));
    };
    let said =
        Command::new(&program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let version = version.unwrap_or_default();
    let major =
        version.trim_start_matches('v').split('.').next().and_then(|it| it.parse::<u32>().ok());
    let row = |result| row(program.display().to_string(), result);
    match major {
        Some(major) if major >= NODE => row(Outcome::Holds).found(version),
        _ => row(Outcome::Note)
            .found(format!("it says {version:?}; tools are compiled for Node {NODE}"))
            .change(format!("install Node {NODE} or newer")),
    }
}
