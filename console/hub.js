// What the page knows of the hub, kept up by streams and a few looks; views hear of a change by its topic.

import { get, key, look, me, part, token } from './api.js';
import { follow } from './stream.js';
import { hear, memory } from './frames.js';

export { me };

const SAMPLES = 90;
const BEAT = 2_000;
const LOG_MOST = 30_000;
const MESSAGES_MOST = 5_000;

export const known = {
  health: undefined,
  ready: undefined,
  discovery: undefined,
  agents: new Map(),
  rates: { messages: [], frames: [], requests: [] },
  frameStreams: 0,
  messages: new Map(),
  historyDone: false,
  historyWhole: false,
  standing: new Map(),
  /** Messages in sight, whose standing is asked for first. */
  watched: [],
  frames: memory(),
  log: [],
  logFrom: 0,
  links: new Map(),
  over: false,
};

const hearers = new Map();

/** Calls `work` at every change of these topics, until the function that is returned is called. */
export function on(topics, work) {
  for (const topic of topics) {
    if (!hearers.has(topic)) hearers.set(topic, new Set());
    hearers.get(topic).add(work);
  }
  return () => topics.forEach((topic) => hearers.get(topic).delete(work));
}

export function emit(topic) {
  hearers.get(topic)?.forEach((work) => work());
}

function link(name) {
  return (word) => {
    known.links.set(name, word);
    // A key that is no longer good is not tried again and again: that is what those who guess do.
    if (word === 'ended') known.over = true;
    emit('links');
  };
}

/** `live` when all streams are, `ended` when the key is no longer good, else what the worst of them is doing. */
export function linkState() {
  const words = [...known.links.values()];
  for (const word of ['ended', 'waiting', 'connecting']) if (words.includes(word)) return word;
  return 'live';
}

/** Repeats `work` until the returned function is called; a look that fails is tried again at the next turn. */
export function every(ms, work) {
  let over = false;
  (async () => {
    while (!over && !known.over) {
      if (!document.hidden) await Promise.resolve(work()).catch(() => {});
      await new Promise((done) => setTimeout(done, ms));
    }
  })();
  return () => {
    over = true;
  };
}

export function start(who) {
  Object.assign(me, { role: who.role, id: who.id ?? '', handle: who.record?.handle ?? '' });
  me.culture = who.record?.agent_card?.user_culture || 'en';
  me.endpoint = Boolean(who.record?.has_endpoint);
  me.session = sessionStorage.getItem('chorus.session') || `web-${Math.random().toString(36).slice(2, 8)}`;
  sessionStorage.setItem('chorus.session', me.session);
  look('/.well-known/chorus.json').then(
    (document) => {
      known.discovery = document;
      emit('discovery');
    },
    () => {},
  );
  every(BEAT, pulse);
  every(5_000, directory);
  if (me.role === 'operator') operator();
  else agent();
}

/** Counts and health, and from two looks the rates between them. */
async function pulse() {
  const [health, ready, metrics] = await Promise.allSettled([look('/health'), look('/ready'), look('/metrics')]);
  known.ready = ready.status === 'fulfilled' ? { ok: true } : { ok: false, why: ready.reason?.message };
  if (health.status === 'fulfilled') {
    sample(health.value, metrics.status === 'fulfilled' ? metrics.value : '');
    known.health = health.value;
  }
  emit('health');
}

let before;
function sample(health, metrics) {
  const now = performance.now();
  const counts = { messages: health.messages_stored, frames: 0, requests: 0, frameStreams: 0 };
  for (const line of metrics.split('\n')) {
    if (line.startsWith('chorus_http_requests_total{')) {
      const n = Number(line.slice(line.lastIndexOf(' ') + 1));
      counts.requests += n;
      if (line.includes('route="/frames"') && line.includes('status="200"')) counts.frames += n;
    } else if (line.startsWith('chorus_frame_streams ')) counts.frameStreams = Number(line.slice(21));
  }
  known.frameStreams = counts.frameStreams;
  if (before && now - before.now > 500) {
    for (const name of ['messages', 'frames', 'requests']) {
      const rate = Math.max(0, (counts[name] - before.counts[name]) / ((now - before.now) / 1000));
      known.rates[name].push(rate);
      if (known.rates[name].length > SAMPLES) known.rates[name].shift();
    }
  }
  before = { now, counts };
}

