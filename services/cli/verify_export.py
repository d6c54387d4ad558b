"""Checks an export of a Sabot log by itself:
`python verify_export.py FILE [--key PUBLIC_KEY_HEX] [--head SEQUENCE:HASH] [--checkpoint FILE]`.

This one file needs no part of Sabot: Python, a protobuf runtime and `cryptography` are enough, and
no network. Whoever doubts a log takes the export and this file away and checks on a machine of
their own.

It checks, in this order, and names the entry where something is wrong:

1. entries follow one another from 1 without a gap, and each one's bytes give the chain hash that
   stands beside it: a changed bit, a removed, added or exchanged entry breaks this at its place;
2. each answer entry (`.out`) commits to the chain hash at the entry that it answers;
3. each seal in the log (`LogSealed`) has the Merkle root (RFC 6962) and the chain hash of the
   entries that it covers, and its signature (Ed25519) is that of its key;
4. with `--key`, there is a seal, and every seal is signed by one of the keys given. Without it the
   signatures show only that one owner of some key signed all: compare the key with one that you
   trust;
5. with `--head`, the log has this chain hash at this entry: a head that was seen before, in a seal
   or printed by `sabot log head`. It shows a log that was forged by the owner of the key too.

Entries behind the last seal are chained, and sealed by nobody yet; how many is told.

Ctrl-C leaves a checkpoint, and the next call goes on from it. It is believed as far as the export
bears it out: chain, tree, seals and heads are checked again from the first byte on, and must come
to the chain hash that it names. Of what it covers only 2 is not checked again.

An export is `sabot-export-2` and a line feed; a length (4 bytes, big-endian) and the cell's name; a
length and the `FileDescriptorSet` of the log's messages; SHA-256 (32) over all of that; then for
each entry its sequence (8), the lengths of subject (2), headers (4) and payload (4), these three,
and the chain hash (32). Its end is a record of sequence 0 and no lengths, and once more the chain
hash of the last entry, zeros where there is none. `sabot-export-1` had neither digest nor end.

Exit codes: 0 all is right; 1 something is wrong, or the file is no export; 2 the command was not
understood; 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

MAGIC = b"sabot-export-2\n"
OLD_MAGIC = b"sabot-export-1\n"
"""Of files without a digest of their start and without an end."""
LENGTH = struct.Struct(">I")
ENTRY = struct.Struct(">QHII")
CHAINED = struct.Struct(">QIII")
SEQUENCE = struct.Struct(">Q")
HASH_BYTES = 32
MOST_BYTES = 1 << 24
"""Of one part of a file; anything longer is damage."""
MOST_FAULTS = 100
SEALED = "sabot.audit.v1.LogSealed"
CONFIRMED = "sabot.audit.v1.FactsConfirmed"
RECALL = "sabot.settlement.v1.RecallFacts"
RECALLED = "sabot.settlement.v1.FactsRecalled"
FIELDS: dict[str, tuple[str, ...]] = {
    "sabot.log.v1.Entry": ("bytes head = 3", "repeated sabot.log.v1.Event events = 4"),
    "sabot.log.v1.Event": ("string type = 1", "bytes body = 2", "sabot.log.v1.Position cause = 3"),
    "sabot.log.v1.Position": ("uint64 sequence = 2", "uint32 index = 3"),
    SEALED: (
        "uint64 size = 1",
        "bytes root = 2",
        "bytes head = 3",
        "bytes signature = 4",
        "string key_id = 5",
        "bytes public_key = 6",
    ),
    CONFIRMED: ("string correction_id = 1",),
    RECALL: ("repeated sabot.settlement.v1.RecalledFact facts = 3",),
    "sabot.settlement.v1.RecalledFact": (
        "sabot.log.v1.Position position = 1",
        "string type = 2",
        "bytes body = 3",
    ),
    RECALLED: ("string correction_id = 1", "repeated sabot.log.v1.Position steps = 6"),
}
"""What is read here, by message. Nobody signs an export's descriptors: were a field to have another
number there, what stands in it would not be checked."""

SPEAKS = frozenset({SEALED, CONFIRMED, RECALL, RECALLED})
"""Types of events of which more is read than that they are there."""
ALWAYS_READ = (b"Facts", b"LogSealed")
"""Bytes of these names: such entries are looked at again where an earlier call has checked the
rest."""
PUBLIC_KEY_BYTES = 32
MOST_DIGITS = 20
"""Of a sequence; of many more Python makes no number at all."""
CHECKPOINT = "verify-export.checkpoint"
KEEP_EVERY_S = 60.0
"""Between two times that it is kept by itself."""
SHOWN_AFTER_S, SHOWN_EVERY_S = 2.0, 0.2
"""When a terminal is told how far it is: what is over sooner needs no telling."""
TOLD_EVERY = 1_000
"""Entries between two looks at the clock."""
INTERRUPTED = 130
"""As shells have it for Ctrl-C."""

Progress = Callable[[int, int], None]
"""Told of (entries read, where in the file that is), now and then."""


class NotAnExport(Exception):
    """The file is none, is cut or damaged outside of its entries. The message says where."""


class ExportCut(NotAnExport):
    """The file was cut off: its end is missing."""


class CheckpointUnusable(Exception):
    """The checkpoint is of another export, of another verifier or damaged. The message says so."""


class Begun(NamedTuple):
    """How far an earlier call came, without a fault."""

    entries: int
    head: bytes
    """The chain hash there."""
    late: list[tuple[int, int, bytes]]
    """Answers that are not checked yet: the entry that each answers, its own, the head it has."""


class Start(NamedTuple):
    """What stands before the entries."""

    cell: str
    descriptors: bytes
    marked: bool
    """Whether its end is marked: not where an early release wrote it."""


class Exported(NamedTuple):
    """An entry as it stands in the file."""

    sequence: int
    subject: bytes
    headers: bytes
    payload: bytes
    head: bytes


class Verified:
    """What was found."""

    def __init__(self, cell: str) -> None:
        self.cell = cell
        self.entries = 0
        self.seals = 0
        self.sealed = 0
        """How many entries the last good seal covers."""
        self.head = b""
        self.keys: dict[str, bytes] = {}
        """Public keys of the seals, by id."""
        self.faults: list[tuple[int, str]] = []
        """(entry, what is wrong), in order."""

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def fault(self, sequence: int, what: str) -> None:
        """Something is wrong at an entry."""
        if len(self.faults) < MOST_FAULTS:
            self.faults.append((sequence, what))


# ---- the file ----------------------------------------------------------------------------------


def _exactly(file: BinaryIO, size: int, what: str) -> bytes:
    if size > MOST_BYTES:
        raise NotAnExport(f"{what} cannot have {size} bytes")
    raw = file.read(size)
    if len(raw) != size:
        raise ExportCut(f"the file ends within {what}")
    return raw


def read_start(file: BinaryIO) -> Start:
    """The cell, and the descriptors of its messages. Raises NotAnExport."""
    magic = file.read(len(MAGIC))
    if magic not in {MAGIC, OLD_MAGIC}:
        raise NotAnExport("this is no export of a log")
    digest = sha256(magic)
    parts: list[bytes] = []
    for what in ("the cell's name", "the descriptors"):
        raw = _exactly(file, LENGTH.size, what)
        parts.append(_exactly(file, LENGTH.unpack(raw)[0], what))
        digest.update(raw + parts[-1])
    marked = magic == MAGIC
    if marked and _exactly(file, HASH_BYTES, "the start") != digest.digest():
        raise NotAnExport("the start is damaged: cell and descriptors do not give its digest")
    try:
        return Start(parts[0].decode("ascii"), parts[1], marked)
    except UnicodeDecodeError:
        raise NotAnExport("the cell's name is damaged") from None


def read_entries(file: BinaryIO, marked: bool) -> Iterator[Exported]:
    """The entries in the order of the file. `marked`: see Start. Raises NotAnExport."""
    last, head = 0, bytes(HASH_BYTES)
    while True:
        raw = file.read(ENTRY.size)
        if not raw:
            if marked:
                raise ExportCut(f"the file is cut: its end is missing, or the entry after {last}")
            return
        what = f"the entry after {last}"
        if len(raw) != ENTRY.size:
            raise ExportCut(f"the file ends within {what}")
        sequence, subject, headers, payload = ENTRY.unpack(raw)
        if marked and sequence == 0:
            if raw != bytes(ENTRY.size) or _exactly(file, HASH_BYTES, "its end") != head:
                raise NotAnExport(f"the end of the file, or {what}, is damaged")
            if file.read(1):
                raise NotAnExport(f"something was added behind the end, which follows entry {last}")
            return
        parts = [_exactly(file, size, what) for size in (subject, headers, payload, HASH_BYTES)]
        yield Exported(sequence, *parts)
        last, head = sequence, parts[-1]


def _up_to_a_cut(file: BinaryIO, marked: bool) -> Iterator[Exported]:
    try:
        yield from read_entries(file, marked)
    except ExportCut:
        return


# ---- what the bytes must give ------------------------------------------------------------------


def first_head(cell: str) -> bytes:
    """The chain hash before the first entry."""
    return sha256(b"sabot.log.v1\x00" + cell.encode()).digest()


def next_head(head: bytes, entry: Exported) -> bytes:
    """The chain hash at an entry, from the one before it."""
    digest = sha256(head)
    digest.update(
        CHAINED.pack(entry.sequence, len(entry.subject), len(entry.headers), len(entry.payload))
    )
    for part in (entry.subject, entry.headers, entry.payload):
        digest.update(part)
    return digest.digest()


def signed_text(cell: str, size: int, root: bytes, head: bytes) -> bytes:
    """What a seal signs."""
    return f"sabot log head v1\n{cell}\n{size}\n{root.hex()}\n{head.hex()}\n".encode()


class Peaks:
    """The Merkle tree (RFC 6962) over a growing row of leaves: of each whole subtree, its root."""

    def __init__(self, peaks: list[bytes]) -> None:
        """`peaks`: by level; empty bytes where there is none."""
        self._peaks = list(peaks)

    def copy(self) -> Peaks:
        """As it stands."""
        return Peaks(self._peaks)

    def append(self, sequence: int, head: bytes) -> None:
        """Add the leaf of the next entry."""
        node = sha256(b"\x00" + SEQUENCE.pack(sequence) + head).digest()
        for level, peak in enumerate(self._peaks):
            if not peak:
                self._peaks[level] = node
                return
            node = sha256(b"\x01" + peak + node).digest()
            self._peaks[level] = b""
        self._peaks.append(node)

    def root(self) -> bytes:
        """The root: whole subtrees, joined from the right."""
        found = b""
        for peak in self._peaks:
            if peak:
                found = sha256(b"\x01" + peak + found).digest() if found else peak
        return found


class Past:
    """Chain hashes and roots at the last entries; whoever asks for older ones reads the file again.
    So a log may be as long as it likes."""

    WINDOW = 1 << 16
    STEP = 1 << 7
    """Entries between two copies of the peaks: a root takes at most so many hashes more."""

    def __init__(self, cell: str) -> None:
        self.size = 0
        self._heads: deque[bytes] = deque([first_head(cell)])
        """The last one is that at `size`."""
        self._peaks = Peaks([])
        self._copies: deque[tuple[int, Peaks]] = deque([(0, Peaks([]))])

    def append(self, head: bytes) -> None:
        """Add the next entry."""
        self.size += 1
        self._heads.append(head)
        self._peaks.append(self.size, head)
        if self.size % self.STEP == 0:
            self._copies.append((self.size, self._peaks.copy()))
        if len(self._heads) > self.WINDOW + self.STEP:
            for _ in range(self.STEP):
                self._heads.popleft()
            while self._copies[0][0] < self.size - len(self._heads) + 1:
                self._copies.popleft()

    def has(self, size: int) -> bool:
        """Whether what stood at this size is kept."""
        return self._copies[0][0] <= size <= self.size

    def head(self, size: int) -> bytes:
        """The chain hash at an entry that it has."""
        return self._heads[size - self.size - 1]

    def root(self, size: int) -> bytes:
        """The root at a size that it has."""
        at, peaks = next(one for one in reversed(self._copies) if one[0] <= size)
        peaks = peaks.copy()
        for sequence in range(at + 1, size + 1):
            peaks.append(sequence, self.head(sequence))
        return peaks.root()


class _Messages:
    """The messages of the export's own descriptors."""

    def __init__(self, descriptors: bytes) -> None:
        pool = DescriptorPool()
        try:
            files = FileDescriptorSet.FromString(descriptors)
            for file in files.file:
                pool.Add(file)
            self.entry: Any = self._class(pool, "sabot.log.v1.Entry")
            self.sealed: Any = self._class(pool, SEALED)
            for name in FIELDS:
                if _knows(pool, name):
                    _check_fields(pool.FindMessageTypeByName(name), name)
            # An export of a release without corrections has none of these.
            self.facts: dict[str, Any] = {
                name: self._class(pool, name)
                for name in (CONFIRMED, RECALL, RECALLED)
                if _knows(pool, name)
            }
        except (DecodeError, KeyError, TypeError, ValueError):
            raise NotAnExport("the descriptors are damaged") from None

    @staticmethod
    def _class(pool: DescriptorPool, name: str) -> Any:
        return GetMessageClass(pool.FindMessageTypeByName(name))

    def lacks(self, name: str) -> bool:
        """Whether events of this type must be read, and cannot be."""
        return name in {CONFIRMED, RECALL, RECALLED} and name not in self.facts


