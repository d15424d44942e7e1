// The receiver behind a real hub's endpoint, and its signatures beside those of another library.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Refusal } from "chorus-sdk";
import { nodeListener } from "chorus-sdk/node";
import { hub } from "chorus-sdk/testing";
import { createReceiver, isSignedBy, type ReceiverOptions } from "chorus-sdk/webhook";
import { Webhook } from "standardwebhooks";
import { TestClock } from "./support.ts";

const SECRET = `whsec_${Buffer.from("k".repeat(32)).toString("base64")}`;

async function serve(t: TestContext, options: ReceiverOptions): Promise<string> {
  const server: Server = createServer(nodeListener(createReceiver(options)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.closeAllConnections());
  t.after(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/inbox`;
}

function signedHeaders(body: string, at: Date, secret = SECRET): Record<string, string> {
  const id = "msg_1";
  const signature = new Webhook(secret).sign(id, at, body);
  return { "webhook-id": id, "webhook-timestamp": String(Math.floor(at.getTime() / 1000)), "webhook-signature": signature };
}

test("a hub's posts are verified and handled, and the sender gets the handler's answer", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const texts: string[] = [];
  const endpoint = await serve(t, {
    secret: SECRET,
    onMessage: (message) => {
      texts.push(`${message.sender}: ${message.text}`);
      if (message.text === "no") throw new Refusal("NOT_NOW", "later");
    },
  });
  const alice = await server.agent("alice");
  const bob = await server.agent("bob", { endpoint, endpointSecret: SECRET });
  const sent = await alice.send(bob.id, "yes");
  assert.deepEqual([sent.delivery, sent.response], ["delivered", { status: "ok" }]);
  assert.deepEqual((await alice.send(bob.id, "no")).response, { status: "error", error_code: "NOT_NOW", detail: "later" });
  const options = { conversationId: "c", turnNumber: 1 };
  await alice.send(bob.id, "turn", options);
  await alice.send(bob.id, "the same turn again", options);
  assert.deepEqual(texts, ["alice@chorus: yes", "alice@chorus: no", "alice@chorus: turn"]);

  const stranger = await server.agent("stranger", { endpoint });
  assert.equal((await alice.send(stranger.id, "unsigned")).response?.status, "error");
  assert.equal(texts.length, 3);
});

test("signatures agree with standardwebhooks: changed, old, foreign and missing ones are refused", async () => {
  const clock = new TestClock();
  const now = new Date(clock.now());
  const body = JSON.stringify({ envelope: { chorus_version: "0.4", sender_id: "a@b", original_text: "hi", sender_culture: "en" } });
  const receive = createReceiver({ secret: [SECRET], clock });
  const post = async (headers: Record<string, string>, text = body) => (await receive(new Request("http://x/", { method: "POST", headers, body: text }))).status;
  assert.equal(await post(signedHeaders(body, now)), 200);
  assert.equal(await post(signedHeaders(body, now), body.replace("hi", "ho")), 401);
  assert.equal(await post(signedHeaders(body, new Date(clock.now() - 299_000))), 200);
  assert.equal(await post(signedHeaders(body, new Date(clock.now() - 302_000))), 401);
  assert.equal(await post(signedHeaders(body, new Date(clock.now() + 302_000))), 401);
  assert.equal(await post(signedHeaders(body, now, `whsec_${Buffer.from("x".repeat(32)).toString("base64")}`)), 401);
  assert.equal(await post({}), 401);
  const two = signedHeaders(body, now);
  two["webhook-signature"] = `v1,${Buffer.from("wrong").toString("base64")} ${two["webhook-signature"]}`;
  assert.equal(await post(two), 200);
  const bytes = new Uint8Array(new TextEncoder().encode(body));
  await assert.rejects(isSignedBy("whsec_c2hvcnQ=", new Headers(signedHeaders(body, now)), bytes, clock.now()), TypeError);
});

test("what is no envelope is refused with the reason", async () => {
  const receive = createReceiver({});
  const post = async (body: string, method = "POST") => {
    const response = await receive(new Request("http://x/", method === "POST" ? { method, body } : { method }));
    return [response.status, ((await response.json()) as { detail: string }).detail];
  };
  assert.deepEqual(await post("{}"), [400, "missing envelope"]);
  assert.deepEqual(await post("not json"), [400, "the request is no JSON object"]);
  assert.deepEqual(await post('{"envelope":{"chorus_version":"0.4","sender_id":"a@b","original_text":"x"}}'), [400, "missing sender_culture"]);
  assert.deepEqual(await post('{"envelope":{"chorus_version":"9","sender_id":"a@b","original_text":"x","sender_culture":"en"}}'), [400, "this receiver speaks 0.4"]);
  assert.deepEqual(await post("x".repeat(1024 * 1024 + 1)), [413, "the request is too large"]);
  assert.deepEqual(await post("", "GET"), [405, "post an envelope here"]);
});

test("a channel's service delivers to the receiver, and its answer reaches the channel", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const endpoint = await serve(t, {
    secret: SECRET,
    onChannel: (delivery) => delivery.callback.message(`you said: ${delivery.text}`),
  });
  const owner = await server.agent("owner");
  const channel = await owner.channels.create("room");
  await channel.add({ connection: endpoint, name: "echo", signingSecret: SECRET });
  const answered = (async () => {
    for await (const row of channel.stream({ since: "0" })) if (row.sender === "echo" && row.type === "message") return row.content;
    return undefined;
  })();
  await channel.post("@echo hello");
  assert.equal(await answered, "you said: @echo hello");
});
