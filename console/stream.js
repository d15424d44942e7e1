// A stream that stays: read by fetch, so that the cursor goes into a header; opened again with growing pauses, after silence too.

import { stream } from './api.js';

/** The hub says something every 15 seconds, if only a comment. */
const SILENCE = 40_000;
const PAUSE_LEAST = 400;
const PAUSE_MOST = 10_000;
/** A browser opens six connections to a place and no more: a page that nobody looks at gives its own back after a while. */
const UNSEEN = 20_000;
/** After these a stream is not opened again. */
const FINAL = ['key_rotated', 'unregistered'];

/**
 * Follows a stream until `stop()`.
 * `address()` gives `{path, headers}` for each attempt, `heard(name, data, id)` gets the events, `state(word)` hears
 * `connecting`, `live`, `waiting` and `ended`. One that `rests` is closed while the page is out of sight: it has a cursor, and
 * misses nothing.
 */
export function follow({ address, heard, state, since, rests = false }) {
  let last = since;
  let stopped = false;
  let pause = PAUSE_LEAST;
  let wake = () => {};
  let cut = () => {};

  let unseen;
  const resting = () => rests && document.hidden && unseen === 'over';
  const soon = () => {
    clearTimeout(unseen);
    unseen = undefined;
    if (!document.hidden) return wake();
    if (rests) {
      unseen = setTimeout(() => {
        unseen = 'over';
        cut();
      }, UNSEEN);
    }
    return undefined;
  };
  window.addEventListener('online', soon);
  document.addEventListener('visibilitychange', soon);

  const event = (name, data, id, retry) => {
    if (id) last = id;
    if (retry) pause = Math.min(retry, PAUSE_MOST);
    if (name === 'closing') {
      if (FINAL.includes(data?.reason)) stopped = true;
      return;
    }
    heard(name, data, id);
  };

  const once = async () => {
    const abort = new AbortController();
    cut = () => abort.abort();
    const { path, headers = {} } = await address();
    if (stopped) return;
    const body = await stream(path, last === undefined ? headers : { ...headers, 'last-event-id': last }, abort.signal);
    pause = PAUSE_LEAST;
    state('live');
    let quiet = setTimeout(cut, SILENCE);
    try {
      for await (const one of events(body, () => {
        clearTimeout(quiet);
        quiet = setTimeout(cut, SILENCE);
      }))
        event(one.name, one.data, one.id, one.retry);
    } finally {
      clearTimeout(quiet);
    }
  };

  (async () => {
    while (!stopped) {
      state('connecting');
      try {
        await once();
      } catch (failure) {
        if ([401, 403, 404, 410].includes(failure.status)) stopped = true;
        if (failure.wait) pause = Math.max(pause, failure.wait * 1000);
      }
      if (stopped) break;
      state('waiting');
      const wait = pause * (0.7 + Math.random() * 0.6);
      pause = Math.min(pause * 1.7, PAUSE_MOST);
      await new Promise((done) => {
        wake = done;
        if (!resting()) setTimeout(done, wait);
      });
    }
    state('ended');
    window.removeEventListener('online', soon);
    document.removeEventListener('visibilitychange', soon);
  })();

  return {
    stop() {
      stopped = true;
      cut();
      wake();
    },
  };
}

/** The events of a body, each `{name, data, id, retry}` with the data parsed. */
async function* events(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let name = '';
  let id;
  let retry;
  let lines = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    rest += value;
    let end;
    while ((end = rest.indexOf('\n')) >= 0) {
      const line = rest.slice(0, end).replace(/\r$/, '');
      rest = rest.slice(end + 1);
      if (line === '') {
        if (lines.length) yield { name: name || 'message', data: parsed(lines.join('\n')), id, retry };
        [name, id, retry, lines] = ['', undefined, undefined, []];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'event') name = text;
      else if (field === 'data') lines.push(text);
      else if (field === 'id') id = text;
      else if (field === 'retry') retry = Number(text) || undefined;
    }
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
