// Calls whose answers are scripted, to see each attempt: what is tried again, and what is not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, AnswerError, HubClient, HubFailureError, InputError, RateLimitError, TransportError, followInbox, registerAgent } from "chorus-sdk";
import { hub } from "chorus-sdk/testing";
import { settle, TestClock } from "./support.ts";

type Scripted = Response | Error;

/** A client whose attempts get these answers in turn. */
function scripted(answers: Scripted[]): { client: HubClient; clock: TestClock; requests: Request[] } {
  const clock = new TestClock();
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    requests.push(new Request(input, init));
    const answer = answers.shift();
    if (answer === undefined) throw new Error("no further answer");
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { client: new HubClient({ hub: "http://hub.example", key: "secret-key", fetch, clock, warn: () => undefined }), clock, requests };
}

function refusal(status: number, headers: Record<string, string> = {}): Response {
  return Response.json({ success: false, error: { code: `CODE_${status}`, message: "no" } }, { status, headers });
}

const accepted = () => Response.json({ success: true, data: { trace_id: "t", delivery: "queued" }, metadata: {} });
const input = { body: { receiver_id: "bob@chorus", envelope: {} as never } };

test("a send is tried again after a broken connection, 429, 502 and 503, with one key, and waits as told", async () => {
  const { client, clock, requests } = scripted([new TypeError("fetch failed"), refusal(503, { "retry-after": "7" }), refusal(429), refusal(502), accepted()]);
  const sent = client.callForData("send_message", input, { retry: true, idempotencyKey: "k" });
  await clock.advance(300);
  assert.equal(requests.length, 2);
  await clock.advance(6_600);
  assert.equal(requests.length, 2, "Retry-After is waited for");
  await clock.advance(10_000);
  assert.equal((await sent).delivery, "queued");
  assert.deepEqual(requests.map((request) => request.headers.get("idempotency-key")), ["k", "k", "k", "k", "k"]);
});

//
test("a registration whose answer is lost brings the same key", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  let losses = 2;
  const lossy: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === "POST" && losses-- > 0) throw new TypeError("fetch failed");
    return response;
  };
  const made = await registerAgent({ hub: server.url, name: "carol", fetch: lossy, backoff: { firstMs: 5, maxMs: 50 } });
  assert.equal(losses, -1);
  const carol = new Agent({ hub: server.url, agentId: made.agentId, key: made.key });
  assert.equal((await carol.record()).agent_id, "carol@chorus");
});

test("five attempts are the end, other refusals and long waits are final, and a write without a key is sent once", async () => {
  const many = scripted(Array.from({ length: 9 }, () => refusal(503)));
  const ended = assert.rejects(many.client.call("get_health", {}), HubFailureError);
  await many.clock.advance(120_000);
  await ended;
  assert.equal(many.requests.length, 5);
  for (const answer of [refusal(500), refusal(504), refusal(400), refusal(429, { "retry-after": "31" })]) {
    const { client, requests } = scripted([answer, accepted()]);
    await assert.rejects(client.callForData("send_message", input, { retry: true }));
    assert.equal(requests.length, 1, String(answer.status));
  }
  const once = scripted([refusal(503), accepted()]);
  await assert.rejects(once.client.callForData("create_channel", { body: { name: "x" } }), HubFailureError);
  assert.equal(once.requests.length, 1);
});

test("errors of all three forms are read, and none shows the key, the path or a query", async () => {
  const bodies = [
    { success: false, error: { code: "ERR_RATE_LIMITED", message: "slow down" } },
    { code: "rate-limited", message: "slow down", field: "payload.x" },
    { error_code: "ERR_RATE_LIMITED", error_message: "slow down" },
  ];
  for (const body of bodies) {
    const { client } = scripted([Response.json(body, { status: 429, headers: { "x-request-id": "r1", "retry-after": "99" } })]);
    await assert.rejects(client.call("get_health", {}), (error) => {
      assert.ok(error instanceof RateLimitError);
      assert.deepEqual([error.requestId, error.retryable, error.retryAfterMs], ["r1", true, 99_000]);
      return true;
    });
  }
  const { client } = scripted([new TypeError("fetch failed", { cause: Object.assign(new Error("connect http://hub.example/agents/x?session=cs_1"), { code: "ECONNREFUSED" }) })]);
  await assert.rejects(client.call("get_agent", { path: { id: "x" } }, { retry: false }), (error) => {
    assert.ok(error instanceof TransportError);
    assert.equal(error.message, "cannot reach http://hub.example: ECONNREFUSED");
    return true;
  });
});

