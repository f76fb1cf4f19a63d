//! Source that is made to break a compiler ends as a typed error, and the next tool compiles.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use runner::error::Failure as _;
use runner::tool::compile::{CompileError, Compiler};
use serde_json::json;

use super::support::Bench;

/// The code of what ended it; then the next one must work.
fn ends(text: &str) -> &'static str {
    let bench = Bench::new();
    let error = bench.tool_of(text).map(|compiled| compiled.code.len()).unwrap_err();
    assert_eq!(bench.result_of("export const execute = () => 'next'"), json!("next"));
    error.code().as_str()
}

#[test]
fn deep_nesting() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{a:", "}"), ("!", ""), ("()=>", "")] {
        let text = format!(
            "export const execute = {}1{}",
            open.repeat(1_000_000),
            close.repeat(1_000_000)
        );
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
    // Four bytes of text, several hundred of memory.
    let text = format!("export const execute = () => `{}`", "${0}".repeat((4 << 20) - 100));
    // Without optimisation, on a busy machine, time can be up first.
    let code = ends(&text);
    assert!(matches!(code, "compiler_memory" | "compiler_timeout"), "{code}");
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

/// What comes of a compiler that does this instead.
fn instead(script: &str) -> CompileError {
    let bench = Bench::new();
    bench.write("a.tool.ts", "export const execute = 1");
    let program = bench.outside("program");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Compiler::with(&program, None).compile(&bench.source("a.tool.ts")).unwrap_err()
}

#[test]
fn a_child_that_dies_is_an_error_that_says_how() {
    for (script, code, told) in [
        ("exit 3", "compiler_crashed", "exit code 3"),
        ("exit 0", "compiler_crashed", "exit code 0"),
        ("echo oops >&2; kill -SEGV $$", "compiler_crashed", "signal 11 oops"),
        ("kill -XCPU $$", "compiler_timeout", "processor time"),
        ("kill -KILL $$", "compiler_timeout", "processor time"),
        ("cat /dev/zero", "compiler_crashed", "too long"),
        ("cat /dev/zero >&2 & sleep 0.1; kill $!; exit 1", "compiler_crashed", "exit code 1"),
        ("echo '{}'", "compiler_crashed", "exit code 0"),
        ("echo '{\"done\":1}'", "compiler_crashed", "exit code 0"),
        ("echo '{\"unconfined\":\"no Landlock\"}'", "compiler_unconfined", "no Landlock"),
    ] {
        let error = instead(script);
        assert_eq!(error.code().as_str(), code, "{script}: {error}");
        assert!(error.to_string().contains(told), "{script}: {error}");
    }
    let hint = instead("echo '{\"unconfined\":\"x\"}'").hint().unwrap();
    assert!(hint.contains("Landlock") && hint.contains("Linux 5.13"), "{hint}");
    let bench = Bench::new();
    bench.write("a.tool.ts", "export const execute = 1");
    let nowhere = Compiler::with(std::path::Path::new("/nowhere"), None);
    assert_eq!(
        nowhere.compile(&bench.source("a.tool.ts")).unwrap_err().code().as_str(),
        "compiler_process"
    );
}

#[test]
fn a_child_that_hangs_is_ended() {
    let error = instead("exec sleep 1000");
    assert_eq!(error.code().as_str(), "compiler_timeout", "{error}");
    let bench = Bench::new();
    assert_eq!(bench.result_of("export const execute = () => 'next'"), json!("next"));
}

#[test]
fn a_child_that_lies_about_files_is_not_believed() {
    let answer = |path: &str, seen: &str| {
        format!(
            "cat >/dev/null; echo '{{\"done\":{{\"code\":\"1\",\"exports\":[],\"observed\":[{{\"path\":\"{path}\",\"follow\":\"yes\",\"seen\":{seen}}}],\
             \"repeatable\":true,\"micros\":1,\"confinement\":{{\"landlock\":1,\"missing\":[]}}}}}}'"
        )
    };
    for (path, seen) in [
        ("a.tool.ts", "\"absent\""),
        ("nothing.ts", "\"file\""),
        ("a.tool.ts", "{\"content\":\"00\"}"),
        ("../secret.ts", "\"file\""),
        ("/etc/passwd", "\"file\""),
    ] {
        let error = instead(&answer(path, seen));
        assert_eq!(error.code().as_str(), "tool_digest_mismatch", "{path}: {error}");
    }
}
