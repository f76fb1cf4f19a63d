// The life of a tool in the module form: hooks, retries, schemas, description, health.

import assert from "node:assert/strict";
import test from "node:test";

import { run } from "./double.mjs";

const ZOD = JSON.stringify(new URL("../zod.mjs", import.meta.url).href);
const zod = (members, before = "") => `import { z } from ${ZOD};\n${before}\nexport const tool = { name: 'sample', description: 'A sample.', parameters: z.object({ n: z.number().int().default(3).describe('How many') }), ${members} };`;
const plain = (members) => `export const tool = { name: 'sample', description: 'A sample.', parameters: { type: 'object' }, ${members} };`;
const module = (code, options) => run(code, { form: "module", ...options });

test("the hooks run in order, with the tool as `this`", async () => {
  const seen = await module(plain(`
    async initialize(context) { this.steps = ['initialize']; context.logger.info('up') },
    validate(args) { this.steps.push('validate'); return { valid: true, errors: [] } },
    async execute(args, context) { this.steps.push('execute'); return { steps: this.steps, args } },
    async cleanup(context) { context.logger.info('down') }`), { args: { a: 1 } });
  assert.deepEqual(seen.value, { steps: ["initialize", "validate", "execute"], args: { a: 1 } });
  assert.deepEqual(seen.logs.map(({ message }) => message), ["up", "down"]);
});

for (const [where, members] of Object.entries({
  initialize: "initialize() { throw new Error('broken') }, execute() { return 1 }",
  validate: "validate() { throw new Error('broken') }, execute() { return 1 }",
  execute: "async execute() { throw new Error('broken') }",
  "a timer": "execute() { setTimeout(() => { throw new Error('broken') }, 1); return new Promise((go) => setTimeout(go, 5000)) }",
})) {
  test(`cleanup runs when ${where} fails`, async () => {
    const seen = await module(plain(`${members}, cleanup(context) { context.logger.info('clean') }`));
    assert.equal(seen.error.message, "broken");
    assert.deepEqual(seen.logs.map(({ message }) => message), ["clean"]);
  });
}

test("a cleanup that fails or hangs changes no result", async () => {
  const fails = await module(plain("execute() { return 1 }, cleanup() { throw new Error('no') }"));
  assert.equal(fails.value, 1);
  assert.equal(fails.logs[0].message, "cleanup failed");
  const hangs = await module(plain("execute() { return 2 }, cleanup() { return new Promise(() => {}) }"));
  assert.equal(hangs.value, 2);
  assert.match(hangs.logs[0].message, /cleanup took longer/);
});

test("arguments go through zod: defaults in, refusals listed by pointer", async () => {
  assert.deepEqual((await module(zod("execute: (args) => args"))).value, { n: 3 });
  const seen = await module(zod("execute: () => 1"), { args: { n: "x" } });
  assert.equal(seen.error.code, "invalid_arguments");
  assert.equal(seen.error.data.errors[0].pointer, "/n");
});

test("validate refuses in any form", async () => {
  for (const [answer, message] of [["false", /refuses/], ["({ valid: false, errors: ['too red', { message: 'too blue' }] })", /too red; too blue/], ["({ valid: false })", /refuses/]]) {
    const seen = await module(plain(`validate: () => ${answer}, execute: () => 1`));
    assert.equal(seen.error.code, "invalid_arguments");
    assert.match(seen.error.message, message);
  }
});

test("handleError shapes the error, retry repeats it", async () => {
  const members = `initialize() { this.tries = 0 }, retry: { maxAttempts: 3, backoffMs: 1, backoffMultiplier: 2, retryableErrors: ['FLAKY'] },
    execute() { this.tries += 1; if (this.tries < 3) throw new Error('not yet'); return this.tries },
    handleError(error) { return { code: 'FLAKY', message: 'flaky: ' + error.message, recoverable: true, suggestion: 'wait' } }`;
  const seen = await module(plain(members));
  assert.equal(seen.value, 3);
  assert.equal(seen.logs.length, 2);
  const fails = await module(plain(members.replace("< 3", "< 9")));
  assert.deepEqual({ ...fails.error, stack: undefined }, { name: "Error", message: "flaky: not yet", code: "FLAKY", recoverable: true, data: { suggestion: "wait" }, stack: undefined });
  assert.match(fails.error.stack, /Error: not yet/);
  const once = await module(plain(members.replace("['FLAKY']", "['OTHER']")));
  assert.equal(once.error.code, "FLAKY");
  assert.equal(once.logs.length, 0);
});

