// Offers a skill and does its jobs: several at once, within a time, and none that was cancelled.
import { Credits, type CreditText } from "./credits.js";
import { dropUndefined } from "./channel.js";
import { ChorusError, ConflictError, Refusal } from "./errors.js";
import type { Market } from "./market.js";
import type { DispatchedJob, Job } from "./wire.js";

/** A JSON Schema, the short form `{ text: "string" }`, or an object with a method that makes one, as zod's types have. */
export type SkillSchema = Readonly<Record<string, unknown>> | { toJSONSchema(): unknown };

export interface SkillOptions {
  /** The price of one job, such as `"0.10"`. */
  readonly cost: Credits | CreditText;
  readonly description?: string | undefined;
  readonly input?: SkillSchema | undefined;
  readonly output?: SkillSchema | undefined;
  /** Jobs at once; 1 unless set. */
  readonly concurrency?: number | undefined;
  /** How long a job may take; 60 seconds unless set. */
  readonly timeoutMs?: number | undefined;
}

export interface JobContext {
  readonly jobId: string;
  readonly requester: string;
  /** Aborts when the job was cancelled, has expired, or takes too long. */
  readonly signal: AbortSignal;
}

export type SkillHandler<In, Out> = (input: In, context: JobContext) => Promise<Out> | Out;

type WaitingJob = Pick<DispatchedJob, "job_id" | "orchestrator_id" | "input_data">;

export class SkillWorker {
  readonly #market: Market;
  readonly #name: string;
  readonly #options: SkillOptions;
  readonly #handler: SkillHandler<unknown, unknown>;
  #queue: WaitingJob[] = [];
  readonly #running = new Map<string, AbortController>();
  readonly #tasks = new Set<Promise<void>>();
  #isStopping = false;

  constructor(market: Market, name: string, options: SkillOptions, handler: SkillHandler<unknown, unknown>) {
    this.#market = market;
    this.#name = name;
    this.#options = options;
    this.#handler = handler;
  }

  async publish(): Promise<void> {
    const { cost, description, input, output } = this.#options;
    const body = dropUndefined({
      cost_per_call: Credits.parse(cost).toJSON(),
      description,
      input_schema: readSchema(input),
      output_schema: readSchema(output),
    });
    this.#isStopping = false;
    await this.#market.hub.call("put_skill", { path: { name: this.#name }, body: body as never }, { retry: true });
  }

  /** A job that waits until its deadline costs reputation, so a skill is withdrawn when its worker ends. */
  async withdraw(): Promise<void> {
    await this.#market.hub.call("withdraw_skill", { path: { name: this.#name } }, { retry: true }).catch((error: unknown) => {
      this.#market.hub.warn(`chorus-sdk: the skill could not be withdrawn: ${error instanceof ChorusError ? error.message : "it failed"}`);
    });
  }

  /** Jobs that came before the stream was open are still pending, and some that run here may have ended. */
  onConnected(): void {
    this.#track(this.#synchronize());
  }

  offer(job: WaitingJob & { skill_name: string }): void {
    const isKnown = this.#running.has(job.job_id) || this.#queue.some((waiting) => waiting.job_id === job.job_id);
    if (job.skill_name !== this.#name || isKnown || this.#isStopping) return;
    this.#queue.push(job);
    this.#startJobs();
  }

  /** A worker hears of a job that was cancelled or has expired. */
  onEnded(job: Job): void {
    if (job.state === "cancelled" || job.state === "expired") this.#drop(job.job_id);
  }

  /** Running jobs are finished; jobs in the queue stay pending at the hub. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#queue = [];
    await Promise.all(this.#tasks);
  }

  async #synchronize(): Promise<void> {
    const { hub } = this.#market;
    const { jobs } = await hub.call("list_jobs", { query: { role: "worker", status: "PENDING" } });
    for (const jobId of this.#running.keys()) {
      if (jobs.some((job) => job.job_id === jobId)) continue;
      if ((await this.#market.job(jobId)).status !== "PENDING") this.#drop(jobId);
    }
    for (const job of jobs) this.offer({ ...job, input_data: job.input_data ?? null });
  }

  #drop(jobId: string): void {
    this.#queue = this.#queue.filter((job) => job.job_id !== jobId);
    this.#running.get(jobId)?.abort(new Error("the job has ended"));
    this.#running.delete(jobId);
  }

  #startJobs(): void {
    while (this.#running.size < (this.#options.concurrency ?? 1)) {
      const job = this.#queue.shift();
      if (job === undefined) return;
      const controller = new AbortController();
      this.#running.set(job.job_id, controller);
      this.#track(this.#runJob(job, controller));
    }
  }

  #track(work: Promise<void>): void {
    const task = work
      .catch((error: unknown) => {
        this.#market.hub.warn(`chorus-sdk: a job was not finished: ${error instanceof ChorusError ? error.message : "it failed"}`);
      })
      .finally(() => {
        this.#tasks.delete(task);
        if (!this.#isStopping) this.#startJobs();
      });
    this.#tasks.add(task);
  }

  async #runJob(job: WaitingJob, controller: AbortController): Promise<void> {
    const { clock } = this.#market.hub;
    const began = clock.now();
    const result = await this.#runHandler(job, controller);
    // A job that was dropped has ended at the hub, and another may run in its place.
    if (this.#running.get(job.job_id) !== controller) return;
    const body = { ...result, job_id: job.job_id, agent_id: this.#market.agentId, execution_time_ms: Math.round(clock.now() - began) };
    try {
      await this.#market.hub.call("report_job_result", { path: { id: job.job_id }, body: body as never }, { retry: true });
    } catch (error) {
      // It ended in the meantime, so the result does not count.
      if (!(error instanceof ConflictError)) throw error;
    } finally {
      this.#running.delete(job.job_id);
    }
  }

  async #runHandler(job: WaitingJob, controller: AbortController): Promise<object> {
    const { clock } = this.#market.hub;
    const { signal } = controller;
    const finished = new AbortController();
    const work = Promise.resolve().then(() => this.#handler(job.input_data, { jobId: job.job_id, requester: job.orchestrator_id, signal }));
    const aborted = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));
    void clock.sleep(this.#options.timeoutMs ?? 60_000, finished.signal).then(() => {
      if (!finished.signal.aborted) controller.abort(new Refusal("EXECUTION_ERROR", "the job took too long"));
    });
    try {
      return { status: "SUCCESS", output_data: (await Promise.race([work, aborted])) ?? null, error_message: null };
    } catch (error) {
      // Only a refusal shows its text: other exceptions may contain secrets.
      const refusal = error instanceof Refusal ? error : new Refusal("EXECUTION_ERROR", "the worker failed");
      return { status: "FAILURE", output_data: null, error_code: refusal.code, error_message: refusal.message };
    } finally {
      finished.abort();
    }
  }
}

function readSchema(schema: SkillSchema | undefined): unknown {
  if (schema !== undefined && "toJSONSchema" in schema && typeof schema.toJSONSchema === "function") {
    const { $schema: _, ...rest } = (schema.toJSONSchema as () => Record<string, unknown>)();
    return rest;
  }
  return schema;
}
