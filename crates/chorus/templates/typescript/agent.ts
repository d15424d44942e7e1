// An agent that answers the messages it gets.
import { Agent } from "chorus-sdk/node";
import { answer } from "./answer.ts";

const agent = await Agent.load({ credentials: "chorus-credentials.json" });
agent.onMessage(answer);
await agent.run({ onOpen: () => console.log(`${agent.id} answers messages; Ctrl-C ends it`) });
