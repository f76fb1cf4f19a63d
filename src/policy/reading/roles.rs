//! From a role and a word to effects and nested commands.

use super::level::{Arg, Level};
use super::{awk, jq, mode, sed};
use crate::effect::{Effect, Peer, Place};
use crate::grammar::{Access, Does, Kind, Opt, Role, Shape};
use crate::paths;
use crate::plan::Demand;
use crate::variables::loads_code;
use crate::word::Word;

/// A command inside a command.
#[derive(Debug)]
pub(super) enum Nested {
    /// Words to execute, where, and with which variables.
    Words(Vec<Word>, String, Vec<String>),
    /// A line for a shell.
    Line(String, String, Vec<String>),
}

/// What is in force while the arguments of one command are read in order.
#[derive(Debug)]
pub(super) struct Emit {
    cwd: String,
    /// Where operands are looked for, if not in `cwd`.
    members: Option<String>,
    pub method: String,
    replace: Option<String>,
    env: Vec<String>,
    roots: Vec<String>,
    pub nested: Vec<Nested>,
}

impl Emit {
    /// `env` names variables that were set for the command, and so for what it executes.
    pub(super) fn new(cwd: String, env: Vec<String>) -> Self {
        Self {
            cwd,
            members: None,
            method: "GET".to_owned(),
            replace: None,
            env,
            roots: Vec::new(),
            nested: Vec::new(),
        }
    }

    /// The folder in force.
    pub(super) fn folder(&self) -> &String {
        &self.cwd
    }

    /// What must be known before the arguments are read in order.
    pub(super) fn prepare(&mut self, option: &Opt, values: &[(Role, Word)]) {
        for (role, word) in values {
            match (role, word.text()) {
                (Role::Method, Some(text)) => text.clone_into(&mut self.method),
                (Role::Method, None) => "*".clone_into(&mut self.method),
                (Role::Replace, Some(text)) => self.replace = Some(text.to_owned()),
                _ => {}
            }
        }
        for does in &option.does {
            if let Does::Method(method) = does {
                // An explicit method wins over what data options imply.
                if self.method == "GET" {
                    self.method.clone_from(method);
                }
            }
        }
        if values.is_empty()
            && matches!(&option.value, crate::grammar::OptValue::Optional(Role::Replace))
        {
            self.replace = Some("{}".to_owned());
        }
    }

    /// Reads what belongs to operands in the folder that is theirs.
    pub(super) fn among_operands(&mut self, read: impl FnOnce(&mut Self)) {
        match self.members.clone() {
            None => read(self),
            Some(members) => {
                let cwd = std::mem::replace(&mut self.cwd, members);
                read(self);
                self.cwd = cwd;
            }
        }
    }

    /// An effect that is written out in the catalog.
    pub(super) fn does(&self, level: &mut Level, does: &Does, by: &str) {
        match does {
            Does::Path(access, shape, path) => {
                let place = if path == "?" { Place::Any } else { self.place(*shape, path) };
                path_effects(level, *access, &place, by);
            }
            Does::Class(class) => {
                let effect = match class {
                    crate::effect::Class::Read => Effect::Read(Place::Any),
                    crate::effect::Class::Write => Effect::Write(Place::Any),
                    crate::effect::Class::Net => Effect::Net(Peer::Any),
                    crate::effect::Class::Code => Effect::Code,
                    crate::effect::Class::System => Effect::System,
                    crate::effect::Class::Unknown => Effect::Unknown,
                };
                push(level, effect, by);
            }
            Does::Method(_) => {}
            Does::Any(kind) => level.args.push(Arg { kind: *kind, value: None }),
        }
    }

