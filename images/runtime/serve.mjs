// One call: from the first frame of the host to the result, over any transport.
//
// `main.mjs` serves the real one. `rehearse.mjs` serves one that leads nowhere, so that all of this has
// run once before the first tool comes.

import * as safe from "./intrinsics.mjs";
import { open } from "./channel.mjs";
import { context } from "./context.mjs";
import { RunnerError } from "./errors.mjs";
import { failure, live } from "./life.mjs";
import { failureJson, valueJson } from "./result.mjs";

/** The result was sent. */
export const EXIT_TOLD = 0;
/** Nobody could be told: the channel is gone. */
export const EXIT_UNTOLD = 70;

/** Sets what the policy gives the tool. Before that the process has only what every tool's has. */
function setVariables(variables) {
  if (variables === undefined) return;
  const names = safe.ownKeys(variables);
  for (let i = 0; i < names.length; i += 1) process.env[names[i]] = variables[names[i]];
}

/** Serves one call; `exit(code)` ends it. */
export function serve(transport, exit) {
  const controller = new AbortController();
  const abort = controller.abort.bind(controller);
  const state = { __proto__: null, phase: "start", isEnding: false, isCleaned: false, cleanUp: undefined, warn: undefined, cost: undefined };

  const channel = open(
    {
      start(job, code) {
        setVariables(job.env);
        const world = context(job, channel, controller.signal);
        state.warn = world.logger.warn;
        settle(live(job, code, world, state));
      },
      abort: cancel,
      broken() {
        // The host's end is gone, or talks nonsense: there is nobody to run for.
        safe.later(() => exit(EXIT_UNTOLD), 0);
      },
    },
    transport,
  );

  async function settle(living) {
    let value;
    try {
      value = await living;
    } catch (error) {
      return end(failure(error));
    }
    if (state.isEnding) return undefined;
    try {
      return tell(valueJson(value, state.cost));
    } catch (error) {
      return end(failure(error));
    }
  }

  function cancel(reason) {
    channel.cancelAll();
    abort(new RunnerError("cancelled", reason));
  }

  /** Ends with an error, after the tool's cleanup. Only the first end counts. */
  async function end(settled) {
    if (state.isEnding) return;
    state.isEnding = true;
    try {
      await state.cleanUp?.();
    } finally {
      tell(failureJson(settled, state.cost));
    }
  }

  function tell(json) {
    state.isEnding = true;
    const open = channel.open();
    if (open > 0) state.warn?.(`${open} request${open === 1 ? " was" : "s were"} still under way when the tool ended: await every promise`);
    exit(channel.finish(json) ? EXIT_TOLD : EXIT_UNTOLD);
  }

  /** Nothing is left that could settle the promise we wait for. */
  function starve() {
    if (state.phase === "start") return;
    const what = state.phase === "load" ? "loading the module" : `${state.phase}()`;
    const error = new RunnerError("never_settled", `${what} waits for something that never comes: its promise was not settled and nothing is left to do`);
    if (state.isEnding) tell(failureJson(failure(error), state.cost));
    else end(failure(error));
  }

  return { __proto__: null, isUntouched: channel.isUntouched, flush: channel.flush, cancel, end, starve };
}