def _check_fields(message: Any, name: str) -> None:
    """Raises NotAnExport where what is read of a message is not declared as it is known here."""
    file, declared = FileDescriptorProto(), DescriptorProto()
    message.file.CopyToProto(file)
    message.CopyToProto(declared)
    known = {_declared(field) for field in declared.field}
    for field in FIELDS[name]:
        if field not in known or file.syntax != "proto3":
            raise NotAnExport(f"the descriptors do not have {name} with `{field}`")


def _declared(field: FieldDescriptorProto) -> str:
    """As it stands in a `.proto`. What is of no use here is left out."""
    types = {
        FieldDescriptorProto.TYPE_BYTES: "bytes",
        FieldDescriptorProto.TYPE_MESSAGE: field.type_name.removeprefix("."),
        FieldDescriptorProto.TYPE_STRING: "string",
        FieldDescriptorProto.TYPE_UINT32: "uint32",
        FieldDescriptorProto.TYPE_UINT64: "uint64",
    }
    # Of a `oneof`, a later field would take away what stands in an earlier one.
    among = "oneof " if field.HasField("oneof_index") else ""
    many = "repeated " if field.label == FieldDescriptorProto.LABEL_REPEATED else ""
    return f"{among}{many}{types.get(field.type, '?')} {field.name} = {field.number}"


