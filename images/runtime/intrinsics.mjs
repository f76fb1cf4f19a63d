// What the runtime needs of the language and of Node, taken before any foreign code is loaded.
//
// A tool shares this process. It may replace `JSON.parse`, patch prototypes or overwrite
// `process.exit`, on purpose or through a library that means well. What stands here keeps working
// then. It is no security boundary: the host believes nothing that comes out of this process. The
// aim is that a tool which breaks its own world gets a clear error instead of silence.

import { Buffer } from "node:buffer";
import fs from "node:fs";

/** Turns a method into a function that takes the object first, beyond the reach of later patches. */
export const uncurry = (method) => Function.prototype.call.bind(method);

export const apply = Reflect.apply;
export const construct = Reflect.construct;
export const ownKeys = Object.keys;
export const allKeys = Reflect.ownKeys;
export const parentOf = Reflect.getPrototypeOf;
export const memberOf = Reflect.getOwnPropertyDescriptor;
export const rootObject = Object.prototype;
export const hasOwn = uncurry(Object.prototype.hasOwnProperty);
export const freeze = Object.freeze;
export const define = Object.defineProperty;
export const isArray = Array.isArray;
export const isView = ArrayBuffer.isView;
export const captureTrace = Error.captureStackTrace;

export const parseJson = JSON.parse;
export const stringify = JSON.stringify;
export const text = String;
export const isInteger = Number.isSafeInteger;
export const isFinite = Number.isFinite;
export const min = Math.min;
export const max = Math.max;

export const Bytes = Uint8Array;
export const Later = Promise;
export const Table = Map;
export const Fault = Error;
export const WeakTable = WeakMap;
export const Memory = ArrayBuffer;

export const tableGet = uncurry(Map.prototype.get);
export const tableSet = uncurry(Map.prototype.set);
export const tableDelete = uncurry(Map.prototype.delete);
export const weakGet = uncurry(WeakMap.prototype.get);
export const weakSet = uncurry(WeakMap.prototype.set);
export const tableForEach = uncurry(Map.prototype.forEach);

export const slice = uncurry(String.prototype.slice);
export const includes = uncurry(String.prototype.includes);
export const startsWith = uncurry(String.prototype.startsWith);
export const indexOf = uncurry(String.prototype.indexOf);
export const charCodeAt = uncurry(String.prototype.charCodeAt);
export const lower = uncurry(String.prototype.toLowerCase);
export const upper = uncurry(String.prototype.toUpperCase);
export const split = uncurry(String.prototype.split);
export const join = uncurry(Array.prototype.join);
export const sliceArray = uncurry(Array.prototype.slice);

export const view = uncurry(Uint8Array.prototype.subarray);
export const copyInto = uncurry(Uint8Array.prototype.set);
export const allocate = Buffer.allocUnsafeSlow;
export const bytesFrom = Buffer.from;
export const isEncoding = Buffer.isEncoding;
const bufferText = uncurry(Buffer.prototype.toString);
const decode = uncurry(TextDecoder.prototype.decode);
const encodeText = uncurry(TextEncoder.prototype.encode);
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
const encoder = new TextEncoder();

/** Text to bytes; what is no Unicode becomes U+FFFD. */
export const utf8 = (string) => encodeText(encoder, string);
/** Bytes to text; what is no UTF-8 becomes U+FFFD. */
export const fromUtf8 = (bytes) => decode(lenient, bytes);
/** Bytes to text; throws on what is no UTF-8. */
export const fromUtf8Strictly = (bytes) => decode(strict, bytes);
/** A Buffer in one of Node's encodings. */
export const inEncoding = (buffer, encoding) => bufferText(buffer, encoding);

export const isAborted = uncurry(Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted").get);
export const listen = uncurry(EventTarget.prototype.addEventListener);
export const unlisten = uncurry(EventTarget.prototype.removeEventListener);

export const writeSync = fs.writeSync;
export const writeFileSync = fs.writeFileSync;
export const mkdtempSync = fs.mkdtempSync;
export const unlinkSync = fs.unlinkSync;
export const later = setTimeout;
export const forget = clearTimeout;
const cell = new Int32Array(new SharedArrayBuffer(4));
const wait = Atomics.wait;
/** Stops this thread for some milliseconds. */
export const sleep = (milliseconds) => wait(cell, 0, 0, milliseconds);

const reallyExit = process.reallyExit.bind(process);
const kill = process.kill.bind(process);
const { pid } = process;
/** Ends the process now, without listeners that somebody may have left in the way. */
export function exit(code) {
  reallyExit(code);
  kill(pid, "SIGKILL");
}
