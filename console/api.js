// Calls to the hub. The key lives in this tab only and travels in one header, never in an address.

const KEY = 'chorus.key';

/** Whom the key speaks for. */
export const me = { role: '', id: '', handle: '', culture: '', endpoint: false, session: '' };

export class Refusal extends Error {
  constructor(status, code, message, wait) {
    super(message || code || `HTTP ${status}`);
    this.status = status;
    this.code = code;
    this.wait = wait;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? '',
  set: (text) => sessionStorage.setItem(KEY, text),
  drop: () => sessionStorage.removeItem(KEY),
};

async function refusalOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy in between may answer with something else than JSON.
  }
  const code = body.error?.code ?? body.error_code ?? body.code;
  const message = body.error?.message ?? body.error_message ?? body.message;
  return new Refusal(response.status, code, message, Number(response.headers.get('retry-after')) || 0);
}

/** The data of an answer, whichever form its route has; a refusal is thrown. */
export async function call(path, { method = 'GET', body, headers = {}, open = false } = {}) {
  const sent = { ...headers };
  if (!open && key.get()) sent.authorization = `Bearer ${key.get()}`;
  if (body !== undefined) sent['content-type'] = 'application/json';
  const response = await fetch(path, {
    method,
    headers: sent,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  if (!response.ok) throw await refusalOf(response);
  const text = await response.text();
  if (!(response.headers.get('content-type') ?? '').includes('json')) return text;
  const value = JSON.parse(text);
  return value && value.success === true && 'data' in value ? value.data : value;
}

export const get = (path, more) => call(path, more);
export const look = (path) => call(path, { open: true });
export const post = (path, body, headers) => call(path, { method: 'POST', body, headers });

export const part = encodeURIComponent;

/** A token that opens one stream once: what a stream's address may carry. */
export async function token() {
  return (await post('/agent/session')).session_token;
}

/** Opens a stream; throws a refusal when the hub does not. */
export async function stream(path, headers, signal) {
  const response = await fetch(path, {
    headers: { accept: 'text/event-stream', ...headers },
    signal,
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  if (!response.ok) throw await refusalOf(response);
  return response.body;
}

/** Who the key belongs to: `{role, id?, record?}`. The order of questions follows the look of the key, so that no one of them fails for nothing. */
export async function whoami() {
  const agent = async () => {
    const { agent_id: id } = await post('/heartbeat', {});
    return { role: 'agent', id, record: await get(`/agents/${part(id)}`) };
  };
  const operator = async () => {
    await get('/activity?limit=1');
    return { role: 'operator' };
  };
  const [first, second] = /^ca_/.test(key.get()) ? [agent, operator] : [operator, agent];
  try {
    return await first();
  } catch (refusal) {
    if (refusal.status !== 403) throw refusal;
    return second();
  }
}

/** UUIDv4 also where the page has no TLS. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
