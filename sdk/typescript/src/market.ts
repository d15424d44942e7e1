// The market: find offers, hire, pay (docs/market.md).
import { Credits, type CreditText } from "./credits.js";
import { INBOX_PATH } from "./inbox.js";
import { JobFailedError, InputError } from "./errors.js";
import { newIdempotencyKey, onceOptions, parseJson, type HubClient } from "./hub.js";
import { dropUndefined } from "./channel.js";
import { LIVE } from "./cursor.js";
import { MAX_PAGES } from "./limits.js";
import { EventStream } from "./stream.js";
import type { FoundAgent, Job, Reply } from "./wire.js";

const CURRENCY = "chorus_credits_v1";

export interface HireOptions {
  /** The most that it may cost. */
  readonly budget: Credits | CreditText;
  /** Put the job on the board, where the first agent with the skill that claims it gets it. */
  readonly board?: boolean | undefined;
  /** Pay a job on the board when its delivery was approved, or not rejected in this time. */
  readonly approveWithinMs?: number | undefined;
  /** The worker; otherwise the best offer within the budget. */
  readonly agent?: string | undefined;
  /** How long the worker may take. */
  readonly deadlineMs?: number | undefined;
  /** Your own id makes a repeated request the same job. */
  readonly jobId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface PipelineStep {
  readonly skill: string;
  readonly agent?: string | undefined;
  /** At most this much for this step; otherwise what is left. */
  readonly budget?: Credits | CreditText | undefined;
  readonly deadlineMs?: number | undefined;
  /** The input of the step, made from the output of the one before it; otherwise that output. */
  readonly input?: ((output: unknown, firstInput: unknown) => unknown) | undefined;
}

export class Market {
  readonly hub: HubClient;
  readonly agentId: string;

  constructor(hub: HubClient, agentId: string) {
    this.hub = hub;
    this.agentId = agentId;
  }

  /** The agents that offer a skill, best first. */
  async find(skill: string, options: { maxCost?: Credits | CreditText; minReputation?: number; limit?: number } = {}): Promise<FoundAgent[]> {
    const limit = options.limit ?? 50;
    const query = dropUndefined({
      skill,
      limit,
      min_reputation: options.minReputation,
      max_cost: options.maxCost === undefined ? undefined : Credits.parse(options.maxCost).toString(),
    });
    const found: FoundAgent[] = [];
    let after: string | undefined;
    for (let page = 0; page < MAX_PAGES && found.length < limit; page++) {
      const { value, next } = await this.hub.callWithLink("discover_agents", { query: { ...query, ...(after === undefined ? {} : { after }) } as never });
      if (!("agents" in value)) break;
      found.push(...value.agents);
      after = next;
      if (after === undefined) break;
    }
    return found.slice(0, limit);
  }

  /** Requests a job and returns it as it is then. The job's id is chosen here, so a retry is the same job. */
  request(skill: string, input: unknown, options: HireOptions): Promise<Job> {
    const body = dropUndefined({
      job_id: options.jobId ?? crypto.randomUUID(),
      agent_id: options.agent,
      skill_name: skill,
      input_data: input,
      budget: Credits.parse(options.budget).toJSON(),
      currency: CURRENCY,
      deadline_ms: options.deadlineMs,
      board: options.board,
      approve_within_ms: options.approveWithinMs,
    });
    return this.hub.call("request_job", { body: body as never }, { retry: true, signal: options.signal });
  }

  /** Requests a job and waits for its output. A job that fails is a `JobFailedError`. */
  async hire(skill: string, input: unknown, options: HireOptions): Promise<Job> {
    const jobId = options.jobId ?? crypto.randomUUID();
    const listening = new AbortController();
    const signal = options.signal === undefined ? listening.signal : AbortSignal.any([options.signal, listening.signal]);
    const stream = new EventStream(this.hub, INBOX_PATH, { since: LIVE, signal });
    try {
      // Opened before the request, so that the result is not missed.
      await stream.next();
      let job = await this.request(skill, input, { ...options, jobId });
      while (job.status === "PENDING") {
        const event = await stream.next();
        if (event === undefined) options.signal?.throwIfAborted();
        const isResult = event?.name === "job_result" && (parseJson(event.data) as Job).job_id === jobId;
        if (isResult || event?.name === "connected") job = await this.job(jobId);
      }
      return checkSuccess(job);
    } finally {
      listening.abort();
      stream.close();
    }
  }

  /** Several hires in a row within one budget; each output is the input of the next. A step that fails ends it. */
  async pipeline(input: unknown, steps: readonly PipelineStep[], options: { budget: Credits | CreditText; signal?: AbortSignal }): Promise<unknown> {
    let left = Credits.parse(options.budget);
    let output = input;
    for (const step of steps) {
      if (left.hundredths === 0) throw new InputError("nothing of the budget is left", "BUDGET_INSUFFICIENT");
      const own = step.budget === undefined ? left : Credits.parse(step.budget);
      const budget = own.isLessThan(left) ? own : left;
      const stepInput = step.input === undefined ? output : step.input(output, input);
      const { agent, deadlineMs } = step;
      const job = await this.hire(step.skill, stepInput, { budget, agent, deadlineMs, signal: options.signal });
      left = left.minus(job.execution_cost === null ? budget : Credits.fromWire(job.execution_cost));
      output = job.output_data;
    }
    return output;
  }

  job(jobId: string): Promise<Job> {
    return this.hub.call("get_job", { path: { id: jobId } });
  }

  cancel(jobId: string): Promise<Job> {
    return this.hub.call("cancel_job", { path: { id: jobId } }, { retry: true });
  }

  /** The jobs that can be claimed, oldest first. */
  async board(skill?: string): Promise<Job[]> {
    return (await this.hub.call("list_board", { query: skill === undefined ? {} : { skill } })).jobs;
  }

  /** Takes a job from the board; the first claim has it. Report within the lease, or it goes back. */
  claim(jobId: string): Promise<Job> {
    return this.hub.call("claim_job", { path: { id: jobId } }, onceOptions());
  }

  /** Approves a delivery, which pays its worker. */
  approve(jobId: string): Promise<Job> {
    return this.hub.call("approve_job", { path: { id: jobId } }, onceOptions());
  }

  /** Rejects a delivery that waits for approval; its worker reads the reason. */
  reject(jobId: string, reason?: string): Promise<Job> {
    const input = { path: { id: jobId }, body: reason === undefined ? {} : { reason } };
    return this.hub.call("reject_job", input, onceOptions());
  }

  /** Answers the question of a worker, which then gets the job again. */
  answer(jobId: string, answer: string): Promise<Job> {
    const input = { path: { id: jobId }, body: { answer } };
    return this.hub.call("answer_job_question", input, onceOptions());
  }

  /** What an owner has, and what is held for its jobs. */
  async balance(owner: string): Promise<{ balance: Credits; held: Credits }> {
    const account = await this.hub.call("get_account", { path: { owner } });
    return { balance: Credits.fromWire(account.balance), held: Credits.fromWire(account.held) };
  }

  /** Pays another owner. The id is the same in every attempt, so it is paid once. */
  transfer(from: string, to: string, amount: Credits | CreditText): Promise<Reply<"transfer_credits">> {
    const body = { transfer_id: newIdempotencyKey(), from_owner: from, to_owner: to, amount: Credits.parse(amount).toJSON() };
    return this.hub.call("transfer_credits", { body }, { retry: true });
  }
}

function checkSuccess(job: Job): Job {
  if (job.status === "SUCCESS") return job;
  throw new JobFailedError(job.error_message ?? "the job failed", { code: job.error_code ?? "EXECUTION_ERROR" });
}
