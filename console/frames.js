// What frames add up to: claims with their time left, decisions that nobody has made. The hub keeps no such tables.

import { me, post, uuid } from './api.js';

const SEEN_MOST = 20_000;
const ASKED_MOST = 500;

/** Puts something into a map that keeps only the latest. */
function put(map, key, value, most) {
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
}

export const KINDS = [
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

/** A new, empty memory of frames. */
export function memory() {
  return { frames: [], seen: new Set(), claims: new Map(), moments: new Map(), answers: new Map(), turns: 0 };
}

/** Takes a frame in; false when it was known or is stale. */
export function hear(known, frame, now = Date.now()) {
  if (!frame?.frame_id || known.seen.has(frame.frame_id)) return false;
  known.seen.add(frame.frame_id);
  const made = Date.parse(frame.created_at);
  if (frame.ttl_ms && made + frame.ttl_ms < now) return false;
  known.frames.push(frame);
  if (known.frames.length > SEEN_MOST) {
    for (const old of known.frames.splice(0, SEEN_MOST / 2)) known.seen.delete(old.frame_id);
  }
  const p = frame.payload ?? {};
  const lease = `${frame.sender_handle} ${p.lease_id}`;
  if (frame.kind === 'agent_lock_request') {
    const before = known.claims.get(lease);
    const turn = before && before.resource === p.resource && before.until > made ? before.turn : ++known.turns;
    known.claims.set(lease, {
      resource: p.resource,
      holder: frame.sender_handle,
      from: sessionOf(frame),
      intent: p.intent,
      until: made + p.ttl_ms,
      span: p.ttl_ms,
      turn,
    });
  } else if (frame.kind === 'agent_lease_extend') {
    const claim = known.claims.get(lease);
    if (claim) {
      claim.until += p.ttl_ms;
      claim.span = claim.until - now;
    }
  } else if (frame.kind === 'agent_lock_release') {
    known.claims.delete(lease);
  } else if (frame.kind === 'agent_binding_moment') {
    put(known.moments, frame.frame_id, frame, ASKED_MOST);
  } else if (frame.kind === 'agent_response') {
    for (const id of [p.responded_to_frame_id, p.query_id]) {
      if (id && !known.answers.has(id)) put(known.answers, id, frame, ASKED_MOST * 4);
    }
  }
  return true;
}

/** Claims that have not run out, by resource, the first one first. */
export function claimsAt(known, now = Date.now()) {
  for (const [lease, claim] of known.claims) if (claim.until <= now) known.claims.delete(lease);
  return [...known.claims.values()].sort((a, b) =>
    a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : a.turn - b.turn,
  );
}

export const openMoments = (known) => [...known.moments.values()].filter((frame) => !known.answers.has(frame.frame_id));

/** `instrument@session`, where the frame says it. */
export function sessionOf(frame) {
  const basis = frame.provenance_basis ?? '';
  return basis.startsWith('session:') ? basis.slice(8) : undefined;
}

/** The one line that tells most of a frame. */
export function gist(frame) {
  const p = frame.payload ?? {};
  switch (frame.kind) {
    case 'agent_advisory':
      return p.advisory_text;
    case 'agent_broadcast':
      return p.broadcast_text;
    case 'agent_handover':
      return p.next_session_id ? `${p.previous_session_id} → ${p.next_session_id}` : p.handover_body;
    case 'agent_lock_request':
      return p.intent ? `${p.resource} · ${p.intent}` : p.resource;
    case 'agent_lock_release':
      return p.resource || p.lease_id;
    case 'agent_lease_extend':
      return `+${Math.round(p.ttl_ms / 1000)} s`;
    case 'agent_query':
      return p.query_text;
    case 'agent_response':
      return p.response_text;
    case 'agent_return_event':
      return p.summary;
    case 'agent_binding_moment':
      return p.question?.stem ?? p.synopsis;
    case 'peer_diagnostic_request':
      return p.symptom;
    case 'peer_diagnostic_response':
      return p.finding;
    case 'intent_declare':
      return `${p.convergence_class} · ${p.payload_ref}`;
    case 'intent_withdraw':
      return p.convergence_class;
    case 'flush_executed':
      return `${p.convergence_class} · ${p.result_ref}`;
    default:
      return '';
  }
}

/** Sends the answer to a decision to all sessions of whoever asked, so that nobody else is asked again. */
export function answer(moment, text) {
  const own = moment.sender_handle === me.handle;
  return post(
    '/frames',
    {
      scope: moment.sender_handle,
      frame: {
        envelope_version: '1.0',
        frame_id: uuid(),
        kind: 'agent_response',
        sender_handle: me.handle,
        recipient_handle: moment.sender_handle,
        created_at: new Date().toISOString(),
        payload: {
          query_id: moment.frame_id,
          response_text: text,
          responder_session_id: me.session,
          responded_to_frame_id: moment.frame_id,
        },
        acted_by: me.handle,
        drafted_with: '~chorus-console',
        provenance_compute_location: 'local-only',
        provenance_method: ['console'],
        provenance_context_check: 'skipped',
        provenance_basis: own ? `session:console@${me.session}` : 'console',
      },
    },
    { 'x-chorus-instrument': 'console', 'x-chorus-session': me.session },
  );
}