test("an answer that is too long, no JSON or a redirect is refused, and a path segment stays one", async () => {
  const long = scripted([new Response("x".repeat(17 * 1024 * 1024))]);
  await assert.rejects(long.client.call("get_health", {}), AnswerError);
  const html = scripted([new Response("<html>")]);
  await assert.rejects(html.client.call("get_health", {}), AnswerError);
  const redirect = scripted([new Response(null, { status: 307, headers: { location: "http://elsewhere.example/" } })]);
  await assert.rejects(redirect.client.call("get_health", {}), { code: "HTTP_307" });
  const paths = scripted([Response.json({})]);
  await paths.client.call("get_agent", { path: { id: "a/../b?c" } });
  assert.equal(new URL(paths.requests[0]?.url ?? "").pathname, "/agents/a%2F..%2Fb%3Fc");
  for (const id of ["..", ".", ""]) await assert.rejects(paths.client.call("get_agent", { path: { id } }), InputError);
  for (const bad of ["", "hub.example", "ftp://hub.example", "http://a:b@hub.example", "http://hub.example/?x=1"]) {
    assert.throws(() => new HubClient({ hub: bad }), InputError, bad);
  }
});

test("events that are unknown or malformed are passed over, in pieces of any size", async () => {
  const events = [
    'event: connected\nid: 1\nretry: 1\ndata: {}\n\n',
    ": a comment\n\n",
    'event: channel\nid: 2\ndata: {"channel":{"id":"c"},"message":{"id":"m","sender":"s","content":"x"},"callback":"http://["}\n\n',
    "event: message\nid: 3\ndata: {\n\n",
    'event: message\nid: 4\ndata: {"trace_id":"t"}\n\n',
    'event: of-tomorrow\nid: 5\ndata: {"x":1}\n\n',
    'event: message\r\nid: 6\r\ndata: {"trace_id":"t",\r\ndata: "envelope":{"sender_id":"a@b","original_text":"ünï"},"timestamp":""}\r\n\r\n',
  ];
  const bytes = new TextEncoder().encode(events.join(""));
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const fetch = async () => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const warnings: string[] = [];
    const agent = new Agent({ hub: "http://hub.example", agentId: "b@c", key: "k", fetch, warn: (text) => warnings.push(text) });
    for await (const event of agent.inbox()) {
      assert.ok(event.type === "message");
      assert.deepEqual([event.text, event.cursor, warnings.length], ["ünï", "6", 3], `in pieces of ${size}`);
      break;
    }
  }
});

test("an older hub is named in one warning", async () => {
  const warnings: string[] = [];
  const fetch = async () => Response.json({ server_version: "0.0.9" });
  const client = new HubClient({ hub: "http://hub.example", fetch, warn: (text) => warnings.push(text) });
  await client.checkVersion();
  await client.checkVersion();
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /older \(0\.0\.9\)/);
});

test("a page follows an inbox with tokens that work once, and without the key", async (t) => {
  const server = await hub();
  t.after(() => server.stop());
  const alice = await server.agent("alice");
  const bob = await server.agent("bob");
  await alice.send(bob.id, "for the page");
  const keys: (string | null)[] = [];
  const spy: typeof fetch = (request, init) => {
    keys.push(new Headers(init?.headers).get("authorization"));
    return fetch(request, init);
  };
  for await (const event of followInbox({ hub: server.url, fetch: spy, since: "0", token: () => bob.createSessionToken() })) {
    assert.deepEqual([event.name, event.data.includes("for the page")], ["message", true]);
    break;
  }
  assert.deepEqual(keys, [null]);
  await settle();
});
