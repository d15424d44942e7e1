"""The container image: an OCI archive with the binary, the certificates that it trusts, a user and a folder for data."""

from __future__ import annotations

import hashlib
import json
import time

from .archive import Entry, compress, write_tar
from .release import LICENSE, SUMMARY, Release, Target

USER = 10001  # the number that deploy/Dockerfile and the manifests for Kubernetes use
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
SECOND = 1_000_000_000  # Docker counts in nanoseconds


def write_image(release: Release, certificates: bytes) -> tuple[str, bytes]:
    blobs: dict[str, bytes] = {}

    def put(kind: str, content: bytes, **more: object) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)} | more

    manifests = []
    for target in release.binaries:
        if not target.oci:
            continue
        layer = write_tar(list_files(release, target, certificates), release.epoch)
        config = put(CONFIG, to_json(describe(release, target, hashlib.sha256(layer).hexdigest())))
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [put(LAYER, compress(layer))],
        }
        platform = {"architecture": target.oci, "os": "linux"}
        manifests.append(put(MANIFEST, to_json(manifest), platform=platform))
    image = put(INDEX, to_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}))
    image["annotations"] = {"org.opencontainers.image.ref.name": release.version}
    files = [
        Entry("oci-layout", to_json({"imageLayoutVersion": "1.0.0"})),
        Entry("index.json", to_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]})),
        Entry("blobs", None, 0o755),
        Entry("blobs/sha256", None, 0o755),
    ]
    files += [Entry(f"blobs/sha256/{digest}", content) for digest, content in sorted(blobs.items())]
    return f"chorus-{release.version}-image.tar", write_tar(files, release.epoch)


def list_files(release: Release, target: Target, certificates: bytes) -> list[Entry]:
    return [
        Entry("chorus", release.binaries[target], 0o755),
        Entry("data", None, 0o700, USER),
        Entry("etc", None, 0o755),
        Entry("etc/group", f"root:x:0:\nchorus:x:{USER}:\n".encode()),
        Entry("etc/passwd", f"root:x:0:0::/:/sbin/nologin\nchorus:x:{USER}:{USER}::/data:/sbin/nologin\n".encode()),
        Entry("etc/ssl", None, 0o755),
        Entry("etc/ssl/certs", None, 0o755),
        Entry("etc/ssl/certs/ca-certificates.crt", certificates),
        Entry("tmp", None, 0o1777),
    ]


def describe(release: Release, target: Target, layer_digest: str) -> dict[str, object]:
    return {
        "architecture": target.oci,
        "os": "linux",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)),
        "config": {
            "User": f"{USER}:{USER}",
            "WorkingDir": "/data",
            "Volumes": {"/data": {}},
            "ExposedPorts": {"3000/tcp": {}},
            "Env": ["PATH=/", "HOME=/data"],
            "Entrypoint": ["/chorus"],
            "Cmd": ["serve", "--listen", "0.0.0.0:3000", "--data-dir", "/data"],
            "Healthcheck": {
                "Test": ["CMD", "/chorus", "admin", "ready", "--hub", "http://127.0.0.1:3000"],
                "Interval": 10 * SECOND,
                "Timeout": 5 * SECOND,
                "StartPeriod": 60 * SECOND,
                "Retries": 3,
            },
            "Labels": {
                "io.modelcontextprotocol.server.name": release.registry_name,
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.licenses": LICENSE,
                "org.opencontainers.image.source": release.repository,
                "org.opencontainers.image.version": release.version,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created_by": "packaging/package"}],
    }


def to_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
