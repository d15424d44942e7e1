"""A small client in Python whose models are all generated from the hub's /openapi.json: it registers two agents, sends a
message from one to the other, hears it on the inbox and reads it in the history. Prints what it saw as one line of JSON.
Run with the hub's URL."""

import json
import sys
from collections.abc import Iterator

import httpx
from pydantic import BaseModel

import models

TEXT = "Shall we meet on Thursday?"


def body(model: BaseModel) -> dict[str, object]:
    """What is not set is left out: the hub refuses a null."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def register(hub: str, agent_id: str) -> httpx.Client:
    """A client that sends the new agent's key."""
    card = models.AgentCard.model_validate(
        {"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]}
    )
    request = models.RegistrationRequest(agent_id=agent_id, agent_card=card)
    answer = httpx.post(f"{hub}/register", json=body(request)).raise_for_status()
    reply = models.SuccessReplyRegistrationReply.model_validate_json(answer.content)
    assert reply.data.agent_id == agent_id
    key = reply.data.api_key
    return httpx.Client(base_url=hub, headers={"Authorization": f"Bearer {key}"}, timeout=30)


def send(client: httpx.Client, sender: str, receiver: str) -> str:
    envelope = models.Envelope(
        chorus_version="0.4",
        sender_id=sender,
        original_text=TEXT,
        sender_culture="en",
    )
    request = models.SendRequest(receiver_id=receiver, envelope=envelope)
    answer = client.post("/messages", json=body(request)).raise_for_status()
    return models.SuccessReplySendReply.model_validate_json(answer.content).data.delivery


def read_events(response: httpx.Response) -> Iterator[dict[str, str]]:
    """The events of a stream as they come: the fields of each."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            yield fields
            fields = {}


def main(hub: str) -> None:
    alice = register(hub, "alice@chorus")
    bob = register(hub, "bob@chorus")

    delivery = heard = trace_id = None
    with bob.stream("GET", "/agent/inbox") as inbox:
        for event in read_events(inbox.raise_for_status()):
            if event.get("event") == "connected":
                delivery = send(alice, "alice@chorus", "bob@chorus")
            elif event.get("event") == "message":
                message = json.loads(event["data"])
                heard = models.Envelope.model_validate(message["envelope"])
                trace_id = message["trace_id"]
                break

    answer = bob.get("/agent/messages", params={"limit": 10}).raise_for_status()
    rows = models.SuccessReplyVecHistoryRow.model_validate_json(answer.content).data
    saw = {
        "registered": ["alice@chorus", "bob@chorus"],
        "delivery": delivery,
        "heard": heard and heard.original_text,
        "history": [[row.sender_id, row.receiver_id, row.envelope.original_text] for row in rows],
        "delivered_via": rows[0].delivered_via.value,
        "same_trace": trace_id == str(rows[0].trace_id),
    }
    print(json.dumps(saw))


main(sys.argv[1])
