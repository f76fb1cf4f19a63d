//! Git's configuration files: what they say, and which changes to them cannot make git run or
//! follow anything.
//!
//! Duty: parse the text as git does, compare two versions, and name the files of a workspace that a
//! configuration leads git to. Non-goals: reading files. Trust boundary: the new text is the
//! adversary's. A change is harmless only if both texts are written in the plain form that git
//! itself writes, so that no reader can disagree about them, and if every difference is a key of a
//! short closed list.

/// Longest configuration that is understood.
pub const MAX_BYTES: usize = 1 << 20;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Lower case.
    pub section: String,
    /// As written.
    pub subsection: Option<String>,
    /// Lower case.
    pub name: String,
    /// `None` for a name without `=`, which means true.
    pub value: Option<String>,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As git writes it.
    Plain,
    /// With something that git accepts and does not write.
    Odd,
}

/// A parsed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// In order.
    pub settings: Vec<Setting>,
    form: Form,
}

/// Parses a configuration. `None` where git would stop with an error, and for what is not text.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Config> {
    if bytes.len() > MAX_BYTES || bytes.contains(&0) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let mut form = Form::Plain;
    let stripped = text.strip_prefix('\u{feff}').unwrap_or(text);
    let control = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{feff}';
    if text.chars().any(control) {
        form = Form::Odd;
    }
    // Git drops a carriage return before a line feed.
    let mut parser = Parser { rest: &stripped.replace("\r\n", "\n"), form };
    let mut settings = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    let mut fresh = true;
    while let Some(c) = parser.next() {
        match c {
            '\n' => fresh = true,
            c if is_space(c) => {}
            '#' | ';' => {
                parser.line();
                fresh = true;
            }
            '[' => {
                section = Some(parser.header()?);
                fresh = false;
            }
            c if c.is_ascii_alphabetic() => {
                if !fresh {
                    parser.form = Form::Odd;
                }
                let (section, subsection) = section.clone()?;
                let (name, value) = parser.setting(c)?;
                settings.push(Setting { section, subsection, name, value });
                fresh = true;
            }
            _ => return None,
        }
    }
    Some(Config { settings, form: parser.form })
}

/// Git's notion of a blank.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

