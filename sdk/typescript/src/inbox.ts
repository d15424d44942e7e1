// The events of an agent's inbox, as objects.
import { ChannelDelivery, ChannelInvite } from "./channel.js";
import type { CallbackSettings } from "./callback.js";
import { LIVE } from "./cursor.js";
import { HubClient, parseJson, type HubOptions } from "./hub.js";
import { Message, Receipt, Shown, type MessageSender } from "./message.js";
import { EventStream, type StreamEvent } from "./stream.js";
import type { ChannelDeliveryBody, ChannelInviteData, DispatchedJob, GapEventData, Job, MessageEventData, ReceiptEventData, ShownEventData } from "./wire.js";

/** A job for one of this agent's skills. */
export interface JobArrived {
  readonly type: "job";
  readonly cursor: string | undefined;
  readonly job: DispatchedJob;
}

/** A job ended: one that this agent requested, or one that it works on and that was cancelled or has expired. */
export interface JobEnded {
  readonly type: "job_result";
  readonly cursor: string | undefined;
  readonly job: Job;
}

/** Something happened to a job that this agent requested or works on: its `timeline` has the new update alone. */
export interface JobUpdated {
  readonly type: "job_update";
  readonly cursor: string | undefined;
  readonly job: Job;
}

/** The hub deleted at least one event after the cursor `from`, up to `to`, before it was read. */
export interface InboxGap {
  readonly type: "gap";
  readonly cursor: string | undefined;
  readonly from: number;
  readonly to: number;
}

export type InboxEvent = Message | Receipt | Shown | ChannelDelivery | ChannelInvite | JobArrived | JobUpdated | JobEnded | InboxGap;

export const INBOX_PATH = "/agent/inbox";

/**
 * The event as an object; undefined for one that this version does not know, or that is malformed. Services write parts
 * of an event, so a malformed one must not end the agent, which would read it again at every start.
 */
export function parseInboxEvent(agent: MessageSender, event: StreamEvent, settings: CallbackSettings): InboxEvent | undefined {
  try {
    return buildInboxEvent(agent, event, settings);
  } catch {
    agent.hub.warn(`chorus-sdk: an event of kind ${event.name.slice(0, 32)} was not understood`);
    return undefined;
  }
}

function buildInboxEvent(agent: MessageSender, event: StreamEvent, settings: CallbackSettings): InboxEvent | undefined {
  const { cursor } = event;
  switch (event.name) {
    case "message":
      return new Message(agent, parseJson(event.data) as MessageEventData, cursor);
    case "receipt":
      return new Receipt(parseJson(event.data) as ReceiptEventData, cursor);
    case "shown":
      return new Shown(parseJson(event.data) as ShownEventData, cursor);
    case "gap":
      return { type: "gap", cursor, ...(parseJson(event.data) as GapEventData) };
    case "channel":
      return new ChannelDelivery(parseJson(event.data) as ChannelDeliveryBody, cursor, settings);
    case "channel_invite":
      return new ChannelInvite(agent.hub, parseJson(event.data) as ChannelInviteData, cursor);
    case "job":
      return { type: "job", cursor, job: parseJson(event.data) as DispatchedJob };
    case "job_update":
      return { type: "job_update", cursor, job: parseJson(event.data) as Job };
    case "job_result":
      return { type: "job_result", cursor, job: parseJson(event.data) as Job };
    default:
      return undefined;
  }
}

export interface BrowserInboxOptions extends Omit<HubOptions, "key"> {
  /** Fetches a new session token for each connection, from a server that has the key (`agent.createSessionToken()`). */
  readonly token: () => Promise<string>;
  readonly since?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Follows an inbox without the key, for web pages: every connection uses a session token once. It only reads. */
export async function* followInbox(options: BrowserInboxOptions): AsyncGenerator<StreamEvent, void, void> {
  const hub = new HubClient(options);
  const token = async () => ({ name: "session", value: await options.token() });
  const stream = new EventStream(hub, INBOX_PATH, { since: options.since ?? LIVE, signal: options.signal, token });
  for await (const event of stream) if (event.name !== "connected") yield event;
}
