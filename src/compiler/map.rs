//! The source map: the author's names for files, and the author's lines and columns in a YAML file.

use rolldown_sourcemap::{SourceMap, SourceMapBuilder};

use runner_compiler::job::Job;

/// What stands for code that no author wrote.
const HELPERS: &str = "runner:helpers";

/// The map with the names that are shown and, for code of a YAML file, the places in that file.
pub fn placed(map: &SourceMap, job: &Job) -> SourceMap {
    let names: Vec<String> = map.get_names().map(str::to_owned).collect();
    let sources: Vec<&str> = map.get_sources().collect();
    let entry = sources.iter().position(|source| *source == job.file);
    let entry = entry.and_then(|index| u32::try_from(index).ok());
    let shown: Vec<String> = sources.iter().map(|source| url(&shown_name(source, job))).collect();
    let mut builder = SourceMapBuilder::default();
    // Names may stand in the map twice; in a new one they do not.
    let numbers: Vec<u32> = names.iter().map(|name| builder.add_name(name)).collect();
    for (index, source) in shown.iter().enumerate() {
        // Each keeps its number, also where two are shown alike.
        let number = builder.set_source_and_content(source, "");
        debug_assert_eq!(number as usize, index);
    }
    for token in map.get_tokens() {
        let (line, column) = (token.get_src_line(), token.get_src_col());
        let (line, column) = match job.place {
            Some(place) if token.get_source_id() == entry => place.in_file(line, column),
            _ => (line, column),
        };
        builder.add_token(
            token.get_dst_line(),
            token.get_dst_col(),
            line,
            column,
            token.get_source_id(),
            token.get_name_id().and_then(|id| numbers.get(id as usize).copied()),
        );
    }
    let mut map = builder.into_sourcemap().into_owned();
    map.set_source_contents(Vec::new());
    map
}

/// How a module is called: its path as the tool's file is called.
pub fn shown_name(source: &str, job: &Job) -> String {
    if source.contains('\0') {
        return HELPERS.to_owned();
    }
    if source == job.file {
        return job.shown.clone();
    }
    match job.shown.strip_suffix(&job.file) {
        Some(folder) => format!("{folder}{source}"),
        None => source.to_owned(),
    }
}

/// A name as the reference to a file that a source map has: characters with a meaning in it are escaped. Node takes an
/// absolute path as it is.
fn url(name: &str) -> String {
    if name == HELPERS || name.starts_with('/') {
        return name.to_owned();
    }
    let mut text = String::with_capacity(name.len());
    // What comes before a colon in the first part would be a scheme.
    if name.split('/').next().is_some_and(|first| first.contains(':')) {
        text.push_str("./");
    }
    for character in name.chars() {
        match character {
            '%' => text.push_str("%25"),
            '#' => text.push_str("%23"),
            '?' => text.push_str("%3F"),
            '\\' => text.push_str("%5C"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_compiler::job::Language;

    fn job(file: &str, shown: &str) -> Job {
        Job {
            file: file.to_owned(),
            shown: shown.to_owned(),
            text: String::new(),
            language: Language::TypeScript,
            place: None,
        }
    }

    #[test]
    fn other_files_are_called_like_the_tools_own() {
        let job = job("a.tool.ts", ".runner/tools/a.tool.ts");
        assert_eq!(shown_name("a.tool.ts", &job), ".runner/tools/a.tool.ts");
        assert_eq!(shown_name("lib/x.ts", &job), ".runner/tools/lib/x.ts");
        assert_eq!(shown_name("\0rolldown/runtime.js", &job), HELPERS);
        let odd = self::job("a.tool.ts", "the tool");
        assert_eq!(shown_name("lib/x.ts", &odd), "lib/x.ts");
    }

    #[test]
    fn names_survive_as_references() {
        assert_eq!(url("a b/50%#?.ts"), "a b/50%25%23%3F.ts");
        assert_eq!(url("c:d.ts"), "./c:d.ts");
        assert_eq!(url("/abs/c:d#%.ts"), "/abs/c:d#%.ts");
    }
}