def _knows(pool: DescriptorPool, name: str) -> bool:
    try:
        pool.FindMessageTypeByName(name)
    except KeyError:
        return False
    return True


class _Recalled:
    """Facts that corrections brought back, by the entry that each names, once confirmed."""

    def __init__(self, messages: _Messages) -> None:
        self._messages = messages
        self._brought: dict[tuple[int, int], Any] = {}
        self._steps: dict[str, list[tuple[int, int]]] = {}
        self.confirmed: dict[int, list[Any]] = {}

    def hear(self, entry: Exported, events: Any) -> None:
        """The next entry."""
        for index, event in enumerate(events):
            kind = self._messages.facts.get(event.type)
            if kind is None:
                continue
            body = kind.FromString(event.body)
            if event.type == RECALL:
                self._brought[entry.sequence, index] = body
            elif event.type == RECALLED:
                steps = [(step.sequence, step.index) for step in body.steps]
                self._steps[body.correction_id] = steps
            else:
                for step in self._steps.pop(body.correction_id, []):
                    for fact in self._brought.pop(step).facts:
                        self.confirmed.setdefault(fact.position.sequence, []).append(fact)


def _check_recalled(found: Verified, messages: _Messages, told: _Recalled, file: BinaryIO) -> None:
    """Read the entries again that confirmed facts name."""
    if not told.confirmed:
        return
    file.seek(0)
    wanted = dict(told.confirmed)
    for entry in _up_to_a_cut(file, read_start(file).marked):
        for fact in wanted.pop(entry.sequence, ()):
            _, service, _ = fact.type.split(".", 2)
            events = messages.entry.FromString(entry.payload).events
            at = fact.position.index
            same = at < len(events) and (events[at].type, events[at].body) == (fact.type, fact.body)
            if not same or not entry.subject.endswith(f".{service}.out".encode()):
                found.fault(entry.sequence, f"a correction rests on {fact.type} here, untrue")
    for sequence in wanted:
        found.fault(sequence, "a correction rests on an entry that is not there")


