// Runs an agent: reads its inbox, calls the handlers, answers, and saves how far it came.
import type { Agent } from "./agent.js";
import type { ChannelDelivery, ChannelInvite } from "./channel.js";
import { raceTimeout } from "./clock.js";
import { delayAfter } from "./backoff.js";
import { LIVE } from "./cursor.js";
import { ChorusError, replyForException } from "./errors.js";
import { INBOX_PATH, parseInboxEvent, type InboxEvent } from "./inbox.js";
import { CLOSE_TIMEOUT_MS } from "./limits.js";
import type { Message, Receipt } from "./message.js";
import { Progress } from "./progress.js";
import type { Store } from "./store.js";
import { EventStream } from "./stream.js";
import type { WakeLoop } from "./wake.js";
import type { ReceiverReply } from "./wire.js";
import type { SkillWorker } from "./worker.js";

export interface HandlerContext {
  /** Aborts when the agent is closed and the time for its handlers is over. */
  readonly signal: AbortSignal;
}
export type MessageHandler = (message: Message, context: HandlerContext) => unknown;

/** What an agent does with its events. */
export interface Handlers {
  message?: MessageHandler | undefined;
  channel?: ((delivery: ChannelDelivery, context: HandlerContext) => unknown) | undefined;
  invite?: ((invite: ChannelInvite, context: HandlerContext) => unknown) | undefined;
  receipt?: ((receipt: Receipt, context: HandlerContext) => unknown) | undefined;
  wake?: WakeLoop | undefined;
  readonly workers: SkillWorker[];
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called whenever the inbox is open: from then on nothing is missed. */
  readonly onOpen?: (() => void) | undefined;
  readonly silenceMs?: number | undefined;
}

interface RunnerParts {
  readonly agent: Agent;
  readonly store: Store;
  readonly handlers: Handlers;
  /** Tells waiting calls of an event before it is handled. */
  readonly notice: (event: InboxEvent) => boolean;
}

export class InboxRunner {
  readonly #parts: RunnerParts;
  readonly #options: RunOptions;
  readonly #ending = new AbortController();
  /** Events are handled one after the other, in order. */
  #handled: Promise<void> = Promise.resolve();

  constructor(parts: RunnerParts, options: RunOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { store, handlers, agent } = this.#parts;
    const { message, channel, invite, receipt, wake } = handlers;
    // An agent that only works on jobs leaves its mail, and the cursor of it, to a listener.
    const isListener = [message, channel, invite, receipt, wake].some((handler) => handler !== undefined);
    const release = isListener ? await store.lock() : undefined;
    try {
      for (const worker of handlers.workers) await worker.publish();
      const since = isListener ? await store.loadCursor() : undefined;
      const progress = new Progress(async (cursor) => (isListener ? store.saveCursor(cursor) : undefined));
      await agent.hub.checkVersion(this.#options.signal);
      await this.#readStream(since ?? LIVE, progress);
    } finally {
      await this.#finishHandlers();
      await release?.();
    }
  }

  async #readStream(since: string, progress: Progress): Promise<void> {
    const { agent, handlers, notice } = this.#parts;
    const { signal, silenceMs, onOpen } = this.#options;
    // Senders see that a message starts a run.
    const path = handlers.wake === undefined ? INBOX_PATH : `${INBOX_PATH}?reach=wakes`;
    for await (const event of new EventStream(agent.hub, path, { since, signal, silenceMs })) {
      if (event.name === "connected") {
        for (const worker of handlers.workers) worker.onConnected();
        onOpen?.();
        continue;
      }
      const parsed = parseInboxEvent(agent, event, agent.callbackSettings);
      const finish = progress.begin(event.cursor);
      const isTaken = parsed !== undefined && notice(parsed);
      if (parsed?.type === "message" && handlers.wake !== undefined && !isTaken) {
        handlers.wake.add(parsed, finish);
      } else {
        this.#enqueue(async () => {
          if (parsed !== undefined && !(await this.#handle(parsed, isTaken))) return;
          await finish();
        });
      }
      await progress.waitRoom();
    }
  }

