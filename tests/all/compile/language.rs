//! TypeScript of today, as it runs on Node 20.

use serde_json::json;

use runner::tool::compile::{Language, Part};

use super::support::Bench;

fn gives(text: &str, expected: serde_json::Value) {
    let bench = Bench::new();
    assert_eq!(bench.result_of(text), expected, "{text}");
}

#[test]
fn enums() {
    gives(
        "enum Plain { A, B = 5, C }
         enum Words { A = 'a', B = 'b' }
         const enum Inline { X = 1 << 3, Y = X | 1 }
         declare enum Elsewhere { Z }
         export function execute() { return [Plain.C, Plain[5], Words.B, Inline.Y, Object.keys(Plain).length] }",
        json!([6, "B", "b", 9, 6]),
    );
}

#[test]
fn const_enums_across_files() {
    let bench = Bench::new();
    bench.write(
        "e.ts",
        "export const enum Level { Low = 1, High = 2 } export enum Other { A = 'x' }",
    );
    let text = "import { Level, Other } from './e';
                export const execute = () => [Level.High, Other.A]";
    assert_eq!(bench.result_of(text), json!([2, "x"]));
}

#[test]
fn namespaces() {
    gives(
        "namespace Shape { export const side = 3; export namespace Deep { export const f = () => side * 2 } }
         namespace Shape { export const more = Shape.Deep.f() + 1 }
         export const execute = () => [Shape.side, Shape.Deep.f(), Shape.more]",
        json!([3, 6, 7]),
    );
}

#[test]
fn legacy_decorators_without_metadata() {
    gives(
        "const seen: string[] = []
         function named(name: string) { return (target: unknown, key?: string) => { seen.push(name + ':' + (key ?? 'class')) } }
         function twice(_: object, __: string, d: PropertyDescriptor) { const f = d.value; d.value = function (...a: unknown[]) { return 2 * f.apply(this, a) } }
         @named('c') class Box { @named('p') size: number = 1; constructor(@named('x') private readonly n: number) {} @twice grow(by: number) { return this.n + by } }
         export const execute = () => [new Box(3).grow(4), seen, 'metadata' in Reflect]",
        json!([14, ["p:size", "x:class", "c:class"], false]),
    );
}

#[test]
fn accessors_and_parameter_properties() {
    gives(
        "class Cell { accessor value = 1; static accessor count = 7; constructor(public readonly a: string, protected b = 2) {} sum() { return this.value + this.b } }
         export const execute = () => {
             const cell = new Cell('q'); cell.value = 40
             const own = Object.getOwnPropertyDescriptor(Cell.prototype, 'value')
             return [cell.sum(), cell.a, Cell.count, typeof own?.get]
         }",
        json!([42, "q", 7, "function"]),
    );
}

