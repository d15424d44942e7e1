// Frames: short announcements between the sessions of a handle (docs/frame.md).
import { raceTimeout } from "./clock.js";
import { START, parseCursor } from "./cursor.js";
import { InputError } from "./errors.js";
import { encodeSegment, parseJson, type HubClient } from "./hub.js";
import { FRAME_HORIZON_MS, MAX_SEEN_FRAMES, REPLAY_QUIET_MS } from "./limits.js";
import { acquireLock, type HeldLock, type LockOptions } from "./lock.js";
import { EventStream } from "./stream.js";
import { dropUndefined } from "./channel.js";
import type { Frame, FrameKind, FramePayload, SessionRoster } from "./wire.js";

/** Where what a frame says was computed. `local-only`: nothing left the device. */
export type ComputeLocation = Frame["provenance_compute_location"];

const COMPUTE_LOCATIONS: readonly string[] = ["server-active", "server-aggregate", "local-only"] satisfies ComputeLocation[];

export interface SessionOptions {
  /** The handle, such as `~alice`; otherwise it follows from the address. */
  readonly handle?: string | undefined;
  /** On whose behalf frames are sent; the session's own handle unless set. */
  readonly actedBy?: string | undefined;
  readonly draftedWith?: string | undefined;
  /** The class of the tool; otherwise the instrument up to its first dash. */
  readonly tool?: string | undefined;
  /** Where the model of this session runs; `server-active` unless set (FRM-15, R-104). */
  readonly compute?: ComputeLocation | undefined;
}

export interface FrameOptions {
  /** Who receives it; otherwise all sessions of the own handle. */
  readonly scope?: string | undefined;
  /** After this time receivers drop it. */
  readonly ttlMs?: number | undefined;
  readonly basis?: string | undefined;
}

/** What a watched stream gives. After a `gap` frames are missing that the hub no longer keeps. */
export type WatchedItem =
  | { readonly type: "opened"; readonly newest: string | undefined }
  | { readonly type: "frame"; readonly frame: Frame; readonly cursor: string | undefined }
  | { readonly type: "gap" };

export interface WatchOptions {
  /** `axis:value` clauses separated by commas, such as `kind:agent_advisory,sender:~bob`. */
  readonly filter?: string | undefined;
  /** Continue after this cursor; `"0"` is everything that is kept. */
  readonly since?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly silenceMs?: number | undefined;
}

type Decision = FramePayload<"agent_binding_moment">;
type Outcome = { frameId: string; recipients: number };

export class FrameSession {
  readonly handle: string;
  readonly instrument: string;
  readonly id: string;
  readonly hub: HubClient;
  readonly #options: SessionOptions;

  constructor(hub: HubClient, agentId: string, instrument: string, id: string, options: SessionOptions) {
    for (const name of [instrument, id]) {
      if (!/^[A-Za-z0-9._-]{1,128}$/.test(name)) throw new InputError("instruments and sessions have letters, digits, '.', '_' and '-'");
    }
    if (options.compute !== undefined && !COMPUTE_LOCATIONS.includes(options.compute)) {
      throw new InputError(`compute is one of ${COMPUTE_LOCATIONS.join(", ")}`);
    }
    this.hub = hub;
    this.handle = options.handle ?? `~${agentId.split("@")[0] ?? ""}`;
    this.instrument = instrument;
    this.id = id;
    this.#options = options;
  }

  /** The scope of this session alone. */
  get scope(): string {
    return `${this.handle}/${this.instrument}@${this.id}`;
  }

  /** Says what this session is doing. */
  advise(text: string, options: FrameOptions & { files?: string[]; worktree?: string; branch?: string } = {}): Promise<Outcome> {
    const { files, worktree, branch } = options;
    return this.send("agent_advisory", compact({ advisory_text: text, file_refs: files, worktree, branch }), options);
  }

  /** Says what has happened. */
  broadcast(text: string, event: FramePayload<"agent_broadcast">["event_class"], options: FrameOptions & { refs?: string[] } = {}): Promise<Outcome> {
    return this.send("agent_broadcast", compact({ broadcast_text: text, event_class: event, refs: options.refs }), options);
  }

  /** Hands work over to another session. */
  handover(body: string, options: FrameOptions & { refs?: string[] } = {}): Promise<Outcome> {
    return this.send("agent_handover", compact({ previous_session_id: this.id, handover_body: body, pointer_refs: options.refs }), options);
  }

