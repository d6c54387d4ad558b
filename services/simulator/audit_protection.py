"""The auditor's check of player protection (rule LIM-7): no stake and no deposit is approved over a
limit or for an account that is kept away, and what is refused breaks what is told.

Naive: it keeps all that an account ever did, and sums it up anew each time. It knows the limits
that simulated support sets, and no pieces of time: a simulation is much shorter than an hour.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sabot.limits.v1 import events_pb2 as limits
from sabot.limits.v1 import protection_events_pb2 as protection
from sabot.log.v1 import events_pb2 as logs
from sabot.wallet.v1 import correction_events_pb2 as corrections
from sabot.wallet.v1 import events_pb2 as wallet
from services.simulator.facts import Fact, Findings, Place

APPROVAL = str(limits.BetsApproved.DESCRIPTOR.full_name)
STAKE = protection.LIMIT_KIND_STAKE
LOSS = protection.LIMIT_KIND_LOSS
DEPOSIT = protection.LIMIT_KIND_DEPOSIT
WINDOWED = {
    limits.LIMIT_STAKE_WINDOW: STAKE,
    limits.LIMIT_LOSS_WINDOW: LOSS,
    limits.LIMIT_DEPOSIT_WINDOW: DEPOSIT,
}
OF_ACCOUNTS = frozenset((*WINDOWED, limits.LIMIT_COOLING_OFF))
"""What this module looks at, and the check of a table's limits does not."""
OF_THE_ID = frozenset(
    (
        wallet.DECLINE_REQUEST_ID_REUSED,
        wallet.DECLINE_REQUEST_EXPIRED,
        wallet.DECLINE_REQUEST_ID_AHEAD,
    )
)

Owner = tuple[str, str]


class Limit(NamedTuple):
    """A limit as it was set."""

    since: Place
    kind: int
    window_s: int
    maximum: int


@dataclass(slots=True)
class Amount:
    """A stake or a deposit."""

    minor: int
    time_us: int
    since: Place
    """The cause of its approval: it counts for whatever stands behind."""
    off: Place | None = None

    def counts(self, at: Place) -> bool:
        """Whether it counted when limits decided what stands at a place."""
        return self.since < at and not (self.off is not None and self.off < at)


@dataclass(slots=True)
class Stake(Amount):
    """A bet's."""

    round_id: str = ""


@dataclass(slots=True)
class Known:
    """All of an account."""

    limits: list[Limit] = field(default_factory=list)
    breaks: list[tuple[Place, int]] = field(default_factory=list)
    """Each with its cause and its end."""
    stakes: dict[str, Stake] = field(default_factory=dict)
    """By bet id."""
    payouts: dict[str, tuple[Place, int, int]] = field(default_factory=dict)
    """By round: where, when, and what was lost."""
    deposits: dict[str, Amount] = field(default_factory=dict)
    """By request id."""

    def used(self, kind: int, window_s: int, at: Place, now_us: int) -> int:
        """Of a window, as limits saw it at a place."""
        since_us = now_us - window_s * 1_000_000
        if kind == DEPOSIT:
            return _sum(self.deposits.values(), at, since_us)
        if kind == STAKE:
            return _sum(self.stakes.values(), at, since_us)
        lost = sum(
            minor
            for place, time_us, minor in self.payouts.values()
            if place < at and time_us > since_us
        )
        on = (
            one.minor
            for one in self.stakes.values()
            if one.counts(at) and not self._is_paid(one.round_id, at)
        )
        return lost + sum(on)

    def _is_paid(self, round_id: str, at: Place) -> bool:
        paid = self.payouts.get(round_id)
        return paid is not None and paid[0] < at

    def strictest(self, at: Place) -> dict[tuple[int, int], int]:
        """By kind and window. Nothing that is looser comes into force within a simulation."""
        found: dict[tuple[int, int], int] = {}
        for one in self.limits:
            if one.since < at:
                key = (one.kind, one.window_s)
                found[key] = min(one.maximum, found.get(key, one.maximum))
        return found

    def breaks_now(self, at: Place, now_us: int) -> bool:
        """Whether it takes a break."""
        return any(since < at and now_us < until_us for since, until_us in self.breaks)


def _sum(amounts: Any, at: Place, since_us: int) -> int:
    return sum(one.minor for one in amounts if one.counts(at) and one.time_us > since_us)


