// `context.platform`: what each call asks of the host, and what the tool gets back.

import assert from "node:assert/strict";
import test from "node:test";

import { refuse, run } from "./double.mjs";

const tool = (lines) => `export async function execute(args, context) { const { fs, executor, http } = context.platform;\n${lines}\n}`;
const ok = (value) => () => value;

/** Runs lines and returns the requests, without ids, and the value. */
async function asked(lines, answers, options) {
  const seen = await run(tool(lines), { answers, ...options });
  assert.deepEqual(seen.problems, []);
  return { ...seen, requests: seen.requests.map(({ method, params, body }) => [method, params, body]) };
}

test("reading: text, bytes, ranges, encodings", async () => {
  const answers = { "file.read": ({ path }) => ({ ok: {}, bytes: path === "bin" ? Buffer.from([0xff, 0x00]) : Buffer.from("\ufeffgrün") }) };
  const { value, requests } = await asked(
    `const odd = await fs.readFile('bin').catch((e) => [e.code, e.path]);
     return [await fs.readFile('a'), await fs.readFile('a', 'utf-8'), (await fs.readFile('a', null)).length, await fs.readFile('bin', 'hex'),
       await fs.readFile('bin', { encoding: 'base64', offset: 1, length: 5 }), odd, await fs.readFile(new URL('file:///work/a%20b')),
       await fs.readFile('a', 'nonsense').catch((e) => e.code), await fs.readFile(7).catch((e) => e.code), await fs.readFile('a', { offset: -1 }).catch((e) => e.code)]`,
    answers,
  );
  assert.deepEqual(value, ["\ufeffgrün", "\ufeffgrün", 8, "ff00", "/wA=", ["not_text", "bin"], "\ufeffgrün", "invalid_argument", "invalid_argument", "invalid_argument"]);
  assert.deepEqual(requests[5], ["file.read", { path: "bin", offset: 1, length: 5 }, false]);
  assert.deepEqual(requests[6], ["file.read", { path: "/work/a b" }, false]);
});

test("writing: text, bytes, flags", async () => {
  const bodies = [];
  const keep = (params, body) => (bodies.push([params, body.toString("latin1")]), { bytes: body.length });
  const { requests } = await asked(
    `await fs.writeFile('a', 'grün'); await fs.writeFile('b', new Uint8Array([1, 2])); await fs.writeFile('c', 'ff00', 'hex'); await fs.writeFile('d', '', { flag: 'wx' });
     await fs.writeFile('e', 'x', { flag: 'a' }); await fs.appendFile('f', new Uint16Array([513]).buffer); await fs.copyFile('g', 'h', { exclusive: true });
     for (const bad of [() => fs.writeFile('a', 5), () => fs.writeFile('a', null), () => fs.writeFile('a', 'x', { flag: 'r+' })]) await bad().then(() => { throw new Error('accepted') }, () => {});`,
    { "file.write": keep, "file.append": keep, "file.read": () => ({ ok: {}, bytes: Buffer.from("copy") }) },
  );
  assert.deepEqual(bodies, [
    [{ path: "a" }, "gr\u00c3\u00bcn"],
    [{ path: "b" }, "\u0001\u0002"],
    [{ path: "c" }, "\u00ff\u0000"],
    [{ path: "d", exclusive: true }, ""],
    [{ path: "e" }, "x"],
    [{ path: "f" }, "\u0001\u0002"],
    [{ path: "h", exclusive: true }, "copy"],
  ]);
  assert.deepEqual(requests.map(([method]) => method), ["file.write", "file.write", "file.write", "file.write", "file.append", "file.append", "file.read", "file.write"]);
});

