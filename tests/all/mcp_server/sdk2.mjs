// A client of the second TypeScript SDK, which speaks the protocol without sessions (2026-07-28). It prints one JSON object
// with what it saw; the test judges it.
//
//   node sdk2.mjs MODULES stdio PROGRAM ARGS…
//   node sdk2.mjs MODULES http URL TOKEN
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, how, ...rest] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = name => import(pathToFileURL(require.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');

const seen = { asked: [] };
const client = new Client(
  { name: 'sdk2-test', version: '2.4' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
client.setRequestHandler('elicitation/create', async request => {
  seen.asked.push(request.params.message);
  const yes = request.params.message.includes('name.txt');
  return yes ? { action: 'accept', content: { approve: true } } : { action: 'decline' };
});
let transport;
if (how === 'stdio') {
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  transport = new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: 'inherit' });
} else {
  transport = new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } } });
}
await client.connect(transport);
const line = (command, options) => client.callTool({ name: 'run_command', arguments: { command } }, options);
const text = result => result.content.map(part => part.text).join('');
seen.version = client.getNegotiatedProtocolVersion?.();
seen.tools = (await client.listTools()).tools.map(tool => tool.name);
seen.allowed = text(await line('cat name.txt'));
const denied = await line('rm name.txt');
seen.denied = { isError: denied.isError, text: text(denied) };
seen.approved = text(await line('head -c 3 name.txt'));
const declined = await line('head -c 3 other.txt');
seen.declined = { isError: declined.isError, text: text(declined) };
seen.progress = [];
await line('echo first; sleep 1; echo last', { onprogress: it => seen.progress.push(it.message) });
const controller = new AbortController();
const given_up = line('echo begun; tail -f name.txt', { signal: controller.signal, onprogress: () => controller.abort('enough') });
seen.cancelled = await given_up.then(() => 'answered', error => String(error.message ?? error));
const running = await line('for i in 1 2 3; do echo line $i; sleep 1; done');
seen.running = text(running);
await client.close();
process.stdout.write(JSON.stringify(seen) + '\n', () => process.exit(0));
