// One conversation of an agent: read from the hub page by page, kept current, marked as shown while it is read.

import { h, linkUrls, renderAvatar, renderIcon, renderName, replaceContent, throttleToRepaint } from './dom.js';
import { formatCulture, formatDate, formatTime, t } from './words.js';
import { encodeUriPart, getApi, getPage, isPassingError, postApi } from './api.js';
import { getAgentCulture, principal, repeatEvery, subscribe } from './hub.js';
import { findConversation, getPeer, refreshConversations, subtractUnread } from './conversation_state.js';
import {
  acknowledge,
  getStateSignature,
  markShown,
  recordSent,
  refreshStates,
  renderMessageState,
} from './receipts.js';
import { renderCultureChip } from './agents.js';
import { createComposer } from './composer.js';
import { createLogView } from './log_view.js';
import { renderMessageText } from './markdown.js';
import { watchSight } from './reading.js';

const PAGE_SIZE = 50;
/** Messages of one request forward, of all conversations of the agent. */
const FORWARD_PAGE_SIZE = 100;
const POLL_MS = 3_000;
/** Requests in a row for one page: a page of the hub may be empty and still have older ones. */
const MAX_READS = 25;
/** Messages closer than this, of one author, are one group. */
const GROUP_MS = 5 * 60_000;
const MAX_TEXT_LENGTH = 10_000;

/**
 * Loads the messages with `peer` in `conversationId`: the newest, or those around one of them. `onChange` is called after each
 * change. While `hasLater` is true the newest are not among them, and nothing is added at the end: it would leave a gap.
 */
function createLoader(peer, conversationId, onChange) {
  const path = `/agent/messages?peer=${encodeUriPart(peer)}&conversation_id=${encodeUriPart(conversationId)}`;
  const messages = new Map();
  const sortRows = (rows) => [...rows].sort((a, b) => a.id - b.id);
  /** The newest messages while they are not among those shown. */
  let newestRows = [];
  /** Where the messages after those shown begin. */
  let laterCursor;
  const loader = {
    isLoaded: false,
    hasLater: false,
    next: undefined,
    error: '',
    list: () => sortRows(messages.values()),
    listNewest: () => (loader.hasLater ? newestRows : loader.list()),
  };
  const isPart = (row) => getPeer(row) === peer && (row.envelope.conversation_id ?? '') === conversationId;
  /** A row of the history has recorded facts, so it wins over an event. */
  const addRows = (rows) => rows.forEach((row) => messages.set(row.id, row));
  /** Reads back from `before` until `isEnough`; returns the rows, and where older ones begin. */
  const readBack = async (before, isEnough) => {
    const rows = [];
    let next = before;
    for (let count = 0; count < MAX_READS; count += 1) {
      const page = await getPage(`${path}&limit=${PAGE_SIZE}${next === undefined ? '' : `&before=${next}`}`);
      rows.push(...page.rows);
      next = page.next;
      if (next === undefined || isEnough(page.rows)) break;
    }
    return { rows: sortRows(rows), next };
  };
  const hasRows = (rows) => rows.length > 0;
  const showNewest = ({ rows, next }) => {
    messages.clear();
    addRows(rows);
    Object.assign(loader, { next, hasLater: false, isLoaded: true, error: '' });
  };
  loader.loadNewest = async () => {
    const newestKnown = Math.max(-1, ...messages.keys());
    try {
      if (loader.hasLater) newestRows = (await readBack(undefined, hasRows)).rows;
      else if (newestKnown < 0) showNewest(await readBack(undefined, hasRows));
      // Back to what is known already, so that a burst leaves no hole.
      else addRows((await readBack(undefined, (rows) => rows[0]?.id <= newestKnown)).rows);
      loader.error = '';
    } catch (error) {
      loader.error = error.message;
    }
    onChange();
  };
  loader.jumpToNewest = async () => {
    showNewest(await readBack(undefined, hasRows));
    onChange();
  };
  loader.loadEarlier = async () => {
    const earlier = await readBack(loader.next, hasRows);
    addRows(earlier.rows);
    loader.next = earlier.next;
    onChange();
  };
  /** However far back the message is, a few requests bring it with its neighbours. */
  loader.loadAround = async (id) => {
    const [around, newest] = await Promise.all([readBack(id + 1, hasRows), readBack(undefined, hasRows)]);
    const last = around.rows.at(-1)?.id ?? 0;
    showNewest(around);
    // Without a gap between the two pages the log goes on to its end.
    if (newest.next === undefined || newest.rows[0]?.id <= last) addRows(newest.rows);
    else {
      newestRows = newest.rows;
      laterCursor = last;
      loader.hasLater = true;
      await loader.loadLater();
    }
    onChange();
  };
  /** The hub lists forward only all messages of the agent; those of others are passed over. */
  loader.loadLater = async () => {
    for (let count = 0; count < MAX_READS; count += 1) {
      const page = await getPage(`/agent/messages?since=${laterCursor}&limit=${FORWARD_PAGE_SIZE}`);
      const rows = page.rows.filter(isPart);
      addRows(rows);
      laterCursor = page.rows.at(-1)?.id ?? laterCursor;
      loader.hasLater = page.next !== undefined;
      if (!loader.hasLater || rows.length) break;
    }
    onChange();
  };
  loader.addEvent = (message) => {
    if (!isPart(message) || loader.hasLater) return;
    if (!messages.has(message.id)) addRows([message]);
    onChange();
  };
  return loader;
}