test("folders, stat, exists, remove, rename, glob", async () => {
  const answers = {
    "file.list": ok({ entries: [{ name: "a", type: "file" }, { name: "d", type: "dir" }] }),
    "file.stat": ({ path }) => (path === "gone" ? refuse("not_found") : path === "secret" ? refuse("access_denied") : { type: "dir", size: 1, mtimeMs: 1000, mode: 0o755 }),
    "file.mkdir": ok({}), "file.remove": ok({}), "file.rename": ok({}),
    "file.glob": ({ limit }) => ({ paths: ["x", "y"], truncated: limit === undefined }),
  };
  const { value, requests, logs } = await asked(
    `const [a, d] = await fs.readdir('.', { withFileTypes: true }); const s = await fs.stat('d'); const paths = await fs.glob('**/*.ts', { cwd: 'src', dot: true });
     await fs.mkdir('m', { recursive: true }); await fs.rm('r', { recursive: true, force: true }); await fs.unlink('u'); await fs.rename('o', 'n'); await fs.glob('*', { limit: 2 });
     return [await fs.readdir('.'), a.name, a.isFile(), a.isDirectory(), d.isDirectory(), s.isDirectory(), s.isFile(), s.mtime, s.size, paths, paths.truncated,
       await fs.exists('gone'), await fs.exists('d'), await fs.exists('secret').catch((e) => e.code), await fs.readdir('.', { recursive: true }).catch((e) => e.code)]`,
    answers,
  );
  assert.deepEqual(value, [["a", "d"], "a", true, false, true, true, false, "1970-01-01T00:00:01.000Z", 1, ["x", "y"], true, false, true, "access_denied", "invalid_argument"]);
  assert.deepEqual(requests.slice(2, 8), [
    ["file.glob", { pattern: "**/*.ts", cwd: "src", dot: true }, false],
    ["file.mkdir", { path: "m", recursive: true }, false],
    ["file.remove", { path: "r", recursive: true, force: true }, false],
    ["file.remove", { path: "u" }, false],
    ["file.rename", { from: "o", to: "n" }, false],
    ["file.glob", { pattern: "*", limit: 2 }, false],
  ]);
  assert.match(logs[0].message, /was cut short after 2/);
});

test("commands: every form, and streams told apart", async () => {
  const answers = {
    "exec.run": (_, body) => ({ ok: { exitCode: 1, status: "exited", stdoutBytes: 3, stderrBytes: 4, truncated: false, durationMs: 5, call: "c1" }, bytes: Buffer.from(`out${body ?? "err!"}`) }),
  };
  const { value, requests } = await asked(
    `const first = await executor.execute({ command: 'yarn', args: ['test', 5], cwd: '/work', env: { A: 1, B: undefined }, timeout: 1000, stdin: 'in!!' });
     await executor.execute('git', ['log'], { cwd: 'sub' }); await executor.execute('git status --short'); await executor.execute('ls', { timeout: 5 }); await executor.execute({ line: 'a | b' });
     await executor.execute('my tool', []); const bytes = await executor.execute({ command: 'x', encoding: null });
     const refused = []; for (const bad of [[{}], [null], [{ command: '' }], [{ command: 'a', args: 'b' }], [{ command: 'a', args: [null] }], [{ line: 'a', args: [] }], [{ command: 'a', timeout: -1 }], ['a', [], 5], [{ command: 'a', env: { X: {} } }]])
       refused.push(await executor.execute(...bad).then(() => 'accepted', (e) => e.code));
     return { first, bytes: bytes.stdout instanceof Uint8Array, refused }`,
    answers,
  );
  assert.deepEqual(value.first, { stdout: "out", stderr: "in!!", exitCode: 1, status: "exited", signal: null, truncated: false, durationMs: 5, call: "c1" });
  assert.equal(value.bytes, true);
  assert.deepEqual(new Set(value.refused), new Set(["invalid_argument"]));
  assert.deepEqual(requests, [
    ["exec.run", { command: "yarn", args: ["test", "5"], cwd: "/work", env: { A: "1" }, timeoutMs: 1000 }, true],
    ["exec.run", { command: "git", args: ["log"], cwd: "sub" }, false],
    ["exec.run", { line: "git status --short" }, false],
    ["exec.run", { command: "ls", args: [], timeoutMs: 5 }, false],
    ["exec.run", { line: "a | b" }, false],
    ["exec.run", { command: "my tool", args: [] }, false],
    ["exec.run", { command: "x", args: [] }, false],
  ]);
});

