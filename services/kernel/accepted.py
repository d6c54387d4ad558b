"""What an operator has accepted of a data folder's log, in `<data>/accepted.json`.

`entries`: entries that are read over although they cannot be understood, by sequence, each with the
chain hash there; for as long as the folder lives. `to_log`: acceptances that the log does not tell
of yet: they are appended at the next start, and then leave the file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sabot.log.v1 import entry_pb2, events_pb2

FILE = "accepted.json"
"""Its name in the data folder."""


class AcceptedDamaged(Exception):
    """The file cannot be read. Nobody may guess what an operator accepted."""


@dataclass(slots=True)
class Acceptance:
    """One `AcceptLog` that waits to be logged."""

    body: events_pb2.AcceptLog
    actor: str
    """`operator:<id>`."""


@dataclass(slots=True)
class Accepted:
    """See the module."""

    entries: dict[int, bytes] = field(default_factory=dict[int, bytes])
    to_log: list[Acceptance] = field(default_factory=list[Acceptance])


def read_accepted(data: Path) -> Accepted:
    """What was accepted; nothing where there is no file. Raises AcceptedDamaged."""
    try:
        stored: Any = json.loads((data / FILE).read_text())
        return Accepted(
            {int(sequence): bytes.fromhex(head) for sequence, head in stored["entries"].items()},
            [
                Acceptance(
                    events_pb2.AcceptLog(
                        sequence=one["sequence"],
                        head=bytes.fromhex(one["head"]),
                        witnessed_sequence=one["witnessed_sequence"],
                        reason=one["reason"],
                        difference=_position(one["difference"]) if "difference" in one else None,
                    ),
                    one["actor"],
                )
                for one in stored["to_log"]
            ],
        )
    except FileNotFoundError:
        return Accepted()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise AcceptedDamaged(f"{data / FILE} cannot be read: {error}") from error


def write_accepted(data: Path, accepted: Accepted) -> None:
    """Replace the file, durably: whole or not at all."""
    stored = {
        "entries": {str(sequence): head.hex() for sequence, head in accepted.entries.items()},
        "to_log": [
            {
                "sequence": one.body.sequence,
                "head": one.body.head.hex(),
                "witnessed_sequence": one.body.witnessed_sequence,
                "reason": one.body.reason,
                "actor": one.actor,
                **_difference(one.body),
            }
            for one in accepted.to_log
        ],
    }
    fresh = data / f"{FILE}.new"
    with fresh.open("w") as file:
        file.write(json.dumps(stored, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(data / FILE)


def _difference(body: events_pb2.AcceptLog) -> dict[str, list[int]]:
    if not body.HasField("difference"):
        return {}
    at = body.difference
    return {"difference": [at.segment, at.sequence, at.index]}


def _position(parts: list[int]) -> entry_pb2.Position:
    segment, sequence, index = parts
    return entry_pb2.Position(segment=segment, sequence=sequence, index=index)
