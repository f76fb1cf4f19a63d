//! Why a tool cannot be used, or its arguments or result not taken.

use runner_policy::finding::{Finding, did_you_mean};

use super::describe::DescribeError;
use super::schema::Violation;
use crate::codes::Code;
use crate::config::Source;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::ids::ToolName;
use crate::text::counted;

/// A tool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No source has a tool of this name.
    #[error("there is no tool {name}")]
    Unknown {
        /// What was asked for.
        name: ToolName,
        /// What there is.
        known: Vec<String>,
        /// Folders that could not be looked into.
        findings: Vec<Finding>,
        /// The switch that keeps tools of the user and of the workspace from being found.
        unloaded: Option<Box<(&'static str, Source)>>,
    },
    /// It is of an MCP server that is not what was asked any more.
    #[error(
        "the MCP server {server} changed since it was asked what it offers, so tool {name} is \
         not used"
    )]
    ServerChanged {
        /// What was asked for.
        name: ToolName,
        /// The server.
        server: String,
    },
    /// It would be of an MCP server that was never asked what it offers.
    #[error("tool {name} is not known: the MCP server {server} was never asked what it offers")]
    ServerNeverAsked {
        /// What was asked for.
        name: ToolName,
        /// The server.
        server: String,
    },
    /// A folder that the caller named cannot be looked into.
    #[error("{}", folders(.findings))]
    Folder {
        /// Each of them.
        findings: Vec<Finding>,
    },
    /// Two sources have the name.
    #[error("{name} is the name of {} tools: {}", .places.len(), .places.join(" and "))]
    Twice {
        /// The name.
        name: ToolName,
        /// Both files.
        places: Vec<String>,
    },
    /// It is not a valid tool.
    // What is wrong is told by the findings, which stand beside this.
    #[error("tool {name} cannot be used ({})", counted(.findings.len(), "finding"))]
    Broken {
        /// Its name.
        name: ToolName,
        /// Everything that is wrong.
        findings: Vec<Finding>,
    },
    /// Its author switched it off.
    #[error("tool {name} is switched off in {file}")]
    Disabled {
        /// Its name.
        name: ToolName,
        /// Its file.
        file: String,
    },
    /// It is an example that was not switched on.
    #[error("tool {name} is an example that comes with runner, and is off")]
    Example {
        /// Its name.
        name: ToolName,
    },
    /// A configuration file switches it off.
    #[error("tool {name} is switched off by {}", place(.by))]
    Off {
        /// Its name.
        name: ToolName,
        /// Where that stands.
        by: Source,
    },
    /// It cannot be switched on or off.
    #[error("tool {name} cannot be switched: {why}")]
    NotSwitched {
        /// Its name.
        name: ToolName,
        /// Why.
        why: String,
    },
    /// What a module says of itself cannot be used.
    #[error("what tool {name} says of itself cannot be used: {error}")]
    Description {
        /// Its name.
        name: ToolName,
        /// Why.
        error: DescribeError,
    },
    /// The arguments are not those that it takes.
    #[error("these are not arguments of tool {name}:{}", lines(.violations))]
    Arguments {
        /// Its name.
        name: ToolName,
        /// Everything that does not fit.
        violations: Vec<Violation>,
    },
    /// It says that it cost what is no price.
    #[error("tool {name} reports the cost `{said}`, which is not a price")]
    Cost {
        /// Its name.
        name: ToolName,
        /// What it says.
        said: String,
    },
    /// Its result is not what it says it gives.
    #[error("the result of tool {name} is not what it says it returns:{}", lines(.violations))]
    Result {
        /// Its name.
        name: ToolName,
        /// Everything that does not fit.
        violations: Vec<Violation>,
    },
}

/// What is wrong with folders that `--tools` names, a line each.
fn folders(findings: &[Finding]) -> String {
    let each = findings.iter().map(|it| format!("--tools {}: {}", it.file, it.message));
    each.collect::<Vec<_>>().join("\n")
}

/// Where a setting stands.
fn place(source: &Source) -> String {
    let file = source.file.as_deref().unwrap_or_default();
    format!("{file}:{}", source.line.unwrap_or_default())
}

