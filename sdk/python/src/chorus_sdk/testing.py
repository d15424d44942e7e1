"""A real hub for tests: `with testing.hub() as hub` starts the binary on a free port. There is no fake hub (SDK-18)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

from .agent import Agent
from .errors import ChorusError

LISTENING = "chorus listening on "
STOP_TIMEOUT_S = 20.0


class HubNotStarted(ChorusError):
    """The binary was not found, or it ended before it listened."""

    code = "SDK_HUB_NOT_STARTED"


def find_binary() -> str:
    """`$CHORUS_BINARY`, else `chorus` on PATH, else the one of the package `chorushub`."""
    named = os.environ.get("CHORUS_BINARY")
    if named:
        return named
    found = shutil.which("chorus")
    if found:
        return found
    with contextlib.suppress(ImportError):
        import importlib

        packaged = importlib.import_module("chorushub")
        return str(packaged.find_chorus_bin())
    raise HubNotStarted("there is no chorus: set CHORUS_BINARY, install it, or `pip install chorus-sdk[hub]`")


class TestHub:
    """A hub in a process of its own, with its data in a temporary folder."""

    __test__ = False  # its name is no test of pytest

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Starts the hub, after a `kill` on the same port and with the same data."""
        address = self.url.removeprefix("http://") or "127.0.0.1:0"
        command = [
            find_binary(),
            "serve",
            "--listen",
            address,
            "--data-dir",
            str(self._folder / "data"),
        ]
        # Settings of the developer's own hub must not reach this one.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CHORUS_")}
        log = (self._folder / "log").open("ab")
        with log:
            process = subprocess.Popen(  # noqa: S603
                [*command, "--rate-limit", "0", *self._arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                env=environment,
                text=True,
            )
        self._process = process
        self.url = self._read_address(process)

    def _read_address(self, process: subprocess.Popen[str]) -> str:
        output: IO[str] | None = process.stdout
        for line in output or []:
            if line.startswith(LISTENING):
                return line.removeprefix(LISTENING).strip()
        self.stop()
        raise HubNotStarted(f"the hub ended: {self.log()[-2000:]}")

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Ends the hub as a power failure does."""
        self.signal(signal.SIGKILL)
        self._wait()

    def pause(self) -> None:
        """Stops the process without closing its connections, as a machine that hangs."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGTERM)
            self._wait()

    def _wait(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    async def agent(self, name: str, **options: Any) -> Agent:
        """A new agent of this hub, whose key is in memory only."""
        address = name if "@" in name else f"{name}@chorus"
        return await Agent.register(address, self.url, save=False, **options)


@contextlib.contextmanager
def hub(*arguments: str) -> Generator[TestHub, None, None]:
    """A running hub; `arguments` are further options of `chorus serve`."""
    with tempfile.TemporaryDirectory(prefix="chorus-hub-") as folder:
        running = TestHub(Path(folder), list(arguments))
        running.start()
        try:
            yield running
        finally:
            running.resume()
            running.stop()
