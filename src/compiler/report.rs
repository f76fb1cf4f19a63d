//! What rolldown finds wrong, as findings at the author's own place.
//!
//! Runs inside the confined child only. Messages quote foreign text; whoever prints them makes it visible.

use std::path::Path;

use rolldown_error::{BuildDiagnostic, DiagnosticOptions, EventKind};
use runner_finding::{At, did_you_mean};

use runner_compiler::job::{CODES, Job, Told};
use runner_compiler::limits::{EXCERPT, FINDINGS};

use crate::files::{Files, ROOT};
use crate::map::shown_name;
use crate::plugin::{Refused, Trouble};

/// Longest message kept, in characters.
const MESSAGE: usize = 400;

/// Most names that are compared for a hint.
const NAMES: usize = 2000;

/// Makes findings for one job.
#[derive(Debug)]
pub struct Reporter<'j> {
    job: &'j Job,
    files: &'j Files,
}

impl<'j> Reporter<'j> {
    /// For a job over these files.
    pub fn new(job: &'j Job, files: &'j Files) -> Self {
        Self { job, files }
    }

    /// A finding about the tool as a whole.
    pub fn whole(&self, message: impl Into<String>) -> Told {
        Told {
            code: number("compile_error"),
            file: self.job.shown.clone(),
            at: At::default(),
            message: shortened(message.into()),
            help: None,
            excerpt: String::new(),
        }
    }

    /// All findings: what rolldown says and what we refused.
    pub fn all(&self, found: &[BuildDiagnostic], trouble: &Trouble) -> Vec<Told> {
        let refused = trouble.refused.iter().map(|import| self.refusal(import));
        let mut told: Vec<Told> = found
            .iter()
            .map(|diagnostic| self.one(diagnostic, trouble))
            .chain(refused)
            .take(FINDINGS)
            .collect();
        told.sort_by(|a, b| (&a.file, a.at).cmp(&(&b.file, b.at)));
        told.dedup();
        told
    }

    fn one(&self, diagnostic: &BuildDiagnostic, trouble: &Trouble) -> Told {
        let options = DiagnosticOptions { cwd: ROOT.into() };
        let full = diagnostic.to_diagnostic_with(&options);
        let kind = diagnostic.kind();
        let place = full.get_primary_location();
        let specifier = match kind {
            EventKind::UnresolvedImport | EventKind::ResolveError => diagnostic.exporter(),
            _ => None,
        };
        let rendered = full.convert_to_string(false);
        let (message, help) = match (&specifier, kind) {
            (Some(specifier), _) => {
                let importer = diagnostic.id().unwrap_or_default();
                self.missing(&importer, specifier, &rendered)
            }
            (None, EventKind::UnhandleableError | EventKind::PluginError) => {
                (cause(&diagnostic.to_message_with(&options)), None)
            }
            (None, EventKind::UnloadableDependencyError) => {
                (self.unloadable(&diagnostic.to_message_with(&options), trouble), None)
            }
            (None, EventKind::MissingExportError) => {
                let message = diagnostic.to_message_with(&options);
                let known = message.split(", imported by").next().unwrap_or(&message);
                (known.to_owned(), help_of(&rendered))
            }
            (None, _) => {
                let message = diagnostic.to_message_with(&options);
                (self.without_root(&message), help_of(&rendered))
            }
        };
        let code = match kind {
            EventKind::ParseError
            | EventKind::TransformError
            | EventKind::UnsupportedFeatureError => "syntax_error",
            EventKind::UnresolvedImport | EventKind::ResolveError => "import_not_found",
            EventKind::MissingExportError => "export_not_found",
            EventKind::JsonParseError => "json_error",
            EventKind::UnloadableDependencyError => "file_unusable",
            _ => "compile_error",
        };
        match place {
            Some((file, line, column, _)) => {
                let file = file
                    .strip_prefix(ROOT)
                    .map_or(file.as_str(), |rest| rest.trim_start_matches('/'));
                self.at(code, file, line, column, message, help)
            }
            None => {
                let id = diagnostic.id().unwrap_or_default();
                let file = Files::relative(Path::new(&id)).unwrap_or_else(|| self.job.file.clone());
                Told {
                    code: number(code),
                    file: shown_name(&file, self.job),
                    at: At::default(),
                    message: shortened(message),
                    help,
                    excerpt: String::new(),
                }
            }
        }
    }

