// An endpoint for what hubs and channel services post: a function from a Fetch request to its response.
import { ChannelDelivery } from "./channel.js";
import type { CallbackSettings } from "./callback.js";
import { systemClock, type Clock } from "./clock.js";
import { InputError, replyForException } from "./errors.js";
import { HubClient } from "./hub.js";
import { Message, type MessageSender } from "./message.js";
import { isSignedBy } from "./signature.js";
import { MemoryStore, type Store } from "./store.js";
import type { ChannelDeliveryBody, Envelope, ReceiverReply } from "./wire.js";

export { isSignedBy } from "./signature.js";

export interface ReceiverOptions {
  /** The endpoint secret or signing secret; several while one replaces another. Without it every client may post. */
  readonly secret?: string | readonly string[] | undefined;
  /** The agent that receives; `message.reply()` needs it. */
  readonly agent?: MessageSender | undefined;
  readonly onMessage?: ((message: Message) => unknown) | undefined;
  readonly onChannel?: ((delivery: ChannelDelivery) => unknown) | undefined;
  /** Remembers answered turns; in memory unless set. */
  readonly store?: Store | undefined;
  readonly callbacks?: CallbackSettings | undefined;
  readonly clock?: Clock | undefined;
}

/** Max bytes of a request: the largest envelope or delivery in its widest encoding, with room. */
const MAX_BODY_BYTES = 1024 * 1024;
const ENVELOPE_FIELDS = ["chorus_version", "sender_id", "original_text", "sender_culture"];

export type Receiver = (request: Request) => Promise<Response>;

/** Handles posts with the same handlers as `agent.run()`. The sender gets `ok`, or the error of the handler. */
export function createReceiver(options: ReceiverOptions): Receiver {
  const store = options.store ?? new MemoryStore();
  return async (request) => {
    if (request.method !== "POST") return answer(405, failure("INVALID_ENVELOPE", "post an envelope here"));
    const raw = await readBody(request);
    if (raw === undefined) return answer(413, failure("INVALID_ENVELOPE", "the request is too large"));
    const now = (options.clock ?? systemClock).now();
    // Nothing of a request is parsed before its signature is checked.
    if (options.secret !== undefined && !(await isSignedBy(options.secret, request.headers, raw, now))) {
      return answer(401, failure("INVALID_SIGNATURE", "the signature is missing, wrong or too old"));
    }
    const body = parseObject(raw);
    if (body === undefined) return answer(400, failure("INVALID_ENVELOPE", "the request is no JSON object"));
    if ("envelope" in body) return receiveEnvelope(options, store, body["envelope"], request.headers.get("webhook-id"), now);
    if (isDelivery(body)) return receiveDelivery(options, body);
    return answer(400, failure("INVALID_ENVELOPE", "missing envelope"));
  };
}

async function receiveEnvelope(options: ReceiverOptions, store: Store, value: unknown, traceId: string | null, now: number): Promise<Response> {
  const fault = findFault(value);
  if (fault !== undefined) return answer(400, fault);
  const envelope = value as Envelope;
  const data = { trace_id: traceId ?? crypto.randomUUID(), sender_id: envelope.sender_id, envelope, timestamp: new Date(now).toISOString() };
  const message = new Message(options.agent ?? silentSender, data, undefined, async () => undefined);
  const known = message.turnKey === undefined ? undefined : await store.findTurn(message.turnKey);
  const reply = known ?? (await runHandler(message, () => options.onMessage?.(message)));
  if (known === undefined && message.turnKey !== undefined) await store.saveTurn(message.turnKey, reply);
  // a protocol reply counts as an answer under any 4xx, so a refusal is one.
  return answer(reply.status === "ok" ? 200 : 422, reply);
}

async function runHandler(message: Message, handler: () => unknown): Promise<ReceiverReply> {
  try {
    await handler();
    return message.response ?? { status: "ok" };
  } catch (error) {
    return message.response ?? replyForException(error);
  }
}

async function receiveDelivery(options: ReceiverOptions, body: ChannelDeliveryBody): Promise<Response> {
  try {
    await options.onChannel?.(new ChannelDelivery(body, undefined, options.callbacks ?? {}));
    return answer(200, { status: "ok" });
  } catch {
    // A service tries again after a 5xx only.
    return answer(500, failure("ADAPTATION_FAILED", "the receiver failed to handle the delivery"));
  }
}

function findFault(value: unknown): ReceiverReply | undefined {
  if (typeof value !== "object" || value === null) return failure("INVALID_ENVELOPE", "missing envelope");
  const fields = value as Record<string, unknown>;
  const missing = ENVELOPE_FIELDS.find((name) => typeof fields[name] !== "string");
  if (missing !== undefined) return failure("INVALID_ENVELOPE", `missing ${missing}`);
  if (fields["chorus_version"] !== "0.4") return failure("UNSUPPORTED_VERSION", "this receiver speaks 0.4");
  return undefined;
}

function isDelivery(body: Record<string, unknown>): body is Record<string, unknown> & ChannelDeliveryBody {
  const { channel, message, callback } = body as { channel?: { id?: unknown }; message?: Record<string, unknown>; callback?: unknown };
  const texts = [channel?.id, message?.["id"], message?.["sender"], message?.["content"], callback];
  return texts.every((text) => typeof text === "string") && /^https?:\/\//i.test(String(callback));
}

async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength;
    if (length > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function parseObject(raw: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(raw));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function failure(code: string, detail: string): ReceiverReply {
  return { status: "error", error_code: code, detail };
}

function answer(status: number, reply: ReceiverReply): Response {
  return Response.json(reply, { status });
}

/** For receivers without an agent: they can answer, but not send. */
const silentSender: MessageSender = {
  hub: new HubClient({ hub: "http://localhost" }),
  send: async () => {
    throw new InputError("give createReceiver an agent to send replies");
  },
};
