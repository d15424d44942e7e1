// chorus-sdk/testing: starts the real hub for tests. There is no imitation of it.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentOptions } from "./agent.js";
import { START } from "./cursor.js";
import { registerAgent, type RegisterOptions } from "./register.js";
import { MemoryStore } from "./store.js";

export interface TestHubOptions {
  /** The program; otherwise `$CHORUS_BINARY`, or `chorus` on the path. */
  readonly binary?: string | undefined;
  /** Further options of `chorus serve`. */
  readonly args?: readonly string[] | undefined;
}

/** A hub in a temporary folder, on a free port of the loopback, without rate limits. */
export async function hub(options: TestHubOptions = {}): Promise<TestHub> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-hub-"));
  const test = new TestHub(folder, options);
  try {
    await test.start();
  } catch (error) {
    await test.stop();
    throw error;
  }
  return test;
}

export class TestHub {
  readonly #folder: string;
  readonly #options: TestHubOptions;
  #process: ChildProcess | undefined;
  #url = "";

  constructor(folder: string, options: TestHubOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  get url(): string {
    return this.#url;
  }

  /** Starts the hub, the second time on the same port and with the same data. */
  async start(): Promise<void> {
    const port = this.#url === "" ? "0" : new URL(this.#url).port;
    const binary = this.#options.binary ?? process.env["CHORUS_BINARY"] ?? "chorus";
    const limits = ["--rate-limit", "0", "--register-rate", "0", "--allow-private-endpoints"];
    const args = ["serve", "--listen", `127.0.0.1:${port}`, "--data-dir", join(this.#folder, "data"), ...limits, ...(this.#options.args ?? [])];
    // Settings of the user's own hub must not reach this one.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("CHORUS_")));
    const started = spawn(binary, args, { cwd: this.#folder, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = started;
    const killAtExit = (): boolean => started.kill("SIGKILL");
    process.once("exit", killAtExit);
    started.once("close", () => process.off("exit", killAtExit));
    this.#url = await readUrl(started, binary);
  }

  /** An agent of this hub, registered under this name. */
  async agent(name: string, options: Partial<RegisterOptions & AgentOptions> = {}): Promise<Agent> {
    const credentials = await registerAgent({ ...options, hub: this.#url, name });
    return new Agent({ store: new MemoryStore(START), culture: "en", ...options, ...credentials });
  }

  /** Ends the hub at once, as a power failure would. `start()` brings it back. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Stops the hub's threads where they are, until `resume()`. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  /** Ends the hub and removes its data. */
  async stop(): Promise<void> {
    this.resume();
    await this.#end("SIGTERM");
    await rm(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = once(running, "close");
    running.kill(signal);
    await ended;
  }
}

/** Reads the line in which the hub says that it is ready. */
function readUrl(started: ChildProcess, binary: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    let log = "";
    started.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const url = /^chorus listening on (\S+)/m.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    });
    started.stderr?.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4096)));
    started.once("error", () => reject(new Error(`${binary} could not be started; set CHORUS_BINARY`)));
    started.once("close", () => reject(new Error(`the hub ended before it was ready: ${log.trim()}`)));
  });
}
