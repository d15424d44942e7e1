// Which messages of channels are new to this browser. The hub keeps no reading position for channels, so the page keeps one for each
// in localStorage: a cursor, no text.

import { encodeUriPart, getApi, principal } from './api.js';
import { notifySubscribers, repeatEvery, subscribe } from './hub.js';

/** Channels that are asked for new messages. */
const MAX_CHANNELS = 50;
/**
 * The inbox brings what is delivered to an agent, and an owner is a person in its channel. So the hub is asked as well, for
 * a few channels at a time: one request for each of many would be a burst every few seconds.
 */
const POLL_MS = 3_000;
const CHANNELS_PER_POLL = 4;
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

/** The name that the signed-in agent has in a channel. */
const ownNames = new Map();
export const recordOwnName = (channel) => ownNames.set(channel.id, channel.member_name);

/** A row names its author as the channel does; an operator has the same name in every channel. */
export const isOwnEvent = (id, event) =>
  event.sender_kind !== 'hub' && event.sender === (principal.role === 'operator' ? 'operator' : ownNames.get(id));

async function countNew(channel) {
  recordOwnName(channel);
  const since = loadReadCursor(channel.id);
  if (since === Infinity) return;
  const rows = await getApi(`/channels/${encodeUriPart(channel.id)}/messages?since=${since}&limit=${MAX_COUNTED}`);
  // It may have been read meanwhile.
  if (loadReadCursor(channel.id) !== since) return;
  setCount(channel.id, rows.filter((row) => row.type === 'message' && !isOwnEvent(channel.id, row)).length);
}

/** Counts what is new, and goes on counting. */
export function followChannelUnread() {
  if (principal.role !== 'agent') return;
  subscribe(['channel'], (event) => {
    const id = event.channel?.id;
    if (id && !location.hash.startsWith(`#/channels/${encodeUriPart(id)}`)) setCount(id, getChannelUnread(id) + 1);
  });
  let channels = [];
  let place = 0;
  repeatEvery(POLL_MS, async () => {
    if (place >= channels.length) {
      const isFirst = !channels.length;
      channels = (await getApi('/channels')).filter((found) => found.membership === 'joined').slice(0, MAX_CHANNELS);
      place = isFirst ? channels.length : 0;
      if (isFirst) return countAll(channels);
    }
    const some = channels.slice(place, place + CHANNELS_PER_POLL);
    place += CHANNELS_PER_POLL;
    return countAll(some);
  });
}

async function countAll(channels) {
  for (const channel of channels) await countNew(channel).catch(() => {});
}
