//! What is remembered, and everything that makes it stale.

use std::fs;

use runner::tool::compile::{Compiled, Compiler, Difference, Origin};
use serde_json::json;

use super::support::Bench;

fn compile(bench: &Bench, compiler: &Compiler) -> Compiled {
    compiler.compile(&bench.source("a.tool.ts")).expect("it compiles")
}

fn remembered(compiled: &Compiled) -> bool {
    compiled.origin == Origin::Remembered
}

/// A tool with an import, a package and a file of data.
fn bench() -> Bench {
    let bench = Bench::new();
    bench
        .write("a.tool.ts", "import { b } from './lib/b'; import p from 'p'; import d from './d.json'; export const execute = () => [b, p, d]")
        .write("lib/b.ts", "export const b = 1")
        .write("d.json", "3")
        .write("node_modules/p/package.json", r#"{"main":"m.js"}"#)
        .write("node_modules/p/m.js", "module.exports = 2");
    bench
}

#[test]
fn a_second_time_starts_nothing() {
    let bench = bench();
    let first = compile(&bench, &bench.remembering());
    assert!(!remembered(&first));
    // A compiler whose program cannot be started can still remember.
    let nothing = Compiler::with(std::path::Path::new("/nowhere"), Some(&bench.outside("state")));
    let second = compile(&bench, &nothing);
    assert!(remembered(&second));
    assert_eq!(
        (&first.code, &first.digest, &first.exports),
        (&second.code, &second.digest, &second.exports)
    );
    assert_eq!(first.inputs, second.inputs);
    let paths: Vec<_> = second.inputs.iter().map(|input| input.path.as_str()).collect();
    let expected =
        ["a.tool.ts", "d.json", "lib/b.ts", "node_modules/p/m.js", "node_modules/p/package.json"];
    assert_eq!(paths, expected);
    assert_eq!(bench.execute(&second), json!([1, 2, 3]));
}

#[test]
fn any_changed_input_is_a_miss() {
    for (file, text, expected) in [
        ("lib/b.ts", "export const b = 9", json!([9, 2, 3])),
        ("d.json", "9", json!([1, 2, 9])),
        ("node_modules/p/m.js", "module.exports = 9", json!([1, 9, 3])),
        ("node_modules/p/package.json", r#"{"main":"n.js"}"#, json!([1, 8, 3])),
    ] {
        let bench = bench();
        bench.write("node_modules/p/n.js", "module.exports = 8");
        let compiler = bench.remembering();
        let first = compile(&bench, &compiler);
        bench.write(file, text);
        let second = compile(&bench, &compiler);
        assert!(!remembered(&second), "{file}");
        assert_ne!(first.digest, second.digest, "{file}");
        assert_eq!(bench.execute(&second), expected, "{file}");
        assert!(remembered(&compile(&bench, &compiler)), "{file}");
    }
}

#[test]
fn a_file_that_appears_where_an_import_would_find_it_is_a_miss() {
    for (file, text, expected) in [
        ("lib/b.tsx", "export const b = 7", json!([7, 2, 3])),
        ("node_modules/p/node_modules/x", "", json!([1, 2, 3])),
        ("lib/package.json", r#"{"type":"module"}"#, json!([1, 2, 3])),
    ] {
        let bench = bench();
        let compiler = bench.remembering();
        compile(&bench, &compiler);
        bench.write(file, text);
        let second = compile(&bench, &compiler);
        assert_eq!(bench.execute(&second), expected, "{file}");
        if file.starts_with("lib") {
            assert!(!remembered(&second), "{file}");
        }
    }
}

#[test]
fn an_own_zod_that_appears_is_a_miss() {
    let bench = Bench::new();
    bench.write("a.tool.ts", "import { z } from 'zod'; export const execute = () => z");
    let compiler = bench.remembering();
    compile(&bench, &compiler);
    assert!(remembered(&compile(&bench, &compiler)));
    bench.write("node_modules/zod/index.js", "exports.z = 'own'");
    let second = compile(&bench, &compiler);
    assert!(!remembered(&second));
    assert_eq!(bench.execute(&second), json!("own"));
}

#[test]
fn a_damaged_memory_is_a_miss() {
    let bench = bench();
    let compiler = bench.remembering();
    compile(&bench, &compiler);
    let folder = bench.outside("state/compiled");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let second = compile(&bench, &compiler);
    assert!(!remembered(&second));
    assert_eq!(bench.execute(&second), json!([1, 2, 3]));
    assert!(remembered(&compile(&bench, &compiler)));
}

#[test]
fn errors_are_not_remembered() {
    let bench = Bench::new();
    bench.write("a.tool.ts", "import { b } from './b'; export const execute = () => b");
    let compiler = bench.remembering();
    assert!(compiler.compile(&bench.source("a.tool.ts")).is_err());
    bench.write("b.ts", "export const b = 1");
    assert_eq!(bench.execute(&compile(&bench, &compiler)), json!(1));
}

#[test]
fn a_change_after_compiling_is_named() {
    let check = |change: &dyn Fn(&Bench), path: &str, how: Difference| {
        let bench = bench();
        let compiled = compile(&bench, &Bench::compiler());
        assert_eq!(compiled.verify_inputs(), Ok(()), "{path}");
        change(&bench);
        let changed = compiled.verify_inputs().unwrap_err();
        assert_eq!((changed.path.as_str(), changed.how), (path, how));
    };
    check(
        &|bench| {
            bench.write("a.tool.ts", "export const execute = 1");
        },
        "a.tool.ts",
        Difference::Content,
    );
    check(
        &|bench| {
            bench.write("lib/b.ts", "export const b = 2");
        },
        "lib/b.ts",
        Difference::Content,
    );
    check(&|bench| fs::remove_file(bench.tool("d.json")).unwrap(), "d.json", Difference::Gone);
    check(
        &|bench| {
            // The same content behind a link.
            fs::rename(bench.tool("lib/b.ts"), bench.tool("lib/c.ts")).unwrap();
            bench.link("c.ts", "lib/b.ts");
        },
        "lib/b.ts",
        Difference::Kind,
    );
    check(
        &|bench| {
            fs::rename(bench.tool("lib"), bench.outside("lib")).unwrap();
            bench.link("../lib", "lib");
        },
        "lib",
        Difference::Kind,
    );
    check(
        &|bench| {
            bench.write("lib/b.tsx", "");
        },
        "lib/b.tsx",
        Difference::Appeared,
    );
}
