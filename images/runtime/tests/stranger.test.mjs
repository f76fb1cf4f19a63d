// Tools as a stranger writes them: whatever they do, the call ends, with a result that says what happened.

import assert from "node:assert/strict";
import test from "node:test";

import { refuse, run } from "./double.mjs";

const body = (lines) => `export async function execute(args, context) { const { fs } = context.platform;\n${lines}\n}`;
const files = {
  "file.read": ({ path }) => (path === "missing" ? refuse("not_found", "no such file", { path }) : { ok: { bytes: 5 }, bytes: Buffer.from("hello") }),
  "file.stat": () => ({ type: "file", size: 5, mtimeMs: 0, mode: 0o644 }),
};
const never = () => new Promise(() => {});

const thrown = {
  "an Error": ["throw new TypeError('wrong')", { name: "TypeError", message: "wrong", code: "tool_failed" }],
  "an Error with a code": ["throw Object.assign(new Error('x'), { code: 'E_MINE', recoverable: true })", { code: "E_MINE", recoverable: true }],
  "a string": ["throw 'just text'", { message: "just text" }],
  null: ["throw null", { message: "the tool threw null" }],
  undefined: ["throw undefined", { message: "the tool threw undefined" }],
  "a Symbol": ["throw Symbol('s')", { message: "the tool threw a symbol: Symbol(s)" }],
  "a BigInt": ["throw 10n", { message: "the tool threw a bigint: 10" }],
  "a plain object": ["throw { message: 'plain', code: 'mine' }", { message: "plain", code: "mine" }],
  "a cyclic object": ["const o = {}; o.self = o; throw o", { message: "a object that cannot be shown" }],
  "throwing getters": ["throw { get message() { throw 1 }, get name() { throw 2 }, get stack() { throw 3 }, get code() { throw 4 } }", {}],
  "a revoked Proxy": ["const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy", {}],
  "an object whose toString throws": ["throw { toString() { throw 1 }, toJSON() { throw 2 } }", {}],
  "a function": ["throw function odd() {}", { name: "odd" }],
  "an Error with an odd message": ["const e = new Error('x'); e.message = { a: 1 }; e.name = 5; throw e", {}],
  "a message of megabytes": ["throw new Error('m'.repeat(50_000_000))", {}],
  "half a surrogate pair": ["throw new Error('\\ud800 and \\\\ud800')", { message: "\ufffd and \\ud800" }],
};
for (const [what, [code, expected]] of Object.entries(thrown)) {
  test(`throws ${what}`, async () => {
    const seen = await run(body(code));
    assert.deepEqual(seen.problems, []);
    assert.equal(typeof seen.error.message, "string");
    assert.notEqual(seen.error.message, "");
    for (const [key, value] of Object.entries(expected)) assert.equal(seen.error[key], value, key);
  });
}

test("a stack names the author's line, the cause, and none of ours", async () => {
  const seen = await run(body("throw new Error('outer', { cause: new RangeError('inner') });"));
  assert.match(seen.error.stack, /^Error: outer\n {4}at .*sample\.mjs:2:7\)?\ncaused by: RangeError: inner\n/);
  assert.doesNotMatch(seen.error.stack, /life\.mjs|node:internal|\/tmp\//);
});

test("an error of the host keeps its words, and the stack of the caller's await", async () => {
  const seen = await run(body("const a = 1;\n  await fs.readFile('missing');"), { answers: files });
  assert.equal(seen.error.name, "RunnerError");
  assert.equal(seen.error.code, "not_found");
  assert.deepEqual(seen.error.data, { path: "missing" });
  assert.equal(seen.error.refused, 1);
  const forged = await run(body("try { await fs.readFile('missing') } catch ({ code }) { throw Object.assign(new Error('x'), { code, refused: 1 }) }"), { answers: files });
  assert.equal(forged.error.code, "not_found");
  assert.equal("refused" in forged.error, false);
  assert.match(seen.error.stack, /^RunnerError: no such file\n {4}at .*sample\.mjs:3:12/);
});

