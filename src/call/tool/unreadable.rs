//! A tool that was approved and cannot be read or compiled any more: a link in place of its file, an import that is gone.
//!
//! Duty: report it to the person who approved the tool. It is not what was approved: its approvals are void, and the
//! call is refused and recorded, with the file, as if its content had changed. Non-goals: a tool without an
//! approval; its author gets the usual error.

use std::path::Path;

use runner_policy::Verdict;
use serde_json::Value;

use super::error::ToolCallError;
use super::sandbox::Scene;
use crate::approvals::{ApprovalError, Book};
use crate::audit::{Ledger, Started, ToolRef};
use crate::call::CallError;
use crate::call::record::Unrecorded;
use crate::call::request::path_text;
use crate::codes::Code;
use crate::error::Failure as _;
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::store::Store;
use crate::tool::ToolError;
use crate::tool::compile::CompileError;

/// The error for a tool that could not be prepared. `folder` is where its files are, if that is known.
pub(super) fn judged(
    scene: &Scene,
    name: &ToolName,
    folder: Option<&Path>,
    error: CallError,
) -> CallError {
    let Some(file) = file_of(&error) else { return error };
    let call = match Unrecorded::new(&scene.places, &scene.context) {
        Ok(call) => call,
        Err(broken) => return broken,
    };
    let unreadable = Unreadable { scene, name, folder, file, call };
    unreadable.refused(error).unwrap_or_else(|broken| broken)
}

struct Unreadable<'a> {
    scene: &'a Scene,
    name: &'a ToolName,
    folder: Option<&'a Path>,
    /// The file that the error names.
    file: String,
    call: Unrecorded,
}

/// The file that is wrong, if that is why.
fn file_of(error: &CallError) -> Option<String> {
    let CallError::Tool(error) = error else { return None };
    match error {
        ToolCallError::Tool(ToolError::Broken { findings, .. })
        | ToolCallError::Compile(CompileError::Source(findings)) => {
            findings.first().map(|finding| finding.file.clone())
        }
        ToolCallError::Compile(CompileError::Unreadable { path, .. }) => {
            Some(path.display().to_string())
        }
        ToolCallError::Compile(CompileError::Changed(changed)) => Some(changed.path.clone()),
        ToolCallError::Tool(_)
        | ToolCallError::Compile(_)
        | ToolCallError::NotDescribed { .. }
        | ToolCallError::NotDescribedInTime { .. }
        | ToolCallError::Shipped(_) => None,
    }
}

impl Unreadable<'_> {
    fn refused(self, error: CallError) -> Result<CallError, CallError> {
        let error = match self.void()? {
            Some(changed) => CallError::from(changed),
            // It changed while it was read, and had no approval.
            None if error.code() == Code::ToolDigestMismatch => error,
            None => return Ok(error),
        };
        let tool = ToolRef { name: self.name.to_string(), digest: String::new() };
        let workspace = &self.scene.workspace;
        let place = (path_text(workspace.root())?, path_text(workspace.cwd())?);
        let (policy, caller) = (&self.scene.policy, &self.scene.context.caller);
        let started = Started::of_tool("run", tool, Value::Null, place, policy, caller);
        let refused = started.refused(Verdict::Deny, error.code(), error.to_string());
        self.call.open()?.refuse(refused, &Ending::of_kind(error.kind(), error.code()))?;
        Ok(error)
    }

    /// Voids what was approved of it; what to say if anything was.
    fn void(&self) -> Result<Option<ApprovalError>, CallError> {
        let state = self.scene.places.state.as_deref();
        let Some(store) = Store::existing(state)? else { return Ok(None) };
        let book = Book::new(
            Ledger::new(store),
            self.scene.config.approvals(),
            self.scene.context.caller.clone(),
        );
        let subject = format!("tool:{}", self.name);
        let workspace = path_text(self.scene.workspace.root())?;
        let voided = book.void(&subject, workspace, self.call.id())?;
        Ok(voided.first().map(|binding| {
            let file = self.missing(&binding.inputs).unwrap_or(&self.file).to_owned();
            ApprovalError::Changed { subject, file }
        }))
    }

    /// The first file of what was approved that is no file any more: an error may name only who imports it.
    fn missing<'b>(&self, inputs: &'b [(String, String)]) -> Option<&'b str> {
        let folder = self.folder?;
        let is_file =
            |path: &str| folder.join(path).symlink_metadata().is_ok_and(|found| found.is_file());
        inputs.iter().map(|(path, _)| path.as_str()).find(|path| !is_file(path))
    }
}
