"""Whether a store on disk is the log that was written: before a server opens it, and by tools.

The chain of hashes is followed through the raw records. Entries of answers carry the chain hash at
their cause, so each of them vouches for everything up to there; witnesses vouch for what processes
had read.

The chain does not cover a record's time and its checksum, and a server that was killed cuts the log
at a record whose checksum does not fit. So records are held against their checksums too: those that
are new since the store was last seen to be right (`BlockNote`), newest first as far as
`HASHED_BYTES` reach, and every one under `hash_all`. Where the chain breaks, checksums tell which
record it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from services.kernel.entry import NotUnderstood, decode_entry, first_head, next_head
from services.kernel.log import LogMessage
from services.kernel.reader import REMEMBERED_HEADS
from services.kernel.store_scan import StoreDamaged, blocks_of, scan_store
from services.kernel.witness import Witnessed

HASHED_BYTES = 32 * 1024 * 1024
"""Records held against their checksums at a start, newest first: a third of a minute's work."""
READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BlockNote:
    """The first bytes of a block, as they were when they were seen to be right."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoreChecked:
    """A store that is as it was written."""

    last_sequence: int
    head: bytes
    torn: bool
    """Whether an append that was never acknowledged lies half-written behind the last entry."""


class StoreNotTheLog(Exception):
    """The store is not the log that was written. `sequence`: the first bad or missing position."""

    def __init__(self, sequence: int, why: str) -> None:
        super().__init__(f"entry {sequence}: {why}")
        self.sequence = sequence
        self.why = why


def check_store(
    folder: Path,
    cell: str,
    witnesses: Mapping[str, Witnessed],
    *,
    hash_all: bool = False,
    accepted: Mapping[int, bytes] | None = None,
    notes: Mapping[str, BlockNote] | None = None,
    progress: Callable[[int], None] = lambda _sequence: None,
) -> StoreChecked:
    """Follow the chain through the whole store. Raises StoreNotTheLog, StoreMissing.

    `witnesses`: by process name, what each had read. `hash_all`: check every record's own checksum,
    which takes half a millisecond for each kilobyte. `accepted`: entries that an operator lets pass
    although they cannot be understood, with the chain hash there. `notes`: by block.
    """
    trusted = {} if hash_all else _trusted(folder, notes or {})
    if not (folder / "meta.inf").exists():
        raise StoreNotTheLog(1, "the stream's own description (meta.inf) is gone from the store")
    walk = _Walk(first_head(cell), witnesses, accepted or {})
    torn = False
    try:
        try:
            for message in scan_store(folder, hash_after=0, trusted=trusted):
                walk.take(message)
                progress(message.sequence)
        except StoreDamaged as damage:
            if not damage.torn:
                raise StoreNotTheLog(damage.sequence, damage.why) from damage
            torn = True
        walk.end()
    except StoreNotTheLog as wrong:
        _name_the_record(folder, walk.vouched, wrong)
        raise
    return StoreChecked(walk.sequence, walk.head, torn)


class _Walk:
    """Follows the chain."""

    def __init__(
        self, head: bytes, witnesses: Mapping[str, Witnessed], accepted: Mapping[int, bytes]
    ) -> None:
        self.head = head
        self.sequence = 0
        self.vouched = 0
        """Everything up to here is vouched for by an answer or a witness."""
        self._heads: dict[int, bytes] = {0: head}
        self._accepted = accepted
        self._witnesses: dict[int, list[tuple[str, Witnessed]]] = {}
        for name, seen in witnesses.items():
            self._witnesses.setdefault(seen.sequence, []).append((name, seen))
        self._highest = max((seen.sequence for seen in witnesses.values()), default=0)

    def take(self, message: LogMessage) -> None:
        sequence = message.sequence
        self.head = next_head(
            self.head, sequence, message.subject, message.headers, message.payload
        )
        self.sequence = sequence
        self._heads[sequence] = self.head
        self._heads.pop(sequence - REMEMBERED_HEADS, None)
        if message.subject.endswith(".out"):
            self._answers(sequence, message.payload)
        elif not message.subject.endswith(".in"):
            raise StoreNotTheLog(sequence, f"subject {message.subject!r} is none of a cell")
        for name, seen in self._witnesses.get(sequence, ()):
            if seen.head != self.head:
                raise StoreNotTheLog(
                    sequence, f"it, or one before it, is not what process {name} had read"
                )
            self.vouched = max(self.vouched, sequence)

    def _answers(self, sequence: int, payload: bytes) -> None:
        try:
            entry = decode_entry(payload)
        except NotUnderstood as error:
            if self._accepted.get(sequence) == self.head:
                return
            raise StoreNotTheLog(sequence, str(error)) from error
        cause = entry.events[-1].cause.sequence
        if not 0 < cause < sequence:
            raise StoreNotTheLog(sequence, f"it answers {cause}, which does not stand before it")
        known = self._heads.get(cause)
        if known is not None and known != entry.head:
            raise StoreNotTheLog(sequence, f"its head does not fit the log up to entry {cause}")
        if known is not None:
            self.vouched = max(self.vouched, cause)

    def end(self) -> None:
        if self.sequence < self._highest:
            name = self._witnesses[self._highest][0][0]
            raise StoreNotTheLog(
                self.sequence + 1,
                f"missing: entries {self.sequence + 1} to {self._highest} were read by process "
                f"{name}, the store ends at {self.sequence}",
            )


def _name_the_record(folder: Path, vouched: int, wrong: StoreNotTheLog) -> None:
    """Something broke somewhere behind `vouched`: let the records' own checksums say where."""
    try:
        for message in scan_store(folder, hash_after=vouched):
            if message.sequence >= wrong.sequence:
                return
    except StoreDamaged as damage:
        if damage.sequence < wrong.sequence:
            raise StoreNotTheLog(damage.sequence, damage.why) from wrong


def note_blocks(folder: Path) -> dict[str, BlockNote]:
    """The store as it is now, for a later check: it was checked, or a server closed it in order.
    Raises StoreMissing."""
    notes: dict[str, BlockNote] = {}
    for block in blocks_of(folder):
        size = block.stat().st_size
        notes[block.name] = BlockNote(size, _sha256(block, size))
    return notes


def _trusted(folder: Path, notes: Mapping[str, BlockNote]) -> dict[str, int]:
    """How many bytes of each block need no look at checksums: they are as they were noted, or older
    than what a start has time for. A block that is not as it was noted is looked at whole."""
    trusted: dict[str, int] = {}
    left = HASHED_BYTES
    for block in reversed(blocks_of(folder)):
        size = block.stat().st_size
        note = notes.get(block.name)
        known = 0
        if note is not None:
            if note.size > size or _sha256(block, note.size) != note.sha256:
                continue
            known = note.size
        known = max(known, size - left)
        left -= size - known
        trusted[block.name] = known
    return trusted


def _sha256(block: Path, size: int) -> str:
    """Of the first bytes of a file."""
    digest = hashlib.sha256()
    with block.open("rb") as file:
        while size:
            some = file.read(min(size, READ_BYTES))
            if not some:
                break
            digest.update(some)
            size -= len(some)
    return digest.hexdigest()
