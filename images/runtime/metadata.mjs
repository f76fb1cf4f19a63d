// What a tool says about itself, as JSON: the answer to `describe`.

import * as safe from "./intrinsics.mjs";
import { RunnerError, peek, plainJson } from "./errors.mjs";
import { jsonSchema } from "./schema.mjs";

/** What is copied as it stands. The host checks each of them. */
const PLAIN = [
  "name", "version", "category", "securityTier", "description", "documentation", "enabled", "tokenCost",
  "requiredAuth", "costInfo", "capabilities", "permissions", "files", "net", "env", "limits", "timeout", "retry",
  "tags",
];
/** What a tool may do besides `execute`. */
const HOOKS = ["initialize", "validate", "handleError", "cleanup", "healthCheck"];
/** All of a description, in characters of JSON: far more than any model would be shown. */
const MAX_PART = 512 * 1024;

/** Reads the metadata of a tool object. */
export async function metadata(tool, job) {
  const out = { __proto__: null };
  for (let i = 0; i < PLAIN.length; i += 1) {
    const value = read(tool, PLAIN[i]);
    if (value === undefined) continue;
    const json = plainJson(value, MAX_PART);
    if (json === undefined) throw new RunnerError("invalid_tool", `${PLAIN[i]} cannot be written as JSON`);
    out[PLAIN[i]] = safe.parseJson(json);
  }
  const parameters = read(tool, "parameters");
  const returnType = read(tool, "returnType");
  if (job.form === "module" && parameters === undefined) throw new RunnerError("invalid_tool", "the tool has no parameters (a zod object or JSON Schema)");
  if (parameters !== undefined) out.parameters = await schemaOf(parameters, "input", "parameters");
  if (returnType !== undefined) out.returnType = await schemaOf(returnType, "output", "returnType");
  out.hooks = [];
  for (let i = 0; i < HOOKS.length; i += 1) {
    if (typeof peek(tool, HOOKS[i]) === "function") out.hooks[out.hooks.length] = HOOKS[i];
  }
  return out;
}

function read(tool, key) {
  try {
    return tool[key];
  } catch (error) {
    throw new RunnerError("invalid_tool", `${key} cannot be read`, { __proto__: null, cause: error });
  }
}

async function schemaOf(schema, direction, what) {
  let found;
  try {
    found = await jsonSchema(schema, direction, what);
  } catch (error) {
    if (error instanceof RunnerError) throw error;
    throw new RunnerError("invalid_tool", `${what} cannot be written as JSON Schema: ${peek(error ?? {}, "message")}`, { __proto__: null, cause: error });
  }
  const json = plainJson(found, MAX_PART);
  if (json === undefined) throw new RunnerError("invalid_tool", `${what} cannot be written as JSON`);
  return safe.parseJson(json);
}
