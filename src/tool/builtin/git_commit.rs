//! `git_commit`: a commit of named files, or of what is staged.

use serde::Deserialize;
use serde_json::Value;

use super::command::paths;
use super::git::{Commit, commit};
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
    let wanted =
        Commit { message: args.message, paths: args.files, all: false, cwd: args.project_path };
    commit(&call.client, &wanted, "commit").await
}
