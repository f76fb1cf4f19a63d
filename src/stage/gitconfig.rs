//! Git's configuration files: what they say, and which changes to them cannot make git run or
//! follow anything.
//!
//! Duty: parse the text as git does, compare two versions, and name the files of a workspace that a
//! configuration leads git to. Non-goals: reading files. Trust boundary: the new text is the
//! adversary's. A change is harmless only if both texts are written in the plain form that git
//! itself writes, so that no reader can disagree about them, and if every difference is a key of a
//! short closed list.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Longest configuration that is understood.
pub const MAX_BYTES: usize = 1 << 20;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Lower case.
    pub section: String,
    /// As written.
    pub subsection: Option<Vec<u8>>,
    /// Lower case.
    pub name: String,
    /// `None` for a name without `=`, which means true. Git takes it up to the first NUL, and so does
    /// this.
    pub value: Option<Vec<u8>>,
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

/// The mark of UTF-8 that git skips at the beginning.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Parses a configuration. Git reads bytes: a text in another encoding is a configuration too. `None`
/// where git would stop with an error, and for what is too long.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Config> {
    parse_with(bytes, Broken::Refused)
}

/// The same, for where a text may lead once it is mended: lines at which git stops are passed over.
#[must_use]
pub fn parse_broken(bytes: &[u8]) -> Option<Config> {
    parse_with(bytes, Broken::PassedOver)
}

/// What becomes of a line at which git stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    Refused,
    PassedOver,
}

fn parse_with(bytes: &[u8], broken: Broken) -> Option<Config> {
    if bytes.len() > MAX_BYTES {
        return None;
    }
    let control = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{feff}';
    let form = match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(control) => Form::Plain,
        _ => Form::Odd,
    };
    let rest = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let mut parser = Parser { rest, last: b'\n', form };
    let mut settings = Vec::new();
    let mut section = Section::default();
    let mut fresh = true;
    while let Some(c) = parser.next() {
        if parser.item(c, &mut section, &mut fresh, &mut settings).is_none() {
            if broken == Broken::Refused {
                return None;
            }
            if parser.last != b'\n' {
                parser.line();
            }
            fresh = true;
        }
    }
    Some(Config { settings, form: parser.form })
}

/// A section and its subsection. Git reads settings before the first section too.
type Section = (String, Option<Vec<u8>>);

/// Git's notion of a blank.
fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r')
}

struct Parser<'t> {
    rest: &'t [u8],
    /// What was read before it.
    last: u8,
    form: Form,
}

impl Parser<'_> {
    /// The next character. Git drops a carriage return before a line feed.
    fn next(&mut self) -> Option<u8> {
        if self.rest.starts_with(b"\r\n") {
            self.rest = &self.rest[1..];
        }
        let (first, rest) = self.rest.split_first()?;
        (self.rest, self.last) = (rest, *first);
        Some(*first)
    }

    /// What begins with `c`: a blank, a remark, a section or a setting. `fresh` says whether a line
    /// begins here.
    fn item(
        &mut self,
        c: u8,
        section: &mut Section,
        fresh: &mut bool,
        settings: &mut Vec<Setting>,
    ) -> Option<()> {
        match c {
            b'\n' => *fresh = true,
            c if is_space(c) => {}
            b'#' | b';' => {
                self.line();
                *fresh = true;
            }
            b'[' => {
                *section = self.header()?;
                *fresh = false;
            }
            c if c.is_ascii_alphabetic() => {
                let (section, subsection) = section.clone();
                if !*fresh || section.is_empty() {
                    self.form = Form::Odd;
                }
                let (name, value) = self.setting(c)?;
                settings.push(Setting { section, subsection, name, value });
                *fresh = true;
            }
            _ => return None,
        }
        Some(())
    }

    /// The next character; the end counts as the end of a line.
    fn next_or_end(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    /// Skips the rest of a line.
    fn line(&mut self) {
        while self.next_or_end() != b'\n' {}
    }

    /// `section]` or `section "subsection"]`.
    fn header(&mut self) -> Option<Section> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => {
                    if let Some((section, sub)) = name.split_once('.') {
                        // `[section.sub]`: an old form, whose subsection is lower case.
                        self.form = Form::Odd;
                        return Some((section.to_owned(), Some(sub.as_bytes().to_vec())));
                    }
                    return (!name.is_empty()).then_some((name, None));
                }
                b'\n' => return None,
                c if is_space(c) => break,
                c if c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.') => {
                    name.push(c.to_ascii_lowercase().into());
                }
                _ => return None,
            }
        }
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                c if is_space(c) => self.form = Form::Odd,
                _ => return None,
            }
        }
        let mut subsection = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                // Git would end the whole key at a NUL, and take the rest of it for another name.
                b'\n' | 0 => return None,
                b'\\' => match self.next()? {
                    b'\n' | 0 => return None,
                    c => subsection.push(c),
                },
                c => subsection.push(c),
            }
        }
        if self.next()? != b']' {
            return None;
        }
        if let Some((section, more)) = name.split_once('.') {
            self.form = Form::Odd;
            let subsection = [more.as_bytes(), b".", &subsection].concat();
            return Some((section.to_owned(), Some(subsection)));
        }
        Some((name, Some(subsection)))
    }

    /// A name that begins with `first`, and its value.
    fn setting(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::from(char::from(first.to_ascii_lowercase()));
        let mut c = self.next_or_end();
        while c.is_ascii_alphanumeric() || c == b'-' {
            name.push(c.to_ascii_lowercase().into());
            c = self.next_or_end();
        }
        while matches!(c, b' ' | b'\t') {
            c = self.next_or_end();
        }
        match c {
            b'\n' => Some((name, None)),
            b'=' => Some((name, Some(self.value()?))),
            _ => None,
        }
    }

    /// A value to the end of its last line.
    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let mut kept = 0;
        let mut quoted = false;
        loop {
            match self.next_or_end() {
                b'\n' if quoted => return None,
                b'\n' => break,
                c if is_space(c) && !quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                b';' | b'#' if !quoted => {
                    self.form = Form::Odd;
                    self.line();
                    break;
                }
                b'\\' => match self.next_or_end() {
                    b'\n' => {
                        self.form = Form::Odd;
                        // Blanks before a backslash stay.
                        kept = value.len();
                        // The end of the text after a backslash ends the value.
                        if self.rest.is_empty() {
                            if quoted {
                                return None;
                            }
                            break;
                        }
                        continue;
                    }
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    c @ (b'\\' | b'"') => value.push(c),
                    _ => return None,
                },
                b'"' => {
                    quoted = !quoted;
                    kept = kept.max(value.len());
                    continue;
                }
                c => value.push(c),
            }
            kept = value.len();
        }
        value.truncate(kept);
        if let Some(end) = value.iter().position(|c| *c == 0) {
            value.truncate(end);
        }
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
    let Ok(value) = std::str::from_utf8(value) else { return false };
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

