//! A record in one line.

use serde_json::Value;

use crate::audit::{Kind, Row};
use crate::cli::table::shortened;
pub(in crate::cli) use crate::text::moment;

/// The most characters of a tool's arguments that one line tells; `audit show` has all.
const ARGS_MOST: usize = 160;

/// A command, and what a tool was called with. Secrets are not in records.
pub(super) fn command_line(command: &str, args: &Value) -> String {
    let mut text = command.to_owned();
    for (name, value) in args.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!(" {name}={value}"));
    }
    shortened(&text, Some(command.chars().count() + ARGS_MOST)).into_owned()
}

/// What a record says, in words. Foreign text is in it.
pub(super) fn one_line(row: &Row) -> String {
    let text = |key: &str| row.body[key].as_str().unwrap_or_default();
    let rule = row.body["rule"]["id"].as_str().unwrap_or_else(|| text("code"));
    let command = || command_line(text("command"), &row.body["args"]);
    match row.kind {
        Kind::Start => format!("{} ({rule})", command()),
        Kind::Refused => format!("{}: {} ({rule})", text("decision"), command()),
        Kind::End => format!(
            "{}, exit {}, {} ms{}",
            text("status"),
            row.body["exit"],
            row.body["duration_ms"],
            row.body["code"].as_str().map(|code| format!(" ({code})")).unwrap_or_default()
        ),
        Kind::Aborted => "its process died".to_owned(),
        Kind::Request => {
            let how = match (text("decision"), text("code")) {
                (_, "") => String::new(),
                ("allow", code) => format!(": failed ({code})"),
                (_, code) => format!(": refused ({code})"),
            };
            format!("{} {}{how}", text("method"), text("object"))
        }
        Kind::Approval => format!("{}: {} ({})", text("answer"), text("subject"), text("id")),
        Kind::Gap => "the head was none of this ledger; see `runner audit verify`".to_owned(),
    }
}
