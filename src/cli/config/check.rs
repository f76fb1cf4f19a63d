//! `runner config check`: reads configuration files and says everything that is wrong with them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::places;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::findings::Shown;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::codes::Code;
use crate::config::{self, Layer};
use crate::error::Failure as _;
use crate::exit::{Ending, Kind};
use crate::policy_files::Places;
use crate::text::counted;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Without a file, the files that apply here are checked. A file in the place of a ",
        "layer is checked as that layer's file. Any other file is checked as a project's, ",
        "which may set the least; --layer names another layer.\n\n",
        "Examples:\n",
        "  runner config check\n",
        "  runner config check .runner/config.yml\n",
        "  runner config check new.yml --layer managed\n\n",
        "Exit codes: 0 no findings, 125 any finding.",
    )
)]
pub struct Args {
    /// The file to check
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Check it as if it were of this layer
    #[arg(long, value_name = "LAYER", value_parser = layer, requires = "file")]
    layer: Option<Layer>,
}

fn layer(word: &str) -> Result<Layer, String> {
    Layer::by_word(word).ok_or_else(|| "one of: managed, user, project".to_owned())
}

pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let places = places(context)?;
    let files: Vec<(PathBuf, Layer)> = match &args.file {
        Some(file) => {
            let layer = args.layer.unwrap_or_else(|| layer_of(file, &places));
            vec![(file.clone(), layer)]
        }
        None => Layer::FILES
            .into_iter()
            .filter_map(|layer| Some((config::path(layer, &places)?, layer)))
            .filter(|(path, _)| path.symlink_metadata().is_ok())
            .collect(),
    };
    let loaded = match args.file {
        Some(_) => config::load_files(&files),
        None => config::load(&places),
    };
    let findings = loaded.as_ref().err().map(|error| error.findings().to_vec()).unwrap_or_default();
    let shown = |path: &Path| path.display().to_string();
    let wrong = |path: &Path| findings.iter().filter(|it| it.file == shown(path)).count();
    match printer.format() {
        Format::Json => {
            let rows: Vec<_> = files
                .iter()
                .map(|(path, layer)| json!({ "file": shown(path), "layer": layer, "findings": wrong(path) }))
                .collect();
            let passed = findings.is_empty();
            printer.json(&json!({ "passed": passed, "files": rows, "findings": findings }))?;
        }
        Format::Text => {
            for finding in &findings {
                printer.talk(Shown(finding));
            }
            let mut table = Table::new(["file", "layer", "result"]);
            for (path, layer) in &files {
                let result = match wrong(path) {
                    0 => "ok".to_owned(),
                    count => counted(count, "finding"),
                };
                table.row([shown(path), layer.word().to_owned(), result]);
            }
            printer.data(&table)?;
            if files.is_empty() {
                printer.hint(
                    "there is no configuration file; runner config path shows where one can be",
                );
            }
        }
    }
    Ok(if findings.is_empty() {
        Ending::ok()
    } else {
        Ending::of_kind(Kind::Broken, Code::ConfigRefused)
    })
}

/// The layer whose file this is.
fn layer_of(file: &Path, places: &Places) -> Layer {
    let real = |path: &Path| path.canonicalize().ok();
    let given = real(file);
    let is = |layer: &Layer| {
        let path = config::path(*layer, places).and_then(|path| real(&path));
        path.is_some() && path == given
    };
    Layer::FILES.into_iter().find(is).unwrap_or(Layer::Project)
}