    /// A finding at a line (from 1) and a column (from 0, in UTF-16) of a file.
    fn at(
        &self,
        code: &'static str,
        file: &str,
        line: usize,
        column: usize,
        message: String,
        help: Option<String>,
    ) -> Told {
        let text = self.files.text(&Path::new(ROOT).join(file)).unwrap_or_default();
        let text_line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        let text_line = text_line.strip_suffix('\r').unwrap_or(text_line);
        let before = characters(text_line, column);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut at = At {
            line: small(line),
            column: small(before + 1),
            width: small(width(text_line.chars().skip(before))),
        };
        if let Some(place) = self.job.place.filter(|_| file == self.job.file) {
            let (line, column) = place.in_file(at.line.saturating_sub(1), at.column - 1);
            (at.line, at.column) = (line.saturating_add(1), column.saturating_add(1));
        }
        let message = shortened(message);
        let excerpt = text_line.chars().take(EXCERPT).collect();
        Told { code: number(code), file: shown_name(file, self.job), at, message, help, excerpt }
    }

    /// An import of what is not there: what, and what may have been meant.
    fn missing(&self, importer: &str, specifier: &str, rendered: &str) -> (String, Option<String>) {
        let message = format!("cannot find '{specifier}'");
        if specifier.starts_with('.') {
            let folder = Path::new(importer).parent().unwrap_or(Path::new(ROOT));
            return match normal(&folder.join(specifier)) {
                Some(path) => self.missing_file(message, specifier, Path::new(&path)),
                None => (
                    message,
                    Some(format!("only files below {} can be imported", self.place_of_tool())),
                ),
            };
        }
        if specifier.starts_with('/') || specifier.contains("://") || specifier.starts_with("file:")
        {
            let help = "import files by their path relative to this one";
            return (message, Some(help.to_owned()));
        }
        if specifier.starts_with('#') {
            return (
                message,
                Some("no package.json in the tool's folder defines it under `imports`".to_owned()),
            );
        }
        let package = package(specifier);
        let modules = Path::new(ROOT).join("node_modules");
        if self.files.is_folder(&modules.join(package)) {
            let reason = if rendered.contains("not defined by exports") {
                "the package does not export that path"
            } else {
                "the package is there, but not what its package.json names"
            };
            return (message, Some(reason.to_owned()));
        }
        if package == "zod" {
            let help = "the runtime carries zod as `zod` and `zod/v4`; install the package for any other path";
            return (message, Some(help.to_owned()));
        }
        let names = self.files.names(&modules, NAMES);
        let scope = package.split_once('/').map(|(scope, _)| scope);
        let scoped = scope.map(|scope| {
            let names = self.files.names(&modules.join(scope), NAMES);
            names.into_iter().map(move |name| format!("{scope}/{name}"))
        });
        let names: Vec<String> = names.into_iter().chain(scoped.into_iter().flatten()).collect();
        let help = match did_you_mean(package, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => format!(
                "install it beside the tool: npm install --prefix {} {package}",
                self.place_of_tool()
            ),
        };
        (message, Some(help))
    }

    fn missing_file(
        &self,
        message: String,
        specifier: &str,
        path: &Path,
    ) -> (String, Option<String>) {
        if self.files.leads_out(path) {
            let help = format!(
                "it leads out of {}; only files below that can be imported",
                self.place_of_tool()
            );
            return (message, Some(help));
        }
        let folder = path.parent().unwrap_or(Path::new(ROOT));
        let wanted = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let names = self.files.names(folder, NAMES);
        let stems = names.iter().filter_map(|name| Path::new(name).file_stem()?.to_str());
        let known = names.iter().map(String::as_str).chain(stems);
        let help = did_you_mean(wanted, known).map(|meant| {
            let before = specifier.strip_suffix(wanted).unwrap_or("./");
            format!("did you mean '{before}{meant}'?")
        });
        (message, help)
    }

    /// An import of something on a network.
    fn refusal(&self, import: &Refused) -> Told {
        let message = format!("'{}' would be loaded from a network", import.specifier);
        let help = "install what it is as a package beside the tool, or copy it there".to_owned();
        let file =
            Files::relative(Path::new(&import.importer)).unwrap_or_else(|| self.job.file.clone());
        let text = self.files.text(Path::new(&import.importer)).unwrap_or_default();
        let quoted = ['"', '\'', '`']
            .iter()
            .filter_map(|quote| text.find(&format!("{quote}{}{quote}", import.specifier)))
            .min();
        let offset = quoted.unwrap_or(0);
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
        self.at("import_not_allowed", &file, line, column, message, Some(help))
    }

