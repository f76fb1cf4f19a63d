//! One file, strictly: text to the values that it may set, all findings at once.

use std::path::PathBuf;

use runner_policy::finding::{At, Finding, Report};
use runner_policy::yaml::{self, Entry, Node};

use super::figure::Figure;
use super::flag::{Flag, Project};
use super::key::{
    self, APPROVAL_CLIENTS, AUTO_ACCEPT, CEILING, ENGINE, Found, Leaf, OF_A_TOOL, POLICY,
    SCAN_SKIP, TEAM_FOLDER, TOOLS, WORKSPACES,
};
use super::layer::Layer;
use super::server::{self, MCP, OfServer, ServerName};
use crate::engine;
use crate::ids::ToolName;

/// Longest name of a folder.
const MAX_FOLDER: usize = 1024;

/// Longest name of a client.
const MAX_CLIENT: usize = 32;

/// What one file says. Only [`read`] makes one, so all of it may be said in its layer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub(super) figures: Vec<(Figure, u64, At)>,
    pub(super) flags: Vec<(Flag, bool, At)>,
    pub(super) scan_skip: Option<(Vec<String>, At)>,
    pub(super) approval_clients: Option<(Vec<String>, At)>,
    pub(super) team_folder: Option<(PathBuf, At)>,
    pub(super) policy: Option<(String, At)>,
    pub(super) engine: Option<(engine::Choice, At)>,
    pub(super) workspaces: Vec<(PathBuf, String, At)>,
    pub(super) ceilings: Vec<(Figure, u64, At)>,
    pub(super) tools: Vec<(ToolName, OfTool)>,
    pub(super) servers: Vec<(ServerName, OfServer)>,
}

/// What it says of one tool.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OfTool {
    pub enabled: Option<(bool, At)>,
    pub auto_accept: Option<(bool, At)>,
    pub figures: Vec<(Figure, u64, At)>,
}

/// Reads a file of a layer.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(layer: Layer, file: &str, text: &str) -> Result<Read, Vec<Finding>> {
    let blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let mut read = Read::default();
    // A file that says nothing is no error: its author may have put everything into comments.
    if text.lines().all(blank) {
        return Ok(read);
    }
    let mut reader = Reader { layer, report: Report::new(file, text) };
    if let Some(root) = yaml::read(text, &mut reader.report) {
        reader.section("", &root, &mut read);
    }
    if reader.report.is_clean() { Ok(read) } else { Err(reader.report.finish()) }
}

struct Reader<'t> {
    layer: Layer,
    report: Report<'t>,
}

