// Does what the public bridge does: asks for history once, opens its inbox with a session token, takes what one read
// brings into a buffer of 64 000 characters, and keeps the cursor (timestamp, trace_id), compared as text.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const [hub, key, me, stateFile] = process.argv.slice(2);
const MAX_BUFFER = 64_000;
const authorization = { Authorization: `Bearer ${key}` };

const state = existsSync(stateFile) ? JSON.parse(readFileSync(stateFile, 'utf8')) : { timestamp: null, trace_id: null };
const handled = new Set();

const isBeyond = (message) =>
  state.timestamp === null ||
  message.timestamp > state.timestamp ||
  (message.timestamp === state.timestamp && message.trace_id > state.trace_id);

function handle(message) {
  if (handled.has(message.trace_id)) return;
  handled.add(message.trace_id);
  if (isBeyond(message)) Object.assign(state, { timestamp: message.timestamp, trace_id: message.trace_id });
  writeFileSync(stateFile, JSON.stringify(state));
  console.log(`message ${message.envelope.original_text.split(' ')[0]}`);
}

// As the bridge reads: what one read brings goes into the buffer before it is taken apart.
async function readStream(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let buffer = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += decoder.decode(value, { stream: true });
    if (buffer.length > MAX_BUFFER) {
      console.log('overflow');
      process.exit(1);
    }
    const blocks = buffer.split('\n\n');
    buffer = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split('\n');
      const data = lines.find((line) => line.startsWith('data: '));
      const name = lines.find((line) => line.startsWith('event: '))?.slice(7);
      if (data === undefined) continue;
      if (name === 'connected') console.log('connected');
      if (name === 'message') handle(JSON.parse(data.slice(6)));
    }
  }
}

const query = state.timestamp === null ? '' : `?since=${encodeURIComponent(state.timestamp)}`;
const history = await (await fetch(`${hub}/agent/messages${query}`, { headers: authorization })).json();
const missed = history.data.filter((message) => message.receiver_id === me && isBeyond(message));

const session = await (await fetch(`${hub}/agent/session`, { method: 'POST', headers: authorization })).json();
const url = `${hub}/agent/inbox?session=${encodeURIComponent(session.data.session_token)}`;
const inbox = await fetch(url, { headers: { Accept: 'text/event-stream' } });
missed.forEach(handle);
// The hub is killed while the stream is open.
await readStream(inbox.body).catch(() => {});
