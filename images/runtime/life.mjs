// The life of one tool: load, then run it, describe it or check it, and always clean up.
//
//   run       initialize -> validate -> execute -> (handleError, retry) -> cleanup
//   describe  load, and tell the metadata
//   check     describe, then initialize -> healthCheck -> cleanup

import * as safe from "./intrinsics.mjs";
import { RunnerError, codeIsBelow, cut, describe, display, peek } from "./errors.mjs";

/** How long `cleanup` may take: the result is known by then and somebody waits for it. */
const CLEANUP_MS = 5_000;
/** The longest pause between two attempts; a call has a time limit anyway. */
const MAX_BACKOFF_MS = 60_000;
const MAX_ATTEMPTS = 100;

// Loaded when they are needed: most runs need neither, and each file costs start-up time.
const metadata = async (tool, job) => (await import("./metadata.mjs")).metadata(tool, job);
const isSchemaObject = (schema) => schema !== undefined && schema !== null && peek(schema, "~standard") !== undefined;
async function check(schema, value) {
  return isSchemaObject(schema) ? (await import("./schema.mjs")).check(schema, value) : { __proto__: null, value };
}

let folder;

/** Writes the code where it can be imported, and imports it. */
async function load(job, code) {
  if (folder === undefined) {
    folder = `${safe.mkdtempSync(`${process.env.TMPDIR || "/tmp"}/tool-`)}/`;
    codeIsBelow(folder);
  }
  const file = pathOf(job.name);
  safe.writeFileSync(file, code);
  return import(`file://${file}`);
}

const pathOf = (name) => `${folder}${fileName(name)}.mjs`;

/** Removes the code of this name again. */
export function discard(name) {
  try {
    safe.unlinkSync(pathOf(name));
  } catch {
    // It was never written.
  }
}

/** A name that is safe in a URL and in a stack. */
function fileName(name) {
  return typeof name === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(name) ? name : "tool";
}

/** The object whose `execute` is the tool. */
function find(module, form) {
  const named = peek(module, "tool");
  const usual = peek(module, "default");
  if (form === "yaml") {
    const execute = peek(module, "execute") ?? (typeof usual === "function" ? usual : peek(usual ?? {}, "execute"));
    if (typeof execute !== "function") throw unfit("the code exports no function `execute(args, context)`");
    return { execute };
  }
  let tool = named ?? usual;
  if (typeof tool === "function" && typeof tool.prototype?.execute === "function") tool = safe.construct(tool, []);
  if (typeof tool !== "object" || tool === null) throw unfit("the module exports no `tool` (nor a default export that is one)");
  if (typeof tool.execute !== "function") throw unfit("the tool has no function `execute(args, context)`");
  return tool;
}

const unfit = (message) => new RunnerError("invalid_tool", message);

/** Loads the tool and does what the job asks. Resolves to the value of the result; throws what became of it. */
export async function live(job, code, context, state) {
  let tool;
  try {
    state.phase = "load";
    tool = find(await load(job, code), job.form);
  } catch (error) {
    throw failure(error, "load_failed");
  }
  if (job.mode === "describe") return metadata(tool, job);
  state.cleanUp = () => cleanUp(tool, context, state);
  if (job.mode === "check") return examine(tool, job, context, state);
  try {
    await hook(tool, "initialize", [context], state);
    return await attempts(tool, job, context, state);
  } finally {
    await cleanUp(tool, context, state);
  }
}

/** Runs a hook if the tool has it. */
async function hook(tool, name, values, state) {
  const method = tool[name];
  if (typeof method !== "function") return undefined;
  state.phase = name;
  return safe.apply(method, tool, values);
}

// --- run ------------------------------------------------------------------------------------

async function attempts(tool, job, context, state) {
  const args = await validated(tool, job.args, context, state);
  const policy = retryOf(tool);
  for (let attempt = 1; ; attempt += 1) {
    try {
      state.phase = "execute";
      return await valid(tool, unwrapped(await safe.apply(tool.execute, tool, [args, context]), job.form, state));
    } catch (thrown) {
      const error = thrown instanceof Settled ? thrown : await handled(tool, thrown, context, state);
      if (attempt >= policy.attempts || !mayRetry(policy, error) || safe.isAborted(context.signal)) throw error;
      const pause = safe.min(MAX_BACKOFF_MS, policy.backoff * policy.multiplier ** (attempt - 1));
      context.logger.warn(`attempt ${attempt} of ${policy.attempts} failed (${error.error.code}): ${error.error.message}; again in ${pause} ms`);
      await new safe.Later((resolve) => safe.later(resolve, pause));
    }
  }
}

/** An error in its final form: what the result will say. `issues` are those of a value that does not fit `returnType`. */
export class Settled {
  constructor(error, issues) {
    this.error = error;
    this.issues = issues;
  }
}

/** Any thrown value in its final form. */
export const failure = (thrown, code) => (thrown instanceof Settled ? thrown : new Settled(describe(thrown, code)));

/** One line for a list of issues. */
function sentence(issues) {
  let out = "";
  for (let i = 0; i < issues.length; i += 1) {
    const { pointer, message } = issues[i];
    out += `${i > 0 ? "; " : ""}${pointer === "" ? "" : `${pointer}: `}${message}`;
  }
  return out;
}

