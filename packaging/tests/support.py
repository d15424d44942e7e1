"""What the tests of the packages share: the packages, a server on the loopback, and programs that may be missing."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import threading
import unittest
from collections.abc import Callable, Iterator

DIST = pathlib.Path(os.environ["CHORUS_DIST"])
PACKAGING = pathlib.Path(__file__).resolve().parent.parent
BINARY_SUM = os.environ["CHORUS_BINARY_SHA256"]
VERSION = os.environ["CHORUS_VERSION"]
IS_STATIC = os.environ["CHORUS_IS_STATIC"] == "1"
TIMEOUT = 120


def find_one(pattern: str) -> pathlib.Path:
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"{pattern} is {len(found)} files in {DIST}")
    return found[0]


def needs(*programs: str) -> Callable[[object], object]:
    """Skips a test where a program is missing; CI does without nothing, so there it runs and fails."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing and not os.environ.get("CI"):
        return unittest.skip(f"missing: {', '.join(missing)}")
    return lambda test: test


def run(*command: object, check: bool = True, **more: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT, **more  # type: ignore[call-overload]
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def sum_file(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def serve(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def serve_folder(folder: pathlib.Path) -> contextlib.AbstractContextManager[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    return serve(functools.partial(Handler, directory=str(folder)))  # type: ignore[arg-type]


def serve_npm() -> contextlib.AbstractContextManager[str]:
    """A registry of npm with the packages of this release: the list of versions, and their archives."""
    manifests = {}
    for path in DIST.glob("chorushub-*.tgz"):
        with tarfile.open(path) as archive:
            member = archive.extractfile("package/package.json")
            assert member is not None
            manifests[path.name] = json.load(member)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            base = f"http://{self.headers['Host']}"
            if self.path == "/chorushub":
                body = json.dumps(describe(base)).encode()
            elif (name := self.path.rpartition("/")[2]) in manifests:
                body = (DIST / name).read_bytes()
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    def describe(base: str) -> dict[str, object]:
        versions = {}
        for name, manifest in manifests.items():
            sha1 = hashlib.sha1((DIST / name).read_bytes(), usedforsecurity=False).hexdigest()
            versions[manifest["version"]] = manifest | {"dist": {"tarball": f"{base}/-/{name}", "shasum": sha1}}
        return {"name": "chorushub", "dist-tags": {"latest": VERSION}, "versions": versions}

    return serve(Handler)


INITIALIZE = (
    json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "packages", "version": "1"},
            },
        }
    )
    + "\n"
)


@contextlib.contextmanager
def run_hub(binary: pathlib.Path, folder: pathlib.Path) -> Iterator[str]:
    """A hub of the given program on a free port."""
    hub = subprocess.Popen(
        [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert hub.stdout is not None
    try:
        for line in hub.stdout:
            if "http://" in line:
                yield "http://" + line.partition("http://")[2].split()[0].rstrip("/")
                break
        else:
            raise AssertionError("the hub ended")
    finally:
        hub.terminate()
        hub.wait(TIMEOUT)
        hub.stdout.close()
