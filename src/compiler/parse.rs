//! What a text imports and exports, and what is wrong with it: read by the parser alone, in a process that may read
//! nothing at all but its job.

use std::collections::HashSet;

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::{SourceType, Span};
use oxc_syntax::module_record::{ExportExportName, ImportImportName};
use runner_compiler::job::Confinement;
use runner_compiler::limits::FINDINGS;
use runner_compiler::outline::{Export, Fault, Import, Outline, Said, Text};

/// Most entries of one list.
const ENTRIES: usize = 2_000;
/// Longest name, address or message that is kept.
const NAME_CHARS: usize = 500;

/// Reads a text.
pub fn read(text: &Text, confinement: Confinement) -> Said {
    let Ok(kind) = SourceType::from_extension(&text.ending) else {
        return Said::Broken(format!("`.{}` is no ending of a module", cut(&text.ending)));
    };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &text.text, kind).parse();
    let places = Places::new(&text.text);
    let mut outline = Outline { confinement, ..Outline::default() };
    let record = &parsed.module_record;
    for entry in &record.import_entries {
        let name = match &entry.import_name {
            ImportImportName::Name(name) => cut(&name.name),
            ImportImportName::NamespaceObject => "*".to_owned(),
            ImportImportName::Default(_) => "default".to_owned(),
        };
        let (line, column) = places.of(entry.statement_span);
        outline.imports.push(Import {
            module: cut(&entry.module_request.name),
            name: Some(name),
            local: Some(cut(&entry.local_name.name)),
            type_only: entry.is_type,
            dynamic: false,
            line,
            column,
        });
    }
    // Imports that only run have no entries, and exports of others' are not imports.
    let seen: HashSet<(u32, u32)> = outline.imports.iter().map(|it| (it.line, it.column)).collect();
    for (module, requests) in &record.requested_modules {
        for request in requests.iter().filter(|request| request.is_import) {
            let (line, column) = places.of(request.statement_span);
            if !seen.contains(&(line, column)) {
                outline.imports.push(Import {
                    module: cut(module),
                    name: None,
                    local: None,
                    type_only: request.is_type,
                    dynamic: false,
                    line,
                    column,
                });
            }
        }
    }
    for import in &record.dynamic_imports {
        let (line, column) = places.of(import.span);
        let said = places.text(import.module_request);
        outline.imports.push(Import {
            module: cut(said.trim_matches(['"', '\'', '`'])),
            name: None,
            local: None,
            type_only: false,
            dynamic: true,
            line,
            column,
        });
    }
    let own = record.local_export_entries.iter().chain(&record.indirect_export_entries);
    for entry in own.chain(&record.star_export_entries) {
        let name = match &entry.export_name {
            ExportExportName::Name(name) => cut(&name.name),
            ExportExportName::Default(_) => "default".to_owned(),
            ExportExportName::Null => "*".to_owned(),
        };
        let (line, column) = places.of(entry.statement_span);
        let from = entry.module_request.as_ref().map(|module| cut(&module.name));
        outline.exports.push(Export { name, from, type_only: entry.is_type, line, column });
    }
    for error in parsed.diagnostics.iter() {
        let at = error.labels.as_slice().first().map_or(0, oxc_diagnostics::LabeledSpan::offset);
        let (line, column) = places.at(at as usize);
        let help = error.help.as_deref().map(cut);
        outline.errors.push(Fault { message: cut(&error.message), help, line, column });
    }
    outline.imports.sort_by_key(|it| (it.line, it.column));
    outline.exports.sort_by_key(|it| (it.line, it.column));
    let long = outline.imports.len().max(outline.exports.len()) > ENTRIES;
    outline.truncated = long || outline.errors.len() > FINDINGS;
    outline.imports.truncate(ENTRIES);
    outline.exports.truncate(ENTRIES);
    outline.errors.truncate(FINDINGS);
    Said::Outline(Box::new(outline))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Lines and columns of a text.
struct Places<'t> {
    text: &'t str,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl<'t> Places<'t> {
    fn new(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    fn of(&self, span: Span) -> (u32, u32) {
        self.at(span.start as usize)
    }

    fn at(&self, offset: usize) -> (u32, u32) {
        let small = |figure: usize| u32::try_from(figure).unwrap_or(u32::MAX);
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        (small(line), small(before.chars().count() + 1))
    }

    fn text(&self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, ending: &str) -> Outline {
        let text = Text { text: text.to_owned(), ending: ending.to_owned() };
        match read(&text, Confinement { landlock: 1, missing: Vec::new() }) {
            Said::Outline(outline) => *outline,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn imports_and_exports_are_found() {
        let text = "import a, { b as c, type T } from './m';\nimport * as n from \"n\";\nimport 'side';\n\
            import type { U } from './types';\nexport const x = 1, y = 2;\nexport default function f() {}\n\
            export { b as z } from './m';\nexport * from './all';\nconst d = () => import('./late');\nexport type V = string;\n";
        let outline = of(text, "ts");
        assert_eq!(outline.errors, []);
        let imports: Vec<_> = outline
            .imports
            .iter()
            .map(|it| (it.module.as_str(), it.name.as_deref(), it.type_only, it.line))
            .collect();
        for wanted in [
            ("./m", Some("default"), false, 1),
            ("./m", Some("b"), false, 1),
            ("./m", Some("T"), true, 1),
            ("n", Some("*"), false, 2),
            ("side", None, false, 3),
            ("./types", Some("U"), true, 4),
            ("./late", None, false, 9),
        ] {
            assert!(imports.contains(&wanted), "{wanted:?} {imports:?}");
        }
        assert!(outline.imports.iter().any(|it| it.dynamic && it.module == "./late"));
        let exports: Vec<_> =
            outline.exports.iter().map(|it| (it.name.as_str(), it.from.as_deref())).collect();
        for wanted in [
            ("x", None),
            ("y", None),
            ("default", None),
            ("z", Some("./m")),
            ("*", Some("./all")),
            ("V", None),
        ] {
            assert!(exports.contains(&wanted), "{wanted:?} {exports:?}");
        }
    }

    #[test]
    fn errors_have_their_places() {
        let outline = of("const é = 1;\nconst x = ;\n", "ts");
        assert_eq!((outline.errors[0].line, outline.errors[0].column), (2, 11), "{outline:?}");
        assert!(of("let a: number = 1", "js").errors.len() == 1, "types are no JavaScript");
        assert!(of("const a = <div/>;", "tsx").errors.is_empty());
        assert!(matches!(
            read(
                &Text { text: String::new(), ending: "exe".to_owned() },
                Confinement { landlock: 1, missing: Vec::new() }
            ),
            Said::Broken(_)
        ));
    }
}
