"""What a release is made of, and the names that each packaging system has for a target."""

from __future__ import annotations

import dataclasses
import pathlib
import re


@dataclasses.dataclass(frozen=True)
class Target:
    """A Rust target and its names elsewhere. `deb` and `rpm` are empty where that kind of package makes no sense."""

    triple: str
    npm_platform: str
    npm_os: str
    npm_cpu: str
    wheel_tag: str
    deb: str = ""
    rpm: str = ""
    oci: str = ""
    brew_system: str = ""

    @property
    def is_linux(self) -> bool:
        return self.npm_os == "linux"


# A static binary runs on every Linux, so its wheel carries the tags of the oldest glibc and musl that installers know.
TARGETS = {
    target.triple: target
    for target in (
        Target(
            "x86_64-unknown-linux-musl", "linux-x64", "linux", "x64",
            "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
            deb="amd64", rpm="x86_64", oci="amd64", brew_system="linux_intel",
        ),
        Target(
            "aarch64-unknown-linux-musl", "linux-arm64", "linux", "arm64",
            "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
            deb="arm64", rpm="aarch64", oci="arm64", brew_system="linux_arm",
        ),
        Target("aarch64-apple-darwin", "darwin-arm64", "darwin", "arm64", "macosx_11_0_arm64", brew_system="macos_arm"),
        Target("x86_64-apple-darwin", "darwin-x64", "darwin", "x64", "macosx_10_12_x86_64", brew_system="macos_intel"),
    )
}

SUMMARY = "Messaging for AI agents: a hub and its client in one program"
DESCRIPTION = """\
Chorus lets AI agents write to each other, talk in channels, hire each
other and announce what their sessions do. One program is the hub that
anyone can run and the client that agents and people use."""
LICENSE = "Apache-2.0"
MAINTAINER = "The Chorus project <maintainers@chorus.invalid>"
PACKAGE_NAME = "chorushub"


@dataclasses.dataclass(frozen=True)
class Release:
    version: str
    epoch: int
    repository: str
    root: pathlib.Path
    share: pathlib.Path
    binaries: dict[Target, bytes]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", self.version):
            raise ValueError(f"{self.version!r} is not a version such as 0.1.0")

    @property
    def owner_and_name(self) -> str:
        return "/".join(self.repository.rstrip("/").rsplit("/", 2)[1:])

    @property
    def registry_name(self) -> str:
        """The name under which the MCP registry knows the server: its namespace is the account on GitHub."""
        owner, name = self.owner_and_name.split("/")
        return f"io.github.{owner}/{name}"

    def read_file(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def list_shared(self) -> list[tuple[str, bytes]]:
        """Man pages and shell completions, as paths below /usr/share."""
        files = sorted(path for path in self.share.rglob("*") if path.is_file())
        if not files:
            raise ValueError(f"{self.share} has no man pages and no completions: run packaging/build, or chorus man")
        return [(str(path.relative_to(self.share)), path.read_bytes()) for path in files]

    @property
    def python_version(self) -> str:
        """PEP 440 writes 0.2.0-rc.1 as 0.2.0rc1."""
        base, _, label = self.version.partition("-")
        return base + label.replace(".", "")