class ProtectionAuditor:
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._accounts: defaultdict[Owner, Known] = defaultdict(Known)
        self._now_us = 0

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body: Any = fact.body
        if fact.is_input:
            self._now_us = max(self._now_us, fact.time_us)
            return
        partner = getattr(body, "partner_id", "") or fact.partner
        owner = (partner, getattr(body, "account_id", ""))
        match body:
            case protection.LimitsSet():
                known = self._accounts[fact.partner, body.scope_id]
                known.limits += [
                    Limit(fact.cause, one.kind, one.window_s, one.maximum) for one in body.limits
                ]
            case protection.AccountExcluded():
                self._accounts[owner].breaks.append((fact.cause, body.until_us))
            case limits.BetsApproved():
                known = self._accounts[owner]
                self._approved(fact, known, sum(bet.stake_minor for bet in body.bets))
                for bet in body.bets:
                    stake = Stake(bet.stake_minor, fact.time_us, fact.cause)
                    stake.round_id = body.round_id
                    known.stakes[bet.bet_id] = stake
            case limits.BetsRefused():
                self._refused(fact, self._accounts[owner], body.violations)
            case wallet.StakeDeclined() | wallet.StakeReturned():
                self._off(fact, self._accounts[owner], body)
            case logs.InputFailed() if fact.service == "wallet" and body.input_type == APPROVAL:
                failed = limits.BetsApproved.FromString(body.input_body)
                self._off(fact, self._accounts[fact.partner, failed.account_id], failed)
            case wallet.PayoutPosted():
                paid = self._accounts[owner].payouts
                lost = body.stake_minor - body.payout_minor
                paid.setdefault(body.round_id, (fact.place, self._now_us, lost))
            case corrections.CorrectionPosted():
                # Beside what its round was paid first.
                told = (fact.place, self._now_us, -body.payout_delta_minor)
                self._accounts[owner].payouts[f"{body.round_id} {body.correction_id}"] = told
            case _:
                self._money_in(fact, owner)

    def _money_in(self, fact: Fact, owner: Owner) -> None:
        body: Any = fact.body
        known = self._accounts[owner]
        match body:
            case limits.DepositApproved():
                self._approved(fact, known, body.amount_minor, deposit=True)
                amount = Amount(body.amount_minor, fact.time_us, fact.cause)
                known.deposits[body.request_id] = amount
            case limits.DepositRefused():
                self._refused(fact, known, body.violations)
            case wallet.AccountRequestDeclined() if body.decline not in OF_THE_ID:
                deposit = known.deposits.get(body.request_id)
                if deposit is not None:
                    deposit.off = deposit.off or fact.place
            case _:
                pass

    @staticmethod
    def _off(fact: Fact, known: Known, body: Any) -> None:
        for bet in body.bets:
            stake = known.stakes.get(bet.bet_id)
            if stake is not None:
                stake.off = stake.off or fact.place

    def _approved(
        self, fact: Fact, known: Known, extra_minor: int, *, deposit: bool = False
    ) -> None:
        """Nothing that is limited comes to more than its limit, and nobody is kept away."""
        self.findings.check(
            not known.breaks_now(fact.cause, fact.time_us),
            fact.place,
            "approved although the account takes a break",
        )
        for (kind, window_s), maximum in known.strictest(fact.cause).items():
            if (kind == DEPOSIT) == deposit:
                would_be = extra_minor + known.used(kind, window_s, fact.cause, fact.time_us)
                name = protection.LimitKind.Name(kind)  # type: ignore[arg-type]  # of the enum
                self.findings.check(
                    would_be <= maximum,
                    fact.place,
                    f"approved although {name} of {window_s} s: {would_be}, allowed are {maximum}",
                )

    def _refused(self, fact: Fact, known: Known, violations: Any) -> None:
        """What is told is so, with its arithmetic."""
        for one in violations:
            kind = WINDOWED.get(one.limit)
            if one.limit == limits.LIMIT_COOLING_OFF:
                self.findings.check(
                    known.breaks_now(fact.cause, fact.time_us),
                    fact.place,
                    "refused for a break that is none",
                )
            elif kind is not None:
                maximum = known.strictest(fact.cause).get((kind, one.window_s))
                used = known.used(kind, one.window_s, fact.cause, fact.time_us)
                told = (one.allowed_minor, one.room_minor)
                own = (maximum, max((maximum or 0) - used, 0))
                self.findings.check(
                    told == own and one.would_be_minor > one.allowed_minor,
                    fact.place,
                    f"refused by {told}, by the log {own}",
                )
