// The state of sent messages: queued, delivered, shown, acknowledged; or failed, or declined by the receiver.

import { encodeUriPart, getApi, postApi, principal } from './api.js';
import { notifySubscribers, subscribe } from './hub.js';
import { h } from './dom.js';
import { formatTimestamp, t } from './words.js';

const MAX_RECORDS = 5_000;
/** Sent messages of an open conversation whose state is asked for at once: the newest that are still under way. */
const MAX_ASKED = 8;

/** `MessageStatus` of the hub by trace id, and what the inbox stream told since. */
const records = new Map();

function mergeRecord(traceId, facts) {
  records.set(traceId, { ...records.get(traceId), ...facts });
  if (records.size > MAX_RECORDS) records.delete(records.keys().next().value);
}

/** Follows the receipts that come by the inbox stream. */
export function followReceipts() {
  subscribe(['receipt'], (event) => {
    mergeRecord(event.trace_id, {
      status: 'acknowledged',
      acknowledged_at: event.timestamp ?? new Date().toISOString(),
      receiver_response: event.response,
    });
    notifySubscribers('receipts');
  });
  subscribe(['shown'], (event) => {
    mergeRecord(event.trace_id, { shown_at: event.timestamp });
    notifySubscribers('receipts');
  });
}

/** What the answer to `POST /messages` says. */
export function recordSent(sent) {
  const status = { delivered_sse: 'delivered', delivered: 'delivered', queued: 'queued', failed: 'failed' }[sent.delivery];
  mergeRecord(sent.trace_id, { status });
}

export function getMessageState(message) {
  const record = records.get(message.trace_id) ?? {};
  if (record.receiver_response?.status === 'error') return 'declined';
  if (record.acknowledged_at) return 'acknowledged';
  if (record.shown_at ?? message.shown_at) return 'shown';
  if (record.status) return record.status;
  return { queued: 'queued', failed: 'failed' }[message.delivered_via] ?? 'delivered';
}

const isUnderWay = (message) =>
  message.sender_id === principal.id && !['acknowledged', 'declined', 'failed'].includes(getMessageState(message));

/** Asks the hub for the state of the newest sent messages that are under way, and of those that it was never asked for. */
export async function refreshStates(messages) {
  const isUnknown = (message) => message.sender_id === principal.id && !records.get(message.trace_id)?.sent_at;
  const asked = new Set([
    ...messages.filter(isUnderWay).slice(-MAX_ASKED),
    ...messages.filter(isUnknown).slice(-MAX_ASKED),
  ]);
  let hasChanged = false;
  for (const message of asked) {
    // One state that cannot be read must not keep the others from being read.
    const status = await getApi(`/messages/${message.trace_id}`).catch(() => undefined);
    if (!status) continue;
    const before = JSON.stringify(records.get(message.trace_id));
    mergeRecord(message.trace_id, status);
    hasChanged ||= JSON.stringify(records.get(message.trace_id)) !== before;
  }
  if (hasChanged) notifySubscribers('receipts');
}

/** A text that changes when the rendered state would. */
export const getStateSignature = (message) =>
  JSON.stringify([records.get(message.trace_id)?.delivered_at, getMessageState(message), message.shown_at]);

/** The state of a sent message, with the times of its four steps behind it. */
export function renderMessageState(message) {
  const state = getMessageState(message);
  const record = records.get(message.trace_id) ?? {};
  const steps = [
    ['queued', record.sent_at ?? message.timestamp],
    ['delivered', record.delivered_at],
    ['shown', record.shown_at ?? message.shown_at],
    [state === 'declined' ? 'declined' : 'acknowledged', record.acknowledged_at],
  ];
  const latest = steps.find(([step]) => step === state)?.[1];
  return h(
    'details.steps',
    {},
    h(
      'summary',
      { 'data-key': `steps ${message.trace_id}` },
      h('span', { class: `stand is-${state}`, 'data-state': state }, t(`state.${state}`)),
      latest && h('time', {}, formatTimestamp(latest)),
    ),
    h(
      'ol',
      {},
      steps.map(([step, time]) =>
        h('li', { 'data-step': step }, h('span', {}, t(`step.${step}`)), h('time', {}, time ? formatTimestamp(time) : t('step.not'))),
      ),
      record.detail && h('li.wrong', {}, h('bdi', {}, record.detail)),
    ),
  );
}

/** Tells the sender that the person has seen the message. The first time stands, so that a repetition is harmless. */
export const markShown = (message) => postApi(`/agent/messages/${encodeUriPart(message.trace_id)}/shown`, {});

/** Acknowledges a message that the person has answered. Another session may have done so: then its answer stands. */
export const acknowledge = (message) =>
  postApi(`/agent/messages/${encodeUriPart(message.trace_id)}/response`, { status: 'ok' }).catch(() => {});
