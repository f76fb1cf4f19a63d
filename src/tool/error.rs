//! Why a tool cannot be used, or its arguments or result not taken.

use std::fmt;

use runner_policy::finding::{Finding, did_you_mean};

use super::describe::DescribeError;
use super::schema::Violation;
use crate::config::Source;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::ids::ToolName;
use crate::text::counted;

/// A tool cannot be used.
#[derive(Debug)]
pub enum ToolError {
    /// No source has a tool of this name.
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
    ServerChanged {
        /// What was asked for.
        name: ToolName,
        /// The server.
        server: String,
    },
    /// It would be of an MCP server that was never asked what it offers.
    ServerNeverAsked {
        /// What was asked for.
        name: ToolName,
        /// The server.
        server: String,
    },
    /// A folder that the caller named cannot be looked into.
    Folder {
        /// Each of them.
        findings: Vec<Finding>,
    },
    /// Two sources have the name.
    Twice {
        /// The name.
        name: ToolName,
        /// Both files.
        places: Vec<String>,
    },
    /// It is not a valid tool.
    Broken {
        /// Its name.
        name: ToolName,
        /// Everything that is wrong.
        findings: Vec<Finding>,
    },
    /// Its author switched it off.
    Disabled {
        /// Its name.
        name: ToolName,
        /// Its file.
        file: String,
    },
    /// It is an example that nobody has switched on.
    Example {
        /// Its name.
        name: ToolName,
    },
    /// A configuration file switches it off.
    Off {
        /// Its name.
        name: ToolName,
        /// Where that stands.
        source: Source,
    },
    /// It cannot be switched on or off.
    NotSwitched {
        /// Its name.
        name: ToolName,
        /// Why.
        why: String,
    },
    /// What a module says of itself cannot be used.
    Description {
        /// Its name.
        name: ToolName,
        /// Why.
        error: DescribeError,
    },
    /// The arguments are not those that it takes.
    Arguments {
        /// Its name.
        name: ToolName,
        /// Everything that does not fit.
        violations: Vec<Violation>,
    },
    /// It says that it cost what is no price.
    Cost {
        /// Its name.
        name: ToolName,
        /// What it says.
        said: String,
    },
    /// Its result is not what it says it gives.
    Result {
        /// Its name.
        name: ToolName,
        /// Everything that does not fit.
        violations: Vec<Violation>,
    },
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, .. } => write!(f, "there is no tool {name}"),
            Self::ServerChanged { name, server } => write!(
                f,
                "the MCP server {server} changed since it was asked what it offers, so tool {name} is not used"
            ),
            Self::ServerNeverAsked { name, server } => write!(
                f,
                "tool {name} is not known: the MCP server {server} was never asked what it offers"
            ),
            Self::Folder { findings } => {
                let each = findings.iter().map(|it| format!("--tools {}: {}", it.file, it.message));
                f.write_str(&each.collect::<Vec<_>>().join("\n"))
            }
            Self::Twice { name, places } => {
                write!(f, "{name} is the name of {} tools: {}", places.len(), places.join(" and "))
            }
            // What is wrong is told by the findings, which stand beside this.
            Self::Broken { name, findings } => {
                write!(f, "tool {name} cannot be used ({})", counted(findings.len(), "finding"))
            }
            Self::Disabled { name, file } => write!(f, "tool {name} is switched off in {file}"),
            Self::Example { name } => {
                write!(f, "tool {name} is an example that comes with runner, and is off")
            }
            Self::Off { name, source } => {
                let file = source.file.as_deref().unwrap_or_default();
                let line = source.line.unwrap_or_default();
                write!(f, "tool {name} is switched off by {file}:{line}")
            }
            Self::NotSwitched { name, why } => {
                write!(f, "tool {name} cannot be switched: {why}")
            }
            Self::Description { name, error } => {
                write!(f, "what tool {name} says of itself cannot be used: {error}")
            }
            Self::Arguments { name, violations } => {
                write!(f, "these are not arguments of tool {name}:")?;
                violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
            }
            Self::Cost { name, said } => {
                write!(f, "tool {name} says that it cost `{said}`, which is no price")
            }
            Self::Result { name, violations } => {
                write!(f, "the result of tool {name} is not what it says it returns:")?;
                violations.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
            }
        }
    }
}

impl std::error::Error for ToolError {}

impl Failure for ToolError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "tool_not_found",
            Self::ServerChanged { .. } => "mcp_changed",
            Self::ServerNeverAsked { .. } => "mcp_never_asked",
            Self::Folder { .. } => "tool_folder_invalid",
            Self::Twice { .. } => "tool_name_taken",
            Self::Broken { .. } => "tool_refused",
            Self::Disabled { .. } | Self::Example { .. } | Self::Off { .. } => "tool_disabled",
            Self::NotSwitched { .. } => "tool_enforced",
            Self::Description { .. } => "tool_description",
            Self::Arguments { .. } => "invalid_arguments",
            Self::Cost { .. } => "invalid_cost",
            Self::Result { .. } => "invalid_result",
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
                let file = source.file.as_deref().unwrap_or_default();
                let place = format!("{file}:{}", source.line.unwrap_or_default());
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
            Self::Broken { name, .. } => Some(format!("mend it, then: runner tool check {name}")),
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
                Some("mend the tool's code, or the schema under `returns`".to_owned())
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
