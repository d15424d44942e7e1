"""The wheel: pip and uvx run it (PKG-08, PKG-09)."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import venv

from support import DIST, INITIALIZE, TIMEOUT, VERSION, find_one, needs, run, run_hub


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        venv.create(cls.folder / "venv", with_pip=True)
        cls.python = cls.folder / "venv/bin/python"
        cls.environment = os.environ | {"CHORUS_HOME": str(cls.folder / "chorus")}
        cls.environment.pop("CHORUS_BINARY", None)
        run(cls.python, "-m", "pip", "install", "--no-index", "--find-links", DIST, "chorushub")

    def test_pip_installs_a_program_and_a_module_that_finds_it(self) -> None:
        for command in (["bin/chorus"], ["bin/chorushub"], ["bin/python", "-m", "chorushub"]):
            program = [self.folder / "venv" / command[0], *command[1:]]
            self.assertIn(VERSION, run(*program, "--version", env=self.environment).stdout)
        found = run(self.python, "-c", "import chorushub; print(chorushub.find_binary())", env=self.environment).stdout
        self.assertEqual(found.strip(), str(self.folder / "venv/bin/chorus"))

    def test_exit_codes_are_the_programs(self) -> None:
        done = run(self.folder / "venv/bin/chorushub", "whoami", "--credentials", self.folder / "none.json", env=self.environment, check=False)
        self.assertEqual(done.returncode, 2)

    def test_pip_into_a_folder_is_found_too(self) -> None:
        target = self.folder / "target"
        run(self.python, "-m", "pip", "install", "--no-index", "--find-links", DIST, "--target", target, "chorushub")
        environment = self.environment | {"PYTHONPATH": str(target)}
        found = run(sys.executable, "-c", "import chorushub; print(chorushub.find_binary())", env=environment).stdout
        self.assertEqual(found.strip(), str(target / "bin/chorus"))

    @needs("uvx")
    def test_uvx_answers_an_mcp_client(self) -> None:
        with run_hub(self.folder / "venv/bin/chorus", self.folder / "hub") as hub:
            environment = self.environment | {"UV_CACHE_DIR": str(self.folder / "uv")}
            command = ["uvx", "--no-index", "--find-links", str(DIST), "chorushub", "mcp", "--register", "uvx", "--hub", hub]
            began = time.monotonic()
            server = subprocess.Popen(
                command, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write(INITIALIZE)
            server.stdin.flush()
            self.assertIn('"serverInfo"', server.stdout.readline())
            print(f"uvx, empty cache: first answer after {time.monotonic() - began:.1f} s")
            server.stdin.close()
            server.wait(TIMEOUT)
            server.stdout.close()

    @needs("twine", "check-wheel-contents")
    def test_the_checkers_of_pypi_find_nothing(self) -> None:
        wheel = find_one("*.whl")
        run("twine", "check", "--strict", wheel)
        run("check-wheel-contents", wheel)


if __name__ == "__main__":
    unittest.main()