const results = {
  undefined: ["", null],
  null: ["return null", null],
  "a date": ["return new Date(0)", "1970-01-01T00:00:00.000Z"],
  "an Error inside": ["return { e: new RangeError('r') }", { e: { name: "RangeError", message: "r" } }],
  "a toJSON of its own": ["return { toJSON: () => 'mine' }", "mine"],
  "a function as member, which JSON leaves out": ["return { a: 1, f() {} }", { a: 1 }],
  "half a surrogate pair": ["return 'a\\ud800b \\\\ud800'", "a\ufffdb \\ud800"],
  "a key from a prototype": ["return JSON.parse('{\"__proto__\": 1}')", JSON.parse('{"__proto__": 1}')],
};
for (const [what, [code, expected]] of Object.entries(results)) {
  test(`returns ${what}`, async () => {
    const seen = await run(body(code));
    assert.deepEqual(seen.value, expected);
  });
}

const refused = {
  "a BigInt": ["return { n: 1n }", "result_not_json", /BigInt/],
  "a cycle": ["const o = {}; o.o = o; return o", "result_not_json", /circular/],
  "a function": ["return () => 1", "result_not_json", /function/],
  "a Symbol": ["return Symbol.iterator", "result_not_json", /symbol/],
  "a Map": ["return { counts: new Map([[1, 2]]) }", "result_not_json", /a Map at "counts"; return Object\.fromEntries/],
  "a Promise": ["return [fs.exists('x')]", "result_not_json", /a Promise at "0"/],
  bytes: ["return { data: new Uint8Array(3) }", "result_not_json", /bytes at "data"/],
  "a toJSON that throws": ["return { toJSON() { throw new Error('no') } }", "result_not_json", /no/],
  "a revoked Proxy": ["const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return { proxy }", "result_not_json", /./],
  "five million characters": ["return 'x'.repeat(5_000_000)", "result_too_large", /more than 4194304 bytes/],
  "characters that grow in UTF-8": ["return 'ü'.repeat(3_000_000)", "result_too_large", /6000/],
  "what no string can hold": ["return Array(600).fill('x'.repeat(1_000_000))", "result_too_large", /more than 4194304 bytes/],
  "lists in lists": ["let a = []; for (let i = 0; i < 1000; i++) a = [a]; return a", "result_not_json", /nested deeper/],
  "lists in lists without end": ["let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a", "result_not_json", /./],
};
for (const [what, [code, expected, message]] of Object.entries(refused)) {
  test(`cannot return ${what}`, async () => {
    const seen = await run(body(code), { answers: files });
    assert.deepEqual(seen.problems, []);
    assert.equal(seen.error?.code, expected);
    assert.match(seen.error.message, message);
  });
}

test("promises that nobody awaits do not hold the tool, and are counted in the log", async () => {
  const answers = { "file.stat": never };
  const seen = await run(body("fs.stat('a'); fs.stat('b'); setInterval(() => {}, 1000); return 'done'"), { answers });
  assert.equal(seen.value, "done");
  assert.deepEqual(seen.logs, [{ level: "warn", message: "2 requests were still under way when the tool ended: await every promise" }]);
  assert.equal(seen.exitCode, 0);
});

test("a promise that never settles ends when nothing is left to wait for", async () => {
  const seen = await run(body("await new Promise(() => {})"));
  assert.equal(seen.error.code, "never_settled");
  assert.match(seen.error.message, /^execute\(\) waits for something/);
});

test("so does a module that never finishes loading", async () => {
  const seen = await run("await new Promise(() => {}); export const execute = () => 1;");
  assert.equal(seen.error.code, "never_settled");
  assert.match(seen.error.message, /loading the module/);
});

test("an unhandled rejection is the result", async () => {
  const seen = await run(body("Promise.reject(new Error('lost')); await new Promise((go) => setTimeout(go, 5000)); return 1"));
  assert.equal(seen.error.code, "unhandled_rejection");
  assert.equal(seen.error.message, "lost");
});

test("an uncaught exception is the result", async () => {
  const seen = await run(body("setTimeout(() => { throw new Error('late') }, 1); await new Promise((go) => setTimeout(go, 5000)); return 1"));
  assert.equal(seen.error.code, "uncaught_exception");
  assert.match(seen.error.stack, /sample\.mjs:2/);
});

test("process.exit leaves no result, but all that was said before", async () => {
  const seen = await run(body("for (let i = 0; i < 1000; i++) context.logger.info('line ' + i); process.exit(3)"));
  assert.equal(seen.result, undefined);
  assert.equal(seen.exitCode, 3);
  assert.equal(seen.logs.length, 1000);
  assert.equal(seen.logs[999].message, "line 999");
  assert.deepEqual(seen.problems, []);
});

