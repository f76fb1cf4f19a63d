// `context`, the second argument of `execute`: what a tool has of the world.

import * as safe from "./intrinsics.mjs";
import * as form from "./frames.mjs";
import { cut, describe, display, plainJson } from "./errors.mjs";
import { files } from "./files.mjs";
import { executor, http } from "./platform.mjs";

/** What is kept of one log message, in characters; more would not fit into a note once escaped. */
const MAX_MESSAGE = 8 * 1024;
/** What is kept of the fields of one log line, in characters of JSON. */
const MAX_FIELDS = 16 * 1024;

/** Builds the context of one job. */
export function context(job, channel, signal) {
  const log = logger(channel);
  const conversation = job.conversation ?? undefined;
  return safe.freeze({
    platform: safe.freeze({
      fs: files(channel.request, log.warn),
      executor: executor(channel.request),
      http: http(channel.request),
    }),
    logger: log,
    progress: progress(channel),
    config: deepFreeze(job.config ?? {}),
    conversation: conversation === undefined ? undefined : deepFreeze(conversation),
    workspace: job.workspace,
    signal,
  });
}

function logger(channel) {
  const at = (level) => (message, ...rest) => {
    line(channel, level, message, rest);
  };
  return safe.freeze({ debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") });
}

/** One line of log: a message, and fields if an object follows. Never throws: a log line is not worth a tool. */
function line(channel, level, message, rest) {
  let said = message instanceof safe.Fault ? told(message) : display(message);
  let fields = message instanceof safe.Fault ? plainJson({ __proto__: null, error: message }, MAX_FIELDS) : undefined;
  for (let i = 0; i < rest.length; i += 1) {
    const more = rest[i];
    const json = typeof more === "object" && more !== null && fields === undefined ? plainJson(asFields(more), MAX_FIELDS) : undefined;
    // An object may write itself as something else, as a Date does.
    if (json !== undefined && safe.startsWith(json, "{")) fields = json;
    else if (more !== undefined) said += ` ${display(more)}`;
  }
  const entry = { __proto__: null, level, message: cut(said, MAX_MESSAGE), fields: fields === undefined ? undefined : new form.Raw(fields) };
  channel.note(form.wellFormed(form.json({ __proto__: null, log: entry })));
}

const told = (error) => {
  const { name, message } = describe(error);
  return `${name}: ${message}`;
};

const asFields = (value) => (value instanceof safe.Fault ? { __proto__: null, error: value } : safe.isArray(value) ? { __proto__: null, items: value } : value);

function progress(channel) {
  return (fraction, words) => {
    if (typeof fraction !== "number" || !safe.isFinite(fraction)) return;
    const entry = {
      __proto__: null,
      fraction: safe.max(0, safe.min(1, fraction)),
      text: words === undefined ? undefined : cut(display(words), MAX_MESSAGE),
    };
    channel.note(form.wellFormed(form.json({ __proto__: null, progress: entry })));
  };
}

function deepFreeze(value) {
  if (typeof value !== "object" || value === null) return value;
  const keys = safe.ownKeys(value);
  for (let i = 0; i < keys.length; i += 1) deepFreeze(value[keys[i]]);
  return safe.freeze(value);
}
