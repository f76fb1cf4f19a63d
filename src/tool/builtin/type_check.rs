//! `type_check`: the project's own TypeScript, or the machine's, in a sandbox.
//!
//! A project's compiler is the project's code. It runs where the policy lets such code run, and nowhere else.

use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::Problem;
use crate::broker::client::{Call, Client, Exec, Ran, Thrown};
use crate::codes::Code;

/// Errors that are listed.
const ERRORS_MAX: usize = 500;
/// The compiler of a project, below its folder.
const OWN: &str = "node_modules/typescript/bin/tsc";

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    project_path: String,
    strict: Option<bool>,
}

/// Checks.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let project = plain(&args.project_path)?;
    let own = own_compiler(&call.client, &project).await?;
    let compiler = own.clone().unwrap_or_else(|| "tsc".to_owned());
    let mut argv: Vec<String> = match own {
        Some(path) => vec!["node".to_owned(), path],
        None => vec!["tsc".to_owned()],
    };
    argv.extend(["--noEmit", "--pretty", "false"].map(str::to_owned));
    if let Some(strict) = args.strict {
        argv.extend(["--strict".to_owned(), strict.to_string()]);
    }
    argv.extend(["-p".to_owned(), project]);
    let ran = call.client.exec(Exec { argv: &argv, ..Exec::default() }).await;
    let ran = ran.map_err(|refused| match refused.code {
        Code::ProgramNotFound => {
            let hint =
                "install it in the project (npm install --save-dev typescript) or on this machine";
            Problem::Missing.says("there is no TypeScript here").hint(hint)
        }
        _ => refused.into(),
    })?;
    answer(&ran, &compiler)
}

/// A folder that can stand where an option could.
fn plain(path: &str) -> Result<String, Thrown> {
    let path = path.trim_end_matches('/');
    if path.starts_with('-') || path.starts_with('@') {
        return Err(Problem::Arguments.says(format!("`{path}` is not a project folder")));
    }
    Ok(if path.is_empty() { ".".to_owned() } else { path.to_owned() })
}

/// The compiler that the project has, in its folder or one above it in the workspace.
async fn own_compiler(client: &Client, project: &str) -> Result<Option<String>, Thrown> {
    let mut folder = project;
    loop {
        let path = if folder == "." { OWN.to_owned() } else { format!("{folder}/{OWN}") };
        match client.stat(&path).await {
            Ok(_) => return Ok(Some(path)),
            Err(refused) if refused.code == Code::NotFound => {}
            Err(refused) => return Err(refused.into()),
        }
        folder = match folder.rsplit_once('/') {
            _ if folder == "." => return Ok(None),
            Some((above, _)) => above,
            None => ".",
        };
    }
}

fn answer(ran: &Ran, compiler: &str) -> Result<Value, Thrown> {
    let said = String::from_utf8_lossy(&ran.stdout);
    let found: Vec<Value> = said.lines().filter_map(error).collect();
    // It says with its exit code that there are errors. One that says nothing else did not get so far.
    if ran.exit_code != 0 && found.is_empty() {
        let text = [said.trim(), String::from_utf8_lossy(&ran.stderr).trim()].join("\n");
        let message = format!(
            "the compiler ended with exit code {} ({}): {}",
            ran.exit_code,
            ran.status,
            text.trim()
        );
        return Err(Problem::Command.says(message).with("call", ran.call.as_str()));
    }
    let count = found.len();
    Ok(json!({
        "success": ran.exit_code == 0,
        "compiler": compiler,
        "errors": found.iter().take(ERRORS_MAX).collect::<Vec<_>>(),
        "warnings": [],
        "errorCount": count,
        "truncated": count > ERRORS_MAX || ran.truncated,
        "call": ran.call,
    }))
}

/// `src/a.ts(3,7): error TS2322: Type …`, or `error TS5057: …` without a place.
fn error(line: &str) -> Option<Value> {
    let (place, rest) = match line.strip_prefix("error TS") {
        Some(rest) => ("", rest),
        None => line.split_once(": error TS")?,
    };
    let (code, message) = rest.split_once(": ")?;
    let code: u32 = code.parse().ok()?;
    let (file, at) = match place.strip_suffix(')').and_then(|place| place.rsplit_once('(')) {
        Some((file, at)) => (Some(file), at.split_once(',')),
        None => (None, None),
    };
    let figure = |text: &str| text.parse::<u64>().ok();
    let (line, column) = at.map_or((None, None), |(line, column)| (figure(line), figure(column)));
    Some(json!({
        "file": file, "line": line, "column": column, "code": format!("TS{code}"), "message": message,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_with_their_places() {
        assert_eq!(
            error("src/a (1).ts(3,7): error TS2322: Type 'string' is not assignable: to 'number'."),
            Some(
                json!({ "file": "src/a (1).ts", "line": 3, "column": 7, "code": "TS2322", "message": "Type 'string' is not assignable: to 'number'." })
            )
        );
        let no_place = error("error TS5057: Cannot find a tsconfig.json file").unwrap();
        assert_eq!((&no_place["file"], &no_place["code"]), (&Value::Null, &json!("TS5057")));
        for line in
            ["", "  Types of property 'a' are incompatible.", "x error TSX: y", "Found 1 error."]
        {
            assert_eq!(error(line), None, "{line}");
        }
    }

    #[test]
    fn a_folder_is_never_an_option() {
        assert_eq!(plain("a/b/").unwrap(), "a/b");
        assert_eq!(plain("").unwrap(), ".");
        assert!(plain("--build").is_err() && plain("@responses").is_err());
    }
}
