//! `runner tool new`: a tool that works, to be changed into one's own.

use std::path::PathBuf;

use clap::ValueEnum;

use super::place;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::visible::visible;
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::tool::Switch;
use crate::tool::scaffold::{ScaffoldError, Template, Where, scaffold};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Writes the tool to .runner/tools of the workspace, with runner.d.ts and ",
        "tsconfig.json beside it for editors. Nothing is overwritten.\n\n",
        "Examples:\n",
        "  runner tool new count_words\n",
        "  runner tool new count_words --form module\n",
        "  runner tool new count_words --dir ~/.config/runner/tools",
    )
)]
pub struct Args {
    /// Its name: letters, digits, `_` and `-`
    #[arg(value_name = "NAME")]
    name: ToolName,
    /// How it is written
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    form: FormArg,
    /// What it does, in a sentence
    #[arg(long, value_name = "TEXT", default_value = "Counts the lines and words of a file.")]
    description: String,
    /// The folder to write to [default: .runner/tools of the workspace]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Work as if in this folder
    #[arg(long, short = 'C', visible_alias = "workdir", value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// How a tool is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum FormArg {
    /// One YAML file with the code in it
    #[default]
    Yaml,
    /// A TypeScript module
    Module,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = place::Args { tools: Vec::new(), cwd: args.cwd }.resolve(context)?;
    let template = match args.form {
        FormArg::Yaml => Template::Yaml,
        FormArg::Module => Template::Module,
    };
    // A second tool of the name would make both unusable; one that comes with runner and is off gives way.
    let mut same = place.library.tools.iter().filter(|tool| tool.name == args.name);
    if let Some(tool) = same.find(|tool| tool.folder.is_some() || tool.switch == Switch::On) {
        return Err(ScaffoldError::Exists(PathBuf::from(&tool.file)).into());
    }
    let at = args.dir.map_or(Where::Workspace(place.workspace), Where::Folder);
    let made = scaffold(&args.name, template, &args.description, &at)?;
    let name = &args.name;
    match printer.format() {
        Format::Json => printer.json(&made)?,
        Format::Text => {
            printer.data(format_args!("{}\n", visible(&made.file.display().to_string())))?;
            for file in &made.written {
                printer
                    .talk(format_args!("also written: {}", visible(&file.display().to_string())));
            }
            if made.types_differ {
                printer.hint("runner.d.ts is of another version; remove it and make a tool again to renew it");
            }
            printer.hint(&format!("next: runner tool check {name}; runner tool run {name}"));
        }
    }
    Ok(Ending::ok())
}
