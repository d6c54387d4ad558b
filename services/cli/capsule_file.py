"""The file of a capsule: named parts, each with its digest, so that whatever changed is named.

`sabot-capsule-1` and a line feed; then for each part the lengths of its name (2 bytes, big-endian)
and its body (4), both, and SHA-256 over all of that (32). The last part is called `end` and holds
SHA-256 over the digests of all others: none is missing, added or moved.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

MAGIC = b"sabot-capsule-1\n"
LENGTHS = struct.Struct(">HI")
DIGEST_BYTES = 32
END = "end"
MOST_NAME_BYTES = 1_000
MOST_BYTES = 1 << 30
"""Of one part; a state of a large cell has some hundred megabytes. Anything longer is damage."""


class NotACapsule(Exception):
    """The file is none, or is damaged. The message says where."""


class Part(NamedTuple):
    """A piece of a capsule."""

    name: str
    body: bytes


def write_parts(path: Path, parts: Iterable[Part], magic: bytes = MAGIC) -> int:
    """Write a capsule, or another file of parts, whole or not at all; its size in bytes."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    digests = sha256()
    try:
        with fresh.open("wb") as file:
            file.write(magic)
            for part in parts:
                digests.update(_write(file, part))
            _write(file, Part(END, digests.digest()))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return size


def _write(file: BinaryIO, part: Part) -> bytes:
    name = part.name.encode()
    head = LENGTHS.pack(len(name), len(part.body)) + name
    digest = sha256(head + part.body).digest()
    file.write(head)
    file.write(part.body)
    file.write(digest)
    return digest


def read_parts(file: BinaryIO, magic: bytes = MAGIC) -> Iterator[Part]:
    """The parts but the last, in order. Raises NotACapsule at the first that is not as it was
    written; all that were yielded before it are."""
    if file.read(len(magic)) != magic:
        raise NotACapsule("this is no capsule, or of another version")
    digests = sha256()
    before = "the beginning"
    while True:
        part, digest = _read(file, before)
        if part.name == END:
            if part.body != digests.digest():
                raise NotACapsule("a part is missing, added or moved: the end does not fit")
            if file.read(1):
                raise NotACapsule("something was added behind the end")
            return
        digests.update(digest)
        before = part.name
        yield part


def _read(file: BinaryIO, before: str) -> tuple[Part, bytes]:
    what = f"the part after {before}"
    raw = file.read(LENGTHS.size)
    if len(raw) != LENGTHS.size:
        raise NotACapsule(f"the file ends within {what}")
    name_size, size = LENGTHS.unpack(raw)
    if not 0 < name_size <= MOST_NAME_BYTES or size > MOST_BYTES:
        raise NotACapsule(f"{what} is damaged: it cannot be so long")
    name, body, digest = file.read(name_size), file.read(size), file.read(DIGEST_BYTES)
    if len(digest) != DIGEST_BYTES:
        raise NotACapsule(f"the file ends within {what}, or its length is damaged")
    if sha256(raw + name + body).digest() != digest:
        shown = name.decode("ascii", "replace")
        raise NotACapsule(f"{what} ({shown!r}) is damaged: its bytes do not give its digest")
    return Part(name.decode(), body), digest
