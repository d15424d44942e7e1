"""The archive that install.sh, Homebrew and cargo-binstall fetch."""

from __future__ import annotations

from .archive import Entry, compress, write_tar
from .release import Release, Target


def write_tarball(release: Release, target: Target) -> tuple[str, bytes]:
    folder = f"chorus-{release.version}-{target.triple}"
    entries = [
        Entry("", None, 0o755),
        Entry("/chorus", release.binaries[target], 0o755),
        Entry("/LICENSE", release.read_file("LICENSE")),
        Entry("/README.md", release.read_file("README.md")),
        Entry("/chorus.service", release.read_file("deploy/chorus.service")),
    ]
    entries += [Entry(f"/share/{path}", content) for path, content in release.list_shared()]
    return f"{folder}.tar.gz", compress(write_tar(entries, release.epoch, folder))
