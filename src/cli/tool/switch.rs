//! `runner tool enable` and `runner tool disable`: a word in a configuration file, everything else in it as it was.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::json;

use super::place;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::config::{self, ConfigError, EditError, Layer, Source};
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::tool::{Counts, Origin, ToolError};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Writes to your own configuration file. Comments and layout of the file stay.\n\n",
        "Examples:\n",
        "  runner tool enable todo_finder\n",
        "  runner tool enable todo_finder json_query",
    )
)]
pub struct Enable {
    /// Tools by name
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ToolName>,
    #[command(flatten)]
    place: place::Args,
}

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Writes to your own configuration file, or with --project to the workspace's. ",
        "Comments and layout of the file stay. Team tools cannot be switched off.\n\n",
        "Examples:\n",
        "  runner tool disable http_probe\n",
        "  runner tool disable http_probe --project",
    )
)]
pub struct Disable {
    /// Tools by name
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ToolName>,
    /// Write to .runner/config.yml of the workspace, for all its users
    #[arg(long)]
    project: bool,
    #[command(flatten)]
    place: place::Args,
}

pub(super) fn enable(
    args: Enable,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    switch(&args.names, true, Layer::User, args.place, context, printer)
}

pub(super) fn disable(
    args: Disable,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let layer = if args.project { Layer::Project } else { Layer::User };
    switch(&args.names, false, layer, args.place, context, printer)
}

fn switch(
    names: &[ToolName],
    on: bool,
    layer: Layer,
    place: place::Args,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let place = place.resolve(context)?;
    let path = config::path(layer, &place.places).ok_or(ConfigError::NoFolder)?;
    let file = path.display().to_string();
    let unreadable = |error| ConfigError::NotWritten { file: file.clone(), error };
    let mut text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(error).into()),
    };
    let mut changed = Vec::new();
    for name in names {
        allowed(name, on, &place)?;
        let before = text.clone();
        text = config::switched(layer, &file, &text, name, on).map_err(|error| match error {
            EditError::Refused(findings) => ConfigError::Refused(findings),
            EditError::ByHand { line } => ConfigError::ByHand { file: file.clone(), line },
        })?;
        changed.push(text != before);
    }
    let any = changed.contains(&true);
    if any {
        write(&path, &text).map_err(unreadable)?;
    }
    let counts = Counts::remembered(place.places.state.as_deref());
    match printer.format() {
        Format::Json => {
            let pairs = names.iter().zip(&changed);
            let changed: Vec<&ToolName> = pairs.filter(|(_, it)| **it).map(|(it, _)| it).collect();
            printer.json(&json!({
                "tools": names, "changed": changed, "enabled": on, "layer": layer, "file": file,
            }))?
        }
        Format::Text => {
            for (name, changed) in names.iter().zip(&changed) {
                if !changed {
                    let word = if on { "enabled" } else { "disabled" };
                    printer.data(format_args!("  {name} is {word} already\n"))?;
                    continue;
                }
                let definition = place.library.tool(name).ok().and_then(|it| it.definition().ok());
                let tokens = definition.flatten().map(|it| counts.known(it).figure());
                let sign = if on { '+' } else { '-' };
                let cost = tokens.map(|figure| format!(" ({sign}{figure} tokens)"));
                let (mark, word, colour) = match on {
                    true => ('✓', "enabled", style::GOOD),
                    false => ('✗', "disabled", style::WARN),
                };
                let cost = cost.unwrap_or_default();
                printer.data(format_args!("{colour}{mark}{colour:#} {word} {name}{cost}\n"))?;
            }
            let how = if any { "written to" } else { "nothing to write to" };
            printer.hint(&format!("{how} {file}"));
        }
    }
    Ok(Ending::ok())
}

/// Whether a word in the caller's file would do what is asked for.
fn allowed(name: &ToolName, on: bool, place: &place::ToolScope) -> Result<(), Error> {
    let refused = |why: String| Error::from(ToolError::NotSwitched { name: name.clone(), why });
    match place.library.tool(name) {
        Ok(tool) if tool.origin() == Origin::Team && !on => {
            return Err(refused("it is a tool of the team, which holds for everybody".to_owned()));
        }
        Ok(tool) if on && tool.origin() == Origin::Custom && tool.replaces_shipped => {
            let why = "an example that comes with runner has the same name and would be switched on too; remove its `enabled: false` from the configuration";
            return Err(refused(why.to_owned()));
        }
        Ok(_) | Err(ToolError::Twice { .. } | ToolError::Broken { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match place.config.enabled(name) {
        Some(said) if said.source.layer == Layer::Managed && said.value != on => {
            let Source { file, line, .. } = &said.source;
            let (file, line) = (file.as_deref().unwrap_or_default(), line.unwrap_or_default());
            Err(refused(format!("the managed configuration decides it ({file}:{line})")))
        }
        _ => Ok(()),
    }
}

/// Whole or not at all: a new file takes the place of the old one, with its mode.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => {
            return Err(std::io::Error::other("it is a link; change the file that it leads to"));
        }
        Ok(meta) => meta.permissions().mode() & 0o777,
        Err(_) => 0o644,
    };
    let fresh = folder.join(format!(".config.yml.{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&fresh)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}