    /// What is said about a file that could not be loaded, with the reason that we gave.
    fn unloadable(&self, message: &str, trouble: &Trouble) -> String {
        let (what, why) = message.split_once(" - ").unwrap_or((message, ""));
        let what = what.split(" (imported by").next().unwrap_or(what);
        let what = what.strip_prefix("Could not load ").unwrap_or(what);
        let path = what.strip_prefix(ROOT).map_or(what, |path| path.trim_start_matches('/'));
        let ours = trouble.unloaded.iter().find(|(unloaded, _)| unloaded == path);
        let why = ours.map_or_else(|| cause(why.trim_end_matches('.')), |(_, why)| why.clone());
        format!("cannot use {}: {why}", shown_name(path, self.job))
    }

    /// The tool's folder, as it is shown.
    fn place_of_tool(&self) -> String {
        match self.job.shown.strip_suffix(&self.job.file) {
            Some("") | None => "the tool's folder".to_owned(),
            Some(folder) => folder.trim_end_matches('/').to_owned(),
        }
    }

    /// Text in which files are called as they are shown.
    fn without_root(&self, text: &str) -> String {
        let folder = self.job.shown.strip_suffix(&self.job.file).unwrap_or_default();
        text.replace(&format!("{ROOT}/"), folder)
    }
}

/// The place of a code in the common table.
fn number(code: &str) -> usize {
    CODES.iter().position(|known| *known == code).unwrap_or(0)
}

/// The innermost cause in the long form of an error with causes.
fn cause(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = lines.rfind(|line| !line.starts_with("Stack backtrace")).unwrap_or(message);
    told.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(": ").to_owned()
}

/// The help inside of a rendered diagnostic.
fn help_of(rendered: &str) -> Option<String> {
    let help =
        rendered.lines().find_map(|line| line.split_once("Help: ").map(|(_, help)| help.trim()))?;
    Some(shortened(help.to_owned()))
}

/// The name of the package that a specifier names.
fn package(specifier: &str) -> &str {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    let end = specifier.match_indices('/').nth(parts - 1).map_or(specifier.len(), |(at, _)| at);
    &specifier[..end]
}

/// A path below the root without `.` and `..`, if it stays there.
fn normal(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str()?.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    let path = format!("/{}", parts.join("/"));
    Path::new(&path).starts_with(ROOT).then_some(path)
}

/// How many characters are before a column in UTF-16 units.
fn characters(line: &str, column: usize) -> usize {
    let mut units = 0;
    line.chars()
        .take_while(|character| {
            let before = units < column;
            units += character.len_utf16();
            before
        })
        .count()
}

/// How much to underline: a word, a string, or one character.
fn width(rest: impl Iterator<Item = char>) -> usize {
    let mut rest = rest.take(EXCERPT);
    match rest.next() {
        Some(quote @ ('"' | '\'' | '`')) => {
            rest.position(|character| character == quote).map_or(1, |inside| inside + 2)
        }
        Some(first) if first.is_alphanumeric() || first == '_' || first == '$' => {
            1 + rest.take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').count()
        }
        _ => 1,
    }
}

fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_characters() {
        assert_eq!(characters("a😀b", 3), 2);
        assert_eq!(characters("ab", 9), 2);
        assert_eq!(characters("", 0), 0);
    }

    #[test]
    fn what_stands_there_is_underlined() {
        assert_eq!(width("'./x' from".chars()), 5);
        assert_eq!(width("name = 1".chars()), 4);
        assert_eq!(width("}".chars()), 1);
        assert_eq!(width("".chars()), 1);
        assert_eq!(width("'open".chars()), 1);
    }

    #[test]
    fn packages_have_one_or_two_parts() {
        assert_eq!(package("a"), "a");
        assert_eq!(package("a/b/c"), "a");
        assert_eq!(package("@s/a/b"), "@s/a");
        assert_eq!(package("@s"), "@s");
    }

    #[test]
    fn paths_are_normal_only_below_the_root() {
        assert_eq!(normal(Path::new("/.runner-tool/a/../b")).unwrap(), "/.runner-tool/b");
        assert_eq!(normal(Path::new("/.runner-tool/../etc")), None);
        assert_eq!(normal(Path::new("/.runner-tool/../../../etc")), None);
        assert_eq!(normal(Path::new("/.runner-toolbox/a")), None);
    }
}
