//! `npm_install`: `npm ci` or `npm install`, without install scripts by default.

use serde::Deserialize;
use serde_json::{Value, json};

use super::command::{shown, went_well};
use super::intent::Intent;
use super::problem::Problem;
use crate::broker::client::{Call, Client, Exec, Thrown};
use crate::codes::Code;
use crate::json as strict;

/// The arguments. Defaults, and what a package's name and version may be, are the schema's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    package: Option<String>,
    version: Option<String>,
    dev: bool,
    scripts: bool,
    project_path: String,
}

/// Installs.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let client = &call.client;
    let folder = args.project_path.trim_end_matches('/');
    let at = |name: &str| if folder == "." { name.to_owned() } else { format!("{folder}/{name}") };
    if !there(client, &at("package.json")).await? {
        let hint = "name the folder of a package.json with projectPath";
        return Err(Problem::Missing
            .says(format!("there is no {}", at("package.json")))
            .hint(hint));
    }
    let locked = there(client, &at("package-lock.json")).await?;
    let argv = argv(&args, locked);
    let exec = Exec { argv: &argv, cwd: Some(folder), ..Exec::default() };
    let ran = went_well(client.exec(exec).await?, &argv[..2].join(" ")).map_err(|thrown| {
        let offline = ["ENOTCACHED", "only-if-cached", "EAI_AGAIN", "ENOTFOUND"];
        let hint =
            "sandboxes of commands have no network: only what needs no registry can be installed";
        if offline.iter().any(|word| thrown.message.contains(word)) {
            thrown.hint(hint)
        } else {
            thrown
        }
    })?;
    let manifest = read(client, &at("package.json")).await;
    let version = match &args.package {
        Some(name) => {
            let installed = read(client, &at(&format!("node_modules/{name}/package.json"))).await;
            installed.get("version").cloned().unwrap_or_default()
        }
        None => Value::Null,
    };
    let (output, cut) = shown(&ran.stdout);
    Ok(json!({
        "success": true,
        "command": argv.join(" "),
        "installedVersion": version,
        "dependencies": names(&manifest),
        "output": output.trim(),
        "truncated": cut || ran.truncated,
        "call": ran.call,
    }))
}

/// What a call will run: for a named package the same whether versions are locked or not.
pub(super) fn intends(args: &Value) -> Vec<Intent> {
    let Ok(args) = Args::deserialize(args) else { return Vec::new() };
    if args.package.is_none() {
        return Vec::new();
    }
    vec![Intent::run(argv(&args, false), args.project_path.trim_end_matches('/'))]
}

fn argv(args: &Args, locked: bool) -> Vec<String> {
    let verb = if locked && args.package.is_none() { "ci" } else { "install" };
    let mut argv = vec!["npm".to_owned(), verb.to_owned()];
    if !args.scripts {
        argv.push("--ignore-scripts".to_owned());
    }
    // No sandbox has a network. Without this word npm would wait for one, and a policy could not tell that it needs none.
    argv.push("--offline".to_owned());
    argv.extend(["--no-audit", "--no-fund", "--no-update-notifier"].map(str::to_owned));
    if let Some(name) = &args.package {
        if args.dev {
            argv.push("--save-dev".to_owned());
        }
        let version = args.version.as_ref().map(|version| format!("@{version}"));
        argv.extend(["--".to_owned(), format!("{name}{}", version.unwrap_or_default())]);
    }
    argv
}

async fn there(client: &Client, path: &str) -> Result<bool, Thrown> {
    match client.stat(path).await {
        Ok(_) => Ok(true),
        Err(refused) if refused.code == Code::NotFound => Ok(false),
        Err(refused) => Err(refused.into()),
    }
}

/// A file as JSON; nothing if it is none. The work is done, so that this is no error.
async fn read(client: &Client, path: &str) -> Value {
    let Ok(contents) = client.read(path, strict::MAX_BYTES).await else { return Value::Null };
    String::from_utf8(contents.bytes)
        .ok()
        .and_then(|text| strict::read(&text).ok())
        .unwrap_or_default()
}

fn names(manifest: &Value) -> Vec<String> {
    ["dependencies", "devDependencies"]
        .into_iter()
        .filter_map(|section| manifest.get(section)?.as_object())
        .flat_map(|section| section.keys().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(package: Option<&str>) -> Args {
        Args {
            package: package.map(str::to_owned),
            version: package.map(|_| "^1.2".to_owned()),
            dev: true,
            scripts: false,
            project_path: ".".to_owned(),
        }
    }

    #[test]
    fn scripts_do_not_run_and_a_package_is_an_operand() {
        let whole = argv(&args(None), true);
        assert_eq!((whole[1].as_str(), whole[2].as_str()), ("ci", "--ignore-scripts"));
        assert_eq!(argv(&args(None), false)[1], "install");
        let one = argv(&args(Some("@a/b")), true);
        assert_eq!(one[one.len() - 3..], ["--save-dev", "--", "@a/b@^1.2"]);
        assert_eq!(
            names(&json!({ "dependencies": { "a": "1" }, "devDependencies": { "b": "1" } })),
            ["a", "b"]
        );
    }
}
