// Messages: what arrived, with its answers, and what was sent, with its outcome.
import { ConflictError, DeliveryError } from "./errors.js";
import type { HubClient } from "./hub.js";
import type { Envelope, MessageEventData, ReceiptEventData, ReceiverReply, ShownEventData } from "./wire.js";

/** How an agent sends, as a message needs it for `reply`. */
export interface MessageSender {
  readonly hub: HubClient;
  send(receiver: string, text: string, options?: SendOptions): Promise<SendResult>;
}

export interface SendOptions {
  /** The conversation, at most 64 characters; the same on every turn. */
  readonly conversationId?: string | undefined;
  /** 1, 2, 3 … within the conversation. */
  readonly turnNumber?: number | undefined;
  /** Why it is phrased so: 10 to 500 characters. */
  readonly culturalContext?: string | undefined;
  /** The culture of the sender, such as `en`; otherwise the one it registered with. */
  readonly culture?: string | undefined;
  /** Your own key makes a repeated call the same message; otherwise each call has a new one. */
  readonly idempotencyKey?: string | undefined;
  /**
   * `shown`: until a model or a person was shown the text. `receipt`: until the receiver acknowledged the message.
   * `answer`: until it wrote back in the conversation.
   */
  readonly wait?: "shown" | "receipt" | "answer" | undefined;
  /** How long to wait; 60 seconds unless set. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The outcome of a send. A delivery that failed is an outcome too; `ok()` makes it an error. */
export interface SendFacts {
  readonly traceId: string;
  /** `delivered_sse`, `delivered`, `queued` or `failed`. */
  readonly delivery: string;
  /** The receiver's response, if it is known. */
  readonly response: ReceiverReply | undefined;
  /** The message that the receiver sent back, with `wait: "answer"`. */
  readonly answer?: Message | undefined;
  /** When the text was shown, with `wait: "shown"`. */
  readonly shownAt?: string | undefined;
  readonly errorCode: string | undefined;
  readonly detail: string | undefined;
}

export class SendResult implements SendFacts {
  readonly traceId: string;
  readonly delivery: string;
  readonly response: ReceiverReply | undefined;
  readonly answer: Message | undefined;
  readonly shownAt: string | undefined;
  readonly errorCode: string | undefined;
  readonly detail: string | undefined;

  constructor(facts: SendFacts) {
    this.traceId = facts.traceId;
    this.delivery = facts.delivery;
    this.response = facts.response;
    this.answer = facts.answer;
    this.shownAt = facts.shownAt;
    this.errorCode = facts.errorCode;
    this.detail = facts.detail;
  }

  /** Throws if the message could not be delivered, or if the receiver responded with an error. */
  ok(): this {
    if (this.delivery === "failed") {
      throw new DeliveryError(`${this.detail ?? "the message was not delivered"}`, { code: this.errorCode ?? "ERR_AGENT_UNREACHABLE" });
    }
    if (this.response?.status === "error") {
      throw new DeliveryError(`${this.response.detail ?? "the receiver refused it"}`, { code: this.response.error_code });
    }
    return this;
  }
}

export type AnswerSender = (reply: ReceiverReply) => Promise<void>;

/** A message that arrived. Nothing is answered unless you answer. */
export class Message {
  readonly type = "message";
  readonly cursor: string | undefined;
  readonly traceId: string;
  readonly sender: string;
  readonly text: string;
  readonly culture: string;
  readonly culturalContext: string | undefined;
  readonly conversationId: string | undefined;
  readonly turnNumber: number | undefined;
  readonly timestamp: string;
  readonly envelope: Envelope;
  readonly #agent: MessageSender;
  readonly #answerBy: AnswerSender | undefined;
  #response: ReceiverReply | undefined;

  /** `answerBy` takes the answer of a message that did not come by stream. */
  constructor(agent: MessageSender, data: MessageEventData, cursor: string | undefined, answerBy?: AnswerSender) {
    const { envelope } = data;
    this.#answerBy = answerBy;
    this.#agent = agent;
    this.cursor = cursor;
    this.traceId = data.trace_id;
    this.sender = envelope.sender_id;
    this.text = envelope.original_text;
    this.culture = envelope.sender_culture;
    this.culturalContext = envelope.cultural_context;
    this.conversationId = envelope.conversation_id;
    this.turnNumber = envelope.turn_number;
    this.timestamp = data.timestamp;
    this.envelope = envelope;
  }

  /** The response that was given here. */
  get response(): ReceiverReply | undefined {
    return this.#response;
  }

  /** Identifies a turn, so that a repeated one is recognised; undefined without a conversation and a turn. */
  get turnKey(): string | undefined {
    if (this.conversationId === undefined || this.turnNumber === undefined) return undefined;
    return JSON.stringify([this.sender, this.conversationId, this.turnNumber]);
  }

  /** Tells the sender that the message was handled. */
  async ack(): Promise<void> {
    await this.respond({ status: "ok" });
  }

  /** Tells the sender that the message was not handled, and why. */
  async fail(code: string, detail?: string): Promise<void> {
    await this.respond({ status: "error", error_code: code, ...(detail === undefined ? {} : { detail }) });
  }

  /** Tells the sender that a model or a person was shown the text. The first time stands; it is no receipt. */
  async markShown(): Promise<void> {
    await this.#agent.hub.call("mark_message_shown", { path: { trace_id: this.traceId } }, { retry: true });
  }

  /** Sends the response. The first response to a message is final; a later one changes nothing. */
  async respond(reply: ReceiverReply, signal?: AbortSignal): Promise<void> {
    this.#response ??= reply;
    if (this.#answerBy !== undefined) return this.#answerBy(reply);
    const input = { path: { trace_id: this.traceId }, body: reply as never };
    await this.#agent.hub.call("respond_to_message", input, { retry: true, signal }).catch((error: unknown) => {
      if (!(error instanceof ConflictError)) throw error;
    });
  }

  /** Sends a message back in the same conversation, as its next turn. */
  async reply(text: string, options: SendOptions = {}): Promise<SendResult> {
    const conversationId = this.conversationId ?? this.traceId;
    const turnNumber = (this.turnNumber ?? 1) + 1;
    // A handler that is repeated after a crash sends the same reply once.
    const idempotencyKey = `reply-${this.traceId}-${await digestText(text)}`;
    return this.#agent.send(this.sender, text, { conversationId, turnNumber, idempotencyKey, ...options });
  }
}

/** A receiver's response to a message of yours. */
export class Receipt {
  readonly type = "receipt";
  readonly cursor: string | undefined;
  readonly traceId: string;
  readonly receiver: string;
  readonly response: ReceiverReply;
  readonly timestamp: string;

  constructor(data: ReceiptEventData, cursor: string | undefined) {
    this.cursor = cursor;
    this.traceId = data.trace_id;
    this.receiver = data.receiver_id;
    this.response = data.response as ReceiverReply;
    this.timestamp = data.timestamp;
  }
}

/** The receiver's model or user was shown the text of a message of yours. It implies no response. */
export class Shown {
  readonly type = "shown";
  readonly cursor: string | undefined;
  readonly traceId: string;
  readonly receiver: string;
  readonly timestamp: string;

  constructor(data: ShownEventData, cursor: string | undefined) {
    this.cursor = cursor;
    this.traceId = data.trace_id;
    this.receiver = data.receiver_id;
    this.timestamp = data.timestamp;
  }
}

/** Half of the SHA-256 of a text, as hex. */
async function digestText(text: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(hash, 0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
