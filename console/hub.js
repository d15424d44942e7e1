// Client state: what the page has loaded from the hub, kept current by streams and polling. Views subscribe to topics of
// change.

import { encodeUriPart, getApi, getPage, getPublic, principal, requestSessionToken, storedKey } from './api.js';
import { followStream } from './stream.js';
import { OPEN_ITEM_KINDS, addFrame, createFrameState, findNextDecisionEnd, setOpenItems } from './frames.js';
import { isNotifying } from './notify.js';

export { principal };

const MAX_SAMPLES = 90;
const HEALTH_POLL_MS = 2_000;
const MAX_LOG_ENTRIES = 30_000;

export const hubState = {
  health: undefined,
  ready: undefined,
  discovery: undefined,
  agents: new Map(),
  rates: { messages: [], frames: [], requests: [] },
  frames: createFrameState(),
  log: [],
  logStart: 0,
  streamStates: new Map(),
  isSignedOut: false,
};

const subscribers = new Map();

/** Calls `callback` at every change of these topics; returns the function that unsubscribes. */
export function subscribe(topics, callback) {
  for (const topic of topics) {
    if (!subscribers.has(topic)) subscribers.set(topic, new Set());
    subscribers.get(topic).add(callback);
  }
  return () => topics.forEach((topic) => subscribers.get(topic).delete(callback));
}

/** `event` is what happened, for topics of single events: `message`, `receipt` and `shown`. */
export function notifySubscribers(topic, event) {
  subscribers.get(topic)?.forEach((callback) => callback(event));
}

function trackStreamState(stream) {
  return (state) => {
    hubState.streamStates.set(stream, state);
    // An invalid key is not retried: repeated failures look like key guessing and reach the rate limit.
    if (state === 'ended') hubState.isSignedOut = true;
    notifySubscribers('connection');
  };
}

/**
 * The state of all streams together: `ended` if the key is invalid, else `waiting` or `connecting` if any stream is, else
 * `live`.
 */
export function getConnectionState() {
  const states = [...hubState.streamStates.values()];
  for (const state of ['ended', 'waiting', 'connecting']) if (states.includes(state)) return state;
  return 'live';
}

/**
 * Polls: runs `callback` every `intervalMs` while the page is visible, until the returned function is called. Errors are
 * ignored.
 */
export function repeatEvery(intervalMs, callback) {
  let isStopped = false;
  (async () => {
    while (!isStopped && !hubState.isSignedOut) {
      if (!document.hidden) await Promise.resolve(callback()).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, intervalMs));
    }
  })();
  return () => {
    isStopped = true;
  };
}

export function startUpdates(identity) {
  Object.assign(principal, { role: identity.role, id: identity.id ?? '', handle: identity.record?.handle ?? '' });
  principal.culture = identity.record?.agent_card?.user_culture || 'en';
  principal.hasEndpoint = Boolean(identity.record?.has_endpoint);
  principal.session = sessionStorage.getItem('chorus.session') || `web-${Math.random().toString(36).slice(2, 8)}`;
  sessionStorage.setItem('chorus.session', principal.session);
  getPublic('/.well-known/chorus.json').then(
    (discovery) => {
      hubState.discovery = discovery;
      notifySubscribers('discovery');
    },
    () => {},
  );
  // A principal without streams learns from its requests that the key has ended.
  window.addEventListener('unauthorized', () => trackStreamState('key')('ended'));
  repeatEvery(HEALTH_POLL_MS, loadHealth);
  // A failed poll counts as an outage like a closed stream, so the person's attempt is one of both.
  window.addEventListener('retry', () => loadHealth().catch(() => {}));
  repeatEvery(5_000, loadAgents);
  if (principal.role === 'operator') startOperatorStreams();
  else startAgentStreams();
}

/** Loads health, readiness and metrics; the rates are computed from two successive samples. */
async function loadHealth() {
  const [health, ready, metrics] = await Promise.allSettled([
    getPublic('/health'),
    getPublic('/ready'),
    getApi('/metrics'),
  ]);
  const isAway = health.status === 'rejected' && health.reason?.status === 0;
  if (isAway || hubState.streamStates.has('health')) trackStreamState('health')(isAway ? 'waiting' : 'live');
  hubState.ready = ready.status === 'fulfilled' ? { ok: true } : { ok: false, why: ready.reason?.message };
  if (health.status === 'fulfilled') {
    recordRates(health.value, metrics.status === 'fulfilled' ? metrics.value : '');
    // An inbox was opened or closed, so an agent came or went.
    if (hubState.health && hubState.health.inbox_connections !== health.value.inbox_connections)
      loadAgents().catch(() => {});
    hubState.health = health.value;
  }
  notifySubscribers('health');
}

