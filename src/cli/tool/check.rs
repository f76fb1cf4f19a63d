//! `runner tool check`: everything that can be known about tools before they run.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use runner_policy::effective::Effective;
use runner_policy::finding::Finding;
use runner_policy::model::Verdict;
use serde::Serialize;

use super::place::{self, ToolScope};
use crate::call::CallError;
use crate::call::Context;
use crate::call::tool::{Health, Looker};
use crate::cli::Error;
use crate::cli::event_loop::cancellable;
use crate::cli::findings::Shown;
use crate::cli::policy::place::choice;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::table::Table;
use crate::cli::usage::UsageError;
use crate::cli::visible::visible_inside;
use crate::codes::Code;
use crate::error::Failure as _;
use crate::exit::{Ending, Kind};
use crate::ids::{NameError, ToolName};
use crate::policy_files::{Choice, Trust, load, shipped};
use crate::sandbox::cancel::Cancel;
use crate::text::counted;
use crate::tool::{Asked, Conformance, Definition, Library, Origin, Tool, ToolError, asked};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Without a name, every tool that is found here is checked. A module is loaded in a ",
        "sandbox and asked for its description. A permission that the policy does not allow ",
        "is reported, and is no error: another policy may allow it. The grade counts what ",
        "well-made tools have; with a name, each point is shown.\n\n",
        "Examples:\n",
        "  runner tool check\n",
        "  runner tool check run_tests --policy develop\n",
        "  runner tool check ./scripts/probe.tool.ts\n\n",
        "Exit codes: 0 no findings, 125 any finding.",
    )
)]
pub struct Args {
    /// Tools by name, or files
    #[arg(value_name = "NAME|FILE")]
    what: Vec<String>,
    /// The policy to compare with: a name, or the path of a .yml file [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// Also run the health checks of modules that have one, under the policy
    #[arg(long)]
    health: bool,
    #[command(flatten)]
    place: place::Args,
}

/// What became of one tool.
#[derive(Debug, Default, Serialize)]
struct Row {
    tool: String,
    source: Option<Origin>,
    file: String,
    findings: Vec<Finding>,
    /// What cannot be told by a place in the file.
    errors: Vec<String>,
    /// What it asks for, and what the policy says.
    asks: Vec<Asked>,
    /// What a good tool has, and what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    conformance: Option<Conformance>,
    /// Whether the policy lets its commands write nothing.
    read_only_commands: bool,
    /// A policy that comes with runner and denies less of it.
    #[serde(skip)]
    wider: Option<String>,
    /// How it says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<Health>,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let choice = choice(args.policy, &context.environment)?;
    let cwd = args.place.cwd.clone();
    let place = args.place.resolve(context)?;
    let in_force = place.config.choice(&choice, &place.workspace);
    let policy = load(&in_force, &place.places, Trust::Required)?.policy;
    let looker = Looker::new(cwd.as_deref(), &choice, context)?;
    let checker = Checker {
        looker,
        policy: &policy,
        place: &place,
        health: args.health,
        shipped: OnceCell::new(),
    };
    let rows = cancellable(async |cancel| {
        if args.what.is_empty() {
            return checker.all(cancel).await;
        }
        let mut rows = Vec::new();
        for word in &args.what {
            rows.push(checker.one(word, cancel).await?);
        }
        Ok(rows)
    })?;
    let passed = rows.iter().all(|row| row.findings.is_empty() && row.errors.is_empty())
        && (!args.what.is_empty() || place.library.findings.is_empty());
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({
            "passed": passed, "policy": policy.name(), "tools": rows, "findings": place.library.findings,
        }))?,
        Format::Text => {
            // For a list of tools, the points would be too much to read.
            let points = if args.what.is_empty() { Points::Hidden } else { Points::Shown };
            text(&rows, &place.library, policy.name(), points, printer)?;
        }
    }
    Ok(if passed { Ending::ok() } else { Ending::of_kind(Kind::Broken, Code::ToolRefused) })
}

