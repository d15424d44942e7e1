// The log of one channel, searched by the hub; a link may lead to one message.

import { announceText, h, renderAvatar, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatDate, formatTime, formatTimestamp, t } from './words.js';
import { encodeUriPart } from './api.js';
import { followChannel } from './channel_feed.js';
import { isOwnEvent, loadReadCursor, saveReadCursor } from './channel_unread.js';
import { createLogView } from './log_view.js';
import { renderMessageText } from './markdown.js';
import { createSearch, markFound } from './message_search.js';
import { watchFirstAct } from './reading.js';

/** Messages closer than this, of one author, are one group. */
const GROUP_MS = 5 * 60_000;

/**
 * Opens the log at its newest rows, or at `targetCursor`; `onMember` is called when a member changed. With `attended`, a part of the
 * page that was opened unasked, nothing counts as read before the person acts inside it. Returns the log's node, its search field,
 * `update` and `stop`.
 */
export function openChannelLog(id, { targetCursor, onMember, attended }) {
  let isAttended = !attended;
  const openCalls = new Set();
  const unfoldedKeys = new Set();
  const readCursor = loadReadCursor(id);
  const log = createLogView({
    label: t('channel.one'),
    emptyText: () => feed.error || (feed.isLoaded ? t('channel.silent') : t('wait')),
    onEarlier: () => feed.loadEarlier(),
    onLater: () => feed.loadLater(),
    onNewest: () => feed.loadNewest(),
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
      (event) => event.cursor > readCursor && event.type === 'message' && !isOwnEvent(id, event),
    )?.cursor;
    const rows = [];
    let previous;
    for (const event of events) {
      const isOwn = isOwnEvent(id, event);
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
        isOwn,
        signature: `${isOwn} ${isJoined} ${isNewDay} ${event.cursor === firstUnread} ${results.has(`${event.sender} ${event.id}`)} ${callKeys.has(`${event.sender} ${event.id}`)}`,
        render: () => [
          isNewDay && h('p.daymark', {}, formatDate(event.timestamp)),
          event.cursor === firstUnread && h('p.newmark', { 'data-mark': 'new' }, t('thread.new')),
          renderEvent(event, { results, callKeys, openCalls, unfoldedKeys, isOwn, isJoined }),
        ],
      });
    }
    log.setRows(rows, {
      hasEarlier: feed.hasEarlier,
      hasLater: feed.hasLater,
      unreadKey: firstUnread && String(firstUnread),
    });
    if (events.length && isAttended && !feed.hasLater && !document.hidden) saveReadCursor(id, events.at(-1).cursor);
  });
  const feed = followChannel(id, { targetCursor, onChange: render, onMember });
  // The rows are drawn before the next repaint.
  const showRow = (cursor) => requestAnimationFrame(() => requestAnimationFrame(() => log.showRow(cursor)));
  if (targetCursor) feed.firstLoad.then(() => showRow(targetCursor));
  const search = createChannelSearch(id, foundNode, async (cursor) => {
    // The address leads to the message; it changes without opening the view anew, which would close the search.
    history.replaceState(null, '', `#/channels/${encodeUriPart(id)}/${cursor}`);
    try {
      if (!feed.has(cursor)) await feed.loadAround(cursor);
      showRow(cursor);
    } catch (error) {
      announceText(error.message);
    }
  });
  if (attended) {
    watchFirstAct(attended, () => {
      isAttended = true;
      render();
    });
  }
  document.addEventListener('visibilitychange', render);
  render();
  return {
    node: h('div.thread-box', {}, foundNode, log.node),
    searchField: search.field,
    update: render,
    /** A message that was just sent is among the newest rows; the stream brings it unless others are shown. */
    showSent() {
      if (feed.hasLater) feed.loadNewest().catch((error) => announceText(error.message));
    },
    stop() {
      search.stop();
      document.removeEventListener('visibilitychange', render);
      feed.stop();
    },
  };
}

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
function renderEvent(event, { results, callKeys, openCalls, unfoldedKeys, isOwn, isJoined }) {
  if (event.type === 'gap') return h('p.aside', {}, t('channel.gap'));
  const timeNode = h('time.quiet.small', {}, formatTime(event.timestamp));
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
