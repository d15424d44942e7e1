// The market of a real hub: skills, jobs, cancellation, pipelines and exact credits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Agent, Credits, InputError, JobFailedError, Refusal, registerAgent, type CreditText } from "chorus-sdk";
import { hub, type TestHub } from "chorus-sdk/testing";
import { Collector } from "./support.ts";

let server: TestHub;
before(async () => {
  server = await hub();
});
after(() => server.stop());

/** Runs the agent until the test ends; resolves when it takes jobs. */
async function start(t: { after(fn: () => Promise<void>): void }, agent: Agent): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    agent.run({ onOpen: resolve }).catch(reject);
  });
  t.after(() => agent.close());
}

test("a skill is offered, hired, paid, and withdrawn when its agent ends", async (t) => {
  const [worker, client] = [await server.agent("upper-worker"), await server.agent("upper-client")];
  worker.skill<{ text: string }, { text: string }>("upper", { cost: "0.10", input: { text: "string" } }, (input, { requester }) => {
    assert.equal(requester, client.id);
    return { text: input.text.toUpperCase() };
  });
  await start(t, worker);
  assert.deepEqual((await client.market.find("upper", { maxCost: "0.10" })).map(({ agent_id }) => agent_id), [worker.id]);
  const job = await client.market.hire("upper", { text: "hello" }, { budget: "0.15" });
  assert.deepEqual(job.output_data, { text: "HELLO" });
  assert.equal(String((await client.market.balance(client.id)).balance), "99.90");
  await assert.rejects(client.market.hire("upper", { wrong: 1 }, { budget: "0.15" }), { code: "SKILL_MISMATCH" });
  await worker.close();
  assert.deepEqual(await client.market.find("upper"), []);
});

test("a worker that throws, or takes too long, is a failed job without its text", async (t) => {
  const [worker, client] = [await server.agent("bad-worker"), await server.agent("bad-client")];
  worker.skill("throw", { cost: "0.01" }, () => {
    throw new Error("the password is hunter2");
  });
  worker.skill("refuse", { cost: "0.01" }, () => {
    throw new Refusal("NO_SUCH_CITY", "Atlantis is not on the map");
  });
  worker.skill("slow", { cost: "0.01", timeoutMs: 50 }, () => new Promise(() => undefined));
  await start(t, worker);
  const hire = (skill: string) => client.market.hire(skill, {}, { budget: "1" });
  await assert.rejects(hire("throw"), (error) => error instanceof JobFailedError && error.message === "the worker failed");
  await assert.rejects(hire("refuse"), (error) => error instanceof JobFailedError && error.message.includes("Atlantis"));
  await assert.rejects(hire("slow"), (error) => error instanceof JobFailedError && error.message.includes("too long"));
});

test("a job on the board is claimed, asked about, delivered, and approved or rejected", async () => {
  const [worker, client] = [await server.agent("board-worker"), await server.agent("board-client")];
  await worker.hub.call("put_skill", { path: { name: "board" }, body: { cost_per_call: 0.1 } as never });
  const report = (id: string, body: object) => worker.hub.call("report_job_result", { path: { id }, body: body as never });
  const states: string[] = [];
  for (const verdict of ["approve", "reject"] as const) {
    const { job_id: id } = await client.market.request("board", {}, { budget: "0.10", board: true, approveWithinMs: 3_600_000 });
    assert.deepEqual((await worker.market.board("board")).map(({ job_id }) => job_id), [id]);
    assert.equal((await worker.market.claim(id)).agent_id, worker.id);
    assert.equal((await report(id, { status: "PENDING", question: "in which language?" })).state, "input-required");
    assert.equal((await client.market.answer(id, "in French")).state, "dispatched");
    assert.equal((await report(id, { status: "SUCCESS", output_data: {} })).state, "delivered");
    states.push((await client.market[verdict](id)).state);
  }
  assert.deepEqual(states, ["done", "failed"]);
  for await (const event of client.inbox({ since: "0" })) {
    if (event.type !== "job_update" || event.job.question === undefined) continue;
    assert.equal(event.job.question, "in which language?");
    break;
  }
});

