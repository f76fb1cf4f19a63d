//! Every tool that can be found, and which of them can be used.
//!
//! One broken tool does not hide the others: it is kept as broken, with its findings, and using it
//! fails. A name that two sources give is refused for both, because it would mean different things
//! to different people. A tool that is part of this program is on until it is switched off, an example that we ship off
//! until it is switched on; one that is off blocks no other tool of its name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use runner_policy::finding::{At, Finding};

use super::builtin::{self, BuiltIn};
use super::definition::Definition;
use super::error::ToolError;
use super::folder::{Folder, Form, Identity, Outcome, ToolFile};
use super::mcp::{self, FromServer};
use super::origin::{Origin, Switch};
use super::words::Waiver;
use super::{read, shipped};
use crate::config::{self, BETWEEN, Config, Flag, ServerName, Source};
use crate::ids::ToolName;
use crate::mcp_client::{Known, Offered, Remembered, remembered};
use crate::policy_files::{Layer, Places};

/// Most threads that read definitions.
const READERS: usize = 8;
/// Definitions for which a thread is not worth its start.
const FEW: usize = 16;
/// Stack of such a thread: that of a main thread, which is enough for what the readers let be nested.
const READER_STACK: usize = 8 << 20;

/// A tool that was found.
#[derive(Debug)]
pub struct Tool {
    /// Its name, by its file.
    pub name: ToolName,
    /// Where it comes from.
    pub layer: Layer,
    /// Its file, as shown in messages.
    pub file: String,
    /// The folder that it was found in; nothing for one that we ship.
    pub folder: Option<PathBuf>,
    /// Its form.
    pub form: Form,
    /// Its text, as it was read once. Whatever runs is made from this.
    pub text: String,
    /// Digest of the text.
    pub digest: blake3::Hash,
    /// What it says, if it is no module: that says it only when it runs. Read when it is asked for: a call of one
    /// tool does not wait for all the others.
    definition: OnceLock<Result<Definition, Vec<Finding>>>,
    /// The server that it is of, and what that says of it.
    pub from_server: Option<Arc<FromServer>>,
    /// Whether it is switched on.
    pub switch: Switch,
    /// Whether it stands in for one that we ship.
    pub replaces_shipped: bool,
    /// Why its own `autoAccept: true` does not count, if it does not.
    waives: Option<Waiver>,
}

/// A file that is no tool.
#[derive(Debug)]
pub struct Broken {
    /// The name, if the file's name gives one.
    pub name: Option<ToolName>,
    /// Where it comes from.
    pub layer: Layer,
    /// The same, in the words of lists.
    pub origin: Origin,
    /// The file, as shown in messages.
    pub file: String,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// An MCP server of which it is not known what it offers now.
#[derive(Debug)]
pub struct Unasked {
    /// The server.
    pub server: ServerName,
    /// Why it is not known.
    pub why: NotAsked,
    /// The same for people.
    pub finding: Finding,
}

/// Why it is not known what a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAsked {
    /// It was never asked.
    Never,
    /// It is not what was asked.
    Changed,
}

/// All that was found.
#[derive(Debug, Default)]
pub struct Library {
    /// The tools that can be looked at, by name and then by layer. A name may stand twice.
    pub tools: Vec<Tool>,
    /// Files that could not be read as tools.
    pub broken: Vec<Broken>,
    /// What is wrong with whole folders.
    pub findings: Vec<Finding>,
    /// MCP servers that could be used and whose tools are unknown: never asked, or changed since.
    pub unasked: Vec<Unasked>,
    /// What is wrong with the folders that the caller named. With one of them missing, a name could mean another
    /// tool than the caller's, so nothing is used.
    given: Vec<Finding>,
    /// The switch that keeps the tools of the user and of the workspace from being found, and where it stands.
    unloaded: Option<(&'static str, Source)>,
}

impl Tool {
    fn new(found: ToolFile, layer: Layer, folder: Option<&Path>) -> Self {
        let ToolFile { name, form, file, text } = found;
        let shown = match (folder, form) {
            (Some(folder), _) => folder.join(&file).display().to_string(),
            (None, Form::BuiltIn | Form::Mcp) => file,
            (None, Form::Yaml | Form::Module) => format!("tools/{file}"),
        };
        Self {
            name,
            layer,
            file: shown,
            folder: folder.map(Path::to_owned),
            form,
            digest: blake3::hash(text.as_bytes()),
            text,
            definition: OnceLock::new(),
            from_server: None,
            switch: Switch::On,
            replaces_shipped: false,
            // Whoever has not been looked for in the layers is nobody's.
            waives: Some(Waiver::Stranger),
        }
    }

