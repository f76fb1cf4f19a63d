// Schemas as authors write them: zod, any library of the Standard Schema family, or JSON Schema.
//
// The host checks arguments and results against JSON Schema. A schema library can do more (defaults,
// transforms, refinements), so its own check runs here as well.

import * as safe from "./intrinsics.mjs";
import { RunnerError } from "./errors.mjs";

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
const standard = (schema) => (isObject(schema) && isObject(schema["~standard"]) ? schema["~standard"] : undefined);
const isZod = (schema) => isObject(schema) && isObject(schema._zod);
/** Whether it is the schema object of a library. */
export const isSchemaObject = (schema) => isZod(schema) || standard(schema) !== undefined;

/** JSON Schema of any schema. `direction` is `input` for arguments, `output` for results. */
export async function jsonSchema(schema, direction, what) {
  if (isZod(schema)) {
    const options = { io: direction, target: "draft-2020-12", unrepresentable: "any" };
    // The schema's own copy of zod knows it best; ours stands in for versions without the method.
    if (typeof schema.toJSONSchema === "function") return schema.toJSONSchema(options);
    const { z } = await import("./zod.mjs");
    return z.toJSONSchema(schema, options);
  }
  const family = standard(schema);
  if (family === undefined) {
    if (isObject(schema) && typeof schema !== "function" && typeof schema.parse !== "function") return schema;
    throw unfit(what, "is neither JSON Schema nor a schema object");
  }
  const convert = family.jsonSchema?.[direction];
  if (typeof convert === "function") return convert({ target: "draft-2020-12" });
  throw unfit(what, `is a schema of ${family.vendor} that cannot be written as JSON Schema`);
}

const unfit = (what, why) =>
  new RunnerError("invalid_tool", `${what} ${why}`, {
    __proto__: null,
    suggestion: "use zod 4 (import { z } from 'zod'; nothing to install) or a JSON Schema object",
  });

/** Lets a schema object check a value: `{value}` or `{issues: [{pointer, message}]}`. JSON Schema is the host's part. */
export async function check(schema, value) {
  const family = standard(schema);
  if (family === undefined || typeof family.validate !== "function") return { __proto__: null, value };
  const answer = await family.validate(value);
  if (answer.issues === undefined || answer.issues === null) return { __proto__: null, value: answer.value };
  const issues = [];
  for (let i = 0; i < answer.issues.length; i += 1) {
    const { message, path } = answer.issues[i];
    issues[i] = { pointer: pointer(path), message: safe.text(message) };
  }
  return { __proto__: null, issues };
}

function pointer(path) {
  let out = "";
  for (let i = 0; path !== undefined && i < path.length; i += 1) {
    const key = isObject(path[i]) ? path[i].key : path[i];
    out += `/${safe.join(safe.split(safe.join(safe.split(safe.text(key), "~"), "~0"), "/"), "~1")}`;
  }
  return out;
}
