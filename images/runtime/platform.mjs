// `context.platform.executor` and `.http`: commands and requests that the host decides and makes.

import * as safe from "./intrinsics.mjs";
import { count, pathText, settings, toBytes, wrong } from "./files.mjs";

// --- commands -------------------------------------------------------------------------------

/** `execute` in its forms: one object; command, arguments, options; or a line of text. */
export function executor(request) {
  async function execute(first, second, third) {
    const given = commandOf(first, second, third);
    const { ok, bytes } = await request(
      "exec.run",
      {
        __proto__: null,
        command: given.line === undefined ? given.command : undefined,
        args: given.line === undefined ? given.args : undefined,
        line: given.line,
        cwd: given.cwd === undefined ? undefined : pathText(given.cwd),
        env: given.env === undefined ? undefined : environment(given.env),
        timeoutMs: count(given.timeout, "timeout"),
      },
      given.stdin === undefined ? undefined : toBytes(given.stdin),
      given.signal,
    );
    const asText = given.encoding === null || given.encoding === "buffer" ? (part) => part : safe.fromUtf8;
    const { exitCode, status, signal, truncated, durationMs, call } = ok;
    return safe.freeze({
      stdout: asText(safe.view(bytes, 0, ok.stdoutBytes)),
      stderr: asText(safe.view(bytes, ok.stdoutBytes, ok.stdoutBytes + ok.stderrBytes)),
      exitCode,
      status,
      signal: signal ?? null,
      truncated: truncated === true,
      durationMs,
      call,
    });
  }
  return safe.freeze({ execute });
}

function commandOf(first, second, third) {
  let given;
  if (typeof first === "string") {
    const withArguments = safe.isArray(second);
    given = settings(withArguments ? third : second);
    given.command = first;
    if (withArguments) given.args = second;
  } else {
    if (first === null || typeof first !== "object") throw wrong("execute takes { command, args } or a command and its arguments");
    given = settings(first);
  }
  const { command, args, line } = given;
  if (line !== undefined) {
    if (typeof line !== "string" || command !== undefined || args !== undefined) throw wrong("line is a string and stands alone");
    return given;
  }
  if (typeof command !== "string" || command === "") throw wrong("command is the name of a program");
  // `execute("git log -n 5")` is a line; with arguments beside it, a command is one word whatever it holds.
  if (args === undefined && (safe.includes(command, " ") || safe.includes(command, "\n"))) {
    given.line = command;
    return given;
  }
  const words = [];
  if (args !== undefined && !safe.isArray(args)) throw wrong("args is a list of strings");
  for (let i = 0; args !== undefined && i < args.length; i += 1) {
    const word = args[i];
    if (typeof word !== "string" && typeof word !== "number") throw wrong(`args[${i}] is a string, not ${word === null ? "null" : typeof word}`);
    words[i] = safe.text(word);
  }
  given.args = words;
  return given;
}

function environment(env) {
  if (env === null || typeof env !== "object") throw wrong("env is an object of strings");
  const out = { __proto__: null };
  const names = safe.ownKeys(env);
  for (let i = 0; i < names.length; i += 1) {
    const value = env[names[i]];
    if (value === undefined) continue;
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") throw wrong(`env.${names[i]} is a string`);
    out[names[i]] = safe.text(value);
  }
  return out;
}

// --- the network ----------------------------------------------------------------------------

/** `fetch`, as much of it as a request through the host can have. */
export function http(request) {
  async function fetch(url, init) {
    const given = settings(init);
    const headers = headerList(given.headers);
    const method = safe.text(given.method ?? "GET");
    const body = bodyOf(given.body, headers);
    if (given.redirect !== undefined && given.redirect !== "follow" && given.redirect !== "manual" && given.redirect !== "error") {
      throw wrong("redirect is 'follow', 'manual' or 'error'");
    }
    const { ok, bytes } = await request(
      "net.fetch",
      {
        __proto__: null,
        method: isPlain(method) ? safe.upper(method) : method,
        url: typeof url === "string" ? url : safe.text(url?.href ?? url?.url ?? url),
        headers,
        timeoutMs: count(given.timeout, "timeout"),
        redirect: given.redirect ?? "follow",
      },
      body,
      given.signal ?? undefined,
    );
    return new Answer(ok, bytes);
  }
  return safe.freeze({ fetch });
}