test("requests over the net", async () => {
  const answers = {
    "net.fetch": ({ url }, body) =>
      url.endsWith("/denied")
        ? refuse("net_denied", "not allowed", { rule: "tool/net", suggestion: "ask for it" })
        : { ok: { status: 201, statusText: "Created", url, headers: [["Content-Type", "application/json"], ["Set-Cookie", "a=1"], ["set-cookie", "b=2"], ["X-A", "1"], ["x-a", "2"]], redirected: false }, bytes: Buffer.from(JSON.stringify({ got: body?.toString() ?? null })) },
  };
  const { value, requests } = await asked(
    `const r = await http.fetch(new URL('https://api.example/v1'), { method: 'post', headers: { 'X-Key': 'v' }, body: 'hi', timeout: 9, redirect: 'manual' });
     const p = await http.fetch('https://api.example/form', { method: 'PATCH', headers: [['a', 'b']], body: new URLSearchParams({ q: '1 2' }) });
     const denied = await http.fetch('https://api.example/denied').catch((e) => ({ code: e.code, rule: e.rule, suggestion: e.suggestion, message: e.message, isError: e instanceof Error, name: e.name }));
     return { ok: r.ok, status: r.status, text: await r.text(), json: await r.json(), size: (await r.arrayBuffer()).byteLength, bytes: (await r.bytes()).length, type: r.headers.get('CONTENT-type'),
       none: r.headers.get('no'), has: r.headers.has('X-A'), joined: r.headers.get('x-a'), cookies: r.headers.getSetCookie(), names: [...r.headers.keys()], pairs: [...r.headers].length, form: await p.json(), denied,
       bad: await http.fetch('https://x', { redirect: 'sideways' }).catch((e) => e.code) }`,
    answers,
  );
  assert.deepEqual(value, {
    ok: true, status: 201, text: '{"got":"hi"}', json: { got: "hi" }, size: 12, bytes: 12, type: "application/json", none: null, has: true, joined: "1, 2",
    cookies: ["a=1", "b=2"], names: ["content-type", "set-cookie", "x-a"], pairs: 3, form: { got: "q=1+2" },
    denied: { code: "net_denied", rule: "tool/net", suggestion: "ask for it", message: "not allowed", isError: true, name: "RunnerError" },
    bad: "invalid_argument",
  });
  assert.deepEqual(requests[0], ["net.fetch", { method: "POST", url: "https://api.example/v1", headers: [["X-Key", "v"], ["content-type", "text/plain;charset=UTF-8"]], timeoutMs: 9, redirect: "manual" }, true]);
  assert.equal(requests[1][1].headers[1][1], "application/x-www-form-urlencoded;charset=UTF-8");
  assert.deepEqual(requests[2][1], { method: "GET", url: "https://api.example/denied", headers: [], redirect: "follow" });
});

test("the rest of the context", async () => {
  const seen = await run(
    `export async function execute(args, { config, conversation, workspace, platform, signal, permissions, ...rest }) {
       const { readFile } = platform.fs; let frozen = 0;
       for (const change of [() => { config.a.b = 2 }, () => { platform.fs.readFile = 1 }, () => { conversation.id = 'x' }]) try { change() } catch { frozen += 1 }
       return { config, conversation, workspace, frozen, aborted: signal.aborted, permissions: permissions === undefined, rest: Object.keys(rest).sort(), detached: await readFile('x') } }`,
    { job: { config: { a: { b: 1 } }, conversation: { id: "c", workingDirectory: "/work/sub" }, workspace: "/work" }, answers: { "file.read": () => ({ ok: {}, bytes: Buffer.from("d") }) } },
  );
  assert.deepEqual(seen.value, {
    config: { a: { b: 1 } }, conversation: { id: "c", workingDirectory: "/work/sub" }, workspace: "/work", frozen: 3, aborted: false, permissions: true, rest: ["logger", "progress"], detached: "d",
  });
});

test("text that is no Unicode is refused before it is sent", async () => {
  const { value, requests } = await asked("return [await fs.stat('a\\ud800').catch((e) => e.code), await fs.stat('a'.repeat(2_000_000)).catch((e) => e.code)]", {});
  assert.deepEqual(value, ["invalid_argument", "too_large"]);
  assert.deepEqual(requests, []);
});
