//! What a tool is, without calling it: compiled, and a module asked for its description.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::approval::Asker;
use super::authority::authority;
use super::describe;
use super::prepare::compile;
use super::sandbox::Scene;
use super::shortfalls::Shortfalls;
use crate::audit::Redactor;
use crate::broker::Mode;
use crate::call::request::path_text;
use crate::call::supply::Warmth;
use crate::call::{About, Always, Asking, CallError, Context, Reply, Spent};
use crate::config;
use crate::ids::CallId;
use crate::policy_files::{Choice, Places, Trust, load};
use crate::sandbox::cancel::Cancel;
use crate::tool::{Body, Definition, Form, Removal, Tool};
use crate::workspace::Workspace;

/// Where tools are looked at, and under which policy a module is asked.
pub struct Looker {
    scene: Scene,
}

impl Looker {
    /// For a folder.
    ///
    /// # Errors
    /// There is no workspace, or no such policy.
    pub fn new(cwd: Option<&Path>, policy: &Choice, context: &Context) -> Result<Self, CallError> {
        let workspace = Workspace::find(cwd, &context.environment)?;
        let places = Places::of(&context.environment, Some(workspace.root()));
        let config = Arc::new(config::load(&places)?);
        let choice = config.choice(policy, workspace.root());
        let policy = load(&choice, &places, Trust::Required)?.policy;
        let policy = Arc::new(policy);
        let scene = Scene {
            limits: policy.tightest_limits(),
            commands: Arc::clone(&policy),
            policy,
            workspace: Arc::new(workspace),
            places,
            image: None,
            engine: None,
            config,
            warmth: Warmth::Pool,
            context: context.clone(),
        };
        Ok(Self { scene })
    }

    /// Compiles a tool, unless it is a part of this program. A module also says what it is; one that was never seen before is asked in a sandbox.
    ///
    /// # Errors
    /// It is broken, cannot be compiled, or does not tell what it is.
    pub async fn look(
        &self,
        tool: &Tool,
        cancel: &mut Cancel,
    ) -> Result<Option<Definition>, CallError> {
        if matches!(tool.form, Form::BuiltIn | Form::Mcp) {
            return Ok(None);
        }
        let compiled = compile(tool, &self.scene.places, cancel).await?;
        match tool.form {
            Form::Yaml | Form::BuiltIn | Form::Mcp => Ok(None),
            Form::Module => {
                let said = describe::describe(tool, &compiled, &self.scene, cancel).await?;
                Ok(Some(said))
            }
        }
    }
}

/// How a module says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Whether it could work now.
    pub healthy: bool,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Looker {
    /// Runs the health check of a module that has one: its own code, with its own permissions under the policy.
    /// What the policy would ask about is refused.
    ///
    /// # Errors
    /// It did not come to an answer.
    pub async fn health(
        &self,
        tool: &Tool,
        definition: &Definition,
        cancel: &mut Cancel,
    ) -> Result<Option<Health>, CallError> {
        let Body::Module(described) = &definition.body else { return Ok(None) };
        if !described.hooks.iter().any(|hook| hook == "healthCheck" || hook == "testMethod") {
            return Ok(None);
        }
        let own = &self.scene;
        let compiled = compile(tool, &own.places, cancel).await?;
        let policy = definition.permissions.narrow(&own.policy);
        let scene = Scene {
            limits: policy.tightest_limits(),
            policy: Arc::new(policy),
            commands: Arc::new(definition.permissions.narrow_commands(&own.policy)),
            workspace: Arc::clone(&own.workspace),
            places: own.places.clone(),
            image: None,
            engine: own.engine.clone(),
            config: Arc::clone(&own.config),
            warmth: Warmth::Pool,
            context: own.context.clone(),
        };
        let asker = Asker {
            // A look must not leave an open question behind.
            asking: Arc::new(Asking {
                approver: Arc::new(Always(Reply::No)),
                named: Vec::new(),
                places: own.places.clone(),
                times: own.config.approvals(),
                redactor: Redactor::new(),
                spent: Spent::default(),
                caller: own.context.caller.clone(),
            }),
            about: About {
                tool: tool.name.to_string(),
                description: String::new(),
                args: Value::Null,
                tier: "",
                risk: "",
                estimates: Vec::new(),
            },
            digest: compiled.digest.clone(),
            inputs: Vec::new(),
            terms: scene.terms()?,
            workspace: path_text(own.workspace.root())?.to_owned(),
            call: CallId::fresh().map_err(|error| CallError::Local("make an id", error))?,
        };
        let powers = |id: &CallId| {
            let asker = Asker { call: id.clone(), ..asker };
            authority(&scene, asker, &[], Redactor::new(), Removal::Asked, Shortfalls::default())
        };
        let said = describe::ask(tool, &compiled, &scene, Mode::Check, powers, cancel).await?;
        let health = said.get("health").cloned().unwrap_or_default();
        let message = health.get("message").and_then(Value::as_str).map(str::to_owned);
        Ok(Some(Health { healthy: health.get("healthy") == Some(&Value::Bool(true)), message }))
    }
}
