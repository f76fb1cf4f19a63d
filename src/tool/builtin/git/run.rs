//! One operation of `git`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::commit::{Commit, commit};
use super::parse;
use crate::broker::client::{Call, Client, Exec, Ran, Thrown};
use crate::tool::builtin::command::{paths, revision, shown, went_well};
use crate::tool::builtin::intent::Intent;
use crate::tool::builtin::problem::Problem;

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Status,
    Diff,
    Log,
    Commit,
    Branch,
    Checkout,
}

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
struct Args {
    operation: Operation,
    paths: Vec<String>,
    #[serde(rename = "ref")]
    revision: Option<String>,
    staged: bool,
    limit: u64,
    message: Option<String>,
    all: bool,
    name: Option<String>,
    cwd: String,
}

/// Does it.
pub(in crate::tool::builtin) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    args.check()?;
    let client = &call.client;
    match args.operation {
        Operation::Status => {
            let ran = git(
                client,
                &args.cwd,
                &words(&args, &["status", "--porcelain=v2", "--branch", "-z"]),
            )
            .await?;
            Ok(with(parse::status(&ran.stdout), &ran, "status"))
        }
        Operation::Diff => diff(client, &args).await,
        Operation::Log => {
            let most = format!("--max-count={}", args.limit);
            let format = format!("--format={}", parse::LOG_FORMAT);
            let ran = git(client, &args.cwd, &words(&args, &["log", "-z", &most, &format])).await?;
            Ok(with(json!({ "commits": parse::log(&ran.stdout) }), &ran, "log"))
        }
        Operation::Commit => {
            let Some(wanted) = args.commit() else {
                return Err(Problem::Arguments.says("a commit has a message"));
            };
            commit(client, &wanted, "commit").await
        }
        Operation::Branch => branch(client, &args).await,
        Operation::Checkout => checkout(client, &args).await,
    }
}

/// What a call will run, of the operations that need an approval.
pub(in crate::tool::builtin) fn intends(args: &Value) -> Vec<Intent> {
    // What it refuses itself, it says itself.
    let checked = Args::deserialize(args).ok().filter(|args| args.check().is_ok());
    let Some(args) = checked else { return Vec::new() };
    let argv = match args.operation {
        Operation::Commit => args.commit().map(|wanted| wanted.argv()),
        Operation::Checkout => checkout_argv(&args),
        Operation::Status | Operation::Diff | Operation::Log | Operation::Branch => None,
    };
    argv.map(|argv| Intent::run(argv, &args.cwd)).into_iter().collect()
}

impl Args {
    /// No word is one that git would read as something else.
    fn check(&self) -> Result<(), Thrown> {
        self.revision.as_deref().map(revision).transpose()?;
        self.name.as_deref().map(revision).transpose()?;
        paths(&self.paths)
    }

    fn commit(&self) -> Option<Commit> {
        let (message, paths) = (self.message.clone()?, self.paths.clone());
        Some(Commit { message, paths, all: self.all, cwd: self.cwd.clone() })
    }
}

/// `git`, these words, the revision if there is one, and the paths where they are paths.
fn words(args: &Args, first: &[&str]) -> Vec<String> {
    let mut words: Vec<String> =
        std::iter::once("git").chain(first.iter().copied()).map(str::to_owned).collect();
    words.extend(args.revision.clone());
    words.push("--".to_owned());
    words.extend(args.paths.iter().cloned());
    words
}

/// Runs git, which must go well.
pub(super) async fn git(client: &Client, cwd: &str, argv: &[String]) -> Result<Ran, Thrown> {
    let what = argv.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
    let exec = Exec { argv, cwd: Some(cwd), ..Exec::default() };
    went_well(client.exec(exec).await?, &what)
}

fn with(mut value: Value, ran: &Ran, operation: &str) -> Value {
    if let Some(value) = value.as_object_mut() {
        value.insert("operation".to_owned(), operation.into());
        value.entry("truncated").or_insert_with(|| ran.truncated.into());
        value.insert("call".to_owned(), ran.call.as_str().into());
    }
    value
}

async fn diff(client: &Client, args: &Args) -> Result<Value, Thrown> {
    let mut first = vec!["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
    if args.staged {
        first.push("--cached");
    }
    let ran = git(client, &args.cwd, &words(args, &first)).await?;
    let (text, cut) = shown(&ran.stdout);
    Ok(with(json!({ "diff": text, "truncated": cut || ran.truncated }), &ran, "diff"))
}

async fn branch(client: &Client, args: &Args) -> Result<Value, Thrown> {
    if let Some(name) = &args.name {
        let mut argv: Vec<String> = ["git", "branch", "--", name].map(str::to_owned).to_vec();
        argv.extend(args.revision.clone());
        let ran = git(client, &args.cwd, &argv).await?;
        return Ok(with(json!({ "branch": name }), &ran, "branch"));
    }
    let format = format!("--format={}", parse::BRANCH_FORMAT);
    let argv = ["git", "branch", "--list", &format].map(str::to_owned);
    let ran = git(client, &args.cwd, &argv).await?;
    Ok(with(json!({ "branches": parse::branches(&ran.stdout) }), &ran, "branch"))
}

async fn checkout(client: &Client, args: &Args) -> Result<Value, Thrown> {
    let Some(argv) = checkout_argv(args) else {
        let hint = "give ref to switch, name to make a branch, or paths to restore files";
        return Err(Problem::Arguments.says("it is not clear what to check out").hint(hint));
    };
    let ran = git(client, &args.cwd, &argv).await?;
    let said = shown(&ran.stderr).0;
    let to = args.name.as_ref().or(args.revision.as_ref().filter(|_| args.paths.is_empty()));
    Ok(with(json!({ "output": said.trim(), "branch": to }), &ran, "checkout"))
}

/// The command that checks out; nothing if it is not clear what.
fn checkout_argv(args: &Args) -> Option<Vec<String>> {
    let mut argv: Vec<String> = ["git", "checkout", "--quiet"].map(str::to_owned).to_vec();
    match (&args.name, &args.revision, args.paths.is_empty()) {
        (Some(name), from, true) => {
            argv.extend(["-b".to_owned(), name.clone()]);
            argv.extend(from.clone());
            argv.push("--".to_owned());
        }
        (None, Some(to), true) => argv.extend([to.clone(), "--".to_owned()]),
        (None, from, false) => {
            argv.extend(from.clone());
            argv.push("--".to_owned());
            argv.extend(args.paths.iter().cloned());
        }
        (Some(_), _, false) | (None, None, true) => return None,
    }
    Some(argv)
}
