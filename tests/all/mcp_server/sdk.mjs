// A client of the official TypeScript SDK. It prints one JSON object with what it saw; the test judges it.
//
//   node sdk.mjs MODULES stdio PROGRAM ARGS…
//   node sdk.mjs MODULES http URL TOKEN
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, how, ...rest] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = name => import(pathToFileURL(require.resolve(name)));
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');

const seen = { asked: [] };
const client = new Client({ name: 'sdk-test', version: '1.2.3' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async request => {
  seen.asked.push(request.params.message);
  const yes = request.params.message.includes('name.txt');
  return yes ? { action: 'accept', content: { approve: true } } : { action: 'decline' };
});
const transport = how === 'stdio'
  ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } } });
await client.connect(transport);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const line = (command, options) => call('run_command', { command }, options);
const text = result => result.content.map(part => part.text).join('');

seen.tools = (await client.listTools()).tools.map(tool => tool.name);
seen.allowed = text(await line('cat name.txt'));
const denied = await line('rm name.txt');
seen.denied = { isError: denied.isError, text: text(denied) };
seen.tool = (await call('file_operations', { operation: 'read', path: 'name.txt' })).structuredContent;
seen.approved = text(await line('head -c 3 name.txt'));
const declined = await line('head -c 3 other.txt');
seen.declined = { isError: declined.isError, text: text(declined) };
// Progress: the output of a command as it comes.
seen.progress = [];
await line('echo first; sleep 1; echo last', { onprogress: it => seen.progress.push(it.message) });
// Cancellation: the request is given up, and the sandbox ends.
const controller = new AbortController();
const given_up = line('echo begun; tail -f name.txt', {
  signal: controller.signal,
  onprogress: () => controller.abort('enough'),
});
seen.cancelled = await given_up.then(() => 'answered', error => String(error.message ?? error));
// A command that runs longer than an answer takes: the test's server answers after a second.
const running = await line('for i in 1 2 3 4; do echo line $i; sleep 1; done');
seen.running = text(running);
const id = running._meta['runner/id'];
let offset = 0;
seen.read = '';
for (let round = 0; round < 30; round += 1) {
  const piece = await call('read_output', { id, offset });
  seen.read += text(piece) + '\n';
  offset = Number(piece._meta['runner/next']);
  if (piece._meta['runner/status'] !== 'running') break;
}
seen.prompt = (await client.getPrompt({ name: 'how_to_work_here' })).messages[0].content.text;
seen.policy = (await client.readResource({ uri: 'runner://policy' })).contents[0].text;
seen.records = JSON.parse((await client.readResource({ uri: 'runner://records' })).contents[0].text).calls.length;
await client.close();
process.stdout.write(JSON.stringify(seen) + '\n', () => process.exit(0));