impl Setting {
    /// Whether it is a key without a subsection.
    fn is(&self, section: &str, name: &str) -> bool {
        self.section == section && self.subsection.is_none() && self.name == name
    }

    fn text(&self) -> Option<&OsStr> {
        self.value.as_deref().map(OsStr::from_bytes)
    }
}

impl Config {
    /// A configuration that a caller gives in variables.
    #[must_use]
    pub fn given(settings: Vec<Setting>) -> Self {
        Self { settings, form: Form::Odd }
    }

    /// Where the working tree is (`core.worktree`), as it is written.
    #[must_use]
    pub fn worktree(&self) -> Option<&OsStr> {
        self.settings.iter().rev().find(|setting| setting.is("core", "worktree"))?.text()
    }

    fn has_remote(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| {
            setting.section == "remote"
                && setting.name == "url"
                && setting.subsection.as_deref() == Some(name.as_bytes())
        })
    }

    /// Files that this configuration includes, as written.
    pub fn includes(&self) -> impl Iterator<Item = &OsStr> {
        self.settings.iter().filter_map(|setting| {
            let includes = match setting.section.as_str() {
                "include" => setting.subsection.is_none(),
                "includeif" => setting.subsection.is_some(),
                _ => false,
            };
            setting.text().filter(|_| includes && setting.name == "path")
        })
    }

    /// Folders in which git looks for hooks, as written.
    pub fn hooks_paths(&self) -> impl Iterator<Item = &OsStr> {
        let is = |setting: &&Setting| setting.is("core", "hookspath");
        self.settings.iter().filter(is).filter_map(Setting::text)
    }

    /// Folders whose contents, with hooks, git copies into each new repository, as written.
    pub fn templates(&self) -> impl Iterator<Item = &OsStr> {
        let is = |setting: &&Setting| setting.is("init", "templatedir");
        self.settings.iter().filter(is).filter_map(Setting::text)
    }

    /// Words of commands that git runs by this configuration, which could be paths.
    pub fn commands(&self) -> impl Iterator<Item = &OsStr> {
        self.settings
            .iter()
            .filter(|setting| is_command(setting))
            .filter_map(|setting| setting.value.as_deref())
            .flat_map(words)
    }
}

/// The words of a command that could be paths.
fn words(command: &[u8]) -> impl Iterator<Item = &OsStr> {
    let between = |c: &u8| is_space(*c) || b"\"';&|=".contains(c);
    command
        .split(between)
        .map(|word| {
            let start = word.iter().position(|c| !b"!({`".contains(c)).unwrap_or(word.len());
            let end = word.iter().rposition(|c| !b")}`".contains(c)).map_or(start, |at| at + 1);
            &word[start..end.max(start)]
        })
        .filter(|word| !word.is_empty() && !word.starts_with(b"-"))
        .map(OsStr::from_bytes)
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
        "alias" => setting.value.as_deref().is_some_and(|value| value.starts_with(b"!")),
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
