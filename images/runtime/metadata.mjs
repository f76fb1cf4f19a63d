// What a tool says about itself, as JSON: the answer to `describe`.

import * as safe from "./intrinsics.mjs";
import { RunnerError, peek, plainJson } from "./errors.mjs";
import { collector, plainData, typeName, unread } from "./members.mjs";
import { isSchemaObject, jsonSchema } from "./schema.mjs";

/** What is copied as it stands. The host checks each of them. */
const PLAIN = [
  "name", "version", "category", "securityTier", "description", "documentation", "enabled", "tokenCost",
  "requiredAuth", "costInfo", "capabilities", "permissions", "files", "net", "env", "limits", "timeout", "retry",
  "tags",
];
/** What a tool may do besides `execute`. */
const HOOKS = ["initialize", "validate", "handleError", "cleanup", "healthCheck"];
/** What is read in another way than as it stands. */
const OTHERS = ["parameters", "returnType", "execute"];
/** All of a description, in characters of JSON: far more than any model would be shown. */
const MAX_PART = 512 * 1024;

/** Reads the metadata of a tool object. `unread` lists what nothing reads; the host refuses a tool for it. */
export async function metadata(tool, job) {
  const out = { __proto__: null };
  const collect = collector();
  for (let i = 0; i < PLAIN.length; i += 1) {
    const value = read(tool, PLAIN[i]);
    if (value !== undefined) out[PLAIN[i]] = data(value, PLAIN[i], collect);
  }
  const parameters = read(tool, "parameters");
  const returnType = read(tool, "returnType");
  if (job.form === "module" && parameters === undefined) throw new RunnerError("invalid_tool", "the tool has no parameters (a zod object or JSON Schema)");
  if (parameters !== undefined) out.parameters = await schemaOf(parameters, "input", "parameters", collect);
  if (returnType !== undefined) out.returnType = await schemaOf(returnType, "output", "returnType", collect);
  out.hooks = [];
  for (let i = 0; i < HOOKS.length; i += 1) {
    const hook = read(tool, HOOKS[i]);
    if (typeof hook === "function") out.hooks[out.hooks.length] = HOOKS[i];
    else if (hook !== undefined) collect.add([HOOKS[i]], typeName(hook));
  }
  if (typeof peek(peek(tool, "requiredAuth") ?? {}, "testMethod") === "function") out.hooks[out.hooks.length] = "testMethod";
  if (job.form === "module") members(tool, collect);
  if (collect.told.length > 0) out.unread = collect.told;
  return out;
}

function members(tool, collect) {
  const known = { __proto__: null };
  const lists = [PLAIN, HOOKS, OTHERS];
  for (let i = 0; i < lists.length; i += 1) for (let k = 0; k < lists[i].length; k += 1) known[lists[i][k]] = true;
  try {
    unread(tool, known, collect);
  } catch (error) {
    throw new RunnerError("invalid_tool", "the members of the tool cannot be read", { __proto__: null, cause: error });
  }
}

/** A member as JSON holds it. */
function data(value, name, collect) {
  let json;
  try {
    json = plainJson(plainData(value, name, collect) ?? null, MAX_PART);
  } catch {
    // Told below.
  }
  if (json === undefined) throw new RunnerError("invalid_tool", `${name} cannot be written as JSON`);
  return safe.parseJson(json);
}

function read(tool, key) {
  try {
    return tool[key];
  } catch (error) {
    throw new RunnerError("invalid_tool", `${key} cannot be read`, { __proto__: null, cause: error });
  }
}

async function schemaOf(schema, direction, what, collect) {
  let found;
  try {
    found = await jsonSchema(schema, direction, what);
  } catch (error) {
    if (error instanceof RunnerError) throw error;
    throw new RunnerError("invalid_tool", `${what} cannot be written as JSON Schema: ${peek(error ?? {}, "message")}`, { __proto__: null, cause: error });
  }
  // What an author wrote by hand is told if it is lost; a library knows what it writes.
  if (!isSchemaObject(schema)) return data(found, what, collect);
  const json = plainJson(found, MAX_PART);
  if (json === undefined) throw new RunnerError("invalid_tool", `${what} cannot be written as JSON`);
  return safe.parseJson(json);
}
