//! Before anything starts: find the tool, compile it, know what it is, check its arguments, and narrow the policy.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runner_policy::limits::Limit;
use serde_json::Value;

use super::describe::describe;
use super::error::ToolCallError;
use super::program::Program;
use super::sandbox::Scene;
use super::unreadable;
use crate::call::clock::Clock;
use crate::call::mcp::policy_of;
use crate::call::result::ToolRef;
use crate::call::supply::Warmth;
use crate::call::{CallError, Context};
use crate::config::{self, Config, Figure};
use crate::engine;
use crate::ids::ToolName;
use crate::policy_files::{Choice, Places, Trust, load};
use crate::sandbox::cancel::Cancel;
use crate::tool::compile::{Compiled, Compiler, Language, Part, Place, Source};
use crate::tool::{Body, Definition, Form, Library, Runtime, Tool, ToolError, arguments};
use crate::workspace::Workspace;

/// A tool call as it was asked for.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// Which tool.
    pub name: ToolName,
    /// With what.
    pub given: Given,
    /// Where; the current folder if `None`.
    pub cwd: Option<PathBuf>,
    /// Under which policy.
    pub policy: Choice,
    /// Further folders with tools.
    pub tools: Vec<PathBuf>,
    /// In which image, instead of the policy's.
    pub image: Option<String>,
    /// Which engines may make the sandboxes.
    pub engine: Option<engine::Choice>,
    /// Limits that are tighter than the policy's.
    pub tighten: Vec<(Limit, u64)>,
    /// Whether sandboxes that wait may be used.
    pub warmth: Warmth,
}

/// Arguments as they were typed.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// All of them as one JSON object.
    pub json: Option<String>,
    /// Single ones: `NAME=VALUE`, `NAME:=JSON`.
    pub pairs: Vec<String>,
}

/// A tool call of which everything is known before it runs.
pub struct Prepared {
    /// What the tool is.
    pub definition: Definition,
    /// Its arguments, valid, with defaults.
    pub args: Value,
    /// What runs, and what it was made from.
    pub program: Program,
    /// Its file, as shown in messages and stacks.
    pub file: String,
    /// Limits of the caller, which bind its commands too.
    pub tighten: Vec<(Limit, u64)>,
    /// Whether it stands in for a tool of the same name that we ship.
    pub replaces_shipped: bool,
    /// The most time that an attempt can get, in milliseconds: the policy's, within the caller's.
    pub longest: u64,
    /// What set that.
    pub(super) clock: Clock,
    pub(super) scene: Scene,
    /// As it was asked for, so that another tool can stand in.
    request: Option<ToolRequest>,
}

impl ToolRequest {
    /// Prepares the call. A module that was never seen before is asked what it is, in a sandbox.
    ///
    /// # Errors
    /// Nothing was run but that question.
    pub async fn prepare(
        self,
        context: &Context,
        cancel: &mut Cancel,
    ) -> Result<Prepared, CallError> {
        let given = self.given.clone();
        let mut prepared = self.find(context, cancel).await?;
        let Definition { schema, name, .. } = &prepared.definition;
        prepared.args = arguments::read(schema, given.json.as_deref(), &given.pairs)
            .map_err(|violations| ToolError::Arguments { name: name.clone(), violations })
            .map_err(ToolCallError::from)?;
        Ok(prepared)
    }

