// The runtime of tools: what `node` starts inside a tool's sandbox.
//
// It opens the talk with the host on descriptor 3, receives one job and the code of one tool, runs
// it, and sends one result. It ends the process itself: a tool that leaves timers or sockets behind
// is over when its promise settles. README.md beside this file tells the whole talk.
//
// Trust: none is asked for. The tool can do to this process what it likes; the host checks all.

import * as safe from "./intrinsics.mjs";
import { open } from "./channel.mjs";
import { context } from "./context.mjs";
import { RunnerError } from "./errors.mjs";
import { failure, live } from "./life.mjs";
import { failureJson, valueJson } from "./result.mjs";

/** The result was sent. */
const EXIT_TOLD = 0;
/** Nobody could be told: the channel is gone. */
const EXIT_UNTOLD = 70;

const controller = new AbortController();
const abort = controller.abort.bind(controller);
const state = { __proto__: null, phase: "start", isEnding: false, isCleaned: false, cleanUp: undefined, warn: undefined };

const cancel = (reason) => {
  channel.cancelAll();
  abort(new RunnerError("cancelled", reason));
};

const channel = open({
  start(job, code) {
    const world = context(job, channel, controller.signal);
    state.warn = world.logger.warn;
    live(job, code, world, state).then(succeed, (error) => end(failure(error)));
  },
  abort: cancel,
  broken() {
    // The host's end is gone, or talks nonsense: there is nobody to run for.
    safe.later(() => safe.exit(EXIT_UNTOLD), 0);
  },
});

function succeed(value) {
  if (state.isEnding) return;
  try {
    tell(valueJson(value));
  } catch (error) {
    end(failure(error));
  }
}

/** Ends with an error, after the tool's cleanup. Only the first end counts. */
async function end(settled) {
  if (state.isEnding) return;
  state.isEnding = true;
  try {
    await state.cleanUp?.();
  } finally {
    tell(failureJson(settled.error));
  }
}

function tell(json) {
  state.isEnding = true;
  const open = channel.open();
  if (open > 0) state.warn?.(`${open} request${open === 1 ? " was" : "s were"} still under way when the tool ended: await every promise`);
  safe.exit(channel.finish(json) ? EXIT_TOLD : EXIT_UNTOLD);
}

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
process.on("uncaughtException", (error) => end(failure(error, "uncaught_exception")));
process.on("unhandledRejection", (error) => end(failure(error, "unhandled_rejection")));
// Whoever cancels the call sends one of these, and kills the process a moment later.
process.on("SIGINT", () => cancel("the call was interrupted"));
process.on("SIGTERM", () => cancel("the call was cancelled"));
process.on("beforeExit", () => {
  // Nothing is left that could settle the promise we wait for.
  if (state.phase === "start") return;
  const what = state.phase === "load" ? "loading the module" : `${state.phase}()`;
  const error = new RunnerError("never_settled", `${what} waits for something that never comes: its promise was not settled and nothing is left to do`);
  if (state.isEnding) tell(failureJson(failure(error).error));
  else end(failure(error));
});
process.on("exit", () => channel.flush());
