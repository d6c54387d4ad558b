"""`sabot log`: what an operator may accept of a log that is not what was witnessed, or not what
today's cores decide.

A log that is shorter than what processes had read, or another one, refuses to start. Going on with
it is a person's decision: it is shown what is lost, names the end of the log as it stands, and says
why. A recorded answer that does not follow is a difference in every proof; where it is known why,
and what it did is made good, a person accepts it, and proofs count it apart. The decision itself
goes into the log at the next start.
"""

from __future__ import annotations

import asyncio
import getpass
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sabot.log.v1 import events_pb2
from services.cli.log_source import NoLog, StoreLog, witnesses_of
from services.cli.moments import is_number
from services.kernel.accepted import Acceptance, read_accepted, write_accepted
from services.kernel.embedded import FolderLock, noted_cell, stream_folder
from services.kernel.entry import first_head, next_head, position_proto
from services.kernel.event import Position
from services.kernel.log import Log
from services.kernel.log_places import events_at
from services.kernel.reader import SEGMENT
from services.kernel.store_check import check_store
from services.kernel.witness import FileWitness, Witnessed


class NotAcceptable(Exception):
    """This cannot be accepted; why."""


@dataclass(frozen=True, slots=True)
class Head:
    """An entry and the chain hash there; written `sequence:hash`."""

    sequence: int
    head: bytes

    def __str__(self) -> str:
        return f"{self.sequence}:{self.head.hex()}"


def parse_head(text: str) -> Head:
    """Raises ValueError."""
    wrong = ValueError(f"{text!r} is no head: write SEQUENCE:HASH with 64 hexadecimal digits")
    sequence, colon, digits = text.partition(":")
    try:
        head = bytes.fromhex(digits)
    except ValueError:
        raise wrong from None
    if not (colon and is_number(sequence) and len(head) == 32):
        raise wrong
    return Head(int(sequence), head)


async def head_at(log: Log, sequence: int | None = None) -> Head:
    """The chain hash at an entry, or at the end. Nothing is decoded: it works on any log.

    Raises LogUnavailable, NotAcceptable."""
    last = (await log.info(wait_s=5.0)).last_sequence
    wanted = last if sequence is None else sequence
    if not 0 <= wanted <= last:
        raise NotAcceptable(f"the log ends at entry {last}")
    head = first_head(log.cell)
    if wanted == 0:
        return Head(0, head)
    messages = log.read(0)
    try:
        async for batch in messages:
            for message in batch:
                head = next_head(
                    head, message.sequence, message.subject, message.headers, message.payload
                )
                if message.sequence == wanted:
                    return Head(wanted, head)
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    raise NotAcceptable(f"the log ends before entry {wanted}")


@dataclass(frozen=True, slots=True)
class Loss:
    """What going on with a log as it stands would give up."""

    head: Head
    """Its end."""
    witnessed: Mapping[str, Witnessed]
    """By process name, those whose reading the log does not bear out."""

    @property
    def highest(self) -> int:
        """The last entry that was read and is lost, or 0."""
        return max((seen.sequence for seen in self.witnessed.values()), default=0)

    def lines(self) -> list[str]:
        """For a person."""
        told = [f"the log ends at {self.head}"]
        for name, seen in self.witnessed.items():
            if seen.sequence > self.head.sequence:
                told.append(
                    f"process {name} had read up to entry {seen.sequence}: entries "
                    f"{self.head.sequence + 1} to {seen.sequence} are lost"
                )
            else:
                told.append(
                    f"process {name} had read another entry {seen.sequence}: what it had read up "
                    f"to there is not this log"
                )
        return told

    def json(self) -> dict[str, Any]:
        return {
            "head": str(self.head),
            "lost": [
                {"process": name, "sequence": seen.sequence, "head": seen.head.hex()}
                for name, seen in self.witnessed.items()
            ],
        }


async def examine(data: Path) -> Loss:
    """What is lost in a stopped folder. Raises NoLog, FolderInUse, StoreNotTheLog, StoreMissing."""
    async with _locked(data) as cell:
        return await _examine(data, cell)


