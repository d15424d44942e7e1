// An SSE client that reconnects with backoff, also after silence. It uses fetch, because EventSource cannot set headers such as
// Last-Event-ID for a first cursor.

import { openStream } from './api.js';

/** Silence after which a connection counts as dead. The hub sends at least a comment every 15 seconds. */
const MAX_SILENCE_MS = 40_000;
const MIN_BACKOFF_MS = 400;
const MAX_BACKOFF_MS = 10_000;
/** Time after which a hidden page closes its streams: a browser allows six HTTP/1.1 connections per origin over all tabs. */
const MAX_HIDDEN_MS = 20_000;
/** Reasons of a `closing` event after which the stream is not opened again: the key is invalid. */
const FINAL_REASONS = ['key_rotated', 'unregistered'];

/**
 * Follows a stream until `stop()`.
 * `getAddress()` gives `{path, headers}` for each attempt, `onEvent(name, data, id)` gets the events, `onState(state)` gets
 * `connecting`, `live`, `waiting` and `ended`. When `closeWhenHidden()` is true the stream is closed while the page is hidden; it
 * resumes from its cursor, so a durable stream misses nothing. A `retry` event of the window ends the pause before an attempt.
 */
export function followStream({ getAddress, onEvent, onState, startCursor, closeWhenHidden = () => false }) {
  let cursor = startCursor;
  let isStopped = false;
  let backoff = MIN_BACKOFF_MS;
  let endWait = () => {};
  let abortRequest = () => {};

  let hiddenTimer;
  const isClosedWhileHidden = () => closeWhenHidden() && document.hidden && hiddenTimer === 'expired';
  const handleVisibility = () => {
    clearTimeout(hiddenTimer);
    hiddenTimer = undefined;
    if (!document.hidden) return endWait();
    if (closeWhenHidden()) {
      hiddenTimer = setTimeout(() => {
        hiddenTimer = 'expired';
        abortRequest();
      }, MAX_HIDDEN_MS);
    }
    return undefined;
  };
  window.addEventListener('online', handleVisibility);
  window.addEventListener('retry', handleVisibility);
  document.addEventListener('visibilitychange', handleVisibility);

  const handleEvent = (name, data, id, retry) => {
    if (id) cursor = id;
    if (retry) backoff = Math.min(retry, MAX_BACKOFF_MS);
    if (name === 'closing') {
      if (FINAL_REASONS.includes(data?.reason)) isStopped = true;
      return;
    }
    onEvent(name, data, id);
  };

  const readStream = async () => {
    const abortController = new AbortController();
    abortRequest = () => abortController.abort();
    const { path, headers = {} } = await getAddress();
    if (isStopped) return;
    const body = await openStream(
      path,
      cursor === undefined ? headers : { ...headers, 'last-event-id': cursor },
      abortController.signal,
    );
    backoff = MIN_BACKOFF_MS;
    onState('live');
    let silenceTimer = setTimeout(abortRequest, MAX_SILENCE_MS);
    try {
      for await (const event of parseEvents(body, () => {
        clearTimeout(silenceTimer);
        silenceTimer = setTimeout(abortRequest, MAX_SILENCE_MS);
      }))
        handleEvent(event.name, event.data, event.id, event.retry);
    } finally {
      clearTimeout(silenceTimer);
    }
  };

  (async () => {
    while (!isStopped) {
      onState('connecting');
      try {
        await readStream();
      } catch (error) {
        if ([401, 403, 404, 410].includes(error.status)) isStopped = true;
        if (error.retryAfterSeconds) backoff = Math.max(backoff, error.retryAfterSeconds * 1000);
      }
      if (isStopped) break;
      onState('waiting');
      const delay = backoff * (0.7 + Math.random() * 0.6);
      backoff = Math.min(backoff * 1.7, MAX_BACKOFF_MS);
      await new Promise((resolve) => {
        endWait = resolve;
        if (!isClosedWhileHidden()) setTimeout(resolve, delay);
      });
    }
    onState('ended');
    window.removeEventListener('online', handleVisibility);
    window.removeEventListener('retry', handleVisibility);
    document.removeEventListener('visibilitychange', handleVisibility);
  })();

  return {
    stop() {
      isStopped = true;
      abortRequest();
      endWait();
    },
  };
}

/**
 * Parses an event stream: yields `{name, data, id, retry}` with the data parsed as JSON. `onData` is called for every chunk.
 */
async function* parseEvents(body, onData) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  let name = '';
  let id;
  let retry;
  let dataLines = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onData();
    buffer += value;
    let lineEnd;
    while ((lineEnd = buffer.indexOf('\n')) >= 0) {
      const line = buffer.slice(0, lineEnd).replace(/\r$/, '');
      buffer = buffer.slice(lineEnd + 1);
      if (line === '') {
        if (dataLines.length) yield { name: name || 'message', data: parseJson(dataLines.join('\n')), id, retry };
        [name, id, retry, dataLines] = ['', undefined, undefined, []];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const fieldValue = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'event') name = fieldValue;
      else if (field === 'data') dataLines.push(fieldValue);
      else if (field === 'id') id = fieldValue;
      else if (field === 'retry') retry = Number(fieldValue) || undefined;
    }
  }
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
