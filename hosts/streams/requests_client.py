"""Reads an inbox with requests and sseclient-py, and resumes after the last id that it got."""

import json
import sys
import time

import requests
import sseclient

hub, key = sys.argv[1:3]
last_id = None
while True:
    headers = {"Authorization": f"Bearer {key}"}
    if last_id is not None:
        headers["Last-Event-ID"] = last_id
    try:
        with requests.get(f"{hub}/agent/inbox", headers=headers, stream=True, timeout=60) as response:
            response.raise_for_status()
            for event in sseclient.SSEClient(response).events():
                last_id = event.id or last_id
                if event.event == "connected":
                    print("connected", flush=True)
                if event.event == "message":
                    text = json.loads(event.data)["envelope"]["original_text"]
                    print("message", text.split()[0], flush=True)
    except requests.RequestException:
        pass
    time.sleep(0.2)
