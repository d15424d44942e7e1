// chorus-sdk/node: agents with the credential files of the command line, signals, and an HTTP endpoint.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { Agent as BaseAgent, type AgentOptions } from "../agent.js";
import { START } from "../cursor.js";
import { InputError } from "../errors.js";
import type { ComputeLocation, FrameSession, SessionOptions } from "../frame.js";
import { registerAgent, type Credentials, type RegisterOptions } from "../register.js";
import type { RunOptions } from "../runner.js";
import type { Store } from "../store.js";
import type { Receiver } from "../webhook.js";
import { FileStore } from "./file_store.js";
import { checkWritable, locateFiles, readCredentials, replaceKey, saveNewCredentials, type IdentityFiles } from "./files.js";
import { parseHubUrl, type HubOptions } from "../hub.js";

export * from "../index.js";
export { FileStore } from "./file_store.js";

export interface LoadOptions extends Partial<Omit<HubOptions, "key">> {
  /** The credential file; otherwise `./chorus-credentials.json`, `$CHORUS_HOME/config.json` or `~/.chorus/config.json`. */
  readonly credentials?: string | undefined;
  readonly culture?: string | undefined;
  readonly store?: Store | undefined;
}

/** An agent whose identity and progress are in files that the command line shares. */
export class Agent extends BaseAgent {
  #files: IdentityFiles | undefined;

  /** The saved identity. */
  static async load(options: LoadOptions = {}): Promise<Agent> {
    const files = await locateFiles(options.credentials);
    const saved = await readCredentials(files);
    if (saved === undefined) throw new InputError(`${files.credentials} holds no identity; register first`, "NOT_REGISTERED");
    return Agent.#open(files, saved, options);
  }

  /** Registers and saves the identity. If the file holds the same one already, it is used. */
  static async register(options: RegisterOptions & LoadOptions): Promise<Agent> {
    const files = await locateFiles(options.credentials);
    const saved = await readCredentials(files);
    if (saved !== undefined) {
      const isSame = saved.agentId === options.name || saved.agentId.split("@")[0] === options.name;
      if (!isSame) throw new InputError(`${files.credentials} already holds an identity`, "FILE");
      // A key is a secret of the hub that made it.
      if (parseHubUrl(options.hub) !== parseHubUrl(saved.hub)) {
        throw new InputError(`${files.credentials} holds an identity at ${saved.hub}, not at the given hub`, "FILE");
      }
      return Agent.#open(files, saved, options);
    }
    await checkWritable(files);
    const credentials = await registerAgent(options);
    await saveNewCredentials(files, credentials);
    // From the beginning, so that the first run misses no message.
    await new FileStore(files, credentials).saveFields({ cursor: START, culture: options.culture ?? "en" });
    return Agent.#open(files, credentials, options);
  }

  static async #open(files: IdentityFiles, saved: Credentials, options: LoadOptions): Promise<Agent> {
    const store = new FileStore(files, saved);
    const culture = options.culture ?? (await store.loadCulture());
    const settings: AgentOptions = { ...options, ...saved, hub: options.hub ?? saved.hub, culture, store: options.store ?? store };
    const agent = new Agent(settings);
    agent.#files = files;
    return agent;
  }

  /** Like `Agent.session`; `$CHORUS_COMPUTE` says where its model runs unless `compute` does. */
  override session(instrument: string, id: string, options: SessionOptions = {}): FrameSession {
    // The session checks the value.
    const named = (process.env["CHORUS_COMPUTE"] || undefined) as ComputeLocation | undefined;
    return super.session(instrument, id, { ...options, compute: options.compute ?? named });
  }

  /** Like `Agent.run`; SIGINT and SIGTERM end it too, after the running handlers. */
  override async run(options: RunOptions = {}): Promise<void> {
    const stopping = new AbortController();
    const stop = (): void => stopping.abort();
    process.once("SIGINT", stop).once("SIGTERM", stop);
    try {
      const signal = options.signal === undefined ? stopping.signal : AbortSignal.any([options.signal, stopping.signal]);
      await super.run({ ...options, signal });
    } finally {
      process.off("SIGINT", stop).off("SIGTERM", stop);
    }
  }

  /** Replaces the key, also in the credential file. */
  override async rotateKey(options: { overlapSeconds?: number } = {}): Promise<string> {
    const key = await super.rotateKey(options);
    if (this.#files !== undefined) await replaceKey(this.#files, { agentId: this.id, key, hub: this.hub.baseUrl });
    return key;
  }
}

/** Serves a receiver with `http.createServer(nodeListener(receiver))`. */
export function nodeListener(receiver: Receiver): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const respond = async (): Promise<void> => {
      const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)] as [string, string]));
      const init: RequestInit & { duplex: "half" } = { method: request.method ?? "GET", headers, duplex: "half" };
      const hasBody = request.method !== "GET" && request.method !== "HEAD";
      if (hasBody) init.body = Readable.toWeb(request) as ReadableStream<Uint8Array>;
      const answer = await receiver(new Request("http://localhost/", init));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    };
    respond().catch(() => response.destroy());
  };
}
