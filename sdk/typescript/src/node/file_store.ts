// Keeps an agent's progress in the state file of the command line, so that SDK and `chorus listen` continue each other.
import { appendFile, readFile } from "node:fs/promises";
import { MAX_KNOWN_TURNS } from "../limits.js";
import type { Credentials } from "../register.js";
import { TurnCache, type Store } from "../store.js";
import type { ReceiverReply } from "../wire.js";
import { readObject, writeAtomically, type IdentityFiles } from "./files.js";
import { acquireFileLock } from "./file_lock.js";

export class FileStore implements Store {
  readonly #files: IdentityFiles;
  readonly #credentials: Credentials;
  #turns: TurnCache | undefined;
  #appendedTurns = 0;

  constructor(files: IdentityFiles, credentials: Credentials) {
    this.#files = files;
    this.#credentials = credentials;
  }

  lock(): Promise<() => Promise<void>> {
    return acquireFileLock(this.#files.lock, this.#files.state);
  }

  async loadCursor(): Promise<string | undefined> {
    const { cursor } = await this.#readState();
    return typeof cursor === "string" ? cursor : undefined;
  }

  async saveCursor(cursor: string): Promise<void> {
    await this.saveFields({ cursor });
  }

  /** Changes fields of the state and keeps the others, which belong to the command line. */
  async saveFields(fields: { cursor?: string; culture?: string }): Promise<void> {
    await writeAtomically(this.#files.state, `${JSON.stringify({ ...(await this.#readState()), ...fields })}\n`);
  }

  async loadCulture(): Promise<string | undefined> {
    const { culture } = await this.#readState();
    return typeof culture === "string" ? culture : undefined;
  }

  async findTurn(key: string): Promise<ReceiverReply | undefined> {
    return (await this.#loadTurns()).find(key);
  }

  async saveTurn(key: string, reply: ReceiverReply): Promise<void> {
    const turns = await this.#loadTurns();
    turns.insert(key, reply);
    this.#appendedTurns += 1;
    if (this.#appendedTurns > MAX_KNOWN_TURNS) {
      const lines = [...turns.entries()].map((entry) => `${JSON.stringify(entry)}\n`);
      await writeAtomically(this.#files.turns, lines.join(""));
      this.#appendedTurns = 0;
    } else {
      await appendFile(this.#files.turns, `${JSON.stringify([key, reply])}\n`, { mode: 0o600, flush: true });
    }
  }

  /** The state of this agent; a new one if the file belongs to another. */
  async #readState(): Promise<Record<string, unknown>> {
    const { agentId, hub } = this.#credentials;
    const saved = await readObject(this.#files.state);
    const isOwn = saved?.["agent_id"] === agentId && saved["hub_url"] === hub;
    return isOwn ? saved : { agent_id: agentId, hub_url: hub };
  }

  async #loadTurns(): Promise<TurnCache> {
    if (this.#turns !== undefined) return this.#turns;
    const turns = new TurnCache();
    const text = await readFile(this.#files.turns, "utf8").catch(() => "");
    for (const line of text.split("\n")) {
      try {
        const [key, reply] = JSON.parse(line) as [string, ReceiverReply];
        turns.insert(key, reply);
      } catch {
        // A line torn by a crash: its message comes again.
      }
    }
    this.#turns = turns;
    return turns;
  }
}
