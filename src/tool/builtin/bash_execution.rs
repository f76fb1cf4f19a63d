//! `bash_execution`: a shell line or an argv, judged by the policy's own reader of shell lines, in a sandbox.

use std::collections::BTreeMap;

use runner_policy::variables::is_name;
use runner_policy::word::quoted;
use serde::Deserialize;
use serde_json::Value;

use super::command::ended;
use super::intent::Intent;
use super::problem::Problem;
use crate::broker::Command;
use crate::broker::client::{Call, Exec, Thrown};

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
struct Args {
    command: String,
    args: Option<Vec<String>>,
    cwd: String,
    env: BTreeMap<String, String>,
    stdin: Option<String>,
    timeout: u64,
}

/// Runs it.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    if let Some(name) = args.env.keys().find(|name| !is_name(name)) {
        return Err(Problem::Arguments.says(format!("`{name}` is not a variable name")));
    }
    let (command, variables) = args.command();
    let (argv, line) = match &command {
        Command::Argv(argv) => (argv.as_slice(), None),
        Command::Line(line) => (&[][..], Some(line.as_str())),
    };
    let exec = Exec {
        argv,
        line,
        cwd: Some(&args.cwd),
        env: &variables,
        timeout: Some(args.timeout),
        stdin: args.stdin.as_ref().map(String::as_bytes),
    };
    Ok(ended(&call.client.exec(exec).await?))
}

/// What a call will run.
pub(super) fn intends(args: &Value) -> Vec<Intent> {
    // What it refuses itself, it says itself.
    let named = |args: &Args| args.env.keys().all(|name| is_name(name));
    let Some(args) = Args::deserialize(args).ok().filter(named) else { return Vec::new() };
    let (command, env) = args.command();
    vec![Intent::Run { command, cwd: args.cwd, env }]
}

impl Args {
    /// The command, and the variables beside it: a line sets its variables itself.
    fn command(&self) -> (Command, Vec<(String, String)>) {
        let variables: Vec<(String, String)> =
            self.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        match &self.args {
            Some(more) => {
                let argv = std::iter::once(&self.command).chain(more).cloned().collect();
                (Command::Argv(argv), variables)
            }
            None => (Command::Line(with(&variables, &self.command)), Vec::new()),
        }
    }
}

/// A line with variables for all of its commands, which the policy judges with it.
fn with(variables: &[(String, String)], line: &str) -> String {
    if variables.is_empty() {
        return line.to_owned();
    }
    let set = variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    format!("export {} && {line}", set.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_cannot_become_commands() {
        let variables = [("A".to_owned(), "x; rm -rf $(ls) '".to_owned())];
        let line = with(&variables, "ls | wc");
        let words = runner_policy::word::quoted("x; rm -rf $(ls) '");
        assert_eq!(line, format!("export A={words} && ls | wc"));
        assert_eq!(with(&[], "ls"), "ls");
    }
}
