// The rehearsal: one whole call over a transport that leads nowhere, before the first tool comes.
//
// A sandbox that waits has time that a call has not. What runs for the first time is slow in any
// JavaScript engine (it is compiled then, Node starts its threads, modules are looked up), so all that
// a usual call goes through is gone through once. No foreign code is in it, nothing is left behind, and
// a rehearsal that fails changes nothing: the call will be slower, and will tell.

import * as safe from "./intrinsics.mjs";
import * as form from "./frames.mjs";
import { discard } from "./life.mjs";
import { serve } from "./serve.mjs";

const NAME = "rehearsal";
const JOB = `{"mode":"run","form":"module","name":"${NAME}","file":"","args":{"path":"a"},"config":{},"conversation":null,"workspace":"/","attempt":1}`;
/** What a small tool does: it checks its arguments, reads, logs, and answers. */
const CODE = `import { z } from ${safe.stringify(new URL("zod.mjs", import.meta.url).href)};
export const tool = {
  parameters: z.object({ path: z.string() }),
  async execute(args, context) {
    context.logger.info("read", { path: args.path });
    const text = await context.platform.fs.readFile(args.path);
    return { size: text.length };
  },
};`;

/** Rehearses; resolves when all is as it was before. */
export function rehearse() {
  return new safe.Later((resolve) => {
    let listener;
    const say = (kind, id, payload) => {
      const bytes = form.frame(kind, id, payload);
      listener.take(bytes, bytes.length);
    };
    const heard = (bytes) => {
      if (bytes[4] === form.REQUEST) safe.later(answer, 0, form.word(bytes, 5));
      return true;
    };
    const answer = (id) => {
      say(form.HOST_CHUNK, id, safe.utf8("text"));
      say(form.REPLY, id, safe.utf8('{"ok":{"bytes":4}}'));
    };
    const nowhere = {
      __proto__: null,
      listen(who) {
        listener = who;
      },
      write: heard,
      land() {},
      writeNow: heard,
      hold() {},
    };
    serve(nowhere, () => {
      discard(NAME);
      resolve();
    });
    say(form.START, 0, safe.utf8(JOB));
    say(form.HOST_CHUNK, 0, safe.utf8(CODE));
    say(form.HOST_END, 0);
  });
}
