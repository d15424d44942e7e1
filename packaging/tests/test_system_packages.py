"""Debian package, RPM package and container image (PKG-01, PKG-13, PKG-14, OPS-07)."""

from __future__ import annotations

import json
import os
import pathlib
import tarfile
import tempfile
import unittest

from support import BINARY_SUM, IS_STATIC, PACKAGING, VERSION, find_one, needs, run, sum_file


class SystemPackages(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def assert_is_system(self, root: pathlib.Path) -> None:
        self.assertEqual(sum_file(root / "usr/bin/chorus"), BINARY_SUM)
        for unit in ("chorus.service", "chorus-backup.service", "chorus-backup.timer"):
            shipped = (PACKAGING.parent / "deploy" / unit).read_bytes()
            self.assertEqual((root / "usr/lib/systemd/system" / unit).read_bytes(), shipped)
        for path in ("etc/chorus/chorus.toml", "usr/share/man/man1/chorus.1.gz"):
            self.assertTrue((root / path).is_file(), path)
        for path in ("bash-completion/completions/chorus", "zsh/site-functions/_chorus", "fish/vendor_completions.d/chorus.fish"):
            self.assertTrue((root / "usr/share" / path).is_file(), path)

    @needs("dpkg")
    @unittest.skipUnless(os.geteuid() == 0, "installing into a folder needs root")
    def test_deb_is_installed_removed_and_purged(self) -> None:
        root = self.folder / "root"
        state = root / "var/lib/dpkg"
        for part in ("updates", "info", "triggers"):
            (state / part).mkdir(parents=True)
        for part in ("status", "available", "triggers/File", "triggers/Unincorp"):
            (state / part).touch()
        dpkg = ["dpkg", f"--root={root}", "--force-script-chrootless", "--force-not-root", "--log=/dev/null"]
        run(*dpkg, "--install", find_one("chorus_*_amd64.deb"))
        self.assert_is_system(root)
        self.assertFalse((root / "etc/systemd").exists(), "nothing is enabled")
        data = root / "var/lib/chorus/chorus.db"
        data.parent.mkdir(parents=True)
        data.write_text("the data of a hub")
        settings = root / "etc/chorus/chorus.toml"
        settings.write_text("listen = \"127.0.0.1:4000\"\n")
        run(*dpkg, "--install", find_one("chorus_*_amd64.deb"))
        self.assertIn("4000", settings.read_text(), "an upgrade keeps changed settings")
        run(*dpkg, "--remove", "chorus")
        self.assertFalse((root / "usr/bin/chorus").exists())
        self.assertEqual((data.exists(), settings.exists()), (True, True))
        run(*dpkg, "--purge", "chorus")
        self.assertEqual((data.exists(), settings.exists()), (False, False))

    @needs("lintian")
    def test_lintian_has_no_finding(self) -> None:
        package = find_one("chorus_*_amd64.deb")
        # A program of a test build is linked against the C library of this machine; the released one is static.
        suppressed = [] if IS_STATIC else ["--suppress-tags", "undeclared-elf-prerequisites,mismatched-override,unused-override"]
        done = run("lintian", "--allow-root", "--fail-on", "error,warning", *suppressed, package, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    @needs("rpm")
    @unittest.skipUnless(os.geteuid() == 0, "installing into a folder needs root")
    def test_rpm_is_whole_installed_and_removed(self) -> None:
        package = find_one("chorus-*.x86_64.rpm")
        self.assertIn("digests OK", run("rpm", "-K", "--nosignature", package).stdout)
        self.assertIn("/etc/chorus/chorus.toml", run("rpm", "-qp", "--configfiles", package).stdout)
        root = self.folder / "root"
        (root / "var/lib/rpm").mkdir(parents=True)
        rpm = ["rpm", "--root", root, "--noscripts", "--nodeps"]
        run("rpm", "--root", root, "--initdb")
        run(*rpm, "-i", package)
        self.assert_is_system(root)
        self.assertEqual(run("rpm", "--root", root, "-V", "--nodeps", "--nouser", "--nogroup", "chorus").stdout, "")
        data = root / "var/lib/chorus/chorus.db"
        data.parent.mkdir(parents=True)
        data.touch()
        run(*rpm, "-e", "chorus")
        self.assertEqual(((root / "usr/bin/chorus").exists(), data.exists()), (False, True))

    @needs("skopeo", "umoci")
    @unittest.skipUnless(os.geteuid() == 0, "unpacking an image with its owners needs root")
    def test_image_has_the_binary_a_user_and_a_health_check(self) -> None:
        archive = find_one("chorus-*-image.tar")
        inspected = json.loads(run("skopeo", "inspect", "--config", f"oci-archive:{archive}:{VERSION}").stdout)
        self.assertEqual(inspected["config"]["User"], "10001:10001")
        with tarfile.open(archive) as tar:
            tar.extractall(self.folder / "image", filter="data")
        run("skopeo", "copy", f"oci-archive:{archive}:{VERSION}", f"oci:{self.folder}/single:chorus")
        run("umoci", "unpack", "--image", f"{self.folder}/single:chorus", self.folder / "bundle")
        root = self.folder / "bundle/rootfs"
        self.assertEqual(sum_file(root / "chorus"), BINARY_SUM)
        data = (root / "data").stat()
        self.assertEqual((data.st_uid, data.st_mode & 0o777), (10001, 0o700))
        self.assertIn(b"BEGIN CERTIFICATE", (root / "etc/ssl/certs/ca-certificates.crt").read_bytes())
        config = json.loads(next(self.find_config()).read_bytes())
        self.assertEqual(config["config"]["Healthcheck"]["Test"][:4], ["CMD", "/chorus", "admin", "ready"])
        if IS_STATIC:
            self.assertLess(archive.stat().st_size, 25e6)
            started = run("chroot", "--userspec", "10001:10001", root, "/chorus", "--version")
            self.assertIn(VERSION, started.stdout)

    def find_config(self):
        for path in (self.folder / "image/blobs/sha256").iterdir():
            if path.stat().st_size < 10_000 and b'"Entrypoint"' in path.read_bytes():
                yield path


if __name__ == "__main__":
    unittest.main()
