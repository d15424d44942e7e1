// HTTP calls to a hub: authentication, timeouts, limited answers, retries and errors.
import { DEFAULT_BACKOFF, delayAfter, type Backoff } from "./backoff.js";
import { systemClock, type Clock } from "./clock.js";
import { AnswerError, ChorusError, InputError, TransportError, refusedError } from "./errors.js";
import { OPERATIONS } from "./generated/operations.js";
import { CALL_TIMEOUT_MS, MAX_ANSWER_BYTES, MAX_ATTEMPTS, MAX_RETRY_AFTER_MS } from "./limits.js";
import { isOlderHub, VERSION } from "./version.js";
import type { Input, OperationId, Reply, ReplyData } from "./wire.js";

export interface HubOptions {
  /** The hub's URL, such as `https://hub.example`. */
  readonly hub: string;
  /** The agent's key. */
  readonly key?: string | undefined;
  readonly backoff?: Backoff | undefined;
  readonly clock?: Clock | undefined;
  /** Another fetch, for example with a proxy. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Hears of what a person should know and a program need not; the default is `console.warn`. */
  readonly warn?: ((text: string) => void) | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Whether to try again after a broken connection, 429, 502 and 503. Only what is safe to repeat is repeated. */
  readonly retry?: boolean | undefined;
  /** How long one attempt may take. */
  readonly timeoutMs?: number | undefined;
}

/** A request before it is sent. */
export interface RawCall extends CallOptions {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
}

/** An answer with any status. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  readonly headers: Headers;
}

const RETRIED_STATUSES = [429, 502, 503];

/** A client of one hub with one key. */
export class HubClient {
  readonly baseUrl: string;
  readonly backoff: Backoff;
  readonly clock: Clock;
  readonly warn: (text: string) => void;
  #key: string | undefined;
  readonly #fetch: typeof globalThis.fetch;
  #isVersionChecked = false;

