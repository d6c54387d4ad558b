"""A raw, read-only look at the files in which a nats-server (2.15) keeps a stream.

A server that opens a damaged store "repairs" it: it cuts off what it cannot read and gives the
sequences away again. So the store is looked at before a server opens it, and by tools. Nothing here
ever writes. Scan a store that no server has open, or a copy.

A stream's folder holds `msgs/<n>.blk`, n from 1. A block is a row of records, all little-endian:

    u32 length of the whole record; its highest bit: there are headers
    u64 sequence; its highest bit: erased; the next one: a tombstone, "this sequence is removed"
    i64 time, nanoseconds since 1970
    u16 length of the subject, then the subject
    u32 length of the headers, then the headers      (where there are any)
    the payload
    8 bytes HighwayHash-64 of sequence to time, subject, headers, payload

The key of the hash is SHA-256 of `<stream>-<n>`: a record copied into another block does not fit.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from services.kernel.highway import HighwayHash
from services.kernel.log import LogMessage

HEAD = struct.Struct("<IQqH")
"""Length, sequence, time, length of the subject."""
LENGTH_BYTES = 4
HEADERS_LENGTH = struct.Struct("<I")
HASH_BYTES = 8
HAS_HEADERS = 1 << 31
ERASED = 1 << 63
TOMBSTONE = 1 << 62
LONGEST_LOG = TOMBSTONE
"""Sequences are below this; what is not has a mark."""
SHORTEST_RECORD = HEAD.size + HASH_BYTES
LONGEST_RECORD = 32 * 1024 * 1024
"""The server's own bound on what it believes of a length."""
COMPRESSED = b"cmp"
"""How a compressed block begins; a cell's stream has none."""
STATUS_LINE = b"NATS/1.0"
HEADERS_END = b"\r\n\r\n"
SUBJECT = re.compile(r"sabot\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.(in|out)")
"""What a cell's subjects look like. The hash does not cover the lengths of subject and headers: a
flipped bit there moves bytes from one part to the next, which only the parts' own shape shows."""


class StoreDamaged(Exception):
    """The store cannot be what was written. `sequence` is the first position that cannot be
    trusted, `why` says what is wrong with it, `block` names the file.

    `torn`: the last block ends within a record, or in zeros: a file system may have made the file
    longer, and not have written into it yet, or not all. Both are also what is left of an append
    that was never acknowledged when the power went; whether that record counted, the witness knows.
    """

    def __init__(self, sequence: int, why: str, block: str, *, torn: bool = False) -> None:
        super().__init__(f"sequence {sequence}: {why} ({block})")
        self.sequence = sequence
        self.why = why
        self.block = block
        self.torn = torn


class StoreMissing(Exception):
    """There is no stream's store in that folder."""


class _Record(NamedTuple):
    size: int
    sequence: int
    subject: bytes
    headers: bytes
    payload: bytes
    hash: bytes

    @property
    def is_tombstone(self) -> bool:
        return bool(self.sequence & TOMBSTONE)

    @property
    def number(self) -> int:
        """The sequence without its marks."""
        return self.sequence & ~(ERASED | TOMBSTONE)


def scan_store(
    folder: Path,
    *,
    hash_after: int | None = None,
    trusted: Mapping[str, int] | None = None,
    after: int = 0,
) -> Iterator[LogMessage]:
    """All entries of the stream in `folder` (`…/streams/<stream>`), in order, from the first one;
    or, quickly, those behind `after`: whole blocks before it are not even opened.

    Sequences must run from 1 without a gap. Hashes are checked of the records behind the sequence
    `hash_after`: 0 for all, None for none; and of these not the records within the first bytes of
    a block, by its name, that `trusted` speaks of. Raises StoreMissing, and StoreDamaged at the
    first bad position, after everything before it was yielded.
    """
    blocks, last = _blocks_behind(blocks_of(folder), after)
    for block in blocks:
        is_last = block == blocks[-1]
        within = (trusted or {}).get(block.name, 0)
        for entry in _scan_block(
            folder.name, block, last, is_last=is_last, hash_after=hash_after, trusted=within
        ):
            last = entry.sequence
            if last > after:
                yield entry


def before_last_block(folder: Path) -> int:
    """The sequence before the last block's first entry: what follows it is quickly read. Raises
    StoreMissing."""
    return _blocks_behind(blocks_of(folder), LONGEST_LOG)[1]


