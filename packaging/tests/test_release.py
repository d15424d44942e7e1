"""What all packages of a release have in common (PKG-01, PKG-11, PKG-15, PKG-16, REL-02)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

from support import BINARY_SUM, DIST, IS_STATIC, PACKAGING, VERSION, find_one, needs, run

# People wait for the download, and an image or a package is little more than the program. The aim is 20 MB.
MAX_PROGRAM_BYTES = 26_000_000
AGAIN = os.environ.get("CHORUS_DIST_AGAIN")


def read_binary(path: pathlib.Path) -> bytes:
    """The program inside a package, however it is wrapped."""
    if path.suffix in (".whl", ".mcpb"):
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/chorus"))
            assert archive.getinfo(name).external_attr >> 16 & 0o777 == 0o755, f"{name} in {path.name} cannot be run"
            return archive.read(name)
    if path.suffix == ".deb":
        return read_tar(subprocess.check_output(["dpkg-deb", "--fsys-tarfile", path]))
    if path.suffix == ".rpm":
        cpio = subprocess.check_output(["rpm2cpio", path])
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cpio", "-idm", "--quiet"], input=cpio, cwd=folder, check=True)
            return (pathlib.Path(folder) / "usr/bin/chorus").read_bytes()
    return read_tar(path.read_bytes())


def read_tar(data: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content and re.search(r"(^|/)chorus$", member.name) and "completions" not in member.name and "overrides" not in member.name:
                return content.read()
    raise AssertionError("no program")


class ReleaseFiles(unittest.TestCase):
    @needs("dpkg-deb", "rpm2cpio", "cpio")
    def test_every_package_has_the_same_binary(self) -> None:
        packages = [
            path
            for path in DIST.iterdir()
            if re.search(r"\.(whl|mcpb|deb|rpm)$|-(musl|darwin)\.tar\.gz$|-linux-x64\.tgz$", path.name)
        ]
        self.assertEqual(len(packages), 6)
        for path in packages:
            with self.subTest(path.name):
                self.assertEqual(hashlib.sha256(read_binary(path)).hexdigest(), BINARY_SUM)

    @unittest.skipUnless(IS_STATIC, "a test build is larger")
    def test_the_program_is_small(self) -> None:
        with tarfile.open(find_one("chorus-*-x86_64-unknown-linux-musl.tar.gz")) as archive:
            program = next(member for member in archive if member.name.endswith("/chorus") and member.mode & 0o111)
        self.assertLessEqual(program.size, MAX_PROGRAM_BYTES)

    def test_a_second_run_writes_the_same_bytes(self) -> None:
        assert AGAIN is not None
        first = (DIST / "SHA256SUMS").read_text()
        self.assertEqual(first, (pathlib.Path(AGAIN) / "SHA256SUMS").read_text())
        self.assertEqual(len(first.splitlines()), len(list(DIST.iterdir())) - 1)

    def test_names_agree_in_all_registries(self) -> None:
        entry = json.loads((DIST / "server.json").read_text())
        with tarfile.open(find_one(f"chorushub-{VERSION}.tgz")) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))  # type: ignore[arg-type]
        with zipfile.ZipFile(find_one("*.whl")) as archive:
            metadata = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
        self.assertEqual(entry["name"], manifest["mcpName"])
        self.assertIn(f"mcp-name: {entry['name']} ", metadata)
        bundles = {package["identifier"].rpartition("/")[2]: package for package in entry["packages"] if "fileSha256" in package}
        self.assertEqual(list(bundles), [path.name for path in DIST.glob("*.mcpb")])
        for name, package in bundles.items():
            self.assertEqual(package["fileSha256"], hashlib.sha256((DIST / name).read_bytes()).hexdigest())

    def test_the_formula_names_what_was_released(self) -> None:
        text = (DIST / "chorus.rb").read_text()
        self.assertNotIn("@", text)
        tarball = find_one("chorus-*-x86_64-unknown-linux-musl.tar.gz")
        self.assertIn(f'/v{VERSION}/{tarball.name}"\n      sha256 "{hashlib.sha256(tarball.read_bytes()).hexdigest()}"', text)
        self.assertEqual(len(re.findall(r"\b(do|def|class)\b", text)), len(re.findall(r"^ *end$", text, re.MULTILINE)))

    def test_one_version_is_written_everywhere(self) -> None:
        run(PACKAGING / "version", "--check")
        done = run(PACKAGING / "version", "--check", "99.0.0", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Cargo.toml says", done.stderr)

    @needs("mandoc")
    def test_man_pages_are_clean(self) -> None:
        with tarfile.open(find_one("chorus-*-x86_64-unknown-linux-musl.tar.gz")) as archive:
            pages = [member for member in archive if "/man/man1/" in member.name]
            self.assertGreater(len(pages), 40)
            for page in pages:
                text = archive.extractfile(page).read()  # type: ignore[union-attr]
                done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=text, capture_output=True)
                self.assertEqual((done.returncode, done.stdout), (0, b""), page.name)


if __name__ == "__main__":
    unittest.main()
