"""What the console keeps of the log, in a file of its own: its next start goes on from there.

A cache: it is held against the entry that it ends with, and what is odd, damaged or of another log
is passed over. Who could change it could change the log's own snapshots beside it as well."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from services.console.history import Kept, Mark, thin
from services.kernel.log import LogMessage
from services.kernel.snapshot import DIGEST_BYTES, SnapshotUnusable, StateCodec

SCHEMA = 3
"""Of `Kept`, all that is in it, and what is taken from the log into it: a new one begins anew."""
MOST_BALANCES = 200_000
"""Balances in all marks of the file together: a few MiB."""
_DECLARED = tuple[int, str, Kept]
_CODEC = StateCodec()


def entry_digest(entry: LogMessage) -> bytes:
    """By which an entry is known again."""
    return hashlib.sha256(entry.subject.encode() + b"\x00" + entry.payload).digest()


def save(path: Path, cell: str, kept: Kept, last: LogMessage) -> None:
    """Write the file, whole or not at all. `last`: the entry that `kept` ends with.
    Raises OSError."""
    few = replace(kept, marks=_few(kept))
    raw = _CODEC.dumps(_DECLARED, (SCHEMA, cell, few)) + entry_digest(last)
    raw += hashlib.sha256(raw).digest()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(raw)
    part.replace(path)


def _few(kept: Kept) -> deque[Mark]:
    marks = kept.marks.copy()
    room = max(2, MOST_BALANCES // (len(kept.ledger) + 1))
    while len(marks) > room:
        thin(marks)
    return marks


def load(path: Path, cell: str) -> tuple[Kept, bytes] | None:
    """What was kept, and the digest of the entry that it ends with; None: there is nothing that can
    be used."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    body, told = raw[:-DIGEST_BYTES], raw[-DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != told:
        return None
    text, entry = body[:-DIGEST_BYTES], body[-DIGEST_BYTES:]
    if not text.startswith(f'[{SCHEMA},"{cell}",'.encode()):
        return None
    try:
        _, _, kept = _CODEC.loads(_DECLARED, text)
    except SnapshotUnusable:
        return None
    return kept, entry


def forget(path: Path) -> None:
    """Take the file away: it is not of this log."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
