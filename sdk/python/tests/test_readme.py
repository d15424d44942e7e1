"""The programs of the README and of docs/sdk-python.md are run as they are printed (SDK-17)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from actors import WAIT_S

from chorus_sdk import sync
from chorus_sdk.testing import TestHub

ROOT = Path(__file__).parent.parent
SOURCE = str(ROOT / "src")


def programs(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@contextmanager
def running(folder: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """The program as a user starts it, in a folder with its credentials."""
    file = folder / "program.py"
    file.write_text(program)
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    child = subprocess.Popen(
        [sys.executable, str(file)], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        yield child
    finally:
        child.terminate()
        child.wait(WAIT_S)


def test_the_agent_in_ten_lines_answers(own_hub: TestHub, tmp_path: Path) -> None:
    agent, writer = programs(ROOT / "README.md")
    assert len(agent.strip().splitlines()) <= 10
    for name in ("echo", "writer"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "chorus-credentials.json"
        sync.Agent.register(f"{name}@chorus", own_hub.url, credentials=file).close()
    with running(tmp_path / "echo", agent), running(tmp_path / "writer", writer) as child:
        printed, _ = child.communicate(timeout=WAIT_S)
    assert (printed, child.returncode) == ("You wrote: Hello!\n", 0)


DOCS = Path(__file__).parents[3] / "docs" / "sdk-python.md"


def test_the_programs_of_the_docs_type_check(tmp_path: Path) -> None:
    pages = programs(DOCS)
    assert len(pages) >= 10
    for number, program in enumerate(pages, 1):
        (tmp_path / f"program_{number}.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path)]
    environment = {**os.environ, "MYPYPATH": SOURCE}
    checked = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
