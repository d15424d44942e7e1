"""Archives whose bytes depend on nothing but what is put into them."""

from __future__ import annotations

import dataclasses
import gzip
import io
import tarfile
import time
import zipfile

EARLIEST_ZIP_TIME = 315532800  # 1980-01-01: a zip cannot say an earlier one


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file, or with `content` None a directory."""

    path: str
    content: bytes | None
    mode: int = 0o644
    uid: int = 0


def with_parents(entries: list[Entry]) -> list[Entry]:
    """Puts every directory that the entries need before them, once."""
    seen = {entry.path for entry in entries if entry.content is None}
    out: list[Entry] = []
    for entry in entries:
        parts = entry.path.split("/")[:-1]
        for length in range(1, len(parts) + 1):
            directory = "/".join(parts[:length])
            if directory not in seen:
                seen.add(directory)
                out.append(Entry(directory, None, 0o755))
        out.append(entry)
    return out


def write_tar(entries: list[Entry], epoch: int, prefix: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(prefix + entry.path)
            info.mtime = epoch
            info.mode = entry.mode
            info.uid = info.gid = entry.uid
            info.uname = info.gname = "root" if entry.uid == 0 else ""
            if entry.content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(entry.content)
                tar.addfile(info, io.BytesIO(entry.content))
    return out.getvalue()


def compress(data: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=9, mtime=0) as stream:
        stream.write(data)
    return out.getvalue()


def write_zip(entries: list[Entry], epoch: int) -> bytes:
    out = io.BytesIO()
    when = time.gmtime(max(epoch, EARLIEST_ZIP_TIME))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.path, when)
            info.create_system = 3  # Unix: without it the mode is not read
            info.external_attr = (0o100000 | entry.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.content or b"")
    return out.getvalue()
