//! Packages of the tool's own `node_modules`, of every shape that package managers leave.

use serde_json::json;

use super::support::{Bench, findings};

#[test]
fn common_js_packages() {
    let bench = Bench::new();
    bench
        .write("node_modules/old/package.json", r#"{"name":"old","main":"./lib/main"}"#)
        .write("node_modules/old/lib/main.js", "const dep = require('dep'); const fs = require('fs'); exports.a = dep(1); exports.has = typeof fs.readFileSync; exports.dir = typeof __dirname; Object.defineProperty(exports, '__esModule', { value: true }); exports.default = 'd'")
        .write("node_modules/dep/index.js", "module.exports = function (n) { return n + 1 }; module.exports.extra = 5")
        .write("node_modules/data/package.json", r#"{"name":"data","main":"d.json"}"#)
        .write("node_modules/data/d.json", "[1,2]");
    let text = "import old, { a, has } from 'old'; import dep from 'dep'; import data from 'data'
                export const execute = () => [old, a, has, dep(4), dep.extra, data]";
    assert_eq!(bench.result_of(text), json!(["d", 2, "function", 5, 5, [1, 2]]));
}

#[test]
fn optional_requires_fail_when_they_run() {
    let bench = Bench::new();
    bench.write(
        "node_modules/opt/index.js",
        "let x; try { x = require('not-installed') } catch (e) { x = e.code } module.exports = x",
    );
    let text = "import x from 'opt'; export const execute = () => x";
    assert_eq!(bench.result_of(text), json!("MODULE_NOT_FOUND"));
}

#[test]
fn exports_maps() {
    let bench = Bench::new();
    bench
        .write(
            "node_modules/@s/map/package.json",
            r##"{"name":"@s/map","exports":{".":{"types":"./t.d.ts","import":"./i.mjs","require":"./r.cjs"},"./sub/*":"./sub/*.mjs","./node":{"browser":"./b.mjs","node":"./n.mjs"},"./package.json":"./package.json"},"imports":{"#in":"./inner.mjs"}}"##,
        )
        .write("node_modules/@s/map/i.mjs", "import inner from '#in'; export const kind = 'import' + inner")
        .write("node_modules/@s/map/r.cjs", "exports.kind = 'require'")
        .write("node_modules/@s/map/inner.mjs", "export default '!'")
        .write("node_modules/@s/map/n.mjs", "export default 'node'")
        .write("node_modules/@s/map/sub/x.mjs", "export default 'x'")
        .write("node_modules/@s/map/hidden.mjs", "export default 'hidden'")
        .write("node_modules/user/index.js", "module.exports = require('@s/map').kind");
    let text = "import { kind } from '@s/map'; import n from '@s/map/node'; import x from '@s/map/sub/x'; import viaRequire from 'user'
                export const execute = () => [kind, n, x, viaRequire]";
    assert_eq!(bench.result_of(text), json!(["import!", "node", "x", "require"]));
    let found = findings(
        bench.tool_of("import h from '@s/map/hidden.mjs'; export const execute = () => h"),
    );
    assert_eq!(found[0].code, "import_not_found");
    assert_eq!(found[0].help.as_deref(), Some("the package does not export that path"));
}

#[test]
fn nested_packages_and_node_modules_of_folders() {
    let bench = Bench::new();
    bench
        .write("node_modules/a/index.js", "exports.v = require('b')")
        .write("node_modules/a/node_modules/b/index.js", "module.exports = 'inner'")
        .write("node_modules/b/index.js", "module.exports = 'outer'")
        .write("lib/node_modules/b/index.js", "module.exports = 'lib'")
        .write("lib/use.ts", "import b from 'b'; export { b }");
    let text = "import { v } from 'a'; import b from 'b'; import { b as lib } from './lib/use'
                export const execute = () => [v, b, lib]";
    assert_eq!(bench.result_of(text), json!(["inner", "outer", "lib"]));
}

#[test]
fn links_inside_the_folder_as_pnpm_makes_them() {
    let bench = Bench::new();
    let store = "node_modules/.pnpm/p@1.0.0/node_modules";
    bench
        .write(
            &format!("{store}/p/package.json"),
            r#"{"name":"p","version":"1.0.0","main":"index.js"}"#,
        )
        .write(&format!("{store}/p/index.js"), "module.exports = require('q') + 1")
        .write("node_modules/.pnpm/q@2.0.0/node_modules/q/index.js", "module.exports = 41")
        .link("../../q@2.0.0/node_modules/q", &format!("{store}/q"))
        .link(".pnpm/p@1.0.0/node_modules/p", "node_modules/p");
    assert_eq!(bench.result_of("import p from 'p'; export const execute = () => p"), json!(42));
    // A file with two names, as its store makes them.
    let twice = bench.tool("node_modules/twice.js");
    std::fs::write(bench.outside("store.js"), "export default 'two names'").unwrap();
    std::fs::hard_link(bench.outside("store.js"), twice).unwrap();
    let text = "import t from './node_modules/twice.js'; export const execute = () => t";
    assert_eq!(bench.result_of(text), json!("two names"));
}

#[test]
fn typescript_in_packages_and_relative_spellings() {
    let bench = Bench::new();
    bench
        .write("lib/index.ts", "export const viaIndex: number = 1")
        .write("lib/js.ts", "export const asJs = 2")
        .write("lib/m.mts", "export const asMjs = 3")
        .write("lib/plain.cjs", "exports.c = 4")
        .write("node_modules/ts/package.json", r#"{"name":"ts","main":"src/main.ts"}"#)
        .write("node_modules/ts/src/main.ts", "export const n = 5 as number");
    let text = "import { viaIndex } from './lib'; import { asJs } from './lib/js.js'; import { asMjs } from './lib/m.mjs'
                import { c } from './lib/plain.cjs'; import { n } from 'ts'; import { asJs as again } from './lib/js.ts'
                export const execute = () => [viaIndex, asJs, asMjs, c, n, again]";
    assert_eq!(bench.result_of(text), json!([1, 2, 3, 4, 5, 2]));
}

#[test]
fn what_no_module_can_hold_is_said() {
    let bench = Bench::new();
    bench.write("node_modules/native/index.js", "module.exports = require('./build/x.node')");
    bench.write("node_modules/native/build/x.node", "\u{7f}ELF");
    let found = findings(bench.tool_of("import n from 'native'; export const execute = () => n"));
    assert_eq!(found[0].code, "file_unusable", "{found:?}");
    assert!(found[0].message.contains("a native add-on cannot be a part"), "{found:?}");
    assert_eq!(found[0].file, "tools/node_modules/native/index.js");
}
