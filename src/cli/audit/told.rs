//! A record in one line.

use crate::audit::{Kind, Row};
pub(in crate::cli) use crate::text::moment;

/// What a record says, in words. Foreign text is in it.
pub(super) fn told(row: &Row) -> String {
    let text = |key: &str| row.body[key].as_str().unwrap_or_default();
    let rule = row.body["rule"]["id"].as_str().unwrap_or_else(|| text("code"));
    match row.kind {
        Kind::Start => format!("{} ({rule})", text("command")),
        Kind::Refused => format!("{}: {} ({rule})", text("decision"), text("command")),
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
