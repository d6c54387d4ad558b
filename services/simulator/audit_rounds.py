"""The auditor's check of rounds: in order, each step once, bets in time and within limits."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.log.v1 import events_pb2 as logs
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.facts import Fact, Findings, Place

APPROVAL = str(limits.BetsApproved.DESCRIPTOR.full_name)
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
    rules.RoundResolved,
    settlement.RoundSettled,
)
"""What a round has at most one of."""
NEVER: tuple[tuple[type, type, str], ...] = (
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
    (wallet.RoundPaid, wallet.RoundReturned, "ends a round twice"),
    (wallet.RoundReturned, wallet.RoundPaid, "ends a round twice"),
)
"""(this, never after that one, in words)"""
ONLY_AFTER: tuple[tuple[type, type], ...] = (
    (limits.BookClosed, table.BettingClosed),
    (limits.BookVoided, table.RoundVoided),
    (wallet.StakesSealed, limits.BookClosed),
    (rules.DrawCalled, wallet.StakesSealed),
    (shoe.CardsDealt, rules.DrawCalled),
    (rules.RoundResolved, shoe.CardsDealt),
    (table.ResultAccepted, rules.RoundResolved),
    (settlement.BetsSettled, table.ResultAccepted),
    (settlement.RoundSettled, table.ResultAccepted),
    (wallet.PayoutPosted, settlement.BetsSettled),
    (wallet.RoundPaid, settlement.RoundSettled),
    (wallet.RoundReturned, limits.BookVoided),
)
"""(this, only after that one)"""


@dataclass(slots=True)
class Held:
    """An approved bet, as limits must see it at each place of the log."""

    kind: str
    stake: int
    approved: Place
    """The cause of its approval: from there on it counts."""
    reserved: Place | None = None
    leaving: Place | None = None
    """The cause of the approval of its withdrawal."""
    off: Place | None = None

    def counts(self, at: Place) -> bool:
        """Whether it counted against maxima when limits decided what stood at `at`."""
        return self.approved < at and not (self.off is not None and self.off < at)

    def covers(self, at: Place) -> bool:
        """Whether it covered a raise then."""
        on = self.reserved is not None and self.reserved < at
        return on and not (self.leaving is not None and self.leaving < at) and self.counts(at)


@dataclass(slots=True)
class RoundFlow:
    """What a round has seen."""

    limits: dict[str, spec_pb2.BetLimit] = field(default_factory=dict)
    seen: dict[type, Place] = field(default_factory=dict)
    suspended: bool = False
    unsettled: bool = False
    """Whether settling its result failed."""
    held: dict[tuple[str, str], dict[str, Held]] = field(default_factory=dict)


class RoundsAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.rounds: defaultdict[str, RoundFlow] = defaultdict(RoundFlow)
        self.running: dict[str, str] = {}
        self._specs: dict[tuple[str, int], spec_pb2.TableSpec] = {}

    def see(self, fact: Fact) -> None:
        """Take the next answer."""
        body = fact.body
        if isinstance(body, logs.InputFailed):
            self._failed(fact, body)
        if isinstance(body, table.TableOpened):
            self._specs[body.spec.table_id, body.revision] = body.spec
        round_id = getattr(body, "round_id", "")
        if not round_id or fact.is_input or not hasattr(body, "table_id"):
            return
        if isinstance(body, table.BetsRejected | table.WithdrawalRejected | table.OrderRejected):
            return
        one = self.rounds[round_id]
        self._order(fact, one)
        self._table_order(fact, one)
        self._limits(fact, one)
        one.seen.setdefault(type(body), fact.place)

    def _order(self, fact: Fact, one: RoundFlow) -> None:
        kind, name = type(fact.body), type(fact.body).__name__
        if kind in ONCE:
            self.findings.check(
                kind not in one.seen, fact.place, f"{fact.body.round_id}: a second {name}"
            )
        for this, that, words in NEVER:
            if (
                kind is table.RoundVoided
                and one.unsettled
                and settlement.BetsSettled not in one.seen
            ):
                continue  # Its settlement failed before anything was paid.
            if kind is this and that in one.seen:
                self.findings.add(
                    fact.place,
                    f"{fact.service} {words}: {fact.body.round_id} has {that.__name__} at "
                    f"{one.seen[that]}",
                )
        for this, that in ONLY_AFTER:
            if kind is this:
                self.findings.check(
                    that in one.seen,
                    fact.place,
                    f"{fact.body.round_id}: {name} without {that.__name__} before it",
                )

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
                spec = self._specs.get((body.table_id, body.revision))
                if spec is not None:
                    one.limits = {limit.bet: limit for limit in spec.limits}
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
            case table.BetsPlaced() | table.ResultAccepted() | table.BettingClosed():
                self.findings.check(
                    not one.suspended,
                    fact.place,
                    f"{type(body).__name__} while {body.round_id} is suspended",
                )
            case _:
                pass

    # ---- limits --------------------------------------------------------------------------------

    def _limits(self, fact: Fact, one: RoundFlow) -> None:
        body: Any = fact.body
        owner = (getattr(body, "partner_id", "") or fact.partner, getattr(body, "account_id", ""))
        held = one.held.setdefault(owner, {}) if owner[1] else {}
        match body:
            case limits.BetsApproved():
                self._approved(fact, one, held)
                for bet in body.bets:
                    held[bet.bet_id] = Held(bet.bet, bet.stake_minor, fact.cause)
            case limits.WithdrawalApproved():
                for bet in body.bets:
                    held[bet.bet_id].leaving = fact.cause
            case wallet.StakeReserved():
                for bet in body.bets:
                    self.findings.check(
                        bet.bet_id in held, fact.place, f"bet {bet.bet_id} was never approved"
                    )
                    if bet.bet_id in held:
                        held[bet.bet_id].reserved = fact.place
                self._sides(fact, held)
            case wallet.StakeDeclined() | wallet.StakeReturned():
                for bet in body.bets:
                    if bet.bet_id in held:
                        held[bet.bet_id].off = held[bet.bet_id].off or fact.place
            case wallet.StakesSealed():
                self._sealed(fact, one)
            case _:
                pass

    def _failed(self, fact: Fact, body: logs.InputFailed) -> None:
        """A bet that the wallet could not decide is off; a round that settlement could not settle
        may be voided yet."""
        if fact.service == "settlement" and body.input_type == RESULT:
            accepted = table.ResultAccepted.FromString(body.input_body)
            self.rounds[accepted.round_id].unsettled = True
        if fact.service == "wallet" and body.input_type == APPROVAL:
            failed = limits.BetsApproved.FromString(body.input_body)
            held = self.rounds[failed.round_id].held.get((fact.partner, failed.account_id), {})
            for bet in failed.bets:
                if bet.bet_id in held:
                    held[bet.bet_id].off = held[bet.bet_id].off or fact.place

    def _approved(self, fact: Fact, one: RoundFlow, held: dict[str, Held]) -> None:
        """Approved bets keep minimum and step on what is certain, maximum on all that counts."""
        added: dict[str, int] = {}
        for bet in fact.body.bets:
            added[bet.bet] = added.get(bet.bet, 0) + bet.stake_minor
        at = fact.cause
        for kind, extra in added.items():
            limit = one.limits[kind]
            same = [bet for bet in held.values() if bet.kind == kind]
            certain = extra + sum(bet.stake for bet in same if bet.covers(at))
            total = extra + sum(bet.stake for bet in same if bet.counts(at))
            self.findings.check(
                certain >= limit.min_minor and certain % limit.step_minor == 0,
                fact.place,
                f"{kind} is approved although only {certain} are certain",
            )
            self.findings.check(
                total <= limit.max_minor,
                fact.place,
                f"{kind} is approved up to {total}, the maximum is {limit.max_minor}",
            )

    def _sides(self, fact: Fact, held: dict[str, Held]) -> None:
        on = {bet.kind for bet in held.values() if bet.reserved is not None and bet.off is None}
        self.findings.check(
            not {"player", "banker"} <= on,
            fact.place,
            f"{fact.body.account_id} holds both sides in {fact.body.round_id}",
        )

    def _sealed(self, fact: Fact, one: RoundFlow) -> None:
        """What stands when the stakes are sealed keeps every limit."""
        for owner, held in one.held.items():
            totals: dict[str, int] = {}
            for bet in held.values():
                if bet.reserved is not None and bet.off is None:
                    totals[bet.kind] = totals.get(bet.kind, 0) + bet.stake
            for kind, total in totals.items():
                limit = one.limits[kind]
                self.findings.check(
                    limit.min_minor <= total <= limit.max_minor,
                    fact.place,
                    f"{owner} has {total} on {kind} in {fact.body.round_id}; limits are "
                    f"{limit.min_minor} to {limit.max_minor}",
                )
