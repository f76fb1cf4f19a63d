//! `runner --version`: this program, the engines built in, and the guest that it starts in sandboxes.
//!
//! Everything shown is known at compile time: no engine is asked, and no file is read.

use serde_json::json;

use super::printer::{Format, Printer};
use crate::cli::Error;
use crate::engine::{EngineName, guest};
use crate::exit::Ending;

/// Digits of the guest's digest that people are shown.
const SHOWN: usize = 16;

/// Prints it.
pub(super) fn print(printer: &mut Printer) -> Result<Ending, Error> {
    let version = env!("CARGO_PKG_VERSION");
    let engines = EngineName::ALL.map(EngineName::as_str);
    let wire = runner_wire::VERSION;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "version": version,
            "engines": engines,
            "guest": { "blake3": guest::DIGEST, "wire": wire },
        }))?,
        Format::Text => {
            let digest = guest::DIGEST.get(..SHOWN).unwrap_or(guest::DIGEST);
            let engines = engines.join(", ");
            printer.data(format_args!(
                "runner {version}\nengines: {engines}\nguest: {digest} (wire {wire})\n"
            ))?;
        }
    }
    Ok(Ending::ok())
}