    /// A tool that a server offers. `again` says how many of the name there are already.
    fn of_server(
        name: ToolName,
        layer: Layer,
        it: &Remembered,
        offered: &Offered,
        again: usize,
    ) -> Self {
        let nth = if again == 0 { String::new() } else { format!("#{}", again + 1) };
        let text = offered.text();
        Self {
            name,
            layer,
            file: format!("mcp:{}/{}{nth}", it.name, offered.name),
            folder: None,
            form: Form::Mcp,
            digest: blake3::hash(text.as_bytes()),
            text,
            definition: OnceLock::new(),
            from_server: Some(Arc::new(FromServer {
                name: it.name.clone(),
                server: it.server.clone(),
                identity: it.identity.clone(),
                offered: offered.clone(),
            })),
            switch: Switch::On,
            replaces_shipped: false,
            waives: None,
        }
    }

    /// Reads the definition, unless that is done.
    fn read_now(&self) {
        let _ = self.parsed();
    }

    fn parsed(&self) -> Option<&Result<Definition, Vec<Finding>>> {
        let parse = || match (self.built_in(), &self.from_server) {
            (Some(tool), _) => read::built_in(tool),
            (None, Some(from)) => mcp::read(from, &self.file, &self.text, &self.name),
            (None, None) => read::parse(&self.file, &self.text, &self.name).map(|it| self.held(it)),
        };
        (self.form != Form::Module).then(|| self.definition.get_or_init(parse))
    }

    /// A definition of this tool, without what a tool from there may not say of itself.
    #[must_use]
    pub fn held(&self, definition: Definition) -> Definition {
        match self.waives {
            Some(why) => definition.without_waiver(why),
            None => definition,
        }
    }

    /// The function of this program that it is.
    #[must_use]
    pub fn built_in(&self) -> Option<&'static BuiltIn> {
        (self.form == Form::BuiltIn).then(|| builtin::find(self.name.as_str())).flatten()
    }

    /// What a tool says, unless it is a module; `None` for a module, which is asked by running it.
    ///
    /// # Errors
    /// It is broken.
    pub fn definition(&self) -> Result<Option<&Definition>, ToolError> {
        match self.parsed() {
            None => Ok(None),
            Some(Ok(definition)) => Ok(Some(definition)),
            Some(Err(findings)) => Err(self.broken(findings)),
        }
    }

    /// The same, to keep.
    ///
    /// # Errors
    /// It is broken.
    pub fn into_definition(self) -> Result<Option<Definition>, ToolError> {
        if self.parsed().is_none() {
            return Ok(None);
        }
        match self.definition.into_inner() {
            Some(Err(findings)) => Err(ToolError::Broken { name: self.name, findings }),
            Some(Ok(definition)) => Ok(Some(definition)),
            None => Ok(None),
        }
    }

    /// Where it comes from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::of(self.layer, self.form)
    }

    /// Whether it is switched on.
    ///
    /// # Errors
    /// It is not.
    pub fn switched_on(&self) -> Result<(), ToolError> {
        match &self.switch {
            Switch::On => Ok(()),
            Switch::Example => Err(ToolError::Example { name: self.name.clone() }),
            Switch::Off(source) => {
                Err(ToolError::Off { name: self.name.clone(), by: source.clone() })
            }
        }
    }

    /// What is wrong with it.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self.parsed() {
            Some(Err(findings)) => findings,
            Some(Ok(_)) | None => &[],
        }
    }

    fn broken(&self, findings: &[Finding]) -> ToolError {
        ToolError::Broken { name: self.name.clone(), findings: findings.to_vec() }
    }
}

