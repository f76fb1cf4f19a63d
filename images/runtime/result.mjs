// The result of a tool as the last frame of the talk.

import * as safe from "./intrinsics.mjs";
import { MAX_DEPTH, MAX_RESULT, depth, wellFormed } from "./frames.mjs";
import { RunnerError, cut, display, errorJson, peek } from "./errors.mjs";

/** What JSON would silently turn into `{}`: an author who returns one means something else. */
const LOST = [
  [Map, "a Map", "Object.fromEntries(map)"],
  [Set, "a Set", "[...set]"],
  [WeakMap, "a WeakMap", "a plain object"],
  [WeakSet, "a WeakSet", "an array"],
  [Promise, "a Promise", "what it resolves to: await it"],
  [ArrayBuffer, "bytes", "text, such as base64"],
];

/** What is told of a value that does not fit `returnType`. */
const MAX_ISSUES = 100;
const MAX_ISSUE = 1024;

/** JSON of a successful result; throws a RunnerError if there is none. `cost` is what the tool says that it cost. */
export function valueJson(value, cost) {
  if (value === undefined) return `{"value":null${costJson(cost)}}`;
  let json;
  try {
    json = safe.stringify(value, replacer());
  } catch (error) {
    if (error instanceof RunnerError) throw error;
    throw notJson(`the result is not JSON: ${display(peek(error ?? {}, "message"))}`);
  }
  if (json === undefined) throw notJson(`the result is not JSON: it is a ${typeof value}`);
  if (json.length > MAX_RESULT) throw tooLarge(json.length);
  if (depth(json) > MAX_DEPTH) throw notJson(`the result is nested deeper than ${MAX_DEPTH} levels`);
  const whole = `{"value":${wellFormed(json)}${costJson(cost)}}`;
  const size = safe.utf8(whole).length;
  if (size > MAX_RESULT) throw tooLarge(size);
  return whole;
}

/** JSON of a failed one. */
export function failureJson({ error, issues }, cost) {
  if (issues === undefined) return `{"error":${errorJson(error)}${costJson(cost)}}`;
  const told = [];
  for (let i = 0; i < issues.length && i < MAX_ISSUES; i += 1) {
    told[i] = { __proto__: null, pointer: cut(issues[i].pointer, MAX_ISSUE), message: cut(issues[i].message, MAX_ISSUE) };
  }
  return `{"invalid":${errorJson(told)}${costJson(cost)}}`;
}

/** The price beside a value or an error. */
const costJson = (cost) => (cost === undefined ? "" : `,"cost":${errorJson(cost)}`);

/** Refuses what JSON would lose, and stops as soon as the result is known to be too large. */
function replacer() {
  // At least so many bytes: each value is one or more, and a text is as long as it is.
  let least = 0;
  return function (key, value) {
    least += 1 + (typeof value === "string" ? value.length : 0);
    if (least > MAX_RESULT) throw tooLarge(`more than ${MAX_RESULT}`);
    return safe.apply(keepOrRefuse, this, [key, value]);
  };
}

function keepOrRefuse(key, value) {
  if (typeof value === "function" || typeof value === "symbol") {
    if (key === "" || safe.isArray(this)) throw notJson(`the result is not JSON: it holds a ${typeof value}${place(key)}`);
    return undefined;
  }
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof safe.Fault) return { __proto__: null, name: peek(value, "name"), message: peek(value, "message"), code: peek(value, "code") };
  if (safe.isView(value)) throw notJson(`the result is not JSON: it holds bytes${place(key)}; return text, such as base64`);
  for (let i = 0; i < LOST.length; i += 1) {
    const [type, name, instead] = LOST[i];
    if (value instanceof type) throw notJson(`the result is not JSON: it holds ${name}${place(key)}; return ${instead}`);
  }
  return value;
}

const place = (key) => (key === "" ? "" : ` at ${safe.stringify(key)}`);
const notJson = (message) => new RunnerError("result_not_json", message);
const tooLarge = (size) =>
  new RunnerError("result_too_large", `the result has ${size} bytes as JSON; the most is ${MAX_RESULT}`, {
    __proto__: null,
    suggestion: "write it to a file and return the path, or return a part",
  });
