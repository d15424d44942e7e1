// Where an agent keeps how far it has read: in memory, in the files of the command line, or in a store of yours.
import { MAX_KNOWN_TURNS } from "./limits.js";
import type { ReceiverReply } from "./wire.js";

/** Keeps an agent's progress. Every method may be called again after a crash. */
export interface Store {
  /** Makes this process the only listener; returns what releases it. Throws if there is another. */
  lock(): Promise<() => Promise<void>>;
  /** The cursor up to which everything is handled and answered. */
  loadCursor(): Promise<string | undefined>;
  saveCursor(cursor: string): Promise<void>;
  /** The answer that a turn got. */
  findTurn(key: string): Promise<ReceiverReply | undefined>;
  saveTurn(key: string, reply: ReceiverReply): Promise<void>;
}

/** The latest answers by turn; a full one drops the oldest. */
export class TurnCache {
  readonly #replies = new Map<string, ReceiverReply>();

  find(key: string): ReceiverReply | undefined {
    return this.#replies.get(key);
  }

  insert(key: string, reply: ReceiverReply): void {
    this.#replies.set(key, reply);
    if (this.#replies.size <= MAX_KNOWN_TURNS) return;
    for (const oldest of this.#replies.keys()) {
      this.#replies.delete(oldest);
      break;
    }
  }

  entries(): IterableIterator<[string, ReceiverReply]> {
    return this.#replies.entries();
  }
}

/** Keeps the progress as long as the process runs. */
export class MemoryStore implements Store {
  #cursor: string | undefined;
  readonly #turns = new TurnCache();

  constructor(cursor?: string) {
    this.#cursor = cursor;
  }

  async lock(): Promise<() => Promise<void>> {
    return async () => undefined;
  }

  async loadCursor(): Promise<string | undefined> {
    return this.#cursor;
  }

  async saveCursor(cursor: string): Promise<void> {
    this.#cursor = cursor;
  }

  async findTurn(key: string): Promise<ReceiverReply | undefined> {
    return this.#turns.find(key);
  }

  async saveTurn(key: string, reply: ReceiverReply): Promise<void> {
    this.#turns.insert(key, reply);
  }
}