let previousSample;
function recordRates(health, metrics) {
  const now = performance.now();
  const counts = { messages: health.messages_stored, frames: 0, requests: 0 };
  for (const line of metrics.split('\n')) {
    if (line.startsWith('chorus_http_requests_total{')) {
      const value = Number(line.slice(line.lastIndexOf(' ') + 1));
      counts.requests += value;
      if (line.includes('route="/frames"') && line.includes('status="200"')) counts.frames += value;
    }
  }
  if (previousSample && now - previousSample.now > 500) {
    for (const series of ['messages', 'frames', 'requests']) {
      const rate = Math.max(0, (counts[series] - previousSample.counts[series]) / ((now - previousSample.now) / 1000));
      hubState.rates[series].push(rate);
      if (hubState.rates[series].length > MAX_SAMPLES) hubState.rates[series].shift();
    }
  }
  previousSample = { now, counts };
}

/** Loads the agent directory, and adds the skills, owners and reputation that the market's discovery has. */
export async function loadAgents() {
  const records = [];
  for (let next = ''; next !== undefined && records.length < 5_000;) {
    const page = await getPage(`/discover?format=envelope&limit=1000${next && `&after=${encodeUriPart(next)}`}`);
    records.push(...page.rows);
    next = page.next;
  }
  const agents = new Map(records.map((record) => [record.agent_id, { ...record, skills: [] }]));
  const market = await getApi('/discover?min_reputation=0&limit=1000').catch(() => ({ agents: [] }));
  for (const offer of market.agents) {
    const agent = agents.get(offer.agent_id);
    if (!agent) continue;
    agent.score = offer.reputation_score;
    agent.owner = offer.owner_id;
    if (offer.skill?.skill_name) agent.skills.push(offer.skill);
  }
  hubState.agents = agents;
  notifySubscribers('agents');
}

export function getAgentCulture(id) {
  return hubState.agents.get(id)?.culture;
}

/* ---- signed in as an agent ---- */

function startAgentStreams() {
  // The hub prefers an open inbox stream to an endpoint. For an agent with an endpoint the page reads the history instead, so
  // that it takes no message away from the agent.
  if (!principal.hasEndpoint) {
    followStream({
      getAddress: async () => ({ path: `/agent/inbox?session=${await requestSessionToken()}` }),
      onEvent: handleInboxEvent,
      onState: (state) => {
        trackStreamState('inbox')(state);
        // This agent is online now.
        if (state === 'live') loadAgents().catch(() => {});
      },
      // A page that notifies goes on listening.
      closeWhenHidden: () => !isNotifying(),
    });
  }
  if (principal.handle) {
    const path = `/handles/${principal.handle}/stream?instrument=console&tool=console&session=${principal.session}`;
    followStream({
      getAddress: async () => ({ path: `${path}&session_token=${await requestSessionToken()}` }),
      onEvent: handleFrameEvent,
      onState: trackStreamState('frames'),
      startCursor: '0',
    });
  }
}

/** What no list of the hub has; messages and jobs are read from its lists. */
const LOGGED_EVENTS = ['receipt', 'shown', 'channel', 'gap'];

function handleInboxEvent(name, data, id) {
  if (name === 'message') {
    notifySubscribers('message', { ...data, id: Number(id), receiver_id: principal.id, delivered_via: 'sse' });
  } else if (name === 'receipt' || name === 'shown') {
    notifySubscribers(name, data);
  } else if (name === 'job' || name === 'job_update' || name === 'job_result') notifySubscribers('jobs');
  else if (name === 'channel') notifySubscribers('channel', data);
  if (LOGGED_EVENTS.includes(name)) appendLogEntry(name, pickPublicFields(name, data));
}

/** The fields of an inbox event that the log may show. Callback URLs and tool tokens are credentials and are left out. */
function pickPublicFields(name, data = {}) {
  if (name === 'receipt' || name === 'shown')
    return { receiver_id: data.receiver_id, trace_id: data.trace_id, status: data.response?.status };
  if (name === 'channel')
    return { channel: data.channel?.name, channel_id: data.channel?.id, sender: data.message?.sender };
  return {};
}

function handleFrameEvent(name, data) {
  if (name === 'resume-gap') {
    // The first replay starts before everything that the hub keeps, so its gap says nothing.
    if (!hubState.frames.seenIds.size) return;
    // FRM-71: frames were missed. What is open came with the stream.
    hubState.frames.hasGap = true;
    appendLogEntry(name, {});
    notifySubscribers('frames');
    return;
  }
  if (name === 'open-items') {
    if (data.more) scheduleOpenItems();
    else applyOpenItems(data.items);
    return;
  }
  if (name === 'connected' || !data?.frame_id) return;
  if (!addFrame(hubState.frames, data)) return;
  if (OPEN_ITEM_KINDS.test(name)) scheduleOpenItems();
  notifySubscribers('frames');
}

