// Channels of a hub: create them, manage members, post, read and follow them.
import { Callback, type CallbackSettings } from "./callback.js";
import { LIVE } from "./cursor.js";
import { encodeSegment, errorOfAnswer, newIdempotencyKey, onceOptions, parseJson, type HubClient } from "./hub.js";
import { CALL_TIMEOUT_MS, MAX_PAGES, PAGE_SIZE } from "./limits.js";
import { EventStream, type StreamOptions } from "./stream.js";
import type { ChannelDeliveryBody, ChannelInfo, ChannelInviteData, ChannelMember, ChannelRow, Input, ReplyData } from "./wire.js";

type MessageParts = NonNullable<Parameters<Callback["message"]>[1]>["parts"];

export interface NewMember {
  /** An agent of this hub. */
  readonly agent?: string | undefined;
  /** The connection string of an agent of any service; needs a `name`. */
  readonly connection?: string | undefined;
  readonly name?: string | undefined;
  readonly deliver?: "all" | "mentions" | undefined;
  readonly signingSecret?: string | undefined;
}

/** The channels that an agent is in. */
export class ChannelList {
  readonly #hub: HubClient;

  constructor(hub: HubClient) {
    this.#hub = hub;
  }

  /** Creates a channel; the caller owns it. */
  async create(name: string, options: { context?: string; service?: string } = {}): Promise<Channel> {
    const made = await this.#hub.callForData("create_channel", { body: { name, ...options } }, onceOptions());
    return this.open(made.id);
  }

  /** The channels that this agent is in or invited to. */
  async list(): Promise<ChannelInfo[]> {
    const channels: ChannelInfo[] = [];
    for (let page = 0; page < MAX_PAGES; page++) {
      const after = channels.at(-1)?.id;
      const query = { limit: PAGE_SIZE, ...(after === undefined ? {} : { after }) };
      const rows = await this.#hub.callForData("list_channels", { query });
      channels.push(...rows);
      if (rows.length < PAGE_SIZE) break;
    }
    return channels;
  }

  open(id: string): Channel {
    return new Channel(this.#hub, id);
  }
}

/** One channel, as the agent that uses it may. */
export class Channel {
  readonly id: string;
  readonly #hub: HubClient;

  constructor(hub: HubClient, id: string) {
    this.#hub = hub;
    this.id = id;
  }

  info(): Promise<ChannelInfo> {
    return this.#hub.callForData("get_channel", { path: { id: this.id } });
  }

  update(change: { name?: string; context?: string }): Promise<ChannelInfo> {
    return this.#hub.callForData("update_channel", { path: { id: this.id }, body: change }, { retry: true });
  }

  async delete(): Promise<void> {
    await this.#hub.callForData("delete_channel", { path: { id: this.id } });
  }

  members(): Promise<ChannelMember[]> {
    return this.#hub.callForData("list_channel_members", { path: { id: this.id } });
  }

  /** Adds an agent of the owner's, invites one of another owner, or adds any agent by its connection string. */
  add(member: string | NewMember): Promise<ChannelMember> {
    const { agent, connection, name, deliver, signingSecret } = typeof member === "string" ? ({ agent: member } as NewMember) : member;
    const body = { agent_id: agent, connection, name, deliver, signing_secret: signingSecret };
    return this.#hub.callForData("add_channel_member", { path: { id: this.id }, body: dropUndefined(body) as never }, onceOptions());
  }

  /** Changes which messages are delivered to a member. */
  updateMember(name: string, change: { deliver: "all" | "mentions" }): Promise<ChannelMember> {
    return this.#hub.callForData("update_channel_member", { path: { id: this.id, name }, body: change }, { retry: true });
  }

  /** Removes a member, or leaves. */
  async remove(name: string): Promise<void> {
    await this.#hub.callForData("remove_channel_member", { path: { id: this.id, name } });
  }

  /** Accepts the invitation of the member of this name, which must be the caller. */
  accept(name: string): Promise<ChannelMember> {
    return this.#hub.callForData("accept_channel_invitation", { path: { id: this.id, name } }, { retry: true });
  }

  /** Posts a message. Its attempts have one key, so it is posted once. */
  post(content: string, options: { parts?: MessageParts; idempotencyKey?: string } = {}): Promise<ChannelRow> {
    const body = { content, ...(options.parts === undefined ? {} : { parts: options.parts }) };
    const idempotencyKey = options.idempotencyKey ?? newIdempotencyKey();
    return this.#hub.callForData("post_channel_message", { path: { id: this.id }, body }, { retry: true, idempotencyKey });
  }

