// What happened to the signed-in agent, newest first: its messages, jobs and credits as the hub keeps them, and what the streams told
// this page. Every entry leads to what it is about.

import { encodeUriPart, getLinkedPage, getPage } from './api.js';
import { getConversationHash, getPeer } from './conversation_state.js';
import { summarizeFrame } from './frames.js';
import { hubState, principal, repeatEvery, subscribe } from './hub.js';
import { stripMarkdown } from './markdown.js';
import { getMessageState, refreshStates } from './receipts.js';
import { formatCredits, formatKind, t } from './words.js';

const PAGE_SIZE = 50;
const POLL_MS = 5_000;
const MAX_TEXT = 300;
const STATE_TONES = { acknowledged: 'good', queued: 'wait', failed: 'bad', declined: 'bad' };
const JOB_TONES = { done: 'good', failed: 'bad', expired: 'bad', cancelled: '' };
/** Postings that change what the owner has; a hold only sets credits aside. */
const MOVING_POSTINGS = ['pay', 'transfer'];

/**
 * One list of the hub, read page by page. `readPage(cursor)` gives `{rows, next, getId, getTime}`, newest first. `reach` is the time
 * back to which the rows are complete.
 */
function createSource(readPage) {
  const source = { rows: new Map(), reach: Infinity, next: undefined, isDone: false };
  const addPage = (page) => page.rows.forEach((row) => source.rows.set(page.getId(row), row));
  const extendTo = (page) => {
    const oldest = page.rows.at(-1);
    source.next = page.next;
    source.isDone = page.next === undefined;
    source.reach = source.isDone ? -Infinity : oldest ? Date.parse(page.getTime(oldest)) : source.reach;
  };
  source.refresh = async () => {
    let page;
    try {
      page = await readPage();
    } catch (error) {
      // A key with few rights does not see every list.
      if (error.status !== 403) throw error;
      page = { rows: [], next: undefined };
    }
    const isFirst = source.reach === Infinity;
    // After a burst of more than a page the older rows would stand behind a hole.
    const hasHole = !isFirst && page.rows.length > 0 && !page.rows.some((row) => source.rows.has(page.getId(row)));
    if (hasHole) source.rows.clear();
    addPage(page);
    if (isFirst || hasHole) extendTo(page);
  };
  source.loadEarlier = async () => {
    const page = await readPage(source.next);
    addPage(page);
    extendTo(page);
  };
  return source;
}

const readMessages = async (before = Number.MAX_SAFE_INTEGER) => {
  const page = await getPage(`/agent/messages?before=${before}&limit=${PAGE_SIZE}`);
  return { rows: page.rows.reverse(), next: page.next, getId: (row) => row.id, getTime: (row) => row.timestamp };
};

const createLinkedReader =
  (path, field, getId, getTime) =>
  async (before) => {
    const page = await getLinkedPage(`${path}?limit=${PAGE_SIZE}${before === undefined ? '' : `&before=${encodeUriPart(before)}`}`);
    const rows = page.value[field];
    return { rows, next: page.hasMore ? getId(rows.at(-1)) : undefined, getId, getTime };
  };

const readJobs = createLinkedReader('/jobs', 'jobs', (job) => job.job_id, (job) => job.requested_at);
const readPostings = createLinkedReader('/audit', 'postings', (posting) => posting.id, (posting) => posting.timestamp_utc);

/** Isolated with Unicode characters instead of `bdi` elements, because a row is rewritten whenever it scrolls into view. */
const isolate = (text) => `\u2068${text}\u2069`;
const shorten = (text) => isolate(stripMarkdown(text ?? '').replaceAll(/\s+/g, ' ').slice(0, MAX_TEXT));

/* ---- entries: `{id, kind, timestamp, text, state, tone, href}` ---- */

function describeMessage(message) {
  const isOwn = message.sender_id === principal.id;
  const state = isOwn ? getMessageState(message) : undefined;
  const peer = getPeer(message);
  const { original_text: said, conversation_id: conversationId } = message.envelope;
  return {
    id: `message ${message.id}`,
    kind: isOwn ? (['failed', 'declined'].includes(state) ? 'failed' : 'sent') : 'received',
    timestamp: message.timestamp,
    text: `${t(isOwn ? 'own.to' : 'own.from', { name: isolate(peer) })}: ${shorten(said)}`,
    state: state && t(`state.${state}`),
    tone: STATE_TONES[state] ?? '',
    href: getConversationHash(peer, conversationId ?? '', message.id),
  };
}

/** A job is asked for once, and is where it is now. */
function describeJob(job) {
  const isRequester = job.orchestrator_id === principal.id;
  const who = isRequester ? job.agent_id : job.orchestrator_id;
  const values = { who: isolate(who ?? ''), skill: isolate(job.skill_name) };
  const entry = { kind: 'job', href: `#/market/${encodeUriPart(job.job_id)}` };
  const asked = {
    ...entry,
    id: `job ${job.job_id}`,
    timestamp: job.requested_at,
    text: t(isRequester ? (who ? 'own.job.asked' : 'own.job.board') : 'own.job.given', values),
  };
  if (job.timestamp_utc === job.requested_at) return [{ ...asked, state: t(`job.${job.state}`) }];
  const now = {
    ...entry,
    id: `job ${job.job_id} ${job.state}`,
    timestamp: job.timestamp_utc,
    text: t(isRequester ? 'own.job.by' : 'own.job.for', values),
    state: t(`job.${job.state}`),
    tone: JOB_TONES[job.state] ?? 'wait',
  };
  return [now, asked];
}

