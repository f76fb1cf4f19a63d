// A host for tests: starts the runtime with real Node and plays the broker's part of the talk.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../main.mjs", import.meta.url));
export const KINDS = { 1: "Request", 2: "Chunk", 3: "End", 4: "Cancel", 5: "Note", 6: "Result" };
const FIRST_CREDIT = 256 * 1024;

/** The bytes of one frame, written independently of the runtime's own codec. */
export function frame(kind, id, payload = Buffer.alloc(0)) {
  const body = Buffer.isBuffer(payload) ? payload : Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload));
  const head = Buffer.alloc(9);
  head.writeUInt32LE(body.length, 0);
  head.writeUInt8(kind, 4);
  head.writeUInt32LE(id, 5);
  return Buffer.concat([head, body]);
}

export const refuse = (code, message = code, rest = {}) => ({ error: { code, message, recoverable: false, ...rest } });

/**
 * Runs a tool. `answers[method](params, body, call)` returns the `ok` of a reply, `{ok, bytes}`, or
 * `refuse(…)`; `call` has `abort`, `send` and `id`. `before(child)` is awaited before the job is sent. Resolves when the process has ended:
 * `{result, value, error, logs, progress, requests, frames, raw, stdout, stderr, exitCode, signal}`.
 */
export function run(code, options = {}) {
  const { job = {}, answers = {}, form = "yaml", mode = "run", args = {}, node = [], onNote, onStart, before, killAfter = 20_000 } = options;
  const child = spawn(process.execPath, [...node, MAIN], { stdio: ["ignore", "pipe", "pipe", "pipe"], env: { TMPDIR: process.env.TMPDIR ?? "/tmp", ...options.env } });
  const channel = child.stdio[3];
  const out = { logs: [], progress: [], requests: [], frames: [], raw: [], stdout: "", stderr: "", problems: [], sawEnd: false };
  const bodies = new Map();
  const open = new Set();
  let lastId = 0;
  let pending = Buffer.alloc(0);

  const send = (kind, id, payload) => channel.writable && channel.write(frame(kind, id, payload));
  const abort = (reason) => send(21, 0, { reason });
  const call = { send, abort, child, channel };

  async function answer(id, { method, params }, body) {
    const handler = answers[method];
    let reply = handler ? await handler(params, body, { ...call, id }) : refuse("access_denied", `${method} is not allowed`);
    if (reply === undefined) reply = {};
    if (!open.has(id)) return;
    open.delete(id);
    if (reply?.bytes) for (let at = 0; at < reply.bytes.length; at += 65536) send(17, id, reply.bytes.subarray(at, at + 65536));
    send(19, id, reply?.error ? { error: reply.error } : { ok: reply?.bytes ? reply.ok : reply });
  }

  function take(kind, id, payload) {
    out.raw.push(frame(kind, id, payload));
    out.frames.push([KINDS[kind] ?? kind, id, payload.length]);
    if (out.result) out.problems.push("a frame after the result");
    if (kind === 1) {
      const request = JSON.parse(payload);
      if (id <= lastId) out.problems.push(`id ${id} after ${lastId}`);
      lastId = id;
      open.add(id);
      out.requests.push({ id, ...request });
      if (request.body) bodies.set(id, { request, parts: [], size: 0, credit: FIRST_CREDIT });
      else answer(id, request, undefined);
      const early = request.body && answers[`early:${request.method}`];
      if (early) answer(id, { ...request, method: `early:${request.method}` }, undefined);
    } else if (kind === 2) {
      const body = bodies.get(id);
      if (!body) return out.problems.push(`a chunk of ${id}, which has no body`);
      if (payload.length > 65536) out.problems.push("a chunk that is too large");
      body.size += payload.length;
      body.credit -= payload.length;
      if (body.credit < 0) out.problems.push("more bytes than credit");
      body.parts.push(Buffer.from(payload));
      const more = Buffer.alloc(4);
      more.writeUInt32LE(payload.length);
      if (open.has(id) && !options.noCredit) {
        body.credit += payload.length;
        send(20, id, more);
      }
    } else if (kind === 3) {
      const body = bodies.get(id);
      bodies.delete(id);
      if (!body) return out.problems.push(`an end of ${id}, which has no body`);
      if (open.has(id)) answer(id, body.request, Buffer.concat(body.parts));
    } else if (kind === 4) {
      if (open.delete(id)) send(19, id, refuse("cancelled"));
    } else if (kind === 5) {
      const note = JSON.parse(payload);
      if (payload.length > 65536) out.problems.push("a note that is too large");
      if (note.log) out.logs.push(note.log);
      if (note.progress) out.progress.push(note.progress);
      onNote?.(note, call);
    } else if (kind === 6) {
      if (payload.length > 4 * 1024 * 1024) out.problems.push("a result that is too large");
      out.result = JSON.parse(payload);
      out.value = out.result.value;
      out.error = out.result.error;
    } else out.problems.push(`kind ${kind}`);
  }

  channel.on("data", (data) => {
    pending = pending.length ? Buffer.concat([pending, data]) : data;
    while (pending.length >= 9) {
      const length = pending.readUInt32LE(0);
      if (pending.length < 9 + length) break;
      const payload = pending.subarray(9, 9 + length);
      take(pending.readUInt8(4), pending.readUInt32LE(5), payload);
      pending = pending.subarray(9 + length);
    }
  });
  channel.on("error", () => {});
  channel.on("end", () => (out.sawEnd = true));
  child.stdout.on("data", (data) => (out.stdout += data));
  child.stderr.on("data", (data) => (out.stderr += data));

  const whole = { mode, form, name: "sample", file: "sample.yml", args, config: {}, conversation: null, workspace: "/work", attempt: 1, ...job };
  const begin = () => {
    send(16, 0, whole);
    const bytes = Buffer.from(code);
    for (let at = 0; at < bytes.length; at += 65536) send(17, 0, bytes.subarray(at, at + 65536));
    send(18, 0);
    onStart?.(call);
  };
  if (before === undefined) begin();
  else before(child).then(begin);

  // Node tells the end of the process and of the streams apart; a test wants both.
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfter);
  return new Promise((resolve) => {
    child.on("close", (exitCode, signal) => {
      clearTimeout(timer);
      if (pending.length) out.problems.push(`${pending.length} bytes of an unfinished frame`);
      resolve({ ...out, exitCode, signal });
    });
  });
}
