// Frames, and the claims, decisions and handovers that the hub keeps until they end.

import { createUuid, postApi, principal } from './api.js';

const MAX_FRAMES = 20_000;
const MAX_DECISIONS = 500;

/** Sets a key of a map, and deletes the oldest key when the map exceeds `maxSize`. */
function setBounded(map, key, value, maxSize) {
  map.set(key, value);
  if (map.size > maxSize) map.delete(map.keys().next().value);
}

export const FRAME_KINDS = [
  'agent_advisory',
  'agent_broadcast',
  'agent_handover',
  'agent_lock_request',
  'agent_lock_release',
  'agent_lease_extend',
  'agent_query',
  'agent_response',
  'agent_return_event',
  'agent_binding_moment',
  'peer_diagnostic_request',
  'peer_diagnostic_response',
  'intent_declare',
  'intent_withdraw',
  'flush_executed',
];

/** How long a frame without ttl_ms is news, and the kinds whose payload says it. The same as in the client library. */
const DEFAULT_HORIZON_MS = 3_600_000;
const SELF_DATED_KINDS = ['agent_lock_request', 'agent_lease_extend', 'agent_binding_moment', 'agent_handover'];

/** After a frame of these kinds the page reads the open items again. */
export const OPEN_ITEM_KINDS = /^agent_(lock_(request|release)|lease_extend|binding_moment|response|handover)$/;

/** `decisions` and `answers` are frames by the id of the asking frame; `openUntil` has when each open decision ends. */
export function createFrameState() {
  return {
    frames: [],
    seenIds: new Set(),
    claims: [],
    handovers: [],
    decisions: new Map(),
    answers: new Map(),
    openUntil: new Map(),
  };
}

/** `items` are newest first, as the hub lists them. */
export function setOpenItems(state, items, now = Date.now()) {
  const oldestFirst = [...items].reverse();
  const decisions = oldestFirst.filter((open) => open.item === 'decision');
  for (const { frame } of decisions) setBounded(state.decisions, frame.frame_id, frame, MAX_DECISIONS);
  // By this machine's clock.
  state.openUntil = new Map(decisions.map((open) => [open.frame_id, now + open.left_ms]));
  state.claims = oldestFirst
    .filter((open) => open.item === 'lock')
    .map(({ frame, left_ms: leftMs, opened_at: openedAt, expires_at: expiresAt }, order) => ({
      resource: frame.payload.resource,
      holder: frame.sender_handle,
      session: getSessionName(frame),
      intent: frame.payload.intent,
      expiresAt: now + leftMs,
      duration: Date.parse(expiresAt) - Date.parse(openedAt),
      order,
    }));
  state.handovers = items
    .filter((open) => open.item === 'handover')
    .map(({ frame, handle, left_ms: leftMs, opened_at: openedAt }) => ({
      id: frame.frame_id,
      handle,
      openedAt,
      holder: frame.sender_handle,
      session: getSessionName(frame),
      previousSession: frame.payload.previous_session_id,
      body: frame.payload.handover_body,
      refs: frame.payload.pointer_refs ?? [],
      expiresAt: now + leftMs,
    }));
}

/** Adds a frame to the state; false for a duplicate or expired frame. */
export function addFrame(state, frame, now = Date.now()) {
  if (!frame?.frame_id || state.seenIds.has(frame.frame_id)) return false;
  state.seenIds.add(frame.frame_id);
  const createdAt = Date.parse(frame.created_at);
  // FRM-11: without ttl_ms a default applies, except where the payload says how long it is valid.
  const horizon = frame.ttl_ms ?? (SELF_DATED_KINDS.includes(frame.kind) ? Infinity : DEFAULT_HORIZON_MS);
  if (createdAt + horizon < now) return false;
  state.frames.push(frame);
  if (state.frames.length > MAX_FRAMES) {
    for (const dropped of state.frames.splice(0, MAX_FRAMES / 2)) state.seenIds.delete(dropped.frame_id);
  }
  const payload = frame.payload ?? {};
  if (frame.kind === 'agent_binding_moment') {
    setBounded(state.decisions, frame.frame_id, frame, MAX_DECISIONS);
  } else if (frame.kind === 'agent_response') {
    for (const id of [payload.responded_to_frame_id, payload.query_id]) {
      if (id && !state.answers.has(id)) setBounded(state.answers, id, frame, MAX_DECISIONS * 4);
    }
  }
  return true;
}

