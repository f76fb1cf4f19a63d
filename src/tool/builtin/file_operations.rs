//! `file_operations`: read, write, edit, list, delete, exists.
//!
//! Writes are whole or not at all, and what they replace is kept for `undo`: both are the broker's doing and hold whatever
//! `backup` says, so that no argument can switch the backup off.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::intent::Intent;
use super::problem::{Problem, pattern, text};
use crate::broker::client::{Call, Client, Contents, Thrown};
use crate::codes::Code;

/// Bytes of a file that are looked through for its lines.
const SCAN_MAX: usize = 16 << 20;
/// Bytes of text that one read gives: as JSON, with every character escaped, it is still within a result.
const SHOWN_MAX: usize = 512 << 10;
/// The largest file that is edited.
const EDIT_MAX: usize = 8 << 20;
/// What one replacement of a pattern may grow to while it is made.
const EXPANDED_MAX: usize = 64 << 20;
/// Most entries of a folder that are listed.
const LISTED_MAX: usize = 5_000;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Read,
    Write,
    Edit,
    List,
    Delete,
    Exists,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Utf8,
    Base64,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Occurrences {
    One,
    First,
    All,
}

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    operation: Operation,
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
    encoding: Encoding,
    content: Option<String>,
    create_parents: bool,
    overwrite: bool,
    text: Option<String>,
    pattern: Option<String>,
    replacement: Option<String>,
    occurrences: Occurrences,
    recursive: bool,
}

/// Does one of them.
pub(super) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let client = &call.client;
    match args.operation {
        Operation::Read => read(client, &args).await,
        Operation::Write => write(client, &args, &call.id).await,
        Operation::Edit => edit(client, &args, &call.id).await,
        Operation::List => list(client, &args).await,
        Operation::Delete => {
            client.remove(&args.path, args.recursive).await?;
            Ok(json!({ "operation": "delete", "path": args.path, "undo": call.id }))
        }
        Operation::Exists => exists(client, &args).await,
    }
}

/// What a call will remove.
pub(super) fn intends(args: &Value) -> Vec<Intent> {
    match Args::deserialize(args) {
        Ok(Args { operation: Operation::Delete, path, recursive, .. }) => {
            vec![Intent::Remove { path, recursive }]
        }
        _ => Vec::new(),
    }
}

async fn read(client: &Client, args: &Args) -> Result<Value, Thrown> {
    let path = &args.path;
    let size = client.stat(path).await?.size;
    if args.encoding == Encoding::Base64 {
        if args.start_line.or(args.end_line).is_some() {
            return Err(
                Problem::Arguments.says("bytes have no lines: leave out startLine and endLine")
            );
        }
        let Contents { bytes, more } = client.read(path, SHOWN_MAX).await?;
        let content = BASE64_STANDARD.encode(bytes);
        return Ok(json!({
            "operation": "read", "path": path, "content": content, "encoding": "base64", "size": size, "truncated": more,
        }));
    }
    let Contents { bytes, more } = client.read(path, SCAN_MAX).await?;
    let whole = if more { cut(path, bytes)? } else { text(path, bytes)? };
    let lines = Lines::of(&whole, args.start_line, args.end_line)?;
    if !more && lines.start > lines.total.max(1) {
        let message = format!("{path} has {} lines, and startLine is {}", lines.total, lines.start);
        return Err(Problem::Arguments.says(message).with("totalLines", lines.total));
    }
    Ok(json!({
        "operation": "read",
        "path": path,
        "content": lines.text,
        "encoding": "utf8",
        "startLine": lines.start,
        "endLine": lines.end,
        "totalLines": if more { Value::Null } else { lines.total.into() },
        "size": size,
        "truncated": lines.truncated || (more && args.end_line.is_none_or(|end| end > lines.end)),
    }))
}

/// The beginning of a file that is too large: its last character may be cut.
fn cut(path: &str, mut bytes: Vec<u8>) -> Result<String, Thrown> {
    let ends = bytes.len().saturating_sub(3);
    if let Some(at) = (ends..bytes.len()).find(|at| bytes[*at] >= 0xc0) {
        bytes.truncate(at);
    }
    text(path, bytes)
}

