"""The auditor's check of rounds on the floor: who was late, what came out too early, and who let it
count (docs/adr/0017).

What the table decided in answer to an event is judged by what stood before that event, whatever was
stored meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import floor_events_pb2 as orders
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.facts import Fact, Findings, Place

CLOCKS_US = 1_000_000
"""How far clocks may differ before a device's time of the call is not believed."""
FAILING: dict[str, Any] = {
    str(kind.DESCRIPTOR.full_name): kind
    for kind in (table.BetsPlaced, limits.BetsApproved, table.BetsWithdrawn)
}
"""What a planted bug may leave undecided, of bets."""


@dataclass(slots=True)
class FloorBet:
    """A bet in a round on the floor."""

    bet_id: str
    taken_us: int
    """When an edge took the request for it, by that edge's clock."""
    reserved: Place | None = None
    off: bool = False
    """Whether it was refused or declined, or its decision failed."""
    withdrawn: bool = False
    late: bool = False
    """Whether it was returned as late."""


@dataclass(slots=True)
class Noted:
    """A withdrawal that waits for the close."""

    request_id: str
    bet_ids: tuple[str, ...]
    taken_us: int


@dataclass(slots=True)
class FloorRound:
    """A round on the floor."""

    opened_us: int
    bets: dict[str, FloorBet] = field(default_factory=dict)
    noted: list[Noted] = field(default_factory=list)
    cut_off_us: int | None = None
    """None: betting is not closed; 0: without a cut-off."""
    faults: list[Place] = field(default_factory=list)
    """What a supervisor has to look at before the round may count."""
    resumed: list[Place] = field(default_factory=list)
    """The orders that let it go on."""
    excused: bool = False
    """Whether limits could not decide what it was to return."""


class FloorAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.rounds: dict[str, FloorRound] = {}
        self._origins: dict[tuple[str, int], int] = {}
        self._by_hand: defaultdict[str, list[tuple[Place, bool]]] = defaultdict(list)
        """By table: since when the shoe that stands there was filled by hand, or not."""
        self._facts: dict[Place, Fact] = {}
        """Inputs about rounds, and what later answers go back to."""
        self._retried: dict[Place, Place] = {}
        """What an order to decide again names."""
        self._now_us = 0
        self._log_us: dict[Place, int] = {}

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        if fact.is_input:
            self._now_us = max(self._now_us, fact.time_us)
        self._log_us[fact.place] = self._now_us
        match body:
            case table.PlaceBets() | table.WithdrawBets() | table.CloseBetting():
                self._facts[fact.place] = fact
            case table.BetsWithdrawn() | floor.FloorFaultFound():
                self._facts[fact.place] = fact
            case logs.RetryInput():
                self._retried[fact.place] = (body.position.sequence, body.position.index)
            case table.TableOpened():
                self._origins[body.spec.table_id, body.revision] = body.spec.origin
            case shoe.ShoeOpened():
                self._by_hand[body.table_id].append((fact.place, bool(body.packs)))
            case shoe.ShoeClosed():
                self._by_hand[body.table_id].append((fact.place, False))
            case table.RoundOpened():
                if self._on_floor(fact, body):
                    self.rounds[body.round_id] = FloorRound(self._log_us[fact.cause])
            case logs.InputFailed():
                self._failed(body)
            case _:
                pass
        one = self.rounds.get(getattr(body, "round_id", ""))
        if one is not None and not fact.is_input:
            self._goes_on(fact, one)

    def _on_floor(self, fact: Fact, body: table.RoundOpened) -> bool:
        told = self._origins[body.table_id, body.revision] == spec_pb2.OUTCOME_ORIGIN_FLOOR
        known = [by for place, by in self._by_hand[body.table_id] if place <= fact.cause]
        return told or (bool(known) and known[-1])

    def _failed(self, body: logs.InputFailed) -> None:
        """What could not be decided is an operator's to have decided again; it is off till then."""
        kind = FAILING.get(body.input_type)
        told: Any = kind.FromString(body.input_body) if kind is not None else None
        one = self.rounds.get(told.round_id) if told is not None else None
        if one is not None and kind is table.BetsWithdrawn:
            one.excused = True
        elif one is not None:
            for bet in told.bets:
                one.bets[bet.bet_id].off = True

    def _root(self, fact: Fact) -> Fact | None:
        """The input, or the fault, that a close goes back to through all of its steps."""
        found = self._facts.get(self._retried.get(fact.cause, fact.cause))
        while found is not None and isinstance(found.body, table.BetsWithdrawn):
            found = self._facts.get(found.cause)
        return found

    # ---- a round goes on -----------------------------------------------------------------------

    def _goes_on(self, fact: Fact, one: FloorRound) -> None:
        body: Any = fact.body
        match body:
            case table.BetsPlaced():
                for bet in body.bets:
                    one.bets[bet.bet_id] = FloorBet(bet.bet_id, self._taken(fact, body))
            case table.ActionTaken():
                if body.HasField("extra"):  # Behind the close: never late.
                    one.bets[body.extra.bet_id] = FloorBet(body.extra.bet_id, 0)
            case orders.WithdrawalNoted():
                ids = tuple(bet.bet_id for bet in body.bets)
                one.noted.append(Noted(body.request_id, ids, self._taken(fact, body)))
                self.findings.reach("withdrawal waits for the close")
            case wallet.StakeReserved():
                for bet in body.bets:
                    one.bets[bet.bet_id].reserved = fact.place
            case wallet.StakeDeclined():
                for bet in body.bets:
                    one.bets[bet.bet_id].off = True
            case limits.BetsRefused():
                for bet_id in body.bet_ids:
                    one.bets[bet_id].off = True
            case table.BetsWithdrawn():
                self._withdrawn(fact, one, body)
            case table.BettingClosed():
                self._closed(fact, one, body)
            case wallet.StakeReturned():
                self._returned(fact, one, body)
            case settlement.BetsSettled():
                self._settled(fact, one, body)
            case wallet.RoundPaid():
                self._paid(fact, one)
            case floor.FloorFaultFound():
                one.faults.append(fact.place)
            case table.RoundResumed():
                one.resumed.append(fact.cause)
            case table.ResultAccepted():
                self._counts(fact, one)
            case orders.SuspensionEscalated():
                self.findings.reach("suspension escalated on the floor")
            case _:
                pass

    def _taken(self, fact: Fact, body: Any) -> int:
        """When an edge took a request, by the request itself."""
        asked = self._facts.get(self._retried.get(fact.cause, fact.cause))
        taken_us = asked.time_us if asked is not None else -1
        self.findings.check(
            body.edge_time_us == taken_us,
            fact.place,
            f"{type(body).__name__} was taken at {taken_us}, but says {body.edge_time_us}",
        )
        return taken_us

    # ---- the close -----------------------------------------------------------------------------

    def _withdrawn(self, fact: Fact, one: FloorRound, body: table.BetsWithdrawn) -> None:
        """Bets go back as betting closes, each for one reason: late, or asked for in time."""
        cut_off_us = body.close.cut_off_us
        self.findings.check(
            body.HasField("close") and one.cut_off_us is None,
            fact.place,
            f"bets of {body.round_id} go back before or after the close",
        )
        asked = next((noted for noted in one.noted if noted.request_id == body.request_id), None)
        for bet in body.bets:
            held = one.bets[bet.bet_id]
            if body.late:
                right = bool(cut_off_us) and held.taken_us > cut_off_us
            else:
                in_time = asked is not None and (not cut_off_us or asked.taken_us <= cut_off_us)
                right = asked is not None and in_time and bet.bet_id in asked.bet_ids
            self.findings.check(
                right and not held.withdrawn,
                fact.place,
                f"bet {bet.bet_id}, taken at {held.taken_us}, goes back at the cut-off "
                f"{cut_off_us}, late: {body.late}",
            )
            held.withdrawn, held.late = True, body.late
        if body.late:
            self.findings.reach("late bets returned")
        elif cut_off_us:
            self.findings.reach("withdrawal made before the call")
        if fact.continues:
            self.findings.reach("close in several steps")

    def _closed(self, fact: Fact, one: FloorRound, body: table.BettingClosed) -> None:
        """The cut-off is what was told, where it can be; and nothing is left that must go back."""
        root = self._root(fact)
        cut_off_us = self._cut_off(fact, one, root)
        self.findings.check(
            body.cut_off_us == cut_off_us,
            fact.place,
            f"{body.round_id} closes at {body.cut_off_us}, by what was told at {cut_off_us}",
        )
        one.cut_off_us = body.cut_off_us
        if one.excused:
            return
        for bet in one.bets.values():
            late = bool(cut_off_us) and bet.taken_us > cut_off_us
            self.findings.check(
                not late or bet.withdrawn or bet.off,
                fact.place,
                f"bet {bet.bet_id} was taken at {bet.taken_us}, after {cut_off_us}, and stays on",
            )
        for noted in one.noted:
            self._noted(fact, one, noted, root)

    def _noted(self, fact: Fact, one: FloorRound, noted: Noted, root: Fact | None) -> None:
        """A withdrawal in time took effect; one that was made later did not."""
        if one.cut_off_us and noted.taken_us > one.cut_off_us:
            self.findings.reach("withdrawal made after the call")
            return
        at = root.place if root is not None else fact.cause
        for bet_id in noted.bet_ids:
            bet = one.bets[bet_id]
            on = bet.reserved is not None and bet.reserved < at and not bet.off
            self.findings.check(
                bet.withdrawn or not on,
                fact.place,
                f"bet {bet_id} was taken back at {noted.taken_us}, in time, and stays on",
            )

    def _cut_off(self, fact: Fact, one: FloorRound, root: Fact | None) -> int:
        """When betting ended for bettors, as far as that can be believed. Where it cannot, or
        something came out before, a supervisor must look."""
        if root is None:
            self.findings.reach("betting closed by a timer")
            return 0
        told_us, until_us = 0, 0
        if isinstance(root.body, floor.FloorFaultFound):
            told_us, until_us = root.body.happened_us, self._log_us[root.place]
            one.faults.append(root.place)
            self.findings.reach("outcome ends the betting")
        elif isinstance(root.body, table.CloseBetting):
            told_us, until_us = root.body.device_time_us, root.time_us
            if root.body.source == table.SOURCE_TIMER:
                told_us = 0
                self.findings.reach("betting closed by a timer")
        if not told_us:
            self.findings.reach("call without a device's time")
            return 0
        if one.opened_us - CLOCKS_US <= told_us <= until_us + CLOCKS_US:
            self.findings.reach("call with a device's time")
            return told_us
        self.findings.reach("call at a time that cannot be")
        one.faults.append(fact.cause)
        return 0

    # ---- what counts ---------------------------------------------------------------------------

    def _counts(self, fact: Fact, one: FloorRound) -> None:
        """What was wrong has been looked at: somebody let the round go on since."""
        looked = max(one.resumed, default=(0, 0))
        for fault in one.faults:
            self.findings.check(
                fault >= fact.cause or fault < looked,
                fact.place,
                f"{fact.body.round_id} counts, what was found at {fault} nobody looked at",
            )
        if one.faults:
            self.findings.reach("result after a fault that was looked at")

    def _returned(self, fact: Fact, one: FloorRound, body: wallet.StakeReturned) -> None:
        for bet in body.bets:
            held = one.bets[bet.bet_id]
            right = {
                wallet.RETURN_REASON_VOIDED: True,
                wallet.RETURN_REASON_LATE: held.withdrawn and held.late,
                wallet.RETURN_REASON_WITHDRAWN: held.withdrawn and not held.late,
            }.get(body.reason, False)
            self.findings.check(
                right,
                fact.place,
                f"bet {bet.bet_id} is returned as {wallet.ReturnReason.Name(body.reason)}",
            )

    def _settled(self, fact: Fact, one: FloorRound, body: settlement.BetsSettled) -> None:
        """No late bet is settled, nor one that was taken back."""
        for settled in body.bets:
            bet = one.bets[settled.bet_id]
            late = bool(one.cut_off_us) and bet.taken_us > (one.cut_off_us or 0)
            self.findings.check(
                one.excused or not (late or bet.late),
                fact.place,
                f"bet {bet.bet_id} was taken at {bet.taken_us}, too late for {one.cut_off_us}, and "
                "is settled",
            )
            bet.off = True

    def _paid(self, fact: Fact, one: FloorRound) -> None:
        """A bet in time is settled, unless it was taken back."""
        for bet in one.bets.values():
            self.findings.check(
                bet.off or bet.withdrawn or bet.reserved is None,
                fact.place,
                f"bet {bet.bet_id} of {fact.body.round_id} was in time, and is not settled",
            )
