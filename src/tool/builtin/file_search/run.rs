//! One search.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::content::{Hits, Query};
use super::ignored::Ignored;
use super::paths::{Found, Wanted, globs};
use crate::broker::client::{Call, Client, Thrown};
use crate::codes::Code;
use crate::tool::builtin::problem::Problem;

/// The largest file that is looked into.
const FILE_MAX: usize = 4 << 20;
/// Files that are read at once.
const AT_ONCE: usize = 8;
/// Bytes of lines that one search gives: as JSON, with every character escaped, it is still within a result.
const SHOWN_MAX: usize = 512 << 10;

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Grep,
    Regex,
    Glob,
}

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    mode: Mode,
    query: String,
    path: String,
    include: Vec<String>,
    exclude: Vec<String>,
    ignore_case: bool,
    context: usize,
    limit: usize,
    hidden: bool,
    gitignore: bool,
}

/// Why files were not looked into.
#[derive(Default)]
struct LeftOut {
    binary: usize,
    large: usize,
    unreadable: usize,
    limit: usize,
}

/// What became of one file.
enum Looked {
    Into(String, Hits),
    TooLarge,
    /// It is a folder, or gone.
    Nothing,
    /// It may not be read, or cannot be.
    Unreadable,
    /// The call may ask no more.
    Over,
}

/// Searches.
pub(in crate::tool::builtin) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args.clone())
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let client = &call.client;
    let ignored = match args.gitignore {
        true => Some(Ignored::read(client, &args.path).await?),
        false => None,
    };
    let wanted = Wanted {
        // Who names a dot in a pattern means it.
        hidden: args.hidden || (args.mode == Mode::Glob && names_a_dot(&args.query)),
        ignored,
        include: globs(&args.include)?,
        exclude: globs(&args.exclude)?,
    };
    let mut answer = json!({ "mode": call.args["mode"], "query": args.query, "path": args.path });
    let more = match args.mode {
        Mode::Glob => by_name(client, &args, &wanted).await?,
        Mode::Grep | Mode::Regex => by_content(client, &args, &wanted).await?,
    };
    if let (Some(answer), Value::Object(more)) = (answer.as_object_mut(), more) {
        answer.extend(more);
    }
    Ok(answer)
}

fn names_a_dot(pattern: &str) -> bool {
    pattern.split('/').any(|part| part.starts_with('.'))
}

async fn by_name(client: &Client, args: &Args, wanted: &Wanted) -> Result<Value, Thrown> {
    let Found { mut paths, ignored, truncated } =
        wanted.find(client, &args.query, &args.path).await?;
    let cut = paths.len() > args.limit;
    paths.truncate(args.limit);
    Ok(json!({ "paths": paths, "truncated": truncated || cut, "leftOut": { "ignored": ignored } }))
}

async fn by_content(client: &Client, args: &Args, wanted: &Wanted) -> Result<Value, Thrown> {
    let exact = args.mode == Mode::Grep;
    let query = Query::new(&args.query, exact, args.ignore_case, args.context)?;
    let Found { paths, ignored, mut truncated } = wanted.find(client, "**", &args.path).await?;
    let (mut files, mut matches, mut searched, mut bytes) = (Vec::new(), 0, 0, 0);
    let mut left = LeftOut::default();
    let mut todo = paths.chunks(AT_ONCE);
    let mut done = 0;
    'search: for chunk in todo.by_ref() {
        done += chunk.len();
        for looked in at_once(client, chunk, &query, args.limit).await? {
            match looked {
                Looked::Into(_, hits) if hits.binary => left.binary += 1,
                Looked::Into(path, mut hits) => {
                    searched += 1;
                    if hits.lines.is_empty() {
                        continue;
                    }
                    let room = args.limit - matches;
                    truncated |= hits.more || hits.matches > room;
                    cut(&mut hits, room);
                    matches += hits.matches;
                    bytes += hits.lines.iter().map(size).sum::<usize>();
                    files.push(json!({ "path": path, "lines": hits.lines }));
                    if matches >= args.limit || bytes > SHOWN_MAX {
                        truncated |= done < paths.len();
                        break 'search;
                    }
                }
                Looked::TooLarge => left.large += 1,
                Looked::Nothing => {}
                Looked::Unreadable => left.unreadable += 1,
                Looked::Over => left.limit += 1,
            }
        }
        if left.limit > 0 {
            left.limit += paths.len() - done;
            truncated = true;
            break;
        }
    }
    Ok(json!({
        "files": files,
        "matches": matches,
        "searched": searched,
        "truncated": truncated,
        "leftOut": {
            "ignored": ignored, "binary": left.binary, "tooLarge": left.large,
            "unreadable": left.unreadable, "limit": left.limit,
        },
    }))
}

fn size(line: &Value) -> usize {
    line["text"].as_str().map_or(0, str::len)
}

/// Keeps the first so many matches, and what stands before the next.
fn cut(hits: &mut Hits, most: usize) {
    let mut seen = 0;
    let beyond = hits.lines.iter().position(|line| {
        seen += usize::from(line["match"] == true);
        seen > most
    });
    if let Some(at) = beyond {
        hits.lines.truncate(at);
        hits.matches = most;
    }
}

/// Looks into several files, in their order.
async fn at_once(
    client: &Client,
    paths: &[String],
    query: &Query,
    most: usize,
) -> Result<Vec<Looked>, Thrown> {
    let mut tasks = JoinSet::new();
    for (at, path) in paths.iter().enumerate() {
        let (client, path, query) = (client.clone(), path.clone(), query.clone());
        tasks.spawn(async move { look(&client, path, &query, most).await.map(|it| (at, it)) });
    }
    let mut looked = Vec::new();
    while let Some(done) = tasks.join_next().await {
        looked.push(done.map_err(|error| Thrown::new(Code::ToolFailed, error.to_string()))??);
    }
    looked.sort_by_key(|(at, _)| *at);
    Ok(looked.into_iter().map(|(_, it)| it).collect())
}

async fn look(client: &Client, path: String, query: &Query, most: usize) -> Result<Looked, Thrown> {
    let contents = match client.read(&path, FILE_MAX).await {
        Ok(contents) => contents,
        Err(refused) => {
            return Ok(match refused.code {
                Code::IsADirectory | Code::NotFound => Looked::Nothing,
                Code::LimitReached => Looked::Over,
                Code::Cancelled | Code::ChannelClosed => return Err(refused.into()),
                _ => Looked::Unreadable,
            });
        }
    };
    if contents.more {
        return Ok(Looked::TooLarge);
    }
    // In a thread, so that the time limit and a cancellation work meanwhile; after those it is not awaited.
    let query = query.clone();
    let searched = tokio::task::spawn_blocking(move || query.search(&contents.bytes, most)).await;
    let hits = searched.map_err(|error| Thrown::new(Code::ToolFailed, error.to_string()))??;
    Ok(Looked::Into(path, hits))
}
