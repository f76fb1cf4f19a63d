//! Nothing outside the tool's folder can enter a bundle, however it is named. Each attempt stands beside a control.

use std::fs;

use runner::tool::compile::{CompileError, Difference, Source};
use serde_json::json;

use super::support::{Bench, SECRET, findings};

/// The tool must not compile, and nothing of the secret may be told.
fn refused(bench: &Bench, text: &str) -> String {
    match bench.tool_of(text) {
        Ok(compiled) => {
            assert!(!compiled.code.contains(SECRET), "{text}: the secret is in\n{}", compiled.code);
            panic!("{text}: compiled to\n{}", compiled.code);
        }
        Err(error) => {
            let told = format!("{error:?}");
            assert!(!told.contains(SECRET), "{text}: {told}");
            assert!(matches!(error, CompileError::Source(_)), "{text}: {told}");
            told
        }
    }
}

fn import(specifier: &str) -> String {
    format!("import {{ secret }} from {specifier:?}\nexport const execute = () => secret\n")
}

/// The control: the same import of a file that belongs to the tool.
fn works(bench: &Bench, text: &str) {
    assert_eq!(bench.result_of(text), json!("mine"), "{text}");
}

#[test]
fn paths_that_lead_out() {
    let bench = Bench::new();
    bench.write("sub/mine.ts", "export const secret = 'mine'");
    works(&bench, &import("./sub/../sub/mine"));
    for path in ["../secret", "./../secret.ts", "../../../../../etc/passwd", "./sub/../../secret"] {
        let told = refused(&bench, &import(path));
        assert!(told.contains("only files below tools can be imported"), "{told}");
    }
    // The name of the folder itself is not known inside.
    refused(&bench, &import("../tool/sub/mine"));
}

#[test]
fn absolute_paths_and_urls() {
    let bench = Bench::new();
    bench.write("mine.ts", "export const secret = 'mine'");
    works(&bench, &import("./mine"));
    let secret = bench.outside("secret.ts");
    let mine = bench.tool("mine.ts");
    for path in [&secret, &mine] {
        let path = path.to_str().unwrap();
        refused(&bench, &import(path));
        refused(&bench, &import(&format!("file://{path}")));
        refused(&bench, &import(&format!("FILE:{path}")));
        refused(
            &bench,
            &format!("export const execute = async () => (await import({path:?})).secret"),
        );
        refused(&bench, &format!("export const execute = () => require({path:?}).secret"));
    }
    refused(&bench, &import("/.runner-tool/../secret"));
}

#[test]
fn the_network() {
    let bench = Bench::new();
    for url in ["https://example.org/x.js", "http://localhost/x.js", "//example.org/x.js"] {
        let found = findings(bench.tool_of(&format!(
            "const a = 1\nimport x from '{url}'\nexport const execute = () => x"
        )));
        assert_eq!(
            (found[0].code, found[0].at.line, found[0].at.column),
            ("import_not_allowed", 2, 15)
        );
        assert!(found[0].message.contains("network"), "{found:?}");
    }
}

#[test]
fn data_urls_are_the_authors_own_text() {
    let bench = Bench::new();
    works(&bench, &import("data:text/javascript,export const secret = 'mine'"));
    // From such a module there is no way to any file.
    refused(&bench, &import("data:text/javascript,export * from '../secret.ts'"));
    refused(&bench, &import("data:text/javascript,export * from './mine.ts'"));
}

#[test]
fn links_that_lead_out() {
    let bench = Bench::new();
    bench.write("real.ts", "export const secret = 'mine'");
    bench.link("real.ts", "good.ts");
    works(&bench, &import("./good"));
    bench.link("../secret.ts", "bad.ts");
    let told = refused(&bench, &import("./bad"));
    assert!(told.contains("cannot find './bad'"), "{told}");
    let told = refused(&bench, &import("./bad.ts"));
    assert!(told.contains("it leads out of tools"), "{told}");
    bench.link(bench.outside("secret.ts"), "absolute.ts");
    refused(&bench, &import("./absolute.ts"));
    // An absolute link to one's own file is none that stays below the folder.
    bench.link(bench.tool("real.ts"), "own.ts");
    refused(&bench, &import("./own.ts"));
    bench.link("..", "up");
    refused(&bench, &import("./up/secret"));
    bench.link("/", "root");
    refused(&bench, &import("./root/etc/hostname"));
    bench.link("loop.ts", "loop.ts");
    refused(&bench, &import("./loop.ts"));
    bench.link("/proc/self/root", "magic");
    refused(&bench, &import("./magic/etc/hostname"));
    // Out by name and back by chance.
    bench.link("../.runner-tool/real.ts", "chance.ts");
    refused(&bench, &import("./chance.ts"));
}