test("a cancelled job stops its handler, and the next job has its place", async (t) => {
  const [worker, client] = [await server.agent("cancel-worker"), await server.agent("cancel-client")];
  const events = new Collector<string>();
  worker.skill<{ name: string }>("wait", { cost: "0.01" }, async (input, { signal }) => {
    events.add(`begin ${input.name}`);
    if (input.name === "second") return {};
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    events.add(`stop ${input.name}`);
    return {};
  });
  await start(t, worker);
  const first = await client.market.request("wait", { name: "first" }, { budget: "0.01" });
  await events.waitFor(1);
  const second = client.market.hire("wait", { name: "second" }, { budget: "0.01" });
  await client.market.cancel(first.job_id);
  assert.equal((await second).status, "SUCCESS");
  assert.deepEqual((await events.waitFor(3)).toSorted(), ["begin first", "begin second", "stop first"]);
  assert.equal((await client.market.job(first.job_id)).state, "cancelled");
});

test("jobs run at once up to the concurrency", async (t) => {
  const client = await server.agent("many-client");
  const worker = await server.agent("many-worker");
  let running = 0;
  let most = 0;
  const gate = new Collector<void>();
  worker.skill("many", { cost: "0.01", concurrency: 3 }, async () => {
    most = Math.max(most, ++running);
    gate.add();
    await gate.waitFor(3);
    running -= 1;
    return "done";
  });
  await start(t, worker);
  const hires = Array.from({ length: 6 }, () => client.market.hire("many", {}, { budget: "0.01" }));
  const jobs = await Promise.all(hires);
  assert.ok(jobs.every(({ output_data }) => output_data === "done"));
  assert.equal(most, 3);
});

test("a job that a worker left behind is done by the next one", async (t) => {
  const client = await server.agent("left-client");
  const { agentId, key } = await registerAgent({ hub: server.url, name: "left-worker" });
  const taken = new Collector<void>();
  let free = (): void => undefined;
  const stuck = new Promise<void>((resolve) => (free = resolve));
  const first = new Agent({ hub: server.url, agentId, key }).skill("left", { cost: "0.01" }, () => {
    taken.add();
    return stuck;
  });
  // It does not end its job as long as the test runs, as a process that was killed.
  await new Promise<void>((resolve) => void first.run({ onOpen: resolve }));
  const hired = client.market.hire("left", {}, { budget: "0.01" });
  await taken.waitFor(1);
  const second = new Agent({ hub: server.url, agentId, key }).skill("left", { cost: "0.01" }, () => "by the second");
  await start(t, second);
  assert.equal((await hired).output_data, "by the second");
  free();
  await first.close();
});

test("a pipeline passes outputs on within one budget", async (t) => {
  const [worker, client] = [await server.agent("pipe-worker"), await server.agent("pipe-client")];
  worker.skill<number, number>("double", { cost: "0.30" }, (input) => input * 2);
  worker.skill<{ value: number }, string>("print", { cost: "0.20" }, (input) => `it is ${input.value}`);
  await start(t, worker);
  const steps = [{ skill: "double" }, { skill: "double" }, { skill: "print", input: (output: unknown) => ({ value: output }) }];
  assert.equal(await client.market.pipeline(5, steps, { budget: "0.80" }), "it is 20");
  await assert.rejects(client.market.pipeline(5, steps, { budget: "0.60" }), { code: "BUDGET_INSUFFICIENT" });
});

test("credits are exact: every amount up to 100.00 goes round unchanged", async () => {
  for (let hundredths = 1; hundredths <= 10_000; hundredths++) {
    const text = `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, "0")}` as CreditText;
    const credits = Credits.parse(text);
    const wire = JSON.stringify({ amount: credits });
    assert.match(wire, /^\{"amount":\d+(\.\d{1,2})?\}$/);
    assert.equal(Credits.fromWire((JSON.parse(wire) as { amount: number }).amount).toString(), text);
  }
  for (const bad of ["0.101", "-1", "1e1", "", "1."]) assert.throws(() => Credits.parse(bad as CreditText), InputError);
  // @ts-expect-error a binary float is a type error
  assert.throws(() => Credits.parse(0.1));
  const [payer, payee] = [await server.agent("payer"), await server.agent("payee")];
  await payer.market.transfer(payer.id, payee.id, "0.07");
  assert.equal(String((await payee.market.balance(payee.id)).balance), "100.07");
});
