"""The auditor's check of rounds: in order, each step once, bets in time and booked as asked."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.audit_layout import booked
from services.simulator.facts import Fact, Findings, Place

RESULT = str(table.ResultAccepted.DESCRIPTOR.full_name)
ONCE = (
    table.RoundOpened,
    table.BettingClosed,
    table.ResultAccepted,
    table.RoundVoided,
    table.RoundClosed,
    limits.BookClosed,
    limits.BookVoided,
    wallet.StakesSealed,
    wallet.RoundPaid,
    wallet.RoundReturned,
    table.InsuranceClosed,
    rules.InsuranceOffered,
    shoe.WheelSpun,
    shoe.DiceRolled,
    settlement.RoundSettled,
)
"""What a round has at most one of."""
NEVER: tuple[tuple[type[Message], type[Message], str], ...] = (
    (table.BetsPlaced, table.BettingClosed, "takes a late bet"),
    (table.BetsWithdrawn, table.BettingClosed, "takes a late withdrawal"),
    (table.BetsPlaced, table.RoundVoided, "takes a bet for a voided round"),
    (limits.BetsApproved, limits.BookClosed, "approves behind its marker"),
    (limits.BetsApproved, limits.BookVoided, "approves behind its marker"),
    (wallet.StakeReserved, wallet.StakesSealed, "reserves behind its marker"),
    (wallet.StakeReserved, wallet.RoundReturned, "reserves behind its marker"),
    (table.RoundVoided, table.ResultAccepted, "voids a round that has its result"),
    (table.ResultAccepted, table.RoundVoided, "accepts a result of a voided round"),
    (settlement.BetsSettled, table.RoundVoided, "settles a voided round"),
    (settlement.BetsSettled, settlement.RoundSettled, "settles behind its marker"),
    (wallet.PayoutPosted, wallet.RoundPaid, "pays behind its marker"),
    (table.ActionTaken, table.RoundVoided, "takes an action in a voided round"),
    (table.ActionTaken, table.ResultAccepted, "takes an action in a round that is decided"),
    (wallet.RoundPaid, wallet.RoundReturned, "ends a round twice"),
    (wallet.RoundReturned, wallet.RoundPaid, "ends a round twice"),
)
"""(this, never after that one, in words); of one stage, where they belong to stages."""
UNSTAGED = frozenset(that for _, that, _ in NEVER if "stage" not in that.DESCRIPTOR.fields_by_name)
ONLY_AFTER: tuple[tuple[type, type], ...] = (
    (limits.BookVoided, table.RoundVoided),
    (wallet.StakesSealed, limits.BookClosed),
    (rules.DrawCalled, wallet.StakesSealed),
    (rules.SpinCalled, wallet.StakesSealed),
    (rules.RollCalled, wallet.StakesSealed),
    (rules.ActionCalled, shoe.CardsDealt),
    (rules.InsuranceOffered, shoe.CardsDealt),
    (table.InsuranceClosed, rules.InsuranceOffered),
    (shoe.CardsDealt, rules.DrawCalled),
    (shoe.WheelSpun, rules.SpinCalled),
    (shoe.DiceRolled, rules.RollCalled),
    (table.ResultAccepted, rules.RoundResolved),
    (settlement.BetsSettled, table.ResultAccepted),
    (settlement.RoundSettled, table.ResultAccepted),
    (wallet.PayoutPosted, settlement.BetsSettled),
    (wallet.RoundPaid, settlement.RoundSettled),
    (wallet.RoundReturned, limits.BookVoided),
)
"""(this, only after that one)"""
OUTCOMES = {
    rule_set_pb2.GAME_ROULETTE: shoe.WheelSpun,
    rule_set_pb2.GAME_SICBO: shoe.DiceRolled,
}
"""What a game is resolved by; the others by `CardsDealt`."""
WRONG_BETS = (
    table.REFUSAL_UNKNOWN_BET,
    table.REFUSAL_NOT_ON_LAYOUT,
    table.REFUSAL_NOT_WHOLE_CHIPS,
)
"""Refusals of requests that are no bets of their table."""


@dataclass(slots=True)
class RoundFlow:
    """What a round has seen."""

    seen: dict[type, Place] = field(default_factory=dict)
    staged: dict[tuple[type, int], Place] = field(default_factory=dict)
    """What belongs to a stage, by that too."""
    suspended: bool = False
    unsettled: bool = False
    """Whether settling its result failed."""
    closing: bool = False
    """Whether betting closes in several steps, and began to while the round went on."""
    resolved: Place = (0, 0)
    """What its last result by rules answers."""
    corrected: list[Place] = field(default_factory=list)
    """Where something of it was corrected."""
    rule_set: rule_set_pb2.RuleSet | None = None


class RoundsAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.rounds: defaultdict[str, RoundFlow] = defaultdict(RoundFlow)
        self.running: dict[str, str] = {}
        self._rules: dict[tuple[str, int], rule_set_pb2.RuleSet] = {}
        self._asked: dict[Place, table.PlaceBets] = {}

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body = fact.body
        if isinstance(body, table.PlaceBets):
            self._asked[fact.place] = body
        if isinstance(body, logs.InputFailed):
            self._failed(fact, body)
        if isinstance(body, table.TableOpened):
            self._rules[body.spec.table_id, body.revision] = body.spec.rule_set
        round_id = getattr(body, "round_id", "")
        if not round_id or fact.is_input or not hasattr(body, "table_id"):
            return
        if isinstance(body, table.BetsRejected):
            self._refused(fact, body)
        if isinstance(body, table.BetsRejected | table.WithdrawalRejected | table.OrderRejected):
            return
        one = self.rounds[round_id]
        self._order(fact, one)
        self._table_order(fact, one)
        if isinstance(body, table.BetsPlaced):
            self._booked(fact, one)
        one.seen.setdefault(type(body), fact.place)
        one.staged.setdefault((type(body), getattr(body, "stage", 0)), fact.place)

    def _order(self, fact: Fact, one: RoundFlow) -> None:
        kind, name = type(fact.body), type(fact.body).__name__
        stage = getattr(fact.body, "stage", 0)
        if kind is rules.RoundResolved:
            self._resolved(fact, one)
        if kind in ONCE:
            self.findings.check(
                (kind, stage) not in one.staged,
                fact.place,
                f"{fact.body.round_id}: a second {name}",
            )
        for this, that, words in NEVER:
            if (
                kind is table.RoundVoided
                and one.unsettled
                and settlement.BetsSettled not in one.seen
            ):
                continue  # Its settlement failed before anything was paid.
            at = one.staged.get((that, stage), one.seen.get(that) if that in UNSTAGED else None)
            if kind is this and at is not None:
                self.findings.add(
                    fact.place,
                    f"{fact.service} {words}: {fact.body.round_id} has {that.__name__} at {at}",
                )
        for this, that in ONLY_AFTER:
            if kind is this:
                self.findings.check(
                    that in one.seen,
                    fact.place,
                    f"{fact.body.round_id}: {name} without {that.__name__} before it",
                )

        if kind is limits.BookClosed:
            closed = table.InsuranceClosed if stage else table.BettingClosed
            self.findings.check(
                closed in one.seen,
                fact.place,
                f"{fact.body.round_id}: {name} without {closed.__name__} before it",
            )
        if kind is rules.RoundResolved and one.rule_set is not None:
            outcome = OUTCOMES.get(one.rule_set.game, shoe.CardsDealt)
            undealt = one.rule_set.game == rule_set_pb2.GAME_BLACKJACK  # Where nobody sits.
            self.findings.check(
                outcome in one.seen or undealt,
                fact.place,
                f"{fact.body.round_id}: {name} without {outcome.__name__} before it",
            )

    def _resolved(self, fact: Fact, one: RoundFlow) -> None:
        """Once; and once more for what was corrected since rules looked at it the last time."""
        since = [place for place in one.corrected if one.resolved < place <= fact.cause]
        self.findings.check(
            one.resolved == (0, 0) or since,
            fact.place,
            f"{fact.body.round_id}: a second RoundResolved",
        )
        one.resolved = fact.cause

    def _table_order(self, fact: Fact, one: RoundFlow) -> None:
        """One round at a table after the other; a suspended one stands still."""
        body: Any = fact.body
        match body:
            case table.RoundOpened():
                self.findings.check(
                    body.table_id not in self.running,
                    fact.place,
                    f"{body.round_id} opens, {self.running.get(body.table_id)} still runs",
                )
                self.running[body.table_id] = body.round_id
                one.rule_set = self._rules.get((body.table_id, body.revision))
            case table.RoundClosed():
                self.running.pop(body.table_id, None)
                over = (
                    wallet.RoundPaid if body.end == table.ROUND_END_PAID else wallet.RoundReturned
                )
                self.findings.check(
                    over in one.seen, fact.place, f"{body.round_id} closes without {over.__name__}"
                )
            case table.RoundSuspended():
                one.suspended = True
            case table.RoundResumed() | table.RoundVoided():
                one.suspended = False
            case table.BetsWithdrawn() if fact.continues:
                one.closing = one.closing or not one.suspended
            case floor.CardCorrected() | floor.OutcomeCorrected():
                one.corrected.append(fact.place)
            case table.BettingClosed() if body.source == table.SOURCE_OUTCOME or one.closing:
                pass  # What is out is out; and a close that has begun comes to its end.
            case (
                table.BetsPlaced()
                | table.ResultAccepted()
                | table.BettingClosed()
                | table.ActionTaken()
            ):
                self.findings.check(
                    not one.suspended,
                    fact.place,
                    f"{type(body).__name__} while {body.round_id} is suspended",
                )
            case _:
                pass

    def _failed(self, fact: Fact, body: logs.InputFailed) -> None:
        """A round that settlement could not settle may be voided yet."""
        if fact.service == "settlement" and body.input_type == RESULT:
            accepted = table.ResultAccepted.FromString(body.input_body)
            self.rounds[accepted.round_id].unsettled = True

    # ---- what is booked ------------------------------------------------------------------------

    def _booked(self, fact: Fact, one: RoundFlow) -> None:
        """Bets are booked as they were asked for, announced ones as their parts (rule ROU-4)."""
        asked = self._asked.get(fact.cause)
        if asked is None or one.rule_set is None:
            self.findings.add(fact.place, "bets are booked that nobody asked for")
            return
        own = booked(one.rule_set, asked.bets)
        told = [(bet.bet, bet.position, bet.stake_minor, bet.announced) for bet in fact.body.bets]
        self.findings.check(
            own == told, fact.place, f"{told} are booked for what was asked for as {own}"
        )

    def _refused(self, fact: Fact, body: table.BetsRejected) -> None:
        """What is said to be no bet of the table is none (rules ROU-3, ROU-4)."""
        asked = self._asked.get(fact.cause)
        one = self.rounds.get(body.round_id)
        if body.refusal not in WRONG_BETS or asked is None or one is None:
            return
        if one.rule_set is not None:
            own = booked(one.rule_set, asked.bets)
            self.findings.check(
                own == body.refusal,
                fact.place,
                f"refused as {table.Refusal.Name(body.refusal)}, but that is {own}",
            )
