// HTTP calls to the hub. The key is kept in sessionStorage and sent in the Authorization header, never in a URL: URLs end up in
// logs and in the browser's history.

import { t } from './words.js';

const KEY_STORAGE = 'chorus.key';

/** The principal of the signed-in key; filled by `startUpdates` in hub.js. */
export const principal = { role: '', id: '', handle: '', culture: '', hasEndpoint: false, session: '' };

export class ApiError extends Error {
  constructor(status, code, message, retryAfterSeconds) {
    super(message || code || `HTTP ${status}`);
    this.status = status;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Whether the same request may succeed later: the hub was away, busy or at fault. */
export const isPassingError = (error) => error.status === 0 || error.status === 429 || error.status >= 500;

export const storedKey = {
  get: () => sessionStorage.getItem(KEY_STORAGE) ?? '',
  set: (text) => sessionStorage.setItem(KEY_STORAGE, text),
  remove: () => sessionStorage.removeItem(KEY_STORAGE),
};

async function readApiError(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy between page and hub may answer with something other than JSON.
  }
  const code = body.error?.code ?? body.error_code ?? body.code;
  const message = body.error?.message ?? body.error_message ?? body.message;
  return new ApiError(response.status, code, message, Number(response.headers.get('retry-after')) || 0);
}

/**
 * Sends a request and returns the response's data, with the `{success, data}` wrapper removed; throws an `ApiError` for an
 * error status. With `withPage` it returns `{rows, next}` of a wrapped list, with `withLink` `{value, hasMore}` of a bare one.
 */
export async function callApi(path, { method = 'GET', body, headers = {}, withoutKey = false, withPage = false, withLink = false, keepalive = false } = {}) {
  const requestHeaders = { ...headers };
  if (!withoutKey && storedKey.get()) requestHeaders.authorization = `Bearer ${storedKey.get()}`;
  if (body !== undefined) requestHeaders['content-type'] = 'application/json';
  const response = await fetch(path, {
    method,
    headers: requestHeaders,
    body: body === undefined ? undefined : JSON.stringify(body),
    keepalive,
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  }).catch(() => {
    // The browser's own words ("Failed to fetch") say nothing to a person.
    throw new ApiError(0, 'ERR_UNREACHABLE', t('hub.away'), 0);
  });
  if (response.status === 401 && requestHeaders.authorization) window.dispatchEvent(new Event('unauthorized'));
  if (!response.ok) throw await readApiError(response);
  const text = await response.text();
  if (!(response.headers.get('content-type') ?? '').includes('json')) return text;
  const value = JSON.parse(text);
  if (withPage) return { rows: value.data, next: value.metadata.next };
  if (withLink) return { value, hasMore: /rel="?next/.test(response.headers.get('link') ?? '') };
  return value && value.success === true && 'data' in value ? value.data : value;
}

export const getApi = (path, options) => callApi(path, options);
export const getPage = (path) => callApi(path, { withPage: true });
export const getLinkedPage = (path) => callApi(path, { withLink: true });
export const getPublic = (path) => callApi(path, { withoutKey: true });
export const postApi = (path, body, headers, keepalive) => callApi(path, { method: 'POST', body, headers, keepalive });

export const encodeUriPart = encodeURIComponent;

/** A single-use session token for a stream URL. The key must not be in a URL. */
export async function requestSessionToken() {
  return (await postApi('/agent/session')).session_token;
}

/** Opens an event stream and returns its body; throws an `ApiError` for an error status. */
export async function openStream(path, headers, signal) {
  const response = await fetch(path, {
    headers: { accept: 'text/event-stream', ...headers },
    signal,
    cache: 'no-store',
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  if (!response.ok) throw await readApiError(response);
  return response.body;
}

/**
 * The principal of the stored key: `{role, id?, record?}`. The key's prefix decides which role is tried first, so that the usual
 * case has no failed request.
 */
export async function fetchPrincipal() {
  const readAgent = async () => {
    const { agent_id: id } = await postApi('/heartbeat', {});
    return { role: 'agent', id, record: await getApi(`/agents/${encodeUriPart(id)}`) };
  };
  const readOperator = async () => {
    await getApi('/activity?limit=1');
    return { role: 'operator' };
  };
  const [readLikely, readOther] = /^c[ac]_/.test(storedKey.get())
    ? [readAgent, readOperator]
    : [readOperator, readAgent];
  try {
    return await readLikely();
  } catch (error) {
    if (error.status !== 403) throw error;
    return readOther();
  }
}

/** Exchanges the single-use token of a console link for a session, which then takes the place of a key. */
export async function openConsoleSession(linkToken) {
  const session = await callApi('/console/session', {
    method: 'POST',
    body: { link_token: linkToken },
    withoutKey: true,
  });
  storedKey.set(session.session_token);
}

/** Ends the session of a link on the hub. A key stays valid: it is not only this page's. */
export async function endConsoleSession() {
  if (/^c[co]_/.test(storedKey.get())) await callApi('/console/session', { method: 'DELETE' }).catch(() => {});
}

/** A UUIDv4. `crypto.randomUUID` exists only in secure contexts, and a hub may be served without TLS. */
export function createUuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