test("process.abort and a signal leave no result and no half frame", async () => {
  const seen = await run(body("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})"));
  assert.equal(seen.result, undefined);
  assert.equal(seen.signal, "SIGKILL");
});

test("prints are untouched, megabytes of them too", async () => {
  const seen = await run(body("console.log('o'.repeat(3_000_000)); console.error('{\"value\":1}'); return 2"));
  assert.equal(seen.stdout.length, 3_000_001);
  assert.equal(seen.stderr, '{"value":1}\n');
  assert.equal(seen.value, 2);
});

test("a flood of log lines is counted, not kept", async () => {
  const seen = await run(body("for (let i = 0; i < 200_000; i++) context.logger.info('line', { i }); return process.memoryUsage().rss"));
  assert.ok(seen.logs.some(({ message }) => /^\d+ lines were dropped/.test(message)));
  assert.ok(seen.logs.length < 100_000);
  assert.equal(typeof seen.value, "number");
});

test("log lines of any kind arrive as text", async () => {
  const lines = `const { logger } = context; const cyclic = {}; cyclic.c = cyclic;
    logger.info(); logger.info(null); logger.info(Symbol('s')); logger.info(cyclic); logger.info('a', 1, 'b'); logger.info('with', { n: 1n });
    logger.warn(new TypeError('oops')); logger.error('failed', new Error('why')); logger.debug('x'.repeat(1e6), { big: 'y'.repeat(1e6) });
    logger.info('deep', (() => { let a = {}; for (let i = 0; i < 5000; i++) a = { a }; return a; })());
    logger.info('half \\ud800'); logger.info('at', new Date(0)); context.progress(NaN); context.progress('1'); context.progress(7, 'done');`;
  const seen = await run(body(lines));
  assert.deepEqual(seen.problems, []);
  assert.equal(seen.value, null);
  assert.deepEqual(seen.logs.slice(0, 6), [
    { level: "info", message: "undefined" },
    { level: "info", message: "null" },
    { level: "info", message: "Symbol(s)" },
    { level: "info", message: "a object that cannot be shown" },
    { level: "info", message: "a 1 b" },
    { level: "info", message: "with", fields: { n: "1" } },
  ]);
  assert.equal(seen.logs[6].message, "TypeError: oops");
  assert.equal(seen.logs[7].fields.error.message, "why");
  assert.equal(seen.logs[10].message, "half \ufffd");
  assert.deepEqual(seen.logs[11], { level: "info", message: 'at "1970-01-01T00:00:00.000Z"' });
  for (const { fields = {} } of seen.logs) assert.equal(Object.prototype.toString.call(fields), "[object Object]");
  assert.deepEqual(seen.progress, [{ fraction: 1, text: "done" }]);
});

const worlds = {
  "JSON": "JSON.parse = JSON.stringify = () => { throw new Error('patched') }",
  "Promise": "const P = Promise; globalThis.Promise = class extends P { then() {} }; P.prototype.then = P.prototype.catch = () => { throw new Error('patched') }",
  "Map and Array": "for (const k of ['get','set','delete','forEach']) Map.prototype[k] = () => { throw new Error('patched') }; for (const k of ['push','shift','slice','join','map','concat']) Array.prototype[k] = () => { throw new Error('patched') }",
  "Buffer": "Buffer.from = Buffer.concat = Buffer.alloc = Buffer.allocUnsafe = Buffer.allocUnsafeSlow = () => { throw new Error('patched') }; for (const k of ['set','subarray','slice']) Uint8Array.prototype[k] = () => { throw new Error('patched') }",
  "strings": "for (const k of ['slice','split','includes','indexOf','startsWith','replace','charCodeAt','toLowerCase']) String.prototype[k] = () => { throw new Error('patched') }",
  "the exits": "process.exit = process.kill = process.reallyExit = process.abort = () => {}",
  "timers and text": "globalThis.setTimeout = globalThis.clearTimeout = () => { throw new Error('patched') }; TextDecoder.prototype.decode = TextEncoder.prototype.encode = () => { throw new Error('patched') }",
  "a polluted toJSON": "Object.prototype.toJSON = function () { return 'polluted' }",
  "polluted names": "Object.prototype.error = { code: 'fake', message: 'fake' }; Object.prototype.body = Object.prototype.path = Object.prototype.encoding = Object.prototype.signal = 'polluted'; Object.prototype.truncated = true",
  "frozen prototypes": "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Error.prototype)",
  "console": "console.log = console.error = () => { throw new Error('patched') }; process.stdout.write = () => { throw new Error('patched') }",
};
for (const [what, code] of Object.entries(worlds)) {
  test(`patched: ${what}; the talk goes on`, async () => {
    const tool = `${code};\nexport async function execute(args, context) { context.logger.info('still here'); const found = await context.platform.fs.readFile('a'); return found + await context.platform.fs.exists('b'); }`;
    const seen = await run(tool, { answers: files });
    assert.deepEqual(seen.problems, []);
    assert.deepEqual(seen.error, undefined);
    assert.equal(seen.value, "hellotrue");
    assert.deepEqual(seen.logs, [{ level: "info", message: "still here" }]);
    assert.equal(seen.signal, null);
  });
}

