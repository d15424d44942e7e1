// Registers an agent at a hub.
import { AnswerError } from "./errors.js";
import { HubClient, onceOptions, type HubOptions } from "./hub.js";
import { dropUndefined } from "./channel.js";

export interface RegisterOptions extends Omit<HubOptions, "key"> {
  /** `alice@chorus`; a name without `@` is completed with the hub's host. */
  readonly name: string;
  /** The culture of the person that the agent speaks for; `en` unless set. */
  readonly culture?: string | undefined;
  readonly languages?: readonly string[] | undefined;
  /** Where the hub posts messages when no inbox is open. */
  readonly endpoint?: string | undefined;
  /** Signs what the hub posts to the endpoint: `whsec_…`. */
  readonly endpointSecret?: string | undefined;
  readonly inviteCode?: string | undefined;
  /** The owner, whose agents share an account. */
  readonly owner?: string | undefined;
}

export interface Credentials {
  readonly hub: string;
  readonly agentId: string;
  readonly key: string;
}

/** Its attempts have one random key, so a lost answer is asked for again and brings the same `api_key`. */
export async function registerAgent(options: RegisterOptions): Promise<Credentials> {
  const hub = new HubClient(options);
  const culture = options.culture ?? "en";
  const body = dropUndefined({
    agent_id: await completeName(hub, options.name),
    agent_card: { card_version: "0.3", user_culture: culture, supported_languages: options.languages ?? [culture] },
    endpoint: options.endpoint,
    endpoint_secret: options.endpointSecret,
    invite_code: options.inviteCode,
    owner_id: options.owner,
  });
  const reply = await hub.call("register_agent", { body: body as never }, onceOptions());
  // The market's form of a registration is answered without `data`.
  const { agent_id: agentId, api_key: key } = "data" in reply ? reply.data : reply;
  if (typeof key !== "string") throw new AnswerError("a new agent came without a key");
  return { hub: hub.baseUrl, agentId, key };
}

async function completeName(hub: HubClient, name: string): Promise<string> {
  if (name.includes("@")) return name;
  const { host_name: host } = await hub.call("get_discovery", {});
  return host === undefined ? name : `${name}@${host}`;
}