/// Some lines of a text.
struct Lines<'t> {
    text: &'t str,
    /// The first, from 1.
    start: u64,
    /// The last that is shown; before the first if there is none.
    end: u64,
    /// All there are.
    total: u64,
    /// Whether some that were asked for are left out.
    truncated: bool,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str, start: Option<u64>, end: Option<u64>) -> Result<Self, Thrown> {
        let start = start.unwrap_or(1);
        let wanted = end.unwrap_or(u64::MAX);
        if wanted < start {
            return Err(
                Problem::Arguments.says(format!("endLine {wanted} is before startLine {start}"))
            );
        }
        let (mut from, mut to, mut last, mut total) = (text.len(), text.len(), start - 1, 0);
        let (mut offset, mut full) = (0, false);
        for line in text.split_inclusive('\n') {
            total += 1;
            if total == start {
                (from, to) = (offset, offset);
            }
            offset += line.len();
            if total >= start && total <= wanted && !full {
                full = offset - from > SHOWN_MAX;
                if !full {
                    (to, last) = (offset, total);
                }
            }
        }
        // One line that is too long by itself is shown as far as it goes.
        if full && last < start {
            to = from + SHOWN_MAX;
            while !text.is_char_boundary(to) {
                to -= 1;
            }
            last = start;
        }
        Ok(Self { text: &text[from.min(to)..to], start, end: last, total, truncated: full })
    }
}

async fn write(client: &Client, args: &Args, id: &str) -> Result<Value, Thrown> {
    let path = &args.path;
    let content = args.content.as_deref().unwrap_or_default();
    let bytes = match args.encoding {
        Encoding::Utf8 => content.as_bytes().to_vec(),
        Encoding::Base64 => BASE64_STANDARD
            .decode(content)
            .map_err(|error| Problem::Arguments.says(format!("content is not base64: {error}")))?,
    };
    let created = match client.stat(path).await {
        Ok(_) => false,
        Err(refused) if refused.code == Code::NotFound => true,
        Err(refused) => return Err(refused.into()),
    };
    if let (true, true, Some((parent, _))) = (created, args.create_parents, path.rsplit_once('/'))
        && !parent.is_empty()
    {
        client.mkdir(parent).await?;
    }
    let written = client.write(path, &bytes, !args.overwrite).await.map_err(|refused| {
        let parent = path.rsplit_once('/').filter(|_| refused.code == Code::NotFound);
        match parent {
            Some((folder, _)) => {
                let message = format!("there is no folder {folder} to write {path} into");
                Thrown { message, ..refused.into() }.hint("createParents: true makes it")
            }
            None => Thrown::from(refused),
        }
    })?;
    Ok(
        json!({ "operation": "write", "path": path, "bytes": written, "created": created, "undo": id }),
    )
}

async fn edit(client: &Client, args: &Args, id: &str) -> Result<Value, Thrown> {
    let path = &args.path;
    let replacement = args.replacement.clone().unwrap_or_default();
    let change = match (&args.text, &args.pattern) {
        (Some(text), None) => Change::Text(text.clone()),
        (None, Some(text)) => {
            let pattern = pattern(text, false)?;
            groups_exist(&pattern, &replacement)?;
            Change::Pattern(pattern)
        }
        _ => {
            let message = "an edit has either text or pattern";
            return Err(Problem::Arguments.says(message));
        }
    };
    let Contents { bytes, more } = client.read(path, EDIT_MAX).await?;
    if more {
        let message = format!("{path} is larger than {EDIT_MAX} bytes and is not edited");
        return Err(Problem::TooLarge.says(message).with("path", path.as_str()));
    }
    let old = text(path, bytes)?;
    let occurrences = args.occurrences;
    // Linear, but the file may be large: others are answered meanwhile.
    let edited = tokio::task::spawn_blocking(move || change.apply(&old, &replacement, occurrences));
    let edited = edited.await.map_err(|error| Thrown::new(Code::ToolFailed, error.to_string()))?;
    let (new, count) = edited.map_err(|thrown| {
        Thrown { message: format!("{path}: {}", thrown.message), ..thrown }
            .with("path", path.as_str())
    })?;
    let written = client.write(path, new.as_bytes(), false).await?;
    Ok(json!({
        "operation": "edit", "path": path, "replacements": count, "bytes": written, "undo": id,
    }))
}

/// What is replaced.
enum Change {
    Text(String),
    Pattern(regex::Regex),
}

