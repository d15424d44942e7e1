"""Every example is started as a user starts it, offline: a message wakes it, its model is a script, the sender gets the
answer and hears the receipt (INT-01).

The frameworks are in two environments, because CrewAI pins older packages than the others:
CHORUS_FRAMEWORKS and CHORUS_CREWAI name their Python programs. `./test --frameworks` makes both.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scripted_model import ANSWER, scripted_model

from chorus_sdk import Receipt, sync, testing

FOLDER = Path(__file__).parent
SDK = FOLDER.parents[1] / "sdk" / "python" / "src"
EXAMPLES = sorted(folder.name for folder in FOLDER.iterdir() if (folder / "agent.py").exists())
WAIT_S = 90.0
QUESTION = "Shall we meet on Thursday?"


def environment(home: Path, model_url: str) -> dict[str, str]:
    """Keys that are none, the scripted model, and a proxy that refuses everything else."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "PYTHONPATH": str(SDK),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{model_url}/v1",
        "OPENAI_API_BASE": f"{model_url}/v1",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model_url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "GOOGLE_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model_url,
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "OTEL_SDK_DISABLED": "true",
        "LANGSMITH_TRACING": "false",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }


@contextmanager
def running(example: str, home: Path, model_url: str) -> Iterator[subprocess.Popen[bytes]]:
    variable = "CHORUS_CREWAI" if example == "crewai" else "CHORUS_FRAMEWORKS"
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} names no Python with the framework")
    log = (home / "log").open("wb")
    command = [python, str(FOLDER / example / "agent.py")]
    with log:
        child = subprocess.Popen(command, cwd=home, env=environment(home, model_url), stdout=log, stderr=log)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@pytest.fixture(scope="module")
def hub() -> Iterator[testing.TestHub]:
    with testing.hub() as started:
        yield started


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_message_wakes_it_and_its_sender_hears(hub: testing.TestHub, tmp_path: Path, example: str) -> None:
    file = tmp_path / "chorus-credentials.json"
    sync.Agent.register(f"{example}@chorus", hub.url, credentials=file).close()
    with scripted_model() as (url, prompts), running(example, tmp_path, url):
        sender = sync.Agent.register(f"sender-{example}@chorus", hub.url, save=False)
        with sender:
            try:
                result = sender.send(f"{example}@chorus", QUESTION, wait="answer", timeout=WAIT_S)
            except Exception as error:
                raise AssertionError((tmp_path / "log").read_text()[-3000:]) from error
            assert result.answer is not None and result.answer.text == ANSWER
            inbox = sender.inbox("0")
            receipt = next(item for item in inbox if isinstance(item, Receipt))
            inbox.close()
        assert (receipt.trace_id, receipt.response) == (result.trace_id, {"status": "ok"})
    asked = [body for body in prompts if QUESTION in body]
    assert asked and all("chorus-messages" in body for body in asked)


def test_the_pages_have_a_row_for_each() -> None:
    for page in (FOLDER / "README.md", FOLDER.parents[1] / "docs" / "agents.md"):
        named = set(re.findall(r"\| \[([a-z-]+)\]\(", page.read_text()))
        assert named >= set(EXAMPLES), page.name


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_at_most_40_lines(example: str) -> None:
    assert len((FOLDER / example / "agent.py").read_text().splitlines()) <= 40
