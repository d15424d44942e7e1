"""The RPM package, written as version 4 of its format describes: lead, signature, header, and a compressed cpio archive."""

from __future__ import annotations

import hashlib
import struct

from .archive import Entry, compress
from .deb import CONFIGURATION, list_system_files
from .release import DESCRIPTION, LICENSE, SUMMARY, Release, Target

INT16 = 3
INT32 = 4
STRING = 6
BINARY = 7
STRINGS = 8
TRANSLATED = 9

ALIGNMENT = {INT16: 2, INT32: 4}
SIGNATURE_REGION = 62
HEADER_REGION = 63
SHA256 = 8
LESS_OR_EQUAL_OF_RPM_ITSELF = 0x0100000A
EQUAL = 8
CONFIGURATION_KEPT = 1 | 16  # a changed configuration file stays, and the new one is put beside it
DOCUMENTATION = 2
REGULAR_FILE = 0o100000
MACHINE_NUMBERS = {"x86_64": 1, "aarch64": 19}

# Both scripts only make systemd read its units again; the hub is neither started nor stopped by an upgrade.
RELOAD = "[ ! -d /run/systemd/system ] || systemctl daemon-reload || :\n"
STOP = '[ "$1" != 0 ] || [ ! -d /run/systemd/system ] || systemctl stop chorus.service chorus-backup.timer || :\n'


def write_rpm(release: Release, target: Target) -> tuple[str, bytes]:
    version = release.version.replace("-", "~")
    entries = list_system_files(release, target)
    entries.append(Entry("usr/share/licenses/chorus/LICENSE", release.read_file("LICENSE")))
    entries.sort(key=lambda entry: entry.path)
    archive = write_cpio(entries, release.epoch)
    payload = compress(archive)
    header = write_header(describe_package(release, target, version, entries, payload), HEADER_REGION)
    signature = write_header(
        [
            (1000, INT32, [len(header) + len(payload)]),
            (1007, INT32, [len(archive)]),
            (1004, BINARY, hashlib.md5(header + payload, usedforsecurity=False).digest()),
            (269, STRING, hashlib.sha1(header, usedforsecurity=False).hexdigest()),
            (273, STRING, hashlib.sha256(header).hexdigest()),
        ],
        SIGNATURE_REGION,
    )
    signature += b"\0" * (-len(signature) % 8)
    name = f"chorus-{version}-1.{target.rpm}"
    lead = struct.pack(
        ">4sBBHH66sHH16x", b"\xed\xab\xee\xdb", 3, 0, 0, MACHINE_NUMBERS[target.rpm], name.encode()[:65], 1, 5
    )
    return f"{name}.rpm", lead + signature + header + payload