  /** Asks, and gives the answers that come within the window. */
  async *ask(text: string, options: FrameOptions & { windowMs?: number; signal?: AbortSignal } = {}): AsyncGenerator<Frame & { kind: "agent_response" }, void, void> {
    const { clock } = this.hub;
    const windowMs = options.windowMs ?? 5_000;
    const ended = new AbortController();
    const signal = options.signal === undefined ? ended.signal : AbortSignal.any([options.signal, ended.signal]);
    const query = { query_text: text, query_id: crypto.randomUUID(), response_scope: this.scope, timeout_ms: windowMs };
    const answers = this.watch({ filter: "kind:agent_response", signal });
    try {
      await answers.next();
      await this.send("agent_query", query, options);
      const until = clock.now() + windowMs;
      while (clock.now() < until) {
        const item = await raceTimeout(clock, until - clock.now(), answers.next());
        if (item === undefined || item.done === true) return;
        if (item.value.type !== "frame" || item.value.frame.kind !== "agent_response") continue;
        if (item.value.frame.payload.query_id === query.query_id) yield item.value.frame;
      }
    } finally {
      ended.abort();
    }
  }

  /** Answers a question. */
  answer(question: Frame & { kind: "agent_query" }, text: string): Promise<Outcome> {
    const payload = {
      query_id: question.payload.query_id,
      response_text: text,
      responder_session_id: this.id,
      responded_to_frame_id: question.frame_id,
    };
    return this.send("agent_response", payload, { scope: question.payload.response_scope });
  }

