// A runtime that is started long before its job: it rehearses, leaves nothing behind, and sleeps.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { run } from "./double.mjs";

const CODE = `import { readdirSync } from "node:fs";
export async function execute(args, context) {
  const text = await context.platform.fs.readFile("a");
  return { text, beside: readdirSync(new URL(".", import.meta.url)), env: Object.keys(process.env) };
}`;
const answers = { "file.read": () => ({ ok: { bytes: 2 }, bytes: Buffer.from("ab") }) };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Processor time of all its threads together, in nanoseconds. */
const spent = (pid) =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => BigInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]))
    .reduce((all, one) => all + one, 0n);

/** Whether no thread of it runs or waits for a processor: on a busy machine one may wait for long. */
const rests = (pid) =>
  readdirSync(`/proc/${pid}/task`).every((thread) => readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8").split(") ").at(-1)[0] === "S");

/** Waits until a process sleeps: it rests, and has used no time for a while. */
async function asleep({ pid }) {
  for (let before; before !== spent(pid) || !rests(pid); await pause(500)) before = spent(pid);
}

async function inFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), "wait-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("it sleeps without any work until the job comes, which then finds a clean place", async () => {
  await inFolder(async (folder) => {
    const before = async (child) => {
      await asleep(child);
      const now = spent(child.pid);
      await pause(2_000);
      assert.equal(spent(child.pid), now);
      for (const name of readdirSync(folder)) assert.deepEqual(readdirSync(join(folder, name)), []);
    };
    const seen = await run(CODE, { answers, before, env: { TMPDIR: folder } });
    assert.deepEqual(seen.problems, []);
    assert.deepEqual(seen.value, { text: "ab", beside: ["sample.mjs"], env: ["TMPDIR"] });
    assert.equal(seen.stdout + seen.stderr, "");
    assert.deepEqual(seen.requests.map(({ id, method }) => [id, method]), [[1, "file.read"]]);
    assert.equal(seen.exitCode, 0);
  });
});

test("a job that comes in the middle of the rehearsal is served", async () => {
  for (const ms of [30, 60, 70, 80, 90, 100, 120, 150]) {
    const seen = await run(CODE, { answers, before: () => pause(ms) });
    assert.deepEqual([seen.problems, seen.value?.text, seen.exitCode], [[], "ab", 0]);
  }
});

test("where it cannot rehearse, the call tells what is wrong", async () => {
  const seen = await run(CODE, { answers, before: asleep, env: { TMPDIR: "/nosuch" } });
  assert.deepEqual([seen.problems, seen.error.code, seen.exitCode], [[], "ENOENT", 0]);
});

test("an error after a wait names the author's own place, not ours", async () => {
  const seen = await run("export function execute() { throw new Error('no') }", { before: asleep });
  assert.match(seen.error.stack, /^Error: no\n +at .*execute \(sample\.mjs:1:35\)/);
  assert.doesNotMatch(seen.error.stack, /rehears/);
});

test("the host that goes while it waits ends it", async () => {
  const before = async (child) => {
    await asleep(child);
    child.stdio[3].destroy();
  };
  const seen = await run(CODE, { before });
  assert.equal(seen.exitCode, 70);
});

test("the policy's variables come with the job, before the code", async () => {
  const code = "const early = process.env.GIVEN; export const execute = () => ({ early, now: process.env.GIVEN, path: process.env.PATH });";
  const seen = await run(code, { before: asleep, env: { PATH: "/usr/bin" }, job: { env: { GIVEN: "grün" } } });
  assert.deepEqual(seen.value, { early: "grün", now: "grün", path: "/usr/bin" });
});
