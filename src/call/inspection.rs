//! What a call with a network needs besides its connections: the machine's registries, and the authority of its own
//! under which connections are inspected.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use runner_policy::Effective;

use super::error::CallError;
use crate::audit::Redactor;
use crate::broker::inspect::{Authority, ByPolicy, Inspector, Records, bundle};
use crate::engine::plan::{SandboxPlan, SyntheticRole};
use crate::environment::Environment;
use crate::registries::{self, Registries, inside};
use crate::sandbox::planner::Told;
use crate::sandbox::synthetic::HOME;

/// Made before the call's plan. The authority's key is in this process alone, and ends with the call.
#[derive(Debug, Default)]
pub(super) struct Inspection {
    /// The registries that rules of the policy stand for.
    pub registries: Arc<Registries>,
    /// What programs inside are told.
    pub told: Arc<Told>,
    authority: Option<Arc<Authority>>,
}

impl Inspection {
    /// For a call whose command has a network. Files of package managers are read where a rule names one.
    pub(super) fn prepare(
        policy: &Effective,
        environment: &Environment,
    ) -> Result<Self, CallError> {
        let now = Timestamp::now();
        let registries = registries::find(&policy.registries(now), environment)?;
        let home = Path::new(HOME);
        let (variables, files) = inside::clients(&registries, home);
        let mut told = Told { env: variables.into_iter().collect(), files: Vec::new() };
        let clients = |(path, content)| (path, content, SyntheticRole::Registries);
        told.files.extend(files.into_iter().map(clients));
        let names = policy.inspected(now, &registries.hosts());
        let authority = match names.is_empty() {
            true => None,
            false => {
                let authority = Authority::new(&names)?;
                told.env.extend(inside::trust(home));
                let text = bundle(&authority).into_bytes();
                told.files.push((inside::certificates(home), text, SyntheticRole::Certificates));
                Some(Arc::new(authority))
            }
        };
        Ok(Self { registries: Arc::new(registries), told: Arc::new(told), authority })
    }

    /// What inspects the call's connections; `None` if no rule wants that.
    pub(super) fn inspector(
        &self,
        policy: &Arc<Effective>,
        environment: &Environment,
        redactor: &Redactor,
        records: Arc<dyn Records>,
    ) -> Option<Inspector> {
        let authority = Arc::clone(self.authority.as_ref()?);
        let judge = ByPolicy::new(
            Arc::clone(policy),
            Arc::clone(&self.registries),
            redactor.clone(),
            environment.clone(),
        );
        Some(Inspector::new(authority, Arc::new(judge), records, redactor.clone()))
    }
}

/// Files on the host that no other call uses. They are removed when this is dropped; they hold certificates, no keys.
#[derive(Debug)]
pub(super) struct OwnFiles(Vec<PathBuf>);

impl OwnFiles {
    /// Those of a plan.
    pub(super) fn of(plan: &SandboxPlan) -> Self {
        let own = plan.synthetic.iter().filter(|file| file.role == SyntheticRole::Certificates);
        Self(own.map(|file| file.source.clone()).collect())
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        for file in &self.0 {
            // One that stays takes space and tells nothing.
            drop(std::fs::remove_file(file));
        }
    }
}