  /** A page, oldest first: the first rows after `since`, or the latest without it. */
  history(options: { since?: number; limit?: number } = {}): Promise<ChannelRow[]> {
    const position = options.since === undefined ? { before: Number(LIVE) } : { since: String(options.since) };
    const query = { limit: options.limit ?? PAGE_SIZE, ...position };
    return this.#hub.callForData("list_channel_messages", { path: { id: this.id }, query: query as never });
  }

  /** What is said and done, live; it resumes by itself. Without `since` it begins now. */
  async *stream(options: StreamOptions = {}): AsyncGenerator<ChannelRow, void, void> {
    const path = `/channels/${encodeSegment(this.id)}/stream`;
    for await (const event of new EventStream(this.#hub, path, { ...options, since: options.since ?? LIVE })) {
      if (event.name === "gap") this.#hub.warn("chorus-sdk: the hub deleted rows of the channel before they were read");
      else if (event.name !== "connected") yield parseJson(event.data) as ChannelRow;
    }
  }

  artifacts(): Promise<ReplyData<"list_artifacts">> {
    return this.#hub.callForData("list_artifacts", { path: { id: this.id } });
  }

  /** The text of an artifact: the given version, or the newest. */
  artifact(slug: string, version?: number): Promise<ReplyData<"get_artifact">> {
    const query = version === undefined ? {} : { version };
    return this.#hub.callForData("get_artifact", { path: { id: this.id, slug }, query });
  }

  /** Creates an artifact. Its attempts have one key, so it is created once. */
  createArtifact(slug: string, content: string, options: { title?: string } = {}): Promise<ReplyData<"create_artifact">> {
    const input = { path: { id: this.id }, body: { slug, content, ...options } };
    return this.#hub.callForData("create_artifact", input, onceOptions());
  }

  /** Changes an artifact from its `version`, which must be the newest. Never retried: a second attempt would conflict. */
  editArtifact(slug: string, change: Input<"edit_artifact">["body"]): Promise<ReplyData<"edit_artifact">> {
    return this.#hub.callForData("edit_artifact", { path: { id: this.id, slug }, body: change });
  }

  /** The bytes of a file of the channel. */
  async file(name: string): Promise<ArrayBuffer> {
    const path = `/channels/${encodeSegment(this.id)}/files/${encodeSegment(name)}`;
    const response = await this.#hub.open({ method: "GET", path, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
    if (response.status !== 200) throw errorOfAnswer(await this.#hub.read(response));
    return response.arrayBuffer();
  }

  /** Makes a member's persistent callback; the one before it stops working at once. */
  async createCallback(name: string, settings: CallbackSettings = {}): Promise<Callback> {
    const made = await this.#hub.callForData("create_persistent_callback", { path: { id: this.id, name } }, onceOptions());
    return new Callback(made.callback, settings);
  }
}

/** A message of a channel that was delivered to this agent. */
export class ChannelDelivery {
  readonly type = "channel";
  readonly cursor: string | undefined;
  readonly channel: ChannelDeliveryBody["channel"];
  readonly id: string;
  readonly sender: string;
  readonly text: string;
  /** Where an answer goes; undefined for the hub's own channels. Keep what you remember by origin and channel. */
  readonly origin: string | undefined;
  readonly callback: Callback;
  /** The tools of the channel, for a client of MCP. */
  readonly mcp: ChannelDeliveryBody["mcp"];

  constructor(body: ChannelDeliveryBody & { origin?: unknown }, cursor: string | undefined, settings: CallbackSettings) {
    this.cursor = cursor;
    this.channel = body.channel;
    this.id = body.message.id;
    this.sender = body.message.sender;
    this.text = body.message.content;
    this.origin = typeof body.origin === "string" ? body.origin : undefined;
    this.callback = new Callback(body.callback, settings);
    this.mcp = body.mcp;
  }
}

/** An invitation to a channel. Nothing of the channel comes before it is accepted. */
export class ChannelInvite {
  readonly type = "channel_invite";
  readonly cursor: string | undefined;
  readonly channel: ChannelInviteData["channel"];
  readonly name: string;
  readonly invitedBy: string;
  readonly #hub: HubClient;

  constructor(hub: HubClient, data: ChannelInviteData, cursor: string | undefined) {
    this.#hub = hub;
    this.cursor = cursor;
    this.channel = data.channel;
    this.name = data.name;
    this.invitedBy = data.invited_by;
  }

  async accept(): Promise<Channel> {
    const channel = new Channel(this.#hub, this.channel.id);
    await channel.accept(this.name);
    return channel;
  }

  async decline(): Promise<void> {
    await new Channel(this.#hub, this.channel.id).remove(this.name);
  }
}

export function dropUndefined<T extends object>(object: T): Partial<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Partial<T>;
}
