"""The wheel: a zip around the binary, with a module that finds it."""

from __future__ import annotations

import base64
import hashlib

from .archive import Entry, write_zip
from .release import LICENSE, PACKAGE_NAME, SUMMARY, Release, Target

MODULE = '''"""Finds and runs the chorus program that this package brings."""

import os
import pathlib
import sys
import sysconfig


def find_binary() -> str:
    """The path of the program: $CHORUS_BINARY, else the one that was installed with this package."""
    named = os.environ.get("CHORUS_BINARY")
    if named:
        return named
    folders = [sysconfig.get_path("scripts"), pathlib.Path(sys.executable).parent]
    package = pathlib.Path(__file__).resolve().parent
    # `pip install --target DIR` and `--prefix DIR` put programs into a folder bin beside or above the modules.
    folders += [package.parent / "bin", *(parent / "bin" for parent in package.parents)]
    for folder in folders:
        path = pathlib.Path(folder) / "chorus"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise FileNotFoundError("the chorus program is not beside this package; set CHORUS_BINARY to one")


def main() -> None:
    try:
        binary = find_binary()
    except FileNotFoundError as error:
        sys.exit(f"chorus: {error}")
    os.execv(binary, [binary, *sys.argv[1:]])
'''


def write_wheel(release: Release, target: Target) -> tuple[str, bytes]:
    stem = f"{PACKAGE_NAME}-{release.python_version}"
    info = f"{stem}.dist-info"
    tags = "".join(f"Tag: py3-none-{tag}\n" for tag in target.wheel_tag.split("."))
    files = [
        Entry(f"{PACKAGE_NAME}/__init__.py", MODULE.encode()),
        Entry(f"{PACKAGE_NAME}/__main__.py", f"from {PACKAGE_NAME} import main\n\nmain()\n".encode()),
        Entry(f"{PACKAGE_NAME}/py.typed", b""),
        Entry(f"{stem}.data/scripts/chorus", release.binaries[target], 0o755),
        Entry(f"{info}/licenses/LICENSE", release.read_file("LICENSE")),
        Entry(f"{info}/METADATA", write_metadata(release)),
        Entry(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: chorus\nRoot-Is-Purelib: false\n{tags}".encode()),
        # uvx runs a program that is called like its package.
        Entry(f"{info}/entry_points.txt", f"[console_scripts]\n{PACKAGE_NAME} = {PACKAGE_NAME}:main\n".encode()),
    ]
    files.append(Entry(f"{info}/RECORD", write_record(files, f"{info}/RECORD")))
    return f"{stem}-py3-none-{target.wheel_tag}.whl", write_zip(files, release.epoch)


def write_metadata(release: Release) -> bytes:
    page = release.read_file("packaging/wheel.md").decode()
    return (
        "Metadata-Version: 2.4\n"
        f"Name: {PACKAGE_NAME}\nVersion: {release.python_version}\nSummary: {SUMMARY}\n"
        f"License-Expression: {LICENSE}\nLicense-File: LICENSE\nProject-URL: Source, {release.repository}\n"
        "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n"
        f"<!-- mcp-name: {release.registry_name} -->\n\n{page}"
    ).encode()


def write_record(files: list[Entry], own_path: str) -> bytes:
    lines = []
    for entry in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content or b"").digest()).rstrip(b"=").decode()
        lines.append(f"{entry.path},sha256={digest},{len(entry.content or b'')}\n")
    return ("".join(lines) + f"{own_path},,\n").encode()
