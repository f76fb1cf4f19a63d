// A server of the Model Context Protocol in plain Node: honest, or as bad as its first argument says.
import fs from 'node:fs';
import net from 'node:net';
import readline from 'node:readline';

const mode = process.argv[2] ?? 'honest';
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
// What a file says, or why it says nothing.
const look = (file) => { try { return fs.readFileSync(file, 'utf8').trim(); } catch (error) { return error.code; } };
const text = (text) => ({ content: [{ type: 'text', text: String(text) }] });
const object = (properties = {}, required = []) => ({ type: 'object', properties, required });

const TOOLS = [
  { name: 'echo', description: `Says what it is told. ${look('mood')}`, inputSchema: { $schema: 'http://json-schema.org/draft-07/schema#', ...object({ text: { type: 'string' } }, ['text']) }, annotations: { readOnlyHint: true } },
  { name: 'add', description: 'Adds two numbers.', inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }, ['a', 'b']), outputSchema: object({ sum: { type: 'number' } }, ['sum']) },
  { name: 'wrong', description: 'Promises a sum and gives none.', inputSchema: object(), outputSchema: object({ sum: { type: 'number' } }, ['sum']) },
  { name: 'fail', description: 'Always fails.', inputSchema: object() },
  { name: 'picture', description: 'Gives a picture.', inputSchema: object() },
  { name: 'look', description: 'Reads a file.', inputSchema: object({ file: { type: 'string' } }, ['file']) },
  { name: 'reach', description: 'Connects to an address.', inputSchema: object({ host: { type: 'string' }, port: { type: 'integer' } }, ['host', 'port']) },
  { name: 'variable', description: 'Tells a variable.', inputSchema: object({ name: { type: 'string' } }, ['name']) },
  { name: 'die', description: 'Ends in the middle.', inputSchema: object() },
  { name: 'sleep', description: 'Never answers.', inputSchema: object() },
  { name: 'flood', description: 'Writes one line without an end.', inputSchema: object() },
  { name: 'stay', description: 'Answers and does not leave.', inputSchema: object() },
];

const CALLS = {
  echo: ({ text: said }) => text(said),
  add: ({ a, b }) => ({ ...text(a + b), structuredContent: { sum: a + b } }),
  wrong: () => ({ ...text('?'), structuredContent: { sum: 'many' } }),
  fail: () => ({ ...text('the kettle is empty'), isError: true }),
  picture: () => ({ content: [{ type: 'text', text: 'here' }, { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' }] }),
  look: ({ file }) => text(look(file)),
  variable: ({ name }) => text(process.env[name] ?? 'unset'),
  reach: ({ host, port }) => new Promise((done) => {
    const socket = net.connect({ host, port, timeout: 3000 });
    socket.on('connect', () => done(text('connected')));
    socket.on('error', (error) => done(text(error.code)));
    socket.on('timeout', () => done(text('ETIMEDOUT')));
  }),
  die: () => { console.error('the roof is on fire'); process.exit(3); },
  sleep: () => new Promise(() => setInterval(() => {}, 1000)),
  flood: () => new Promise(() => flood()),
  stay: () => { setInterval(() => {}, 1000); process.on('SIGTERM', () => {}); return text('here to stay'); },
};

function flood() {
  const piece = 'x'.repeat(1 << 16);
  const more = () => { while (process.stdout.write(piece)); process.stdout.once('drain', more); };
  more();
}

// What is offered: two a page.
function list(cursor) {
  const tool = (name, more = {}) => ({ name, description: 'x', inputSchema: object(), ...more });
  switch (mode) {
    case 'many': return { tools: Array.from({ length: 5000 }, (_, at) => tool(`t${at}`)) };
    case 'endless-pages': return { tools: [tool('t')], nextCursor: String(Math.random()) };
    case 'same-page': return { tools: [], nextCursor: 'again' };
    case 'twice': return { tools: [tool('same'), tool('same', { description: 'y' }), tool('other')] };
    case 'names': return { tools: [tool('evil\u001b[2J\u202e'), tool(''), tool('x'.repeat(300)), tool('dots.and/slashes'), { description: 'x' }] };
    case 'schemas': return { tools: [tool('good'), tool('remote', { inputSchema: { type: 'object', $ref: 'http://127.0.0.1/x' } }), tool('list', { inputSchema: [] }), { name: 'none' }] };
    case 'terminal': return { tools: [tool('plain', { description: 'clear \u001b[2Jthe screen \u202eand turn' })] };
    case 'not-a-list': return { tools: 'all' };
  }
  const from = Number(cursor ?? 0);
  return { tools: TOOLS.slice(from, from + 2), ...(from + 2 < TOOLS.length ? { nextCursor: String(from + 2) } : {}) };
}

if (mode === 'noise') console.log('Server is listening');
if (mode === 'ended') process.exit(7);
if (mode === 'silent') setInterval(() => {}, 1000);
if (mode === 'endless-line') flood();

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (mode === 'silent' || mode === 'endless-line') return;
  switch (method) {
    case 'initialize':
      if (mode === 'unasked') send({ id: 99, result: {} });
      if (mode === 'version') return send({ id, result: { protocolVersion: '1999-01-01', capabilities: {} } });
      if (mode === 'twice-a-key') return process.stdout.write(`{"jsonrpc":"2.0","id":${id},"id":${id},"result":{}}\n`);
      if (mode === 'refuses') return send({ id, error: { code: -32000, message: 'not today' } });
      // Servers talk and ask before they answer; nothing of it may matter.
      send({ method: 'notifications/message', params: { level: 'info', data: 'hello' } });
      send({ id: 'mine', method: 'sampling/createMessage', params: {} });
      return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: mode === 'toolless' ? {} : { tools: {} }, serverInfo: { name: 'test\u001b[2J', version: '1.0' } } });
    case 'tools/list':
      return send({ id, result: list(params?.cursor) });
    case 'tools/call': {
      const call = CALLS[params.name];
      if (!call) return send({ id, error: { code: -32602, message: `there is no ${params.name}` } });
      return send({ id, result: await call(params.arguments ?? {}) });
    }
  }
});
