//! Source that is made to break a compiler ends as a typed error, and the next tool compiles.

use runner::error::Failure as _;
use runner::tool::compile::CompileError;
use serde_json::json;

use super::support::Bench;

/// The code of what ended it; then the next one must work.
fn ends(text: &str) -> &'static str {
    let bench = Bench::new();
    let error = bench.tool_of(text).map(|compiled| compiled.code.len()).unwrap_err();
    assert_eq!(bench.result_of("export const execute = () => 'next'"), json!("next"));
    error.code()
}

#[test]
fn deep_nesting() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{a:", "}"), ("-", ""), ("()=>", "")] {
        let text =
            format!("export const execute = {}1{}", open.repeat(400_000), close.repeat(400_000));
        assert_eq!(ends(&text), "compiler_depth", "{open}");
    }
}

#[test]
fn nesting_that_people_write_compiles() {
    let bench = Bench::new();
    let text = format!("export const execute = () => {}1{}", "(".repeat(500), ")".repeat(500));
    assert_eq!(bench.result_of(&text), json!(1));
    let sum = vec!["1"; 2000].join("+");
    assert_eq!(bench.result_of(&format!("export const execute = () => {sum}")), json!(2000));
}

#[test]
fn deep_types() {
    let text = format!(
        "type T = {}string{}; export const execute = 1",
        "Array<".repeat(300_000),
        ">".repeat(300_000)
    );
    assert_eq!(ends(&text), "compiler_depth");
}

#[test]
fn too_much_memory() {
    // Each element is a node of its own: some hundred bytes for two.
    let text = format!("export const execute = () => [{}]", "a,".repeat(7 << 20));
    assert_eq!(ends(&text), "compiler_memory");
}

#[test]
fn a_module_that_imports_without_end() {
    let bench = Bench::new();
    // Many small files cost processor time and paths; they are bounded by what is there.
    for number in 0..300 {
        let next = (number + 1) % 300;
        bench.write(
            &format!("m{number}.ts"),
            &format!("import {{ v as w }} from './m{next}'; export const v = () => w"),
        );
    }
    assert_eq!(
        bench.result_of("import { v } from './m0'; export const execute = () => typeof v()"),
        json!("function")
    );
}

#[test]
fn a_child_that_dies_is_an_error_with_its_last_words() {
    let bench = Bench::new();
    bench.write("a.tool.ts", "export const execute = 1");
    for (program, word) in [("/bin/false", "exit code 1"), ("/bin/true", "exit code 0")] {
        let compiler = runner::tool::compile::Compiler::new(std::path::Path::new(program), None);
        match compiler.compile(&bench.source("a.tool.ts")) {
            Err(CompileError::Crashed { how, .. }) => assert!(how.contains(word), "{how}"),
            other => panic!("{other:?}"),
        }
    }
    let compiler = runner::tool::compile::Compiler::new(std::path::Path::new("/nowhere"), None);
    assert_eq!(
        compiler.compile(&bench.source("a.tool.ts")).unwrap_err().code(),
        "compiler_process"
    );
}