impl Library {
    /// Looks in every place that the configuration lets be looked in: what we ship, the team's folder, the user's, the
    /// workspace's, and the named ones.
    #[must_use]
    pub fn find(places: &Places, given: &[PathBuf], config: &Config) -> Self {
        Self::of(places, given, config, |_| true)
    }

    /// The same for who wants one tool. A server is looked at only if the tool could be its own, unless there is none.
    #[must_use]
    pub fn find_for(places: &Places, given: &[PathBuf], config: &Config, name: &ToolName) -> Self {
        let of = name.as_str().split_once(BETWEEN).map_or("", |(server, _)| server);
        let library = Self::of(places, given, config, |server| server.as_str() == of);
        match library.tool(name) {
            // After a typing error, the known tools are listed.
            Err(ToolError::Unknown { .. }) => Self::find(places, given, config),
            _ => library,
        }
    }

    fn of(
        places: &Places,
        given: &[PathBuf],
        config: &Config,
        server: impl Fn(&ServerName) -> bool,
    ) -> Self {
        let mut library = Self::default();
        library.add_shipped();
        let mut seen: Vec<Identity> = Vec::new();
        if let Some(folder) = config.team_folder() {
            library.add_folder(Layer::Managed, folder, "", &mut seen);
        }
        let local = !config.is_on(Flag::DisableLocalTools);
        let found = local && config.is_on(Flag::AutoLoadCustomTools);
        let switch = if local { Flag::AutoLoadCustomTools } else { Flag::DisableLocalTools };
        library.unloaded = (!found).then(|| (switch.row().key, config.flag(switch).source.clone()));
        if let Some(base) = places.user.as_ref().filter(|_| found) {
            library.add_folder(Layer::User, base, "runner/tools", &mut seen);
        }
        if let Some(base) = places.workspace.as_ref().filter(|_| found) {
            library.add_folder(Layer::Project, base, ".runner/tools", &mut seen);
        }
        library.add_servers(places, config, server);
        for folder in given {
            if local {
                library.add_folder(Layer::Given, folder, "", &mut seen);
            } else {
                library.given.push(super::folder::not_local(folder));
            }
        }
        library.settle(config);
        library
    }