fn text(
    rows: &[Row],
    library: &Library,
    policy: &str,
    points: Points,
    printer: &mut Printer,
) -> Result<(), Error> {
    for finding in library.findings.iter().chain(rows.iter().flat_map(|row| &row.findings)) {
        printer.talk(Shown(finding));
    }
    for row in rows {
        for error in &row.errors {
            printer.talk(format_args!("{}: {}", row.tool, visible_inside(error)));
        }
    }
    let mut table = Table::new(["tool", "source", "result", "grade", "file"]);
    for row in rows {
        let wrong = row.findings.len() + row.errors.len();
        let result = if wrong == 0 { "ok".to_owned() } else { counted(wrong, "finding") };
        let source = row.source.map_or("", Origin::badge).to_owned();
        let graded = row.conformance.as_ref();
        let grade = graded.map(|it| format!("{} {:>3}%", it.grade.word(), it.score));
        table.row([row.tool.clone(), source, result, grade.unwrap_or_default(), row.file.clone()]);
    }
    printer.data(&table)?;
    if points == Points::Shown {
        rows.iter().try_for_each(|row| report(row, printer))?;
    }
    for row in rows {
        let more = more(row, policy);
        if let Some(hint) = &more {
            printer.hint(hint);
        }
        // Commands that may not run anyway are told of above.
        if row.read_only_commands && more.is_none() {
            let tool = &row.tool;
            printer.hint(&format!(
                "{tool}: its commands may write nothing in the workspace under `{policy}`"
            ));
        }
    }
    Ok(())
}

/// The points of a tool, one a line.
fn report(row: &Row, printer: &mut Printer) -> Result<(), Error> {
    let Some(conformance) = &row.conformance else { return Ok(()) };
    let (good, warn, faint) = (style::GOOD, style::WARN, style::FAINT);
    printer.data(format_args!("\n{}:\n", row.tool))?;
    for point in &conformance.points {
        if point.passed {
            printer.data(format_args!("  {good}✓{good:#} {}\n", point.what))?;
        } else {
            let (what, fix) = (point.what, point.fix);
            printer.data(format_args!("  {warn}✗{warn:#} {what}  {faint}{fix}{faint:#}\n"))?;
        }
    }
    Ok(())
}

/// Whether each point of the grade is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Points {
    Shown,
    Hidden,
}

/// What a tool asks for and would not simply get, in one line; `--json` lists each.
fn more(row: &Row, policy: &str) -> Option<String> {
    let of = |verdict| row.asks.iter().filter(move |it| it.decision.decision == verdict);
    let things = |verdict| match of(verdict).collect::<Vec<_>>().as_slice() {
        [Asked { kind, entry, .. }] => format!("`{kind} {entry}`"),
        several => counted(several.len(), "thing"),
    };
    let tool = &row.tool;
    if of(Verdict::Deny).next().is_some() {
        let other = row.wider.as_ref().map(|name| format!("; try --policy {name}"));
        let things = things(Verdict::Deny);
        let other = other.unwrap_or_default();
        return Some(format!("{tool} asks for more than `{policy}` allows ({things}){other}"));
    }
    of(Verdict::Ask).next()?;
    Some(format!("{tool}: `{policy}` asks before it allows {}", things(Verdict::Ask)))
}

/// The policies of ours that may be proposed, the narrowest first. `contained` allows anything: it is not proposed
/// by a hint.
const PROPOSED: [&str; 2] = ["readonly", "develop"];

/// What tools are checked with.
struct Checker<'a> {
    looker: Looker,
    policy: &'a Effective,
    place: &'a ToolScope,
    health: bool,
    shipped: OnceCell<Vec<Effective>>,
}

