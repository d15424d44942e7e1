// Messages between agents of a real hub: answers, receipts, replies, questions, and sends that are repeated.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect } from "node:util";
import { AuthenticationError, DeliveryError, ForbiddenError, InvalidRequestError, NotFoundError, Refusal, WaitTimeoutError, type Agent, type InboxEvent } from "chorus-sdk";
import { hub, type TestHub } from "chorus-sdk/testing";
import { Collector } from "./support.ts";

let server: TestHub;
before(async () => {
  server = await hub();
});
after(() => server.stop());

let number = 0;
/** Two agents with new names. */
async function pair(): Promise<[Agent, Agent]> {
  number += 1;
  return [await server.agent(`sender-${number}`), await server.agent(`receiver-${number}`)];
}

/** Runs the agent until the test ends; resolves when it listens. */
async function start(t: { after(fn: () => Promise<void>): void }, agent: Agent): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    agent.run({ onOpen: resolve }).catch(reject);
  });
  t.after(() => agent.close());
}

test("a message arrives with what its sender wrote, and the iterator answers nothing by itself", async () => {
  const [alice, bob] = await pair();
  const sent = await alice.send(bob.id, "Shall we meet?", { conversationId: "c1", turnNumber: 1, culturalContext: "A friendly question.", culture: "fr" });
  assert.equal(sent.delivery, "queued");
  for await (const event of bob.inbox({ since: "0" })) {
    assert.ok(event.type === "message");
    assert.deepEqual([event.sender, event.text, event.conversationId, event.turnNumber, event.culture], [alice.id, "Shall we meet?", "c1", 1, "fr"]);
    assert.equal((await alice.status(sent.traceId)).acknowledged_at, undefined);
    await event.ack();
    await event.fail("LATER", "the first answer stands");
    break;
  }
  const status = await alice.status(sent.traceId);
  assert.deepEqual([status.status, status.receiver_response], ["acknowledged", { status: "ok" }]);
});

test("a handler that returns is ok, one that throws is an error without its text, and a refusal shows its own", async (t) => {
  const [alice, bob] = await pair();
  bob.onMessage((message) => {
    if (message.text === "throw") throw new Error("the password is hunter2");
    if (message.text === "refuse") throw new Refusal("TOO_LATE", "the shop is closed");
  });
  await start(t, bob);
  const answers = [];
  for (const text of ["fine", "throw", "refuse"]) answers.push((await alice.send(bob.id, text, { wait: "receipt" })).response);
  assert.deepEqual(answers, [
    { status: "ok" },
    { status: "error", error_code: "ADAPTATION_FAILED", detail: "the receiver failed to handle the message" },
    { status: "error", error_code: "TOO_LATE", detail: "the shop is closed" },
  ]);
  const refused = await alice.send(bob.id, "refuse", { wait: "receipt" });
  assert.throws(() => refused.ok(), (error) => error instanceof DeliveryError && error.code === "TOO_LATE");
});

test("a handler may wait for answers of its own", async (t) => {
  const [alice, bob] = await pair();
  const carol = await server.agent(`third-${number}`);
  carol.onMessage(() => undefined);
  const heard = new Collector<string>();
  bob.onMessage(async () => {
    heard.add((await bob.send(carol.id, "and you?", { wait: "receipt" })).response?.status ?? "none");
  });
  await start(t, carol);
  await start(t, bob);
  (await alice.send(bob.id, "ask carol", { wait: "receipt" })).ok();
  assert.deepEqual(await heard.waitFor(1), ["ok"]);
});

test("ask returns the reply of the same conversation, while the agent runs and while it does not", async (t) => {
  const [alice, bob] = await pair();
  bob.onMessage(async (message) => {
    await message.reply(`${message.text} ${message.turnNumber}`);
  });
  await start(t, bob);
  const first = await alice.ask(bob.id, "one");
  assert.deepEqual([first.text, first.turnNumber], ["one 1", 2]);
  const sent = await alice.send(bob.id, "again", { wait: "answer" });
  assert.deepEqual([sent.answer?.text, sent.answer?.sender], ["again 1", bob.id]);
  const unexpected: InboxEvent[] = [];
  alice.onMessage((message) => unexpected.push(message));
  await start(t, alice);
  const second = await alice.ask(bob.id.split("@")[0] ?? "", "two", { conversationId: "given", turnNumber: 7 });
  assert.deepEqual([second.text, second.conversationId, second.turnNumber], ["two 7", "given", 8]);
  assert.deepEqual(unexpected, []);
});

