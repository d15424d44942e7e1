"""The npm package: one name, whose versions for a platform hold the binary and whose main version picks among them."""

from __future__ import annotations

import json

from .archive import Entry, compress, write_tar
from .release import LICENSE, PACKAGE_NAME, SUMMARY, Release, Target


def write_main_package(release: Release) -> tuple[str, bytes]:
    platforms = {
        f"@{PACKAGE_NAME}/{target.npm_platform}": f"npm:{PACKAGE_NAME}@{release.version}-{target.npm_platform}"
        for target in release.binaries
    }
    manifest = describe(release, release.version) | {
        "bin": {"chorus": "chorus.js"},
        "files": ["chorus.js"],
        "engines": {"node": ">=18"},
        "mcpName": release.registry_name,
        "optionalDependencies": platforms,
    }
    entries = [
        Entry("package/package.json", to_json(manifest)),
        Entry("package/README.md", read_page(release)),
        Entry("package/LICENSE", release.read_file("LICENSE")),
        Entry("package/chorus.js", release.read_file("packaging/npm/chorus.js"), 0o755),
    ]
    return f"{PACKAGE_NAME}-{release.version}.tgz", compress(write_tar(entries, release.epoch))


def write_platform_package(release: Release, target: Target) -> tuple[str, bytes]:
    version = f"{release.version}-{target.npm_platform}"
    manifest = describe(release, version) | {"os": [target.npm_os], "cpu": [target.npm_cpu], "files": ["chorus"]}
    entries = [
        Entry("package/package.json", to_json(manifest)),
        Entry("package/README.md", f"The program of `{PACKAGE_NAME}` for {target.npm_platform}.\n".encode()),
        Entry("package/LICENSE", release.read_file("LICENSE")),
        Entry("package/chorus", release.binaries[target], 0o755),
    ]
    return f"{PACKAGE_NAME}-{version}.tgz", compress(write_tar(entries, release.epoch))


def describe(release: Release, version: str) -> dict[str, object]:
    return {
        "name": PACKAGE_NAME,
        "version": version,
        "description": SUMMARY,
        "license": LICENSE,
        "homepage": release.repository,
        "repository": {"type": "git", "url": f"git+{release.repository}.git"},
    }


def read_page(release: Release) -> bytes:
    return release.read_file("packaging/npm/README.md")


def to_json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
