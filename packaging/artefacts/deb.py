"""The Debian package. Its unit uses a user of systemd's making, so no script makes one; installing starts nothing."""

from __future__ import annotations

import hashlib
import time

from .archive import Entry, compress, with_parents, write_tar
from .release import DESCRIPTION, LICENSE, MAINTAINER, SUMMARY, Release, Target

CONFIGURATION = "etc/chorus/chorus.toml"

RELOAD = """#!/bin/sh
set -e
# systemd learns of the unit; starting the hub is left to its operator: systemctl enable --now chorus
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
"""

STOP = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl stop chorus.service chorus-backup.timer || true
fi
"""

# The data of a hub outlives its removal; a purge takes it.
FORGET = """#!/bin/sh
set -e
if [ "$1" = purge ]; then
    rm -rf "$DPKG_ROOT/var/lib/chorus" "$DPKG_ROOT/var/lib/private/chorus" "$DPKG_ROOT/etc/chorus"
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
"""

COPYRIGHT = f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: chorus

Files: *
Copyright: 2026 The Chorus project
License: {LICENSE}

License: {LICENSE}
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
"""

# It is static on purpose: one binary for every distribution.
OVERRIDES = """\
# The program is static and may be loaded at any address, which looks like a library that forgot what it needs.
chorus: shared-library-lacks-prerequisites [usr/bin/chorus]
# The hub is not started by the package, so the helper that starts and stops services has nothing to do.
chorus: maintainer-script-calls-systemctl [*]
"""


def list_system_files(release: Release, target: Target) -> list[Entry]:
    """What deb and rpm have in common."""
    entries = [
        Entry(CONFIGURATION, release.read_file("packaging/chorus.toml")),
        Entry("usr/bin/chorus", release.binaries[target], 0o755),
    ]
    for unit in ("chorus-backup.service", "chorus-backup.timer", "chorus.service"):
        entries.append(Entry(f"usr/lib/systemd/system/{unit}", release.read_file(f"deploy/{unit}")))
    for path, content in release.list_shared():
        # Both systems keep their man pages compressed.
        is_page = path.startswith("man/")
        entries.append(Entry(f"usr/share/{path}{'.gz' if is_page else ''}", compress(content) if is_page else content))
    return entries


def write_deb(release: Release, target: Target) -> tuple[str, bytes]:
    version = release.version.replace("-", "~")  # a pre-release comes before its release
    entries = list_system_files(release, target) + [
        Entry("usr/share/doc/chorus/copyright", COPYRIGHT.encode()),
        Entry("usr/share/doc/chorus/changelog.gz", compress(write_changelog(release, version))),
        Entry("usr/share/lintian/overrides/chorus", OVERRIDES.encode()),
    ]
    size = sum(len(entry.content or b"") for entry in entries) // 1024 + 1
    control = (
        f"Package: chorus\nVersion: {version}\nArchitecture: {target.deb}\nMaintainer: {MAINTAINER}\n"
        f"Installed-Size: {size}\nRecommends: ca-certificates\nSection: net\nPriority: optional\n"
        f"Homepage: {release.repository}\nDescription: {SUMMARY}\n"
        + "".join(f" {line}\n" for line in DESCRIPTION.splitlines())
    )
    sums = "".join(
        f"{hashlib.md5(entry.content or b'', usedforsecurity=False).hexdigest()}  {entry.path}\n"
        for entry in entries
        if entry.path != CONFIGURATION
    )
    about = [
        Entry("control", control.encode()),
        Entry("md5sums", sums.encode()),
        Entry("conffiles", f"/{CONFIGURATION}\n".encode()),
        Entry("postinst", RELOAD.encode(), 0o755),
        Entry("prerm", STOP.encode(), 0o755),
        Entry("postrm", FORGET.encode(), 0o755),
    ]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", compress(write_tar(about, release.epoch, "./"))),
        ("data.tar.gz", compress(write_tar(with_parents(entries), release.epoch, "./"))),
    ]
    return f"chorus_{version}_{target.deb}.deb", write_ar(members, release.epoch)


def write_changelog(release: Release, version: str) -> bytes:
    when = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(release.epoch))
    return (
        f"chorus ({version}) stable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n"
        f" -- {MAINTAINER}  {when}\n"
    ).encode()


def write_ar(members: list[tuple[str, bytes]], epoch: int) -> bytes:
    out = bytearray(b"!<arch>\n")
    for name, content in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return bytes(out)
