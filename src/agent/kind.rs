//! The agents, and what each of them can do.

use serde::{Deserialize, Serialize};

/// A coding agent whose shell calls can be led through us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// GitHub Copilot CLI.
    Copilot,
    /// OpenCode.
    OpenCode,
    /// Qwen Code.
    Qwen,
    /// Cursor.
    Cursor,
}

/// Which of an agent's configurations is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The user's own.
    #[default]
    User,
    /// That of one workspace.
    Project,
    /// That of the machine.
    Managed,
}

impl Layer {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Managed => "managed",
        }
    }
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::Qwen,
        Self::Cursor,
    ];

    /// Its word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
            Self::Cursor => "cursor",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::OpenCode => "OpenCode",
            Self::Qwen => "Qwen Code",
            Self::Cursor => "Cursor",
        }
    }

    /// The agent of a word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.word() == word)
    }

    /// The tool of the agent that runs a shell line.
    #[must_use]
    pub const fn shell_tools(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["Bash"],
            Self::Codex => &["Bash", "shell", "local_shell", "exec_command", "shell_command"],
            Self::Gemini | Self::Qwen => &["run_shell_command"],
            Self::Copilot | Self::OpenCode => &["bash"],
            Self::Cursor => &["Shell"],
        }
    }

    /// Whether its hook can rewrite a command. Without that, a hook can only refuse.
    #[must_use]
    pub const fn rewrites(self) -> bool {
        !matches!(self, Self::Qwen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_found_by_its_word() {
        for agent in Agent::ALL {
            assert_eq!(Agent::named(agent.word()), Some(agent));
        }
        assert_eq!(Agent::named("Claude"), None);
    }
}
