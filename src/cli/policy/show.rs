//! `runner policy show`: a policy as it is after composition.

use super::place;
use super::summary::Summary;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::exit::Ending;
use crate::policy_files::{Choice, Trust, load};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  runner policy show readonly\n",
    "  runner policy show ./team.yml",
))]
pub struct Args {
    /// The policy: a name, or the path of a .yml file
    #[arg(value_name = "NAME")]
    name: Choice,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = place::Args { policy: Some(args.name), cwd: None }.resolve(context)?;
    let loaded = load(&place.choice, &place.places, Trust::ToLook)?;
    let summary = Summary::of(&loaded).with_registries(&loaded.policy, &context.environment);
    match printer.format() {
        Format::Json => printer.json(&summary)?,
        Format::Text => printer.data(&summary)?,
    }
    Ok(Ending::ok())
}