    /// One file, named by the caller.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        let mut library = Self::default();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default();
        match Folder::open(folder, "") {
            Ok(Some(open)) => {
                let outcome = open.tool(std::os::unix::ffi::OsStrExt::as_bytes(name), path);
                library.add(Layer::Given, folder, outcome);
            }
            Ok(None) => library.findings.push(super::folder::missing(path)),
            Err(finding) => library.findings.push(*finding),
        }
        library
    }

    /// Whether every folder that the caller named was looked into.
    ///
    /// # Errors
    /// One could not be.
    pub fn whole(&self) -> Result<(), ToolError> {
        match self.given.as_slice() {
            [] => Ok(()),
            findings => Err(ToolError::Folder { findings: findings.to_vec() }),
        }
    }

    /// The one tool of this name.
    ///
    /// # Errors
    /// There is none, it is broken, two have the name, or a folder that the caller named could not be looked into.
    pub fn tool(&self, name: &ToolName) -> Result<&Tool, ToolError> {
        self.whole()?;
        let mut named = self.tools.iter().filter(|tool| tool.name == *name);
        let broken: Vec<&Broken> =
            self.broken.iter().filter(|broken| broken.name.as_ref() == Some(name)).collect();
        let (first, second) = (named.next(), named.next());
        let places = || {
            let tools = self.tools.iter().filter(|tool| tool.name == *name).map(|tool| &tool.file);
            tools.chain(broken.iter().map(|broken| &broken.file)).cloned().collect()
        };
        match (first, second, broken.as_slice()) {
            (Some(tool), None, []) => Ok(tool),
            (None, None, [one]) => {
                Err(ToolError::Broken { name: name.clone(), findings: one.findings.clone() })
            }
            (None, None, []) => Err(self.unknown(name)),
            _ => Err(ToolError::Twice { name: name.clone(), places: places() }),
        }
    }

    /// Reads every definition now, on several processors: who lists tools needs them all. What cannot be read like
    /// this is read when it is asked for.
    pub fn read_all(&self) {
        let width = std::thread::available_parallelism().map_or(1, usize::from).min(READERS);
        let each = self.tools.len().div_ceil(width).max(FEW);
        std::thread::scope(|scope| {
            // The first part is this thread's own.
            for part in self.tools.chunks(each).skip(1) {
                let read = || part.iter().for_each(Tool::read_now);
                let reader = std::thread::Builder::new().stack_size(READER_STACK);
                drop(reader.spawn_scoped(scope, read));
            }
            self.tools.chunks(each).take(1).flatten().for_each(Tool::read_now);
        });
    }

    /// Whether another source has the same name.
    #[must_use]
    pub fn is_twice(&self, name: &ToolName) -> bool {
        matches!(self.tool(name), Err(ToolError::Twice { .. }))
    }

    /// Why there is no tool of this name: none has it, or the server that it begins with is not known as it is now.
    fn unknown(&self, name: &ToolName) -> ToolError {
        let server = name.as_str().split_once(BETWEEN).map(|(server, _)| server);
        let unasked = self.unasked.iter().find(|it| Some(it.server.as_str()) == server);
        let (name, server) = (name.clone(), server.unwrap_or_default().to_owned());
        match unasked.map(|unasked| unasked.why) {
            Some(NotAsked::Changed) => ToolError::ServerChanged { name, server },
            Some(NotAsked::Never) => ToolError::ServerNeverAsked { name, server },
            None => ToolError::Unknown {
                name,
                known: self.tools.iter().map(|tool| tool.name.to_string()).collect(),
                findings: self.findings.clone(),
                unloaded: self.unloaded.clone().map(Box::new),
            },
        }
    }

    /// What servers offered when they were asked. Nothing is started for that.
    fn add_servers(
        &mut self,
        places: &Places,
        config: &Config,
        wanted: impl Fn(&ServerName) -> bool,
    ) {
        for it in remembered(places, config, wanted) {
            let layer = match it.source.layer {
                config::Layer::Managed => Layer::Managed,
                config::Layer::User | config::Layer::Project | config::Layer::Default => {
                    Layer::User
                }
            };
            if let Some(unasked) = Unasked::of(&it) {
                self.unasked.push(unasked);
            }
            for (at, offered) in it.taken().enumerate() {
                match mcp::name(&it.name, &offered.name) {
                    Some(name) => {
                        let again = self.tools.iter().filter(|tool| tool.name == name).count();
                        let tool = Tool::of_server(name, layer, &it, offered, again);
                        self.tools.push(tool);
                    }
                    None => {
                        let file = format!("mcp:{}/#{}", it.name, at + 1);
                        let findings = vec![mcp::bad_name(&it.name, &offered.name, &file)];
                        let origin = Origin::Mcp;
                        self.broken.push(Broken { name: None, layer, origin, file, findings });
                    }
                }
            }
        }
    }

    fn add_shipped(&mut self) {
        let built_in = builtin::ALL.iter().filter_map(super::folder::built_in);
        self.tools.extend(built_in.map(|it| Tool::new(it, Layer::Shipped, None)));
        for (file, text) in shipped::TOOLS {
            if let Some(found) = super::folder::shipped(file, text) {
                self.tools.push(Tool::new(found, Layer::Shipped, None));
            }
        }
    }

    fn add_folder(&mut self, layer: Layer, base: &Path, below: &str, seen: &mut Vec<Identity>) {
        let shown = if below.is_empty() { base.to_owned() } else { base.join(below) };
        let folder = match Folder::open(base, below) {
            Ok(Some(folder)) => folder,
            Ok(None) if layer == Layer::Given => {
                self.given.push(super::folder::no_folder(&shown));
                return;
            }
            Ok(None) => return,
            Err(finding) => return self.wrong(layer, *finding),
        };
        // The same folder by another way is no second source.
        if seen.contains(&folder.identity) {
            return;
        }
        seen.push(folder.identity);
        match folder.read(&shown) {
            Ok(found) => found.into_iter().for_each(|it| self.add(layer, &shown, it)),
            Err(finding) => self.wrong(layer, *finding),
        }
    }

    fn wrong(&mut self, layer: Layer, finding: Finding) {
        let list = if layer == Layer::Given { &mut self.given } else { &mut self.findings };
        list.push(finding);
    }

    fn add(&mut self, layer: Layer, folder: &Path, outcome: Outcome) {
        match outcome {
            Ok(found) => self.tools.push(Tool::new(found, layer, Some(folder))),
            Err(failed) => {
                let (name, finding) = *failed;
                let file = finding.file.clone();
                // A file is of the one form or the other; neither makes it another source.
                let origin = Origin::of(layer, Form::Yaml);
                self.broken.push(Broken { name, layer, origin, file, findings: vec![finding] });
            }
        }
    }

    /// An example that is off gives way; the rest is put in order.
    fn settle(&mut self, config: &Config) {
        for tool in &mut self.tools {
            tool.switch = Switch::of(&tool.name, tool.layer, tool.form, config);
            tool.waives = waives(tool.layer, config.auto_accept(&tool.name));
        }
        let own = |tool: &Tool| tool.layer != Layer::Shipped;
        let off = |tool: &Tool| !own(tool) && tool.switch != Switch::On;
        let shipped: Vec<ToolName> =
            self.tools.iter().filter(|tool| off(tool)).map(|tool| tool.name.clone()).collect();
        let mut taken: Vec<ToolName> = Vec::new();
        for tool in self.tools.iter_mut().filter(|tool| own(tool)) {
            tool.replaces_shipped = shipped.contains(&tool.name);
            taken.push(tool.name.clone());
        }
        taken.extend(self.broken.iter().filter_map(|broken| broken.name.clone()));
        self.tools.retain(|tool| !off(tool) || !taken.contains(&tool.name));
        self.tools.sort_by(|a, b| (&a.name, a.layer).cmp(&(&b.name, b.layer)));
        self.broken.sort_by(|a, b| a.file.cmp(&b.file));
    }
}

