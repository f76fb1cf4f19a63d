//! Asking servers what they offer, and remembering it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runner_policy::Effective;
use runner_policy::limits::Limit;

use super::talk::{Site, Spoken, Talker, broke, converse, decide};
use crate::audit::Redactor;
use crate::call::approval::{Asking, Fed};
use crate::call::gate::Gate;
use crate::call::result::{CallResult, ErrorObject};
use crate::call::run::gate;
use crate::call::supply::Warmth;
use crate::call::{CallError, Context};
use crate::config::{self, Config, Server};
use crate::engine;
use crate::exit::Ending;
use crate::mcp_client::{Asked, Change, Remembered, changes, remember, remembered};
use crate::policy_files::{Choice, Places, Trust, load};
use crate::sandbox::cancel::Cancel;
use crate::store::Store;
use crate::workspace::Workspace;

/// How long a server may take to say what it offers, in milliseconds.
const ASKING: u64 = 60_000;

/// The servers of a workspace.
pub struct Servers {
    root: PathBuf,
    places: Places,
    config: Arc<Config>,
    context: Context,
}

/// What a server said, and what is different.
pub struct Refreshed {
    /// What it said.
    pub asked: Asked,
    /// What changed since it was last asked; `None` if it never was.
    pub changes: Option<Vec<(String, Change)>>,
    /// The call that asked it.
    pub call: String,
}

/// Why nothing was learned.
pub struct Failed {
    /// For the process.
    pub ending: Ending,
    /// What went wrong.
    pub error: ErrorObject,
    /// The call that asked it.
    pub call: String,
}

/// What came of asking a server.
pub enum Refresh {
    /// It answered.
    Done(Box<Refreshed>),
    /// The policy does not let it run, or it was not approved.
    Refused(Box<CallResult>),
    /// It broke.
    Failed(Box<Failed>),
}

impl Servers {
    /// Those that may be used in a folder.
    ///
    /// # Errors
    /// There is no workspace, or the configuration cannot be used.
    pub fn find(cwd: Option<&Path>, context: &Context) -> Result<Self, CallError> {
        let workspace = Workspace::find(cwd, &context.environment)?;
        let places = Places::of(&context.environment, Some(workspace.root()));
        let config = Arc::new(config::load(&places)?);
        Ok(Self { root: workspace.root().to_owned(), places, config, context: context.clone() })
    }

    /// What is known of each, without asking.
    #[must_use]
    pub fn known(&self) -> Vec<Remembered> {
        remembered(&self.places, &self.config, |_| true)
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where our own files are.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Starts a server, asks it what it offers, and remembers that.
    ///
    /// # Errors
    /// It did not come to an answer, for a reason that is not the server's.
    pub async fn refresh(
        &self,
        it: &Remembered,
        policy: &Choice,
        engine: Option<&engine::Choice>,
        asking: Option<Arc<Asking>>,
        cancel: &mut Cancel,
    ) -> Result<Refresh, CallError> {
        let caller = self.config.choice(policy, &self.root);
        let policy = policy_of(&it.server, &caller, &self.places)?;
        let name = policy.name().to_owned();
        let site = Site {
            root: self.root.clone(),
            places: &self.places,
            config: &self.config,
            image: None,
            engine: engine.cloned(),
            tighten: vec![(Limit::Wall, ASKING)],
            warmth: Warmth::Pool,
            context: &self.context,
        };
        let mut decided = decide(&it.server, policy, site)?;
        let call = match gate(&mut decided, Fed::Input, asking, cancel).await? {
            Gate::Open(call) => call,
            Gate::Shut(shut) => return Ok(Refresh::Refused(Box::new(shut.result(&decided)?))),
        };
        let talk = async |client: &mut Talker| {
            let peer = client.greet().await?.clone();
            Ok((peer, client.tools().await?))
        };
        let spoken = converse(call, &decided, None, cancel, None, talk).await?;
        let Spoken { said, result } = spoken;
        let call = result.call.clone();
        let (peer, tools) = match said {
            Ok(said) => said,
            Err(error) => {
                let (ending, mut error) = broke(&error, result);
                let redactor = Redactor::new();
                error.message = redactor.text(&error.message).into_owned();
                error.details = error.details.map(|details| details.redacted(&redactor));
                return Ok(Refresh::Failed(Box::new(Failed { ending, error, call })));
            }
        };
        let at = i64::try_from(crate::sys::now().as_millis()).unwrap_or(i64::MAX);
        let asked = Asked { at, policy: name, peer, tools };
        let store = Store::open(self.places.state.as_deref())?;
        let last = remember(&store, &it.name, &it.identity, &asked)?;
        let changes = last.map(|last| changes(&last.tools, &asked.tools));
        Ok(Refresh::Done(Box::new(Refreshed { asked, changes, call })))
    }
}

/// The policy that decides about a server: its own, or the caller's.
pub(in crate::call) fn policy_of(
    server: &Server,
    caller: &Choice,
    places: &Places,
) -> Result<Arc<Effective>, CallError> {
    let own = server.policy.clone().map(Choice::Named);
    Ok(Arc::new(load(own.as_ref().unwrap_or(caller), places, Trust::Required)?.policy))
}
