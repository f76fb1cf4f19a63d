//! Where tools are looked for.

use std::path::PathBuf;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::policy::place;
use crate::config::{self, Config};
use crate::policy_files::Places;
use crate::tool::Library;

/// Which folders. As typed.
#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// A further folder with tools
    #[arg(long, value_name = "DIR")]
    pub tools: Vec<PathBuf>,
    /// Look as if from this folder
    #[arg(long, short = 'C', visible_alias = "workdir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// The same, resolved.
#[derive(Debug)]
pub struct ToolScope {
    /// The workspace.
    pub workspace: PathBuf,
    /// Where policies and tools are looked for.
    pub places: Places,
    /// What is configured.
    pub config: Config,
    /// Every tool that was found.
    pub library: Library,
}

impl Args {
    /// Finds the workspace and the tools; a folder that was named must be there.
    pub fn resolve(self, context: &Context) -> Result<ToolScope, Error> {
        let place = place::Args { policy: None, cwd: self.cwd }.resolve(context)?;
        let config = config::load(&place.places)?;
        let library = Library::find(&place.places, &self.tools, &config);
        library.whole()?;
        Ok(ToolScope { workspace: place.workspace, places: place.places, config, library })
    }
}
