// Which members of a tool object nothing would read.
//
// The host and this runtime read the members that they know. What they do not know must not be ignored: `preconditions`
// or `timout` may be a safeguard in which the author trusts. So all that is not read is told to the host, which refuses
// the tool. The rule:
//
//   - Every member with a text for its name counts, own or inherited, enumerable or not, up to `Object.prototype`: members
//     of a literal, fields, methods and accessors of classes. `constructor` does not count, nor does one that is undefined.
//   - The value of a known member is plain data: texts, finite numbers, booleans, null, arrays and plain objects of them.
//     Functions, instances of classes and all else that JSON would lose are told, however deep they are.
//   - A hook is a function.
//   - All other members are told with their type. A function can be a helper: the host decides by its name.

import * as safe from "./intrinsics.mjs";

/** Functions that belong to data: `requiredAuth.testMethod` is called by `check`. */
const FUNCTIONS = ["requiredAuth.testMethod"];
/** Nesting and size of one member's data: beyond what any tool says of itself, and far below what would take long. */
const MAX_DEPTH = 64;
const MAX_VALUES = 50_000;
/** Unread members that are told; one is enough to refuse the tool. */
const MAX_TOLD = 60;

/** Collects what is not read. */
export function collector() {
  const told = [];
  return {
    __proto__: null,
    told,
    add(path, is) {
      if (told.length < MAX_TOLD) told[told.length] = { __proto__: null, path, is };
    },
  };
}

/** A word for the type of a value. */
export function typeName(value) {
  if (value === null) return "null";
  if (safe.isArray(value)) return "array";
  return typeof value;
}

/** Tells every member of a tool that is not in `known`. Accessors are not called. */
export function unread(tool, known, collect) {
  const seen = { __proto__: null };
  for (let level = tool; level !== null && level !== safe.rootObject; level = safe.parentOf(level)) {
    const keys = safe.allKeys(level);
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      if (typeof key !== "string" || key === "constructor" || seen[key] === true || known[key] === true) continue;
      seen[key] = true;
      const member = safe.memberOf(level, key);
      if (member === undefined) continue;
      if (!safe.hasOwn(member, "value")) collect.add([key], "accessor");
      else if (member.value !== undefined) collect.add([key], typeName(member.value));
    }
  }
}

/** A copy of plain data. What is no plain data is told and left out. Throws if there is too much of it. */
export function plainData(value, name, collect) {
  let left = MAX_VALUES;

  function copy(inner, path, depth) {
    left -= 1;
    if (depth > MAX_DEPTH || left < 0) throw new safe.Fault("too deep or too large");
    if (inner === null || typeof inner === "string" || typeof inner === "boolean") return inner;
    if (typeof inner === "number" && safe.isFinite(inner)) return inner;
    if (typeof inner !== "object") {
      const belongs = typeof inner === "function" && isListed(FUNCTIONS, safe.join(path, "."));
      if (!belongs) collect.add(path, typeof inner === "number" ? safe.text(inner) : typeof inner);
      return undefined;
    }
    const parent = safe.parentOf(inner);
    if (safe.isArray(inner)) {
      const out = [];
      for (let i = 0; i < inner.length; i += 1) out[i] = copy(inner[i], below(path, safe.text(i)), depth + 1) ?? null;
      return out;
    }
    if (parent !== null && parent !== safe.rootObject) {
      collect.add(path, "instance");
      return undefined;
    }
    const out = { __proto__: null };
    const keys = safe.allKeys(inner);
    for (let i = 0; i < keys.length; i += 1) {
      if (typeof keys[i] !== "string" || inner[keys[i]] === undefined) continue;
      const part = copy(inner[keys[i]], below(path, keys[i]), depth + 1);
      if (part !== undefined) out[keys[i]] = part;
    }
    return out;
  }

  return copy(value, [name], 0);
}

function below(path, key) {
  const out = [];
  for (let i = 0; i < path.length; i += 1) out[i] = path[i];
  out[path.length] = key;
  return out;
}

function isListed(list, word) {
  for (let i = 0; i < list.length; i += 1) if (list[i] === word) return true;
  return false;
}