/** Who is here, with skills and scores from the market beside the cards. */
export async function directory() {
  const rows = [];
  for (let after; rows.length < 5_000;) {
    const page = await look(`/discover?limit=1000${after ? `&after=${part(after)}` : ''}`);
    rows.push(...page);
    if (page.length < 1000) break;
    after = page.at(-1).agent_id;
  }
  const agents = new Map(rows.map((row) => [row.agent_id, { ...row, skills: [] }]));
  const market = await look('/discover?min_reputation=0&limit=1000').catch(() => ({ agents: [] }));
  for (const found of market.agents) {
    const agent = agents.get(found.agent_id);
    if (!agent) continue;
    agent.score = found.reputation_score;
    agent.owner = found.owner_id;
    if (found.skill?.skill_name) agent.skills.push(found.skill);
  }
  known.agents = agents;
  emit('agents');
}

export function cultureOf(id) {
  return known.agents.get(id)?.culture;
}

/* ---- an agent's page ---- */

function agent() {
  // An open inbox is preferred to an endpoint: to look must not take an agent's messages away from it.
  if (!me.endpoint) {
    follow({
      address: async () => ({ path: `/agent/inbox?session=${await token()}` }),
      heard: inbox,
      state: link('inbox'),
      rests: true,
    });
  }
  if (me.handle) {
    const path = `/handles/${me.handle}/stream?instrument=console&tool=console&session=${me.session}`;
    follow({
      address: async () => ({ path: `${path}&session_token=${await token()}` }),
      heard: frame,
      state: link('frames'),
      since: '0',
    });
  }
  every(me.endpoint ? 1_000 : 3_000, history);
  every(5_000, settle);
}

function inbox(name, data, id) {
  if (name === 'message') {
    keep({ ...data, id: Number(id), receiver_id: me.id, delivered_via: 'sse' });
    emit('messages');
  } else if (name === 'receipt') {
    known.standing.set(data.trace_id, data.response?.status === 'error' ? 'declined' : 'acknowledged');
    emit('messages');
  } else if (name === 'job' || name === 'job_result') emit('jobs');
  else if (name === 'channel') emit('channels');
  if (name !== 'connected') note(name, id, inboxFacts(name, data));
}

/** Of what an inbox brings, the parts that are no secret: deliveries carry addresses that speak for the agent. */
function inboxFacts(name, data = {}) {
  if (name === 'message') return { sender_id: data.sender_id, receiver_id: me.id, trace_id: data.trace_id };
  if (name === 'receipt')
    return { receiver_id: data.receiver_id, trace_id: data.trace_id, status: data.response?.status };
  if (name === 'channel') return { channel: data.channel?.name ?? data.channel?.id, sender: data.message?.sender };
  return { job_id: data.job_id, skill_name: data.skill_name, status: data.status };
}

function frame(name, data) {
  if (name === 'connected' || name === 'resume-gap' || !data?.frame_id) return;
  if (!hear(known.frames, data)) return;
  note(name, undefined, { sender: data.sender_handle, frame_id: data.frame_id }, data.created_at);
  emit('frames');
}

let noted = 0;
/** An agent may not read the hub's activity; its own log is what this page has heard. */
function note(type, id, data, at) {
  known.log.push({ id: `${++noted}`, type, timestamp: at ?? new Date().toISOString(), data });
  if (known.log.length > LOG_MOST) known.log.splice(0, LOG_MOST / 2);
  emit('log');
}

function keep(row) {
  const had = known.messages.get(row.id);
  // The stream's word on how a message came is our guess; history knows.
  known.messages.set(row.id, had ? { ...row, ...had } : row);
  if (known.messages.size > MESSAGES_MOST) known.messages.delete(known.messages.keys().next().value);
}

/** A long history begins with its last two weeks; the rest comes when it is asked for. */
const RECENT = 14 * 86_400_000;
let historyFrom = new Date(Date.now() - RECENT).toISOString();

export async function wholeHistory() {
  historyFrom = 0;
  known.historyWhole = true;
  await history();
}

