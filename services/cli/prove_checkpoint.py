"""How far the proof of a history is, in a file from which it goes on.

A file that is damaged, of other code or of another log is refused: the entry up to which it says
that something is proven must stand in the log, with all before it. What it came to there is
believed as it stands: who may write the file may write what they like.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from services.cli.capsule_file import NotACapsule, Part, read_parts, write_parts
from services.cli.cores import BY_SERVICE
from services.cli.moments import parse_position
from services.cli.proving import Difference, Piece, Proven
from services.kernel.attesting import installed_code
from services.kernel.build import BUILD
from services.kernel.entry import first_head, next_head
from services.kernel.log import Log
from services.kernel.snapshot import is_snapshot_of

MAGIC = b"sabot-prove-1\n"
COUNTS = ("rounds", "answers", "events", "differences", "lost", "sums")


class CheckpointUnusable(Exception):
    """The file is damaged, or of another log."""


@dataclass(slots=True)
class Checkpoint:
    """See the module."""

    pieces: list[Piece]
    """What is left of each piece: it begins where it was left; those that are done are not here."""
    proven: dict[int, Proven]
    """By piece, what it came to so far, whether it is done or not."""


def left_of(pieces: list[Piece], proven: dict[int, Proven]) -> list[Piece]:
    """What remains to be done of some pieces."""
    left: list[Piece] = []
    for piece in pieces:
        done = proven.get(piece.number)
        if done is None:
            left.append(piece)
        elif done.states:
            services = tuple(name for name in piece.services if name in done.states)
            left.append(replace(piece, services=services, start=done.states))
        elif done.sequence < piece.last and not set(piece.services) <= set(done.lost):
            left.append(piece)  # It begins where it was left before, and was not gone on with.
    return left


def joined(earlier: Proven | None, later: Proven) -> Proven:
    """A piece's beginning and the rest of it."""
    if earlier is None:
        return later
    return replace(
        later,
        rounds=earlier.rounds + later.rounds,
        answers=earlier.answers + later.answers,
        events=earlier.events + later.events,
        differences=earlier.differences + later.differences,
        let_stand=earlier.let_stand + later.let_stand,
        lost=earlier.lost + later.lost,
    )


async def heads_until(
    log: Log, places: Mapping[int, bytes], remember: int = 1, *, check: bool = True
) -> deque[bytes]:
    """The chain hashes at the entries up to the last of some places, at most so many, in order.
    Each place must have its hash in the log, unless nothing shall be checked. Nothing is decoded.

    Raises CheckpointUnusable, LogUnavailable."""
    until = max(places, default=0)
    places = places if check else {}
    head = first_head(log.cell)
    heads: deque[bytes] = deque([head], maxlen=remember)
    sequence = 0
    if places.get(0, head) != head:
        raise CheckpointUnusable("of another cell")
    messages = log.read(0)
    try:
        while sequence < until:
            batch = await anext(messages, None)
            for one in batch or ():
                sequence = one.sequence
                head = next_head(head, sequence, one.subject, one.headers, one.payload)
                heads.append(head)
                if places.get(sequence, head) != head:
                    raise CheckpointUnusable(f"the log has another entry {sequence}, or before it")
                if sequence >= until:
                    break
            if batch is None:
                raise CheckpointUnusable(f"the log ends before entry {until}")
            await asyncio.sleep(0)
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return heads


async def identity_of(log: Log) -> str:
    """What tells a log from every other: its cell and the hash of its first entry."""
    messages = log.read(0)
    try:
        async for batch in messages:
            one = batch[0]
            first = first_head(log.cell)
            head = next_head(first, one.sequence, one.subject, one.headers, one.payload)
            return f"{log.cell} {head.hex()}"
    finally:
        await messages.aclose()  # type: ignore[attr-defined]  # an async generator, by its contract
    return log.cell


def check_code(path: Path, about: Mapping[str, Any]) -> None:
    """Whether it was left by the code that runs here: of other code it says what that decided. The
    build's name alone tells releases apart, not what was changed in between.

    Raises CheckpointUnusable."""
    if about["build"] != BUILD:
        raise CheckpointUnusable(f"{path} was left by {about['build']}: remove it")
    if about.get("code") != installed_code().hex():
        raise CheckpointUnusable(f"{path} was left by other code: remove it to begin anew")


def write_checkpoint(path: Path, log: str, pieces: list[Piece], proven: dict[int, Proven]) -> None:
    """Write how far it is, whole or not at all. `log`: its identity."""
    write_parts(path, _parts(log, left_of(pieces, proven), proven), MAGIC)


def remove_checkpoint(path: Path) -> None:
    """All is done."""
    path.unlink(missing_ok=True)


def _parts(log: str, left: list[Piece], proven: dict[int, Proven]) -> Iterator[Part]:
    about = {
        "log": log,
        "build": BUILD,
        "code": installed_code().hex(),
        "pieces": [
            {"number": one.number, "services": one.services, "last": one.last} for one in left
        ],
        "proven": [
            {
                "number": one.number,
                "sequence": one.sequence,
                "head": one.head.hex(),
                **{name: getattr(one, name) for name in COUNTS},
                "let_stand": [[str(at), head.hex()] for at, head in one.let_stand],
            }
            for one in proven.values()
        ],
    }
    yield Part("about", json.dumps(about).encode())
    for piece in left:
        for what in ("start", "expected"):
            for service, raw in getattr(piece, what).items():
                yield Part(f"{what} {piece.number} {service}", raw)


def read_checkpoint(path: Path, log: str) -> Checkpoint | None:
    """How far it is; None where there is no such file. Raises CheckpointUnusable."""
    installed_code()  # Read before the work begins: what is kept later is of that code.
    try:
        with path.open("rb") as file:
            parts = {part.name: part.body for part in read_parts(file, MAGIC)}
        about: Any = json.loads(parts.pop("about"))
        if about["log"] != log:
            raise CheckpointUnusable(f"{path} is of another log: remove it, or name another one")
        check_code(path, about)
        pieces = {
            one["number"]: Piece(one["number"], tuple(one["services"]), one["last"])
            for one in about["pieces"]
        }
        for name, raw in parts.items():
            what, number, service = name.split(" ")
            getattr(pieces[int(number)], what)[service] = raw
        proven = {
            one["number"]: Proven(
                one["number"],
                one["sequence"],
                bytes.fromhex(one["head"]),
                **{name: one[name] for name in COUNTS},
            )
            for one in about["proven"]
        }
        for one in about["proven"]:
            found = proven[one["number"]]
            found.differences = [Difference(*each) for each in one["differences"]]
            found.let_stand = [
                (parse_position(at), bytes.fromhex(head)) for at, head in one["let_stand"]
            ]
        for piece in pieces.values():
            for name, raw in (*piece.start.items(), *piece.expected.items()):
                if not is_snapshot_of(BY_SERVICE[name], raw):
                    raise CheckpointUnusable(f"{path} was left by another release: remove it")
    except FileNotFoundError:
        return None
    except (NotACapsule, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointUnusable(f"{path} cannot be read, remove it: {error}") from error
    return Checkpoint(list(pieces.values()), proven)