class _Asked(NamedTuple):
    """What an entry says of the log at an earlier place."""

    at: int
    entry: int
    head: bytes
    seal: Any
    """None: it is an answer that commits to the chain hash there."""


class _Checks:
    """What entries say of the log before them, held against it."""

    AT_ONCE = 1 << 14
    """Questions of what is not kept any more that one more reading answers."""

    def __init__(self, found: Verified, file: BinaryIO, trusted: frozenset[bytes]) -> None:
        self.past = Past(found.cell)
        self._found = found
        self._file = file
        self._trusted = trusted
        self._late: list[_Asked] = []

    def ask(self, asked: _Asked) -> None:
        """Check it, now or later."""
        if self.past.has(asked.at):
            root = self.past.root(asked.at) if asked.seal is not None else b""
            self._answer(asked, self.past.head(asked.at), root)
            return
        self._late.append(asked)
        if len(self._late) >= self.AT_ONCE:
            self.answer_late()

    def answer_late(self) -> None:
        """Check what asks for what is not kept any more, by reading the file from its beginning."""
        late = sorted(self._late, key=lambda one: one.at, reverse=True)
        if not late:
            return
        back_to = self._file.tell()
        self._file.seek(0)
        entries = read_entries(self._file, read_start(self._file).marked)
        peaks, head, size = Peaks([]), first_head(self._found.cell), 0
        while late:
            while late and late[-1].at == size:
                asked = late.pop()
                self._answer(asked, head, peaks.root() if asked.seal is not None else b"")
            if late:
                size, _, _, _, head = next(entries)
                peaks.append(size, head)
        self._file.seek(back_to)
        self._late = []

    def begun(self, entries: int, head: bytes) -> Begun:
        """How far all is checked, up to an entry that was."""
        late = [
            (one.at, one.entry, one.head)
            for one in self._late
            if one.seal is None and one.entry <= entries
        ]
        return Begun(entries, head, late)

    def go_on(self, begun: Begun) -> None:
        """Ask what an earlier call had not answered."""
        for at, entry, head in begun.late:
            self.ask(_Asked(at, entry, head, None))

    def _answer(self, asked: _Asked, head: bytes, root: bytes) -> None:
        if asked.seal is not None:
            _check_seal(self._found, asked, head, root, self._trusted)
        elif asked.head != head:
            what = f"it answers another log than this one has at entry {asked.at}"
            self._found.fault(asked.entry, what)


