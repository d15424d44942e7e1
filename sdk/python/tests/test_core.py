"""What needs no network: the parser of events, retries, JSON, files (SDK-03, SDK-05, SDK-09)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chorus_sdk import Backoff, ConnectionFailed, CredentialsError, InvalidInput, UnexpectedAnswer
from chorus_sdk.core import Answer, ApiCall, dump_json, encode_segment, parse_base_url, retry_delay
from chorus_sdk.errors import Forbidden, HubError, HubFailed, RateLimited, Unauthorized
from chorus_sdk.files import IdentityFiles, read_credentials
from chorus_sdk.sse import ResumeState, SseReader, StreamEvent

FULL = Backoff(first_s=0.1, max_s=1.0, random=lambda: 1.0)
REPEATABLE = ApiCall("POST", "/messages").with_idempotency_key("k")


def refusal(status: int, code: str = "ERR_UNAVAILABLE", retry_after: str | None = None) -> HubError:
    headers = {"retry-after": retry_after, "x-request-id": "req-1"} if retry_after else {"x-request-id": "req-1"}
    body = json.dumps({"success": False, "error": {"code": code, "message": "no"}}).encode()
    return Answer(status, headers, body).to_error()


# SDK-03
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionFailed("away"), 0.1),
        (refusal(503), 0.1),
        (refusal(502, "HTTP_502"), 0.1),
        (refusal(429, "ERR_RATE_LIMITED", "7"), 7.0),
        (refusal(429, "ERR_RATE_LIMITED", "61"), None),
        (refusal(429, "ERR_REGISTRY_FULL"), None),
        (refusal(500, "ERR_INTERNAL"), None),
        (refusal(504, "ERR_TIMEOUT"), None),
        (refusal(408, "ERR_REQUEST_TIMEOUT"), None),
        (refusal(404, "ERR_NOT_FOUND"), None),
        (UnexpectedAnswer("html"), None),
    ],
)
def test_what_is_tried_again(error: HubError, expected: float | None) -> None:
    assert retry_delay(REPEATABLE, error, 1, FULL) == expected
    assert retry_delay(ApiCall("POST", "/register"), error, 1, FULL) is None, "it may have taken effect"
    assert retry_delay(REPEATABLE, error, 5, FULL) is None


def test_delays_double_up_to_the_maximum() -> None:
    assert [FULL.delay_after(failures) for failures in (1, 2, 3, 4, 5, 60)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    half = Backoff(first_s=0.1, max_s=1.0, random=lambda: 0.0)
    assert half.delay_after(60) == 0.5


# SDK-09
def test_the_three_forms_of_errors() -> None:
    forms = {
        b'{"success": false, "error": {"code": "ERR_SCOPE", "message": "no"}}': ("ERR_SCOPE", None),
        b'{"code": "field-missing", "field": "payload.x", "message": "no"}': ("field-missing", "payload.x"),
        b'{"error_code": "AGENT_OFFLINE", "error_message": "no"}': ("AGENT_OFFLINE", None),
        b"<html>": ("HTTP_403", None),
    }
    for body, (code, field) in forms.items():
        error = Answer(403, {"x-request-id": "r"}, body).to_error()
        assert isinstance(error, Forbidden) and (error.code, error.field, error.request_id) == (code, field, "r")
    assert isinstance(refusal(401), Unauthorized) and isinstance(refusal(429), RateLimited)
    assert isinstance(refusal(503), HubFailed) and refusal(503).retryable
    assert Answer(409, {}, b'{"error_code": "AGENT_OFFLINE", "error_message": "x"}').to_error().retryable


STREAM = (
    "\ufeff: a comment\r\nretry: 1500\r\n\r\n"
    'event: message\nid: 41\ndata: {"text":\ndata: "請多指教"}\n\n'
    "id: 42\rdata: x\r\r"
    "event: later\ndata\n\n"
)


def test_events_from_chunks_of_any_size() -> None:
    whole = SseReader().read_chunk(STREAM.encode())
    assert [(event.name, event.cursor, event.data, event.retry_ms) for event in whole] == [
        ("message", None, "", 1500),
        ("message", "41", '{"text":\n"請多指教"}', None),
        ("message", "42", "x", None),
        ("later", None, "", None),
    ]
    for size in range(1, 9):
        reader = SseReader()
        raw = STREAM.encode()
        parts = [raw[at : at + size] for at in range(0, len(raw), size)]
        assert [event for part in parts for event in reader.read_chunk(part)] == whole, size


def test_a_stream_is_limited_and_utf_8() -> None:
    with pytest.raises(UnexpectedAnswer):
        SseReader(max_event_bytes=100).read_chunk(b"data: " + b"x" * 200)
    with pytest.raises(UnexpectedAnswer):
        SseReader(max_event_bytes=100).read_chunk(b"data: 123456789\n" * 20)
    with pytest.raises(UnexpectedAnswer):
        SseReader().read_chunk(b"data: \xff\n\n")


def test_repeats_are_dropped_and_retry_is_honoured() -> None:
    state = ResumeState("41", FULL)
    state.feed([StreamEvent("connected", '{"timestamp": "t"}', None, 2000)])
    state.feed(
        [StreamEvent("message", "a", "41"), StreamEvent("message", "b", "42"), StreamEvent("message", "b", "42")]
    )
    state.feed([StreamEvent("message", "", None, 3000), StreamEvent("unknown", "{}", "43")])
    names = []
    while (event := state.next_event()) is not None:
        names.append((event.name, event.cursor))
    assert names == [("connected", None), ("message", "42"), ("unknown", "43")]
    assert state.last_cursor == "43"
    assert state.delay_after_failure() == 4.5, "the retry of the hub, with jitter"
    other_ring = ResumeState("7-100", FULL)
    other_ring.feed([StreamEvent("agent_advisory", "{}", "8-1")])
    assert other_ring.next_event() is not None, "a restarted hub counts from one in another epoch"


def test_paths_and_urls_stay_what_they_are() -> None:
    assert encode_segment("a/../b?c#d") == "a%2F..%2Fb%3Fc%23d"
    assert (encode_segment("alice@chorus"), encode_segment("..")) == ("alice@chorus", "%2E%2E")
    assert parse_base_url("https://hub.example/chorus/") == "https://hub.example/chorus"
    for bad in (
        "",
        "hub.example",
        "ftp://hub.example",
        "http://a:b@hub.example",
        "http://hub.example/?x=1",
        "http://a b",
    ):
        with pytest.raises(InvalidInput):
            parse_base_url(bad)
    with pytest.raises(InvalidInput):
        dump_json({"when": object()})
    with pytest.raises(InvalidInput):
        dump_json(float("nan"))


def test_credentials_are_found_as_by_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, home = tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("CHORUS_HOME", str(home))
    assert IdentityFiles.locate() == IdentityFiles(home / "config.json", home / "state.json")
    local = workspace / "chorus-credentials.json"
    local.write_text("{}")
    assert IdentityFiles.locate() == IdentityFiles(local, workspace / "chorus-state.json")
    assert IdentityFiles.locate("bot.json").state == workspace / "bot-state.json"
    assert read_credentials(IdentityFiles.locate()) is None
    wrong = [
        "[]",
        "no json",
        '{"agent_id": "a b", "api_key": "k", "hub_url": "http://h"}',
        '{"agent_id": "a@h", "api_key": "ca_secret", "hub_url": "http://u:p@h"}',
    ]
    for text in wrong:
        local.write_text(text)
        with pytest.raises(CredentialsError) as refused:
            read_credentials(IdentityFiles.locate())
        assert "ca_secret" not in str(refused.value) and os.fspath(tmp_path) not in str(refused.value)
