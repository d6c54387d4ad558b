"""How far `sabot replay --verify` is, in a file from which it goes on.

It holds the states of all cores, what was counted, and the differences so far. It must be of this
code and of this log: that is hashed up to its place, and must come to its chain hash. What it holds
is believed as it stands: who may write the file may write what they like.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from sabot.log.v1 import entry_pb2
from services.cli.capsule_file import NotACapsule, Part, read_parts, write_parts
from services.cli.cores import BY_SERVICE
from services.cli.moments import parse_position
from services.cli.prove_checkpoint import (
    CheckpointUnusable,
    check_code,
    heads_until,
    identity_of,
)
from services.cli.recalled import Recalled
from services.cli.replay import Replaying
from services.kernel.attesting import installed_code
from services.kernel.build import BUILD
from services.kernel.log import Log
from services.kernel.reader import REMEMBERED_HEADS
from services.kernel.recovery import AnyReplica
from services.kernel.replica import Diverged, Replica
from services.kernel.snapshot import (
    Snapshot,
    SnapshotUnusable,
    StateCodec,
    decode_snapshot,
    encode_snapshot,
    reader_of,
)

MAGIC = b"sabot-replay-1\n"
KEEP_EVERY_S = 60.0
"""Between two times that it is kept by itself: large states take a second to be written."""
COUNTS = ("rounds", "bets", "answers", "events")
UNREADABLE = (
    NotACapsule,
    SnapshotUnusable,
    DecodeError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    StopIteration,
)


class ReplayCheckpoint:
    """See the module. `going_on(path, sequence)` is told where it goes on; `every_s`: how often it
    is kept by itself, seconds."""

    def __init__(
        self,
        path: Path,
        going_on: Callable[[Path, int], None] = lambda _path, _sequence: None,
        every_s: float = KEEP_EVERY_S,
    ) -> None:
        self._going_on = going_on
        self._path = path
        self._every_s = every_s
        self._next = time.monotonic() + every_s
        self._log = ""

    async def begin(self, log: Log, last: int, replaying: Replaying) -> None:
        """Go on from what is kept, if anything is. Raises CheckpointUnusable, LogUnavailable."""
        installed_code()  # Read before the work begins: what is kept later is of that code.
        self._log = await identity_of(log)
        try:
            with self._path.open("rb") as file:
                parts = {part.name: part.body for part in read_parts(file, MAGIC)}
            about: Any = json.loads(parts.pop("about"))
            self._check(about, last)
            states = _states(parts)
            at, head = int(about["sequence"]), bytes.fromhex(about["head"])
            reader = reader_of(next(iter(parts.values())))
            if (reader.sequence, reader.head) != (at, head):
                raise ValueError("its states are of another place")
            _take(replaying, about, states)
        except FileNotFoundError:
            return
        except UNREADABLE as error:
            raise CheckpointUnusable(f"{self._path} cannot be read, remove it: {error}") from error
        try:
            heads = await heads_until(log, {at: head}, REMEMBERED_HEADS)
        except CheckpointUnusable as unusable:
            raise CheckpointUnusable(f"{self._path} does not fit: {unusable}; remove it") from None
        replaying.reader.state = reader
        replaying.reader.remember(heads)
        self._going_on(self._path, at)

    def _check(self, about: Any, last: int) -> None:
        if about["log"] != self._log:
            raise CheckpointUnusable(
                f"{self._path} is of another log: remove it, or name another one"
            )
        check_code(self._path, about)
        if int(about["sequence"]) > last:
            raise CheckpointUnusable(f"{self._path} is of a longer log: remove it")

    def keep_now_and_then(self, replaying: Replaying) -> None:
        """Keep it where that was long ago."""
        if time.monotonic() >= self._next:
            self.keep(replaying)

    def keep(self, replaying: Replaying) -> None:
        """Keep it, whole or not at all. Raises OSError."""
        write_parts(self._path, _parts(self._log, replaying), MAGIC)
        self._next = time.monotonic() + self._every_s

    def remove(self) -> None:
        """All is done."""
        self._path.unlink(missing_ok=True)


def _parts(log: str, replaying: Replaying) -> Iterator[Part]:
    found, state = replaying.found, replaying.reader.state
    about = {
        "log": log,
        "build": BUILD,
        "code": installed_code().hex(),
        "sequence": state.sequence,
        "head": state.head.hex(),
        "seconds": found.seconds + time.perf_counter() - replaying.began,
        "counts": {name: getattr(found, name) for name in COUNTS},
        "compared": {name: one.answers_compared for name, one in replaying.replicas.items()},
        "lost": {name: str(position) for name, position in found.lost.items()},
        "differing": [_difference(one, head) for one, head in replaying.differing],
        "let_stand": [[str(position), head.hex()] for position, head in replaying.let_stand],
        "recalled": replaying.recalled.kept(),
        "accepted_entries": replaying.reader.accepted_entries,
        "heads_unchecked": replaying.reader.heads_unchecked,
    }
    yield Part("about", json.dumps(about).encode())
    codec = StateCodec()
    states = {f"state {name}": one for name, one in replaying.replicas.items()}
    for name, one in {**states, "books": replaying.books}.items():
        if name == "books" and one is replaying.replicas.get("wallet"):
            continue
        core = one.core
        here = Snapshot(core.service, core.schema, state, one.state)
        yield Part(name, encode_snapshot(codec, core, here))


def _difference(one: Diverged, head: bytes) -> list[str | None]:
    expected = one.expected.SerializeToString().hex() if one.expected is not None else None
    return [
        one.service,
        str(one.position),
        expected,
        one.recorded.SerializeToString().hex(),
        head.hex(),
    ]


def _states(parts: dict[str, bytes]) -> dict[str, AnyReplica]:
    """Replicas by the names of their parts."""
    codec = StateCodec()
    found: dict[str, AnyReplica] = {}
    for name, raw in parts.items():
        core = BY_SERVICE["wallet" if name == "books" else name.removeprefix("state ")]
        taken = decode_snapshot(codec, core, raw).replica
        found[name] = Replica(core, writer="replay", state=taken)
    return found


def _take(replaying: Replaying, about: Any, states: dict[str, AnyReplica]) -> None:
    found = replaying.found
    found.seconds = float(about["seconds"])
    for name in COUNTS:
        setattr(found, name, int(about["counts"][name]))
    found.lost = {name: parse_position(at) for name, at in about["lost"].items()}
    replicas = {name: states[f"state {name}"] for name in about["compared"]}
    if replicas.keys() | found.lost.keys() != BY_SERVICE.keys():
        raise ValueError("services are missing")
    for name, compared in about["compared"].items():
        replicas[name].answers_compared = int(compared)
    replaying.replicas = replicas
    replaying.books = states.get("books") or replicas["wallet"]
    replaying.differing = [
        (Diverged(service, parse_position(at), _event(expected), _recorded(raw)), bytes.fromhex(h))
        for service, at, expected, raw, h in about["differing"]
    ]
    replaying.let_stand = {(parse_position(at), bytes.fromhex(h)) for at, h in about["let_stand"]}
    replaying.recalled = Recalled.of(about["recalled"])
    replaying.reader.accepted_entries = [int(one) for one in about["accepted_entries"]]
    replaying.reader.heads_unchecked = int(about["heads_unchecked"])


def _event(raw: str | None) -> entry_pb2.Event | None:
    return _recorded(raw) if raw is not None else None


def _recorded(raw: str) -> entry_pb2.Event:
    return entry_pb2.Event.FromString(bytes.fromhex(raw))
