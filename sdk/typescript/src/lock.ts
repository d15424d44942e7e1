// Claims on resources, computed from the lock frames: the hub keeps no lock table (FRM-23…27).
import { raceTimeout } from "./clock.js";
import { LockedError } from "./errors.js";
import type { FrameSession, WatchedItem } from "./frame.js";
import { MAX_LEASE_MS } from "./limits.js";
import type { Frame } from "./wire.js";

export interface LockOptions {
  /** How long a claim lasts when this process dies; five minutes unless set, at most an hour. */
  readonly ttlMs?: number | undefined;
  readonly intent?: string | undefined;
  /** Wait until the resource is free. */
  readonly wait?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface LockClaim {
  readonly resource: string;
  readonly holder: string;
  /** `session:instrument@session`, if the frame names it. */
  readonly basis: string;
  readonly leaseId: string;
  readonly expiresAt: number;
  /** Of two claims on one resource the first one holds. */
  readonly order: number;
}

/** A claim that is held; released at the end of `await using`, or by `release()`. */
export interface HeldLock extends AsyncDisposable {
  readonly resource: string;
  readonly leaseId: string;
  release(): Promise<void>;
}

/** The longest time between two extensions. */
const EXTEND_INTERVAL_MS = 120_000;
/** How long to wait for the own claim on the stream, which shows whether another claim was first. */
const ECHO_TIMEOUT_MS = 5_000;

export class LockClaims {
  readonly #byLease = new Map<string, LockClaim>();
  #lastOrder = 0;