def verify(
    file: BinaryIO,
    trusted: frozenset[bytes] = frozenset(),
    known: Mapping[int, bytes] | None = None,
    progress: Progress = lambda _entries, _at: None,
    *,
    cut: bool = False,
    begun: Begun | None = None,
    keep: Callable[[Begun, bool], None] = lambda _begun, _now: None,
) -> Verified:
    """Check an export. `trusted`: public keys of which one must have signed each seal; empty: any.
    `known`: chain hashes that it must have, by entry. `cut`: it may end before its end. `begun`:
    how far an earlier call came; `keep`: told how far this one is, and whether it ends there.

    Raises NotAnExport, CheckpointUnusable."""
    start = read_start(file)
    messages = _Messages(start.descriptors)
    found, known = Verified(start.cell), known or {}
    checks, recalled = _Checks(found, file, trusted), _Recalled(messages)
    seen, done = begun.entries if begun is not None else 0, (0, b"")
    try:
        for entry in _up_to_a_cut(file, start.marked) if cut else read_entries(file, start.marked):
            expected = found.entries + 1
            if entry.sequence != expected:
                found.fault(expected, f"missing: the file goes on with entry {entry.sequence}")
                break
            if next_head(checks.past.head(found.entries), entry) != entry.head:
                found.fault(expected, "its bytes do not give its chain hash")
                break
            checks.past.append(entry.head)
            found.entries = expected
            if known.get(expected, entry.head) != entry.head:
                found.fault(expected, "the log that is known has another chain hash here")
            if expected > seen or any(name in entry.payload for name in ALWAYS_READ):
                _check_answers(found, messages, entry, checks, recalled, expected <= seen)
            if begun is not None and expected == seen:
                if entry.head != begun.head:
                    raise CheckpointUnusable("the export has another chain hash there")
                checks.go_on(begun)
            done = (expected, entry.head)
            if expected % TOLD_EVERY == 0:
                progress(expected, file.tell())
                if found.right:
                    keep(checks.begun(expected, entry.head), False)
        if found.right and found.entries < seen:
            raise CheckpointUnusable("the export ends before")
        found.head = checks.past.head(found.entries)
        checks.answer_late()
        if found.right:
            _check_recalled(found, messages, recalled, file)
    except (AttributeError, DecodeError, LookupError, TypeError, ValueError) as error:
        # Its chain holds, so somebody made it so, or made the descriptors so.
        what = f"what it holds contradicts the rest of the file: {type(error).__name__}"
        found.fault(found.entries, what)
    except KeyboardInterrupt:
        if found.right and done[0] > seen:
            keep(checks.begun(*done), True)
        raise
    if found.right:
        for sequence in sorted(known):
            if sequence > found.entries:
                found.fault(sequence, "missing: the log that is known has it, the file ends before")
        if trusted and not found.seals:
            found.fault(found.entries, "no seal up to here, so no trusted key vouches for it")
    found.faults.sort(key=lambda one: one[0])
    return found