  /** Asks a person for a decision and waits for the answer; undefined if none comes in time. */
  async decide(decision: Decision, options: FrameOptions & { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<string | undefined> {
    const ended = new AbortController();
    const signal = options.signal === undefined ? ended.signal : AbortSignal.any([options.signal, ended.signal]);
    const answers = this.watch({ filter: "kind:agent_response", signal });
    try {
      await answers.next();
      const { frameId } = await this.send("agent_binding_moment", decision, options);
      const findAnswer = async (): Promise<string | undefined> => {
        for await (const item of answers) {
          if (item.type !== "frame" || item.frame.kind !== "agent_response") continue;
          if (item.frame.payload.responded_to_frame_id === frameId) return item.frame.payload.response_text;
        }
        return undefined;
      };
      return await raceTimeout(this.hub.clock, options.timeoutMs ?? 30 * 60_000, findAnswer());
    } finally {
      ended.abort();
    }
  }

  /** Sends a frame of any kind. Its attempts have one id, so it is emitted once. */
  async send<K extends FrameKind>(kind: K, payload: FramePayload<K>, options: FrameOptions = {}): Promise<Outcome> {
    const scope = options.scope ?? this.handle;
    const frame = this.#draft(kind, payload, scope, options);
    const header = dropUndefined({
      "X-Chorus-Instrument": this.instrument,
      "X-Chorus-Session": this.id,
      "X-Chorus-Tool": this.#options.tool,
    });
    const reply = await this.hub.call("submit_frame", { header: header as never, body: { scope, frame } as never }, { retry: true });
    return { frameId: reply.frame_id, recipients: reply.recipient_count };
  }

  /** The frames for this session: no repeats, no stale ones, resumed after every break (FRM-68, FRM-105, FRM-106). */
  async *watch(options: WatchOptions = {}): AsyncGenerator<WatchedItem, void, void> {
    const query = new URLSearchParams({ instrument: this.instrument, session: this.id });
    if (this.#options.tool !== undefined) query.set("tool", this.#options.tool);
    if (options.filter !== undefined) query.set("filter", options.filter);
    const path = `/handles/${encodeSegment(this.handle)}/stream?${query}`;
    const stream = new EventStream(this.hub, path, options);
    const seen = new Set<string>();
    // Everything that is kept is replayed, so the first gap is expected.
    let isGapExpected = options.since === START;
    for await (const event of stream) {
      if (event.name === "connected") {
        yield { type: "opened", newest: event.cursor };
      } else if (event.name === "open-items") {
        // What is open is read with GET /handles/{handle}/open.
      } else if (event.name === "resume-gap") {
        if (!isGapExpected) yield { type: "gap" };
        isGapExpected = false;
      } else {
        isGapExpected = false;
        const frame = parseJson(event.data) as Frame;
        if (seen.has(frame.frame_id) || isStale(frame, this.hub.clock.now())) continue;
        seen.add(frame.frame_id);
        const [oldest] = seen;
        if (seen.size > MAX_SEEN_FRAMES && oldest !== undefined) seen.delete(oldest);
        yield { type: "frame", frame, cursor: event.cursor };
      }
    }
  }

  /** The frames that the hub still keeps for this session, and the stream that continues after them. */
  async replay(signal?: AbortSignal): Promise<{ frames: Frame[]; live: AsyncGenerator<WatchedItem, void, void> }> {
    // A live stream names the newest cursor; a stream from the start has caught up when it reaches that.
    const probe = this.watch({ signal });
    const opened = (await probe.next()).value;
    await probe.return();
    const newest = opened?.type === "opened" && opened.newest !== undefined ? parseCursor(opened.newest) : undefined;
    const live = this.watch({ since: START, signal });
    const frames: Frame[] = [];
    if (newest === undefined || newest.seq === 0n) {
      await live.next();
      return { frames, live };
    }
    const pending = { next: live.next() };
    for (;;) {
      const item = await raceTimeout(this.hub.clock, REPLAY_QUIET_MS, pending.next);
      // The newest frame may be for another session; then the replay ends after a silence.
      if (item === undefined || item.done === true) return { frames, live: continueFrom(pending.next, live) };
      if (item.value.type === "frame") {
        frames.push(item.value.frame);
        const cursor = item.value.cursor === undefined ? undefined : parseCursor(item.value.cursor);
        if (cursor?.epoch === newest.epoch && cursor.seq >= newest.seq) return { frames, live };
      }
      pending.next = live.next();
    }
  }

  /** The live sessions of a handle; of this one without a name. */
  roster(handle = this.handle): Promise<SessionRoster> {
    return this.hub.call("get_roster", { path: { handle } });
  }

  /**
   * Claims a resource until it is released: `await using lock = await session.lock("src/auth.rs")`. It is extended
   * while it is held. Throws `LockedError` if another session claims it, or waits with `wait`.
   */
  lock(resource: string, options: LockOptions = {}): Promise<HeldLock> {
    return acquireLock(this, resource, options);
  }

  #draft<K extends FrameKind>(kind: K, payload: FramePayload<K>, scope: string, options: FrameOptions): object {
    const recipient = /~[a-z0-9-]+/.exec(scope)?.[0] ?? this.handle;
    // Other handles must not learn the session (FRM-111).
    const ownBasis = `session:${this.instrument}@${this.id}`;
    return dropUndefined({
      envelope_version: "1.0",
      frame_id: crypto.randomUUID(),
      kind,
      sender_handle: this.handle,
      recipient_handle: recipient,
      created_at: new Date(this.hub.clock.now()).toISOString(),
      ttl_ms: options.ttlMs,
      payload,
      acted_by: this.#options.actedBy ?? this.handle,
      drafted_with: this.#options.draftedWith ?? drafterHandle(this.instrument),
      provenance_compute_location: this.#options.compute ?? "server-active",
      provenance_method: ["chorus-sdk"],
      provenance_context_check: "skipped",
      provenance_basis: options.basis ?? (recipient === this.handle ? ownBasis : "command"),
    });
  }
}

/** `~cc-editor` for the instruments `editor` and `cc-editor`. */
function drafterHandle(instrument: string): string {
  return `~cc-${instrument.toLowerCase().replace(/^cc-/, "")}`.slice(0, 65);
}

/** Kinds whose payload says how long they are valid. */
const SELF_DATED_KINDS: readonly FrameKind[] = ["agent_lock_request", "agent_lease_extend", "agent_binding_moment", "agent_handover"];

/** Whether a receiver drops the frame (FRM-11, FRM-105, R-104). */
function isStale(frame: Frame, now: number): boolean {
  const horizon = frame.ttl_ms ?? (SELF_DATED_KINDS.includes(frame.kind) ? Infinity : FRAME_HORIZON_MS);
  return Date.parse(frame.created_at) + horizon < now;
}

function compact<T extends object>(payload: { [K in keyof T]: T[K] | undefined }): T {
  return dropUndefined(payload) as T;
}

/** The stream after an item that is still awaited. */
async function* continueFrom(
  first: Promise<IteratorResult<WatchedItem, void>>,
  rest: AsyncGenerator<WatchedItem, void, void>,
): AsyncGenerator<WatchedItem, void, void> {
  const item = await first;
  if (item.done === true) return;
  yield item.value;
  yield* rest;
}

