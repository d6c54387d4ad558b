"""Recorded logs: how they are kept, read and folded.

A history is a gzipped file of JSON lines. The first says what the rest came to; each other one is
an entry: sequence, subject, headers, payload (base64). It is never changed: what was written once
must fold for ever.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.cores import CORES
from services.events import event_types
from services.kernel.event import Core
from services.kernel.log import LogMessage
from services.kernel.reader import LogReader
from services.kernel.recovery import AnyReplica, read_message
from services.kernel.replica import Replica
from services.kernel.snapshot import StateCodec, state_digest

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class History:
    """A recorded log and what it came to when it was recorded."""

    cell: str
    build: str
    rounds: int
    head: str
    digests: dict[str, tuple[int, str]]
    """By service: schema and digest of the state at the end."""
    messages: list[LogMessage]


def histories() -> list[Path]:
    """All that were ever recorded, oldest first."""
    return sorted(HERE.glob("*.jsonl.gz"))


def load(path: Path) -> History:
    """Read one."""
    with gzip.open(path, "rt") as lines:
        about: dict[str, Any] = json.loads(next(lines))
        messages = []
        for line in lines:
            sequence, subject, headers, payload = json.loads(line)
            messages.append(LogMessage(sequence, subject, headers, base64.b64decode(payload)))
    digests = {service: (schema, digest) for service, (schema, digest) in about["digests"].items()}
    return History(about["cell"], about["build"], about["rounds"], about["head"], digests, messages)


def save(path: Path, history: History) -> None:
    """Write one; the same history gives the same bytes."""
    about = {
        "cell": history.cell,
        "build": history.build,
        "rounds": history.rounds,
        "head": history.head,
        "digests": history.digests,
    }
    lines = [json.dumps(about)]
    lines += [
        json.dumps([one.sequence, one.subject, one.headers, base64.b64encode(one.payload).decode()])
        for one in history.messages
    ]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


@dataclass(slots=True)
class Folded:
    """A log, decided again from nothing. Whatever differs from what is recorded has raised."""

    reader: LogReader
    replicas: dict[str, AnyReplica]

    @property
    def answers(self) -> int:
        """Recorded answers that were decided again."""
        return sum(one.answers_compared for one in self.replicas.values())

    def digests(self) -> dict[str, tuple[int, str]]:
        """By service: schema and digest of its state."""
        codec = StateCodec()
        return {
            service: (one.core.schema, state_digest(codec, one.core, one.state.core))
            for service, one in self.replicas.items()
        }


def fold(cell: str, messages: Iterable[LogMessage], cores: Sequence[Core[Any]] = CORES) -> Folded:
    """Decide a log again. Raises Diverged at the first answer that is not as it is recorded."""
    reader = LogReader(cell, event_types())
    replicas: dict[str, AnyReplica] = {
        core.service: Replica(core, writer="again") for core in cores
    }
    for message in messages:
        entry = read_message(reader, message)
        for replica in replicas.values():
            replica.read(entry, 0.0)
    return Folded(reader, replicas)