function describePosting(posting) {
  const owner = hubState.agents.get(principal.id)?.owner ?? principal.id;
  const [from, to] = [...posting.entries].sort((a, b) => Number(a.amount) - Number(b.amount));
  const isIncoming = to.owner_id === owner;
  const isMoving = MOVING_POSTINGS.includes(posting.kind) && from.owner_id !== to.owner_id;
  const amount = t(`posting.${posting.kind}.more`, { n: formatCredits(posting.amount) });
  const other = isMoving && t(isIncoming ? 'own.from' : 'own.to', { name: isolate((isIncoming ? from : to).owner_id) });
  return {
    id: `posting ${posting.id}`,
    kind: 'credit',
    timestamp: posting.timestamp_utc,
    text: [amount, other, posting.note && shorten(posting.note)].filter(Boolean).join(' · '),
    state: isMoving ? `${isIncoming ? '+' : '−'}${formatCredits(posting.amount)}` : '',
    tone: isMoving && isIncoming ? 'good' : '',
    href: posting.job_id ? `#/market/${encodeUriPart(posting.job_id)}` : '#/market',
  };
}

/** What the inbox stream told this page of; messages and jobs are in the lists of the hub. */
function describeEvent({ id, type, timestamp, data }, findMessage) {
  const entry = { id: `event ${id}`, timestamp };
  if (type === 'receipt' || type === 'shown') {
    const message = findMessage(data.trace_id);
    const text = t(`own.${type}`, { name: isolate(data.receiver_id ?? '') });
    return {
      ...entry,
      kind: 'receipt',
      text: message ? `${text}: ${shorten(message.envelope.original_text)}` : text,
      tone: type === 'receipt' ? 'good' : '',
      href: message && describeMessage(message).href,
    };
  }
  if (type === 'channel') {
    return {
      ...entry,
      kind: 'channel',
      text: t('own.channel', { name: isolate(data.sender ?? ''), channel: isolate(data.channel ?? '') }),
      href: data.channel_id ? `#/channels/${encodeUriPart(data.channel_id)}` : '#/channels',
    };
  }
  if (type === 'gap' || type === 'resume-gap') return { ...entry, kind: 'session', text: t('frames.gap'), tone: 'bad' };
  return undefined;
}

const describeFrame = (frame) => ({
  id: `frame ${frame.frame_id}`,
  kind: 'session',
  timestamp: frame.created_at,
  text: `${formatKind(frame.kind)}: ${shorten(summarizeFrame(frame))}`,
  href: '#/sessions',
});

/** The feed of activity.js for an agent. `onChange` is called when there is something new. */
export function openOwnActivity(onChange) {
  const messages = createSource(readMessages);
  const jobs = createSource(readJobs);
  const postings = createSource(readPostings);
  const sources = [messages, jobs, postings];
  const findMessage = (traceId) => [...messages.rows.values()].find((message) => message.trace_id === traceId);
  const list = () => {
    // What is older than the shortest of the lists would stand beside a hole.
    const horizon = Math.max(...sources.map((source) => source.reach));
    const entries = [
      ...[...postings.rows.values()].map(describePosting),
      ...[...jobs.rows.values()].flatMap(describeJob),
      ...[...messages.rows.values()].map(describeMessage),
      ...hubState.log.map((event) => describeEvent(event, findMessage)).filter(Boolean),
      ...hubState.frames.frames.map(describeFrame),
    ];
    return entries
      .map((entry) => ({ entry, at: Date.parse(entry.timestamp) }))
      .filter(({ at }) => at >= horizon)
      .sort((a, b) => b.at - a.at)
      .map(({ entry }) => entry);
  };
  const refresh = async () => {
    await Promise.all(sources.map((source) => source.refresh()));
    onChange();
    const oldestFirst = [...messages.rows.values()].sort((a, b) => a.id - b.id);
    await refreshStates(oldestFirst.slice(-PAGE_SIZE));
  };
  const refreshNow = () => refresh().catch(() => {});
  let pendingRead;
  const cleanups = [
    repeatEvery(POLL_MS, refresh),
    subscribe(['message', 'jobs'], refreshNow),
    subscribe(['receipts', 'log', 'frames', 'agents'], onChange),
  ];
  return {
    list,
    isLoaded: () => sources.every((source) => source.reach !== Infinity),
    /** Reads further back in the list that ends first; false when all are read. */
    loadEarlier() {
      const open = sources.filter((source) => !source.isDone && source.reach !== Infinity);
      if (!open.length) return Promise.resolve(false);
      const shortest = open.reduce((one, other) => (other.reach > one.reach ? other : one));
      pendingRead ??= shortest
        .loadEarlier()
        .then(() => {
          onChange();
          return true;
        })
        .finally(() => {
          pendingRead = undefined;
        });
      return pendingRead;
    },
    stop: () => cleanups.forEach((cleanup) => cleanup()),
  };
}
