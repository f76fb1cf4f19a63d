// The runtime of tools: what `node` starts inside a tool's sandbox.
//
// It opens the talk with the host on descriptor 3, receives one job and the code of one tool, runs
// it, and sends one result. It ends the process itself: a tool that leaves timers or sockets behind
// is over when its promise settles. README.md beside this file tells the whole talk.
//
// It may be started long before the job comes. Then it rehearses once, and sleeps.
//
// Trust: none is asked for. The tool can do to this process what it likes; the host checks all.

import * as safe from "./intrinsics.mjs";
import { failure } from "./life.mjs";
import { serve } from "./serve.mjs";
import { descriptor } from "./transport.mjs";

/** A job that is on its way comes sooner than this; a later one finds us rehearsed. */
const REHEARSE_AFTER_MS = 20;

const call = serve(descriptor(), safe.exit);

// --- what a tool leaves to the process ------------------------------------------------------

/**
 * Prints are written at once. Node writes to pipes in the background and forgets the rest at exit.
 * The streams are made on first use: most tools print nothing, and making them takes milliseconds.
 */
function printAtOnce(name) {
  const { get } = Object.getOwnPropertyDescriptor(process, name);
  let stream;
  const first = () => {
    if (stream === undefined) {
      stream = safe.apply(get, process, []);
      stream._handle?.setBlocking?.(true);
    }
    return stream;
  };
  safe.define(process, name, { __proto__: null, configurable: true, enumerable: true, get: first });
}

printAtOnce("stdout");
printAtOnce("stderr");
process.setSourceMapsEnabled(true);
Error.stackTraceLimit = 30;
process.on("uncaughtException", (error) => call.end(failure(error, "uncaught_exception")));
process.on("unhandledRejection", (error) => call.end(failure(error, "unhandled_rejection")));
// Whoever cancels the call sends one of these, and kills the process a moment later.
process.on("SIGINT", () => call.cancel("the call was interrupted"));
process.on("SIGTERM", () => call.cancel("the call was cancelled"));
process.on("beforeExit", () => call.starve());
process.on("exit", () => call.flush());
safe.later(async () => {
  if (!call.isUntouched()) return;
  try {
    await (await import("./rehearse.mjs")).rehearse();
  } catch {
    // The call itself will show what is wrong here.
  }
}, REHEARSE_AFTER_MS);
