// The talk with the host: sends requests, notes and the result, and receives replies, bytes, credit and
// the abort.
//
// It knows frames and requests, not what they mean (`platform.mjs` gives them meaning) nor what carries
// them (`transport.mjs`). Whatever breaks the talk (the host is gone, somebody closed the descriptor, a
// frame that makes no sense) ends it once, with an error for every request that waits: nobody waits
// for ever.

import * as safe from "./intrinsics.mjs";
import * as form from "./frames.mjs";
import { RunnerError, ofRequest, trace } from "./errors.mjs";

/** What one write joins: many small frames cost one system call. */
const WRITE_BATCH = 256 * 1024;
/** Requests under way at once. More wait here, in order, so that a tool may start thousands. */
const MAX_UNDER_WAY = 64;
/** Bytes of their parameters together; the host holds no more than twice this. */
const MAX_UNDER_WAY_BYTES = 4 * 1024 * 1024;
/** Notes that are not sent yet, in bytes: what a tool logs beyond that without a pause is counted and dropped. */
const MAX_NOTES_WAITING = 1024 * 1024;

/** Opens the talk. `events`: `start(job, code)`, `abort(reason)`, `broken(error)`, each called at most once. */
export function open(events, transport) {
  const requests = new safe.Table();
  const queue = [];
  let queueHead = 0;
  const waiting = [];
  let waitingHead = 0;
  let lastId = 0;
  let underWay = 0;
  let underWayBytes = 0;
  let isOver = false;
  let broken;
  let isFlying = false; // bytes were given to the transport and are not known to be written
  let notesWaiting = 0;
  let notesDropped = 0;
  let job;
  let code = [];

  const read = reader((kind, id, payload) => {
    try {
      receive(kind, id, payload);
    } catch (error) {
      fail("protocol_error", `the host's frame cannot be read: ${error?.message}`);
    }
  });
  transport.listen({
    __proto__: null,
    take(buffer, count) {
      const problem = read(buffer, count);
      if (problem !== undefined) fail("protocol_error", problem);
    },
    closed: (why) => fail("channel_closed", why),
  });

  // --- receiving ----------------------------------------------------------------------------

  function receive(kind, id, payload) {
    if (kind === form.HOST_CHUNK && id !== 0) {
      const request = safe.tableGet(requests, id);
      if (request !== undefined && !request.isDropped) {
        request.parts[request.parts.length] = payload;
        request.size += payload.length;
      }
    } else if (kind === form.REPLY) {
      settle(id, safe.parseJson(safe.fromUtf8(payload)));
    } else if (kind === form.CREDIT) {
      const request = safe.tableGet(requests, id);
      if (request?.body !== undefined) {
        request.credit += form.word(payload, 0);
        sendBody(request);
      }
    } else if (kind === form.ABORT) {
      const { reason } = safe.parseJson(safe.fromUtf8(payload));
      events.abort(typeof reason === "string" ? reason : "the call was cancelled");
    } else if (kind === form.START && job === undefined) {
      job = safe.parseJson(safe.fromUtf8(payload));
    } else if (kind === form.HOST_CHUNK && code !== undefined) {
      code[code.length] = payload;
    } else if (kind === form.HOST_END && job !== undefined && code !== undefined) {
      const whole = joined(code);
      code = undefined;
      holdOpen();
      events.start(job, whole);
    } else {
      fail("protocol_error", `the host sent a frame of kind ${kind} that does not fit here`);
    }
  }

  function settle(id, reply) {
    const request = safe.tableGet(requests, id);
    if (request === undefined) return fail("protocol_error", "the host answered a request that nobody made");
    safe.tableDelete(requests, id);
    underWay -= 1;
    underWayBytes -= request.cost;
    // The rest of a body that nobody wants is not sent, but the body does end.
    if (request.body !== undefined) push(form.frame(form.END, id));
    request.body = undefined;
    if (safe.hasOwn(reply, "error")) request.reject(ofRequest(refusal(reply.error, request.trace), id));
    else request.resolve({ __proto__: null, ok: reply.ok, bytes: request.isDropped ? undefined : joined(request.parts, request.size) });
    next();
    holdOpen();
  }

  // --- requests -----------------------------------------------------------------------------

  /**
   * Asks the host. Resolves to `{ok, bytes}`; rejects with a RunnerError whose stack is the caller's.
   * `body` are bytes to send along, `signal` cancels.
   */
  function request(method, params, body, signal) {
    const here = trace();
    return new safe.Later((resolve, reject) => {
      const refuse = (error, message) => reject(new RunnerError(error, message, { __proto__: null, trace: here }));
      if (broken !== undefined) return refuse(broken.code, broken.message);
      if (isOver) return refuse("channel_closed", "the call is over");
      const written = form.json({ __proto__: null, method, params, body: body !== undefined });
      if (form.loneSurrogate(written) >= 0) return refuse("invalid_argument", "the request holds text that is no Unicode");
      const payload = safe.utf8(written);
      if (payload.length > form.MAX_REQUEST) return refuse("too_large", `a request is at most ${form.MAX_REQUEST} bytes`);
      const cancelled = () => new RunnerError("cancelled", "the request was cancelled", { __proto__: null, trace: here });
      if (signal !== undefined && safe.isAborted(signal)) return reject(cancelled());

      const one = { __proto__: null, id: 0, payload, cost: payload.length, body, sent: 0, credit: form.FIRST_CREDIT, parts: [], size: 0, trace: here, isDropped: false };
      const stop = () => {
        one.isDropped = true;
        one.parts = [];
        one.body = one.body && NOTHING;
        if (one.id !== 0 && safe.tableGet(requests, one.id) === one) push(form.frame(form.CANCEL, one.id));
        reject(cancelled());
      };
      const done = () => signal !== undefined && safe.unlisten(signal, "abort", stop);
      one.resolve = (value) => (done(), resolve(value));
      one.reject = (error) => (done(), reject(error));
      if (signal !== undefined) safe.listen(signal, "abort", stop);
      waiting[waiting.length] = one;
      next();
      holdOpen();
    });
  }

  /** Sends requests that wait, as far as there is room. */
  function next() {
    while (underWay < MAX_UNDER_WAY && waitingHead < waiting.length) {
      const one = waiting[waitingHead];
      if (underWay > 0 && underWayBytes + one.cost > MAX_UNDER_WAY_BYTES) break;
      waiting[waitingHead] = undefined;
      waitingHead += 1;
      if (one.isDropped) continue;
      lastId += 1;
      one.id = lastId;
      safe.tableSet(requests, one.id, one);
      underWay += 1;
      underWayBytes += one.cost;
      push(form.frame(form.REQUEST, one.id, one.payload));
      one.payload = undefined;
      if (one.body !== undefined) sendBody(one);
    }
    if (waitingHead === waiting.length) {
      waiting.length = 0;
      waitingHead = 0;
    }
  }

  function sendBody(one) {
    const { body } = one;
    while (one.sent < body.length && one.credit > 0) {
      const size = safe.min(form.MAX_CHUNK, one.credit, body.length - one.sent);
      push(form.frame(form.CHUNK, one.id, safe.view(body, one.sent, one.sent + size)));
      one.sent += size;
      one.credit -= size;
    }
    if (one.sent >= body.length) {
      one.body = undefined;
      push(form.frame(form.END, one.id));
    }
  }

  /** Tells the host to give up all that is under way: the call is being ended. */
  function cancelAll() {
    safe.tableForEach(requests, (_, id) => push(form.frame(form.CANCEL, id)));
  }

  // --- sending ------------------------------------------------------------------------------

  /** Sends a note; `json` is its whole text. */
  function note(json) {
    const payload = safe.utf8(json);
    if (isOver || broken !== undefined || payload.length > form.MAX_NOTE) return false;
    if (notesWaiting > MAX_NOTES_WAITING) {
      notesDropped += 1;
      return false;
    }
    tellDropped();
    notesWaiting += payload.length;
    push(form.frame(form.NOTE, 0, payload));
    return true;
  }

  function tellDropped() {
    if (notesDropped === 0) return;
    const message = `${notesDropped} lines were dropped: they were logged faster than they could be sent`;
    notesDropped = 0;
    push(form.frame(form.NOTE, 0, safe.utf8(form.json({ __proto__: null, log: { __proto__: null, level: "warn", message } }))));
  }

  function push(bytes) {
    if (isOver || broken !== undefined) return;
    queue[queue.length] = bytes;
    pump();
  }

  function pump() {
    try {
      while (!isFlying && queueHead < queue.length) isFlying = !transport.write(takeBatch(), wrote);
    } catch (error) {
      fail("channel_closed", `the channel to the host broke: ${error?.message}`);
    }
  }

  function wrote(error) {
    isFlying = false;
    if (error) return fail("channel_closed", `the channel to the host broke: ${error.message}`);
    pump();
  }

  function takeBatch() {
    notesWaiting = 0;
    let size = 0;
    let end = queueHead;
    while (end < queue.length && (end === queueHead || size + queue[end].length <= WRITE_BATCH)) {
      size += queue[end].length;
      end += 1;
    }
    let batch = queue[queueHead];
    if (end > queueHead + 1) {
      batch = safe.allocate(size);
      for (let i = queueHead, at = 0; i < end; at += queue[i].length, i += 1) safe.copyInto(batch, queue[i], at);
    }
    for (let i = queueHead; i < end; i += 1) queue[i] = undefined;
    queueHead = end;
    if (queueHead === queue.length) {
      queue.length = 0;
      queueHead = 0;
    }
    return batch;
  }

  /** Writes all that waits, at once and without the event loop, which must not run afterwards. */
  function flush() {
    try {
      isFlying = false;
      transport.land();
      while (queueHead < queue.length) transport.writeNow(takeBatch());
      return true;
    } catch {
      return false; // the host is gone: there is nobody left to tell
    }
  }

  /** Sends the result, the last frame, and everything before it. The event loop must not run afterwards. */
  function finish(json) {
    if (isOver || broken !== undefined) return false;
    tellDropped();
    queue[queue.length] = form.frame(form.RESULT, 0, safe.utf8(json));
    isOver = true;
    return flush();
  }

  // --- the end ------------------------------------------------------------------------------

  function fail(code, message) {
    if (broken !== undefined || isOver) return;
    broken = { __proto__: null, code, message };
    const refuse = (one) => {
      if (one !== undefined) one.reject(new RunnerError(code, message, { __proto__: null, trace: one.trace }));
    };
    safe.tableForEach(requests, refuse);
    for (let i = waitingHead; i < waiting.length; i += 1) refuse(waiting[i]);
    events.broken(broken);
  }

  /** The channel keeps the process alive only while something is expected from it. */
  function holdOpen() {
    transport.hold(job === undefined || code !== undefined || underWay > 0);
  }

  return {
    /** Whether nothing came yet. */
    isUntouched: () => job === undefined && broken === undefined,
    request,
    note,
    cancelAll,
    flush,
    finish,
    /** Requests that have no answer yet and that somebody may still wait for. */
    open() {
      let count = 0;
      safe.tableForEach(requests, (one) => (count += one.isDropped ? 0 : 1));
      for (let i = waitingHead; i < waiting.length; i += 1) count += waiting[i].isDropped ? 0 : 1;
      return count;
    },
  };
}

