// An agent: it sends, listens, answers, meets others in channels and sessions, and does jobs.
import { ChannelList, type ChannelDelivery, type ChannelInvite } from "./channel.js";
import type { CallbackSettings } from "./callback.js";
import { raceTimeout } from "./clock.js";
import { LIVE } from "./cursor.js";
import { InputError, WaitTimeoutError } from "./errors.js";
import { MessageFacts } from "./facts.js";
import { FrameSession, type SessionOptions } from "./frame.js";
import { HubClient, newIdempotencyKey, onceOptions, type HubOptions } from "./hub.js";
import { INBOX_PATH, parseInboxEvent, type InboxEvent } from "./inbox.js";
import { PAGE_SIZE } from "./limits.js";
import { Market } from "./market.js";
import { Message, SendResult, type Receipt, type SendOptions } from "./message.js";
import { InboxRunner, type HandlerContext, type Handlers, type MessageHandler, type RunOptions } from "./runner.js";
import { MemoryStore, type Store } from "./store.js";
import { EventStream, type StreamOptions } from "./stream.js";
import { WakeLoop, type WakeOptions, type WakeRun } from "./wake.js";
import type { AgentRecord, Envelope, HistoryRow, MessageStatus, ReceiverReply } from "./wire.js";
import { SkillWorker, type SkillHandler, type SkillOptions } from "./worker.js";

export interface AgentOptions extends HubOptions {
  /** The address, such as `alice@chorus`. */
  readonly agentId: string;
  readonly key: string;
  /** The culture of the person that the agent speaks for, such as `en`; otherwise the registered one. */
  readonly culture?: string | undefined;
  /** Where progress is kept; otherwise in memory. */
  readonly store?: Store | undefined;
}

export type InboxOptions = Pick<StreamOptions, "since" | "signal" | "silenceMs"> & Pick<RunOptions, "onOpen">;

/** How long a `send` waits unless told otherwise. */
const WAIT_TIMEOUT_MS = 60_000;

interface PendingAsk {
  readonly sender: string;
  resolve(message: Message): void;
}

export class Agent {
  readonly id: string;
  readonly hub: HubClient;
  readonly channels: ChannelList;
  readonly market: Market;
  readonly callbackSettings: CallbackSettings;
  readonly #store: Store;
  readonly #handlers: Handlers = { workers: [] };
  readonly #closed = new AbortController();
  readonly #receipts = new MessageFacts((status) => status.receiver_response as ReceiverReply | undefined);
  readonly #shown = new MessageFacts((status) => status.shown_at);
  readonly #asks = new Map<string, PendingAsk>();
  #running: Promise<void> | undefined;
  /** Resolves when the inbox of `run()` is open for the first time. */
  #opened: Promise<void> = Promise.resolve();
  #culture: string | undefined;

  constructor(options: AgentOptions) {
    this.id = options.agentId;
    this.hub = new HubClient(options);
    this.callbackSettings = { backoff: options.backoff, clock: options.clock, fetch: options.fetch };
    this.channels = new ChannelList(this.hub);
    this.market = new Market(this.hub, this.id);
    this.#store = options.store ?? new MemoryStore();
    this.#culture = options.culture;
  }

