// Reads Server-Sent Events from text as it arrives.
import { MAX_EVENT_CHARS } from "./limits.js";
import { AnswerError } from "./errors.js";

export interface SseEvent {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: string;
  readonly retryMs: number | undefined;
}

/** Feed it pieces of any size; it returns the events that are complete. A comment is no event. */
export class SseParser {
  #rest = "";
  #name = "";
  #id: string | undefined;
  #data: string[] = [];
  #retryMs: number | undefined;
  #chars = 0;

  feed(piece: string): SseEvent[] {
    const events: SseEvent[] = [];
    const text = this.#rest + piece;
    // A CR at the end may be half of a CRLF, so it waits for the next piece.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.#takeLine(line);
      if (event !== undefined) events.push(event);
    }
    if (this.#chars + this.#rest.length > MAX_EVENT_CHARS) throw new AnswerError("an event is too long");
    return events;
  }

  #takeLine(line: string): SseEvent | undefined {
    if (line === "") return this.#finishEvent();
    this.#chars += line.length;
    if (line.startsWith(":")) return undefined;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) this.#retryMs = Number(value);
    return undefined;
  }

  #finishEvent(): SseEvent | undefined {
    const event = { name: this.#name || "message", id: this.#id, data: this.#data.join("\n"), retryMs: this.#retryMs };
    const isEmpty = this.#data.length === 0 && this.#retryMs === undefined;
    this.#name = "";
    this.#id = undefined;
    this.#data = [];
    this.#retryMs = undefined;
    this.#chars = 0;
    return isEmpty ? undefined : event;
  }
}
