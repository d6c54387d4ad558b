"""Settlements that the audit contests, as the console follows the log: which are still to be
repaired, and what corrected rounds have come to.

A contest is repaired once its round was corrected, or voided, behind the wrong answer. One of an
account that was left out is over too once its round was closed: nothing is closed that is unpaid.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sabot.audit.v1 import contest_events_pb2 as audits
from sabot.table.v1 import correction_events_pb2 as corrections
from services.kernel.entry import position_of
from services.kernel.event import Position

MOST_CONTESTS = 2_000
"""A build that settles wrongly is stopped long before; the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class Contest:
    """An account's settlement that does not follow from the log."""

    answer: Position
    """Where the wrong answer stands."""
    told: audits.ContestSettlement
    time_us: int
    """When the audit said so, log time."""

    @property
    def is_missing(self) -> bool:
        """Whether nothing was settled."""
        return not any(bet.HasField("recorded") for bet in self.told.bets)


@dataclass(frozen=True, slots=True)
class InForce:
    """What a corrected round has come to."""

    version: int
    outcome: corrections.CorrectedOutcome


@dataclass(frozen=True, slots=True)
class Repair:
    """What repaired a round last."""

    sequence: int
    """The entry that says so."""
    correction_id: str
    """Empty: a void before it was paid."""


@dataclass(slots=True)
class Contests:
    """See the module; a file can hold it."""

    version: int = 0
    """Grows with every change."""
    in_force: dict[str, InForce] = field(default_factory=dict[str, InForce])
    """By round, of those that were corrected: two people made each."""
    kept: dict[str, Contest] = field(default_factory=dict[str, Contest])
    """By place, partner and account of the wrong answer, in order."""
    repaired: dict[str, Repair] = field(default_factory=dict[str, Repair])
    """By round."""
    over: dict[str, int] = field(default_factory=dict[str, int])
    """By round of which something was left out, the entry that closed it."""

    def add(self, body: audits.SettlementContested, time_us: int) -> None:
        """The audit contests a settlement."""
        told = body.contest
        one = Contest(position_of(told.answer), told, time_us)
        self.kept.setdefault(f"{one.answer} {told.partner_id} {told.account_id}", one)
        while len(self.kept) > MOST_CONTESTS:
            del self.kept[next(iter(self.kept))]
        self.version += 1

    def corrected(self, body: corrections.ResultCorrected) -> None:
        """A round has come to something else."""
        self.in_force[body.round_id] = InForce(body.version, body.outcome)
        self.version += 1

    def ended(self, body: corrections.CorrectionClosed, sequence: int) -> None:
        """A correction is over."""
        if body.end == corrections.CORRECTION_END_POSTED:
            self.repaired[body.round_id] = Repair(sequence, body.correction_id)
            self.version += 1

    def voided(self, round_id: str, sequence: int) -> None:
        """A round was voided before it was paid."""
        if any(one.told.round_id == round_id for one in self.kept.values()):
            self._repaired(round_id, sequence)

    def closed(self, round_id: str, sequence: int) -> None:
        """A round is over. Of those that the audit contests only what was left out is repaired."""
        if any(one.is_missing and one.told.round_id == round_id for one in self.kept.values()):
            self.over[round_id] = sequence
            self.version += 1

    def _repaired(self, round_id: str, sequence: int) -> None:
        """The audit may have been behind: what came later repaired it already."""
        known = self.repaired.get(round_id)
        if known is None or known.sequence < sequence:
            self.repaired[round_id] = Repair(sequence, "")
            self.version += 1

    def is_open(self, one: Contest) -> bool:
        """Whether it is still to be repaired."""
        if one.is_missing and self.over.get(one.told.round_id, 0) > one.answer.sequence:
            return False
        repair = self.repaired.get(one.told.round_id)
        if repair is None or repair.sequence <= one.answer.sequence:
            return True
        return bool(repair.correction_id) and repair.correction_id == one.told.correction_id

    def open(self) -> list[Contest]:
        """Those that are still to be repaired, newest first."""
        return [one for one in reversed(self.kept.values()) if self.is_open(one)]

    def of_round(self, round_id: str) -> list[Contest]:
        """All of a round, in order."""
        return [one for one in self.kept.values() if one.told.round_id == round_id]
