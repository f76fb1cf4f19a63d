// `context.platform.fs`: files of the workspace, each operation a request that the host decides.
//
// Names and forms follow `node:fs/promises` where they overlap. No path is resolved or checked here:
// only the host can, and does.

import * as safe from "./intrinsics.mjs";
import { RunnerError } from "./errors.mjs";

const DIRECTORY = "dir";
const FILE = "file";
const LINK = "link";

/** The functions of `fs` over `request`. */
export function files(request, warn) {
  const one = (method, path, rest) => request(method, { __proto__: null, path: pathText(path), ...rest });

  async function read(path, range, signal) {
    const params = { __proto__: null, path: pathText(path), offset: range.offset, length: range.length };
    return (await request("file.read", params, undefined, signal)).bytes;
  }

  async function readFile(path, options) {
    const given = settings(options);
    const bytes = await read(path, { __proto__: null, offset: count(given.offset, "offset"), length: count(given.length, "length") }, given.signal);
    const { encoding } = given;
    if (encoding === undefined) {
      try {
        return safe.fromUtf8Strictly(bytes);
      } catch {
        throw new RunnerError("not_text", `${pathText(path)} is not UTF-8 text`, {
          __proto__: null,
          path: pathText(path),
          suggestion: "read it as bytes with { encoding: null }, or with 'utf8' to replace what is no text",
        });
      }
    }
    if (encoding === null || encoding === "buffer") return bytes;
    return isUtf8(encoding) ? safe.fromUtf8(bytes) : safe.inEncoding(bytes, known(encoding));
  }

  async function writeFile(path, data, options) {
    const { encoding, flag = "w", signal } = settings(options);
    const body = toBytes(data, encoding);
    if (flag === "a") await request("file.append", { __proto__: null, path: pathText(path) }, body, signal);
    else if (flag === "w" || flag === "wx") {
      const exclusive = flag === "wx" ? true : undefined;
      await request("file.write", { __proto__: null, path: pathText(path), exclusive }, body, signal);
    } else throw wrong(`flag ${quoted(flag)}: only 'w', 'wx' and 'a' can be asked for`);
  }

  async function appendFile(path, data, options) {
    const { encoding, signal } = settings(options);
    await request("file.append", { __proto__: null, path: pathText(path) }, toBytes(data, encoding), signal);
  }

  async function readdir(path, options) {
    const { withFileTypes = false, recursive = false } = settings(options);
    if (recursive) throw wrong("readdir is not recursive: use fs.glob('**', { cwd: path })");
    const { ok } = await one("file.list", path);
    const out = [];
    for (let i = 0; i < ok.entries.length; i += 1) {
      const { name, type } = ok.entries[i];
      out[i] = withFileTypes ? safe.freeze({ name, parentPath: pathText(path), ...kind(type) }) : name;
    }
    return whole(out, ok.truncated, `the list of ${pathText(path)}`);
  }

  async function stat(path) {
    const { ok } = await one("file.stat", path);
    const { type, size, mtimeMs, mode } = ok;
    return safe.freeze({ size, mtimeMs, mtime: new Date(mtimeMs), mode, ...kind(type) });
  }

  async function exists(path) {
    try {
      await one("file.stat", path);
      return true;
    } catch (error) {
      if (error?.code === "not_found" || error?.code === "not_a_directory") return false;
      throw error;
    }
  }

  async function mkdir(path, options) {
    const { recursive } = settings(options);
    await one("file.mkdir", path, { __proto__: null, recursive: yes(recursive) });
  }

  async function rm(path, options) {
    const { recursive, force } = settings(options);
    await one("file.remove", path, { __proto__: null, recursive: yes(recursive), force: yes(force) });
  }

  const unlink = async (path) => void (await one("file.remove", path));

  async function rename(from, to) {
    await request("file.rename", { __proto__: null, from: pathText(from), to: pathText(to) });
  }

  async function copyFile(from, to, options) {
    const { exclusive, signal } = settings(options);
    const bytes = await read(from, { __proto__: null }, signal);
    await request("file.write", { __proto__: null, path: pathText(to), exclusive: yes(exclusive) }, bytes, signal);
  }

  async function glob(pattern, options) {
    const { cwd, dot, limit } = settings(options);
    if (typeof pattern !== "string") throw wrong("glob takes a pattern, such as 'src/**/*.ts'");
    const { ok } = await request("file.glob", {
      __proto__: null,
      pattern,
      cwd: cwd === undefined ? undefined : pathText(cwd),
      dot: yes(dot),
      limit: count(limit, "limit"),
    });
    const out = [];
    for (let i = 0; i < ok.paths.length; i += 1) out[i] = ok.paths[i];
    return whole(out, ok.truncated, `the paths of ${quoted(pattern)}`);
  }

  /** Marks a list that the host cut short; a limit that the tool asked for is no news. */
  function whole(list, truncated, what) {
    safe.define(list, "truncated", { __proto__: null, value: truncated === true });
    if (truncated === true) warn(`${what} was cut short after ${list.length}`);
    return list;
  }

  return safe.freeze({ readFile, writeFile, appendFile, readdir, stat, exists, mkdir, rm, unlink, rename, copyFile, glob });
}

const kind = (type) => ({
  type,
  isFile: () => type === FILE,
  isDirectory: () => type === DIRECTORY,
  isSymbolicLink: () => type === LINK,
});

// --- arguments ------------------------------------------------------------------------------

export const wrong = (message) => new RunnerError("invalid_argument", message);
const yes = (value) => (value ? true : undefined);
const quoted = (value) => safe.stringify(safe.text(value));

/** A path as text; what is no text and no file: URL is refused here, all else is the host's to judge. */
export function pathText(path) {
  if (typeof path === "string") return path;
  if (path instanceof URL && path.protocol === "file:") return decodeURIComponent(path.pathname);
  throw wrong(`a path is a string, not ${path === null ? "null" : typeof path}`);
}

/** Options as an object without a prototype; a bare string is an encoding, as in Node. */
export function settings(options) {
  if (options === undefined) return { __proto__: null };
  if (options === null || typeof options === "string") return { __proto__: null, encoding: options };
  if (typeof options !== "object") throw wrong(`options are an object, not a ${typeof options}`);
  return { __proto__: null, ...options };
}

/** A whole number that is not negative, or nothing. */
export function count(value, name) {
  if (value === undefined) return undefined;
  if (safe.isInteger(value) && value >= 0) return value;
  throw wrong(`${name} is a whole number that is not negative`);
}

const isUtf8 = (encoding) => encoding === "utf8" || encoding === "utf-8";

function known(encoding) {
  if (safe.isEncoding(encoding)) return encoding;
  throw wrong(`unknown encoding ${quoted(encoding)}`);
}

/** Text or bytes as bytes. */
export function toBytes(data, encoding) {
  if (typeof data === "string") {
    if (encoding === undefined || encoding === null || isUtf8(encoding)) return safe.utf8(data);
    return safe.bytesFrom(data, known(encoding));
  }
  if (safe.isView(data)) return new safe.Bytes(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof safe.Memory) return new safe.Bytes(data);
  throw wrong(`content is a string or bytes, not ${data === null ? "null" : typeof data}`);
}