    /// One argument.
    pub(super) fn role(&mut self, level: &mut Level, role: &Role, word: &Word, by: &str) {
        note(level, role, word, &self.cwd);
        if let Word::Later(later) = word {
            match role {
                Role::Inert(_) | Role::Pass => {}
                // A path, and nothing else that a program could read into the word.
                Role::Path(_, Shape::Exact | Shape::Tree | Shape::Below | Shape::OrStdout)
                | Role::Path(_, Shape::Here | Shape::Beside)
                | Role::ReadMember => level.demanded.push((later.site, Demand::Inside)),
                Role::Path(_, Shape::Glob)
                | Role::HostPath(..)
                | Role::UrlOrRead
                | Role::Rev
                | Role::RevOrPath
                | Role::RevTree => level.demanded.push((later.site, Demand::InsideWithoutColon)),
                _ => {
                    level.complete = false;
                    return push(level, Effect::Unknown, by);
                }
            }
        }
        match role {
            Role::Inert(_) | Role::Method | Role::Replace | Role::Pass => {}
            Role::Path(access, shape) => self.path(level, *access, *shape, word, by),
            Role::AtFile => self.prefixed(level, word, &["@"], by),
            Role::Form => self.form(level, word, by),
            Role::FileEquals => match word.text() {
                Some(text) => {
                    if let Some((_, path)) = text.split_once("-file=") {
                        self.path(level, Access::Read, Shape::Exact, &Word::lit(path), by);
                    }
                }
                None => path_effects(level, Access::Read, &Place::Any, by),
            },
            Role::ReadList => match word.text() {
                Some(text) => text.split(':').for_each(|path| {
                    self.path(level, Access::Read, Shape::Tree, &Word::lit(path), by);
                }),
                None => path_effects(level, Access::Read, &Place::Any, by),
            },
            Role::ReadEquals => {
                let path = word.text().and_then(|text| text.split_once('=')).map(|(_, path)| path);
                let path = path.map_or_else(|| word.clone(), Word::lit);
                self.path(level, Access::Read, Shape::Tree, &path, by);
            }
            Role::ReadMember => self.among_operands(|emit| {
                emit.path(level, Access::Read, Shape::Tree, word, by);
            }),
            Role::FilterRule => match word.text() {
                Some(text) => {
                    let (rule, file) = text.split_once([' ', '_']).unwrap_or((text, ""));
                    let name = rule.split(',').next().unwrap_or_default();
                    if name.starts_with(['.', ':']) || ["merge", "dir-merge"].contains(&name) {
                        self.path(level, Access::Read, Shape::Exact, &Word::lit(file), by);
                    }
                }
                None => path_effects(level, Access::Read, &Place::Any, by),
            },
            Role::HostPath(access, shape) => match word.text().and_then(host_of) {
                Some(host) => push(level, Effect::Net(Peer::Connect(host.to_owned())), by),
                None => self.path(level, *access, *shape, word, by),
            },
            Role::UrlOrRead => match word.text() {
                Some(text) if text.contains("://") => self.url(level, word, by),
                _ => self.path(level, Access::Read, Shape::Tree, word, by),
            },
            Role::Rev => self.rev(level, word, by),
            Role::RevOrPath | Role::RevTree => match word.text() {
                Some(text) if text.contains(':') && !magic(text) => self.rev(level, word, by),
                _ => {
                    if *role == Role::RevTree {
                        path_effects(level, Access::Read, &Place::Tree(self.cwd.clone()), by);
                    }
                    self.path(level, Access::Read, Shape::Glob, word, by);
                }
            },
            Role::Remote(access) => self.remote(level, *access, word, by),
            Role::Url => self.url(level, word, by),
            Role::Host => {
                let peer = word.text().map_or(Peer::Any, |text| Peer::Connect(text.to_owned()));
                push(level, Effect::Net(peer), by);
            }
            Role::Chdir => match word.text() {
                Some(text) => self.cwd = paths::join(&self.cwd, text),
                None => push(level, Effect::Unknown, by),
            },
            Role::ChdirOperands => match word.text() {
                Some(text) => {
                    let from = self.members.as_ref().unwrap_or(&self.cwd);
                    self.members = Some(paths::join(from, text));
                }
                None => push(level, Effect::Unknown, by),
            },
            Role::Env => match word.text().and_then(|text| text.split_once('=')) {
                Some((name, _)) => self.env.push(name.to_owned()),
                None => push(level, Effect::Unknown, by),
            },
            // What a sandbox sets keeps git and rustup from running what the project says.
            Role::UnsetEnv => match word.text() {
                Some(name) if !loads_code(name) => {}
                Some(_) | None => push(level, Effect::Code, by),
            },
            Role::ShellLine => match word.text() {
                Some(text) => self.nested.push(Nested::Line(
                    text.to_owned(),
                    self.cwd.clone(),
                    self.env.clone(),
                )),
                None => push(level, Effect::Code, by),
            },
            Role::Code(_) => push(level, Effect::Code, by),
            Role::SedScript => match word.text() {
                Some(script) => {
                    for effect in
                        sed::effects(script, |path| Place::Exact(paths::join(&self.cwd, path)))
                    {
                        push(level, effect, by);
                    }
                }
                None => push(level, Effect::Code, by),
            },
            Role::Mode => {
                if !word.text().is_some_and(mode::is_harmless) {
                    push(level, Effect::System, &format!("mode {by} can set setuid or setgid"));
                }
            }
            Role::Suffix => {
                if word.text().is_none_or(|text| text.contains(['/', '*'])) {
                    path_effects(level, Access::Write, &Place::Any, by);
                }
            }
            Role::PlusFormat => {
                if !word.text().is_some_and(|text| text.starts_with('+')) {
                    push(level, Effect::System, by);
                }
            }
            Role::AwkScript => {
                if !word.text().is_some_and(awk::only_prints) {
                    push(level, Effect::Code, by);
                }
            }
            Role::JqFilter => {
                if word.text().is_none_or(jq::reads_files) {
                    path_effects(level, Access::Read, &Place::Any, "a filter that imports");
                }
            }
            Role::System => push(level, Effect::System, by),
            Role::Unknown | Role::Exec | Role::ExecStdin | Role::ExecUntil => {
                level.complete = false;
                push(level, Effect::Unknown, by);
            }
        }
    }