test("without a list, what calls itself recoverable is tried again", async () => {
  const seen = await module(plain("initialize() { this.tries = 0 }, retry: { maxAttempts: 2 }, execute() { if (this.tries++ === 0) throw Object.assign(new Error('x'), { recoverable: true }); return 'ok' }"));
  assert.equal(seen.value, "ok");
});

test("a handleError that fails leaves the first error", async () => {
  const seen = await module(plain("execute() { throw new Error('first') }, handleError() { throw new Error('second') }"));
  assert.equal(seen.error.message, "first");
  assert.match(seen.logs[0].message, /handleError failed/);
});

test("a result that names its own success is taken at its word", async () => {
  assert.deepEqual((await module(plain("execute: () => ({ success: true, data: { a: 1 }, metadata: { duration: 5 } })"))).value, { a: 1 });
  const failed = await module(plain("execute: () => ({ success: false, error: { code: 'NOPE', message: 'no', recoverable: false } })"));
  assert.equal(failed.error.code, "NOPE");
  assert.equal((await module(plain("execute: () => ({ success: false, error: 'just text' })"))).error.message, "just text");
  assert.deepEqual((await module(plain("execute: () => ({ success: true, bytes: 4 })"))).value, { success: true, bytes: 4 });
  assert.deepEqual((await run("export const execute = () => ({ success: true, data: 1 })")).value, { success: true, data: 1 });
});

test("a cost is told beside the result, added up, and refused by the host if it is no price", async () => {
  const costs = async (members) => (await module(plain(members))).result;
  const one = (cost) => `execute: () => ({ success: true, data: 1, metadata: { cost: ${cost} } })`;
  assert.deepEqual(await costs(one("0.25")), { value: 1, cost: 0.25 });
  assert.deepEqual(await costs(one("undefined")), { value: 1 });
  for (const [cost, told] of [["-1", "-1"], ["NaN", "NaN"], ["Infinity", "Infinity"], ["'1'", "1"], ["null", "null"]]) {
    assert.deepEqual(await costs(one(cost)), { value: 1, cost: told }, cost);
  }
  const twice = "initialize() { this.n = 0 }, retry: { maxAttempts: 2 }, execute() { this.n += 1; return this.n === 1 ? { success: false, error: { message: 'x', recoverable: true }, metadata: { cost: 1 } } : { success: true, data: 2, metadata: { cost: 0.5 } } }";
  assert.deepEqual(await costs(twice), { value: 2, cost: 1.5 });
  const failed = await costs("execute: () => ({ success: false, error: 'no', metadata: { cost: 2 } })");
  assert.deepEqual([failed.error.message, failed.cost], ["no", 2]);
});

test("returnType is checked and shapes the result", async () => {
  const fits = await module(zod("returnType: z.object({ a: z.number() }), execute: () => ({ a: 1, extra: 2 })"));
  assert.deepEqual(fits.value, { a: 1 });
  const wrong = await module(zod("returnType: z.object({ a: z.number() }), execute: () => ({ a: 'x' })"));
  assert.deepEqual(Object.keys(wrong.result), ["invalid"]);
  assert.equal(wrong.result.invalid[0].pointer, "/a");
  const thrown = await module(plain("execute() { throw Object.assign(new Error('x'), { code: 'invalid_result' }) }"));
  assert.equal(thrown.error.code, "invalid_result");
});