def before_bytes(folder: Path, needle: bytes) -> int | None:
    """A sequence behind which every entry stands that holds some bytes, found without looking at
    records; None: none holds them. Raises StoreMissing."""
    blocks = blocks_of(folder)
    for number, block in enumerate(blocks):
        if needle in block.read_bytes():
            firsts = (_first_sequence(one) for one in reversed(blocks[1 : number + 1]))
            return next((first - 1 for first in firsts if first is not None), 0)
    return None


def ranges_of_bytes(folder: Path, needle: bytes, after: int = 0) -> list[tuple[int, int]]:
    """Where entries may stand that hold some bytes, behind a sequence; see `ranges_holding`. Raises
    StoreMissing."""
    return ranges_holding(folder, lambda raw: needle in raw, after)


def ranges_holding(
    folder: Path, holds: Callable[[bytes], bool], after: int = 0
) -> list[tuple[int, int]]:
    """Where entries may stand that hold something, behind a sequence: (behind which one, up to
    which one) of each block of whose bytes that is said, found without looking at records. The last
    block's end is not known: the longest log's. Raises StoreMissing."""
    blocks = [(block, _first_sequence(block)) for block in blocks_of(folder)]
    found: list[tuple[int, int]] = []
    end = LONGEST_LOG
    for block, first in reversed(blocks):
        if end <= after:
            break
        raw = block.read_bytes()
        # One that cannot be looked into may hold them.
        if holds(raw) or raw.startswith(COMPRESSED):
            begin = first - 1 if first is not None else 0
            if found and found[-1][0] == end:
                found[-1] = (max(begin, after), found[-1][1])
            else:
                found.append((max(begin, after), end))
        if first is not None:
            end = first - 1
    return found[::-1]


def _blocks_behind(blocks: list[Path], after: int) -> tuple[list[Path], int]:
    """The blocks that hold what stands behind a sequence, and the sequence before the first of
    them."""
    if after:
        for number in range(len(blocks) - 1, 0, -1):
            first = _first_sequence(blocks[number])
            if first is not None and first <= after + 1:
                return blocks[number:], first - 1
    return blocks, 0


def _first_sequence(block: Path) -> int | None:
    """What a block begins with; None where that is no plain record."""
    with block.open("rb") as file:
        raw = file.read(HEAD.size)
    if len(raw) < HEAD.size or raw.startswith(COMPRESSED):
        return None
    sequence = int(HEAD.unpack(raw)[1])
    return sequence if 0 < sequence < LONGEST_LOG else None


def has_store(folder: Path) -> bool:
    """Whether there are blocks of a stream in that folder."""
    return any((folder / "msgs").glob("*.blk"))


def blocks_of(folder: Path) -> list[Path]:
    """The files of a stream's store in order. Raises StoreMissing."""
    if not (folder / "msgs").is_dir():
        raise StoreMissing(f"there is no store of a stream in {folder}")
    found = [path for path in (folder / "msgs").glob("*.blk") if path.stem.isdigit()]
    return sorted(found, key=lambda path: int(path.stem))


def _scan_block(
    stream: str,
    block: Path,
    last: int,
    *,
    is_last: bool,
    hash_after: int | None,
    trusted: int,
) -> Iterator[LogMessage]:
    data = block.read_bytes()
    if data.startswith(COMPRESSED):
        raise StoreDamaged(last + 1, "the block is compressed", block.name)
    key = hashlib.sha256(f"{stream}-{int(block.stem)}".encode()).digest()
    checksum = HighwayHash(key)
    offset, written = 0, len(data.rstrip(b"\0"))
    while offset < len(data):
        try:
            record = _parse(data, offset)
            _check_written(offset + record.size, written)
            hashed = (
                hash_after is not None
                and record.number > hash_after
                and offset + record.size > trusted
            )
            _check(record, last, checksum if hashed else None, data[offset + 4 : offset + 20])
            entry = None if record.is_tombstone else _entry(record, stream)
        except _Bad as bad:
            torn, why = bad.torn and is_last, bad.why
            if torn and _is_whole(data, offset, last + 1, checksum):
                torn, why = False, "the record is whole, but its length is not as it was written"
            raise StoreDamaged(last + 1, why, block.name, torn=torn) from None
        offset += record.size
        if entry is not None:
            last = entry.sequence
            yield entry


