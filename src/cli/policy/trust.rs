//! `runner policy trust`: a person reads what a project's policy grants, and pins it.

use std::io::{self, BufRead, IsTerminal};

use super::place;
use super::summary::Summary;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::Printer;
use crate::cli::visible::visible;
use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::{Ending, Kind};
use crate::policy_files::{Choice, Layer, Pin, PolicyError, Trust, TrustStore, load};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Shows what the policy grants, asks for yes or no, and pins the digest of the policy ",
        "and of all policies that it extends. After any change it asks again. It needs a ",
        "terminal: a program must not trust a policy for a person.\n\n",
        "Examples:\n",
        "  runner policy trust project\n",
        "  runner policy show project",
    )
)]
pub struct Args {
    /// A policy in .runner/policies of the workspace
    #[arg(value_name = "NAME")]
    name: Choice,
}

/// Why nothing was pinned.
#[derive(Debug, thiserror::Error)]
pub enum TrustRefused {
    /// There is no terminal to answer at.
    #[error("trusting a policy needs a person at a terminal")]
    NoTerminal,
    /// The answer was not yes.
    #[error("{0} was not trusted")]
    Declined(String),
    /// The policy needs no pin.
    #[error("{0} is a {layer} policy and needs no trust", layer = .1.word())]
    NotNeeded(String, Layer),
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = place::Args { policy: Some(args.name), cwd: None }.resolve(context)?;
    let loaded = load(&place.choice, &place.places, Trust::ToLook)?;
    let name = loaded.policy.name().to_owned();
    if loaded.layer != Layer::Project {
        return Err(TrustRefused::NotNeeded(name, loaded.layer).into());
    }
    printer.talk(Summary::of(&loaded));
    if !io::stdin().is_terminal() {
        return Err(TrustRefused::NoTerminal.into());
    }
    printer.talk(format_args!(
        "\nCalls in {} may then do what this grants. Type the policy's name to trust it:",
        visible(&place.workspace.display().to_string())
    ));
    let mut answer = String::new();
    // A line longer than any name is no answer.
    let read = io::Read::take(io::stdin().lock(), 256).read_line(&mut answer);
    if read.is_err() || answer.trim() != name {
        return Err(TrustRefused::Declined(name).into());
    }
    let pin = Pin {
        workspace: place.workspace,
        policy: name.clone(),
        digest: loaded.policy.digest.to_hex().to_string(),
        at: jiff::Timestamp::now().to_string(),
    };
    TrustStore::open(place.places.state.as_deref())
        .and_then(|store| store.pin(pin))
        .map_err(PolicyError::from)?;
    printer.talk(format_args!("{} is trusted in its present form", visible(&name)));
    Ok(Ending::ok())
}

impl Failure for TrustRefused {
    fn code(&self) -> Code {
        match self {
            Self::NoTerminal => Code::TrustNeedsTerminal,
            Self::Declined(_) => Code::TrustDeclined,
            Self::NotNeeded(..) => Code::TrustNotNeeded,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::NoTerminal | Self::Declined(_) => Kind::ApprovalNeeded,
            Self::NotNeeded(..) => Kind::Usage,
        }
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoTerminal => Some("ask a person to run this command".to_owned()),
            Self::Declined(_) => None,
            Self::NotNeeded(..) => {
                Some("only policies in .runner/policies of a workspace are pinned".to_owned())
            }
        }
    }
}
