"""What the table keeps of corrections: those that are open, and which rounds were corrected.

A round that was corrected leaves a short note for ever: two persons made it, so there are few, and
by it a dry run that has been overtaken is known at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from sabot.table.v1 import correction_events_pb2 as corrections
from services.kernel.event import Position


class Stage(IntEnum):
    """How far a correction is."""

    PROPOSED = 1
    RECALLING = 2
    """Approved; its facts are brought back and confirmed."""
    POSTING = 3
    """It stands, and its differences are being posted."""


@dataclass(slots=True)
class Correction:
    """A correction that is open."""

    proposed: corrections.CorrectionProposed
    proposed_by: str
    """`operator:<id>`."""
    proposed_us: int
    """Log time."""
    proposed_at: Position
    """Its input."""
    stage: Stage = Stage.PROPOSED
    approved_by: str = ""


@dataclass(slots=True)
class CorrectedRound:
    """A round that came to something else than its first result."""

    version: int
    """Which outcome of it is in force, from 1."""
    outcome: corrections.CorrectedOutcome


@dataclass(slots=True)
class Corrections:
    """All that is kept."""

    count: int = 0
    """How many were ever proposed."""
    open: dict[str, Correction] = field(default_factory=dict[str, Correction])
    """By correction id."""
    rounds: dict[str, CorrectedRound] = field(default_factory=dict[str, CorrectedRound])
    """By round id."""

    def under_way(self) -> list[Correction]:
        """Those that are approved and not closed."""
        return [one for one in self.open.values() if one.stage is not Stage.PROPOSED]