  constructor(options: HubOptions) {
    this.baseUrl = parseHubUrl(options.hub);
    this.backoff = options.backoff ?? DEFAULT_BACKOFF;
    this.clock = options.clock ?? systemClock;
    this.warn = options.warn ?? ((text) => console.warn(text));
    this.#key = options.key;
    // Browsers refuse to call fetch as a method of another object.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Calls an operation of the contract by its name and returns the body of the answer. */
  async call<O extends OperationId>(operation: O, input: Input<O>, options: CallOptions = {}): Promise<Reply<O>> {
    const { value } = await this.callWithLink(operation, input, options);
    return value;
  }

  /** Like `call`, for the operations that wrap their answer in `data`. */
  async callForData<O extends OperationId>(operation: O, input: Input<O>, options: CallOptions = {}): Promise<ReplyData<O>> {
    const body: unknown = await this.call(operation, input, options);
    if (typeof body !== "object" || body === null || !("data" in body)) throw new AnswerError("it has no data");
    return body.data as ReplyData<O>;
  }

  /** Like `call`, with the `after` of the next page if the answer has one. */
  async callWithLink<O extends OperationId>(
    operation: O,
    input: Input<O>,
    options: CallOptions = {},
  ): Promise<{ value: Reply<O>; next: string | undefined }> {
    const answer = await this.send(buildCall(operation, input, options));
    const value = parseJson(answer.body) as Reply<O>;
    return { value, next: parseNextCursor(answer.headers.get("link")) };
  }

  /** Sends a request, as often as its options allow; an error status is thrown. */
  async send(call: RawCall): Promise<HttpAnswer> {
    for (let failures = 1; ; failures++) {
      const outcome = await this.#attempt(call);
      if (!(outcome instanceof ChorusError)) return outcome;
      const retryAfter = outcome.retryAfterMs ?? 0;
      const isTransient = outcome instanceof TransportError || RETRIED_STATUSES.includes(outcome.status ?? 0);
      // ERR_REGISTRY_FULL is a 429, but waiting does not free a slot.
      const isHopeless = outcome.code === "ERR_REGISTRY_FULL" || retryAfter > MAX_RETRY_AFTER_MS;
      if (call.retry !== true || !isTransient || isHopeless || failures >= MAX_ATTEMPTS) throw outcome;
      await this.clock.sleep(Math.max(delayAfter(this.backoff, failures), retryAfter), call.signal);
      call.signal?.throwIfAborted();
    }
  }

  /** Starts a request and returns the response before its body is read. */
  async open(call: RawCall & { stream?: ReadableStream<Uint8Array> | undefined }): Promise<Response> {
    const headers = new Headers(call.headers);
    if (!headers.has("accept")) headers.set("accept", "application/json");
    if (this.#key !== undefined) headers.set("authorization", `Bearer ${this.#key}`);
    if (call.body !== undefined) headers.set("content-type", "application/json");
    if (call.idempotencyKey !== undefined) headers.set("idempotency-key", call.idempotencyKey);
    // In a browser this header makes a request that other pages may not send.
    if (!("document" in globalThis)) headers.set("user-agent", `chorus-sdk-typescript/${VERSION}`);
    // A redirect would send the key to another host.
    const init: RequestInit & { duplex?: "half" } = { method: call.method, headers, redirect: "manual" };
    if (call.signal !== undefined) init.signal = call.signal;
    if (call.body !== undefined) init.body = call.body;
    if (call.stream !== undefined) {
      init.body = call.stream;
      init.duplex = "half";
    }
    try {
      return await this.#fetch(this.baseUrl + call.path, init);
    } catch (error) {
      call.signal?.throwIfAborted();
      throw this.transportError(error);
    }
  }

  /** The answer to a response, whose body must not be longer than the limit. */
  async read(response: Response): Promise<HttpAnswer> {
    const { status, headers } = response;
    if (response.body === null) return { status, headers, body: "" };
    const decoder = new TextDecoder();
    let body = "";
    let length = 0;
    // Not every browser iterates over a body.
    const reader = response.body.getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      length += read.value.byteLength;
      if (length > MAX_ANSWER_BYTES) {
        reader.cancel().catch(() => undefined);
        throw new AnswerError(`it is longer than ${MAX_ANSWER_BYTES} bytes`);
      }
      body += decoder.decode(read.value, { stream: true });
    }
    return { status, headers, body: body + decoder.decode() };
  }

  /** The cause without the URL, whose query may hold a token. */
  transportError(error: unknown): TransportError {
    let innermost = error;
    while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause;
    const code = innermost instanceof Error && "code" in innermost ? String(innermost.code) : "the connection failed";
    return new TransportError(`cannot reach ${new URL(this.baseUrl).origin}: ${code}`);
  }

  /** Uses this key from now on: the one before it was rotated. */
  replaceKey(key: string): void {
    this.#key = key;
  }

  /** Warns once if the hub is older than this package. */
  async checkVersion(signal?: AbortSignal): Promise<void> {
    if (this.#isVersionChecked) return;
    this.#isVersionChecked = true;
    const document = await this.call("get_discovery", {}, { signal, retry: true }).catch(() => undefined);
    const version = document?.server_version;
    if (version !== undefined && isOlderHub(version)) {
      this.warn(`chorus-sdk ${VERSION}: the hub is older (${version.slice(0, 32)}); some calls may be refused`);
    }
  }

  async #attempt(call: RawCall): Promise<HttpAnswer | ChorusError> {
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), call.timeoutMs ?? CALL_TIMEOUT_MS);
    const signal = call.signal === undefined ? timeout.signal : AbortSignal.any([call.signal, timeout.signal]);
    try {
      const answer = await this.read(await this.open({ ...call, signal }));
      return answer.status >= 200 && answer.status < 300 ? answer : errorOfAnswer(answer);
    } catch (error) {
      call.signal?.throwIfAborted();
      if (timeout.signal.aborted) return new TransportError(`${new URL(this.baseUrl).origin} did not answer in time`);
      return error instanceof ChorusError ? error : this.transportError(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** 128 random bits as hex, so that no two keys are equal. */
export function newIdempotencyKey(): string {
  return crypto.randomUUID().replaceAll("-", "");
}

/** The options of a write that is tried again under one key, so that it takes effect once. */
export function onceOptions(): CallOptions {
  return { retry: true, idempotencyKey: newIdempotencyKey() };
}

function buildCall<O extends OperationId>(operation: O, input: Input<O>, options: CallOptions): RawCall {
  const [method, template] = OPERATIONS[operation];
  const parts = input as { path?: object; query?: object; header?: object; body?: unknown };
  const segments = new Map(Object.entries(parts.path ?? {}).map(([name, value]) => [name, String(value)]));
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeSegment(segments.get(name) ?? ""));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const suffix = query.size > 0 ? `?${query}` : "";
  const headers = Object.entries(parts.header ?? {}).filter(([, value]) => value !== undefined);
  return {
    // Reading has no effect, so it is always safe to repeat.
    retry: method === "GET",
    ...options,
    method,
    path: path + suffix,
    headers: Object.fromEntries(headers.map(([name, value]) => [name, String(value)])),
    body: parts.body !== undefined ? JSON.stringify(parts.body) : method === "GET" || method === "DELETE" ? undefined : "{}",
  };
}

/** Percent-encodes one path segment. URLs have no way to write `..` as a name, encoded or not, so it is refused. */
export function encodeSegment(text: string): string {
  if (text === "" || text === "." || text === "..") throw new InputError("a name is empty or has only dots");
  return encodeURIComponent(text).replaceAll("%40", "@").replaceAll("%3A", ":");
}

/** The hub's URL without a trailing slash. */
export function parseHubUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  if (!isPlain || url.hash !== "" || url.search !== "") {
    throw new InputError("the hub is an http:// or https:// URL without user, query and fragment");
  }
  return url.href.replace(/\/+$/, "");
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AnswerError("it is not JSON");
  }
}

/** An error body: wrapped, bare as for frames, or the market's (R-13, FRM-83, R-65). */
export function errorOfAnswer(answer: HttpAnswer): ChorusError {
  const fields = findErrorFields(answer.body);
  const seconds = Number(answer.headers.get("retry-after") ?? "");
  return refusedError(fields?.message ?? `the hub answered with status ${answer.status}`, {
    code: fields?.code ?? `HTTP_${answer.status}`,
    status: answer.status,
    field: fields?.field,
    requestId: answer.headers.get("x-request-id") ?? undefined,
    retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
  });
}

function findErrorFields(body: string): { code: string; message: string; field: string | undefined } | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return undefined;
  }
  const object = (parsed ?? {}) as { error?: unknown } & Record<string, unknown>;
  const inner = (typeof object.error === "object" && object.error !== null ? object.error : object) as Record<string, unknown>;
  const code = inner["code"] ?? inner["error_code"];
  const message = inner["message"] ?? inner["error_message"];
  const field = typeof inner["field"] === "string" ? inner["field"] : undefined;
  return typeof code === "string" && typeof message === "string" ? { code, message, field } : undefined;
}

/** The `after` of the link to the next page. */
function parseNextCursor(link: string | null): string | undefined {
  const target = /^\s*<[^>]*\?([^>]*)>.*rel="next"/.exec(link ?? "")?.[1];
  return target === undefined ? undefined : (new URLSearchParams(target).get("after") ?? undefined);
}