test("what cannot be survived ends all the same", async () => {
  const seen = await run(body("process.nextTick = () => {}; queueMicrotask = () => {}; process.emit = () => true; await fs.stat('a'); return 1"), { answers: files, killAfter: 10_000 });
  assert.equal(seen.signal, null);
});

test("closing descriptor 3 ends the talk", async () => {
  const seen = await run(body("(await import('node:fs')).closeSync(3); await fs.stat('a'); return 1"), { answers: files, onStart: ({ channel, child }) => channel.on("end", () => child.kill("SIGKILL")) });
  assert.equal(seen.result, undefined);
  assert.equal(seen.sawEnd, true);
});

test("destroying the socket refuses what waits, and ends", async () => {
  const code = "const p = fs.stat('a').catch((e) => console.log(e.code)); for (const h of process._getActiveHandles()) if (h !== process.stdout && h !== process.stderr) h.destroy?.(); await p; setInterval(() => {}, 1000); await new Promise(() => {})";
  const seen = await run(body(code), { answers: { "file.stat": never } });
  assert.equal(seen.result, undefined);
  assert.equal(seen.exitCode, 70);
});

test("a host that goes away ends the tool", async () => {
  const seen = await run(body("context.logger.info('up'); setInterval(() => {}, 1000); await new Promise(() => {})"), { onNote: (_, { channel }) => channel.destroy() });
  assert.equal(seen.exitCode, 70);
});

test("a host that talks nonsense ends the tool", async () => {
  for (const [kind, id, payload] of [[99, 0, ""], [19, 7, { ok: {} }], [19, 0, "not json"], [16, 0, {}]]) {
    const seen = await run(body("setInterval(() => {}, 1000); await new Promise(() => {})"), { onStart: ({ send }) => send(kind, id, payload) });
    assert.equal(seen.exitCode, 70);
  }
});

test("child processes and worker threads work, without the channel", async () => {
  const code = `const { execFileSync, spawnSync } = await import('node:child_process');
    const { Worker } = await import('node:worker_threads');
    const listing = execFileSync('/bin/ls', ['-l', '/proc/self/fd'], { encoding: 'utf8' });
    const shell = spawnSync('/bin/sh', ['-c', 'echo junk >&3'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    const sum = await new Promise((go) => new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true }).on('message', go));
    return { three: / 3 -> socket/.test(listing), shell: shell.status !== 0, sum };`;
  const seen = await run(body(code));
  assert.deepEqual(seen.value, { three: false, shell: true, sum: 42 });
});

test("an endless loop is the host's to end, and leaves no half frame", async () => {
  const seen = await run(body("context.logger.info('in'); await fs.stat('a'); for (;;);"), { answers: files, onNote: (_, { child }) => setTimeout(() => child.kill("SIGKILL"), 300) });
  assert.equal(seen.result, undefined);
  assert.equal(seen.signal, "SIGKILL");
  assert.deepEqual(seen.problems, []);
});

test("a code that cannot be loaded says so", async () => {
  const syntax = await run("export const execute = (;");
  assert.equal(syntax.error.code, "load_failed");
  assert.equal(syntax.error.name, "SyntaxError");
  const missing = await run("import 'left-pad'; export const execute = () => 1;");
  assert.equal(missing.error.code, "ERR_MODULE_NOT_FOUND");
  const nothing = await run("export const other = 1;");
  assert.equal(nothing.error.code, "invalid_tool");
});
