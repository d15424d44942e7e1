// Exponential backoff with jitter, so that many clients do not return at once (TRN-48).
import { FIRST_BACKOFF_MS, MAX_BACKOFF_MS } from "./limits.js";

export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

export const DEFAULT_BACKOFF: Backoff = { firstMs: FIRST_BACKOFF_MS, maxMs: MAX_BACKOFF_MS };

/** Between half and all of `firstMs · 2^(failures-1)`, at most `maxMs`. */
export function delayAfter(backoff: Backoff, failures: number): number {
  const doubled = backoff.firstMs * 2 ** Math.min(Math.max(failures - 1, 0), 20);
  return addJitter(Math.min(doubled, backoff.maxMs));
}

/** A random time between half and all of `ms`. */
export function addJitter(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}