impl Reader<'_> {
    fn section(&mut self, section: &str, node: &Node, read: &mut Read) {
        for entry in self.report.map(node).unwrap_or_default() {
            let path = joined(section, &entry.key);
            match (key::find(&path), path.as_str()) {
                (Found::Leaf(leaf), _) => self.leaf(leaf, entry, read),
                (Found::Section, _) => self.section(&path, &entry.value, read),
                (Found::Unknown, WORKSPACES) => self.workspaces(entry, read),
                (Found::Unknown, TOOLS) => self.tools(&entry.value, read),
                (Found::Unknown, MCP) => {
                    read.servers.extend(server::read(self.layer, &entry.value, &mut self.report));
                }
                (Found::Unknown, CEILING) => self.ceiling(entry, read),
                (Found::Unknown, _) => self.unknown(section, entry),
            }
        }
    }

    fn unknown(&mut self, section: &str, entry: &Entry) {
        let elsewhere = key::leaves()
            .map(|(path, _)| path)
            .find(|path| path.rsplit('.').next() == Some(entry.key.as_str()) && path.contains('.'));
        match elsewhere {
            Some(path) if section.is_empty() => self.report.add(
                "unknown_key",
                entry.at,
                format!("`{}` is not a key at the top of the file", entry.key),
                format!("write `{}: {{ {}: … }}`", head(path), tail(path)),
            ),
            _ => self.report.unknown_key(entry, &key::words(section)),
        }
    }

    fn leaf(&mut self, leaf: Leaf, entry: &Entry, read: &mut Read) {
        match leaf {
            Leaf::Figure(figure) => read.figures.extend(self.figure(figure, entry)),
            Leaf::Flag(flag) => read.flags.extend(self.flag(flag, entry)),
            Leaf::ScanSkip => read.scan_skip = self.scan_skip(entry),
            Leaf::ApprovalClients => read.approval_clients = self.approval_clients(entry),
            Leaf::TeamFolder => read.team_folder = self.team_folder(entry),
            Leaf::Policy => read.policy = self.policy(entry),
            Leaf::Engine => read.engine = self.engine(entry),
        }
    }

    /// A figure, which a project may only make tighter than it is by default.
    fn figure(&mut self, figure: Figure, entry: &Entry) -> Option<(Figure, u64, At)> {
        let row = figure.row();
        self.allowed(row.from, row.key, KEPT_FOR_ALL, entry)?;
        let text = self.report.figure(&entry.value)?;
        let value = match row.unit.parse(text) {
            Ok(value) => value,
            Err(form) => {
                let message = format!("`{text}` is not a value of `{}`", entry.key);
                self.report.add("bad_figure", entry.value.at, message, format!("write {form}"));
                return None;
            }
        };
        if self.layer == Layer::Project && figure.looser(value, row.default) {
            let default = row.unit.show(row.default);
            let message = format!(
                "a project can only tighten: `{text}` leaves more room than {default}, the default"
            );
            self.report.add("project_loosens", entry.value.at, message, OWN_FILE.to_owned());
            return None;
        }
        Some((figure, value, entry.at))
    }

    fn flag(&mut self, flag: Flag, entry: &Entry) -> Option<(Flag, bool, At)> {
        let row = flag.row();
        self.allowed(row.from, row.key, FOR_EVERYBODY, entry)?;
        let value = self.report.flag(&entry.value)?;
        if self.layer == Layer::Project && row.project == Project::Only(!value) {
            let message = format!("a project can only write `{}: {}`", entry.key, !value);
            self.report.add("project_loosens", entry.value.at, message, OWN_FILE.to_owned());
            return None;
        }
        Some((flag, value, entry.at))
    }

    fn scan_skip(&mut self, entry: &Entry) -> Option<(Vec<String>, At)> {
        let why = "a project could hide its files from the search for denied ones";
        self.allowed(Layer::User, SCAN_SKIP, why, entry)?;
        let mut folders = Vec::new();
        for (text, at) in self.report.texts(&entry.value)? {
            let trimmed = text.strip_suffix('/').unwrap_or(text);
            let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
            if trimmed.split('/').all(plain) && trimmed.len() <= MAX_FOLDER {
                folders.push(trimmed.to_owned());
            } else {
                let message = format!("`{text}` is not the folder of a workspace");
                let help = "write its path from the workspace, such as `third_party/data`";
                self.report.add("bad_folder", at, message, help.to_owned());
            }
        }
        Some((folders, entry.at))
    }

    fn approval_clients(&mut self, entry: &Entry) -> Option<(Vec<String>, At)> {
        let why = "a project could let its own clients answer for you";
        self.allowed(Layer::User, APPROVAL_CLIENTS, why, entry)?;
        let mut names = Vec::new();
        for (text, at) in self.report.texts(&entry.value)? {
            let known = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
            };
            if !text.is_empty() && text.len() <= MAX_CLIENT && text.bytes().all(known) {
                names.push(text.to_owned());
            } else {
                let message = format!("`{text}` is no client of the MCP server");
                let help = "write `stdio`, `socket`, or the name of a token";
                self.report.add("bad_name", at, message, help.to_owned());
            }
        }
        Some((names, entry.at))
    }

    fn team_folder(&mut self, entry: &Entry) -> Option<(PathBuf, At)> {
        self.allowed(Layer::Managed, TEAM_FOLDER, FOR_EVERYBODY, entry)?;
        let text = self.report.text(&entry.value)?.to_owned();
        Some((self.absolute(&text, entry.value.at, "/srv/tools")?, entry.at))
    }

    fn absolute(&mut self, text: &str, at: At, such_as: &str) -> Option<PathBuf> {
        let path = PathBuf::from(text);
        if path.is_absolute() && text.len() <= MAX_FOLDER && !text.contains('\0') {
            return Some(path);
        }
        let help = format!("write its whole path, such as `{such_as}`");
        self.report.add("bad_folder", at, format!("`{text}` is not an absolute path"), help);
        None
    }

    fn policy(&mut self, entry: &Entry) -> Option<(String, At)> {
        Some((server::policy(&entry.value, &mut self.report)?, entry.at))
    }

    fn engine(&mut self, entry: &Entry) -> Option<(engine::Choice, At)> {
        let why = "a project could choose what is weaker on the machine at hand";
        self.allowed(Layer::User, ENGINE, why, entry)?;
        let word = self.report.text(&entry.value)?;
        match word.parse() {
            Ok(choice) => Some((choice, entry.at)),
            Err(_) => {
                let words = engine::Choice::WORDS;
                self.report.unknown_word("engine", word, entry.value.at, &words);
                None
            }
        }
    }

    /// The default policy of single workspaces, each at or below a folder.
    fn workspaces(&mut self, entry: &Entry, read: &mut Read) {
        if self.allowed(Layer::Managed, WORKSPACES, FOR_EVERYBODY, entry).is_none() {
            return;
        }
        for workspace in self.report.map(&entry.value).unwrap_or_default() {
            let folder = self.absolute(&workspace.key, workspace.at, "/srv/payments");
            for entry in self.report.keys(&workspace.value, &[POLICY]).unwrap_or_default() {
                let said = self.policy(entry);
                if let Some((folder, (name, at))) = folder.clone().zip(said) {
                    read.workspaces.push((folder, name, at));
                }
            }
        }
    }

    fn ceiling(&mut self, entry: &Entry, read: &mut Read) {
        if self.allowed(Layer::Managed, CEILING, FOR_EVERYBODY, entry).is_some() {
            self.bounds("", &entry.value, read);
        }
    }

    /// Figures again, below `ceiling`.
    fn bounds(&mut self, section: &str, node: &Node, read: &mut Read) {
        for entry in self.report.map(node).unwrap_or_default() {
            let path = joined(section, &entry.key);
            match key::find(&path) {
                Found::Leaf(Leaf::Figure(figure)) => {
                    read.ceilings.extend(self.figure(figure, entry))
                }
                Found::Section => self.bounds(&path, &entry.value, read),
                Found::Leaf(_) => self.report.add(
                    "no_ceiling",
                    entry.at,
                    format!("`{path}` is not a number, so it can have no ceiling"),
                    format!("set `{path}` itself: the managed layer wins"),
                ),
                Found::Unknown => self.report.unknown_key(entry, &key::words(section)),
            }
        }
    }

    fn tools(&mut self, node: &Node, read: &mut Read) {
        for entry in self.report.map(node).unwrap_or_default() {
            match entry.key.parse::<ToolName>() {
                Ok(name) => {
                    let said = self.tool(&name, &entry.value);
                    read.tools.push((name, said));
                }
                Err(error) => self.report.add("bad_name", entry.at, error.to_string(), None),
            }
        }
    }

    fn tool(&mut self, name: &ToolName, node: &Node) -> OfTool {
        let mut said = OfTool::default();
        let known: Vec<&'static str> = ["enabled", AUTO_ACCEPT]
            .into_iter()
            .chain(OF_A_TOOL.iter().map(|(word, _)| *word))
            .collect();
        for entry in self.report.keys(node, &known).unwrap_or_default() {
            if let Some((_, figure)) = OF_A_TOOL.iter().find(|(word, _)| *word == entry.key) {
                said.figures.extend(self.figure(*figure, entry));
            } else if entry.key == "enabled" {
                said.enabled = self.enabled(name, entry);
            } else if entry.key == AUTO_ACCEPT {
                said.auto_accept = self.auto_accept(entry);
            }
        }
        said
    }

    fn enabled(&mut self, name: &ToolName, entry: &Entry) -> Option<(bool, At)> {
        let value = self.report.flag(&entry.value)?;
        if value && self.layer == Layer::Project {
            self.report.add(
                "project_loosens",
                entry.value.at,
                "a project can only switch tools off",
                format!("to use it, switch it on for yourself: runner tool enable {name}"),
            );
            return None;
        }
        Some((value, entry.at))
    }

    fn auto_accept(&mut self, entry: &Entry) -> Option<(bool, At)> {
        self.allowed(Layer::User, "tools.NAME.autoAccept", ITSELF, entry)?;
        Some((self.report.flag(&entry.value)?, entry.at))
    }

    /// Whether this layer may set a key at all.
    fn allowed(&mut self, from: Layer, path: &str, why: &str, entry: &Entry) -> Option<()> {
        if self.layer >= from {
            return Some(());
        }
        let message =
            format!("`{path}` cannot be set in the {} configuration: {why}", self.layer.word());
        let help = match from {
            Layer::Managed => "root sets it in /etc/runner/config.yml".to_owned(),
            Layer::User | Layer::Project | Layer::Default => OWN_FILE.to_owned(),
        };
        self.report.add("wrong_layer", entry.at, message, help);
        None
    }
}

const OWN_FILE: &str = "set it in your own configuration; `runner config path` says where that is";
const KEPT_FOR_ALL: &str =
    "a project could take away what its tools, and those of others, can be undone from";
const ITSELF: &str = "a project could let its own tools run without anybody's approval";
const FOR_EVERYBODY: &str = "it binds everybody on this machine";

fn joined(section: &str, word: &str) -> String {
    if section.is_empty() { word.to_owned() } else { format!("{section}.{word}") }
}

fn head(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(head, _)| head)
}

fn tail(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, tail)| tail)
}