//
test("a sender waits until its message was shown, with and without a stream of its own", async (t) => {
  const [alice, bob] = await pair();
  const show = async (): Promise<void> => {
    for await (const event of bob.inbox({ since: "0" })) {
      if (event.type !== "message" || event.text !== "look") continue;
      await event.markShown();
      await event.markShown();
      break;
    }
  };
  const [sent] = await Promise.all([alice.send(bob.id, "look", { wait: "shown" }), show()]);
  const status = await alice.status(sent.traceId);
  assert.ok(sent.shownAt !== undefined && status.shown_at === sent.shownAt, "the first time stands");
  assert.deepEqual([sent.response, status.receiver_response], [undefined, undefined], "it is no receipt");
  for await (const event of alice.inbox({ since: "0" })) {
    assert.ok(event.type === "shown");
    assert.deepEqual([event.traceId, event.receiver, event.timestamp], [sent.traceId, bob.id, sent.shownAt]);
    break;
  }
  await assert.rejects(alice.hub.call("mark_message_shown", { path: { trace_id: sent.traceId } }), NotFoundError);
  bob.onMessage((message) => message.markShown());
  alice.onReceipt(() => undefined);
  await start(t, alice);
  await start(t, bob);
  assert.ok((await alice.send(bob.id, "and now?", { wait: "shown" })).shownAt !== undefined);
});

test("a message that is acknowledged and not shown is a timeout of a wait for shown", async (t) => {
  const [alice, bob] = await pair();
  bob.onMessage(() => undefined);
  await start(t, bob);
  assert.equal((await alice.status((await alice.send(bob.id, "hello", { wait: "receipt" })).traceId)).shown_at, undefined);
  await assert.rejects(alice.send(bob.id, "hello?", { wait: "shown", timeoutMs: 300 }), WaitTimeoutError);
});

test("a turn that comes again is answered as the first time and not handled again", async (t) => {
  const [alice, bob] = await pair();
  const handled: string[] = [];
  bob.onMessage((message) => {
    handled.push(message.text);
    throw new Refusal("NO", "not today");
  });
  await start(t, bob);
  const options = { conversationId: "c", turnNumber: 3, wait: "receipt" } as const;
  const answers = [await alice.send(bob.id, "first", options), await alice.send(bob.id, "again", options)].map(({ response }) => response);
  assert.deepEqual(answers[0], { status: "error", error_code: "NO", detail: "not today" });
  assert.deepEqual(answers[1], answers[0]);
  assert.deepEqual(handled, ["first"]);
});

test("two racing sends with one key are one message", async () => {
  const [alice, bob] = await pair();
  const race = Array.from({ length: 8 }, () => alice.send(bob.id, "once", { idempotencyKey: "same" }));
  const traces = new Set((await Promise.all(race)).map(({ traceId }) => traceId));
  assert.equal(traces.size, 1);
  assert.equal((await bob.history()).length, 1);
  await assert.rejects(alice.send(bob.id, "other text", { idempotencyKey: "same" }), { code: "ERR_IDEMPOTENCY_CONFLICT", status: 409 });
});

test("a receiver that does not answer is a timeout, and a failed delivery is an outcome", async () => {
  const [alice, bob] = await pair();
  await assert.rejects(alice.send(bob.id, "hello?", { wait: "receipt", timeoutMs: 300 }), WaitTimeoutError);
  const dead = await server.agent(`dead-${number}`, { endpoint: "http://127.0.0.1:9/" });
  const sent = await alice.send(dead.id, "hello?");
  assert.deepEqual([sent.delivery, sent.errorCode], ["failed", "ERR_AGENT_UNREACHABLE"]);
  assert.throws(() => sent.ok(), DeliveryError);
});

test("errors have a class by what one can do, with the hub's code and request id, and no key", async () => {
  const [alice, bob] = await pair();
  await assert.rejects(alice.send("missing@chorus", "x"), (error) => error instanceof NotFoundError && error.code === "ERR_AGENT_NOT_FOUND" && error.requestId !== undefined);
  await assert.rejects(alice.send(bob.id, ""), InvalidRequestError);
  const { Agent } = await import("chorus-sdk");
  const wrongKey = `ca_${"0".repeat(32)}`;
  const stranger = new Agent({ hub: server.url, agentId: alice.id, key: wrongKey, culture: "en" });
  await assert.rejects(stranger.send(bob.id, "x"), (error) => {
    assert.ok(error instanceof AuthenticationError);
    assert.ok(!JSON.stringify({ ...error, message: error.message, stack: error.stack }).includes(wrongKey));
    return true;
  });
  assert.ok(!inspect(stranger, { depth: 9 }).includes(wrongKey) && !JSON.stringify(stranger).includes(wrongKey));
  await bob.hub.call("put_block", { path: { name: alice.id } });
  await assert.rejects(alice.send(bob.id, "x"), (error) => error instanceof ForbiddenError && error.code === "ERR_BLOCKED" && !error.retryable);
});