impl Change {
    /// The new text and how often something was replaced.
    fn apply(
        &self,
        old: &str,
        replacement: &str,
        occurrences: Occurrences,
    ) -> Result<(String, usize), Thrown> {
        let found = match self {
            Self::Text(text) => old.matches(text.as_str()).count(),
            Self::Pattern(pattern) => pattern.find_iter(old).count(),
        };
        match (found, occurrences) {
            (0, _) => {
                let hint = "read the file and copy what is there, spaces and line ends included";
                return Err(Problem::NoMatch.says("nothing there matches").hint(hint));
            }
            (1, _) | (_, Occurrences::First | Occurrences::All) => {}
            (several, Occurrences::One) => {
                let hint = "add more of what stands around it, or say occurrences: first or all";
                let message = format!("it is there {several} times");
                return Err(Problem::Ambiguous.says(message).hint(hint).with("matches", several));
            }
        }
        let count = if occurrences == Occurrences::All { found } else { 1 };
        let size = grown(self, old, replacement, count);
        if size > EDIT_MAX {
            let message = format!("the result would be larger than {EDIT_MAX} bytes");
            return Err(Problem::TooLarge.says(message));
        }
        let new = match self {
            Self::Text(text) => old.replacen(text.as_str(), replacement, count),
            Self::Pattern(pattern) => replaced(pattern, old, replacement, count)?,
        };
        Ok((new, count))
    }
}

/// At most how large the result of exact text is; that of a pattern is counted as it grows.
fn grown(change: &Change, old: &str, replacement: &str, count: usize) -> usize {
    match change {
        Change::Text(text) => {
            (old.len() - count * text.len()).saturating_add(count.saturating_mul(replacement.len()))
        }
        Change::Pattern(_) => 0,
    }
}

/// Refuses a replacement that names a group which the pattern does not have: the crate would put nothing there.
fn groups_exist(pattern: &regex::Regex, replacement: &str) -> Result<(), Thrown> {
    let mut rest = replacement;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
            continue;
        }
        let (name, braced) = match rest.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some((name, _)) => (name, true),
            None => {
                let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                (&rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())], false)
            }
        };
        // A dollar sign before anything else stands for itself.
        let known = match name.parse::<usize>() {
            Ok(number) => number < pattern.captures_len(),
            Err(_) => name.is_empty() || pattern.capture_names().flatten().any(|it| it == name),
        };
        if known {
            continue;
        }
        let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let hint = match name.split_at(digits) {
            (number, text) if digits > 0 && !text.is_empty() && !braced => {
                format!(
                    "write ${{{number}}}{text} for group {number} before {text}, $$ for a dollar sign"
                )
            }
            _ => "name a group of the pattern, or write $$ for a dollar sign".to_owned(),
        };
        let message = format!("the pattern has no group `{name}`, which the replacement names");
        return Err(Problem::Arguments.says(message).hint(hint));
    }
    Ok(())
}

/// The same as the crate's own replacing, but bounded: a group can be named often.
fn replaced(
    pattern: &regex::Regex,
    old: &str,
    replacement: &str,
    count: usize,
) -> Result<String, Thrown> {
    let mut new = String::new();
    let mut last = 0;
    let named = replacement.matches('$').count();
    for groups in pattern.captures_iter(old).take(count) {
        let Some(whole) = groups.get(0) else { continue };
        // No group is longer than the whole, so this is the most that one replacement can become.
        let most = named.saturating_mul(whole.len()).saturating_add(replacement.len());
        if most > EXPANDED_MAX {
            return Err(
                Problem::TooLarge.says("the replacement repeats too much of what it replaces")
            );
        }
        new.push_str(&old[last..whole.start()]);
        groups.expand(replacement, &mut new);
        last = whole.end();
        if new.len() > EDIT_MAX {
            let message = format!("the result would be larger than {EDIT_MAX} bytes");
            return Err(Problem::TooLarge.says(message));
        }
    }
    new.push_str(&old[last..]);
    Ok(new)
}

/// What of a folder may be seen: its entries, without those that the policy does not let be read.
async fn list(client: &Client, args: &Args) -> Result<Value, Thrown> {
    let path = &args.path;
    let listing = client.list(path).await?;
    let seen = client.glob("*", path).await?;
    let shown = |name: &String| seen.paths.binary_search(name).is_ok();
    let (all, truncated) = (listing.entries.len(), listing.truncated || seen.truncated);
    let mut entries: Vec<Value> = listing
        .entries
        .into_iter()
        .filter(|entry| shown(&entry.name))
        .map(|entry| json!({ "name": entry.name, "type": entry.kind }))
        .collect();
    let hidden = if truncated { 0 } else { all - entries.len() };
    let cut = entries.len() > LISTED_MAX;
    entries.truncate(LISTED_MAX);
    Ok(json!({
        "operation": "list", "path": path, "entries": entries, "hidden": hidden, "truncated": truncated || cut,
    }))
}