async def accept_head(data: Path, head: Head, reason: str, operator: str = "") -> Loss:
    """Let the processes of a stopped folder go on from its log as it stands.

    Raises NotAcceptable, and what `examine` raises."""
    async with _locked(data) as cell:
        loss = await _examine(data, cell)
        if head != loss.head:
            raise NotAcceptable(f"the log ends at {loss.head}, not at {head}")
        if not loss.witnessed:
            raise NotAcceptable(f"nothing is lost: the log at {head} is what was witnessed")
        _note(data, head, loss.highest, reason, operator)
        for name in witnesses_of(data):
            witness = FileWitness(data / "witness" / name)
            witness.write(head.sequence, head.head)
            witness.close()
        _forget_snapshots(data, head.sequence)
        _forget_index(data, cell)
        return loss


async def accept_entry(data: Path, head: Head, reason: str, operator: str = "") -> None:
    """Let an entry of a stopped folder be read over although it cannot be understood.

    Raises NotAcceptable, NoLog, FolderInUse, StoreMissing."""
    async with _locked(data) as cell:
        stands = await head_at(StoreLog(stream_folder(data, cell), cell), head.sequence)
        if stands != head:
            raise NotAcceptable(f"entry {head.sequence} has the hash {stands}, not {head}")
        _note(data, head, 0, reason, operator)


async def accept_difference(data: Path, at: Position, reason: str, operator: str = "") -> Head:
    """Let a recorded answer stand although it does not follow; the head of its entry. Whether it
    follows is not looked at: one that does is no difference, accepted or not.

    Raises NotAcceptable, NoLog, FolderInUse, StoreMissing."""
    async with _locked(data) as cell:
        log = StoreLog(stream_folder(data, cell), cell)
        if not await _is_answer(log, at):
            raise NotAcceptable(f"the log has no answer at {at}")
        head = await head_at(log, at.sequence)
        _note(data, head, 0, reason, operator, at)
        return head


async def _is_answer(log: Log, at: Position) -> bool:
    if at.segment != SEGMENT or at.sequence < 1:
        return False
    found = (await events_at(log, [at])).get(at)
    return found is not None and found.subject.endswith(".out")


def _note(
    data: Path,
    head: Head,
    witnessed: int,
    reason: str,
    operator: str,
    difference: Position | None = None,
) -> None:
    """Remember an acceptance until the log tells of it; that of an entry for ever."""
    accepted = read_accepted(data)
    if not witnessed and difference is None:
        accepted.entries[head.sequence] = head.head
    body = events_pb2.AcceptLog(
        sequence=head.sequence,
        head=head.head,
        witnessed_sequence=witnessed,
        reason=reason,
        difference=position_proto(difference) if difference is not None else None,
    )
    accepted.to_log.append(Acceptance(body, f"operator:{operator or getpass.getuser()}"))
    write_accepted(data, accepted)


def _forget_snapshots(data: Path, sequence: int) -> None:
    """Snapshots of what is lost are of no use."""
    folder = data / "snapshots"
    for path in folder.iterdir() if folder.is_dir() else []:
        if path.name.isdecimal() and int(path.name) > sequence:
            shutil.rmtree(path)


def _forget_index(data: Path, cell: str) -> None:
    """The server's index may still speak of what is lost; without it the blocks are read."""
    (stream_folder(data, cell) / "msgs" / "index.db").unlink(missing_ok=True)


async def _examine(data: Path, cell: str) -> Loss:
    folder = stream_folder(data, cell)
    checked = check_store(folder, cell, {}, accepted=read_accepted(data).entries)
    head = Head(checked.last_sequence, checked.head)
    log = StoreLog(folder, cell)
    lost = {
        name: seen
        for name, seen in witnesses_of(data).items()
        if seen.sequence > head.sequence or (await head_at(log, seen.sequence)).head != seen.head
    }
    return Loss(head, lost)


@asynccontextmanager
async def _locked(data: Path) -> AsyncIterator[str]:
    """A stopped data folder, locked; gives its cell."""
    cell = noted_cell(data)
    if cell is None:
        raise NoLog(f"there is no log in {data}")
    lock = FolderLock(data)
    await lock.acquire(wait_s=0.0)
    try:
        yield cell
    finally:
        lock.release()
