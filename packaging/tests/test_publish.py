"""Publishing to npm, with npm itself and a registry on the loopback (PKG-06, REL-03)."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

from support import DIST, PACKAGING, TIMEOUT, VERSION, needs, serve


class PublishingRegistry:
    """Takes what npm publishes, and refuses a version that is there, as npm's own does."""

    def __init__(self) -> None:
        self.document: dict[str, dict[str, object]] = {"versions": {}, "dist-tags": {}}
        self.published: list[tuple[str, str]] = []

    def make_handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if urllib.parse.urlparse(self.path).path == "/chorushub" and registry.document["versions"]:
                    self.answer(200, registry.document | {"name": "chorushub"})
                else:
                    self.answer(404, {"error": "not found"})

            def do_PUT(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                ((version, manifest),) = sent["versions"].items()
                if version in registry.document["versions"]:
                    self.answer(403, {"error": "cannot publish over an existing version"})
                    return
                ((_, attachment),) = sent["_attachments"].items()
                packed = base64.b64decode(attachment["data"])
                assert manifest["dist"]["shasum"] == hashlib.sha1(packed, usedforsecurity=False).hexdigest()
                registry.document["versions"][version] = manifest
                registry.document["dist-tags"] |= sent["dist-tags"]
                registry.published += [(version, tag) for tag in sent["dist-tags"]]
                self.answer(201, {"ok": True})

            def answer(self, status: int, body: dict[str, object]) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@needs("npm")
class NpmPublishing(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.dist = self.folder / "dist"
        self.dist.mkdir()
        for path in DIST.glob("chorushub-*.tgz"):
            shutil.copy(path, self.dist)
        self.registry = PublishingRegistry()
        self.address = self.enterContext(serve(self.registry.make_handler()))

    def publish(self) -> subprocess.CompletedProcess[str]:
        token = f"{self.address.removeprefix('http:')}/:_authToken=not-a-secret\n"
        (self.folder / ".npmrc").write_text(token)
        environment = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"} | {
            "HOME": str(self.folder),
            "npm_config_registry": self.address,
            "npm_config_cache": str(self.folder / "cache"),
            "npm_config_userconfig": str(self.folder / ".npmrc"),
            "npm_config_update_notifier": "false",
        }
        return subprocess.run(
            [PACKAGING / "publish_npm", self.dist], env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )

    def test_platforms_are_first_and_latest_is_the_main_package(self) -> None:
        done = self.publish()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        platform = f"{VERSION}-linux-x64"
        self.assertEqual(self.registry.published, [(platform, "linux-x64"), (VERSION, "latest")])
        again = self.publish()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout.count("is there already"), 2)
        self.assertEqual(len(self.registry.published), 2)

    def test_another_sum_under_the_same_version_stops_it(self) -> None:
        self.assertEqual(self.publish().returncode, 0)
        versions = self.registry.document["versions"]
        versions[VERSION]["dist"]["shasum"] = "0" * 40  # type: ignore[index]
        done = self.publish()
        self.assertEqual(done.returncode, 1)
        self.assertIn("is there with another sum", done.stderr)


if __name__ == "__main__":
    unittest.main()
