// A model on loopback that makes one call of the tool `run_command` of the server `runner`, and then says what came back.
// It speaks the messages interface of Anthropic and the chat interface of OpenAI, with and without streaming.
//
//   node stub_model.mjs COMMAND     prints its port
import { createServer } from 'node:http';

const command = process.argv[2];
const read = async request => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString() || '{}');
};
const flat = value => (typeof value === 'string' ? value : JSON.stringify(value ?? ''));
const tool_of = names => names.find(name => name.endsWith('run_command'));

function anthropic(body, response) {
  const tool = tool_of((body.tools ?? []).map(tool => tool.name));
  const results = (body.messages ?? []).flatMap(message => Array.isArray(message.content) ? message.content : [])
    .filter(part => part.type === 'tool_result');
  const block = results.length > 0 || !tool
    ? { type: 'text', text: results.length > 0 ? `RESULT ${flat(results.at(-1).content)}` : 'no tool' }
    : { type: 'tool_use', id: 'toolu_1', name: tool, input: { command } };
  const stop_reason = block.type === 'tool_use' ? 'tool_use' : 'end_turn';
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: body.model, content: [block], stop_reason, stop_sequence: null, usage };
  if (!body.stream) {
    response.setHeader('content-type', 'application/json');
    return response.end(JSON.stringify(message));
  }
  response.setHeader('content-type', 'text/event-stream');
  const send = (type, data) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  send('message_start', { message: { ...message, content: [], stop_reason: null } });
  const start = block.type === 'tool_use' ? { ...block, input: {} } : { ...block, text: '' };
  send('content_block_start', { index: 0, content_block: start });
  const delta = block.type === 'tool_use'
    ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
    : { type: 'text_delta', text: block.text };
  send('content_block_delta', { index: 0, delta });
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage });
  send('message_stop', {});
  response.end();
}

function openai(body, response) {
  const tool = tool_of((body.tools ?? []).map(tool => tool.function?.name ?? ''));
  const results = (body.messages ?? []).filter(message => message.role === 'tool');
  const calls = results.length === 0 && tool;
  const text = results.length > 0 ? `RESULT ${flat(results.at(-1).content)}` : 'no tool';
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: tool, arguments: JSON.stringify({ command }) } };
  const content = calls ? { tool_calls: [call] } : { content: text };
  const finish_reason = calls ? 'tool_calls' : 'stop';
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const base = { id: 'chat_1', created: 1, model: body.model };
  if (!body.stream) {
    response.setHeader('content-type', 'application/json');
    const message = { role: 'assistant', content: null, ...content };
    return response.end(JSON.stringify({ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }));
  }
  response.setHeader('content-type', 'text/event-stream');
  const send = (delta, reason) => response.write(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
  send({ role: 'assistant', ...content }, null);
  send({}, finish_reason);
  response.write(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [], usage })}\n\n`);
  response.end('data: [DONE]\n\n');
}

const server = createServer(async (request, response) => {
  const body = await read(request).catch(() => ({}));
  const path = new URL(request.url, 'http://localhost').pathname;
  if (process.env.STUB_LOG) process.stderr.write(`${request.method} ${path} ${(body.tools ?? []).map(tool => tool.name ?? tool.function?.name)}\n`);
  if (path.endsWith('/messages')) return anthropic(body, response);
  if (path.endsWith('/chat/completions')) return openai(body, response);
  if (path.endsWith('/count_tokens')) return response.end('{"input_tokens":1}');
  response.statusCode = 404;
  response.end('{}');
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