#[test]
fn using_and_await_using() {
    gives(
        "const log: string[] = []
         const sync = (name: string): Disposable => ({ [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { log.push(name) } }) as Disposable
         const later = (name: string): AsyncDisposable => ({ async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() { await 0; log.push(name) } }) as AsyncDisposable
         export async function execute() {
             { using a = sync('a'); using b = sync('b'); log.push('in') }
             { await using c = later('c'); log.push('in') }
             try { using d = sync('d'); throw new Error('x') } catch { log.push('caught') }
             return log
         }",
        json!(["in", "b", "a", "in", "c", "d", "caught"]),
    );
}

#[test]
fn the_same_in_plain_javascript() {
    let bench = Bench::new();
    let text = "const log = []
        class Cell { accessor value = 3 }
        export function execute() { { using a = { [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { log.push('gone') } }; log.push(new Cell().value) } return [log, /[\\p{L}--[a-z]]/v.test('a')] }";
    let compiled = bench.write("a.tool.js", text).compile("a.tool.js").unwrap();
    assert_eq!(bench.execute(&compiled), json!([[3, "gone"], false]));
}

#[test]
fn types_vanish() {
    gives(
        "import type { Stats } from 'node:fs'
         import { type Dirent, existsSync } from 'node:fs'
         type Rec<T> = { [K in keyof T]: T[K] extends infer U ? U : never }
         interface Shape<in out T extends readonly unknown[]> { items: T }
         abstract class Base<out T> { abstract get(): T; declare ghost: string }
         class One extends Base<number> { override get() { return 1 } }
         function id<const T>(x: T): T { return x }
         function over(a: string): string; function over(a: number): number; function over(a: any) { return a }
         const palette = { red: [1, 2, 3], green: '#0f0' } satisfies Record<string, string | number[]>
         function assert(x: unknown): asserts x is string {}
         let maybe: string | undefined = id('y')!
         export const execute = () => [palette.green.length, over(2), (<any>maybe) as string, new One().get(), existsSync('/'), 1_000, maybe?.at(0) ?? '', 'ghost' in new One()]",
        json!([4, 2, "y", 1, true, 1000, "y", false]),
    );
}

#[test]
fn top_level_await_and_dynamic_imports() {
    let bench = Bench::new();
    bench.write("later.ts", "export const late = await Promise.resolve('late'); export default 5");
    let text = "const first = await Promise.resolve(1)
                export async function execute() { const m = await import('./later'); return [first, m.late, m.default] }";
    let compiled = bench.tool_of(text).unwrap();
    assert_eq!(bench.execute(&compiled), json!([1, "late", 5]));
    assert!(!compiled.code.contains("import("), "{}", compiled.code);
}

#[test]
fn node_built_ins_stay_with_node() {
    let text = "import fs from 'fs'; import { join } from 'node:path'; import * as os from 'os'
                import { readFile } from 'fs/promises'
                export const execute = async () => [typeof fs.statSync, join('a', 'b'), typeof os.cpus, typeof readFile, typeof (await import('node:url')).pathToFileURL]";
    gives(text, json!(["function", "a/b", "function", "function", "function"]));
}

#[test]
fn older_forms_of_imports() {
    let bench = Bench::new();
    bench.write(
        "c.cts",
        "const path = require('node:path'); exports.base = (p: string): string => path.basename(p)",
    );
    let text = "import { base } from './c.cjs'; import { createRequire } from 'node:module'
                const os = createRequire(import.meta.url)('os')
                export const execute = () => [base('/a/b'), typeof os.cpus, typeof import.meta.url]";
    assert_eq!(bench.result_of(text), json!(["b", "function", "string"]));
}

#[test]
fn zod_is_the_runtimes() {
    let bench = Bench::new();
    let text = "import { z } from 'zod'; import * as v4 from 'zod/v4'
                export const tool = { parameters: z.object({}), v4 }";
    let compiled = bench.tool_of(text).unwrap();
    let url = "\"file:///.runner-guest/runtime/zod.mjs\"";
    assert!(compiled.code.contains(url), "{}", compiled.code);
    assert!(!compiled.code.contains("from \"zod"), "{}", compiled.code);
    // One of its own wins.
    bench
        .write(
            "node_modules/zod/package.json",
            r#"{"name":"zod","type":"module","exports":{".":"./i.js","./v4":"./i.js"}}"#,
        )
        .write("node_modules/zod/i.js", "export const z = { object: () => 'own' }");
    let compiled = bench.tool_of(text).unwrap();
    assert!(!compiled.code.contains(url) && compiled.code.contains("own"), "{}", compiled.code);
}

#[test]
fn json_is_imported() {
    let bench = Bench::new();
    bench.write("data.json", r#"{"name":"n","list":[1,{"a":null}],"odd key":true}"#);
    let text = "import data, { name } from './data.json' with { type: 'json' }
                import again from './data.json'
                export const execute = () => [data, name, again === data]";
    let expected = json!([{"name":"n","list":[1,{"a":null}],"odd key":true}, "n", true]);
    assert_eq!(bench.result_of(text), expected);
}

#[test]
fn code_of_yaml_exports_execute_in_any_form() {
    for (code, exports) in [
        ("export function execute(args: unknown) { return 7 }\n", "execute"),
        ("export const execute = async (): Promise<number> => 7;\n", "execute"),
        ("export default async function () { return 7 }\n", "default"),
        ("export default { execute: () => 7 }\n", "default"),
        ("const run = () => 7\nexport { run as execute }\n", "execute"),
        ("import { seven } from './lib/seven.js'\nexport const execute = () => seven\n", "execute"),
    ] {
        let bench = Bench::new();
        bench.write("lib/seven.ts", "export const seven: number = 7");
        let compiled = Bench::compiler().compile(&bench.yaml("name: a\n", code, 2)).unwrap();
        assert_eq!(bench.execute(&compiled), json!(7), "{code}");
        assert_eq!(compiled.exports, [exports], "{code}");
    }
}

#[test]
fn code_of_yaml_can_be_javascript() {
    let bench = Bench::new();
    let code = "export const execute = () => 1 < 2 > (0)\n";
    let mut source = bench.yaml("name: a\n", code, 4);
    if let Part::Code { language, .. } = &mut source.part {
        *language = Language::JavaScript;
    }
    assert_eq!(bench.execute(&Bench::compiler().compile(&source).unwrap()), json!(true));
}

#[test]
fn a_stack_names_the_authors_file_line_and_column() {
    let bench = Bench::new();
    bench.write(
        "lib/deep.ts",
        "export enum E { A }\n\nexport function fail(): never {\n  throw new Error('deep')\n}\n",
    );
    let text = "import { fail } from './lib/deep'\ntype X = string\n\nexport function execute() {\n    fail()\n}\n";
    let compiled = bench.tool_of(text).unwrap();
    let ran = bench.node(&compiled);
    assert!(ran.err.contains("tools/lib/deep.ts:4:9"), "{}", ran.err);
    assert!(ran.err.contains("tools/a.tool.ts:5:5"), "{}", ran.err);
}

#[test]
fn a_stack_names_the_line_and_column_of_the_yaml_file() {
    let bench = Bench::new();
    let code = "type X = string\n\nexport function execute(): X {\n  const text = `a\n  b`\n  throw new Error(text)\n}\n";
    let source = bench.yaml("name: a\ndescription: b\n", code, 6);
    let compiled = Bench::compiler().compile(&source).unwrap();
    let ran = bench.node(&compiled);
    // The third line of the file is `code: |`; the text of the template keeps its own indentation.
    assert!(ran.err.contains("tools/a.yml:9:15"), "{}", ran.err);
    assert!(ran.err.contains("Error: a\n  b"), "{}", ran.err);
}

#[test]
fn an_absolute_name_is_shown_as_it_is() {
    let bench = Bench::new();
    bench.write("50% of #1.tool.ts", "export const execute = () => { throw new Error('x') }");
    let path = bench.tool("50% of #1.tool.ts");
    let shown = path.to_str().unwrap();
    let source = runner::tool::compile::Source::module(&path, shown).unwrap();
    let ran = bench.node(&Bench::compiler().compile(&source).unwrap());
    assert!(ran.err.contains(&format!("{shown}:1:38")), "{}", ran.err);
}

#[test]
fn a_tsconfig_is_not_looked_at() {
    let bench = Bench::new();
    std::fs::write(bench.outside("tsconfig.json"), "{ not json").unwrap();
    bench.write(
        "tsconfig.json",
        r#"{"compilerOptions":{"paths":{"x":["./y.ts"]}},"extends":"../../etc/passwd"}"#,
    );
    bench.write("y.ts", "export default 1");
    assert_eq!(bench.result_of("export const execute = () => 3"), json!(3));
    assert!(bench.tool_of("import y from 'x'; export const execute = () => y").is_err());
}
