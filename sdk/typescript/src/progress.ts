// How far an agent has read: the saved cursor passes an event only when that event and all before it are finished.
import { MAX_OPEN_EVENTS } from "./limits.js";

interface OpenEvent {
  readonly cursor: string | undefined;
  isDone: boolean;
}

export class Progress {
  readonly #save: (cursor: string) => Promise<void>;
  readonly #open: OpenEvent[] = [];
  #unsaved: string | undefined;
  #saving: Promise<void> | undefined;
  #onRoom: (() => void) | undefined;

  constructor(save: (cursor: string) => Promise<void>) {
    this.#save = save;
  }

  /** Adds an event in the order of the stream; the result marks it as finished and saves the cursor if it moved. */
  begin(cursor: string | undefined): () => Promise<void> {
    const event: OpenEvent = { cursor, isDone: false };
    this.#open.push(event);
    return async () => {
      event.isDone = true;
      while (this.#open[0]?.isDone === true) this.#unsaved = this.#open.shift()?.cursor ?? this.#unsaved;
      if (this.#open.length < MAX_OPEN_EVENTS) this.#onRoom?.();
      await this.#saveNewest();
    };
  }

  /** Resolves when another event may be read. */
  async waitRoom(): Promise<void> {
    if (this.#open.length < MAX_OPEN_EVENTS) return;
    await new Promise<void>((resolve) => (this.#onRoom = resolve));
  }

  /** One save at a time; those that come meanwhile become one. */
  async #saveNewest(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving;
    const cursor = this.#unsaved;
    if (cursor === undefined) return;
    this.#unsaved = undefined;
    this.#saving = this.#save(cursor).finally(() => (this.#saving = undefined));
    await this.#saving;
  }
}
