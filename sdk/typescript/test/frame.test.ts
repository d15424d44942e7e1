// Frames between sessions of one handle on a real hub: announcements, questions, decisions and locks.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Agent, InputError, LockedError, systemClock, type FrameSession, type WatchedItem } from "chorus-sdk";
import { Agent as NodeAgent } from "chorus-sdk/node";
import { hub, type TestHub } from "chorus-sdk/testing";
import { Collector, temporaryFolder } from "./support.ts";

async function startSessions(t: TestContext): Promise<{ server: TestHub; agent: Agent; editor: FrameSession; script: FrameSession }> {
  const server = await hub();
  t.after(() => server.stop());
  const agent = await server.agent("alice", { backoff: { firstMs: 5, maxMs: 50 } });
  return { server, agent, editor: agent.session("cc-editor", "s1"), script: agent.session("script", "s2") };
}

/** Collects what a session sees until the test ends; resolves when it sees everything from now on. */
async function watch(t: TestContext, session: FrameSession, filter?: string): Promise<Collector<WatchedItem>> {
  const items = new Collector<WatchedItem>();
  const stopping = new AbortController();
  const read = async (): Promise<void> => {
    for await (const item of session.watch({ signal: stopping.signal, filter })) items.add(item);
  };
  const reading = read();
  t.after(async () => {
    stopping.abort();
    await reading;
  });
  await items.waitFor(1);
  return items;
}

test("what one session announces, the others hear, and a filter chooses", async (t) => {
  const { editor, script } = await startSessions(t);
  const all = await watch(t, script);
  const broadcasts = await watch(t, script, "kind:agent_broadcast");
  const advised = await editor.advise("moving the token check", { files: ["src/auth.rs"] });
  await editor.broadcast("the branch is merged", "merged", { refs: ["4f2c9e1"] });
  await editor.handover("The tests of the cart still fail.");
  assert.ok(advised.recipients >= 1);
  const kinds = (await all.waitFor(4)).map((item) => (item.type === "frame" ? item.frame.kind : item.type));
  assert.deepEqual(kinds, ["opened", "agent_advisory", "agent_broadcast", "agent_handover"]);
  assert.equal((await broadcasts.waitFor(2)).length, 2);
  assert.equal((await editor.roster()).sessions.length, 2);
});

// FRM-15, R-104: most models run on a server, and `local-only` says that nothing left the device
test("only a session that says so computed on the device", async (t) => {
  const { server, agent, script } = await startSessions(t);
  const credentials = join(await temporaryFolder(t), "bot.json");
  const named = await NodeAgent.register({ hub: server.url, name: "nell", credentials });
  const nells = await watch(t, named.session("script", "s2"));
  const heard = await watch(t, script);
  const compute = "local-only";
  await agent.session("cc-editor", "s1").advise("by a model on a server");
  await agent.session("cc-editor", "s1", { compute }).advise("by a model on the device");
  t.after(() => delete process.env["CHORUS_COMPUTE"]);
  process.env["CHORUS_COMPUTE"] = "server-aggregate";
  await named.session("cc-editor", "s1").advise("as the environment says");
  await named.session("cc-editor", "s1", { compute }).advise("as the program says");
  process.env["CHORUS_COMPUTE"] = "on the moon";
  assert.throws(() => named.session("cc-editor", "s1"), InputError);
  const locations = (items: WatchedItem[]) => items.flatMap((item) => (item.type === "frame" ? [item.frame.provenance_compute_location] : []));
  assert.deepEqual(locations(await heard.waitFor(3)), ["server-active", "local-only"]);
  assert.deepEqual(locations(await nells.waitFor(3)), ["server-aggregate", "local-only"]);
});

test("a question gets the answers of its window, and a decision gets its answer", async (t) => {
  const { editor, script } = await startSessions(t);
  const stopping = new AbortController();
  const items = new Collector<WatchedItem>();
  const answering = async (): Promise<void> => {
    for await (const item of script.watch({ signal: stopping.signal })) {
      items.add(item);
      if (item.type !== "frame") continue;
      if (item.frame.kind === "agent_query") await script.answer(item.frame, "yes, the importer");
      if (item.frame.kind === "agent_binding_moment") {
        const { frame_id: id } = item.frame;
        await script.send("agent_response", { query_id: id, response_text: "At night", responder_session_id: "s2", responded_to_frame_id: id });
      }
    }
  };
  const answered = answering();
  // A session that is not open yet hears no question.
  await items.waitFor(1);
  const answers: string[] = [];
  for await (const frame of editor.ask("does anything use the old format?", { windowMs: 10_000 })) {
    answers.push(frame.payload.response_text);
    break;
  }
  assert.deepEqual(answers, ["yes, the importer"]);
  const options = [
    { label: "Now", reasoning: "It is ready." },
    { label: "At night", reasoning: "The lock goes unnoticed." },
  ];
  const question = { stem: "When shall it run?", options, recommended_idx: 1 };
  const decision = await editor.decide({ synopsis: "It is ready.", findings: [], recommendations: [], offer: "I can start it.", question }, { timeoutMs: 10_000 });
  assert.equal(decision, "At night");
  stopping.abort();
  await answered;
});

test("a claim keeps another session out until it is released, also by an exception", async (t) => {
  const { editor, script } = await startSessions(t);
  await assert.rejects(
    async () => {
      await using lock = await editor.lock("src", { intent: "moving files" });
      assert.equal(lock.resource, "src");
      await assert.rejects(script.lock("src/auth.rs"), LockedError);
      throw new Error("the work failed");
    },
    /the work failed/,
  );
  const held = await script.lock("src/auth.rs");
  const waiting = editor.lock("src/auth.rs", { wait: true });
  await held.release();
  await (await waiting).release();
});

test("of two sessions that claim at once, one has it", async (t) => {
  const { editor, script } = await startSessions(t);
  const results = await Promise.allSettled([editor.lock("main.rs"), script.lock("main.rs")]);
  const held = results.filter((result) => result.status === "fulfilled");
  assert.equal(held.length, 1);
  for (const result of results) if (result.status === "rejected") assert.ok(result.reason instanceof LockedError);
  for (const result of held) await result.value.release();
});

test("frames that the hub no longer has are a gap", async (t) => {
  const { server, editor, script } = await startSessions(t);
  const items = await watch(t, script);
  await editor.advise("before");
  await items.waitFor(2);
  await server.kill();
  await server.start();
  const types = (await items.waitFor(4)).map(({ type }) => type);
  assert.deepEqual([types.slice(0, 2), types.slice(2).sort()], [["opened", "frame"], ["gap", "opened"]]);
});

// FRM-11: what says itself how long it is valid stays, and so does what has a time to live.
test("without a time to live a frame is news for an hour", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const minute = 60_000;
  let offset = -61 * minute;
  const agent = await server.agent("alice", { clock: { ...systemClock, now: () => Date.now() + offset } });
  const editor = agent.session("cc-editor", "s1");
  await editor.advise("old news");
  await editor.send("agent_advisory", { advisory_text: "for a day" }, { ttlMs: 24 * 60 * minute });
  await editor.handover("half done");
  offset = 0;
  await editor.advise("fresh");
  const { frames, live } = await agent.session("script", "s2").replay();
  await live.return();
  const kinds = frames.map((frame) => (frame.kind === "agent_advisory" ? frame.payload.advisory_text : frame.kind));
  assert.deepEqual(kinds, ["for a day", "agent_handover", "fresh"]);
});