test("describe tells metadata, schemas and hooks, and runs nothing", async () => {
  const members = `version: '1.2.3', category: 'search', securityTier: 'read_only', permissions: { allowlist: ['git log*'] }, files: { read: ['**'] },
    capabilities: [{ action: 'find', description: 'Finds.', requiresConfirmation: false }], returnType: z.object({ total: z.number(), at: z.string().optional() }),
    retry: { maxAttempts: 2 }, execute() { throw 1 }, initialize() { throw 2 }, healthCheck() { throw 3 }`;
  const seen = await module(zod(members), { mode: "describe" });
  assert.deepEqual(seen.value, {
    name: "sample",
    version: "1.2.3",
    category: "search",
    securityTier: "read_only",
    description: "A sample.",
    capabilities: [{ action: "find", description: "Finds.", requiresConfirmation: false }],
    permissions: { allowlist: ["git log*"] },
    files: { read: ["**"] },
    retry: { maxAttempts: 2 },
    parameters: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { n: { type: "integer", default: 3, description: "How many", minimum: -9007199254740991, maximum: 9007199254740991 } },
    },
    returnType: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { total: { type: "number" }, at: { type: "string" } },
      required: ["total"],
      additionalProperties: false,
    },
    hooks: ["initialize", "healthCheck"],
  });
});

/** What `describe` tells of unread members, as `path: type`. */
const unread = async (code) => {
  const seen = await module(code, { mode: "describe" });
  return (seen.value?.unread ?? [`${seen.error?.code}`]).map((it) => (it.path === undefined ? it : `${it.path.join(".")}: ${it.is}`));
};

test("describe tells every member that nothing reads", async () => {
  for (const [members, expected] of [
    ["preconditions: [{ critical: true, check: async () => false }]", ["preconditions: array"]],
    ["requiresConfirmation: true, timout: 5", ["requiresConfirmation: boolean", "timout: number"]],
    ["shouldRetry() { return false }, helper: () => 1", ["shouldRetry: function", "helper: function"]],
    ["get effects() { throw new Error('not called') }", ["effects: accessor"]],
    ["nothing: null, ['__proto__']: 1, absent: undefined, [Symbol.iterator]: 1", ["nothing: null", "__proto__: number"]],
    ["retry: { maxAttempts: 2, shouldRetry: () => false }", ["retry.shouldRetry: function"]],
    ["permissions: { allowlist: ['a', () => 'b'], check: class {} }", ["permissions.allowlist.1: function", "permissions.check: function"]],
    ["permissions: new (class { allowlist = ['a'] })()", ["permissions: instance"]],
    ["permissions: Object.create({ riskLevel: 'high' })", ["permissions: instance"]],
    ["timeout: NaN, tokenCost: 5n, tags: [Symbol('x'), undefined]", ["tokenCost: bigint", "timeout: NaN", "tags.0: symbol", "tags.1: undefined"]],
    ["limits: { toJSON: () => ({}), memory: 1 }", ["limits.toJSON: function"]],
    ["validate: true, cleanup: null", ["validate: boolean", "cleanup: null"]],
    ["returnType: { type: 'object', properties: { path: String } }", ["returnType.properties.path: function"]],
    ["requiredAuth: { type: 'api_key', configKey: 'K', testMethod: async () => true, refresh() {} }", ["requiredAuth.refresh: function"]],
  ]) {
    assert.deepEqual(await unread(plain(`execute: () => 1, ${members}`)), expected, members);
  }
  const control = plain("execute: () => 1, retry: { maxAttempts: 2, backoffMs: undefined }, timeout: undefined, cleanup: undefined");
  assert.equal("unread" in (await module(control, { mode: "describe" })).value, false);
});

test("members of classes count as those of literals do", async () => {
  const base = "class Base { description = 'd'; parameters = {}; execute() {} get preconditions() { return [] } }";
  const code = `${base}\nclass More extends Base { state = 1; #kept = 2; static shared = 3; help() { return this.#kept } }\nexport default More;`;
  assert.deepEqual(await unread(code), ["state: number", "help: function", "preconditions: accessor"]);
  assert.deepEqual(await unread("export const tool = Object.create({ parameters: {}, execute() {}, timout: 1 })"), ["timout: number"]);
  assert.deepEqual(await unread("export const tool = new Proxy({ parameters: {}, execute() {} }, { ownKeys() { throw 1 } })"), ["invalid_tool"]);
});

