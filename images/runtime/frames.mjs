// The form of the talk with the host: frames, caps, and JSON that no patched prototype can bend.
//
//   u32 LE payload length | u8 kind | u32 LE id | payload
//
// `tests/cases/talk.golden` holds frames of each kind; both ends are tested against it.

import * as safe from "./intrinsics.mjs";

export const REQUEST = 1;
export const CHUNK = 2;
export const END = 3;
export const CANCEL = 4;
export const NOTE = 5;
export const RESULT = 6;
export const START = 16;
export const HOST_CHUNK = 17;
export const HOST_END = 18;
export const REPLY = 19;
export const CREDIT = 20;
export const ABORT = 21;

export const HEADER = 9;
/** One piece of a body: small enough that others get their turn between two. */
export const MAX_CHUNK = 64 * 1024;
/** What may be sent of a body before the host gives more. */
export const FIRST_CREDIT = 256 * 1024;
export const MAX_REQUEST = 1024 * 1024;
export const MAX_NOTE = 64 * 1024;
export const MAX_RESULT = 4 * 1024 * 1024;
/** The host's frames: a job holds the arguments, which the host has bounded. More is no frame of ours. */
export const MAX_FROM_HOST = 64 * 1024 * 1024;
/** Nesting that every JSON reader at the other end takes. */
export const MAX_DEPTH = 100;

/** The bytes of one frame. */
export function frame(kind, id, payload) {
  const length = payload === undefined ? 0 : payload.length;
  const bytes = safe.allocate(HEADER + length);
  putWord(bytes, 0, length);
  bytes[4] = kind;
  putWord(bytes, 5, id);
  if (length > 0) safe.copyInto(bytes, payload, HEADER);
  return bytes;
}

function putWord(bytes, at, value) {
  bytes[at] = value & 255;
  bytes[at + 1] = (value >>> 8) & 255;
  bytes[at + 2] = (value >>> 16) & 255;
  bytes[at + 3] = (value >>> 24) & 255;
}

/** The u32 at this place. */
export const word = (bytes, at) =>
  (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;

/** JSON that was written already, to be put in as it is. */
export class Raw {
  constructor(json) {
    this.json = json;
  }
}

/**
 * JSON of plain values. Reads own keys only and asks no `toJSON`, so that a polluted prototype cannot
 * change what we say. What is undefined is left out.
 */
export function json(value) {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return safe.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    case "number":
      return safe.isFinite(value) ? safe.text(value) : "null";
    case "object":
      break;
    default:
      return "null";
  }
  if (value instanceof Raw) return value.json;
  let out = "";
  if (safe.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) out += (i > 0 ? "," : "") + json(value[i]);
    return `[${out}]`;
  }
  const keys = safe.ownKeys(value);
  for (let i = 0; i < keys.length; i += 1) {
    if (value[keys[i]] === undefined) continue;
    out += `${out === "" ? "" : ","}${safe.stringify(keys[i])}:${json(value[keys[i]])}`;
  }
  return `{${out}}`;
}

/**
 * Where a JSON text escapes half of a surrogate pair, or -1. `JSON.stringify` writes whole pairs as
 * they are, so an escape in the range of surrogates is always a lone one, which is no Unicode and
 * which strict readers refuse.
 */
export function loneSurrogate(json, from = 0) {
  let at = safe.indexOf(json, "\\ud", from);
  while (at >= 0) {
    let backslashes = 0;
    while (at - backslashes > 0 && safe.charCodeAt(json, at - backslashes - 1) === 92) backslashes += 1;
    const digit = safe.charCodeAt(json, at + 3);
    if (backslashes % 2 === 0 && (digit === 56 || digit === 57 || digit >= 97)) return at;
    at = safe.indexOf(json, "\\ud", at + 1);
  }
  return -1;
}

/** The same JSON text with U+FFFD for each lone surrogate. */
export function wellFormed(json) {
  let at = loneSurrogate(json);
  if (at < 0) return json;
  let out = "";
  let done = 0;
  while (at >= 0) {
    out += `${safe.slice(json, done, at)}\\ufffd`;
    done = at + 6;
    at = loneSurrogate(json, done);
  }
  return out + safe.slice(json, done);
}

/** How deep a JSON text is nested. */
export function depth(json) {
  let deepest = 0;
  let now = 0;
  let inText = false;
  for (let i = 0; i < json.length; i += 1) {
    const c = safe.charCodeAt(json, i);
    if (inText) {
      if (c === 92) i += 1;
      else if (c === 34) inText = false;
    } else if (c === 34) inText = true;
    else if (c === 123 || c === 91) {
      now += 1;
      if (now > deepest) deepest = now;
    } else if (c === 125 || c === 93) now -= 1;
  }
  return deepest;
}