def _is_whole(data: bytes, offset: int, sequence: int, checksum: HighwayHash) -> bool:
    """Whether a record that seems torn is there, with all of its bytes: its checksum fits one of
    the places where it may end. Those are the end of the block, the beginning of what looks like
    the next record, and wherever one flipped bit of the length would have put it.
    """
    left = len(data) - offset
    if left < SHORTEST_RECORD:
        return False
    length, *_ = HEAD.unpack_from(data, offset)
    sizes = {left, *((length ^ (1 << bit)) & ~HAS_HEADERS for bit in range(31))}
    following = struct.pack("<Q", sequence + 1)
    found = data.find(following, offset + SHORTEST_RECORD)
    while found >= 0:
        sizes.add(found - LENGTH_BYTES - offset)
        found = data.find(following, found + 1)
    for size in sorted(one for one in sizes if SHORTEST_RECORD <= one <= left):
        mended = struct.pack("<I", size | (length & HAS_HEADERS))
        try:
            record = _parse(mended + data[offset + LENGTH_BYTES : offset + size], 0)
            _check(record, sequence - 1, checksum, data[offset + 4 : offset + 20])
        except _Bad:
            continue
        return True
    return False


class _Bad(Exception):
    def __init__(self, why: str, *, torn: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.torn = torn


def _check(record: _Record, last: int, checksum: HighwayHash | None, numbers: bytes) -> None:
    """`numbers` are the bytes of sequence and time, which are hashed with the rest."""
    if record.is_tombstone:
        # It may remember how far a store went; it must not remove what stands before it.
        if 0 < record.number <= last:
            raise _Bad(f"sequence {record.number} is marked as removed")
    elif record.sequence & ERASED:
        raise _Bad("the record was erased")
    elif record.sequence != last + 1:
        raise _Bad(f"sequence {record.sequence} follows {last}")
    if checksum is not None:
        hashed = numbers + record.subject + record.headers + record.payload
        if checksum.digest(hashed) != record.hash:
            raise _Bad("the record does not fit its hash")


def _check_written(end: int, written: int) -> None:
    """Of a record that ends there the checksum stands before where the block is zeros to its end:
    nothing is stored that has none."""
    if end - HASH_BYTES >= written:
        raise _Bad("the block ends in zeros, within a record", torn=True)


def _entry(record: _Record, stream: str) -> LogMessage:
    subject = record.subject.decode(errors="replace")
    matched = SUBJECT.fullmatch(subject)
    if matched is None or stream != f"SABOT_{matched.group(1)}":
        raise _Bad(f"{subject!r} is no subject of this stream")
    return LogMessage(record.sequence, subject, parse_headers(record.headers), record.payload)


def _parse(data: bytes, offset: int) -> _Record:
    left = len(data) - offset
    if left < SHORTEST_RECORD:
        raise _Bad(f"the block ends within a record, after {left} bytes of it", torn=True)
    length, sequence, _, subject_length = HEAD.unpack_from(data, offset)
    size = length & ~HAS_HEADERS
    if not size and not any(data[offset:]):
        raise _Bad(f"the block ends in {left} zeros", torn=True)
    if not SHORTEST_RECORD + subject_length <= size <= LONGEST_RECORD:
        raise _Bad(f"no record is {size} bytes long")
    if size > left:
        raise _Bad(f"the block ends within a record, after {left} of {size} bytes", torn=True)
    end = offset + size - HASH_BYTES
    start = offset + HEAD.size
    subject = data[start : start + subject_length]
    start += subject_length
    headers = b""
    if length & HAS_HEADERS:
        if start + HEADERS_LENGTH.size > end:
            raise _Bad("there is no room for the headers")
        (headers_length,) = HEADERS_LENGTH.unpack_from(data, start)
        start += HEADERS_LENGTH.size
        if start + headers_length > end:
            raise _Bad("the headers are longer than the record")
        headers = data[start : start + headers_length]
        start += headers_length
    checksum = data[end : end + HASH_BYTES]
    return _Record(size, sequence, subject, headers, data[start:end], checksum)


def parse_headers(raw: bytes) -> dict[str, str]:
    """Headers as the client library gives them: lines `name: value`, both without outer spaces;
    what is no such line is left out, of equal names the last one counts.
    """
    if not raw:
        return {}
    if not raw.startswith(STATUS_LINE) or raw.find(HEADERS_END) != len(raw) - len(HEADERS_END):
        raise _Bad("the headers do not begin and end as headers do")
    headers: dict[str, str] = {}
    for line in raw[len(STATUS_LINE) :].split(b"\r\n"):
        name, colon, value = line.partition(b":")
        key = name.strip()
        if not colon or not key.isascii() or len(key.split()) > 1:
            continue
        headers[key.decode("ascii")] = value.strip().decode("utf-8", "replace")
    return headers
