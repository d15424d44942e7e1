// Cursors: the position that an SSE `id` shows and that `since` takes: `seq`, or `epoch-seq` in a frame ring.

/** Before the first entry of the log. */
export const START = "0";
/** After every entry that a hub can have: a stream from here starts live, and its `connected` names the newest cursor. */
export const LIVE = "9007199254740991";

interface Position {
  readonly epoch: bigint;
  readonly seq: bigint;
}

export function parseCursor(text: string): Position | undefined {
  const match = /^(?:(\d{1,19})-)?(\d{1,19})$/.exec(text);
  if (match === null) return undefined;
  return { epoch: BigInt(match[1] ?? "0"), seq: BigInt(match[2] ?? "0") };
}

/** Whether `cursor` is at or before `since` in the same log. Another epoch is another log. */
export function isRepeated(cursor: string, since: string | undefined): boolean {
  const position = parseCursor(cursor);
  const last = since === undefined ? undefined : parseCursor(since);
  return position !== undefined && last !== undefined && position.epoch === last.epoch && position.seq <= last.seq;
}