/// Each violation on a line of its own.
fn lines(violations: &[Violation]) -> String {
    violations.iter().map(|violation| format!("\n  {violation}")).collect()
}

impl Failure for ToolError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } => Code::ToolNotFound,
            Self::ServerChanged { .. } => Code::McpChanged,
            Self::ServerNeverAsked { .. } => Code::McpNeverAsked,
            Self::Folder { .. } => Code::ToolFolderInvalid,
            Self::Twice { .. } => Code::ToolNameTaken,
            Self::Broken { .. } => Code::ToolRefused,
            Self::Disabled { .. } | Self::Example { .. } | Self::Off { .. } => Code::ToolDisabled,
            Self::NotSwitched { .. } => Code::ToolEnforced,
            Self::Description { .. } => Code::ToolDescription,
            Self::Arguments { .. } => Code::InvalidArguments,
            Self::Cost { .. } => Code::InvalidCost,
            Self::Result { .. } => Code::InvalidResult,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Unknown { .. }
            | Self::ServerNeverAsked { .. }
            | Self::Folder { .. }
            | Self::Arguments { .. } => Kind::Usage,
            Self::ServerChanged { .. }
            | Self::Disabled { .. }
            | Self::Example { .. }
            | Self::Off { .. }
            | Self::NotSwitched { .. } => Kind::Denied,
            Self::Twice { .. }
            | Self::Broken { .. }
            | Self::Description { .. }
            | Self::Cost { .. }
            | Self::Result { .. } => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Unknown { .. }
            | Self::ServerChanged { .. }
            | Self::ServerNeverAsked { .. }
            | Self::Folder { .. }
            | Self::Arguments { .. }
            | Self::Example { .. }
            | Self::Twice { .. } => Fault::Usage,
            Self::Off { .. } | Self::NotSwitched { .. } => Fault::Configuration,
            Self::Broken { .. }
            | Self::Disabled { .. }
            | Self::Description { .. }
            | Self::Cost { .. }
            | Self::Result { .. } => Fault::Command,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { unloaded: Some(switch), .. } => {
                let (key, source) = switch.as_ref();
                let place = place(source);
                Some(format!(
                    "tools of the user and of the workspace are not looked for: `{key}` ({place})"
                ))
            }
            Self::Unknown { name, known, .. } => {
                Some(match did_you_mean(name.as_str(), known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean {near}? runner tool list shows all"),
                    None => "runner tool list shows all; runner tool new makes one".to_owned(),
                })
            }
            Self::ServerChanged { server, .. } => Some(format!(
                "look at what changed, then ask it again: runner mcp refresh {server}"
            )),
            Self::ServerNeverAsked { server, .. } => {
                Some(format!("ask it: runner mcp refresh {server}"))
            }
            Self::Folder { .. } => None,
            Self::Twice { .. } => Some("rename or remove one of them".to_owned()),
            Self::Broken { name, .. } => Some(format!("fix it, then: runner tool check {name}")),
            Self::Disabled { .. } => Some("write `enabled: true` in it".to_owned()),
            Self::Example { name } | Self::Off { name, .. } => {
                Some(format!("to use it: runner tool enable {name}"))
            }
            Self::NotSwitched { .. } => None,
            Self::Description { name, .. } => Some(format!("runner tool check {name} shows more")),
            Self::Arguments { name, .. } => {
                Some(format!("runner tool info {name} shows its schema"))
            }
            Self::Cost { .. } => {
                Some("`metadata.cost` of a result is US dollars, 0 or more".to_owned())
            }
            Self::Result { .. } => {
                Some("fix the tool's code, or the schema under `returns`".to_owned())
            }
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Unknown { findings, .. } | Self::Broken { findings, .. } => findings,
            Self::Description { error, .. } => error.findings(),
            Self::Folder { .. }
            | Self::ServerChanged { .. }
            | Self::ServerNeverAsked { .. }
            | Self::Twice { .. }
            | Self::Disabled { .. }
            | Self::Example { .. }
            | Self::Off { .. }
            | Self::NotSwitched { .. }
            | Self::Arguments { .. }
            | Self::Cost { .. }
            | Self::Result { .. } => &[],
        }
    }
}
