// Channels of a real hub: rooms, invitations, deliveries and the five events of a callback.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ConflictError, NotFoundError, RefusedError, type ChannelRow } from "chorus-sdk";
import { hub, type TestHub } from "chorus-sdk/testing";
import { Collector } from "./support.ts";

let server: TestHub;
before(async () => {
  server = await hub();
});
after(() => server.stop());

test("an invited agent joins, hears a message and answers with all five events, in order", async () => {
  const alice = await server.agent("alice");
  const timber = await server.agent("timber");
  const heard = new Collector<string>();
  const joined = new Collector<void>();
  timber.onInvite(async (invite) => {
    await invite.accept();
    joined.add();
  });
  timber.onChannel(async (delivery) => {
    heard.add(`${delivery.channel.name} ${delivery.sender}: ${delivery.text}`);
    // Not awaited one by one: the calls keep their order by themselves.
    await Promise.all([
      delivery.callback.status("thinking"),
      delivery.callback.toolCall("tc_1", "weather", { place: "Oslo" }),
      delivery.callback.toolResult("tc_1", "3 degrees"),
      delivery.callback.message("It is cold."),
      delivery.callback.error("and dark", "tool_error"),
    ]);
  });
  const running = timber.run();
  const channel = await alice.channels.create("ops-team", { context: "Where the team meets." });
  await channel.add(timber.id);
  await joined.waitFor(1);
  assert.equal((await channel.info()).name, "ops-team");

  const rows = new Collector<ChannelRow>();
  const stopping = new AbortController();
  const read = async (): Promise<void> => {
    for await (const row of channel.stream({ since: "0", signal: stopping.signal })) rows.add(row);
  };
  const reading = read();
  await channel.post("@timber what is the weather in Oslo?");
  const kinds = (await rows.waitFor(7)).map(({ type }) => type);
  assert.deepEqual(kinds.slice(-6), ["message", "status", "tool_call", "tool_result", "message", "error"]);
  assert.deepEqual(heard.items, ["ops-team alice: @timber what is the weather in Oslo?"]);
  assert.equal((await channel.history({ limit: 2 })).at(-1)?.message, "and dark");
  stopping.abort();
  await reading;
  await timber.close();
  await running;
});

test("a stream of events over one request is shown line by line, and a refused one is an error", async () => {
  const owner = await server.agent("owner");
  const channel = await owner.channels.create("log");
  const member = await server.agent("logger");
  const { name } = await channel.add(member.id);
  const joined = member.channels.open(channel.id);
  await joined.accept(name);
  const callback = await joined.createCallback(name);
  const stream = callback.stream();
  for (const content of ["one", "two", "three"]) await stream.post({ type: "message", content });
  await stream.finish();
  const texts = (await channel.history()).filter(({ type }) => type === "message").map(({ content }) => content);
  assert.deepEqual(texts, ["one", "two", "three"]);

  const bad = callback.stream();
  await bad.post({ type: "nonsense" } as never);
  await assert.rejects(bad.finish(), RefusedError);
  await joined.createCallback(name);
  await assert.rejects(callback.message("too late"), (error) => error instanceof RefusedError && !error.message.includes("tok_"));
});

test("a message with one key is posted once, and a deleted channel is not found", async () => {
  const owner = await server.agent("second-owner");
  const channel = await owner.channels.create("short");
  await Promise.all([channel.post("once", { idempotencyKey: "k" }), channel.post("once", { idempotencyKey: "k" })]);
  assert.equal((await channel.history()).filter(({ type }) => type === "message").length, 1);
  assert.deepEqual((await owner.channels.list()).map(({ id }) => id), [channel.id]);
  await channel.delete();
  await assert.rejects(channel.info(), NotFoundError);
});

test("an artifact is created, edited from its version, and a member hears mentions only", async () => {
  const owner = await server.agent("artifact-owner");
  const guest = await server.agent("artifact-guest");
  const channel = await owner.channels.create("artifacts");
  assert.equal((await channel.createArtifact("auth-spec", "# Auth", { title: "Auth spec" })).version, 1);
  assert.equal((await channel.editArtifact("auth-spec", { find: "Auth", replace: "Access", version: 1 } as never)).version, 2);
  assert.equal((await channel.artifact("auth-spec")).content, "# Access");
  await assert.rejects(channel.editArtifact("auth-spec", { content: "late", version: 1 } as never), ConflictError);
  await channel.add({ agent: guest.id, name: "guest" });
  assert.equal((await channel.updateMember("guest", { deliver: "mentions" })).deliver, "mentions");
  await assert.rejects(channel.file("missing.png"), NotFoundError);
});