/** Once after a burst, such as a replay. */
const OPEN_ITEMS_DELAY_MS = 100;
let openItemsTimer;
function scheduleOpenItems() {
  clearTimeout(openItemsTimer);
  openItemsTimer = setTimeout(loadOpenItems, OPEN_ITEMS_DELAY_MS);
}

/** Reads what is open to the agent (R-83). */
export async function loadOpenItems() {
  const items = [];
  let query = '';
  try {
    do {
      const page = await getApi(`/handles/${principal.handle}/open${query}`);
      items.push(...page.items);
      query = page.next ? `?after=${encodeURIComponent(page.next)}` : '';
    } while (query);
  } catch {
    // The next connection of the stream brings it.
    return;
  }
  applyOpenItems(items);
}

/** The longest delay that a browser's timer takes; a longer one would end at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
let decisionEndTimer;
function applyOpenItems(items) {
  setOpenItems(hubState.frames, items);
  notifySubscribers('frames');
  scheduleDecisionEnd();
}

/** Nothing is sent when a decision ends, so the page has to look at the clock. */
function scheduleDecisionEnd() {
  clearTimeout(decisionEndTimer);
  const end = findNextDecisionEnd(hubState.frames);
  if (end === Infinity) return;
  decisionEndTimer = setTimeout(
    () => {
      notifySubscribers('frames');
      scheduleDecisionEnd();
    },
    Math.min(Math.max(0, end - Date.now()) + 1, MAX_TIMER_MS),
  );
}

let logCount = 0;
/** Appends to the page's own log: an agent may not read the hub's activity. */
function appendLogEntry(type, data) {
  hubState.log.push({ id: `${++logCount}`, type, timestamp: new Date().toISOString(), data });
  if (hubState.log.length > MAX_LOG_ENTRIES) hubState.log.splice(0, MAX_LOG_ENTRIES / 2);
  notifySubscribers('log');
}

/* ---- signed in as an operator ---- */

/** Activity ids per entry of the hub's log: an id is the entry's sequence times four plus a part number. */
const IDS_PER_ENTRY = 4;
const IDS_PER_READ = 1_000 * IDS_PER_ENTRY;

async function startOperatorStreams() {
  trackStreamState('events')('connecting');
  let newest = 0;
  try {
    newest = await findNewestActivityId();
  } catch {
    // The stream below retries and reports its state.
  }
  hubState.logStart = newest;
  followStream({
    getAddress: async () => ({ path: '/events', headers: { authorization: `Bearer ${storedKey.get()}` } }),
    onEvent: (name, data) => {
      if (name !== 'activity' || (hubState.log.length && data.id <= hubState.log.at(-1).id)) return;
      hubState.log.push(data);
      if (hubState.log.length > MAX_LOG_ENTRIES) hubState.log.splice(0, MAX_LOG_ENTRIES / 2);
      notifySubscribers('log');
    },
    onState: trackStreamState('events'),
    startCursor: String(newest),
    closeWhenHidden: () => true,
  });
  await loadEarlierLog();
}

/** An id near the newest activity, found by binary search with single-entry requests: the route has no newest-first page. */
async function findNewestActivityId() {
  const hasActivityAfter = async (id) => (await getApi(`/activity?since=${id}&limit=1`)).length > 0;
  let low = ((await getPublic('/health')).messages_stored || 0) * IDS_PER_ENTRY;
  let step = IDS_PER_READ;
  let high = low + step;
  while (await hasActivityAfter(high)) {
    low = high;
    high += step *= 2;
  }
  while (high - low > IDS_PER_READ / 4) {
    const middle = Math.floor((low + high) / 2);
    if (await hasActivityAfter(middle)) low = middle;
    else high = middle;
  }
  return low;
}

async function loadEarlierActivity() {
  const endId = hubState.log[0]?.id ?? hubState.logStart + 1;
  if (hubState.logStart <= 0) return false;
  const startId = Math.max(0, hubState.logStart - IDS_PER_READ);
  const entries = [];
  for (let since = startId; ;) {
    const page = await getApi(`/activity?since=${since}&limit=1000`);
    entries.push(...page.filter((entry) => entry.id < endId && entry.id <= hubState.logStart));
    if (page.length < 1000 || page.at(-1).id >= hubState.logStart) break;
    since = page.at(-1).id;
  }
  hubState.logStart = startId;
  hubState.log.unshift(...entries);
  notifySubscribers('log');
  return true;
}

let pendingRead;
/** Loads the entries before the oldest loaded one; false when there are none. Calls at the same time share one read. */
export function loadEarlierLog() {
  pendingRead ??= loadEarlierActivity().finally(() => {
    pendingRead = undefined;
  });
  return pendingRead;
}
