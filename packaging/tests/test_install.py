"""install.sh against a server on the loopback, and the signature of the sums (PKG-11, PKG-12, REL-06)."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY_SUM, DIST, PACKAGING, VERSION, find_one, needs, run, serve_folder, sum_file

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


@needs("curl")
class InstallScript(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.release = self.folder / f"releases/download/v{VERSION}"
        self.release.mkdir(parents=True)
        newest = self.folder / "releases/latest/download"
        newest.mkdir(parents=True)
        for path in (find_one("chorus-*-x86_64-unknown-linux-musl.tar.gz"), DIST / "SHA256SUMS"):
            shutil.copy(path, self.release)
        shutil.copy(DIST / "SHA256SUMS", newest)
        self.script = (PACKAGING / "install.sh").read_text()
        self.at = self.enterContext(serve_folder(self.folder)) + "/releases"
        self.into = self.folder / "bin"

    def install(self, *arguments: str, shell: str = "dash") -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "CHORUS_RELEASES": self.at,
            "CHORUS_INSTALL_DIR": str(self.into),
            "HOME": str(self.folder),
        }
        command = [shell, "sh"] if shell == "busybox" else [shell]
        # From standard input, as `curl | sh` gives it.
        return run(*command, "-s", "--", *arguments, input=self.script, env=environment, check=False)

    def test_newest_version_is_installed_and_removed(self) -> None:
        for shell in SHELLS:
            with self.subTest(shell=shell):
                done = self.install(shell=shell)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertIn("is not on your PATH", done.stdout)
                self.assertEqual(sum_file(self.into / "chorus"), BINARY_SUM)
                self.assertEqual([path.name for path in self.into.iterdir()], ["chorus"])
                self.assertEqual(self.install("--uninstall", shell=shell).returncode, 0)
                self.assertFalse((self.into / "chorus").exists())

    def test_a_version_that_is_not_there_is_named(self) -> None:
        done = self.install("--version", "9.9.9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("version 9.9.9 could not be found", done.stderr)

    def test_an_archive_with_another_sum_is_not_installed(self) -> None:
        archive = next(self.release.glob("*.tar.gz"))
        archive.write_bytes(archive.read_bytes() + b"more")
        done = self.install()
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not what was released", done.stderr)
        self.assertFalse(self.into.exists())

    def test_a_script_that_was_cut_off_does_nothing(self) -> None:
        whole = self.script
        lines = whole.splitlines(keepends=True)
        for count in range(0, len(lines), 7):
            self.script = "".join(lines[:count])
            self.install()
            self.assertFalse(self.into.exists(), f"after {count} lines")
        self.script = whole[: whole.rindex("main")]
        self.install()
        self.assertFalse(self.into.exists())

    @needs("minisign")
    def test_a_forged_signature_is_refused(self) -> None:
        keys = self.folder / "keys"
        keys.mkdir()
        run("minisign", "-GW", "-p", keys / "public", "-s", keys / "secret")
        public = (keys / "public").read_text().splitlines()[1]
        self.script = self.script.replace("@PUBLIC_KEY@", public)
        sums = self.release / "SHA256SUMS"
        run("minisign", "-S", "-s", keys / "secret", "-m", sums)
        self.assertEqual(self.install().returncode, 0)
        self.install("--uninstall")
        # Archive and sums replaced together: only the signature tells.
        archive = next(self.release.glob("*.tar.gz"))
        was = sum_file(archive)
        archive.write_bytes(archive.read_bytes() + b"more")
        sums.write_text(sums.read_text().replace(was, sum_file(archive)))
        done = self.install()
        self.assertEqual(done.returncode, 1)
        self.assertIn("not that of the project", done.stderr)
        self.assertFalse((self.into / "chorus").exists())

    @needs("minisign")
    def test_the_commands_of_the_page_tell_what_was_released(self) -> None:
        keys = self.folder / "keys"
        keys.mkdir()
        run("minisign", "-GW", "-p", keys / "public", "-s", keys / "secret")
        run("minisign", "-S", "-s", keys / "secret", "-m", self.release / "SHA256SUMS")
        public = (keys / "public").read_text().splitlines()[1]
        page = (PACKAGING.parent / "docs/verify.md").read_text()
        section = page.partition("## Sums and signature")[2].partition("\n## ")[0]
        commands = [line[2:].replace("PUBLIC_KEY", public) for line in section.splitlines() if line.startswith("$ ")]
        self.assertEqual(len(commands), 2)
        for command in commands:
            run("sh", "-c", command, cwd=self.release)
        archive = next(self.release.glob("*.tar.gz"))
        whole = archive.read_bytes()
        archive.write_bytes(whole + b"more")
        self.assertNotEqual(run("sh", "-c", commands[1], cwd=self.release, check=False).returncode, 0)
        archive.write_bytes(whole)
        sums = self.release / "SHA256SUMS"
        sums.write_text(sums.read_text() + "\n")
        self.assertNotEqual(run("sh", "-c", commands[0], cwd=self.release, check=False).returncode, 0)

    @needs("shellcheck")
    def test_shellcheck_finds_nothing(self) -> None:
        run("shellcheck", PACKAGING / "install.sh")


if __name__ == "__main__":
    unittest.main()
