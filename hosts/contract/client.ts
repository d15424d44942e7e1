// A small client in TypeScript whose types are all generated from the hub's /openapi.json: it registers two agents, sends
// a message from one to the other, hears it on the inbox and reads it in the history. Prints what it saw as one line of
// JSON. Run with the hub's URL.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

// The one thing of node that this needs; its types would be a further package to pin.
declare const process: { argv: string[] };

const hub = process.argv[2];
if (hub === undefined) throw new Error("usage: client <hub>");

type History = paths["/agent/messages"]["get"]["responses"][200]["content"]["application/json"];
type Row = History["data"][number];
type Heard = Pick<Row, "trace_id" | "sender_id" | "envelope">;

// Only answers in JSON are read by their types: a send may also be answered by a stream, if one asks for it.
function connect(key?: string) {
  return createClient<paths, "application/json">({
    baseUrl: hub,
    headers: key === undefined ? {} : { Authorization: `Bearer ${key}` },
  });
}

async function register(agent_id: string) {
  const { data: reply, error } = await connect().POST("/register", {
    body: { agent_id, agent_card: { card_version: "0.3", user_culture: "en", supported_languages: ["en"] } },
  });
  if (error !== undefined) throw new Error(`register: ${JSON.stringify(error)}`);
  // The market's form of a registration is answered without `data`.
  if (!("data" in reply)) throw new Error(`register: ${JSON.stringify(reply)}`);
  const { api_key } = reply.data;
  if (typeof api_key !== "string") throw new Error("register: no key");
  return { agent_id: reply.data.agent_id, client: connect(api_key) };
}

/** The events of a stream as they come: each one's name, id and data. */
async function* readEvents(body: ReadableStream<Uint8Array>) {
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)) {
    const events = (rest + piece).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split("\n").map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
      });
      const fields = new Map(lines);
      yield { event: fields.get("event"), id: fields.get("id"), data: fields.get("data") ?? "" };
    }
  }
}

const alice = await register("alice@chorus");
const bob = await register("bob@chorus");

const stop = new AbortController();
const inbox = await bob.client.GET("/agent/inbox", { parseAs: "stream", signal: stop.signal });
if (!inbox.data) throw new Error(`inbox: ${JSON.stringify(inbox.error)}`);

const original_text = "Shall we meet on Thursday?";
let delivery: string | undefined;
let heard: Heard | undefined;
for await (const { event, data } of readEvents(inbox.data)) {
  if (event === "connected") {
    const sent = await alice.client.POST("/messages", {
      params: { header: { "Idempotency-Key": "thursday" } },
      body: {
        receiver_id: bob.agent_id,
        envelope: { chorus_version: "0.4", sender_id: alice.agent_id, original_text, sender_culture: "en" },
      },
    });
    if (sent.error !== undefined) throw new Error(`send: ${JSON.stringify(sent.error)}`);
    delivery = sent.data.data.delivery;
  } else if (event === "message") {
    heard = JSON.parse(data) as Heard;
    break;
  }
}
stop.abort();

const history = await bob.client.GET("/agent/messages", { params: { query: { limit: 10 } } });
if (history.error !== undefined) throw new Error(`history: ${JSON.stringify(history.error)}`);
const row = history.data.data[0];

console.log(
  JSON.stringify({
    registered: [alice.agent_id, bob.agent_id],
    delivery,
    heard: heard?.envelope.original_text,
    history: history.data.data.map((row) => [row.sender_id, row.receiver_id, row.envelope.original_text]),
    delivered_via: row?.delivered_via,
    same_trace: heard !== undefined && heard.trace_id === row?.trace_id,
  }),
);