    /// All words to the end.
    pub(super) fn rest(&mut self, level: &mut Level, role: &Role, words: Vec<Word>) {
        match role {
            Role::Exec => self.exec(words),
            Role::ExecStdin => {
                // The mark could stand in what is not known yet.
                let open = |word| if matches!(word, Word::Later(_)) { Word::Any } else { word };
                let words = match self.replace.clone() {
                    None => words.into_iter().chain([Word::Any]).collect(),
                    Some(mark) => {
                        words.into_iter().map(|word| open(replaced(word, &mark))).collect()
                    }
                };
                self.exec(words);
            }
            _ => {
                for word in &words {
                    note(level, role, word, &self.cwd);
                }
            }
        }
    }

    /// A command in which `{}` is a path that was found.
    pub(super) fn exec_until(&mut self, level: &mut Level, words: Vec<Word>) {
        if words.is_empty() {
            push(level, Effect::Unknown, "-exec without a command");
            return;
        }
        let roots = if self.roots.is_empty() { vec![".".to_owned()] } else { self.roots.clone() };
        let words = words
            .into_iter()
            .map(|word| match word.text() {
                _ if matches!(word, Word::FoundMany(_)) => Word::FoundMany(roots.clone()),
                Some("{}") => Word::Found(roots.clone()),
                Some(text) if text.contains("{}") => {
                    // A found path never begins with a dash, so what stands before it decides.
                    let before = &text[..text.find("{}").unwrap_or(0)];
                    Word::Starts(if before.is_empty() {
                        "./".to_owned()
                    } else {
                        before.to_owned()
                    })
                }
                _ => word,
            })
            .collect();
        self.exec(words);
    }

    fn exec(&mut self, words: Vec<Word>) {
        self.nested.push(Nested::Words(words, self.cwd.clone(), self.env.clone()));
    }

