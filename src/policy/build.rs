//! Compiles `catalog/*.yml` into one table, so that nothing of it is parsed at run time.
//! A wrong entry fails the build with its file, line and column.
#![allow(
    dead_code,
    unused_imports,
    reason = "shares modules with the library and uses a part of them"
)]
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a build script may stop the build"
)]

use std::path::Path;
use std::{env, fs};

mod effect;
mod finding;
mod grammar;
mod yaml;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&root).join("catalog");
    for watched in ["catalog", "grammar", "yaml.rs", "finding.rs", "effect.rs", "build.rs"] {
        println!("cargo::rerun-if-changed={root}/{watched}");
    }
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the catalog folder is readable")
        .map(|entry| entry.expect("a folder entry is readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yml"))
        .collect();
    files.sort();
    let mut programs: Vec<grammar::Program> = Vec::new();
    let mut failed = false;
    for path in files {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let shown = format!("catalog/{name}");
        let text = fs::read_to_string(&path).expect("a catalog file is readable");
        let mut report = finding::Report::new(&shown, &text);
        let program =
            yaml::read(&text, &mut report).and_then(|root| grammar::grammar(&root, &mut report));
        for finding in report.finish() {
            failed = true;
            println!("cargo::error={finding}");
        }
        if let Some(program) = program {
            // `[` cannot be looked for by name in every tool, so its file is called `test.yml`.
            if format!("{}.yml", program.name) != name {
                failed = true;
                println!(
                    "cargo::error={shown}: describes `{}`; a file is called like its program",
                    program.name
                );
            }
            programs.push(program);
        }
    }
    // name -> position in `blobs`; every name of a program has a row
    let mut names: Vec<(String, u32)> = Vec::new();
    let mut blobs: Vec<Vec<u8>> = Vec::new();
    for program in &programs {
        let at = u32::try_from(blobs.len()).expect("few programs");
        for name in std::iter::once(&program.name).chain(&program.also) {
            if names.iter().any(|(known, _)| known == name) {
                failed = true;
                println!("cargo::error=catalog: `{name}` is described twice");
            }
            names.push((name.clone(), at));
        }
        blobs.push(postcard::to_stdvec(program).expect("a program can be written"));
    }
    if failed {
        std::process::exit(1);
    }
    names.sort();
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("catalog.rs");
    let mut code = format!("static NAMES: [(&str, usize); {}] = [\n", names.len());
    for (name, at) in &names {
        code.push_str(&format!("    ({name:?}, {at}),\n"));
    }
    code.push_str(&format!("];\nstatic BLOBS: [&[u8]; {}] = [\n", blobs.len()));
    for blob in &blobs {
        code.push_str(&format!("    &{blob:?},\n"));
    }
    code.push_str(&format!("];\nstatic LOADED: [std::sync::OnceLock<Program>; {0}] = [const {{ std::sync::OnceLock::new() }}; {0}];\n", blobs.len()));
    fs::write(out, code).expect("OUT_DIR is writable");
}
