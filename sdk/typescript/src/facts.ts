// Facts about sent messages: what the inbox told of them, and the calls that wait for them.
import { raceTimeout } from "./clock.js";
import type { HubClient } from "./hub.js";
import { MAX_RECENT_FACTS } from "./limits.js";
import type { MessageStatus } from "./wire.js";

/** How often the hub is asked for a fact: at first, and at most. A stream that is open hears of it at once. */
const FIRST_POLL_MS = 250;
const LAST_POLL_MS = 5_000;

export interface FactWait {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** One kind of fact, such as the receipts. */
export class MessageFacts<T> {
  readonly #read: (status: MessageStatus) => T | undefined;
  readonly #waiters = new Map<string, (fact: T) => void>();
  readonly #recent = new Map<string, T>();

  /** `read` finds the fact in the state of a message. */
  constructor(read: (status: MessageStatus) => T | undefined) {
    this.#read = read;
  }

  /** Notes what an event of the inbox said. */
  tell(traceId: string, fact: T): void {
    this.#recent.set(traceId, fact);
    const [oldest] = this.#recent.keys();
    if (this.#recent.size > MAX_RECENT_FACTS && oldest !== undefined) this.#recent.delete(oldest);
    this.#waiters.get(traceId)?.(fact);
  }

  /** The fact: from the stream if one is open, and by asking; undefined when the time is over. */
  async wait(hub: HubClient, traceId: string, { timeoutMs, signal }: FactWait): Promise<T | undefined> {
    const { clock } = hub;
    const heard = new Promise<T>((resolve) => this.#waiters.set(traceId, resolve));
    const deadline = clock.now() + timeoutMs;
    try {
      for (let pause = FIRST_POLL_MS; clock.now() < deadline; pause = Math.min(pause * 2, LAST_POLL_MS)) {
        const wait = Math.min(pause, deadline - clock.now());
        const told = this.#recent.get(traceId) ?? (await raceTimeout(clock, wait, heard));
        if (told !== undefined) return told;
        signal?.throwIfAborted();
        const asked = this.#read(await hub.callForData("get_message_status", { path: { trace_id: traceId } }, { signal }));
        if (asked !== undefined) return asked;
      }
    } finally {
      this.#waiters.delete(traceId);
    }
    return undefined;
  }
}