struct Parser<'t> {
    rest: &'t str,
    form: Form,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// The next character; the end counts as the end of a line.
    fn next_or_end(&mut self) -> char {
        self.next().unwrap_or('\n')
    }

    /// Skips the rest of a line.
    fn line(&mut self) {
        while self.next_or_end() != '\n' {}
    }

    /// `section]` or `section "subsection"]`.
    fn header(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                ']' => {
                    if let Some((section, sub)) = name.split_once('.') {
                        // `[section.sub]`: an old form, whose subsection is lower case.
                        self.form = Form::Odd;
                        return Some((section.to_owned(), Some(sub.to_owned())));
                    }
                    if name.is_empty() {
                        self.form = Form::Odd;
                    }
                    return Some((name, None));
                }
                '\n' => return None,
                c if is_space(c) => break,
                c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => {
                    name.push(c.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
        loop {
            match self.next()? {
                '"' => break,
                '\n' => return None,
                c if is_space(c) => self.form = Form::Odd,
                _ => return None,
            }
        }
        let mut subsection = String::new();
        loop {
            match self.next()? {
                '"' => break,
                '\n' => return None,
                '\\' => match self.next()? {
                    '\n' => return None,
                    c => subsection.push(c),
                },
                c => subsection.push(c),
            }
        }
        if self.next()? != ']' {
            return None;
        }
        if let Some((section, more)) = name.clone().split_once('.') {
            self.form = Form::Odd;
            return Some((section.to_owned(), Some(format!("{more}.{subsection}"))));
        }
        Some((name, Some(subsection)))
    }

    /// A name that begins with `first`, and its value.
    fn setting(&mut self, first: char) -> Option<(String, Option<String>)> {
        let mut name = String::from(first.to_ascii_lowercase());
        let mut c = self.next_or_end();
        while c.is_ascii_alphanumeric() || c == '-' {
            name.push(c.to_ascii_lowercase());
            c = self.next_or_end();
        }
        while matches!(c, ' ' | '\t') {
            c = self.next_or_end();
        }
        match c {
            '\n' => Some((name, None)),
            '=' => Some((name, Some(self.value()?))),
            _ => None,
        }
    }

    /// A value to the end of its last line.
    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut kept = 0;
        let mut quoted = false;
        loop {
            match self.next_or_end() {
                '\n' if quoted => return None,
                '\n' => break,
                c if is_space(c) && !quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                ';' | '#' if !quoted => {
                    self.form = Form::Odd;
                    self.line();
                    break;
                }
                '\\' => match self.next_or_end() {
                    '\n' => {
                        self.form = Form::Odd;
                        // The end of the text after a backslash ends the value.
                        if self.rest.is_empty() {
                            break;
                        }
                        continue;
                    }
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    _ => return None,
                },
                '"' => {
                    quoted = !quoted;
                    kept = kept.max(value.len());
                    continue;
                }
                c => value.push(c),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

/// Whether the change from one configuration to another cannot make git run or follow anything.
///
/// May differ: `branch.*.remote` (a remote that the old text has, or `.`), `branch.*.merge` (a
/// ref), `branch.*.rebase`, `branch.*.description`, `user.name`, `user.email`. Everything else must
/// be there in the same order with the same values. `init.defaultBranch` is not in the list: it
/// means nothing in a repository that exists.
#[must_use]
pub fn is_harmless_change(old: &[u8], new: &[u8]) -> bool {
    let (Some(old), Some(new)) = (parse(old), parse(new)) else { return false };
    if old.form == Form::Odd || new.form == Form::Odd {
        return false;
    }
    fn rest(config: &Config) -> impl Iterator<Item = &Setting> {
        config.settings.iter().filter(|setting| !may_differ(setting))
    }
    rest(&old).eq(rest(&new))
        && new
            .settings
            .iter()
            .filter(|setting| may_differ(setting) && !old.settings.contains(setting))
            .all(|setting| is_plain_value(setting, &old))
}

fn may_differ(setting: &Setting) -> bool {
    match (setting.section.as_str(), setting.subsection.as_deref()) {
        ("branch", Some(_)) => {
            matches!(setting.name.as_str(), "remote" | "merge" | "rebase" | "description")
        }
        ("user", None) => matches!(setting.name.as_str(), "name" | "email"),
        _ => false,
    }
}

/// Whether a new value of a key that may differ says no more than its key means.
fn is_plain_value(setting: &Setting, old: &Config) -> bool {
    let Some(value) = setting.value.as_deref() else { return setting.name == "rebase" };
    if value.chars().any(|c| c.is_control() && !(c == '\n' && setting.name == "description")) {
        return false;
    }
    match setting.name.as_str() {
        // Git takes any other value for a URL or a path.
        "remote" if setting.section == "branch" => value == "." || old.has_remote(value),
        "merge" => value.starts_with("refs/"),
        "rebase" => {
            matches!(value, "true" | "false" | "merges" | "m" | "interactive" | "i")
        }
        _ => true,
    }
}

impl Config {
    /// Where the working tree is (`core.worktree`), as it is written.
    #[must_use]
    pub fn worktree(&self) -> Option<&str> {
        let is = |setting: &&Setting| {
            setting.section == "core" && setting.subsection.is_none() && setting.name == "worktree"
        };
        self.settings.iter().rev().find(is)?.value.as_deref()
    }

    fn has_remote(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| {
            setting.section == "remote"
                && setting.name == "url"
                && setting.subsection.as_deref() == Some(name)
        })
    }

    /// Files that this configuration includes, as written.
    pub fn includes(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().filter_map(|setting| {
            let includes = match setting.section.as_str() {
                "include" => setting.subsection.is_none(),
                "includeif" => setting.subsection.is_some(),
                _ => false,
            };
            setting.value.as_deref().filter(|_| includes && setting.name == "path")
        })
    }

    /// Folders in which git looks for hooks, as written.
    pub fn hooks_paths(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().filter_map(|setting| {
            let is = setting.section == "core"
                && setting.subsection.is_none()
                && setting.name == "hookspath";
            setting.value.as_deref().filter(|_| is)
        })
    }

    /// Words of commands that git runs by this configuration, which could be paths.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.settings
            .iter()
            .filter(|setting| is_command(setting))
            .filter_map(|setting| setting.value.as_deref())
            .flat_map(|value| {
                value
                    .split(|c: char| is_space(c) || matches!(c, '"' | '\'' | ';' | '&' | '|' | '='))
            })
            .map(|word| {
                word.trim_start_matches(['!', '(', '{', '`']).trim_end_matches([')', '}', '`'])
            })
            .filter(|word| !word.is_empty() && !word.starts_with('-'))
    }
}

/// Whether the value of a setting is a command, or a file that names commands.
fn is_command(setting: &Setting) -> bool {
    let name = setting.name.as_str();
    match setting.section.as_str() {
        "core" => matches!(
            name,
            "fsmonitor"
                | "editor"
                | "pager"
                | "sshcommand"
                | "gitproxy"
                | "askpass"
                | "attributesfile"
                | "alternaterefscommand"
        ),
        "alias" => setting.value.as_deref().is_some_and(|value| value.starts_with('!')),
        "pager" | "filter" | "credential" | "hook" | "trailer" | "lfs" => true,
        "submodule" => name == "update",
        "imap" => name == "tunnel",
        "svn" => name == "authorsprog",
        "diff" => matches!(name, "external" | "command" | "textconv"),
        "merge" => name == "driver",
        "difftool" | "mergetool" | "guitool" | "tar" | "man" | "browser" => {
            matches!(name, "cmd" | "path" | "command")
        }
        "gpg" => matches!(name, "program" | "defaultkeycommand"),
        "sequence" | "interactive" | "sendemail" | "uploadpack" | "remote" | "receive" => {
            matches!(
                name,
                "editor"
                    | "difffilter"
                    | "sendmailcmd"
                    | "smtpserver"
                    | "tocmd"
                    | "cccmd"
                    | "headercmd"
                    | "packobjectshook"
                    | "uploadpack"
                    | "receivepack"
                    | "procreceiverefs"
            )
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "gitconfig_tests.rs"]
mod tests;
