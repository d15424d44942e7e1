// Posts an agent's events to the callback of a delivery, in order and with retries (CHN-30…33).
import { HubClient, newIdempotencyKey, errorOfAnswer, type HubOptions } from "./hub.js";
import { InputError } from "./errors.js";
import { CALLBACK_QUEUE_LEN } from "./limits.js";
import type { CallbackEvent } from "./wire.js";

export type CallbackSettings = Pick<HubOptions, "backoff" | "clock" | "fetch">;

/** Sends the five events. Calls are sent one after the other, in the order in which they were made. */
export class Callback {
  readonly #client: EndpointClient;
  #last: Promise<unknown> = Promise.resolve();

  /** Uses the URL as it was delivered: nothing is added to it, and no key is sent (CHN-15). */
  constructor(url: string, settings: CallbackSettings = {}) {
    this.#client = new EndpointClient(url, settings);
  }

  message(content: string, options: { parts?: Extract<CallbackEvent, { type: "message" }>["parts"] } = {}): Promise<void> {
    return this.post({ type: "message", content, ...(options.parts === undefined ? {} : { parts: options.parts }) });
  }

  /** What the agent is doing; an empty text removes the status. */
  status(status: string): Promise<void> {
    return this.post({ type: "status", status });
  }

  toolCall(id: string, name: string, args: Record<string, unknown> = {}): Promise<void> {
    return this.post({ type: "tool_call", name, args: args as Record<string, never>, id });
  }

  toolResult(id: string, content: string): Promise<void> {
    return this.post({ type: "tool_result", id, content });
  }

  error(message: string, code?: string): Promise<void> {
    return this.post({ type: "error", message, ...(code === undefined ? {} : { code }) });
  }

  /** Posts one event. Its attempts have one key, so a service that knows the header shows the event once. */
  post(event: CallbackEvent): Promise<void> {
    const call = { method: "POST", path: "", body: JSON.stringify(event), idempotencyKey: newIdempotencyKey(), retry: true };
    const sent = this.#last.then(() => this.#client.send(call)).then(() => undefined);
    this.#last = sent.catch(() => undefined);
    return sent;
  }

  /** Sends many events over one request. What was accepted is never sent again. */
  stream(): CallbackStream {
    return new CallbackStream(this.#client);
  }
}

/** A client of one URL, exactly as given. */
class EndpointClient extends HubClient {
  readonly #url: string;

  constructor(url: string, settings: CallbackSettings) {
    if (!URL.canParse(url) || !/^https?:/.test(url)) throw new InputError("a callback is an http:// or https:// URL");
    // The origin is all that errors show: the path is a secret.
    const fetch = settings.fetch ?? globalThis.fetch;
    super({ ...settings, hub: new URL(url).origin, fetch: (_, init) => fetch(url, init) });
    this.#url = url;
  }

  toJSON(): string {
    return new URL(this.#url).origin;
  }
}

/** An open request with an event per line. */
export class CallbackStream {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #answer: Promise<void>;
  #failure: unknown;

  constructor(client: HubClient) {
    const queue = new TransformStream<Uint8Array, Uint8Array>(undefined, new CountQueuingStrategy({ highWaterMark: CALLBACK_QUEUE_LEN }));
    this.#writer = queue.writable.getWriter();
    this.#writer.closed.catch(() => undefined);
    const headers = { "content-type": "application/x-ndjson" };
    const opened = client.open({ method: "POST", path: "", headers, stream: queue.readable });
    this.#answer = opened.then(async (response) => {
      const answer = await client.read(response);
      if (answer.status < 200 || answer.status >= 300) throw errorOfAnswer(answer);
    });
    this.#answer.catch((error: unknown) => {
      this.#failure = error;
      this.#writer.abort(error).catch(() => undefined);
    });
  }

  /** Waits while the queue is full. After a refusal no further event is sent. */
  async post(event: CallbackEvent): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    await this.#writer.ready.catch(() => this.#answer);
    this.#writer.write(new TextEncoder().encode(`${JSON.stringify(event)}\n`)).catch(() => undefined);
  }

  /** Ends the request and waits for the service's answer. */
  async finish(): Promise<void> {
    this.#writer.close().catch(() => undefined);
    await this.#answer;
  }
}
