// Errors in both directions: the host's refusals as real Errors, and whatever a tool throws as data.

import * as safe from "./intrinsics.mjs";
import { MAX_DEPTH, depth, json, wellFormed } from "./frames.mjs";

/** What is kept of a message and of a stack, in characters: enough to read, far below a result's cap. */
const MAX_TEXT = 32 * 1024;
/** What is kept of the `data` of an error, in characters of JSON. */
const MAX_DATA = 256 * 1024;
/** Causes of causes that are still shown. */
const MAX_CAUSES = 5;

/** A refusal or failure that the host reported, or that the runtime found on its behalf. */
export class RunnerError extends safe.Fault {
  constructor(code, message, details = { __proto__: null }) {
    super(message);
    own(this, "name", "RunnerError");
    this.code = code;
    this.recoverable = details.recoverable === true;
    if (typeof details.path === "string") this.path = details.path;
    if (typeof details.rule === "string") this.rule = details.rule;
    if (typeof details.suggestion === "string") this.suggestion = details.suggestion;
    if (details.data !== undefined) this.data = details.data;
    if (details.cause !== undefined) own(this, "cause", details.cause);
    if (details.trace !== undefined) own(this, "stack", `RunnerError: ${message}${readable(frames(details.trace))}`);
  }
}

/** Errors that the host answered a request with, and the number of that request. */
const refusals = new safe.WeakTable();

/** Remembers that an error is the host's answer to a request. */
export function ofRequest(error, id) {
  safe.weakSet(refusals, error, id);
  return error;
}

const own = (object, key, value) =>
  safe.define(object, key, { __proto__: null, value, enumerable: false, configurable: true, writable: true });

/** Remembers where we are, cheaply: the text is only made if an error needs it. */
export function trace() {
  const here = { __proto__: null };
  safe.captureTrace(here, trace);
  return here;
}

function frames(here) {
  const stack = peek(here, "stack");
  if (typeof stack !== "string") return "";
  const at = safe.indexOf(stack, "\n");
  return at < 0 ? "" : safe.slice(stack, at);
}

// --- stacks as the author knows the files ---------------------------------------------------

const home = safe.slice(import.meta.url, 0, import.meta.url.length - "errors.mjs".length);
const homePath = safe.slice(home, "file://".length);
let folder = "";
let folderPath = "";

/** Tells where the tool's code was put, so that stacks can leave that folder out. */
export function codeIsBelow(path) {
  folderPath = path;
  folder = `file://${path}`;
}

/** Leaves out our own frames and Node's, and the folder that the code was put into. */
function readable(stack) {
  const lines = safe.split(stack, "\n");
  let out = "";
  for (let i = 0; i < lines.length; i += 1) {
    let line = lines[i];
    const isFrame = i > 0 && safe.startsWith(line, "    at ");
    if (isFrame && (safe.includes(line, home) || safe.includes(line, homePath))) continue;
    if (isFrame && (safe.includes(line, "(node:internal") || safe.includes(line, "at node:internal"))) continue;
    if (folder !== "") {
      line = safe.join(safe.split(line, folder), "");
      line = safe.join(safe.split(line, folderPath), "");
    }
    out += (i > 0 ? "\n" : "") + line;
  }
  return out;
}

// --- whatever was thrown --------------------------------------------------------------------

/** A property of an object that may do anything when it is touched. */
export function peek(object, key) {
  try {
    return object[key];
  } catch {
    return undefined;
  }
}

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

/** Some text for any value at all. */
export function display(value) {
  try {
    if (typeof value === "string") return value;
    if (typeof value === "symbol" || !isObject(value)) return safe.text(value);
    const written = safe.stringify(value);
    return written === undefined ? `a ${typeof value}` : written;
  } catch {
    return `a ${typeof value} that cannot be shown`;
  }
}

/** Text, cut where it gets too long to be of use. */
export function cut(string, limit = MAX_TEXT) {
  if (string.length <= limit) return string;
  return `${safe.slice(string, 0, limit)}… (${string.length - limit} more characters)`;
}