/** Reads what history has since the last look; what I send is nowhere else. */
export async function history() {
  let changed = false;
  for (;;) {
    const page = await get(`/agent/messages?since=${historyFrom}&limit=1000`);
    for (const row of page) {
      if (!known.messages.has(row.id)) changed = true;
      known.messages.set(row.id, row);
      historyFrom = row.id;
    }
    if (page.length === 0 && typeof historyFrom === 'string') {
      historyFrom = 0;
      known.historyWhole = true;
    } else if (page.length === 0) break;
  }
  if (known.messages.size > MESSAGES_MOST) {
    for (const id of [...known.messages.keys()].sort((a, b) => a - b).slice(0, known.messages.size - MESSAGES_MOST))
      known.messages.delete(id);
  }
  if (changed || !known.historyDone) {
    known.historyDone = true;
    emit('messages');
    await settle();
  }
}

const FINAL = ['acknowledged', 'declined', 'failed'];
/** Where the messages that I sent stand, until they stand for good: those in sight, and the latest. */
export async function settle() {
  const open = (row) => row.sender_id === me.id && !FINAL.includes(known.standing.get(row.trace_id));
  const recent = [...known.messages.values()].filter(open).slice(-2);
  let changed = false;
  for (const row of new Set([...known.watched.filter(open).slice(-8), ...recent])) {
    const found = await get(`/messages/${row.trace_id}`);
    const word = found.receiver_response?.status === 'error' ? 'declined' : found.status;
    changed ||= known.standing.get(row.trace_id) !== word;
    known.standing.set(row.trace_id, word);
  }
  if (changed) emit('messages');
}

/** queued → delivered → acknowledged, or failed, or declined by the receiver. */
export function standingOf(row) {
  const word = known.standing.get(row.trace_id);
  if (word) return word;
  return (
    { sse: 'delivered', webhook: 'delivered', queued: 'queued', failed: 'failed' }[row.delivered_via] ?? 'delivered'
  );
}

/* ---- an operator's page ---- */

/** Ids of activity come four to an entry of the log. */
const PER_ENTRY = 4;
const CHUNK = 1_000 * PER_ENTRY;

async function operator() {
  link('events')('connecting');
  let newest = 0;
  try {
    newest = await newestActivity();
  } catch {
    // The stream that follows tries again, and tells.
  }
  known.logFrom = newest;
  follow({
    address: async () => ({ path: '/events', headers: { authorization: `Bearer ${key.get()}` } }),
    heard: (name, data) => {
      if (name !== 'activity' || (known.log.length && data.id <= known.log.at(-1).id)) return;
      known.log.push(data);
      if (known.log.length > LOG_MOST) known.log.splice(0, LOG_MOST / 2);
      emit('log');
    },
    state: link('events'),
    since: String(newest),
    rests: true,
  });
  await earlier();
}

/** An id near the end of activity, found by asking for single entries: there is no page of the newest. */
async function newestActivity() {
  const after = async (id) => (await get(`/activity?since=${id}&limit=1`)).length > 0;
  let low = ((await look('/health')).messages_stored || 0) * PER_ENTRY;
  let step = CHUNK;
  let high = low + step;
  while (await after(high)) {
    low = high;
    high += step *= 2;
  }
  while (high - low > CHUNK / 4) {
    const middle = Math.floor((low + high) / 2);
    if (await after(middle)) low = middle;
    else high = middle;
  }
  return low;
}

let reading;
/** Reads what came before the oldest entry that is here; false when there is no more. */
export function earlier() {
  reading ??= (async () => {
    const to = known.log[0]?.id ?? known.logFrom + 1;
    if (known.logFrom <= 0 || me.role !== 'operator') return false;
    const from = Math.max(0, known.logFrom - CHUNK);
    const rows = [];
    for (let since = from; ;) {
      const page = await get(`/activity?since=${since}&limit=1000`);
      rows.push(...page.filter((row) => row.id < to && row.id <= known.logFrom));
      if (page.length < 1000 || page.at(-1).id >= known.logFrom) break;
      since = page.at(-1).id;
    }
    known.logFrom = from;
    known.log.unshift(...rows);
    emit('log');
    return true;
  })().finally(() => {
    reading = undefined;
  });
  return reading;
}