def _check_answers(
    found: Verified,
    messages: _Messages,
    entry: Exported,
    checks: _Checks,
    recalled: _Recalled,
    seen: bool,
) -> None:
    """`seen`: an earlier call held its answers against what they answer."""
    is_answer = entry.subject.endswith(b".out")
    if not is_answer and not entry.subject.endswith(b".settlement.in"):
        return
    try:
        read = messages.entry.FromString(entry.payload)
    except DecodeError:
        found.fault(entry.sequence, "its payload is no entry")
        return
    speak = SPEAKS.intersection([event.type for event in read.events])
    for name in sorted(name for name in speak if messages.lacks(name)):
        found.fault(entry.sequence, f"the descriptors do not have its {name}")
    if speak:
        recalled.hear(entry, read.events)
    if not is_answer:
        return
    cause = read.events[-1].cause.sequence if read.events else 0
    if cause <= entry.sequence and read.head and not seen:
        checks.ask(_Asked(cause, entry.sequence, read.head, None))
    for event in read.events if SEALED in speak else ():
        if event.type != SEALED:
            continue
        seal = messages.sealed.FromString(event.body)
        if 0 < seal.size < entry.sequence:
            checks.ask(_Asked(seal.size, entry.sequence, b"", seal))
        else:
            found.fault(entry.sequence, f"its seal covers {seal.size} entries, which cannot be")