/** Methods that fetch writes in capitals, however they were given. */
const isPlain = (method) => {
  const name = safe.lower(method);
  return name === "get" || name === "head" || name === "post" || name === "put" || name === "delete" || name === "options";
};

function headerList(headers) {
  const out = [];
  const add = (name, value) => {
    out[out.length] = [safe.text(name), safe.text(value)];
  };
  if (headers === undefined || headers === null) return out;
  if (typeof headers !== "object") throw wrong("headers are an object, a list of pairs, a Map or Headers");
  if (safe.isArray(headers)) for (let i = 0; i < headers.length; i += 1) add(headers[i][0], headers[i][1]);
  else if (typeof headers.forEach === "function") headers.forEach((value, name) => add(name, value));
  else {
    const names = safe.ownKeys(headers);
    for (let i = 0; i < names.length; i += 1) if (headers[names[i]] !== undefined) add(names[i], headers[names[i]]);
  }
  return out;
}

function bodyOf(body, headers) {
  if (body === undefined || body === null) return undefined;
  let type;
  let bytes;
  if (body instanceof URLSearchParams) {
    type = "application/x-www-form-urlencoded;charset=UTF-8";
    bytes = safe.utf8(body.toString());
  } else {
    if (typeof body === "string") type = "text/plain;charset=UTF-8";
    bytes = toBytes(body);
  }
  for (let i = 0; i < headers.length; i += 1) if (safe.lower(headers[i][0]) === "content-type") type = undefined;
  if (type !== undefined) headers[headers.length] = ["content-type", type];
  return bytes;
}

/** What came back: the part of a `Response` that makes sense once the body is here. */
class Answer {
  #bytes;
  constructor(ok, bytes) {
    this.#bytes = bytes;
    this.status = ok.status;
    this.statusText = ok.statusText ?? "";
    this.ok = ok.status >= 200 && ok.status < 300;
    this.url = ok.url;
    this.redirected = ok.redirected === true;
    this.headers = new HeaderList(ok.headers ?? []);
    safe.freeze(this);
  }
  async text() {
    return safe.fromUtf8(this.#bytes);
  }
  async json() {
    return safe.parseJson(safe.fromUtf8(this.#bytes));
  }
  async bytes() {
    return new safe.Bytes(this.#bytes);
  }
  async arrayBuffer() {
    return new safe.Bytes(this.#bytes).buffer;
  }
}

/** Headers to read: names in any case, repeated ones joined, in the order of names. */
class HeaderList {
  #values = { __proto__: null };
  #cookies = [];
  constructor(pairs) {
    for (let i = 0; i < pairs.length; i += 1) {
      const name = safe.lower(pairs[i][0]);
      const value = pairs[i][1];
      if (name === "set-cookie") this.#cookies[this.#cookies.length] = value;
      this.#values[name] = name in this.#values ? `${this.#values[name]}, ${value}` : value;
    }
  }
  get(name) {
    return this.#values[safe.lower(safe.text(name))] ?? null;
  }
  has(name) {
    return safe.lower(safe.text(name)) in this.#values;
  }
  getSetCookie() {
    return safe.sliceArray(this.#cookies);
  }
  forEach(callback, self) {
    for (const [name, value] of this) safe.apply(callback, self, [value, name, this]);
  }
  *entries() {
    const names = safe.ownKeys(this.#values).sort();
    for (const name of names) yield [name, this.#values[name]];
  }
  *keys() {
    for (const [name] of this.entries()) yield name;
  }
  *values() {
    for (const [, value] of this.entries()) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}
