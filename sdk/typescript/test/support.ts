// What the tests share: a proxy that breaks connections, and promises that events resolve.
import { createServer, type AddressInfo, type Server, type Socket, connect } from "node:net";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Clock } from "chorus-sdk";

export const BINARY = process.env["CHORUS_BINARY"] ?? "chorus";

/** A folder that is removed after the test. */
export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-sdk-test-"));
  // A process that is about to end may still write a file.
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return folder;
}

/** Runs the command line; resolves with its exit code, whatever it is. */
export function runChorus(args: string[], env: Record<string, string> = {}): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(BINARY, args, { env: { PATH: process.env["PATH"], ...env } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

/** Between a client and a hub on the loopback; `shape` sees what the hub sends and may end the connection. */
export interface ProxyOptions {
  /** What to pass on of a piece of an answer, and whether to cut the connection after it. */
  readonly shape?: (() => (piece: string) => { text: string; cut: boolean }) | undefined;
  /** What to pass on of a piece of a request. */
  readonly rewrite?: ((piece: string) => string) | undefined;
  /** Accept connections and say nothing, as long as this is true. */
  readonly isSilent?: (() => boolean) | undefined;
}

export class Proxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  connections = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(t: TestContext, hubUrl: string, options: ProxyOptions): Promise<Proxy> {
    const { hostname, port } = new URL(hubUrl);
    const proxy: Proxy = new Proxy(
      createServer((client) => {
        proxy.connections += 1;
        proxy.#track(client);
        if (options.isSilent?.() === true) return;
        const upstream = proxy.#track(connect(Number(port), hostname));
        const shape = options.shape?.();
        client.on("data", (chunk: Buffer) => {
          const text = chunk.toString("latin1");
          upstream.write(Buffer.from(options.rewrite?.(text) ?? text, "latin1"));
        });
        upstream.on("data", (chunk: Buffer) => {
          if (shape === undefined) return void client.write(chunk);
          const { text, cut } = shape(chunk.toString("latin1"));
          client.write(Buffer.from(text, "latin1"), () => {
            if (cut) client.destroy();
          });
        });
        upstream.on("close", () => client.destroy());
        client.on("close", () => upstream.destroy());
      }),
    );
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    t.after(() => proxy.stop());
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #track(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => this.#sockets.delete(socket));
    return socket;
  }
}

/** A shape that ends a connection after so many events with an id, and lets the client come back at once. */
export function cutAfterEvents(count: number): () => (piece: string) => { text: string; cut: boolean } {
  return () => {
    let seen = 0;
    return (piece) => {
      // The hub writes chunks with their length, so the number keeps its width.
      const text = piece.replaceAll("retry: 2000", "retry: 0001");
      let at = -1;
      while (seen < count && (at = text.indexOf("\nid: ", at + 1)) >= 0) seen += 1;
      const end = seen < count ? -1 : text.indexOf("\n\n", at);
      return end < 0 ? { text, cut: false } : { text: text.slice(0, end + 2), cut: true };
    };
  };
}

/** A clock that moves only when the test says so. */
export class TestClock implements Clock {
  #now = Date.parse("2026-11-16T12:00:00Z");
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper = { at: this.#now + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        resolve();
      });
    });
  }

  /** Moves on, and wakes what is due, in order. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    for (;;) {
      await settle();
      const next = this.#sleepers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.at);
      this.#sleepers = this.#sleepers.filter((sleeper) => sleeper !== next);
      next.wake();
    }
    this.#now = until;
    await settle();
  }
}

/** Lets everything run that waits for nothing outside. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
}

/** Collects events and resolves when there are enough. */
export class Collector<T> {
  readonly items: T[] = [];
  #waiters: { count: number; resolve: () => void }[] = [];

  add(item: T): void {
    this.items.push(item);
    this.#waiters = this.#waiters.filter(({ count, resolve }) => {
      if (this.items.length < count) return true;
      resolve();
      return false;
    });
  }

  async waitFor(count: number): Promise<T[]> {
    if (this.items.length < count) await new Promise<void>((resolve) => this.#waiters.push({ count, resolve }));
    return this.items;
  }
}
