// The rows of one channel without a gap between them: the newest ones, kept current by its stream, or those around one message.

import { encodeUriPart, getApi, isPassingError, principal, requestSessionToken, storedKey } from './api.js';
import { hubState, notifySubscribers } from './hub.js';
import { followStream } from './stream.js';

const PAGE_SIZE = 100;
/** After every cursor. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER;
/** Pause before a first read that failed is tried again. */
const RETRY_MS = 3_000;

/**
 * Loads the newest rows, or those around `targetCursor`; `onChange` is called after each change, `onMember` when a member changed.
 * While `hasLater` is true the newest rows are not loaded and nothing is added by the stream: it would leave a gap.
 */
export function followChannel(id, { targetCursor, onChange, onMember }) {
  const path = `/channels/${encodeUriPart(id)}`;
  const events = new Map();
  const feed = {
    isLoaded: false,
    hasEarlier: false,
    hasLater: false,
    error: '',
    has: (cursor) => events.has(cursor),
    list: () => [...events.values()].sort((a, b) => a.cursor - b.cursor),
  };
  let stream;
  let retryTimer;
  let isStopped = false;
  let loadTurn = 0;
  /** Says later whether the load that begins now is still the last one: an answer that was overtaken would leave a gap. */
  const takeTurn = () => {
    loadTurn += 1;
    const turn = loadTurn;
    return () => !isStopped && turn === loadTurn;
  };
  const readRows = (range, limit = PAGE_SIZE) => getApi(`${path}/messages?${range}&limit=${limit}`);
  const addRows = (rows) => rows.forEach((row) => events.set(row.cursor, row));
  const closeStream = () => {
    stream?.stop();
    stream = undefined;
    hubState.streamStates.delete('channel');
  };
  const openStream = () => {
    if (isStopped || stream) return;
    const opened = {};
    stream = opened;
    const { stop } = followStream({
      getAddress: async () =>
        principal.role === 'operator'
          ? { path: `${path}/stream`, headers: { authorization: `Bearer ${storedKey.get()}` } }
          : { path: `${path}/stream?session=${await requestSessionToken()}` },
      onEvent: (kind, event, streamCursor) => {
        const cursor = event?.cursor ?? Number(streamCursor);
        if (kind === 'connected' || !event || !cursor || feed.hasLater) return;
        events.set(cursor, { type: kind, ...event, cursor });
        if (kind === 'member' || kind === 'status') onMember();
        onChange();
      },
      onState: (state) => {
        // A stream that was closed says so later, when another may be open.
        if (stream !== opened) return;
        if (state === 'ended') hubState.streamStates.delete('channel');
        else hubState.streamStates.set('channel', state);
        notifySubscribers('connection');
      },
      startCursor: String(feed.list().at(-1)?.cursor ?? 0),
      closeWhenHidden: () => true,
    });
    opened.stop = stop;
  };
  const replaceRows = (rows, { hasEarlier, hasLater }) => {
    closeStream();
    events.clear();
    addRows(rows);
    Object.assign(feed, { hasEarlier, hasLater, isLoaded: true, error: '' });
    if (!hasLater) openStream();
    onChange();
  };
  feed.loadNewest = async () => {
    const isCurrent = takeTurn();
    const rows = await readRows(`before=${AFTER_ALL}`);
    if (!isCurrent()) return;
    replaceRows(rows, { hasEarlier: rows.length === PAGE_SIZE, hasLater: false });
  };
  /** However far back the message is, two requests bring it with its neighbours. */
  feed.loadAround = async (cursor) => {
    const half = PAGE_SIZE / 2;
    const isCurrent = takeTurn();
    const [before, after] = await Promise.all([readRows(`before=${cursor + 1}`, half), readRows(`since=${cursor}`, half)]);
    if (!isCurrent()) return;
    replaceRows([...before, ...after], { hasEarlier: before.length === half, hasLater: after.length === half });
  };
  feed.loadEarlier = async () => {
    const isCurrent = takeTurn();
    const rows = await readRows(`before=${feed.list()[0].cursor}`);
    if (!isCurrent()) return;
    addRows(rows);
    feed.hasEarlier = rows.length === PAGE_SIZE;
    onChange();
  };
  feed.loadLater = async () => {
    const isCurrent = takeTurn();
    const rows = await readRows(`since=${feed.list().at(-1).cursor}`);
    if (!isCurrent()) return;
    addRows(rows);
    feed.hasLater = rows.length === PAGE_SIZE;
    if (!feed.hasLater) openStream();
    onChange();
  };
  const loadFirst = async () => {
    try {
      await (targetCursor ? feed.loadAround(targetCursor) : feed.loadNewest());
    } catch (error) {
      feed.error = error.message;
      if (!isStopped && isPassingError(error)) retryTimer = setTimeout(loadFirst, RETRY_MS);
      onChange();
    }
  };
  feed.firstLoad = loadFirst();
  feed.stop = () => {
    isStopped = true;
    clearTimeout(retryTimer);
    closeStream();
  };
  return feed;
}
