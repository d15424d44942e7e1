// Which messages of channels are new to this browser. The hub keeps no reading position for channels, so the page keeps one for each
// in localStorage: a cursor, no text.

import { encodeUriPart, getApi, principal } from './api.js';
import { notifySubscribers, subscribe } from './hub.js';

/** Channels that are asked for new messages when the page opens. */
const MAX_CHANNELS = 50;
/** Rows that are counted in one channel; more are shown as this many. */
const MAX_COUNTED = 100;

const counts = new Map();
const storageKey = (id) => `chorus.read ${principal.id} ${id}`;

/** The newest cursor that this browser has shown; Infinity for a channel that it has never shown. */
export function loadReadCursor(id) {
  const stored = localStorage.getItem(storageKey(id));
  return stored === null ? Infinity : Number(stored);
}

export function saveReadCursor(id, cursor) {
  setCount(id, 0);
  const known = loadReadCursor(id);
  if (known !== Infinity && known >= cursor) return;
  try {
    localStorage.setItem(storageKey(id), String(cursor));
  } catch {
    // A full storage marks too much as new.
  }
}

function setCount(id, count) {
  if ((counts.get(id) ?? 0) === count) return;
  counts.set(id, count);
  notifySubscribers('unread-channels');
}

export const getChannelUnread = (id) => counts.get(id) ?? 0;
export const countChannelUnread = () => [...counts.values()].reduce((sum, count) => sum + count, 0);

async function countNew(channel) {
  const since = loadReadCursor(channel.id);
  if (since === Infinity) return;
  const rows = await getApi(`/channels/${encodeUriPart(channel.id)}/messages?since=${since}&limit=${MAX_COUNTED}`);
  setCount(channel.id, rows.filter((row) => row.type === 'message' && row.agent_id !== principal.id).length);
}

/** Counts what is new, and goes on counting what the inbox brings. */
export async function followChannelUnread() {
  if (principal.role !== 'agent') return;
  subscribe(['channel'], (event) => {
    const id = event.channel?.id;
    if (id && !location.hash.startsWith(`#/channels/${encodeUriPart(id)}`)) setCount(id, getChannelUnread(id) + 1);
  });
  const channels = await getApi('/channels');
  for (const channel of channels.filter((found) => found.membership === 'joined').slice(0, MAX_CHANNELS))
    await countNew(channel).catch(() => {});
}
