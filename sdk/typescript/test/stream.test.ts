// Streams through hubs and proxies that fail: nothing is lost and nothing comes twice.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Agent, AuthenticationError, MemoryStore, type InboxOptions } from "chorus-sdk";
import { hub, type TestHub } from "chorus-sdk/testing";
import { Collector, cutAfterEvents, Proxy } from "./support.ts";

const FAST = { firstMs: 5, maxMs: 50 };

async function startHub(t: TestContext): Promise<TestHub> {
  const server = await hub();
  t.after(() => server.stop());
  return server;
}

/** Collects the texts of an inbox until the test ends. */
function collect(t: TestContext, agent: Agent, options: InboxOptions = {}): Collector<string> {
  const texts = new Collector<string>();
  const stopping = new AbortController();
  const read = async (): Promise<void> => {
    for await (const event of agent.inbox({ since: "0", ...options, signal: stopping.signal })) {
      if (event.type === "message") texts.add(event.text);
    }
  };
  const ended = read();
  t.after(() => {
    stopping.abort();
    return ended;
  });
  return texts;
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `message ${index}`);
}

/** Sends the texts in order over a few connections, each text once. */
async function sendAll(agent: Agent, receiver: string, texts: string[]): Promise<void> {
  for (const text of texts) await agent.send(receiver, text);
}

test("kill -9 of the hub under a stream of 1 000 messages loses none and repeats none", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice", { backoff: FAST });
  const bob = await server.agent("bob", { backoff: FAST });
  const handled = new Collector<string>();
  bob.onMessage((message) => handled.add(message.text));
  const running = bob.run();
  const texts = numbered(1000);
  const sending = sendAll(alice, bob.id, texts);
  for (const count of [200, 500, 800]) {
    await handled.waitFor(count);
    await server.kill();
    await server.start();
  }
  await sending;
  assert.deepEqual(await handled.waitFor(1000), texts);
  await bob.close();
  await running;
});

test("a proxy that cuts after every 7 events loses none and repeats none", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice");
  const { id, key } = await registerAt(server, "bob");
  const proxy = await Proxy.start(t, server.url, { shape: cutAfterEvents(7) });
  const bob = new Agent({ hub: proxy.url, agentId: id, key, backoff: FAST });
  const received = collect(t, bob);
  const texts = numbered(100);
  await sendAll(alice, id, texts);
  assert.deepEqual(await received.waitFor(100), texts);
  assert.ok(proxy.connections >= Math.floor(100 / 7), `only ${proxy.connections} connections`);
});

test("a server that repeats everything at each connection repeats nothing to the agent", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice");
  const { id, key } = await registerAt(server, "bob");
  const rewrite = (piece: string): string => piece.replace(/last-event-id: \d+/i, "last-event-id: 0");
  let connections = 0;
  // Each connection gets one event further than the one before it, and is not told that it begins at 0.
  const shape = () => {
    const cut = cutAfterEvents(++connections)();
    return (piece: string) => cut(piece.replace(/(event: connected\n)id: /, "$1no: "));
  };
  const proxy = await Proxy.start(t, server.url, { rewrite, shape });
  const bob = new Agent({ hub: proxy.url, agentId: id, key, backoff: FAST });
  const texts = numbered(15);
  await sendAll(alice, id, texts);
  assert.deepEqual(await collect(t, bob).waitFor(15), texts);
});

test("a server that accepts and says nothing is given up, and the stream goes on when it speaks", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice");
  const { id, key } = await registerAt(server, "bob");
  const proxy: Proxy = await Proxy.start(t, server.url, { isSilent: () => proxy.connections <= 3 });
  const bob = new Agent({ hub: proxy.url, agentId: id, key, backoff: FAST });
  const received = collect(t, bob, { silenceMs: 50 });
  await alice.send(id, "are you there?");
  assert.deepEqual(await received.waitFor(1), ["are you there?"]);
  assert.ok(proxy.connections > 3);
});

test("a hub that is stopped where it is loses none when it goes on", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice", { backoff: FAST });
  const { id, key } = await registerAt(server, "bob");
  const opened = new Collector<void>();
  const attempts = new Collector<void>();
  const bob = new Agent({
    hub: server.url,
    agentId: id,
    key,
    backoff: FAST,
    fetch: (input, init) => {
      attempts.add();
      return fetch(input, init);
    },
  });
  const received = collect(t, bob, { silenceMs: 100, onOpen: () => opened.add() });
  await opened.waitFor(1);
  await alice.send(id, "before");
  await received.waitFor(1);
  server.pause();
  const before = attempts.items.length;
  const sending = alice.send(id, "meanwhile");
  await attempts.waitFor(before + 2);
  server.resume();
  await sending;
  assert.deepEqual(await received.waitFor(2), ["before", "meanwhile"]);
});

test("an inbox that starts live misses nothing after its first connection", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice", { backoff: FAST });
  const bob = await server.agent("bob", { backoff: FAST });
  await alice.send(bob.id, "from before");
  const opened = new Collector<void>();
  const texts = new Collector<string>();
  const read = async (): Promise<void> => {
    for await (const event of bob.inbox({ onOpen: () => opened.add() })) {
      if (event.type === "message") return texts.add(event.text);
    }
  };
  const reading = read();
  await opened.waitFor(1);
  // The stream breaks before any event gave it a cursor, and a message comes while it is closed.
  await server.kill();
  await server.start();
  await alice.send(bob.id, "while it was closed");
  await reading;
  assert.deepEqual(texts.items, ["while it was closed"]);
});

test("a rotated key ends the stream with a typed error, and the new key resumes where it ended", async (t) => {
  const server = await startHub(t);
  const alice = await server.agent("alice");
  const { id, key } = await registerAt(server, "bob");
  const store = new MemoryStore("0");
  const bob = new Agent({ hub: server.url, agentId: id, key, backoff: FAST, store });
  const handled = new Collector<string>();
  bob.onMessage((message) => handled.add(message.text));
  const ended = assert.rejects(bob.run(), (error) => error instanceof AuthenticationError && error.code === "key_rotated");
  await alice.send(id, "with the old key", { wait: "receipt" });
  const other = new Agent({ hub: server.url, agentId: id, key });
  const newKey = await other.rotateKey();
  await ended;
  assert.equal((await other.record()).agent_id, id, "the agent that rotated goes on with the new key");
  await alice.send(id, "in between");
  const again = new Agent({ hub: server.url, agentId: id, key: newKey, store }).onMessage((message) => handled.add(message.text));
  const second = again.run();
  assert.deepEqual(await handled.waitFor(2), ["with the old key", "in between"]);
  await again.close();
  await second;
});

test("an agent that unregisters ends its stream with a typed error", async (t) => {
  const server = await startHub(t);
  const bob = await server.agent("bob");
  const opened = new Collector<void>();
  const read = async (): Promise<void> => {
    for await (const _ of bob.inbox({ onOpen: () => opened.add() }));
  };
  const reading = read();
  await opened.waitFor(1);
  await Promise.all([bob.unregister(), assert.rejects(reading, AuthenticationError)]);
});

async function registerAt(server: TestHub, name: string): Promise<{ id: string; key: string }> {
  const { registerAgent } = await import("chorus-sdk");
  const { agentId, key } = await registerAgent({ hub: server.url, name });
  return { id: agentId, key };
}
