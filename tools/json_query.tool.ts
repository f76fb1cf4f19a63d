/// <reference path="./runner.d.ts" />

// Takes a part of a JSON file without printing the whole of it.
//
//   .name              a member; ."odd name" or ["odd name"] for any other
//   [0] [-1] [1:3]     an item, from the end, a range
//   [] or .*           every item or member
//   ..name             every member of that name, at any depth
//   [?stars > 10]      the items whose member compares: == != < <= > >= ~ (contains), or is there at all: [?stars]
//   | keys             keys, values, length, type, sort, unique, first, last, sum, min, max, flatten
//
//   .dependencies | keys        .users[?age >= 18].name        ..version | unique

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

interface Args {
  file: string;
  query: string;
  limit: number;
}

interface Result {
  matches: number;
  value: Json;
  truncated: boolean;
}

/** Larger files belong in a database. */
const MAX_FILE = 64 * 1024 * 1024;

export const tool: Tool<Args, Result> = {
  name: "json_query",
  version: "1.0.0",
  description:
    "Take a part of a JSON file: a path such as `.scripts.test`, `.users[?age >= 18].name`, `..version`, then a function such as `| keys`, " +
    "`| length`, `| unique`, `| sort`. Returns one value for a plain path, a list where several can match. Reads the file only.",
  category: "search",
  securityTier: "read_only",
  costInfo: { model: "free" },
  documentation: "tools/README.md",
  capabilities: [{ action: "query", description: "Read a part of a JSON file", requiresConfirmation: false, estimatedTime: 200 }],
  tags: ["json"],
  timeout: "1m",
  files: { read: ["**"] },

  parameters: {
    type: "object",
    properties: {
      file: { type: "string", description: "The JSON file, relative to the workspace" },
      query: { type: "string", default: ".", description: "What to take, such as `.dependencies | keys`" },
      limit: { type: "integer", minimum: 1, maximum: 10000, default: 1000, description: "At most so many items of a list" },
    },
    required: ["file"],
    additionalProperties: false,
  },
  returnType: {
    type: "object",
    properties: {
      matches: { type: "integer", description: "How many values the query found" },
      value: { description: "What it found" },
      truncated: { type: "boolean" },
    },
    required: ["matches", "value", "truncated"],
    additionalProperties: false,
  },

  async execute({ file, query, limit }, { platform: { fs } }) {
    const plan = parse(query);
    const { size } = await fs.stat(file);
    if (size > MAX_FILE) throw fault("too_large", `${file} has ${size} bytes; the most is ${MAX_FILE}`);
    const text = await fs.readFile(file);
    let root: Json;
    try {
      root = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
    } catch (error) {
      throw fault("not_json", `${file} is not JSON: ${(error as Error).message}`);
    }
    let found: Json[] = [root];
    for (const step of plan.steps) found = found.flatMap(step);
    let value: Json = plan.isMany ? found : (found[0] ?? null);
    const matches = found.length;
    for (const [name, apply] of plan.functions) {
      try {
        value = apply(value);
      } catch (error) {
        throw fault("bad_query", `\`${name}\`: ${(error as Error).message}`);
      }
    }
    const truncated = Array.isArray(value) && value.length > limit;
    return { matches, value: truncated ? (value as Json[]).slice(0, limit) : value, truncated };
  },
};

const fault = (code: string, message: string, suggestion?: string) => Object.assign(new Error(message), { code, suggestion });

// --- reading a query ------------------------------------------------------------------------

type Step = (value: Json) => Json[];

interface Plan {
  steps: Step[];
  /** Whether more than one value can match. */
  isMany: boolean;
  functions: [string, (value: Json) => Json][];
}