impl Checker<'_> {
    /// Every tool that was found, and every file that is none.
    async fn all(&self, cancel: &mut Cancel) -> Result<Vec<Row>, Error> {
        let library = &self.place.library;
        let mut rows = Vec::new();
        for tool in &library.tools {
            let mut row = self.examine(tool, cancel).await?;
            if let Err(error @ ToolError::Twice { .. }) = library.tool(&tool.name) {
                row.errors.push(error.to_string());
            }
            rows.push(row);
        }
        rows.extend(broken(library));
        Ok(rows)
    }

    /// One tool, by name or by file.
    async fn one(&self, word: &str, cancel: &mut Cancel) -> Result<Row, Error> {
        if is_path(word) {
            return self.file(word, cancel).await;
        }
        let name: ToolName = word.parse().map_err(|error: NameError| UsageError::Option {
            option: "NAME".to_owned(),
            why: error.to_string(),
        })?;
        match self.place.library.tool(&name) {
            Ok(tool) => self.examine(tool, cancel).await,
            Err(error @ (ToolError::Unknown { .. } | ToolError::Twice { .. })) => Err(error.into()),
            Err(error) => Ok(Row {
                tool: name.to_string(),
                findings: error.findings().to_vec(),
                ..Row::default()
            }),
        }
    }

    async fn file(&self, word: &str, cancel: &mut Cancel) -> Result<Row, Error> {
        let library = Library::of_file(&PathBuf::from(word));
        if let Some(tool) = library.tools.first() {
            return self.examine(tool, cancel).await;
        }
        let none = || Row {
            tool: "?".to_owned(),
            file: word.to_owned(),
            findings: library.findings.clone(),
            ..Row::default()
        };
        Ok(broken(&library).next().unwrap_or_else(none))
    }

    /// The definition, then the code; a module is asked what it is.
    async fn examine(&self, tool: &Tool, cancel: &mut Cancel) -> Result<Row, Error> {
        let mut row = Row {
            tool: tool.name.to_string(),
            source: Some(tool.origin()),
            file: tool.file.clone(),
            findings: tool.findings().to_vec(),
            ..Row::default()
        };
        if !row.findings.is_empty() {
            return Ok(row);
        }
        match self.looked(tool, &mut row, cancel).await {
            Ok(()) => {}
            Err(error @ CallError::Cancelled(_)) => return Err(error.into()),
            Err(error) if !error.findings().is_empty() => row.findings = error.findings().to_vec(),
            Err(error) => {
                let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                row.errors.push(format!("{error}{hint}"));
            }
        }
        if let Ok(Some(definition)) = tool.definition() {
            self.ask(definition, &mut row);
        }
        Ok(row)
    }

    async fn looked(
        &self,
        tool: &Tool,
        row: &mut Row,
        cancel: &mut Cancel,
    ) -> Result<(), CallError> {
        let Some(definition) = self.looker.look(tool, cancel).await? else { return Ok(()) };
        self.ask(&definition, row);
        if self.health {
            row.health = self.looker.health(tool, &definition, cancel).await?;
        }
        if let Some(Health { healthy: false, message }) = &row.health {
            let why = message.as_deref().unwrap_or("it does not say why");
            row.errors.push(format!("it says it is not healthy: {why}"));
        }
        Ok(())
    }

    /// What it asks for, put to the policy; and which of ours would deny less.
    fn ask(&self, definition: &Definition, row: &mut Row) {
        row.conformance = Some(Conformance::of(definition));
        if let Some(Err(error)) =
            definition.retry.fallback.as_ref().map(|it| self.place.library.tool(it))
        {
            row.errors.push(format!("its fallback cannot be used: {error}"));
        }
        let workspace = self.place.workspace.to_string_lossy();
        let now = jiff::Timestamp::now();
        let put = |policy: &Effective| asked(&definition.permissions, policy, &workspace, now);
        let denied =
            |asks: &[Asked]| asks.iter().filter(|it| it.decision.decision == Verdict::Deny).count();
        row.asks = put(self.policy);
        row.read_only_commands = definition.permissions.has_read_only_commands(self.policy);
        let here = denied(&row.asks);
        if here > 0 {
            let shipped = self.shipped.get_or_init(shipped);
            let known = |name| shipped.iter().find(|policy| policy.name() == name);
            let figures = PROPOSED.into_iter().filter_map(known).map(|it| (denied(&put(it)), it));
            let wider = figures.filter(|(figure, _)| *figure < here);
            row.wider = wider.min_by_key(|it| it.0).map(|(_, policy)| policy.name().to_owned());
        }
    }
}

fn broken(library: &Library) -> impl Iterator<Item = Row> {
    library.broken.iter().map(|broken| Row {
        tool: broken.name.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string),
        source: Some(broken.origin),
        file: broken.file.clone(),
        findings: broken.findings.clone(),
        ..Row::default()
    })
}

fn is_path(word: &str) -> bool {
    let tool = [".yml", ".yaml", ".ts", ".js"].iter().any(|ending| word.ends_with(ending));
    tool || word.contains('/') || Path::new(word).is_file()
}