def _check_seal(
    found: Verified, asked: _Asked, head: bytes, root: bytes, trusted: frozenset[bytes]
) -> None:
    """`head`, `root`: what the log has at the size that the seal speaks of."""
    seal, size = asked.seal, asked.at
    faults: list[str] = []
    if seal.head != head:
        faults.append("has another chain hash")
    if seal.root != root:
        faults.append("has another Merkle root")
    text = signed_text(found.cell, size, seal.root, seal.head)
    try:
        Ed25519PublicKey.from_public_bytes(seal.public_key).verify(seal.signature, text)
    except (InvalidSignature, ValueError):
        faults.append("is not signed by its key")
    if sha256(seal.public_key).hexdigest()[:16] != seal.key_id:
        faults.append("names another key than it holds")
    if trusted and seal.public_key not in trusted:
        faults.append(f"is signed by the key {seal.key_id}, which is not trusted")
    for what in faults:
        found.fault(asked.entry, f"the seal over entries 1 to {size} {what}")
    if not faults:
        found.seals += 1
        found.sealed = max(found.sealed, size)
        found.keys[seal.key_id] = seal.public_key


def lines(found: Verified, trusted: frozenset[bytes]) -> list[str]:
    """What was found, for people."""
    told = [f"entry {sequence}: {what}" for sequence, what in found.faults]
    told.append(
        f"cell {found.cell}: {found.entries} entries, {found.seals} seals that hold, "
        f"the last over {found.sealed}, head {found.entries}:{found.head.hex()}"
    )
    for key_id, key in sorted(found.keys.items()):
        known = "trusted" if trusted else "compare it with one that you trust"
        told.append(f"signed by the key {key_id} ({key.hex()}; {known})")
    told.append("right" if found.right else f"WRONG: {len(found.faults)} faults")
    return told


