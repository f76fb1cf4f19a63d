//! One call of the probe, on one engine: the whole way that every call goes, from the policy to what is applied.

use std::ffi::OsString;
use std::sync::Arc;

use runner_policy::limits::Limit;
use runner_policy::model::Writes;

use super::folder::{PROBE, TrialFolder};
use super::inside::VERB;
use crate::call::launch::run::Keep;
use crate::call::{
    self, CallError, CallResult, Command, Context, Decided, OnHeld, Output, Request,
};
use crate::call::{Variables, Warmth};
use crate::config;
use crate::engine::EngineName;
use crate::engine::plan::Protection;
use crate::policy_files::Choice;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::streams::Source;
use crate::workspace::Workspace;

/// What the probe is run with.
pub struct Trial<'a> {
    /// Where.
    pub place: &'a TrialFolder,
    /// On which engine.
    pub engine: EngineName,
    /// On whose behalf.
    pub context: &'a Context,
}

impl Trial<'_> {
    /// What is promised of a call like these.
    ///
    /// # Errors
    /// There is no plan for it.
    pub async fn promised(&self) -> Result<Vec<Protection>, CallError> {
        let decided = self.decide(&["look"], &[])?;
        Ok(call::dry_run(&decided).await?.plan.protections)
    }

    /// Runs the probe with these words, under limits that may be tighter than the policy's.
    ///
    /// # Errors
    /// The call did not come to an outcome.
    pub async fn run(
        &self,
        words: &[&str],
        tighten: &[(Limit, u64)],
        output: Output,
        cancel: &mut Cancel,
    ) -> Result<CallResult, CallError> {
        let mut decided = self.decide(words, tighten)?;
        call::run(&mut decided, output, None, cancel).await
    }

    fn decide(&self, words: &[&str], tighten: &[(Limit, u64)]) -> Result<Decided, CallError> {
        let program = format!("./{PROBE}");
        let words = [program.as_str(), VERB].into_iter().chain(words.iter().copied());
        let context = self.place.context(self.context);
        let places = self.place.places();
        let workspace = Workspace::find(Some(&self.place.workspace()), &context.environment)?;
        let request = Request {
            command: Command::Argv(words.map(OsString::from).collect()),
            cwd: Some(self.place.workspace()),
            policy: Choice::Named("doctor".to_owned()),
            image: None,
            engine: Some(self.engine.into()),
            tighten: tighten.to_vec(),
            warmth: Warmth::Cold,
            variables: Variables::Told,
            writes: Writes::default(),
            on_held: OnHeld::Tell,
        };
        let config = Arc::new(config::load(&places)?);
        request.decide_at(workspace, places, config, &context)
    }

    /// The same, with the output kept and no input.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn kept(
        &self,
        words: &[&str],
        tighten: &[(Limit, u64)],
        cancel: &mut Cancel,
    ) -> Result<CallResult, CallError> {
        let nothing: Source = None;
        self.run(words, tighten, Output::Kept(nothing, Keep::Limit), cancel).await
    }
}