async fn exists(client: &Client, args: &Args) -> Result<Value, Thrown> {
    let path = &args.path;
    match client.stat(path).await {
        Ok(stat) => Ok(json!({
            "operation": "exists", "path": path, "exists": true, "type": stat.kind, "size": stat.size,
        })),
        Err(refused) if refused.code == Code::NotFound => {
            Ok(json!({ "operation": "exists", "path": path, "exists": false, "type": null }))
        }
        Err(refused) => Err(refused.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, start: Option<u64>, end: Option<u64>) -> (String, u64, u64, u64, bool) {
        let it = Lines::of(text, start, end).unwrap();
        (it.text.to_owned(), it.start, it.end, it.total, it.truncated)
    }

    #[test]
    fn lines_are_counted_and_cut_out() {
        let text = "a\nb\nc";
        assert_eq!(lines(text, None, None), (text.to_owned(), 1, 3, 3, false));
        assert_eq!(lines(text, Some(2), Some(2)), ("b\n".to_owned(), 2, 2, 3, false));
        assert_eq!(lines(text, Some(2), Some(9)), ("b\nc".to_owned(), 2, 3, 3, false));
        assert_eq!(lines("", None, None), (String::new(), 1, 0, 0, false));
        assert_eq!(lines(text, Some(7), None).0, "");
        assert!(Lines::of(text, Some(3), Some(2)).is_err());
    }

    #[test]
    fn what_is_too_much_is_left_out_and_said() {
        let long = "x".repeat(99) + "\n";
        let many = long.repeat(SHOWN_MAX / 100 + 5);
        let (text, _, end, total, truncated) = lines(&many, None, None);
        assert!(truncated && text.len() <= SHOWN_MAX && end < total && text.ends_with('\n'));
        let wide = "é".repeat(SHOWN_MAX);
        let (text, start, end, total, truncated) = lines(&wide, None, None);
        assert_eq!((start, end, total, truncated), (1, 1, 1, true));
        assert!(text.len() <= SHOWN_MAX && text.len() > SHOWN_MAX - 4);
    }

    #[test]
    fn a_replacement_names_groups_that_are_there() {
        let pattern = regex::Regex::new("(l)(?<rest>ine)").unwrap();
        for good in ["$1", "${1}INE", "$rest!", "$0$2", "$$1INE", "a $ b", "100$", "${rest}", "$-"]
        {
            assert!(groups_exist(&pattern, good).is_ok(), "{good}");
        }
        for bad in ["$1INE", "$3", "${9}", "$none", "${1x}", "$$$1x"] {
            assert_eq!(groups_exist(&pattern, bad).unwrap_err().code, "invalid_arguments", "{bad}");
        }
    }

    #[test]
    fn an_edit_replaces_what_was_meant_and_nothing_else() {
        let exact =
            |text: &str, occurrences| Change::Text("a".to_owned()).apply(text, "$1", occurrences);
        assert_eq!(exact("bab", Occurrences::One), Ok(("b$1b".to_owned(), 1)));
        assert_eq!(exact("aa", Occurrences::One).unwrap_err().code, "ambiguous_match");
        assert_eq!(exact("aa", Occurrences::First), Ok(("$1a".to_owned(), 1)));
        assert_eq!(exact("aa", Occurrences::All), Ok(("$1$1".to_owned(), 2)));
        assert_eq!(exact("b", Occurrences::All).unwrap_err().code, "no_match");
        let change = Change::Pattern(pattern("^(\\w+)=(\\d+)$", false).unwrap());
        let (new, count) = change.apply("x=1\ny=2\n", "$2=$1", Occurrences::All).unwrap();
        assert_eq!((new.as_str(), count), ("1=x\n2=y\n", 2));
    }

    #[test]
    fn what_grows_beyond_bounds_is_refused() {
        let many = "a".repeat(1 << 20);
        let change = Change::Text("a".to_owned());
        let thrown = change.apply(&many, "0123456789", Occurrences::All).unwrap_err();
        assert_eq!(thrown.code, "too_large");
        let change = Change::Pattern(pattern("(a+)", false).unwrap());
        let thrown = change.apply(&many, &"$1".repeat(100), Occurrences::One).unwrap_err();
        assert_eq!(thrown.code, "too_large");
    }

    #[test]
    fn the_end_of_a_large_file_is_not_cut_inside_a_character() {
        for bytes in ["aé".as_bytes(), "a€".as_bytes(), "a😀".as_bytes()] {
            let part = bytes[..bytes.len() - 1].to_vec();
            assert_eq!(cut("f", part).unwrap(), "a");
        }
        assert_eq!(cut("f", b"abc".to_vec()).unwrap(), "abc");
        assert!(cut("f", vec![b'a', 0xff, b'b', b'c', b'd', b'e']).is_err());
    }
}
