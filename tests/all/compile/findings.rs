//! Errors stand at the author's own file, line and column.

use runner::tool::compile::{CompileError, Part, Place};
use runner_policy::finding::Finding;

use super::support::{Bench, findings};

/// Code, file, line, column, width and excerpt.
fn place(finding: &Finding) -> (&str, &str, u32, u32, u32, &str) {
    let at = finding.at;
    (finding.code, &finding.file, at.line, at.column, at.width, &finding.excerpt)
}

#[test]
fn a_syntax_error_in_the_tools_file() {
    let bench = Bench::new();
    let found =
        findings(bench.tool_of("export const a = 1\nexport function execute( {\n  return 1\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(place(&found[0]).0, "syntax_error");
    assert_eq!(found[0].file, "tools/a.tool.ts");
    assert!(found[0].at.line >= 2, "{found:?}");
    let found = findings(bench.tool_of("const x = 1\nconst é = 'ü'; const x = 2\n"));
    assert_eq!(place(&found[0]), ("syntax_error", "tools/a.tool.ts", 1, 7, 1, "const x = 1"));
}

#[test]
fn a_syntax_error_in_an_imported_file() {
    let bench = Bench::new();
    bench.write("lib/x.ts", "export const ok = 1\n\nexport const bad = = 2\n");
    let found =
        findings(bench.tool_of("import { ok } from './lib/x'\nexport const execute = () => ok"));
    let expected = ("syntax_error", "tools/lib/x.ts", 3, 20, 1, "export const bad = = 2");
    assert_eq!(place(&found[0]), expected);
}

#[test]
fn a_syntax_error_in_the_code_of_a_yaml_file() {
    let bench = Bench::new();
    let code = "const ok = 1\n\nexport const bad = = 2\n";
    let source = bench.yaml("name: a\ndescription: |\n  two\n", code, 2);
    let found = findings(Bench::compiler().compile(&source));
    // Three lines of head, `code: |`, and the third line of code.
    let expected = ("syntax_error", "tools/a.yml", 7, 22, 1, "  export const bad = = 2");
    assert_eq!(place(&found[0]), expected);
    let line = source.document.lines().nth(6).unwrap();
    assert_eq!(found[0].excerpt, line);
}

#[test]
fn code_on_the_line_of_its_key() {
    let bench = Bench::new();
    let mut source = bench.yaml("name: a\n", "x\n", 2);
    source.document = "name: a\ncode: \"let a = 1; let a = 2\"\n".to_owned();
    bench.write("a.yml", &source.document);
    if let Part::Code { text, place, .. } = &mut source.part {
        *text = "let a = 1; let a = 2".to_owned();
        *place = Place { line: 2, indent: 7 };
    }
    let found = findings(Bench::compiler().compile(&source));
    let line = "code: \"let a = 1; let a = 2\"";
    assert_eq!(place(&found[0]), ("syntax_error", "tools/a.yml", 2, 12, 1, line));
}

#[test]
fn several_errors_at_once() {
    let bench = Bench::new();
    bench.write("x.ts", "let a = ;").write("y.ts", "let = 1;;)");
    let found = findings(bench.tool_of("import './x'; import './y'\nexport const execute = 1"));
    let files: Vec<_> = found.iter().map(|finding| finding.file.as_str()).collect();
    assert_eq!(files, ["tools/x.ts", "tools/y.ts"], "{found:?}");
}

#[test]
fn a_missing_file_with_what_was_meant() {
    let bench = Bench::new();
    bench.write("lib/helpers.ts", "export const h = 1");
    let found =
        findings(bench.tool_of("import { h } from './lib/helper'\nexport const execute = () => h"));
    let expected =
        ("import_not_found", "tools/a.tool.ts", 1, 19, 14, "import { h } from './lib/helper'");
    assert_eq!(place(&found[0]), expected);
    assert_eq!(found[0].message, "cannot find './lib/helper'");
    assert_eq!(found[0].help.as_deref(), Some("did you mean './lib/helpers'?"));
}

#[test]
fn a_missing_package_with_what_was_meant_or_how_to_install_it() {
    let bench = Bench::new();
    bench.write("node_modules/left-pad/index.js", "module.exports = 1");
    bench.write("node_modules/@scope/thing/index.js", "module.exports = 1");
    let help = |text: &str| {
        let found = findings(bench.tool_of(text));
        assert_eq!((found.len(), found[0].code, found[0].at.line), (1, "import_not_found", 1));
        found[0].help.clone().unwrap()
    };
    assert_eq!(help("import x from 'leftpad'; export default x"), "did you mean 'left-pad'?");
    assert_eq!(
        help("import x from '@scope/things'; export default x"),
        "did you mean '@scope/thing'?"
    );
    assert_eq!(
        help("import x from 'express/lib/x'; export default x"),
        "install it beside the tool: npm install --prefix tools express"
    );
    assert!(
        help("import { z } from 'zod/v3'; export default z").contains("the runtime carries zod")
    );
}

#[test]
fn a_missing_import_in_yaml_code() {
    let bench = Bench::new();
    let code = "import { a } from './nope'\nexport const execute = () => a\n";
    let found = findings(Bench::compiler().compile(&bench.yaml("name: a\n", code, 4)));
    let expected = ("import_not_found", "tools/a.yml", 3, 23, 8, "    import { a } from './nope'");
    assert_eq!(place(&found[0]), expected);
}

#[test]
fn a_missing_export() {
    let bench = Bench::new();
    bench.write("lib.ts", "export const there = 1");
    let found = findings(
        bench.tool_of("import { their } from './lib'\nexport const execute = () => their"),
    );
    let expected =
        ("export_not_found", "tools/a.tool.ts", 1, 10, 5, "import { their } from './lib'");
    assert_eq!(place(&found[0]), expected);
}

#[test]
fn broken_json() {
    let bench = Bench::new();
    bench.write("d.json", "{\n  \"a\": 1,\n  oops\n}");
    let found = findings(bench.tool_of("import d from './d.json'\nexport const execute = () => d"));
    assert_eq!(
        (found[0].code, found[0].file.as_str(), found[0].at.line),
        ("json_error", "tools/d.json", 3)
    );
}

#[test]
fn text_that_is_not_utf_8() {
    let bench = Bench::new();
    bench.write("lib.ts", "");
    std::fs::write(bench.tool("lib.ts"), b"export const a = '\xff'").unwrap();
    let found =
        findings(bench.tool_of("import { a } from './lib'\nexport const execute = () => a"));
    assert_eq!(found[0].code, "file_unusable", "{found:?}");
    assert!(found[0].message.contains("it is not UTF-8"), "{found:?}");
    std::fs::write(bench.tool("b.tool.ts"), b"\xff").unwrap();
    let error = runner::tool::compile::Source::module(&bench.tool("b.tool.ts"), "b").unwrap_err();
    assert!(matches!(error, CompileError::Unreadable { .. }));
}

#[test]
fn code_of_yaml_that_exports_nothing_to_run() {
    let bench = Bench::new();
    let of = |code: &str| findings(Bench::compiler().compile(&bench.yaml("name: a\n", code, 2)));
    let found = of("function execute() {}\nexport const other = 1\n");
    let expected = ("export_not_found", "tools/a.yml", 3, 3, 1, "  function execute() {}");
    assert_eq!(place(&found[0]), expected);
    assert!(found[0].help.as_ref().unwrap().contains("export async function execute"), "{found:?}");
    let found = of("export function excute() {}\n");
    assert_eq!(found[0].help.as_deref(), Some("it exports `excute`; did you mean `execute`?"));
}
