"""The project that `chorus new python` writes: with this SDK installed its types and its test pass, and it answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from actors import WAIT_S

from chorus_sdk import sync
from chorus_sdk.testing import TestHub, find_binary

CHECKOUT = Path(__file__).parents[3]
#: Of one command: pip builds two packages.
COMMAND_S = 300


class Project:
    """A project with an environment of its own, as its README says."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder / name
        self.environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        # The commands of the README find this environment and this hub by their names.
        self.environment["PATH"] = os.pathsep.join(
            [str(folder / "venv" / "bin"), str(Path(find_binary()).parent), self.environment["PATH"]]
        )
        written = self.run(find_binary(), "new", "python", name, "--sdk", str(CHECKOUT), cwd=folder)
        assert "pytest" in written
        venv.create(folder / "venv", with_pip=True)
        # What the SDK and the tests need is not fetched again. The SDK itself is not there.
        packages = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
        (Path(packages) / "tools.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(self, *command: str, cwd: Path | None = None) -> str:
        ended = subprocess.run(
            command, cwd=cwd or self.folder, env=self.environment, capture_output=True, text=True, timeout=COMMAND_S
        )
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    def readme_commands(self) -> list[str]:
        return re.findall(r"^    (.+)$", (self.folder / "README.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("new"), "weather-agent")
    install, *_ = made.readme_commands()
    assert install == "pip install -e '.[test]'"
    offline = ["--no-index", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    made.run("python", "-m", "pip", "install", *offline, "-e", ".[test]")
    place = made.run("python", "-c", "import chorus_sdk; print(chorus_sdk.__file__)", cwd=Path("/"))
    assert place.startswith(str(made.folder.parent / "venv")), place
    return made


def test_the_test_of_a_new_project_passes(project: Project) -> None:
    assert project.readme_commands()[1] == "pytest"
    assert "1 passed" in project.run("python", "-m", "pytest")


def test_a_new_project_passes_the_strict_checks_of_the_sdk(project: Project) -> None:
    project.run("python", "-m", "mypy")
    settings = str(CHECKOUT / "sdk/python/pyproject.toml")
    for command in (["format", "--check"], ["check", "--ignore", "S"]):
        project.run(sys.executable, "-m", "ruff", *command, "--config", settings)


def test_the_agent_of_a_new_project_answers(project: Project, own_hub: TestHub) -> None:
    _, _, start, register, *_ = project.readme_commands()
    assert register.startswith("chorus register weather-agent --hub ")
    project.run("sh", "-c", re.sub(r"http://\S+", own_hub.url, register))
    child = subprocess.Popen(
        start.split(), cwd=project.folder, env=project.environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "weather-agent@chorus answers messages; Ctrl-C ends it\n"
        user = sync.Agent.register("user@chorus", own_hub.url, save=False)
        with user:
            result = user.send("weather-agent@chorus", "hello", wait="answer", timeout=WAIT_S)
        assert result.answer is not None
        assert result.answer.text == "You wrote: hello"
    finally:
        child.terminate()
        child.wait(WAIT_S)
    ignored = project.run("sh", "-c", "git init -q . && git status --porcelain --ignored --untracked-files=all")
    assert {line[3:] for line in ignored.splitlines() if line.startswith("?? ")} == {
        ".gitignore",
        "README.md",
        "agent.py",
        "pyproject.toml",
        "test_agent.py",
    }
