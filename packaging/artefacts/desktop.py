"""The bundle that desktop programs install with a double click, and the entry for the registry of MCP servers."""

from __future__ import annotations

import hashlib
import json

from .archive import Entry, write_zip
from .release import LICENSE, PACKAGE_NAME, SUMMARY, Release, Target

REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def write_bundle(release: Release, target: Target) -> tuple[str, bytes]:
    manifest = {
        "manifest_version": "0.3",
        "name": "chorus",
        "display_name": "Chorus",
        "version": release.version,
        "description": SUMMARY,
        "author": {"name": "The Chorus project"},
        "repository": {"type": "git", "url": release.repository},
        "license": LICENSE,
        "server": {
            "type": "binary",
            "entry_point": "server/chorus",
            "mcp_config": {
                "command": "${__dirname}/server/chorus",
                "args": ["mcp", "--register", "${user_config.name}", "--hub", "${user_config.hub}"],
            },
        },
        "user_config": {
            "hub": {
                "type": "string",
                "title": "Hub",
                "description": "The address of the hub",
                "default": "http://127.0.0.1:3000",
                "required": True,
            },
            "name": {
                "type": "string",
                "title": "Name",
                "description": "What this agent is called there, such as alice@chorus",
                "required": True,
            },
        },
        "compatibility": {"platforms": [target.npm_os]},
        "tools_generated": True,
    }
    entries = [
        Entry("manifest.json", (json.dumps(manifest, indent=2) + "\n").encode()),
        Entry("LICENSE", release.read_file("LICENSE")),
        Entry("server/chorus", release.binaries[target], 0o755),
    ]
    return f"chorus-{release.version}-{target.npm_platform}.mcpb", write_zip(entries, release.epoch)


def write_registry_entry(release: Release, bundles: dict[str, bytes]) -> tuple[str, bytes]:
    """`bundles` are the desktop bundles by file name: the registry wants the sum of each."""
    arguments = [{"type": "positional", "value": "mcp"}]
    stdio = {"type": "stdio"}
    packages: list[dict[str, object]] = [
        {"registryType": "npm", "identifier": PACKAGE_NAME, "version": release.version},
        {"registryType": "pypi", "identifier": PACKAGE_NAME, "version": release.python_version},
        {"registryType": "oci", "identifier": f"ghcr.io/{release.owner_and_name.lower()}:{release.version}"},
    ]
    for package in packages:
        package |= {"transport": stdio, "packageArguments": arguments}
    for name, content in sorted(bundles.items()):
        packages.append(
            {
                "registryType": "mcpb",
                "identifier": f"{release.repository}/releases/download/v{release.version}/{name}",
                "fileSha256": hashlib.sha256(content).hexdigest(),
                "transport": stdio,
            }
        )
    entry = {
        "$schema": REGISTRY_SCHEMA,
        "name": release.registry_name,
        "description": SUMMARY,
        "version": release.version,
        "repository": {"url": release.repository, "source": "github"},
        "packages": packages,
    }
    return "server.json", (json.dumps(entry, indent=2) + "\n").encode()
