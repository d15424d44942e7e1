// The conversations of the signed-in principal as the hub lists them: the newest line of each, and how many messages are unread.
// An operator gets the pairs of agents that exchanged messages.

import { encodeUriPart, getPage } from './api.js';
import { hubState, notifySubscribers, principal, repeatEvery, subscribe } from './hub.js';

const POLL_MS = 3_000;
/** Pages of 2 000 messages that are read at once; older conversations are read on demand. */
const PAGES_AT_ONCE = 20;

export const conversationState = {
  /** By `getConversationKey`, newest first. */
  rows: new Map(),
  isLoaded: false,
  /** Where older conversations begin; undefined when all are loaded. */
  next: undefined,
};

export const getConversationKey = (peer, conversationId) => JSON.stringify([peer, conversationId || '']);
export const getPeer = (message) => (message.sender_id === principal.id ? message.receiver_id : message.sender_id);
export const listConversations = () => [...conversationState.rows.values()];
export const countUnread = () => listConversations().reduce((sum, row) => sum + row.unread, 0);
/** The address of a conversation, or of one message in it, on this page. */
export const getConversationHash = (peer, conversationId, messageId) =>
  `#/conversations/${encodeUriPart(peer)}/${encodeUriPart(conversationId)}${messageId ? `/${messageId}` : ''}`;
/** Conversations of an agent with one peer, newest first. */
export const listConversationsWith = (peer) => listConversations().filter((row) => row.peer === peer);

function readRow(row) {
  const [first, second] = row.agents;
  const peer = first === principal.id ? second : first;
  return {
    agents: row.agents,
    peer,
    conversationId: row.conversation_id ?? '',
    lastId: row.last_id,
    lastAt: row.last_at,
    lastSender: row.last_sender_id,
    lastText: row.last_text ?? '',
    messages: row.messages,
    failed: row.failed,
    unread: row.unread ?? 0,
  };
}

/** Adds a page to the rows: a conversation comes on every page that has messages of it, and the first is the newest. */
function addPage(rows, page) {
  for (const listed of page.rows) {
    const row = readRow(listed);
    const key = principal.role === 'operator' ? JSON.stringify(row.agents) : getConversationKey(row.peer, row.conversationId);
    const known = rows.get(key);
    if (!known) rows.set(key, row);
    else {
      known.messages += row.messages;
      known.failed += row.failed;
      known.unread += row.unread;
    }
  }
}

async function readPages(rows, before, maxPages) {
  let next = before;
  for (let count = 0; count < maxPages; count += 1) {
    const page = await getPage(`/conversations${next === undefined ? '' : `?before=${next}`}`);
    addPage(rows, page);
    next = page.next;
    if (next === undefined) break;
  }
  return next;
}

let firstPageSeen = '';
let pendingRefresh;
/** Reads the list anew when its first page has changed. Calls at the same time share one read. */
export function refreshConversations(isForced = false) {
  pendingRefresh ??= (async () => {
    const firstPage = await getPage('/conversations');
    const signature = JSON.stringify(firstPage);
    if (signature === firstPageSeen && !isForced) return;
    const rows = new Map();
    addPage(rows, firstPage);
    const next =
      firstPage.next === undefined ? undefined : await readPages(rows, firstPage.next, PAGES_AT_ONCE - 1);
    firstPageSeen = signature;
    conversationState.rows = rows;
    conversationState.next = next;
    conversationState.isLoaded = true;
    notifySubscribers('conversations');
  })().finally(() => {
    pendingRefresh = undefined;
  });
  return pendingRefresh;
}

export async function loadOlderConversations() {
  conversationState.next = await readPages(conversationState.rows, conversationState.next, PAGES_AT_ONCE);
  notifySubscribers('conversations');
}

/** Enters a message that the inbox stream brought, before the hub's list is read again. */
function addMessage(message) {
  const peer = getPeer(message);
  const conversationId = message.envelope.conversation_id ?? '';
  const key = getConversationKey(peer, conversationId);
  const known = conversationState.rows.get(key);
  if (known && known.lastId >= message.id) return;
  conversationState.rows.delete(key);
  conversationState.rows = new Map([
    [
      key,
      {
        agents: [principal.id, peer].sort(),
        peer,
        conversationId,
        lastId: message.id,
        lastAt: message.timestamp,
        lastSender: message.sender_id,
        lastText: message.envelope.original_text,
        messages: (known?.messages ?? 0) + 1,
        failed: known?.failed ?? 0,
        unread: (known?.unread ?? 0) + (message.sender_id === principal.id ? 0 : 1),
      },
    ],
    ...conversationState.rows,
  ]);
  notifySubscribers('conversations');
}

export const findConversation = (peer, conversationId) =>
  conversationState.rows.get(getConversationKey(peer, conversationId));

/** Takes a message that was just shown out of the count. */
export function subtractUnread(peer, conversationId) {
  const row = findConversation(peer, conversationId);
  if (!row?.unread) return;
  row.unread -= 1;
  notifySubscribers('conversations');
}

/** Starts to keep the list current. */
export function followConversations() {
  subscribe(['message'], addMessage);
  let wasLive = true;
  subscribe(['connection'], () => {
    const isLive = ![...hubState.streamStates.values()].some((state) => state !== 'live');
    if (isLive && !wasLive) refreshConversations().catch(() => {});
    wasLive = isLive;
  });
  repeatEvery(POLL_MS, refreshConversations);
}