test("z.toJSONSchema, refinements and transforms work in a tool", async () => {
  const code = `import z, { z as named } from ${ZOD}; export const execute = async () => ({ same: z === named, schema: z.toJSONSchema(z.object({ a: z.email() })), sum: z.string().transform(Number).parse('4') });`;
  const seen = await run(code);
  assert.equal(seen.value.same, true);
  assert.equal(seen.value.sum, 4);
  assert.equal(seen.value.schema.properties.a.format, "email");
});

test("tools of other shapes: default export, class, class instance", async () => {
  assert.equal((await module(`export default { description: 'd', parameters: {}, execute: () => 1 }`)).value, 1);
  const code = `class Base { description = 'd'; parameters = {}; execute() { return this.answer() } answer() { return 42 } cleanup() {} }\n`;
  assert.equal((await module(`${code}export default Base;`)).value, 42);
  assert.equal((await module(`${code}export const tool = new Base();`)).value, 42);
  assert.deepEqual((await module(`${code}export const tool = new Base();`, { mode: "describe" })).value.hooks, ["cleanup"]);
  assert.equal((await run("export default (args) => args.x", { args: { x: 9 } })).value, 9);
});

test("what is no tool is refused with words", async () => {
  for (const [code, message] of [
    ["export const nothing = 1", /exports no `tool`/],
    ["export const tool = {}", /no function `execute/],
    ["export const tool = { execute() {} }", /no parameters/],
    ["export const tool = { parameters: { parse() {} }, execute() {} }", /neither JSON Schema nor/],
    ["export const tool = { parameters: { '~standard': { vendor: 'old', validate() {} } }, execute() {} }", /a schema of old/],
    ["export const tool = { parameters: {}, limits: { n: (() => { const c = {}; c.c = c; return c })() }, execute() {} }", /limits cannot be written/],
    ["export const tool = { parameters: {}, execute() {}, get description() { throw new Error('getter') } }", /description cannot be read/],
  ]) {
    const seen = await module(code, { mode: "describe" });
    assert.equal(seen.error?.code, "invalid_tool", code);
    assert.match(seen.error.message, message);
  }
});

test("check adds the tool's own health", async () => {
  const well = await module(plain("execute() {}, initialize() { this.up = true }, healthCheck() { return { healthy: this.up, message: 'fine', lastCheck: new Date(0) } }"), { mode: "check" });
  assert.deepEqual(well.value.health, { healthy: true, message: "fine", lastCheck: "1970-01-01T00:00:00.000Z" });
  const ill = await module(plain("execute() {}, healthCheck() { throw new Error('down') }"), { mode: "check" });
  assert.deepEqual(ill.value.health, { healthy: false, message: "healthCheck: down" });
  assert.equal("health" in (await module(plain("execute() {}"), { mode: "check" })).value, false);
  const auth = (answer) => module(plain(`execute() {}, requiredAuth: { works: 'yes', testMethod() { return ${answer} } }`), { mode: "check" });
  assert.deepEqual((await auth("this.works === 'yes'")).value.health, { healthy: true });
  assert.deepEqual((await auth("'yes'")).value.health, { healthy: false, message: "testMethod: the credentials do not work" });
});

test("a source map gives the author's file and line", async () => {
  // One mapping: line 1, column 0 of the code is line 5, column 3 of the author's file.
  const map = Buffer.from(JSON.stringify({ version: 3, sources: [".runner/tools/sample.tool.ts"], names: [], mappings: "AAIG" })).toString("base64");
  const seen = await module(`export const tool = { execute() { throw new Error('here') } };\n//# sourceMappingURL=data:application/json;base64,${map}`);
  assert.match(seen.error.stack, /at .*\.runner\/tools\/sample\.tool\.ts:5:4\)?$/);
});
