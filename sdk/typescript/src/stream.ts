// An event stream that reconnects: it resumes from its cursor, waits while the hub is away, and drops repeats.
import { addJitter, delayAfter } from "./backoff.js";
import { raceTimeout } from "./clock.js";
import { isRepeated } from "./cursor.js";
import { AnswerError, AuthenticationError, ChorusError, TransportError } from "./errors.js";
import { errorOfAnswer, type HubClient } from "./hub.js";
import { CALL_TIMEOUT_MS, MAX_STREAM_RETRY_MS, SILENCE_TIMEOUT_MS } from "./limits.js";
import { SseParser, type SseEvent } from "./sse.js";

/** One event; events come in order and once. */
export interface StreamEvent {
  readonly name: string;
  /** Undefined for events that are not part of the log. */
  readonly cursor: string | undefined;
  readonly data: string;
}

export interface StreamOptions {
  /** Continue after this cursor. */
  readonly since?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long the connection may be silent before it is replaced. */
  readonly silenceMs?: number | undefined;
  /** A further query parameter for every connection, such as a session token that is used once. */
  readonly token?: (() => Promise<{ name: string; value: string }>) | undefined;
}

/** After these reasons another connection would be refused. */
const FINAL_REASONS = ["key_rotated", "unregistered"];
/** These name the cursor from which the stream continues, so they repeat no event. */
const CONTROL_EVENTS = ["connected", "resume-gap"];
const WAITED_OUT = [408, 429, 500, 502, 503, 504];

/** Never ends by itself. `next` throws when the key is no longer valid or the server is no hub. */
export class EventStream {
  readonly #hub: HubClient;
  readonly #path: string;
  readonly #options: StreamOptions;
  readonly #silenceMs: number;
  readonly #closed = new AbortController();
  readonly #signal: AbortSignal;
  #lastCursor: string | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #connection: AbortController | undefined;
  #parser = new SseParser();
  #decoder = new TextDecoder();
  #pending: SseEvent[] = [];
  #failures = 0;
  #retryMs = 0;
  #notBefore = 0;
  #closeReason: string | undefined;

  constructor(hub: HubClient, path: string, options: StreamOptions = {}) {
    this.#hub = hub;
    this.#path = path;
    this.#options = options;
    this.#lastCursor = options.since;
    this.#silenceMs = options.silenceMs ?? SILENCE_TIMEOUT_MS;
    this.#signal =
      options.signal === undefined ? this.#closed.signal : AbortSignal.any([options.signal, this.#closed.signal]);
  }

  /** The cursor of the last event that was returned. */
  get lastCursor(): string | undefined {
    return this.#lastCursor;
  }

  /** The next event after as many connections as needed; undefined when the stream was closed or its signal aborted. */
  async next(): Promise<StreamEvent | undefined> {
    try {
      while (!this.#signal.aborted) {
        const event = this.#pending.shift();
        if (event === undefined) {
          await (this.#reader === undefined ? this.#connect() : this.#readChunk(this.#reader));
          continue;
        }
        const accepted = this.#acceptEvent(event);
        if (accepted !== undefined) return accepted;
      }
    } catch (error) {
      if (!this.#signal.aborted) {
        this.close();
        throw error;
      }
    }
    this.close();
    return undefined;
  }

  close(): void {
    this.#closed.abort();
    this.#dropConnection();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent, void, void> {
    try {
      for (let event = await this.next(); event !== undefined; event = await this.next()) yield event;
    } finally {
      this.close();
    }
  }

  async #readChunk(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const work = reader.read().catch((error: unknown) => this.#hub.transportError(error));
    const read = await raceTimeout(this.#hub.clock, this.#silenceMs, work);
    if (this.#signal.aborted) return;
    if (read === undefined || read instanceof ChorusError) return this.#scheduleReconnect(0);
    if (read.done) return this.#onClosed();
    const events = this.#parser.feed(this.#decoder.decode(read.value, { stream: true }));
    this.#pending.push(...events);
  }

  #onClosed(): void {
    const reason = this.#closeReason;
    if (reason !== undefined && FINAL_REASONS.includes(reason)) {
      throw new AuthenticationError(`the hub closed the stream (${reason})`, { code: reason, status: 401 });
    }
    this.#scheduleReconnect(0);
  }

  /** The event, unless it is a repeat: an id is a cursor, and ids only grow. */
  #acceptEvent(event: SseEvent): StreamEvent | undefined {
    // The connection works, so the backoff starts again.
    this.#failures = 0;
    if (event.retryMs !== undefined) this.#retryMs = Math.min(event.retryMs, MAX_STREAM_RETRY_MS);
    if (event.name === "closing") {
      this.#closeReason = /"reason"\s*:\s*"(\w+)"/.exec(event.data)?.[1];
      return undefined;
    }
    if (event.id !== undefined && event.id !== "") {
      if (isRepeated(event.id, this.#lastCursor) && !CONTROL_EVENTS.includes(event.name)) return undefined;
      this.#lastCursor = event.id;
    }
    return event.data === "" ? undefined : { name: event.name, cursor: event.id || undefined, data: event.data };
  }

  #dropConnection(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.#reader?.cancel().catch(() => undefined);
    this.#reader = undefined;
    this.#closeReason = undefined;
  }

  #scheduleReconnect(leastMs: number): void {
    this.#dropConnection();
    this.#failures += 1;
    const serverDelay = this.#retryMs + addJitter(this.#retryMs) / 2;
    const wait = Math.max(delayAfter(this.#hub.backoff, this.#failures), serverDelay, leastMs);
    this.#notBefore = this.#hub.clock.now() + wait;
  }

  async #connect(): Promise<void> {
    const wait = this.#notBefore - this.#hub.clock.now();
    if (wait > 0) await this.#hub.clock.sleep(wait, this.#signal);
    if (this.#signal.aborted) return;
    try {
      this.#reader = await this.#openConnection();
      this.#parser = new SseParser();
      this.#decoder = new TextDecoder();
    } catch (error) {
      if (this.#signal.aborted) return;
      const isTransient = error instanceof ChorusError && WAITED_OUT.includes(error.status ?? 0);
      if (!isTransient && !(error instanceof TransportError)) throw error;
      this.#scheduleReconnect(Math.min(error.retryAfterMs ?? 0, MAX_STREAM_RETRY_MS));
    }
  }

  async #openConnection(): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    this.#connection = new AbortController();
    const signal = AbortSignal.any([this.#signal, this.#connection.signal]);
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.#lastCursor !== undefined) headers["last-event-id"] = this.#lastCursor;
    let path = this.#path;
    if (this.#options.token !== undefined) {
      const { name, value } = await this.#options.token();
      path += `${path.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
    }
    const opened = this.#hub.open({ method: "GET", path, headers, signal });
    // The time for an answer is also the time of a server that accepts and says nothing.
    const limit = Math.min(CALL_TIMEOUT_MS, this.#silenceMs);
    const response = await raceTimeout(this.#hub.clock, limit, opened);
    if (response === undefined) {
      opened.catch(() => undefined);
      this.#dropConnection();
      throw new TransportError("the hub did not answer");
    }
    if (response.status !== 200) {
      throw errorOfAnswer(await this.#hub.read(response));
    }
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (!isStream || response.body === null) throw new AnswerError("it is no event stream");
    return response.body.getReader();
  }
}