    /// All of it but the arguments, which are nothing yet.
    pub(super) async fn find(
        self,
        context: &Context,
        cancel: &mut Cancel,
    ) -> Result<Prepared, CallError> {
        let workspace = Workspace::find(self.cwd.as_deref(), &context.environment)?;
        let places = Places::of(&context.environment, Some(workspace.root()));
        let config = Arc::new(config::load(&places)?);
        let choice = config.choice(&self.policy, workspace.root());
        let policy = load(&choice, &places, Trust::Required)?.policy;
        let library = Library::find_for(&places, &self.tools, &config, &self.name);
        let policy = Arc::new(policy);
        let scene = Scene {
            limits: policy.tightest_limits(),
            commands: Arc::clone(&policy),
            policy,
            workspace: Arc::new(workspace),
            places,
            image: self.image.clone(),
            engine: self.engine.clone(),
            config: Arc::clone(&config),
            warmth: self.warmth,
            context: context.clone(),
        };
        let name = &self.name;
        let mut folder = None;
        let found = async {
            let tool = take(library, name)?;
            tool.switched_on().map_err(ToolCallError::from)?;
            folder.clone_from(&tool.folder);
            known(tool, scene.clone(), &self.tighten, cancel).await
        };
        let mut prepared = match found.await {
            Ok(prepared) => prepared,
            Err(error) => return Err(unreadable::judged(&scene, name, folder.as_deref(), error)),
        };
        prepared.request = Some(self.clone());
        if !prepared.definition.enabled {
            let error = ToolError::Disabled { name: name.clone(), file: prepared.file };
            return Err(ToolCallError::from(error).into());
        }
        let (narrowed, commands) = match &prepared.program {
            // A server asks for nothing but to run, and a policy decides about that.
            Program::Server { policy, .. } => (Arc::clone(policy), Arc::clone(policy)),
            Program::Module { .. } | Program::BuiltIn(_) => {
                let permissions = &prepared.definition.permissions;
                let own = &prepared.scene.policy;
                (Arc::new(permissions.narrow(own)), Arc::new(permissions.narrow_commands(own)))
            }
        };
        let mut longest = prepared.scene.limits;
        prepared.scene.limits = narrowed.tightest_limits();
        let configured = config.limits(name).max_execution_time;
        let wall = configured.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let source = || config.figure_of(name, Figure::MaxExecutionTime).source.clone();
        let ours = wall.map(|it| (Limit::Wall, it, Clock::Configuration(source())));
        let callers = self.tighten.iter().map(|(limit, figure)| (*limit, *figure, Clock::Caller));
        let servers = prepared.program.timeout();
        let servers = servers.map(|(time, name)| (Limit::Wall, time, Clock::Server(name)));
        for (limit, figure, clock) in callers.chain(ours).chain(servers) {
            if limit == Limit::Wall && figure < longest.get(Limit::Wall) {
                prepared.clock = clock;
            }
            prepared.scene.limits.tighten(limit, figure);
            longest.tighten(limit, figure);
        }
        prepared.longest = longest.get(Limit::Wall);
        prepared.tighten = self.tighten;
        (prepared.scene.policy, prepared.scene.commands) = (narrowed, commands);
        Ok(prepared)
    }
}

impl Prepared {
    /// The same call of another tool.
    ///
    /// # Errors
    /// There is none, it is broken, or the arguments are not for it.
    pub(super) async fn instead(
        &self,
        name: ToolName,
        cancel: &mut Cancel,
    ) -> Result<Self, CallError> {
        let request = self.request.clone().ok_or_else(|| {
            CallError::Local("call another tool", std::io::ErrorKind::Unsupported.into())
        })?;
        ToolRequest { name, ..request }.prepare(&self.scene.context, cancel).await
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.scene.config
    }

    /// Where our own files are.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.scene.places
    }

    /// The tool, as results and records name it.
    #[must_use]
    pub fn reference(&self) -> ToolRef {
        ToolRef { name: self.definition.name.to_string(), digest: self.program.digest() }
    }
}

/// The tool of this name, to keep.
fn take(mut library: Library, name: &ToolName) -> Result<Tool, CallError> {
    library.tool(name).map_err(ToolCallError::from)?;
    let found = library.tools.iter().position(|tool| tool.name == *name);
    // It was just found.
    let Some(at) = found else {
        return Err(CallError::Local("find the tool", std::io::ErrorKind::NotFound.into()));
    };
    Ok(library.tools.swap_remove(at))
}

