//! `runner mcp token …`: who may come in over TCP.

use clap::Subcommand;
use serde_json::json;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::exit::Ending;
use crate::mcp::{TokenName, TokenRow, Tokens};
use crate::policy_files::Places;
use crate::text::moment;

/// The subcommands of `mcp token`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner mcp token new laptop\n",
        "  runner mcp token list",
    )
)]
pub enum Command {
    /// Make a token for a client; it is shown once
    #[command(after_help = concat!(
        "Examples:\n",
        "  runner mcp token new laptop\n",
        "  runner mcp token new ci --json",
    ))]
    New(Named),
    /// List the clients that have one
    #[command(after_help = concat!(
        "Examples:\n",
        "  runner mcp token list\n",
        "  runner mcp token list --json",
    ))]
    List,
    /// Take a token back; a running server refuses it from then on
    #[command(after_help = concat!(
        "Examples:\n",
        "  runner mcp token revoke laptop\n",
        "  runner mcp token revoke ci --json",
    ))]
    Revoke(Named),
}

/// Which client.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The client
    #[arg(value_name = "NAME")]
    name: TokenName,
}

pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let places = Places::of(&context.environment, None);
    let tokens = Tokens::open(places.state.as_deref())?;
    match command {
        Command::New(Named { name }) => {
            let token = tokens.make(&name)?;
            match printer.format() {
                Format::Json => printer.json(&json!({ "name": name.as_str(), "token": token }))?,
                Format::Text => {
                    printer.data(format_args!("{token}\n"))?;
                    printer.talk("this token is not shown again; the client sends it as Authorization: Bearer TOKEN");
                }
            }
        }
        Command::List => {
            let rows = tokens.rows()?;
            let row = |row: &TokenRow| json!({ "name": row.name, "id": row.id, "made": row.made });
            match printer.format() {
                Format::Json => {
                    let rows: Vec<_> = rows.iter().map(row).collect();
                    printer.json(&json!({ "tokens": rows }))?;
                }
                Format::Text => {
                    let mut table = Table::new(["CLIENT", "ID", "MADE"]);
                    for row in rows.iter() {
                        table.row([row.name.clone(), row.id.clone(), moment(row.made)]);
                    }
                    printer.data(table)?;
                }
            }
        }
        Command::Revoke(Named { name }) => {
            tokens.revoke(&name)?;
            match printer.format() {
                Format::Json => printer.json(&json!({ "revoked": name.as_str() }))?,
                Format::Text => printer.talk(format_args!("{}: revoked", name.as_str())),
            }
        }
    }
    Ok(Ending::ok())
}
