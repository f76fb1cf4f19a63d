// The talk itself: frames as `tests/cases/talk.golden` has them, credit, cancelling, many requests, big bodies.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";

import { KINDS, frame, refuse, run } from "./double.mjs";

const GOLDEN = new URL("../../../tests/cases/talk.golden", import.meta.url);
const tool = (lines) => `export async function execute(args, context) { const { fs, executor, http } = context.platform;\n${lines}\n}`;
const never = () => new Promise(() => {});

// --- the golden file ------------------------------------------------------------------------

/** A tool that says everything the runtime can say, once, in a fixed order. */
const EVERYTHING = tool(`
  context.logger.info('grün', { n: 1 }); context.progress(0.25, 'a quarter');
  await fs.readFile('a.txt'); await fs.readFile('/work/b', { encoding: null, offset: 10, length: 20 });
  await fs.writeFile('w', 'body'); await fs.writeFile('x', '', { flag: 'wx' }); await fs.appendFile('log', 'line');
  await fs.readdir('.'); await fs.stat('a.txt'); await fs.rm('old', { recursive: true, force: true }); await fs.rename('a', 'b'); await fs.mkdir('m', { recursive: true });
  await fs.glob('**/*.ts', { cwd: 'src', dot: true, limit: 10 });
  await executor.execute({ command: 'git', args: ['log', '-n', '5'], cwd: 'sub', env: { LANG: 'C' }, timeout: 1000, stdin: 'in' }); await executor.execute({ line: 'ls | wc -l' });
  await http.fetch('https://api.example/v1', { method: 'POST', headers: { accept: '*/*' }, body: 'q', timeout: 5000 });
  const stop = new AbortController(); const asked = executor.execute({ command: 'sleep', signal: stop.signal }).catch(() => {}); stop.abort(); await asked;
  return { done: true };`);

const chunk = (n) => ({ ok: n, bytes: Buffer.from("ab") });
const EVERY_ANSWER = {
  "file.read": () => chunk({ bytes: 2 }),
  "file.write": () => ({ bytes: 4 }),
  "file.append": () => ({ bytes: 4 }),
  "file.list": () => ({ entries: [] }),
  "file.stat": () => ({ type: "file", size: 1, mtimeMs: 0, mode: 420 }),
  "file.remove": () => ({}),
  "file.rename": () => ({}),
  "file.mkdir": () => ({}),
  "file.glob": () => ({ paths: [], truncated: false }),
  "exec.run": ({ command }) => (command === "sleep" ? never() : chunk({ exitCode: 0, status: "exited", stdoutBytes: 1, stderrBytes: 1, truncated: false, durationMs: 1, call: "c" })),
  "net.fetch": () => chunk({ status: 200, statusText: "OK", url: "https://api.example/v1", headers: [], redirected: false }),
};

/** What the host says, one of each kind. */
const FROM_HOST = [
  ["Start", 16, 0, '{"mode":"run","form":"yaml","name":"sample","file":".runner/tools/sample.yml","args":{"n":1},"config":{},"conversation":null,"workspace":"/work","attempt":1}'],
  ["Chunk", 17, 0, "export const execute = () => 1;"],
  ["End", 18, 0, ""],
  ["Chunk", 17, 3, "bytes"],
  ["Reply", 19, 3, '{"ok":{"bytes":5}}'],
  ["Reply", 19, 4, '{"error":{"code":"access_denied","message":"src/x may not be written","path":"src/x","rule":"readonly/files","suggestion":"ask for files.write","recoverable":false}}'],
  ["Credit", 20, 5, Buffer.from([0, 0, 4, 0])],
  ["Abort", 21, 0, '{"reason":"the caller is gone"}'],
];

function golden(raw) {
  const line = (side, name, kind, id, payload, bytes) =>
    [side, name, kind, id, payload.every((byte) => byte >= 32) && payload.length ? `text ${payload}` : `hex ${payload.toString("hex")}`, bytes.toString("hex")].join("\t");
  const out = [
    "# Frames of the talk between the runtime of tools and the host, for both ends to be tested against.",
    "# side, name, kind, id, payload (`text …` or `hex …`), the frame in hex; separated by tabs.",
    "# Written anew by: BLESS=1 node --test images/runtime/tests/talk.test.mjs",
  ];
  for (const bytes of raw) out.push(line("runtime", KINDS[bytes[4]], bytes[4], bytes.readUInt32LE(5), bytes.subarray(9), bytes));
  for (const [name, kind, id, payload] of FROM_HOST) out.push(line("host", name, kind, id, Buffer.from(payload), frame(kind, id, Buffer.from(payload))));
  return `${out.join("\n")}\n`;
}

test("every frame is as the golden file has it", async () => {
  const seen = await run(EVERYTHING, { answers: EVERY_ANSWER });
  assert.deepEqual(seen.problems, []);
  assert.deepEqual(seen.value, { done: true });
  assert.deepEqual(new Set(seen.frames.map(([name]) => name)), new Set(Object.values(KINDS)));
  const now = golden(seen.raw);
  if (process.env.BLESS) writeFileSync(GOLDEN, now);
  assert.equal(now, readFileSync(GOLDEN, "utf8"));
});

test("a talk cut into single bytes is understood", async () => {
  const seen = await run(tool("return [await fs.readFile('a'), args]"), {
    args: { n: 1 },
    answers: {
      "file.read": async (_, __, { channel, id }) => {
        for (const byte of Buffer.concat([frame(17, id, "slow"), frame(17, id, ""), frame(17, id, "ly"), frame(19, id, { ok: {} })])) {
          channel.write(Buffer.from([byte]));
          await new Promise((go) => setImmediate(go));
        }
        return never();
      },
    },
  });
  assert.deepEqual(seen.value, ["slowly", { n: 1 }]);
});

