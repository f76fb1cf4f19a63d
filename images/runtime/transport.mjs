// What carries the talk: descriptor 3, a socket whose other end the guest has.
//
// Reads come from the event loop. Writes are made at once where the socket has room, which it nearly
// always has: Node's own way through its streams costs a tool milliseconds for its first request.

import net from "node:net";

import * as safe from "./intrinsics.mjs";

const DESCRIPTOR = 3;
/** What one read takes at most: as much as the kernel's buffer of a socket pair commonly holds. */
const READ_BUFFER = 256 * 1024;
/** How long the last frames may wait for a host that does not read. The host's own clock is shorter in practice. */
const LAST_WRITE_MS = 5_000;

const socketWrite = net.Socket.prototype.write;
const socketRef = net.Socket.prototype.ref;
const socketUnref = net.Socket.prototype.unref;

/** Takes the descriptor. */
export function descriptor() {
  let listener;
  let flying; // the bytes that were given to the socket and are not known to be written
  const socket = new net.Socket({
    fd: DESCRIPTOR,
    readable: true,
    writable: true,
    onread: {
      buffer: safe.allocate(READ_BUFFER),
      callback: (count, buffer) => {
        listener.take(buffer, count);
        return true;
      },
    },
  });
  socket.on("error", (error) => listener.closed(`the channel to the host broke: ${error.message}`));
  socket.on("end", () => listener.closed("the host closed the channel"));
  socket.on("close", () => listener.closed("the channel to the host was closed"));
  const handle = socket._handle;

  return {
    __proto__: null,
    /** Who hears: `take(buffer, count)`, and `closed(why)` once or more. */
    listen(who) {
      listener = who;
    },
    /** Writes; whether that is done. If not, `done(error)` is called when it is, and nothing may be written before. */
    write(bytes, done) {
      const count = isBent() ? 0 : writeSome(bytes, 0);
      if (count === bytes.length) return true;
      flying = safe.view(bytes, count);
      safe.apply(socketWrite, socket, [
        flying,
        (error) => {
          flying = undefined;
          done(error);
        },
      ]);
      return false;
    },
    /** Writes what the socket still has, which is known by its size. The event loop must not run afterwards. */
    land() {
      if (flying === undefined) return;
      const left = safe.min(handle?.writeQueueSize ?? 0, flying.length);
      const tail = safe.view(flying, flying.length - left);
      flying = undefined;
      writeNow(tail);
    },
    writeNow,
    /** Whether the channel keeps the process alive: only while something is expected from it. */
    hold(isNeeded) {
      safe.apply(isNeeded ? socketRef : socketUnref, socket, []);
    },
  };
}

const plain = {};

/** Whether a tool has given every object a name by which Node's file functions know that they failed. */
const isBent = () => plain.errno !== undefined || plain.error !== undefined;

/** Writes all, and waits where the socket is full. */
function writeNow(bytes) {
  let waited = 0;
  for (let at = 0; at < bytes.length; ) {
    const count = writeSome(bytes, at);
    at += count;
    if (count > 0 || at === bytes.length) continue;
    if (waited > LAST_WRITE_MS) throw new safe.Fault("the host does not read");
    safe.sleep(1);
    waited += 1;
  }
}

/** Writes what there is room for. The descriptor does not block: Node has seen to that. */
function writeSome(bytes, at) {
  try {
    return safe.writeSync(DESCRIPTOR, bytes, at, bytes.length - at);
  } catch (error) {
    if (error?.code === "EAGAIN") return 0;
    throw error;
  }
}