/// Why the `autoAccept: true` of a tool of this layer does not count, if it does not.
fn waives(layer: Layer, said: Option<bool>) -> Option<Waiver> {
    match (said, layer) {
        (Some(true), _) | (None, Layer::Shipped | Layer::Managed | Layer::User) => None,
        (Some(false), _) => Some(Waiver::Configured),
        (None, Layer::Project | Layer::Given) => Some(Waiver::Stranger),
    }
}

impl Unasked {
    fn of(it: &Remembered) -> Option<Self> {
        let name = &it.name;
        let (why, code, message) = match it.known {
            Known::Asked(_) => return None,
            Known::Never => (
                NotAsked::Never,
                "mcp_never_asked",
                format!("the server {name} was never asked what it offers"),
            ),
            Known::Changed => (
                NotAsked::Changed,
                "mcp_changed",
                format!(
                    "the server {name} is not what was asked any more, so its tools are not used"
                ),
            ),
        };
        let finding = Finding {
            code,
            file: it.source.file.clone().unwrap_or_default(),
            at: At { line: it.source.line.unwrap_or_default(), column: 1, width: 1 },
            message,
            help: Some(format!("ask it: runner mcp refresh {name}")),
            excerpt: String::new(),
        };
        Some(Self { server: name.clone(), why, finding })
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
