//! `git_commit`: a commit of named files, or of what is staged.

use serde::Deserialize;
use serde_json::Value;

use super::command::paths;
use super::git::{Commit, commit};
use super::intent::Intent;
use super::problem::Problem;
use crate::broker::client::{Call, Thrown};

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    message: String,
    files: Vec<String>,
    project_path: String,
}

/// Commits.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    paths(&args.files)?;
    commit(&call.client, &args.wanted(), "commit").await
}

/// What a call will run.
pub(super) fn intends(args: &Value) -> Vec<Intent> {
    // What it refuses itself, it says itself.
    let checked = Args::deserialize(args).ok().filter(|args| paths(&args.files).is_ok());
    let Some(args) = checked else { return Vec::new() };
    let wanted = args.wanted();
    vec![Intent::run(wanted.argv(), &wanted.cwd)]
}

impl Args {
    fn wanted(self) -> Commit {
        Commit { message: self.message, paths: self.files, all: false, cwd: self.project_path }
    }
}
