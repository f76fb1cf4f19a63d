//! Judges what a call will do before it starts, so that a person is not asked about what the policy denies in any case,
//! and sees what would be done.

use std::sync::Arc;

use jiff::Timestamp;
use runner_policy::{Query, Verdict, What, decide};

use super::exec::with_variables;
use super::outcome::{Judged, kind_of};
use super::prepare::Prepared;
use super::program::Program;
use crate::broker::{self, Files, Refusal};
use crate::call::CallError;
use crate::call::approval::{Action, effects, removal, request};
use crate::call::request::{Request, Variables};
use crate::call::result::ErrorObject;
use crate::codes::Code;
use crate::exit::Ending;
use crate::policy_files::Choice;
use crate::tool::builtin::Intent;
use crate::workspace::Workspace;

/// What a call will do, as far as its arguments show it.
#[derive(Debug, Default)]
pub(super) struct Prejudged {
    /// Lines of the question.
    pub lines: Vec<(&'static str, String)>,
    /// What an answer holds for.
    pub action: Action,
}

/// Judges the tool's intents; a refusal if the policy denies one of them.
pub(super) fn prejudge(prepared: &Prepared) -> Result<Result<Prejudged, Refusal>, CallError> {
    let mut prejudged = Prejudged::default();
    let Program::BuiltIn(tool) = prepared.program else { return Ok(Ok(prejudged)) };
    for intent in tool.intends(&prepared.args) {
        let denied = match intent {
            Intent::Run { command, cwd, env } => prejudged.run(prepared, command, &cwd, &env)?,
            Intent::Remove { path, recursive } => prejudged.remove(prepared, &path, recursive),
            Intent::Reach { method, url } => prejudged.reach(prepared, &method, &url),
        };
        if let Some(refusal) = denied {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(prejudged))
}

impl Prejudged {
    fn run(
        &mut self,
        prepared: &Prepared,
        command: broker::Command,
        cwd: &str,
        env: &[(String, String)],
    ) -> Result<Option<Refusal>, CallError> {
        let scene = &prepared.scene;
        let root = scene.workspace.root();
        let environment = &scene.context.environment;
        // What cannot be told now is told by the call itself.
        let Ok(workspace) = Workspace::open_at(root, &root.join(cwd), environment) else {
            return Ok(None);
        };
        let Ok(command) = with_variables(command, env) else { return Ok(None) };
        let request = Request {
            command,
            cwd: None,
            policy: Choice::default(),
            image: scene.image.clone(),
            engine: scene.engine.clone(),
            tighten: prepared.tighten.clone(),
            warmth: scene.warmth,
            variables: Variables::Told,
            writes: runner_policy::model::Writes::default(),
            on_held: crate::call::OnHeld::default(),
        };
        let (policy, config) = (Arc::clone(&scene.commands), Arc::clone(&scene.config));
        let (places, context) = (scene.places.clone(), scene.context.clone());
        let decided = request.decide_under(policy, workspace, places, config, context)?;
        if !decided.is_allowed() && !decided.asks() {
            let mut refusal = Refusal::of_decision(Code::AccessDenied, &decided.decision);
            refusal.suggestion = ErrorObject::of_decision(&decided.explain()?).suggestion;
            return Ok(Some(refusal));
        }
        self.lines.push(("runs", decided.request.shown()));
        self.lines.extend(effects(&decided).into_iter().map(|effect| ("", effect)));
        let action = Action::of_command(&decided)?;
        let holds = action.holds(&action.files());
        self.lines.extend(holds.map(|holds| ("holds for", holds)));
        self.action.extend(action);
        Ok(None)
    }

    fn remove(&mut self, prepared: &Prepared, path: &str, recursive: bool) -> Option<Refusal> {
        let files = Files::to_judge(&prepared.scene.workspace, &prepared.scene.policy)?;
        match files.removes(path, recursive, false) {
            Ok(Some(what)) => {
                for path in what.loses() {
                    self.lines.push(("removes", path.clone()));
                    self.action.deeds.push(removal(path));
                }
                None
            }
            Ok(None) => None,
            Err(refusal) => Some(refusal).filter(|refusal| kind_of(refusal.code).is_some()),
        }
    }

    fn reach(&mut self, prepared: &Prepared, method: &str, url: &str) -> Option<Refusal> {
        let what = broker::spelled(method, url).ok()?;
        let query =
            Query { workspace: "/", cwd: "/", now: Timestamp::now(), what: What::Net(&what) };
        let decision = decide(&prepared.scene.policy, &query);
        if decision.decision == Verdict::Deny {
            let code = match decision.code {
                runner_policy::Code::NetAddress => Code::NetAddress,
                _ => Code::NetDenied,
            };
            return Some(Refusal::of_decision(code, &decision));
        }
        self.lines.push(("reaches", what.clone()));
        self.action.deeds.push(request(&what));
        None
    }
}

/// The result of a call that is denied before it starts: as if it had asked for it.
pub(super) fn denied(refusal: Refusal) -> Judged {
    let code = refusal.code;
    let error = ErrorObject {
        code,
        message: refusal.message,
        recoverable: refusal.recoverable,
        suggestion: refusal.suggestion.or_else(|| Some(code.row().suggestion.to_owned())),
        rule: refusal.rule.map(|rule| *rule),
        stack: None,
        details: None,
    };
    let kind = kind_of(code).unwrap_or(crate::exit::Kind::Denied);
    Judged { ending: Ending::of_kind(kind, code), value: None, error: Some(error) }
}