  /** Sends a message. One call is one message, however often it had to be tried. */
  async send(receiver: string, text: string, options: SendOptions = {}): Promise<SendResult> {
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    if (options.wait === "answer") return this.#sendForAnswer(receiver, text, { ...options, idempotencyKey });
    const envelope: Envelope = {
      chorus_version: "0.4",
      sender_id: this.id,
      original_text: text,
      sender_culture: options.culture ?? (await this.#findCulture()),
      ...(options.culturalContext === undefined ? {} : { cultural_context: options.culturalContext }),
      ...(options.conversationId === undefined ? {} : { conversation_id: options.conversationId }),
      ...(options.turnNumber === undefined ? {} : { turn_number: options.turnNumber }),
    };
    const input = { body: { receiver_id: receiver, envelope } };
    const { signal } = options;
    const sent = await this.hub.callForData("send_message", input, { retry: true, idempotencyKey, signal });
    const facts = { traceId: sent.trace_id, delivery: sent.delivery, errorCode: sent.error_code, detail: sent.detail };
    let response = sent.receiver_response as ReceiverReply | undefined;
    let shownAt: string | undefined;
    const wait = { timeoutMs: options.timeoutMs ?? WAIT_TIMEOUT_MS, signal };
    if (options.wait === "receipt" && response === undefined && sent.delivery !== "failed") {
      response = await this.#receipts.wait(this.hub, sent.trace_id, wait);
      if (response === undefined) throw new WaitTimeoutError("the receiver did not acknowledge the message in time");
    }
    if (options.wait === "shown" && sent.delivery !== "failed") {
      shownAt = await this.#shown.wait(this.hub, sent.trace_id, wait);
      if (shownAt === undefined) throw new WaitTimeoutError("the message was not shown in time");
    }
    return new SendResult({ ...facts, response, shownAt });
  }

  /** Sends a message and returns the message that the receiver sends back in the same conversation. */
  async ask(receiver: string, text: string, options: Omit<SendOptions, "wait"> = {}): Promise<Message> {
    const { answer } = (await this.send(receiver, text, { ...options, wait: "answer" })).ok();
    if (answer === undefined) throw new WaitTimeoutError(`${receiver} did not reply in time`);
    return answer;
  }

  /** The state of a message that this agent sent or received. */
  status(traceId: string): Promise<MessageStatus> {
    return this.hub.callForData("get_message_status", { path: { trace_id: traceId } });
  }

  /** A page of what was sent and received, oldest first; `since` is a cursor or a time. */
  history(options: { since?: string; limit?: number } = {}): Promise<HistoryRow[]> {
    return this.hub.callForData("list_messages", { query: { limit: PAGE_SIZE, ...options } });
  }

  /** The record of an agent; of this one without a name. */
  record(name = this.id): Promise<AgentRecord> {
    return this.hub.callForData("get_agent", { path: { id: name } });
  }

  /**
   * The inbox without an end: what came after `since`, then what comes. Nothing is answered and nothing is saved by
   * itself. It resumes after every kind of break; leaving the loop, or the signal, ends it.
   */
  async *inbox(options: InboxOptions = {}): AsyncGenerator<InboxEvent, void, void> {
    const { since = LIVE, onOpen, ...rest } = options;
    for await (const event of new EventStream(this.hub, INBOX_PATH, { ...rest, since })) {
      if (event.name === "connected") {
        onOpen?.();
        continue;
      }
      const parsed = parseInboxEvent(this, event, this.callbackSettings);
      if (parsed === undefined) continue;
      this.#notice(parsed);
      yield parsed;
    }
  }

  /** Handles messages in `run()`: returning is `ok`, an exception is an error to the sender; the answer follows it. */
  onMessage(handler: MessageHandler): this {
    this.#handlers.message = handler;
    return this;
  }

  /** Handles deliveries of channels in `run()`. Answer with `delivery.callback`. */
  onChannel(handler: (delivery: ChannelDelivery, context: HandlerContext) => unknown): this {
    this.#handlers.channel = handler;
    return this;
  }

  /** Handles invitations to channels in `run()`. */
  onInvite(handler: (invite: ChannelInvite, context: HandlerContext) => unknown): this {
    this.#handlers.invite = handler;
    return this;
  }

  /** Handles receipts of messages that this agent sent. */
  onReceipt(handler: (receipt: Receipt, context: HandlerContext) => unknown): this {
    this.#handlers.receipt = handler;
    return this;
  }

  /** Offers a skill while `run()` runs, and does its jobs with the handler. */
  skill<In = unknown, Out = unknown>(name: string, options: SkillOptions, handler: SkillHandler<In, Out>): this {
    this.#handlers.workers.push(new SkillWorker(this.market, name, options, handler as SkillHandler<unknown, unknown>));
    return this;
  }

  /** Runs a model for messages in `run()`: in batches, one run at a time, within a budget. What it returns is sent back. */
  wake(run: WakeRun, options: WakeOptions = {}): this {
    this.#handlers.wake = new WakeLoop(this.hub, this.#store, run, options);
    return this;
  }

  /** A session of this agent's handle, for frames. */
  session(instrument: string, id: string, options: SessionOptions = {}): FrameSession {
    return new FrameSession(this.hub, this.id, instrument, id, options);
  }

  /** Listens and handles until the signal aborts, `close()` is called or the key ends. */
  async run(options: RunOptions = {}): Promise<void> {
    if (this.#running !== undefined) throw new InputError("the agent runs already");
    const signal = options.signal === undefined ? this.#closed.signal : AbortSignal.any([options.signal, this.#closed.signal]);
    const notice = (event: InboxEvent) => this.#notice(event);
    let setOpened = (): void => undefined;
    this.#opened = new Promise((resolve) => (setOpened = resolve));
    const onOpen = (): void => {
      setOpened();
      options.onOpen?.();
    };
    const parts = { agent: this, store: this.#store, handlers: this.#handlers, notice };
    this.#running = new InboxRunner(parts, { ...options, signal, onOpen }).run();
    try {
      await this.#running;
    } finally {
      this.#running = undefined;
    }
  }

  /** Ends `run()`; running handlers get ten seconds. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#running?.catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A single-use token, with which a web page reads this inbox (`followInbox`). */
  async createSessionToken(): Promise<string> {
    return (await this.hub.callForData("create_session", {}, onceOptions())).session_token;
  }

  /** Replaces the key. The old one works for `overlapSeconds` more. */
  async rotateKey(options: { overlapSeconds?: number } = {}): Promise<string> {
    const body = options.overlapSeconds === undefined ? {} : { overlap_s: options.overlapSeconds };
    // The same request with the old key repeats the rotation until the new key is used.
    const rotated = await this.hub.callForData("rotate_key", { body }, onceOptions());
    this.hub.replaceKey(rotated.api_key);
    return rotated.api_key;
  }

  /** Leaves the hub. The name becomes free. */
  async unregister(): Promise<void> {
    await this.hub.callForData("unregister_agent", { path: { id: this.id } });
  }

  async #findCulture(): Promise<string> {
    if (this.#culture === undefined) {
      const card = (await this.record()).agent_card as { user_culture?: unknown } | undefined;
      this.#culture = typeof card?.user_culture === "string" ? card.user_culture : "en";
    }
    return this.#culture;
  }

  /** Tells the calls that wait for this event; true if the event was the answer to `ask`. */
  #notice(event: InboxEvent): boolean {
    if (event.type === "receipt") {
      this.#receipts.tell(event.traceId, event.response);
    } else if (event.type === "shown") {
      this.#shown.tell(event.traceId, event.timestamp);
    } else if (event.type === "message" && event.conversationId !== undefined) {
      const pending = this.#asks.get(event.conversationId);
      if (pending?.sender === event.sender) {
        pending.resolve(event);
        return true;
      }
    }
    return false;
  }

  /** The inbox is open before the message leaves, so the answer cannot come before it. */
  async #sendForAnswer(receiver: string, text: string, options: SendOptions & { idempotencyKey: string }): Promise<SendResult> {
    // From the key, so that a repeated call with the same key is the same request.
    const { conversationId = options.idempotencyKey.slice(0, 64), turnNumber = 1, timeoutMs = WAIT_TIMEOUT_MS } = options;
    const record = await this.record(receiver);
    const listening = new AbortController();
    const opened = this.#running === undefined ? this.#listenFor(conversationId, listening.signal) : this.#opened;
    const answered = new Promise<Message>((resolve) => this.#asks.set(conversationId, { sender: record.agent_id, resolve }));
    try {
      await opened;
      const result = await this.send(receiver, text, { ...options, conversationId, turnNumber, wait: undefined });
      if (result.delivery === "failed" || result.response?.status === "error") return result;
      const answer = await raceTimeout(this.hub.clock, timeoutMs, answered);
      if (answer === undefined) throw new WaitTimeoutError(`${receiver} did not reply in time`);
      return new SendResult({ ...result, answer });
    } finally {
      this.#asks.delete(conversationId);
      listening.abort();
    }
  }

  /** Reads the inbox for one reply while `run()` does not; resolves when nothing can be missed any more. */
  #listenFor(conversation: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const listen = async (): Promise<void> => {
        for await (const event of this.inbox({ signal, onOpen: resolve })) {
          if (event.type !== "message" || event.conversationId !== conversation) continue;
          // A later `run()` that starts before this message does not handle it again.
          if (event.turnKey !== undefined) await this.#store.saveTurn(event.turnKey, { status: "ok" });
          return event.ack();
        }
      };
      listen().catch(reject);
    });
  }
}