// --- bodies ---------------------------------------------------------------------------------

test("a body keeps within its credit and arrives whole", async () => {
  let size = 0;
  const answers = { "file.write": (_, body) => ((size = body.length), { bytes: body.length }) };
  const seen = await run(tool("await fs.writeFile('big', new Uint8Array(20_000_000).fill(7)); return 1"), { answers });
  assert.deepEqual(seen.problems, []);
  assert.equal(size, 20_000_000);
});

test("without more credit a body stops, others go on, and a refusal frees it", async () => {
  const seen = await run(tool("const big = fs.writeFile('big', new Uint8Array(1_000_000)).catch((e) => e.code); const small = await fs.exists('x'); context.logger.info('now'); return [small, await big]"), {
    noCredit: true,
    answers: { "file.stat": () => ({ type: "file" }) },
    onNote: (note, { send }) => send(19, 1, refuse("no_space")),
  });
  assert.deepEqual(seen.value, [true, "no_space"]);
  const sent = seen.frames.filter(([name, id]) => name === "Chunk" && id === 1).reduce((sum, [, , length]) => sum + length, 0);
  assert.equal(sent, 256 * 1024);
  assert.equal(seen.frames.filter(([name, id]) => name === "End" && id === 1).length, 1);
});

test("a refusal before the body was sent ends it early", async () => {
  const seen = await run(tool("return [await fs.writeFile('big', new Uint8Array(5_000_000)).catch((e) => e.code), await fs.exists('x')]"), {
    answers: { "early:file.write": () => refuse("access_denied"), "file.stat": () => ({ type: "file" }) },
  });
  assert.deepEqual(seen.value, ["access_denied", true]);
  assert.deepEqual(seen.problems, []);
});

test("a big file comes at speed, byte for byte", async () => {
  const bytes = Buffer.alloc(100_000_000, "0123456789");
  const code = tool("const start = performance.now(); const data = await fs.readFile('big', null); return { rate: data.length / 1e3 / (performance.now() - start), same: data.length === 100_000_000 && data[99_999_999] === 57 && data[65_536] === 54 }");
  const seen = await run(code, { answers: { "file.read": () => ({ ok: { bytes: bytes.length }, bytes }) } });
  assert.equal(seen.value.same, true);
  // The figure is for the reader: a test does not fail by the clock.
  console.log(`# 100 MB at ${Math.round(seen.value.rate)} MB/s`);
});

// --- many, cancelled, aborted ---------------------------------------------------------------

test("thousands of requests at once are all answered, a bounded number under way", async () => {
  let open = 0;
  let most = 0;
  const answers = {
    "file.stat": async ({ path }) => {
      open += 1;
      most = Math.max(most, open);
      await new Promise((go) => setTimeout(go, Math.random() * 3));
      open -= 1;
      return { type: "file", size: Number(path), mtimeMs: 0, mode: 0 };
    },
  };
  const seen = await run(tool("const all = await Promise.all(Array.from({ length: 5000 }, (_, i) => fs.stat(String(i)))); return all.every((s, i) => s.size === i)"), { answers });
  assert.equal(seen.value, true);
  assert.deepEqual(seen.problems, []);
  assert.ok(most > 1 && most <= 64, `${most}`);
});

test("answers come in any order", async () => {
  const answers = { "file.stat": ({ path }) => new Promise((go) => setTimeout(() => go({ type: "file" }), path === "slow" ? 200 : 1)) };
  const seen = await run(tool("const order = []; await Promise.all(['slow', 'fast'].map(async (p) => { await fs.stat(p); order.push(p) })); return order"), { answers });
  assert.deepEqual(seen.value, ["fast", "slow"]);
});

test("a signal cancels one request at once", async () => {
  const seen = await run(
    tool(`const stop = new AbortController(); setTimeout(() => stop.abort(), 20);
      const code = await executor.execute({ command: 'sleep', args: ['9'], signal: stop.signal }).catch((e) => [e.code, e.name]);
      const before = await executor.execute({ command: 'sleep', signal: AbortSignal.abort() }).catch((e) => e.code);
      return [code, before, await fs.exists('x')]`),
    { answers: { "exec.run": never, "file.stat": () => ({ type: "file" }) } },
  );
  assert.deepEqual(seen.value, [["cancelled", "RunnerError"], "cancelled", true]);
  assert.deepEqual(seen.frames.map(([name]) => name).slice(0, 2), ["Request", "Cancel"]);
});

test("the host's abort reaches context.signal and what is under way", async () => {
  const seen = await run(
    tool(`context.logger.info('up'); const reason = new Promise((go) => context.signal.addEventListener('abort', () => go(context.signal.reason)));
      const code = await fs.stat('slow').catch((e) => e.code); const why = await reason; return [code, why.code, why.message, context.signal.aborted]`),
    { answers: { "file.stat": never }, onNote: (_, { abort }) => setTimeout(() => abort("enough"), 30) },
  );
  assert.deepEqual(seen.value, ["cancelled", "cancelled", "enough", true]);
});

test("a finished tool ends at once, a waiting channel does not hold it", async () => {
  const seen = await run(tool("await fs.exists('x'); return 1"), { answers: { "file.stat": () => ({ type: "file" }) } });
  assert.equal(seen.exitCode, 0);
  assert.deepEqual(seen.frames.at(-1)[0], "Result");
});