def describe_package(release, target, version, entries, payload):
    """The header: what the package is, what it needs of rpm, and one value per file in each of the lists."""
    folders = sorted({f"/{entry.path.rpartition('/')[0]}/" for entry in entries})
    count = len(entries)
    needs = [
        ("rpmlib(CompressedFileNames)", "3.0.4-1"),
        ("rpmlib(FileDigests)", "4.6.0-1"),
        ("rpmlib(PayloadFilesHavePrefix)", "4.0-1"),
    ]
    return [
        (100, STRINGS, ["C"]),
        (1000, STRING, "chorus"),
        (1001, STRING, version),
        (1002, STRING, "1"),
        (1004, TRANSLATED, [SUMMARY]),
        (1005, TRANSLATED, [DESCRIPTION]),
        (1006, INT32, [release.epoch]),
        (1007, STRING, "localhost"),
        (1009, INT32, [sum(len(entry.content) for entry in entries)]),
        (1014, STRING, LICENSE),
        (1016, TRANSLATED, ["Unspecified"]),
        (1020, STRING, release.repository),
        (1021, STRING, "linux"),
        (1022, STRING, target.rpm),
        (1024, STRING, RELOAD),
        (1025, STRING, STOP),
        (1026, STRING, RELOAD),
        (1028, INT32, [len(entry.content) for entry in entries]),
        (1030, INT16, [REGULAR_FILE | entry.mode for entry in entries]),
        (1033, INT16, [0] * count),
        (1034, INT32, [release.epoch] * count),
        (1035, STRINGS, [hashlib.sha256(entry.content).hexdigest() for entry in entries]),
        (1036, STRINGS, [""] * count),
        (1037, INT32, [mark_file(entry) for entry in entries]),
        (1039, STRINGS, ["root"] * count),
        (1040, STRINGS, ["root"] * count),
        (1044, STRING, f"chorus-{version}-1.src.rpm"),
        (1045, INT32, [0xFFFFFFFF] * count),
        (1047, STRINGS, ["chorus", "config(chorus)"]),
        (1048, INT32, [LESS_OR_EQUAL_OF_RPM_ITSELF] * len(needs)),
        (1049, STRINGS, [name for name, _ in needs]),
        (1050, STRINGS, [number for _, number in needs]),
        (1064, STRING, "4.18.0"),
        (1085, STRING, "/bin/sh"),
        (1086, STRING, "/bin/sh"),
        (1087, STRING, "/bin/sh"),
        (1095, INT32, [1] * count),
        (1096, INT32, list(range(1, count + 1))),
        (1097, STRINGS, [""] * count),
        (1112, INT32, [EQUAL, EQUAL]),
        (1113, STRINGS, [f"{version}-1", f"{version}-1"]),
        (1116, INT32, [folders.index(f"/{entry.path.rpartition('/')[0]}/") for entry in entries]),
        (1117, STRINGS, [entry.path.rpartition("/")[2] for entry in entries]),
        (1118, STRINGS, folders),
        (1124, STRING, "cpio"),
        (1125, STRING, "gzip"),
        (1126, STRING, "9"),
        (5011, INT32, [SHA256]),
        (5062, STRING, "utf-8"),
        (5092, STRINGS, [hashlib.sha256(payload).hexdigest()]),
        (5093, INT32, [SHA256]),
    ]


def mark_file(entry: Entry) -> int:
    if entry.path == CONFIGURATION:
        return CONFIGURATION_KEPT
    return DOCUMENTATION if entry.path.startswith("usr/share/man/") else 0


def write_header(tags, region: int) -> bytes:
    """An index of (tag, kind, offset, count) and the store that it points into, closed by the region that covers all of it."""
    store = bytearray()
    index = []
    for tag, kind, value in sorted(tags):
        store += b"\0" * (-len(store) % ALIGNMENT.get(kind, 1))
        index.append(struct.pack(">IIII", tag, kind, len(store), 1 if kind == STRING else len(value)))
        if kind == STRING:
            store += value.encode() + b"\0"
        elif kind == BINARY:
            store += value
        elif kind in (STRINGS, TRANSLATED):
            store += b"".join(item.encode() + b"\0" for item in value)
        else:
            store += struct.pack(f">{len(value)}{'H' if kind == INT16 else 'I'}", *value)
    count = len(index) + 1
    first = struct.pack(">IIII", region, BINARY, len(store), 16)
    store += struct.pack(">IIiI", region, BINARY, -count * 16, 16)
    return struct.pack(">4sIII", b"\x8e\xad\xe8\x01", 0, count, len(store)) + first + b"".join(index) + bytes(store)


def write_cpio(entries: list[Entry], epoch: int) -> bytes:
    out = bytearray()

    def add(name: bytes, content: bytes, mode: int, inode: int, links: int, when: int) -> None:
        fields = (inode, mode, 0, 0, links, when, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        out.extend(b"070701" + b"".join(b"%08x" % field for field in fields) + name + b"\0")
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(content)
        out.extend(b"\0" * (-len(out) % 4))

    for inode, entry in enumerate(entries, 1):
        add(f"./{entry.path}".encode(), entry.content or b"", REGULAR_FILE | entry.mode, inode, 1, epoch)
    add(b"TRAILER!!!", b"", 0, 0, 1, 0)
    return bytes(out)