/** Claims that have not expired, sorted by resource and then by the order in which they were made. */
export function listClaims(state, now = Date.now()) {
  return state.claims
    .filter((claim) => claim.expiresAt > now)
    .sort((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : a.order - b.order));
}

/** Handovers that no session has taken up, newest first. */
export const listHandovers = (state, now = Date.now()) =>
  state.handovers.filter((handover) => handover.expiresAt > now);

const getHandoverRef = (id) => `frame:${id}`;

/** The session that said that it has taken a handover up; undefined if none did. */
export const findTaker = (state, id) =>
  state.frames.find(
    ({ kind, payload }) =>
      kind === 'agent_handover' && payload?.next_session_id && payload.pointer_refs?.includes(getHandoverRef(id)),
  )?.payload.next_session_id;

export const listOpenDecisions = (state, now = Date.now()) =>
  [...state.decisions.values()].filter(
    (frame) => state.openUntil.get(frame.frame_id) > now && !state.answers.has(frame.frame_id),
  );

/** When the next open decision ends; Infinity when none is open. */
export const findNextDecisionEnd = (state, now = Date.now()) =>
  Math.min(...[...state.openUntil.values()].filter((end) => end > now));

/** `instrument@session` of the sender, or undefined when the frame does not carry it. */
export function getSessionName(frame) {
  const basis = frame.provenance_basis ?? '';
  return basis.startsWith('session:') ? basis.slice(8) : undefined;
}

/** The text that represents a frame in a list, by its kind. */
export function summarizeFrame(frame) {
  const payload = frame.payload ?? {};
  switch (frame.kind) {
    case 'agent_advisory':
      return payload.advisory_text;
    case 'agent_broadcast':
      return payload.broadcast_text;
    case 'agent_handover':
      return payload.next_session_id
        ? `${payload.previous_session_id} → ${payload.next_session_id}`
        : payload.handover_body;
    case 'agent_lock_request':
      return payload.intent ? `${payload.resource} · ${payload.intent}` : payload.resource;
    case 'agent_lock_release':
      return payload.resource || payload.lease_id;
    case 'agent_lease_extend':
      return `+${Math.round(payload.ttl_ms / 1000)} s`;
    case 'agent_query':
      return payload.query_text;
    case 'agent_response':
      return payload.response_text;
    case 'agent_return_event':
      return payload.summary;
    case 'agent_binding_moment':
      return payload.question?.stem ?? payload.synopsis;
    case 'peer_diagnostic_request':
      return payload.symptom;
    case 'peer_diagnostic_response':
      return payload.finding;
    case 'intent_declare':
      return `${payload.convergence_class} · ${payload.payload_ref}`;
    case 'intent_withdraw':
      return payload.convergence_class;
    case 'flush_executed':
      return `${payload.convergence_class} · ${payload.result_ref}`;
    default:
      return '';
  }
}

/** Sends a frame of this page to all sessions of a handle. With `isLeaving` the browser sends it even though the page goes away. */
function sendFrame(handle, kind, payload, isLeaving) {
  return postApi(
    '/frames',
    {
      scope: handle,
      frame: {
        envelope_version: '1.0',
        frame_id: createUuid(),
        kind,
        sender_handle: principal.handle,
        recipient_handle: handle,
        created_at: new Date().toISOString(),
        payload,
        acted_by: principal.handle,
        drafted_with: '~chorus-console',
        provenance_compute_location: 'local-only',
        provenance_method: ['console'],
        provenance_context_check: 'skipped',
        provenance_basis: handle === principal.handle ? `session:console@${principal.session}` : 'console',
      },
    },
    { 'x-chorus-instrument': 'console', 'x-chorus-session': principal.session },
    isLeaving,
  );
}

/** Answers a decision, to all sessions of the handle that asked, so that each of them shows it as answered. */
export function sendAnswer(decision, text, isLeaving) {
  const payload = {
    query_id: decision.frame_id,
    response_text: text,
    responder_session_id: principal.session,
    responded_to_frame_id: decision.frame_id,
  };
  return sendFrame(decision.sender_handle, 'agent_response', payload, isLeaving);
}

/** Tells the own sessions, and those of the sender, that this page has taken a handover up. */
export function sendTaken(handover) {
  const payload = {
    previous_session_id: handover.previousSession,
    next_session_id: principal.session,
    handover_body: handover.body,
    pointer_refs: [...handover.refs, getHandoverRef(handover.id)],
  };
  const handles = new Set([principal.handle, handover.holder]);
  return Promise.all([...handles].map((handle) => sendFrame(handle, 'agent_handover', payload)));
}