function parse(query: string): Plan {
  const [path = "", ...names] = splitPipes(query);
  const functions = names.map((name): [string, (value: Json) => Json] => {
    const apply = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (apply === undefined) throw fault("bad_query", `no function is called \`${name}\``, `one of ${Object.keys(FUNCTIONS).join(", ")}`);
    return [name, apply];
  });
  const steps: Step[] = [];
  let isMany = false;
  let rest = path.trim();
  const whole = rest;
  const take = (pattern: RegExp) => {
    const match = pattern.exec(rest);
    if (match) rest = rest.slice(match[0].length);
    return match;
  };
  if (rest === ".") rest = "";
  while (rest !== "") {
    let match: RegExpExecArray | null;
    if ((match = take(/^\.\.([\w$@-]+)/))) {
      const name = match[1]!;
      steps.push((value) => deep(value, name));
      isMany = true;
    } else if (take(/^(?:\.\*|\.?\[\s*\*?\s*\])/)) {
      steps.push((value) => (Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []));
      isMany = true;
    } else if ((match = take(/^\.([\w$@-]+)/)) || (match = take(/^\.?\[?\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]?/))) {
      const name = unquoted(match[1]!);
      steps.push((value) => (isObject(value) && Object.hasOwn(value, name) ? [value[name]!] : []));
    } else if ((match = take(/^\.?\[\s*(-?\d+)\s*\]/))) {
      const index = Number(match[1]);
      steps.push((value) => (Array.isArray(value) && value.at(index) !== undefined ? [value.at(index)!] : []));
    } else if ((match = take(/^\.?\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]/))) {
      const [start, end] = [match[1], match[2]].map((figure) => (figure ? Number(figure) : undefined));
      steps.push((value) => (Array.isArray(value) ? value.slice(start, end) : []));
      isMany = true;
    } else if ((match = take(/^\.?\[\s*\?\s*([\w$@.-]+)\s*(?:(==|!=|<=|>=|<|>|~)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\]\s]+)\s*)?\]/))) {
      const [, name = "", operator, literal] = match;
      steps.push(filter(name.replace(/^\./, "").split("."), operator, literal));
      isMany = true;
    } else {
      throw fault("bad_query", `the query cannot be read from column ${whole.length - rest.length + 1}: \`${rest.slice(0, 40)}\``, "such as `.scripts.test`, `.users[0].name`, `.users[?age >= 18]`, `..version | unique`");
    }
  }
  return { steps, isMany, functions };
}

/** Splits at `|` outside of quotes and brackets. */
function splitPipes(query: string): string[] {
  const out = [""];
  let quote = "";
  let depth = 0;
  for (const c of query) {
    if (quote) quote = c === quote ? "" : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === "[") depth += 1;
    else if (c === "]") depth -= 1;
    if (c === "|" && !quote && depth === 0) out.push("");
    else out[out.length - 1] += c;
  }
  return out.map((part) => part.trim());
}

const isObject = (value: Json | undefined): value is { [key: string]: Json } => typeof value === "object" && value !== null && !Array.isArray(value);

function unquoted(text: string): string {
  if (text.startsWith('"')) return JSON.parse(text) as string;
  return text.startsWith("'") ? text.slice(1, -1).replace(/\\(.)/g, "$1") : text;
}

function deep(value: Json, name: string): Json[] {
  if (Array.isArray(value)) return value.flatMap((item) => deep(item, name));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [...(key === name ? [inner] : []), ...deep(inner, name)]);
}

function filter(path: string[], operator: string | undefined, literal: string | undefined): Step {
  const wanted = literal === undefined ? undefined : literalOf(literal);
  const fits = (item: Json) => {
    const value = path.reduce<Json | undefined>((inner, key) => (isObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), item);
    if (operator === undefined) return value !== undefined && value !== null && value !== false;
    if (operator === "==") return value === wanted;
    if (operator === "!=") return value !== wanted;
    if (operator === "~") return Array.isArray(value) ? value.includes(wanted!) : typeof value === "string" && value.includes(String(wanted));
    if (typeof value !== typeof wanted || (typeof value !== "number" && typeof value !== "string")) return false;
    const [a, b] = [value, wanted as number | string];
    return operator === "<" ? a < b : operator === "<=" ? a <= b : operator === ">" ? a > b : a >= b;
  };
  return (value) => (Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []).filter(fits);
}

function literalOf(text: string): Json {
  if (/^["']/.test(text)) return unquoted(text);
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

// --- functions ------------------------------------------------------------------------------

const list = (value: Json): Json[] => {
  if (Array.isArray(value)) return value;
  throw new Error("needs a list");
};
const numbers = (value: Json): number[] =>
  list(value).map((item) => {
    if (typeof item === "number") return item;
    throw new Error("needs a list of numbers");
  });
const order = (a: Json, b: Json) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0);

const FUNCTIONS: Record<string, (value: Json) => Json> = {
  keys: (value) => (isObject(value) ? Object.keys(value) : list(value).map((_, index) => index)),
  values: (value) => (isObject(value) ? Object.values(value) : list(value)),
  length: (value) => (typeof value === "string" ? value.length : isObject(value) ? Object.keys(value).length : list(value).length),
  type: (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value),
  sort: (value) => [...list(value)].sort(order),
  unique: (value) => [...new Map(list(value).map((item) => [JSON.stringify(item), item])).values()],
  flatten: (value) => list(value).flat() as Json[],
  first: (value) => list(value)[0] ?? null,
  last: (value) => list(value).at(-1) ?? null,
  sum: (value) => numbers(value).reduce((sum, figure) => sum + figure, 0),
  min: (value) => numbers(value).reduce<number | null>((least, figure) => (least === null || figure < least ? figure : least), null),
  max: (value) => numbers(value).reduce<number | null>((most, figure) => (most === null || figure > most ? figure : most), null),
};
