// What can go wrong, by what the caller can do about it. No message contains a key, a path or a callback.
import { RETRYABLE_CODES } from "./generated/error_codes.js";
import type { ReceiverReply } from "./wire.js";

export interface ErrorFacts {
  readonly code: string;
  readonly status?: number | undefined;
  readonly retryable?: boolean | undefined;
  /** Finds the request in the hub's log. */
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  /** The part of a frame that is at fault. */
  readonly field?: string | undefined;
}

/** The base of every error of this library. */
export class ChorusError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly field: string | undefined;

  constructor(message: string, facts: ErrorFacts) {
    super(message);
    this.name = new.target.name;
    this.code = facts.code;
    this.status = facts.status;
    this.retryable = facts.retryable ?? false;
    this.requestId = facts.requestId;
    this.retryAfterMs = facts.retryAfterMs;
    this.field = facts.field;
  }
}

/** The hub could not be reached, or did not answer. */
export class TransportError extends ChorusError {
  constructor(message: string) {
    super(message, { code: "TRANSPORT", retryable: true });
  }
}

/** The answer does not follow the protocol. */
export class AnswerError extends ChorusError {
  constructor(message: string) {
    super(`the answer was not understood: ${message}`, { code: "NOT_UNDERSTOOD" });
  }
}

/** The caller's input is invalid, or a local file could not be used; nothing was sent. */
export class InputError extends ChorusError {
  constructor(message: string, code = "USAGE") {
    super(message, { code });
  }
}

/** The hub answered with an error. */
export class RefusedError extends ChorusError {}
/** 400, 405, 413 to 415, 431: the request must be corrected. */
export class InvalidRequestError extends RefusedError {}
/** 401, or the key was rotated, revoked or unregistered. */
export class AuthenticationError extends RefusedError {}
/** 403: this key, or this sender, may not do that. */
export class ForbiddenError extends RefusedError {}
/** 404 and 410. */
export class NotFoundError extends RefusedError {}
/** 409: it contradicts what is already there. */
export class ConflictError extends RefusedError {}
/** 429. */
export class RateLimitError extends RefusedError {}
/** 408 and 5xx: the hub failed. */
export class HubFailureError extends RefusedError {}

/** The receiver did not take a message: thrown by `SendResult.ok()`. */
export class DeliveryError extends ChorusError {}
/** A job ended without a result. */
export class JobFailedError extends ChorusError {}
/** Another session claims the resource. */
export class LockedError extends ChorusError {}
/** Nothing happened in the time that the caller gave. */
export class WaitTimeoutError extends ChorusError {
  constructor(message: string) {
    super(message, { code: "WAIT_TIMEOUT", retryable: true });
  }
}

/** Throw this in a handler to refuse a message with a code and a detail of your own. */
export class Refusal extends Error {
  readonly code: string;
  constructor(code: string, detail: string) {
    super(detail);
    this.name = "Refusal";
    this.code = code;
  }
}

/** The answer for a handler's exception. Only a `Refusal` shows its text: other exceptions may contain secrets. */
export function replyForException(thrown: unknown): ReceiverReply {
  if (thrown instanceof Refusal) {
    return { status: "error", error_code: thrown.code.slice(0, 64), detail: thrown.message.slice(0, 2048) || "refused" };
  }
  return { status: "error", error_code: "ADAPTATION_FAILED", detail: "the receiver failed to handle the message" };
}

type RefusedClass = new (message: string, facts: ErrorFacts) => RefusedError;

function classForStatus(status: number): RefusedClass {
  if (status === 401) return AuthenticationError;
  if (status === 403) return ForbiddenError;
  if (status === 404 || status === 410) return NotFoundError;
  if (status === 409) return ConflictError;
  if (status === 429) return RateLimitError;
  return status >= 500 || status === 408 ? HubFailureError : InvalidRequestError;
}

/** The error of the class of its status; unknown codes are retryable by their status. */
export function refusedError(message: string, facts: ErrorFacts & { status: number }): RefusedError {
  const retryable = RETRYABLE_CODES[facts.code] ?? [408, 429, 500, 502, 503, 504].includes(facts.status);
  return new (classForStatus(facts.status))(`${message} (${facts.code})`, { retryable, ...facts });
}
