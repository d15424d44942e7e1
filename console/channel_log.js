// The log of one channel: read from the hub page by page, then live; searched by the hub.

import { h, renderAvatar, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatDate, formatTime, formatTimestamp, t } from './words.js';
import { encodeUriPart, getApi, isPassingError, principal, requestSessionToken, storedKey } from './api.js';
import { hubState, notifySubscribers } from './hub.js';
import { loadReadCursor, saveReadCursor } from './channel_unread.js';
import { createLogView } from './log_view.js';
import { renderMessageText } from './markdown.js';
import { createSearch, markFound } from './message_search.js';
import { followStream } from './stream.js';

const PAGE_SIZE = 100;
/** Pages that are read in a row to reach a message that a search found. */
const MAX_READS = 25;
/** After every cursor. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER;
/** Messages closer than this, of one author, are one group. */
const GROUP_MS = 5 * 60_000;
/** Pause before a first read that failed is tried again. */
const RETRY_MS = 3_000;

/** Loads rows of the channel from the newest back, and follows its stream from there on. */
function followChannel(id, { onChange, onMember }) {
  const path = `/channels/${encodeUriPart(id)}`;
  const events = new Map();
  const feed = { isLoaded: false, hasEarlier: false, error: '', list: () => [...events.values()].sort((a, b) => a.cursor - b.cursor) };
  let stream;
  let retryTimer;
  let isStopped = false;
  const readBack = async (before) => {
    const rows = await getApi(`${path}/messages?before=${before}&limit=${PAGE_SIZE}`);
    for (const row of rows) events.set(row.cursor, row);
    feed.hasEarlier = rows.length === PAGE_SIZE;
  };
  feed.loadEarlier = async () => {
    await readBack(feed.list()[0].cursor);
    onChange();
  };
  feed.loadBackTo = async (cursor) => {
    for (let count = 0; count < MAX_READS && feed.hasEarlier && feed.list()[0].cursor > cursor; count += 1)
      await feed.loadEarlier();
  };
  const openStream = () => {
    stream = followStream({
      getAddress: async () =>
        principal.role === 'operator'
          ? { path: `${path}/stream`, headers: { authorization: `Bearer ${storedKey.get()}` } }
          : { path: `${path}/stream?session=${await requestSessionToken()}` },
      onEvent: (kind, event, streamCursor) => {
        const cursor = event?.cursor ?? Number(streamCursor);
        if (kind === 'connected' || !event || !cursor) return;
        events.set(cursor, { type: kind, ...event, cursor });
        if (kind === 'member' || kind === 'status') onMember();
        onChange();
      },
      onState: (state) => {
        if (state === 'ended') hubState.streamStates.delete('channel');
        else hubState.streamStates.set('channel', state);
        notifySubscribers('connection');
      },
      startCursor: String(feed.list().at(-1)?.cursor ?? 0),
      closeWhenHidden: () => true,
    });
  };
  const loadNewest = async () => {
    try {
      await readBack(AFTER_ALL);
      feed.isLoaded = true;
      feed.error = '';
      if (!isStopped) openStream();
    } catch (error) {
      feed.error = error.message;
      if (!isStopped && isPassingError(error)) retryTimer = setTimeout(loadNewest, RETRY_MS);
    }
    onChange();
  };
  loadNewest();
  feed.stop = () => {
    isStopped = true;
    clearTimeout(retryTimer);
    stream?.stop();
    hubState.streamStates.delete('channel');
  };
  return feed;
}

/** `onMember` is called when a member changed. Returns the log's node, its search field and `stop`. */
export function openChannelLog(id, onMember) {
  const openCalls = new Set();
  const unfoldedKeys = new Set();
  const readCursor = loadReadCursor(id);
  const log = createLogView({
    label: t('channel.one'),
    emptyText: () => feed.error || (feed.isLoaded ? t('channel.silent') : t('wait')),
    onEarlier: () => feed.loadEarlier(),
  });
  const foundNode = h('ul.picks.found', { hidden: true });
  const render = throttleToRepaint(() => {
    const events = feed.list();
    const results = new Map();
    const callKeys = new Set();
    for (const event of events) {
      if (event.type === 'tool_result') results.set(`${event.sender} ${event.id}`, event);
      else if (event.type === 'tool_call') callKeys.add(`${event.sender} ${event.id}`);
    }
    const firstUnread = events.find(
      (event) => event.cursor > readCursor && event.type === 'message' && !isOwnEvent(event),
    )?.cursor;
    const rows = [];
    let previous;
    for (const event of events) {
      const isNewDay = !previous || formatDate(previous.timestamp) !== formatDate(event.timestamp);
      const isJoined =
        !isNewDay &&
        event.cursor !== firstUnread &&
        previous.type === 'message' &&
        event.type === 'message' &&
        previous.sender === event.sender &&
        Date.parse(event.timestamp) - Date.parse(previous.timestamp) < GROUP_MS;
      previous = event;
      rows.push({
        item: event,
        key: String(event.cursor),
        isOwn: isOwnEvent(event),
        signature: `${isJoined} ${isNewDay} ${event.cursor === firstUnread} ${results.has(`${event.sender} ${event.id}`)} ${callKeys.has(`${event.sender} ${event.id}`)}`,
        render: () => [
          isNewDay && h('p.daymark', {}, formatDate(event.timestamp)),
          event.cursor === firstUnread && h('p.newmark', { 'data-mark': 'new' }, t('thread.new')),
          renderEvent(event, { results, callKeys, openCalls, unfoldedKeys, isJoined }),
        ],
      });
    }
    log.setRows(rows, { hasEarlier: feed.hasEarlier, unreadKey: firstUnread && String(firstUnread) });
    if (events.length && !document.hidden) saveReadCursor(id, events.at(-1).cursor);
  });
  const feed = followChannel(id, { onChange: render, onMember });
  const search = createChannelSearch(id, foundNode, async (cursor) => {
    await feed.loadBackTo(cursor);
    requestAnimationFrame(() => requestAnimationFrame(() => log.showRow(cursor)));
  });
  document.addEventListener('visibilitychange', render);
  render();
  return {
    node: h('div.thread-box', {}, foundNode, log.node),
    searchField: search.field,
    stop() {
      search.stop();
      document.removeEventListener('visibilitychange', render);
      feed.stop();
    },
  };
}

