//! `parse_typescript`: imports, exports and errors of code, read by the confined child that compiles tools.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::problem::{Problem, text};
use crate::broker::client::{Call, Thrown};
use crate::codes::Code;
use crate::error::Failure as _;
use crate::tool::compile::{TEXT_BYTES, Text, outline};

/// The arguments. That one is given is the schema's matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    code: Option<String>,
    file_path: Option<String>,
}

/// Parses.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let shown = args.file_path.clone().unwrap_or_else(|| "code.ts".to_owned());
    let ending = match shown.rsplit_once('.') {
        Some((_, ending)) if ENDINGS.contains(&ending) => ending.to_owned(),
        _ => {
            let hint = format!("one of .{}", ENDINGS.join(", ."));
            let message = format!("{shown} does not end as a module does");
            return Err(Problem::Arguments.says(message).hint(hint));
        }
    };
    let code = match (args.code, &args.file_path) {
        (Some(code), _) => code,
        (None, Some(path)) => {
            let contents = call.client.read(path, TEXT_BYTES).await?;
            if contents.more {
                return Err(too_large(path));
            }
            text(path, contents.bytes)?
        }
        (None, None) => return Err(Problem::Arguments.says("give code or filePath")),
    };
    if code.len() > TEXT_BYTES {
        return Err(too_large("the code"));
    }
    let job = Text { text: code, ending };
    let asked = tokio::task::spawn_blocking(move || outline(&shown, &job)).await;
    let asked = asked.map_err(|error| Thrown::new(Code::ToolFailed, error.to_string()))?;
    let read = asked.map_err(|error| {
        let thrown = Thrown::new(error.code(), error.to_string());
        match error.hint() {
            Some(hint) => thrown.hint(hint),
            None => thrown,
        }
    })?;
    let modules: BTreeSet<&str> = read.imports.iter().map(|it| it.module.as_str()).collect();
    Ok(json!({
        "valid": read.errors.is_empty(),
        "imports": read.imports,
        "exports": read.exports,
        "errors": read.errors,
        "modules": modules,
        "truncated": read.truncated,
    }))
}

/// The endings of modules.
const ENDINGS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

fn too_large(what: &str) -> Thrown {
    Problem::TooLarge.says(format!("{what} is larger than {TEXT_BYTES} bytes and is not parsed"))
}