/**
 * Any thrown value as the `error` of a result: `{name, message, code, stack?, data?, recoverable?, refused?}`. Whether trying
 * again can help is said only if the value says it: the host knows it of the codes that are in its list. `refused` is the
 * number of the request that the host refused with this very error.
 * Never throws, whatever the value does when it is looked at.
 */
export function describe(thrown, code = "tool_failed") {
  const out = { __proto__: null, name: "Error", message: "", code, stack: undefined, data: undefined, recoverable: undefined, refused: undefined };
  try {
    if (!isObject(thrown)) {
      out.message = cut(`the tool threw ${thrown === undefined ? "undefined" : `${typeof thrown === "string" ? "" : `a ${typeof thrown}: `}${display(thrown)}`}`);
      if (thrown === null) out.message = "the tool threw null";
      if (typeof thrown === "string") out.message = cut(thrown);
      return out;
    }
    const name = peek(thrown, "name");
    const message = peek(thrown, "message");
    const given = peek(thrown, "code");
    const stack = peek(thrown, "stack");
    if (typeof name === "string" && name !== "") out.name = cut(name, 128);
    out.message = cut(typeof message === "string" && message !== "" ? message : typeof stack === "string" ? out.name : display(thrown));
    if (typeof given === "string" && given !== "") out.code = cut(given, 128);
    if (typeof given === "number" && safe.isFinite(given)) out.code = safe.text(given);
    if (typeof stack === "string") out.stack = cut(readable(stack) + causes(thrown));
    const recoverable = peek(thrown, "recoverable");
    if (typeof recoverable === "boolean") out.recoverable = recoverable;
    out.refused = safe.weakGet(refusals, thrown);
    out.data = details(thrown);
  } catch {
    // A value that breaks even this gets the text below: silence would be worse.
    if (out.message === "") out.message = "the tool threw something that cannot be described";
  }
  return out;
}

function causes(thrown) {
  let out = "";
  let next = peek(thrown, "cause");
  for (let i = 0; i < MAX_CAUSES && next !== undefined && next !== null; i += 1) {
    const stack = isObject(next) ? peek(next, "stack") : undefined;
    out += `\ncaused by: ${typeof stack === "string" ? readable(stack) : display(next)}`;
    next = isObject(next) ? peek(next, "cause") : undefined;
  }
  return out;
}

/** `data` of an error: what the author put there, and the host's path, rule and suggestion. */
function details(thrown) {
  const out = { __proto__: null };
  const data = peek(thrown, "data");
  if (data !== undefined) {
    const written = plainJson(data, MAX_DATA);
    if (written !== undefined && safe.startsWith(written, "{")) {
      const copy = safe.parseJson(written);
      const keys = safe.ownKeys(copy);
      for (let i = 0; i < keys.length; i += 1) out[keys[i]] = copy[keys[i]];
    } else if (written !== undefined) out.value = safe.parseJson(written);
  }
  const words = ["path", "rule", "suggestion"];
  for (let i = 0; i < words.length; i += 1) {
    const value = peek(thrown, words[i]);
    if (typeof value === "string") out[words[i]] = cut(value, 4096);
  }
  return safe.ownKeys(out).length === 0 ? undefined : out;
}

/** JSON of foreign data if it has any that is small and flat enough; Errors inside become readable. */
export function plainJson(value, limit) {
  try {
    const written = safe.stringify(value, (_, inner) => {
      if (typeof inner === "bigint") return safe.text(inner);
      if (inner instanceof safe.Fault) return short(inner);
      return inner;
    });
    if (typeof written !== "string" || written.length > limit || depth(written) > MAX_DEPTH - 10) return undefined;
    return wellFormed(written);
  } catch {
    return undefined;
  }
}

/** An Error's own words; JSON would show none of them. */
function short(error) {
  const out = { __proto__: null };
  const words = ["name", "message", "code", "stack"];
  for (let i = 0; i < words.length; i += 1) {
    const value = peek(error, words[i]);
    if (typeof value === "string") out[words[i]] = words[i] === "stack" ? readable(value) : value;
  }
  return out;
}

/** The `error` of a result as JSON. */
export const errorJson = (error) => wellFormed(json(error));