    fn place(&self, shape: Shape, path: &str) -> Place {
        let full = paths::join(&self.cwd, path);
        match shape {
            Shape::Exact | Shape::OrStdout => Place::Exact(full),
            Shape::Tree => Place::Tree(full),
            Shape::Below => Place::Below(full),
            Shape::Prefix if path.ends_with('/') => Place::Prefix(format!("{full}/")),
            Shape::Prefix => Place::Prefix(full),
            Shape::Template if path.contains(['{', '[', '#', '%', '*', '?']) => Place::Any,
            Shape::Template => Place::Exact(full),
            Shape::Here => Place::Tree(self.cwd.clone()),
            Shape::Beside => Place::Tree(paths::join(&full, "..")),
            Shape::Glob => pathspec(&self.cwd, path),
        }
    }

    fn path(&mut self, level: &mut Level, access: Access, shape: Shape, word: &Word, by: &str) {
        if shape == Shape::Beside && access == Access::ReadWrite {
            self.path(level, Access::Read, Shape::Exact, word, by);
            return self.path(level, Access::Write, Shape::Beside, word, by);
        }
        let place = match word {
            _ if shape == Shape::Here => Place::Tree(self.cwd.clone()),
            Word::Lit(text) => {
                let stream = text == "-"
                    && (matches!(shape, Shape::OrStdout | Shape::Template | Shape::Beside)
                        || (access == Access::Read && shape != Shape::Prefix));
                if stream || text.is_empty() {
                    return;
                }
                if shape == Shape::Glob
                    && let Some(path) = asked_by_magic(text).filter(|path| !path.is_empty())
                {
                    // Case can be ignored too.
                    for path in [path.to_owned(), path.to_lowercase()] {
                        path_effects(level, access, &pathspec(&self.cwd, &path), by);
                    }
                }
                self.place(shape, text)
            }
            // A pathspec that is a shell pattern too is one of these words, and a folder stands for all below.
            Word::Glob(_) if shape == Shape::Glob => Place::Any,
            Word::Glob(text) if shape == Shape::Beside => {
                let beside = text.rsplit_once('/').map(|(folder, _)| format!("{folder}/*"));
                Place::Glob(paths::join(&self.cwd, beside.as_deref().unwrap_or("*")))
            }
            Word::Glob(text) => Place::Glob(paths::join(&self.cwd, text)),
            Word::Starts(_) | Word::Any | Word::Later(_) => Place::Any,
            Word::Found(roots) | Word::FoundMany(roots) => {
                for root in roots {
                    path_effects(level, access, &Place::Tree(paths::join(&self.cwd, root)), by);
                }
                return;
            }
        };
        if shape == Shape::Tree && access != Access::Write {
            // What `-exec` finds lies below the folders that were named.
            self.roots.push(word.text().unwrap_or("/").to_owned());
        }
        path_effects(level, access, &place, by);
    }

    /// `REV`, `REV:PATH`, `:PATH`, `:2:PATH`.
    fn rev(&mut self, level: &mut Level, word: &Word, by: &str) {
        let Some(text) = word.text() else {
            return self.path(level, Access::Read, Shape::Tree, word, by);
        };
        let text = match text.as_bytes() {
            [b':', b'0'..=b'3', b':', ..] => &text[2..],
            _ => text,
        };
        // A colon in braces is not the one that matters: `HEAD@{1 day 10:00}:PATH`, `HEAD^{/fix: x}:PATH`.
        let first = text.find(['{', ':']).unwrap_or(text.len());
        let path = if text[first..].starts_with('{') {
            match text[first..].rsplit_once("}:") {
                Some((inside, path)) if !inside.contains("}:") => path,
                None if !text[first..].contains(':') || text.ends_with('}') => return,
                _ => {
                    path_effects(level, Access::Read, &Place::Any, by);
                    &text[first..]
                }
            }
        } else {
            text.get(first + 1..).unwrap_or_default()
        };
        // What follows a further colon is asked for as well: `-L:function:PATH`.
        let tails = path.match_indices(':').map(|(colon, _)| &path[colon + 1..]);
        for path in std::iter::once(path).chain(tails).filter(|path| !path.is_empty()) {
            self.path(level, Access::Read, Shape::Tree, &Word::lit(path), by);
        }
    }