#[test]
fn packages_that_lead_out() {
    let bench = Bench::new();
    let package = |name: &str, json: &str| {
        bench.write(&format!("node_modules/{name}/package.json"), json);
        bench.write(&format!("node_modules/{name}/mine.ts"), "export const secret = 'mine'");
    };
    package("good", r#"{"main":"./mine.ts"}"#);
    works(&bench, &import("good"));
    package("main", r#"{"main":"../../../secret.ts"}"#);
    refused(&bench, &import("main"));
    package("exports", r#"{"exports":"./../../../secret.ts"}"#);
    refused(&bench, &import("exports"));
    package("sub", r#"{"exports":{"./*":"./*"}}"#);
    refused(&bench, &import("sub/../../../secret.ts"));
    package("absolute", &format!(r#"{{"main":{:?}}}"#, bench.outside("secret.ts")));
    refused(&bench, &import("absolute"));
    package("browser", r#"{"main":"./mine.ts","browser":{"./mine.ts":"../../../secret.ts"}}"#);
    works(&bench, &import("browser"));
    bench.write("own.ts", "export const secret = 'mine'");
    bench.write("package.json", r##"{"imports":{"#in":"../secret.ts","#mine":"./own.ts"}}"##);
    works(&bench, &import("#mine"));
    refused(&bench, &import("#in"));
}

#[test]
fn node_modules_that_lead_out_or_stand_above() {
    let bench = Bench::new();
    let secret = format!("exports.secret = '{SECRET}'");
    fs::create_dir_all(bench.outside("node_modules/above")).unwrap();
    fs::write(bench.outside("node_modules/above/index.js"), &secret).unwrap();
    refused(&bench, &import("above"));
    bench.link("../node_modules", "node_modules");
    refused(&bench, &import("above"));
    fs::remove_file(bench.tool("node_modules")).unwrap();
    bench.write("node_modules/mine/index.js", "exports.secret = 'mine'");
    bench.link("../../node_modules/above", "node_modules/above");
    works(&bench, &import("mine"));
    refused(&bench, &import("above"));
}

#[test]
fn special_files() {
    let bench = Bench::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.tool("pipe.ts"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    refused(&bench, &import("./pipe.ts"));
    bench.link("/dev/zero", "zero.ts");
    refused(&bench, &import("./zero.ts"));
}

#[test]
fn huge_files() {
    let bench = Bench::new();
    let file = fs::File::create(bench.tool("huge.ts")).unwrap();
    file.set_len(17 << 20).unwrap();
    let told = refused(&bench, &import("./huge.ts"));
    assert!(told.contains("larger than 16 MiB"), "{told}");
    let large = format!("export const secret = 'mine' // {}", "x".repeat(1 << 20));
    bench.write("large.ts", &large);
    works(&bench, &import("./large.ts"));
}

#[test]
fn the_tools_own_file_swapped_for_a_link() {
    let bench = Bench::new();
    let text = "export const execute = () => 'mine'";
    bench.write("a.tool.ts", text);
    let source = bench.source("a.tool.ts");
    assert!(Bench::compiler().compile(&source).is_ok());
    // The same text behind a link is not the same file.
    fs::rename(bench.tool("a.tool.ts"), bench.outside("moved.ts")).unwrap();
    bench.link("../moved.ts", "a.tool.ts");
    match Bench::compiler().compile(&source) {
        Err(CompileError::Changed(changed)) => {
            assert_eq!((changed.path.as_str(), changed.how), ("a.tool.ts", Difference::Kind));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        Source::module(&bench.tool("a.tool.ts"), "a"),
        Err(CompileError::Unreadable { .. })
    ));
}

#[test]
fn a_folder_that_is_a_link() {
    let bench = Bench::new();
    bench.write("a.tool.ts", "export const execute = () => 1");
    std::os::unix::fs::symlink("tool", bench.outside("alias")).unwrap();
    let through = bench.outside("alias").join("a.tool.ts");
    assert!(matches!(Source::module(&through, "a"), Err(CompileError::Unreadable { .. })));
    let mut source = bench.source("a.tool.ts");
    source.folder = bench.outside("alias");
    assert!(matches!(Bench::compiler().compile(&source), Err(CompileError::Unreadable { .. })));
}