class _Shown:
    """On a terminal, how far it is: rate, and time left."""

    def __init__(self, file: BinaryIO) -> None:
        self._size = file.seek(0, 2)
        file.seek(0)
        self._began = time.monotonic()
        self._next = self._began + SHOWN_AFTER_S
        self._shown = False

    def __call__(self, entries: int, at: int) -> None:
        now = time.monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next, self._shown = now + SHOWN_EVERY_S, True
        took = now - self._began
        left = took * (self._size - at) / at
        told = f"{at / self._size:4.0%}  {entries:,} entries, {entries / took:,.0f} a second"
        print(f"\r{told}, {left:,.0f} s left   ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the line empty."""
        if self._shown:
            print("\r" + " " * 79, end="\r", file=sys.stderr, flush=True)


class _Kept:
    """The checkpoint of an export, in a file."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._next = time.monotonic() + KEEP_EVERY_S
        start = read_start(file)
        file.seek(0)
        self._of = {"verifier": _digest_of_this(), "start": sha256(start.descriptors).hexdigest()}
        self._of["cell"] = start.cell
        self._there = False

    def begun(self) -> Begun | None:
        """What an earlier call left; None: nothing. Raises CheckpointUnusable."""
        try:
            with open(self._path, "rb") as file:  # noqa: PTH123 - this file stands by itself
                told = json.loads(file.read())
            self._there = True
            if {name: told[name] for name in self._of} != self._of:
                raise CheckpointUnusable("it is of another export or verifier")
            late = [(int(at), int(entry), bytes.fromhex(h)) for at, entry, h in told["late"]]
            return Begun(int(told["entries"]), bytes.fromhex(told["head"]), late)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointUnusable(str(error.strerror)) from None
        except (AttributeError, LookupError, TypeError, ValueError):
            raise CheckpointUnusable("it cannot be read") from None

    def __call__(self, begun: Begun, now: bool) -> None:
        """Keep it, whole or not at all, where it is the end or the last time was long ago."""
        if not now and time.monotonic() < self._next:
            return
        late = [(at, entry, head.hex()) for at, entry, head in begun.late]
        told = {**self._of, "entries": begun.entries, "head": begun.head.hex(), "late": late}
        beside = f"{self._path}.new"
        try:
            with open(beside, "w") as file:  # noqa: PTH123 - as above
                json.dump(told, file)
            os.replace(beside, self._path)  # noqa: PTH105 - as above
        except OSError as error:
            print(f"{self._path}: {error.strerror}", file=sys.stderr)
            return
        self._there, self._next = True, time.monotonic() + KEEP_EVERY_S

    def remove(self) -> None:
        """All is done."""
        if self._there:
            os.unlink(self._path)  # noqa: PTH108 - as above


def _digest_of_this() -> str:
    try:
        with open(__file__, "rb") as file:  # noqa: PTH123 - as above
            return sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _keys(texts: list[str]) -> frozenset[bytes]:
    keys = frozenset(bytes.fromhex(text) for text in texts)
    if any(len(key) != PUBLIC_KEY_BYTES for key in keys):
        raise ValueError
    return keys


def _heads(texts: list[str]) -> dict[int, bytes]:
    heads: dict[int, bytes] = {}
    for text in texts:
        sequence, _, digits = text.partition(":")
        head = bytes.fromhex(digits)
        number = sequence.isascii() and sequence.isdecimal() and len(sequence) < MOST_DIGITS
        if not number or len(head) != HASH_BYTES:
            raise ValueError
        at = int(sequence)
        if at < 1 or heads.setdefault(at, head) != head:
            raise ValueError
    return heads


def check_file(path: str, keys: list[str], heads: list[str], checkpoint: str = CHECKPOINT) -> int:
    """Check a file and tell; the exit code, see the module."""
    try:
        trusted = _keys(keys)
    except ValueError:
        print("a public key is 64 hexadecimal digits", file=sys.stderr)
        return 2
    try:
        known = _heads(heads)
    except ValueError:
        told = "a head is SEQUENCE:HASH, with 64 hexadecimal digits, one for each sequence from 1"
        print(told, file=sys.stderr)
        return 2
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - this file stands by itself
            kept, shown = _Kept(checkpoint, file), _Shown(file)
            begun = kept.begun()
            if begun is not None:
                told = f"going on from {checkpoint}, which reaches to entry {begun.entries}"
                print(told, file=sys.stderr)
            try:
                found = verify(file, trusted, known, shown, begun=begun, keep=kept)
            finally:
                shown.close()
            kept.remove()
    except CheckpointUnusable as error:
        print(f"{checkpoint}: {error}; remove it, or name another one", file=sys.stderr)
        return 1
    except (OSError, NotAnExport) as error:
        told = str(getattr(error, "strerror", None) or error)
        print(f"{path}: {told}", file=sys.stderr)
        return 1
    if begun is not None:
        # Nobody signs a checkpoint.
        print(f"answers up to entry {begun.entries}: as the call found them that left {checkpoint}")
    print("\n".join(lines(found, trusted)))
    return 0 if found.right else 1


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Check an export of a Sabot log.")
    parser.add_argument("file", help="what `sabot export` wrote")
    parser.add_argument("--key", action="append", default=[], help="a public key that may sign")
    parser.add_argument("--head", action="append", default=[], help="SEQUENCE:HASH, a known head")
    parser.add_argument(
        "--checkpoint", default=CHECKPOINT, help="where Ctrl-C leaves how far it is"
    )
    told = parser.parse_args()
    try:
        return check_file(told.file, told.key, told.head, told.checkpoint)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