    /// What git fetches from or pushes to.
    fn remote(&mut self, level: &mut Level, access: Access, word: &Word, by: &str) {
        let text = word.text().unwrap_or_default();
        let colon = text.find(':').filter(|at| !text[..*at].contains('/'));
        let peer = match (text.split_once("://"), colon) {
            // `ext::sh -c id` and other helpers run programs.
            _ if word.text().is_none() || text.contains("::") => {
                push(level, Effect::Code, by);
                Peer::Any
            }
            (Some((scheme, rest)), _) => {
                let port = match scheme {
                    "https" => "443",
                    "http" => "80",
                    "ssh" | "git+ssh" | "ssh+git" => "22",
                    "git" => "9418",
                    "file" => return self.path(level, access, Shape::Tree, &Word::lit(rest), by),
                    _ => {
                        push(level, Effect::Code, by);
                        return push(level, Effect::Net(Peer::Any), by);
                    }
                };
                let place = rest.split('/').next().unwrap_or_default();
                let host = place.rsplit('@').next().unwrap_or_default();
                Peer::Connect(if host.contains(':') {
                    host.to_owned()
                } else {
                    format!("{host}:{port}")
                })
            }
            (None, Some(colon)) => {
                let host = text[..colon].rsplit('@').next().unwrap_or_default();
                Peer::Connect(format!("{host}:22"))
            }
            (None, None) if text.contains('/') || text.starts_with('.') => {
                return self.path(level, access, Shape::Tree, word, by);
            }
            // The name of a remote leads where the configuration says.
            (None, None) => Peer::Any,
        };
        push(level, Effect::Net(peer), by);
    }

    fn url(&self, level: &mut Level, word: &Word, by: &str) {
        let scheme = word.text().map(|text| text.get(..5).unwrap_or_default());
        if scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case("file:")) {
            // A file that is read, or written by an upload.
            path_effects(level, Access::ReadWrite, &Place::Any, by);
        }
        let peer = match word.text() {
            // curl and its kind expand `{a,b}` and `[1-9]` in URLs into several.
            Some(url) if !url.contains(['{', '[', '}', ']']) || url.contains("://[") => {
                Peer::Request { method: self.method.clone(), url: url.to_owned() }
            }
            _ => Peer::Any,
        };
        push(level, Effect::Net(peer), by);
    }

    /// A text, or a file to read behind one of the marks.
    fn prefixed(&mut self, level: &mut Level, word: &Word, marks: &[&str], by: &str) {
        match word.text() {
            Some(text) => {
                if text.contains("%output{") {
                    path_effects(level, Access::Write, &Place::Any, by);
                }
                if let Some(path) = marks.iter().find_map(|mark| text.strip_prefix(mark)) {
                    self.path(level, Access::Read, Shape::Exact, &Word::lit(path), by);
                } else if let Some((_, path)) =
                    text.split_once('@').filter(|_| marks.contains(&"@"))
                {
                    // `NAME@FILE` is a file too in --data-urlencode; reading one too many is harmless.
                    self.path(level, Access::Read, Shape::Exact, &Word::lit(path), by);
                }
            }
            None => path_effects(level, Access::Read, &Place::Any, by),
        }
    }

    fn form(&mut self, level: &mut Level, word: &Word, by: &str) {
        // Several files, quotes and `;headers=@FILE` follow rules of their own: then any file.
        let plain = |text: &str| {
            !text.contains(['@', '<', ',', '"', '\\', '(']) && !text.contains(";headers")
        };
        match word.text().and_then(|text| text.split_once('=')) {
            Some((_, value)) => match value.strip_prefix(['@', '<']) {
                Some(file) if plain(file) => {
                    let path = file.split(';').next().unwrap_or_default();
                    self.path(level, Access::Read, Shape::Exact, &Word::lit(path), by);
                }
                None if !value.contains(['@', '<']) => {}
                _ => path_effects(level, Access::Read, &Place::Any, by),
            },
            None => path_effects(level, Access::Read, &Place::Any, by),
        }
    }
}