  #enqueue(work: () => Promise<void>): void {
    this.#handled = this.#handled.then(work).catch((error: unknown) => {
      this.#parts.agent.hub.warn(`chorus-sdk: an event could not be finished: ${error instanceof ChorusError ? error.message : "it failed"}`);
    });
  }

  /** Whether the event is finished; otherwise it comes again after a restart. */
  async #handle(event: InboxEvent, isTaken: boolean): Promise<boolean> {
    const { handlers } = this.#parts;
    const context = { signal: this.#ending.signal };
    switch (event.type) {
      case "message":
        return this.#handleMessage(event, isTaken, context);
      case "channel":
        await this.#tryHandler("a channel delivery", () => handlers.channel?.(event, context));
        return true;
      case "channel_invite":
        await this.#tryHandler("an invitation", () => handlers.invite?.(event, context));
        return true;
      case "receipt":
        await this.#tryHandler("a receipt", () => handlers.receipt?.(event, context));
        return true;
      case "job":
        for (const worker of handlers.workers) worker.offer(event.job);
        return true;
      case "gap":
        this.#parts.agent.hub.warn(`chorus-sdk: the hub deleted events after ${event.from}, up to ${event.to}, before they were read`);
        return true;
      case "shown":
      case "job_update":
        return true;
      case "job_result":
        for (const worker of handlers.workers) worker.onEnded(event.job);
        return true;
    }
  }

  async #handleMessage(message: Message, isTaken: boolean, context: HandlerContext): Promise<boolean> {
    const { handlers, store } = this.#parts;
    const handler = handlers.message;
    if (isTaken) return this.respond(message, { status: "ok" });
    if (handler === undefined) return true;
    const key = message.turnKey;
    const known = key === undefined ? undefined : await store.findTurn(key);
    if (known !== undefined) return this.respond(message, known);
    let reply: ReceiverReply;
    try {
      await handler(message, context);
      reply = message.response ?? { status: "ok" };
    } catch (error) {
      this.#warnOf("a message", error);
      reply = message.response ?? replyForException(error);
    }
    if (key !== undefined) await store.saveTurn(key, reply);
    return message.response !== undefined || (await this.respond(message, reply));
  }

  /** Answers, however long the hub is away; false if the agent was closed before. */
  async respond(message: Message, reply: ReceiverReply): Promise<boolean> {
    const { hub } = this.#parts.agent;
    const { signal } = this.#ending;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await message.respond(reply, signal);
        return true;
      } catch (error) {
        if (!(error instanceof ChorusError)) return false;
        if (!error.retryable) {
          hub.warn(`chorus-sdk: a message could not be answered: ${error.message}`);
          return true;
        }
        await hub.clock.sleep(delayAfter(hub.backoff, failures), signal);
      }
    }
    return false;
  }

  async #tryHandler(what: string, handler: () => unknown): Promise<void> {
    try {
      await handler();
    } catch (error) {
      this.#warnOf(what, error);
    }
  }

  #warnOf(what: string, error: unknown): void {
    this.#parts.agent.hub.warn(`chorus-sdk: the handler of ${what} failed: ${error instanceof Error ? error.message : String(error)}`);
  }

  /** Running handlers get their time; then their signal aborts. */
  async #finishHandlers(): Promise<void> {
    const { agent, handlers } = this.#parts;
    const wake = handlers.wake?.stop() ?? Promise.resolve();
    const workers = handlers.workers.map((worker) => worker.stop());
    const work = Promise.all([this.#handled, wake, ...workers]);
    await raceTimeout(agent.hub.clock, CLOSE_TIMEOUT_MS, work);
    this.#ending.abort();
    for (const worker of handlers.workers) await worker.withdraw();
  }
}
