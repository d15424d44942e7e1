"""Reads an inbox with httpx and httpx-sse, and resumes after the last id that it got."""

import json
import sys
import time

import httpx
import httpx_sse

hub, key = sys.argv[1:3]
last_id = None
while True:
    headers = {"Authorization": f"Bearer {key}"}
    if last_id is not None:
        headers["Last-Event-ID"] = last_id
    try:
        with httpx.Client(timeout=60, trust_env=False) as client:
            with httpx_sse.connect_sse(client, "GET", f"{hub}/agent/inbox", headers=headers) as source:
                source.response.raise_for_status()
                for event in source.iter_sse():
                    last_id = event.id or last_id
                    if event.event == "connected":
                        print("connected", flush=True)
                    if event.event == "message":
                        text = json.loads(event.data)["envelope"]["original_text"]
                        print("message", text.split()[0], flush=True)
    except httpx.HTTPError:
        pass
    time.sleep(0.2)