/// A variable for a command: an effect of its own, and code where a loader or interpreter obeys it.
pub(super) fn set_variable(level: &mut Level, name: &str) {
    push(level, Effect::Env(name.to_owned()), &format!("{name}="));
    if crate::variables::loads_code(name) {
        push(level, Effect::Code, &format!("{name}= makes programs load or run code"));
    }
}

fn replaced(word: Word, mark: &str) -> Word {
    match word.text().and_then(|text| text.find(mark).map(|at| (text, at))) {
        Some((text, at)) if !mark.is_empty() => Word::Starts(text[..at].to_owned()),
        _ => word,
    }
}

/// The host of `HOST:PATH`, `HOST::MODULE` or `rsync://HOST/PATH`. A colon after a slash belongs to a path.
fn host_of(text: &str) -> Option<&str> {
    let place = match text.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.split(['/', ':']).next(),
        _ => text.split_once(':').map(|(place, _)| place).filter(|place| !place.contains('/')),
    };
    place.map(|place| place.rsplit('@').next().unwrap_or_default())
}

/// A pathspec that says more than a path.
fn magic(text: &str) -> bool {
    [":(", ":!", ":^", ":/"].iter().any(|mark| text.starts_with(mark))
}

/// A git pathspec: a folder stands for all below it, a pattern for what it spells.
fn pathspec(cwd: &str, text: &str) -> Place {
    let full = paths::join(cwd, text);
    if text.starts_with(':') {
        // Excludes, or begins at the root of the repository, which is not known here.
        Place::Any
    } else if text.contains(['*', '?', '[', '\\']) {
        Place::Glob(full)
    } else {
        Place::Tree(full)
    }
}

/// The path that a pathspec with magic asks for: `:(top)x`, `:/x`; none where it excludes.
fn asked_by_magic(text: &str) -> Option<&str> {
    match text.strip_prefix(":(") {
        Some(rest) => rest
            .split_once(')')
            .filter(|(words, _)| !words.contains("exclude"))
            .map(|(_, path)| path),
        None => text.strip_prefix(":/"),
    }
}

fn path_effects(level: &mut Level, access: Access, place: &Place, by: &str) {
    if access != Access::Write {
        push(level, Effect::Read(place.clone()), by);
    }
    if access != Access::Read {
        push(level, Effect::Write(place.clone()), by);
    }
}

fn push(level: &mut Level, effect: Effect, by: &str) {
    level.add(effect, by);
}

/// Records an argument by its kind.
fn note(level: &mut Level, role: &Role, word: &Word, cwd: &str) {
    let kind = role.kind();
    if kind == Kind::Text {
        return;
    }
    let value = match (kind, word.text()) {
        (Kind::Ref, Some(text)) => pushed_ref(text),
        (Kind::Path, Some(text)) if matches!(role, Role::Path(..)) && text != "-" => {
            Some(paths::join(cwd, text))
        }
        (_, Some(text)) => Some(text.to_owned()),
        (_, None) => None,
    };
    level.args.push(Arg { kind, value });
}

/// The ref that is meant: `+HEAD:refs/heads/main` and `heads/main` are `main`; `HEAD` and patterns can be anything.
fn pushed_ref(text: &str) -> Option<String> {
    let target = text.rsplit(':').next().unwrap_or(text).trim_start_matches('+');
    let short = target.strip_prefix("refs/").unwrap_or(target);
    let name = short.strip_prefix("heads/").unwrap_or(target);
    let open = name.is_empty() || name == "HEAD" || name == "@" || name.contains(['*', '?', '[']);
    (!open).then(|| name.to_owned())
}