/// Learns what a tool is, and compiles it if it is not a part of this program. The limits of the caller hold while a module
/// is asked, too.
async fn known(
    tool: Tool,
    scene: Scene,
    callers: &[(Limit, u64)],
    cancel: &mut Cancel,
) -> Result<Prepared, CallError> {
    let (file, replaces_shipped) = (tool.file.clone(), tool.replaces_shipped);
    let (definition, program) = if let Some(from) = tool.from_server.clone() {
        let policy = match from.server.policy {
            Some(_) => policy_of(&from.server, &Choice::Default, &scene.places)?,
            None => Arc::clone(&scene.policy),
        };
        let root = scene.workspace.root().to_owned();
        let definition = tool.into_definition().map_err(ToolCallError::from)?;
        (definition, Program::Server { from, policy, root })
    } else if let Some(built_in) = tool.built_in() {
        let definition = tool.into_definition().map_err(ToolCallError::from)?;
        (definition, Program::BuiltIn(built_in))
    } else {
        let compiled = compile(&tool, &scene.places, cancel).await?;
        let form = tool.form;
        let definition = match form {
            Form::Module => {
                let mut asking = scene.clone();
                callers.iter().for_each(|(limit, figure)| asking.limits.tighten(*limit, *figure));
                Some(describe(&tool, &compiled, &asking, cancel).await?)
            }
            Form::Yaml | Form::BuiltIn | Form::Mcp => {
                tool.into_definition().map_err(ToolCallError::from)?
            }
        };
        (definition, Program::of(compiled, form))
    };
    let Some(definition) = definition else {
        return Err(CallError::Local("read the tool", std::io::ErrorKind::InvalidData.into()));
    };
    let tighten = Vec::new();
    Ok(Prepared {
        definition,
        args: Value::Null,
        program,
        file,
        tighten,
        replaces_shipped,
        longest: scene.limits.get(Limit::Wall),
        clock: Clock::Policy(scene.policy.name().to_owned()),
        scene,
        request: None,
    })
}

/// The module of a tool. A thread waits for the compiler, so that other calls of this process go on meanwhile.
pub(super) async fn compile(
    tool: &Tool,
    places: &Places,
    cancel: &mut Cancel,
) -> Result<Compiled, CallError> {
    let source = source(tool, places)?;
    let compiler = Compiler::new(places.state.as_deref());
    if let Some(compiled) = compiler.remembered(&source) {
        return Ok(compiled);
    }
    let compiling = tokio::task::spawn_blocking(move || compiler.compile(&source));
    tokio::select! {
        compiled = compiling => match compiled {
            Ok(compiled) => Ok(compiled.map_err(ToolCallError::from)?),
            Err(error) => Err(CallError::Local("compile the tool", std::io::Error::other(error))),
        },
        cause = cancel.asked() => Err(CallError::Cancelled(cause)),
    }
}

/// What is compiled.
pub(super) fn source(tool: &Tool, places: &Places) -> Result<Source, CallError> {
    let folder = match &tool.folder {
        Some(folder) => folder.clone(),
        None => {
            crate::tool::lay_out_shipped(places.state.as_deref()).map_err(ToolCallError::Shipped)?
        }
    };
    let name = Path::new(&tool.file).file_name().and_then(|name| name.to_str());
    let file = name.unwrap_or(&tool.file).to_owned();
    let part = match tool.definition().map_err(ToolCallError::from)? {
        None => Part::Whole(Language::of_file(&file).unwrap_or(Language::TypeScript)),
        Some(Definition { body: Body::Yaml { runtime, code }, .. }) => Part::Code {
            text: code.text.clone(),
            language: match runtime {
                Runtime::Typescript => Language::TypeScript,
                Runtime::Node => Language::JavaScript,
            },
            place: Place { line: code.line, indent: code.indent },
        },
        Some(Definition { body: Body::Module(_) | Body::BuiltIn(_) | Body::Mcp(_), .. }) => {
            Part::Whole(Language::TypeScript)
        }
    };
    Ok(Source { folder, file, shown: tool.file.clone(), document: tool.text.clone(), part })
}