const isOwnEvent = (event) =>
  event.agent_id === principal.id || (event.sender_kind === 'person' && event.sender === principal.id);

/**
 * The search of the hub in one channel; `showMessage(cursor)` is called for the result that is opened. Returns its `field`
 * and `stop`.
 */
function createChannelSearch(id, foundNode, showMessage) {
  const field = h('input', { type: 'search', placeholder: t('channel.search'), 'aria-label': t('channel.search') });
  const renderFound = (message, query) =>
    h(
      'li',
      {},
      h(
        'button.pick',
        { type: 'button', 'data-key': `found ${message.cursor}`, onclick: () => showMessage(message.cursor) },
        renderName(message.sender, 'b'),
        h('bdi.small.cut', {}, markFound(message.content ?? '', query)),
        h('span.spring'),
        h('time.quiet.small', {}, formatTimestamp(message.timestamp)),
      ),
    );
  const draw = () => {
    foundNode.hidden = !field.value.trim();
    replaceContent(foundNode, search.renderResults());
  };
  const search = createSearch(field, draw, { path: `/channels/${encodeUriPart(id)}/messages`, renderFound });
  return { field, stop: search.stop };
}

/**
 * One channel event. A tool call and its result share one `details` element, so a result is rendered only if its call is
 * unknown.
 */
function renderEvent(event, { results, callKeys, openCalls, unfoldedKeys, isJoined }) {
  if (event.type === 'gap') return h('p.aside', {}, t('channel.gap'));
  const timeNode = h('time.quiet.small', {}, formatTime(event.timestamp));
  const isOwn = isOwnEvent(event);
  switch (event.type) {
    case 'message':
      return h(
        'article.line',
        { class: `${isOwn ? 'mine' : ''} ${isJoined ? 'joined' : ''}` },
        isJoined ? h('span.avatar-space') : renderAvatar(event.sender),
        h(
          'div',
          {},
          !isJoined &&
            h(
              'header.row-line',
              {},
              renderName(event.sender, 'b'),
              event.sender_kind === 'agent' && h('span.chip', {}, t('channel.agent')),
              timeNode,
            ),
          renderMessageText(event.content ?? '', {
            key: event.cursor,
            unfoldedKeys,
            mentions: (event.mentions ?? []).map((memberName) => `@${memberName}`),
          }),
          event.parts?.length > 0 && h('p.quiet.small', {}, t('channel.parts', { n: event.parts.length })),
        ),
      );
    case 'tool_call': {
      const result = results.get(`${event.sender} ${event.id}`);
      const details = h(
        'details.tool',
        { open: openCalls.has(event.cursor), 'data-call': event.id },
        h(
          'summary',
          { 'data-key': `call ${event.cursor}` },
          h('span', { class: `dot ${result ? 'good' : 'busy'}` }),
          renderName(event.sender),
          h('code', {}, event.name),
          h('span.quiet.small.cut', {}, JSON.stringify(event.args ?? {})),
          timeNode,
        ),
        event.args !== undefined && h('pre', { tabindex: '0' }, JSON.stringify(event.args, null, 2)),
        h('pre', { tabindex: '0' }, result ? result.content : t('channel.running')),
      );
      details.addEventListener('toggle', () =>
        details.open ? openCalls.add(event.cursor) : openCalls.delete(event.cursor),
      );
      return details;
    }
    case 'tool_result':
      return callKeys.has(`${event.sender} ${event.id}`)
        ? undefined
        : h(
            'details.tool',
            {},
            h('summary', {}, h('span.dot.good'), renderName(event.sender), h('code', {}, event.id), timeNode),
            h('pre', { tabindex: '0' }, event.content),
          );
    case 'status':
      return (
        event.status &&
        h('p.aside', {}, h('span.dot.busy'), renderName(event.sender), ' ', h('bdi', {}, event.status), ' ', timeNode)
      );
    case 'error':
      return h(
        'p.aside.bad',
        {},
        h('span.dot.bad'),
        renderName(event.sender),
        ' ',
        h('bdi', {}, event.message),
        event.code && h('code', {}, event.code),
        ' ',
        timeNode,
      );
    case 'member':
      return h(
        'p.aside',
        {},
        renderName(event.name ?? event.sender),
        ' ',
        t(`member.${event.change}`),
        event.message && [': ', h('bdi', {}, event.message)],
        ' ',
        timeNode,
      );
    case 'artifact':
    case 'file': {
      const text =
        event.type === 'file'
          ? t('channel.put', { name: event.name })
          : t('channel.wrote', { name: event.name, n: event.version });
      return h('p.aside', {}, renderName(event.sender), ' ', h('bdi', {}, text), ' ', timeNode);
    }
    default:
      return undefined;
  }
}
