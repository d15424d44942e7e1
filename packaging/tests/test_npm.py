"""The npm package, installed and run from a registry on the loopback (PKG-05 to PKG-07, PKG-09)."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from support import INITIALIZE, IS_STATIC, TIMEOUT, VERSION, find_one, needs, run, run_hub, serve_npm


@needs("npm", "npx", "node")
class NpmPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.registry = cls.enterClassContext(serve_npm())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.environment = os.environ | {
            "npm_config_registry": cls.registry,
            "npm_config_cache": str(cls.folder / "cache"),
            "npm_config_update_notifier": "false",
            "npm_config_audit": "false",
            "npm_config_fund": "false",
            "HOME": str(cls.folder),
            "CHORUS_HOME": str(cls.folder / "chorus"),
        }
        cls.environment.pop("CHORUS_BINARY", None)
        project = cls.folder / "project"
        project.mkdir()
        (project / "package.json").write_text("{}")
        # No install script is needed: careful people and pnpm run none.
        run("npm", "install", "--ignore-scripts", "chorushub", cwd=project, env=cls.environment)
        cls.launcher = project / "node_modules/.bin/chorus"

    def launch(self, *arguments: str, node: tuple[str, ...] = (), **more: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["node", *node, str(self.launcher), *arguments], env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,  # type: ignore[call-overload]
        )

    def test_program_runs_and_its_exit_code_is_passed_on(self) -> None:
        self.assertIn(VERSION, run(self.launcher, "--version", env=self.environment).stdout)
        # Both ways: in place of node, and as its child where node cannot.
        for node in ((), ("--require", str(self.without_execve()))):
            child = self.launch("whoami", "--credentials", str(self.folder / "none.json"), node=node)
            self.assertEqual((child.wait(TIMEOUT), "no credentials" in child.communicate()[1]), (2, True))

    def without_execve(self) -> pathlib.Path:
        path = self.folder / "without_execve.js"
        path.write_text("process.execve = undefined\n")
        return path

    def test_signals_reach_the_program(self) -> None:
        for node in ((), ("--require", str(self.without_execve()))):
            data = self.folder / f"data{len(node)}"
            hub = self.launch("serve", "--listen", "127.0.0.1:0", "--data-dir", str(data), node=node)
            assert hub.stdout is not None
            self.assertIn("http://", hub.stdout.readline())
            hub.send_signal(signal.SIGTERM)
            self.assertEqual(hub.wait(TIMEOUT), 0)  # the hub itself ended, and in order
            hub.communicate()

    def test_a_killed_program_is_told_as_128_and_its_signal(self) -> None:
        data = self.folder / "killed"
        hub = self.launch(
            "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data), node=("--require", str(self.without_execve()))
        )
        assert hub.stdout is not None
        hub.stdout.readline()
        run("pkill", "-KILL", "-P", hub.pid)
        self.assertEqual(hub.wait(TIMEOUT), 128 + signal.SIGKILL)
        hub.communicate()

    def test_a_missing_platform_package_is_one_clear_line(self) -> None:
        project = self.folder / "without_optional"
        project.mkdir()
        (project / "package.json").write_text("{}")
        run("npm", "install", "--omit=optional", "chorushub", cwd=project, env=self.environment)
        launcher = project / "node_modules/.bin/chorus"
        done = run(launcher, "--version", env=self.environment, check=False)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1))
        self.assertIn("--omit=optional", done.stderr)
        with_own = self.environment | {"CHORUS_BINARY": "/bin/echo"}
        self.assertEqual(run(launcher, "own", env=with_own).stdout, "own\n")

    def test_npx_answers_an_mcp_client_from_an_empty_cache_and_leaves_nothing(self) -> None:
        # A test build is larger, and not as fast.
        packed_bytes, cold_seconds, warm_seconds, end_seconds = (15e6, 3, 0.8, 2) if IS_STATIC else (30e6, 60, 60, TIMEOUT)
        self.assertLess(find_one("chorushub-*-linux-x64.tgz").stat().st_size, packed_bytes)
        with run_hub(self.launcher, self.folder / "hub") as hub:
            environment = self.environment | {"npm_config_cache": str(self.folder / "empty")}
            for cache, most_seconds in (("empty", cold_seconds), ("warm", warm_seconds)):
                with self.subTest(cache):
                    self.check_mcp_session(hub, environment, most_seconds, end_seconds)

    def check_mcp_session(self, hub: str, environment: dict[str, str], most_seconds: float, end_seconds: float) -> None:
        began = time.monotonic()
        server = subprocess.Popen(
            ["npx", "-y", "chorushub", "mcp", "--register", "npx", "--hub", hub],
            env=environment, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(INITIALIZE)
        server.stdin.flush()
        self.assertIn('"serverInfo"', server.stdout.readline())
        seconds = time.monotonic() - began
        print(f"npx: first answer after {seconds:.1f} s")
        self.assertLess(seconds, most_seconds)
        server.stdin.close()
        server.wait(end_seconds)
        server.stdout.close()
        left = run("pgrep", "-g", server.pid, check=False).stdout
        self.assertEqual(left, "", "processes of its session are left")


if __name__ == "__main__":
    unittest.main()