/** `isUnasked`: the page opened it, so its messages are not shown (R-81) before the person acts inside `root`. */
export function openConversation(root, peer, conversationId, { targetId, isUnasked = false } = {}) {
  const unfoldedKeys = new Set();
  /** Trace ids that this page has told the hub of. */
  const told = new Set();
  let firstUnreadId;
  const sight = { current: undefined };
  const log = createLogView({
    label: t('thread.one'),
    emptyText: () => loader.error || (loader.isLoaded ? t('thread.first', { name: peer }) : t('wait')),
    onEarlier: () => loader.loadEarlier(),
    onLater: () => loader.loadLater(),
    onNewest: () => loader.jumpToNewest(),
    onAdded: (node, message) => {
      if (isUnshown(message) && !told.has(message.trace_id)) sight.current.watch(node);
    },
  });
  let findingUnread;
  /** Before the first rows are drawn: the log opens at the first unread message. */
  const findUnread = () => {
    findingUnread ??= findFirstUnread(loader.list(), peer, conversationId).then((id) => {
      firstUnreadId = id;
      return render();
    });
    return findingUnread;
  };
  const render = () => {
    if (loader.isLoaded && firstUnreadId === undefined) return findUnread();
    const messages = loader.list();
    return log.setRows(
      messages.map((message, index) => {
        const previous = messages[index - 1];
        const day = formatDate(message.timestamp);
        const isNewDay = !previous || formatDate(previous.timestamp) !== day;
        const isJoined =
          !isNewDay &&
          previous.sender_id === message.sender_id &&
          message.id !== firstUnreadId &&
          Date.parse(message.timestamp) - Date.parse(previous.timestamp) < GROUP_MS;
        return {
          item: message,
          key: String(message.id),
          signature: `${isJoined} ${isNewDay} ${message.id === firstUnreadId} ${getStateSignature(message)}`,
          isOwn: message.sender_id === principal.id,
          render: () => [
            isNewDay && h('p.daymark', {}, day),
            message.id === firstUnreadId && h('p.newmark', { 'data-mark': 'new' }, t('thread.new')),
            renderMessage(message, isJoined, unfoldedKeys),
          ],
        };
      }),
      {
        hasEarlier: loader.next !== undefined,
        hasLater: loader.hasLater,
        unreadKey: firstUnreadId === Infinity ? undefined : String(firstUnreadId),
      },
    );
  };
  const scheduleRender = throttleToRepaint(render);
  const loader = createLoader(peer, conversationId, scheduleRender);
  const tellShown = (node) => {
    const message = loader.list().find((found) => String(found.id) === node.dataset.row);
    if (!message || told.has(message.trace_id)) return;
    told.add(message.trace_id);
    markShown(message).then(
      (status) => {
        message.shown_at = status.shown_at;
        // The hub has not counted what was acknowledged.
        if (!status.acknowledged_at) subtractUnread(peer, conversationId);
      },
      (error) => {
        told.delete(message.trace_id);
        if (isPassingError(error)) setTimeout(() => node.isConnected && sight.current.watch(node), POLL_MS);
      },
    );
  };
  sight.current = watchSight(log.scroller, tellShown, isUnasked ? root : undefined);
  replaceContent(root, renderHeader(peer, conversationId), log.node, createForm(peer, conversationId, loader));
  // The rows around a message come first: those at the end would be drawn and go away again.
  const firstLoad = targetId ? loader.loadAround(Number(targetId)).catch(() => {}) : undefined;
  const loadNewest = () =>
    Promise.resolve(firstLoad)
      .then(() => loader.loadNewest())
      .then(() => refreshStates(loader.list()));
  const cleanups = [
    repeatEvery(POLL_MS, loadNewest),
    subscribe(['message'], loader.addEvent),
    subscribe(['receipts', 'agents'], scheduleRender),
    () => sight.current.stop(),
  ];
  if (targetId)
    firstLoad
      .then(findUnread)
      .then(() => requestAnimationFrame(() => requestAnimationFrame(() => log.showRow(targetId))))
      .catch(() => {});
  return () => cleanups.forEach((cleanup) => cleanup());
}