const NOTHING = safe.allocate(0);

/** An error reply as the Error that the tool catches. */
function refusal(error, here) {
  const code = typeof error?.code === "string" ? error.code : "engine_error";
  const message = typeof error?.message === "string" ? error.message : "the host refused without a word";
  const { path, rule, suggestion, recoverable } = { __proto__: null, ...error };
  return new RunnerError(code, message, { __proto__: null, path, rule, suggestion, recoverable, trace: here });
}

function joined(parts, size) {
  if (parts.length === 1) return parts[0];
  let total = size;
  if (total === undefined) {
    total = 0;
    for (let i = 0; i < parts.length; i += 1) total += parts[i].length;
  }
  const whole = safe.allocate(total);
  for (let i = 0, at = 0; i < parts.length; at += parts[i].length, i += 1) safe.copyInto(whole, parts[i], at);
  return whole;
}

/** Cuts a stream of bytes into frames; `take(kind, id, payload)` owns the payload. Returns what is wrong, if anything. */
function reader(take) {
  const header = safe.allocate(form.HEADER);
  let have = 0;
  let payload;
  let filled = 0;
  return (buffer, count) => {
    let at = 0;
    while (at < count) {
      if (payload === undefined) {
        while (have < form.HEADER && at < count) header[have++] = buffer[at++];
        if (have < form.HEADER) return undefined;
        const length = form.word(header, 0);
        if (length > form.MAX_FROM_HOST) return `the host sent a frame of ${length} bytes`;
        payload = safe.allocate(length);
        filled = 0;
      }
      const size = safe.min(payload.length - filled, count - at);
      if (size > 0) safe.copyInto(payload, safe.view(buffer, at, at + size), filled);
      filled += size;
      at += size;
      if (filled === payload.length) {
        const whole = payload;
        payload = undefined;
        have = 0;
        take(header[4], form.word(header, 5), whole);
      }
    }
    return undefined;
  };
}