async function validated(tool, given, context, state) {
  const checked = await check(tool.parameters, given);
  if (checked.issues !== undefined) throw invalid(`the arguments do not fit: ${sentence(checked.issues)}`, checked.issues);
  const answer = await hook(tool, "validate", [checked.value, context], state);
  if (answer === false) throw invalid("the tool refuses these arguments", []);
  if (typeof answer === "object" && answer !== null && peek(answer, "valid") === false) {
    const errors = peek(answer, "errors");
    const issues = [];
    for (let i = 0; safe.isArray(errors) && i < errors.length; i += 1) {
      const entry = errors[i];
      issues[i] = { pointer: "", message: display(typeof entry === "object" && entry !== null ? (peek(entry, "message") ?? entry) : entry) };
    }
    throw invalid(issues.length > 0 ? `the arguments do not fit: ${sentence(issues)}` : "the tool refuses these arguments", issues);
  }
  return checked.value;
}

const invalid = (message, errors) => new Settled(describe(new RunnerError("invalid_arguments", message, { __proto__: null, data: { errors } })));

/** A result that says itself whether it is one: `{success, data}` or `{success: false, error}`. */
function unwrapped(value, form, state) {
  if (form !== "module" || typeof value !== "object" || value === null || typeof peek(value, "success") !== "boolean") return value;
  const keys = safe.ownKeys(value);
  for (let i = 0; i < keys.length; i += 1) {
    if (keys[i] !== "success" && keys[i] !== "data" && keys[i] !== "error" && keys[i] !== "metadata") return value;
  }
  bill(value, state);
  if (value.success && safe.hasOwn(value, "data")) return value.data;
  if (!value.success && safe.hasOwn(value, "error")) throw new Settled(describe(value.error));
  return value;
}

/** Adds up `metadata.cost` of all attempts. What is no price is kept as text, which the host refuses. */
function bill(value, state) {
  const cost = peek(peek(value, "metadata") ?? {}, "cost");
  if (cost === undefined || typeof state.cost === "string") return;
  const isPrice = typeof cost === "number" && safe.isFinite(cost) && cost >= 0;
  state.cost = isPrice ? (state.cost ?? 0) + cost : cut(display(cost), 64);
}

async function valid(tool, value) {
  const checked = await check(tool.returnType, value);
  if (checked.issues === undefined) return checked.value;
  const error = new RunnerError("invalid_result", `the result does not fit returnType: ${sentence(checked.issues)}`);
  throw new Settled(describe(error), checked.issues);
}

/** What the tool's own `handleError` makes of an error. */
async function handled(tool, thrown, context, state) {
  const error = describe(thrown);
  try {
    const made = await hook(tool, "handleError", [thrown, context], state);
    if (typeof made === "object" && made !== null) {
      const before = error.code;
      const better = describe(made, before);
      error.code = better.code;
      if (typeof peek(made, "message") === "string") error.message = better.message;
      error.recoverable = better.recoverable;
      // Under another code it is no refusal of the host any more.
      if (better.code !== before) error.refused = undefined;
      error.data = better.data ?? error.data;
    }
  } catch (second) {
    context.logger.warn("handleError failed itself", second);
  }
  return new Settled(error);
}

function retryOf(tool) {
  const given = tool.retry;
  const number = (value, usual, least, most) => (typeof value === "number" && value >= least ? safe.min(value, most) : usual);
  if (typeof given !== "object" || given === null) return { attempts: 1, backoff: 0, multiplier: 1, codes: undefined };
  return {
    attempts: number(given.maxAttempts, 1, 1, MAX_ATTEMPTS),
    backoff: number(given.backoffMs, 0, 0, MAX_BACKOFF_MS),
    multiplier: number(given.backoffMultiplier, 1, 1, 100),
    codes: safe.isArray(given.retryableErrors) ? given.retryableErrors : undefined,
  };
}

/** An error is tried again if its code is listed, or, without a list, if it calls itself recoverable. */
function mayRetry(policy, { error }) {
  if (policy.codes === undefined) return error.recoverable === true;
  for (let i = 0; i < policy.codes.length; i += 1) if (policy.codes[i] === error.code) return true;
  return false;
}

// --- check ----------------------------------------------------------------------------------

async function examine(tool, job, context, state) {
  const about = await metadata(tool, job);
  const auth = tool.requiredAuth;
  const testMethod = peek(auth ?? {}, "testMethod");
  if (typeof tool.healthCheck !== "function" && typeof testMethod !== "function") return about;
  try {
    await hook(tool, "initialize", [context], state);
    if (typeof testMethod === "function") {
      state.phase = "testMethod";
      if ((await safe.apply(testMethod, auth, [context])) !== true) throw new RunnerError("authentication_required", "the credentials do not work");
    }
    const health = typeof tool.healthCheck === "function" ? await hook(tool, "healthCheck", [context], state) : true;
    about.health = typeof health === "boolean" ? { healthy: health } : { ...health, healthy: peek(health ?? {}, "healthy") === true };
  } catch (error) {
    about.health = { healthy: false, message: `${state.phase}: ${describe(error).message}` };
  } finally {
    await cleanUp(tool, context, state);
  }
  return about;
}

// --- the end --------------------------------------------------------------------------------

/** Runs `cleanup` once, however the call ends; its own failure never changes the result. */
async function cleanUp(tool, context, state) {
  if (typeof tool.cleanup !== "function" || state.isCleaned) return;
  state.isCleaned = true;
  let timer;
  try {
    await new safe.Later((resolve, reject) => {
      timer = safe.later(() => {
        context.logger.warn(`cleanup took longer than ${CLEANUP_MS} ms and was not waited for`);
        resolve();
      }, CLEANUP_MS);
      settle(hook(tool, "cleanup", [context], state), resolve, reject);
    });
  } catch (error) {
    context.logger.error("cleanup failed", error);
  } finally {
    safe.forget(timer);
  }
}

/** `then` without asking the promise for it: it may have been replaced. */
async function settle(promise, resolve, reject) {
  try {
    resolve(await promise);
  } catch (error) {
    reject(error);
  }
}