  /** Applies a frame of any kind, in the order of the stream. A frame of another handle changes no claim of this one. */
  apply(frame: Frame): void {
    if (frame.kind === "agent_lock_request") {
      const key = `${frame.sender_handle} ${frame.payload.lease_id}`;
      const made = Date.parse(frame.created_at);
      const earlier = this.#byLease.get(key);
      const isRepeat = earlier !== undefined && earlier.resource === frame.payload.resource && earlier.expiresAt > made;
      this.#lastOrder += 1;
      this.#byLease.set(key, {
        resource: frame.payload.resource,
        holder: frame.sender_handle,
        basis: frame.provenance_basis,
        leaseId: frame.payload.lease_id,
        expiresAt: made + frame.payload.ttl_ms,
        order: isRepeat ? earlier.order : this.#lastOrder,
      });
    } else if (frame.kind === "agent_lease_extend") {
      const key = `${frame.sender_handle} ${frame.payload.lease_id}`;
      const claim = this.#byLease.get(key);
      if (claim !== undefined) this.#byLease.set(key, { ...claim, expiresAt: claim.expiresAt + frame.payload.ttl_ms });
    } else if (frame.kind === "agent_lock_release") {
      this.#byLease.delete(`${frame.sender_handle} ${frame.payload.lease_id}`);
    }
  }

  /** Claims that have not expired, the first first. */
  active(now: number): LockClaim[] {
    for (const [key, claim] of this.#byLease) if (claim.expiresAt <= now) this.#byLease.delete(key);
    return [...this.#byLease.values()].sort((a, b) => a.order - b.order);
  }

  /** The claims that conflict with a resource. */
  on(resource: string, now: number): LockClaim[] {
    return this.active(now).filter((claim) => coversResource(claim.resource, resource) || coversResource(resource, claim.resource));
  }
}

/** Whether a claim covers a resource; a claim on a folder covers everything in it. */
export function coversResource(claimed: string, resource: string): boolean {
  const folder = claimed.replace(/\/$/, "");
  return resource === folder || (folder !== "" && resource.startsWith(`${folder}/`));
}

interface ClaimStream {
  readonly claims: LockClaims;
  readonly live: AsyncGenerator<WatchedItem, void, void>;
  next: Promise<IteratorResult<WatchedItem, void>>;
}

/** Waits until the resource is free, claims it, then checks whether another claim was first. */
export async function acquireLock(session: FrameSession, resource: string, options: LockOptions): Promise<HeldLock> {
  const reading = new AbortController();
  const signal = options.signal === undefined ? reading.signal : AbortSignal.any([options.signal, reading.signal]);
  const { frames, live } = await session.replay(signal);
  const stream: ClaimStream = { claims: new LockClaims(), live, next: live.next() };
  for (const frame of frames) stream.claims.apply(frame);
  try {
    for (;;) {
      await waitFree(session, resource, stream, options);
      const ttlMs = Math.min(options.ttlMs ?? 300_000, MAX_LEASE_MS);
      const leaseId = crypto.randomUUID();
      const intent = options.intent === undefined ? {} : { intent: options.intent };
      await session.send("agent_lock_request", { resource, lease_id: leaseId, ttl_ms: ttlMs, ...intent });
      const earlier = await findEarlier(session, resource, stream, leaseId);
      if (earlier === undefined) return holdLock(session, resource, leaseId, ttlMs);
      await session.send("agent_lock_release", { lease_id: leaseId, resource });
      if (options.wait !== true) throw lockedError(earlier);
    }
  } finally {
    reading.abort();
    stream.next.catch(() => undefined);
  }
}

/** Applies the next frame; false when none came in time. */
async function readFrame(session: FrameSession, stream: ClaimStream, ms: number): Promise<boolean> {
  const item = await raceTimeout(session.hub.clock, ms, stream.next);
  if (item === undefined) return false;
  stream.next = stream.live.next();
  if (item.done !== true && item.value.type === "frame") stream.claims.apply(item.value.frame);
  return item.done !== true;
}

function claimsOfOthers(session: FrameSession, resource: string, claims: LockClaims): LockClaim[] {
  const own = `session:${session.instrument}@${session.id}`;
  const isOwn = (claim: LockClaim) => claim.holder === session.handle && claim.basis === own;
  return claims.on(resource, session.hub.clock.now()).filter((claim) => !isOwn(claim));
}

async function waitFree(session: FrameSession, resource: string, stream: ClaimStream, options: LockOptions): Promise<void> {
  for (;;) {
    const [first] = claimsOfOthers(session, resource, stream.claims);
    if (first === undefined) return;
    if (options.wait !== true) throw lockedError(first);
    options.signal?.throwIfAborted();
    await readFrame(session, stream, first.expiresAt - session.hub.clock.now());
  }
}

/** The first claim of another session that is earlier than ours, after our own was heard. */
async function findEarlier(session: FrameSession, resource: string, stream: ClaimStream, leaseId: string): Promise<LockClaim | undefined> {
  const { clock } = session.hub;
  const until = clock.now() + ECHO_TIMEOUT_MS;
  const findOwn = () => stream.claims.active(clock.now()).find((claim) => claim.leaseId === leaseId);
  while (findOwn() === undefined && clock.now() < until) {
    if (!(await readFrame(session, stream, until - clock.now()))) break;
  }
  const own = findOwn();
  return claimsOfOthers(session, resource, stream.claims).find((claim) => own !== undefined && claim.order < own.order);
}

function holdLock(session: FrameSession, resource: string, leaseId: string, ttlMs: number): HeldLock {
  const held = new AbortController();
  const interval = Math.min(EXTEND_INTERVAL_MS, ttlMs / 2);
  const extend = async (): Promise<void> => {
    for (;;) {
      await session.hub.clock.sleep(interval, held.signal);
      if (held.signal.aborted) return;
      // A hub that is away does not take the lock: the lease lasts for another half.
      await session.send("agent_lease_extend", { lease_id: leaseId, ttl_ms: Math.round(interval) }).catch(() => undefined);
    }
  };
  void extend();
  const release = async (): Promise<void> => {
    if (held.signal.aborted) return;
    held.abort();
    await session.send("agent_lock_release", { lease_id: leaseId, resource });
  };
  return { resource, leaseId, release, [Symbol.asyncDispose]: release };
}

function lockedError(claim: LockClaim): LockedError {
  return new LockedError(`${claim.resource} is claimed by ${claim.holder} (${claim.basis})`, { code: "LOCKED", retryable: true });
}
