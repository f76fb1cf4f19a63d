//! What a tool is, without calling it: compiled, and a module asked for its description.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::describe;
use super::error::ToolCallError;
use super::prepare::{figures, source};
use super::sandbox::Scene;
use crate::call::CallError;
use crate::policies::{Choice, Places, Trust, load};
use crate::sandbox::run::this_program;
use crate::sandbox::workspace::Workspace;
use crate::tool::compile::{Compiled, Compiler};
use crate::tool::{Definition, Form, Tool};

/// Where tools are looked at, and under which policy a module is asked.
pub struct Looker {
    scene: Scene,
}

impl Looker {
    /// For a folder.
    ///
    /// # Errors
    /// There is no workspace, or no such policy.
    pub fn new(cwd: Option<&Path>, policy: &Choice) -> Result<Self, CallError> {
        let variable = |name: &str| std::env::var_os(name);
        let home = variable("HOME").map(PathBuf::from);
        let workspace = Workspace::find(cwd, home.as_deref())?;
        let places = Places::from_env(variable, Some(workspace.root()));
        let policy = load(policy, &places, Trust::Required)?.policy;
        let scene = Scene {
            limits: figures(&policy),
            policy: Arc::new(policy),
            workspace: Arc::new(workspace),
            places,
            image: None,
        };
        Ok(Self { scene })
    }

    /// Compiles a tool. A module also says what it is; one that was never seen before is asked in a sandbox.
    ///
    /// # Errors
    /// It is broken, cannot be compiled, or does not tell what it is.
    pub fn look(&self, tool: &Tool) -> Result<Option<Definition>, CallError> {
        let compiled = compile(tool, &self.scene.places)?;
        match tool.form {
            Form::Yaml => Ok(None),
            Form::Module => describe::describe(tool, &compiled, &self.scene).map(Some),
        }
    }
}

fn compile(tool: &Tool, places: &Places) -> Result<Compiled, CallError> {
    let source = source(tool, places)?;
    let compiler = Compiler::new(&this_program(), places.state.as_deref());
    Ok(compiler.compile(&source).map_err(ToolCallError::from)?)
}