const isUnshown = (message) => message.sender_id !== principal.id && !message.shown_at;

/**
 * The id of the first message that is neither shown nor acknowledged; Infinity if there is none. A history row does not say whether
 * it was acknowledged, but the hub's list counts what is unread. Only if that is less than what was not shown, the hub is asked for
 * single messages, from the newest back until all unread ones are found.
 */
async function findFirstUnread(messages, peer, conversationId) {
  const unshown = messages.filter(isUnshown);
  const countUnread = () => findConversation(peer, conversationId)?.unread ?? 0;
  if (countUnread() < unshown.length) await refreshConversations().catch(() => {});
  let unread = countUnread();
  if (unread >= unshown.length) return unshown[0]?.id ?? Infinity;
  let firstId = Infinity;
  for (const message of unshown.reverse()) {
    if (unread === 0) break;
    const status = await getApi(`/messages/${message.trace_id}`).catch(() => undefined);
    if (status?.acknowledged_at) continue;
    firstId = message.id;
    unread -= 1;
  }
  return firstId;
}

function renderHeader(peer, conversationId) {
  return h(
    'header.thread-head',
    {},
    h('a.back', { href: '#/conversations' }, renderIcon('back'), t('view.conversations')),
    renderAvatar(peer),
    h('h2', {}, h('a', { href: `#/agents/${encodeUriPart(peer)}` }, renderName(peer))),
    conversationId && h('bdi.quiet', {}, conversationId),
  );
}

function renderMessage(message, isJoined, unfoldedKeys) {
  const isOwn = message.sender_id === principal.id;
  const { original_text: text, sender_culture: culture, cultural_context: context, turn_number: turn } = message.envelope;
  return h(
    'article.bubble',
    { class: `${isOwn ? 'mine' : ''} ${isJoined ? 'joined' : ''}`, 'data-trace': message.trace_id },
    renderMessageText(text, { culture, key: message.trace_id, unfoldedKeys }),
    context && h('p.context', { dir: 'auto' }, h('b', {}, t('context')), ' ', linkUrls(context)),
    h(
      'footer',
      {},
      !isJoined && renderCultureChip(culture),
      turn && h('span', {}, t('turn', { n: turn })),
      isOwn ? renderMessageState(message) : h('time', {}, formatTime(message.timestamp, false)),
    ),
  );
}

function createForm(peer, conversationId, loader) {
  const buildBody = (text) => {
    const turns = loader.listNewest().map((message) => message.envelope.turn_number ?? 0);
    const envelope = {
      chorus_version: '0.4',
      sender_id: principal.id,
      original_text: text,
      sender_culture: principal.culture,
    };
    if (conversationId)
      Object.assign(envelope, { conversation_id: conversationId, turn_number: Math.max(0, ...turns) + 1 });
    return { receiver_id: peer, envelope };
  };
  const sendBody = async (body, idempotencyKey) => {
    const answered = listAnswered(loader.listNewest());
    recordSent(await postApi('/messages', body, { 'idempotency-key': idempotencyKey }));
    await Promise.all(answered.map(acknowledge));
    await (loader.hasLater ? loader.jumpToNewest() : loader.loadNewest());
    refreshConversations().catch(() => {});
  };
  const note = [
    t('write.as', { id: principal.id, culture: formatCulture(principal.culture) }),
    getAgentCulture(peer) && ` · ${t('write.culture', { culture: formatCulture(getAgentCulture(peer)) })}`,
  ];
  return createComposer({
    label: t('write.to', { name: peer }),
    note,
    maxLength: MAX_TEXT_LENGTH,
    place: `conversation ${peer} ${conversationId}`,
    buildBody,
    sendBody,
  });
}

/** The messages that an answer acknowledges: those that came since the agent last wrote. */
function listAnswered(messages) {
  const lastOwn = messages.findLastIndex((message) => message.sender_id === principal.id);
  return messages.slice(lastOwn + 1).slice(-PAGE_SIZE);
}
