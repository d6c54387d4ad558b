"""The auditor's own ledger: what every event of the log means in money. It is kept apart from the
wallet's and settlement's code, and much simpler.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from sabot.limits.v1 import events_pb2 as limits
from sabot.partnerwallet.v1 import partner_wallet_service_pb2 as partner_wallet
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import bet_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from sabot.wallet.v1 import seamless_events_pb2 as seamless
from services.simulator.audit_judge import due
from services.simulator.facts import Fact, Findings, Place

AHEAD_US = 60 * 1_000_000
KEPT_US = 24 * 3600 * 1_000_000
Owner = tuple[str, str]
"""(partner, account)"""


@dataclass(slots=True)
class BetRecord:
    """One bet's life."""

    bet_id: str
    owner: Owner
    round_id: str
    bet: str
    position: str
    stake: int
    reserved: Place | None = None
    ended: Place | None = None
    """Where it was returned, refused or declined, or its payout posted."""
    settled: Place | None = None
    payout: int = 0


@dataclass(slots=True)
class RoundMoney:
    """What a round is paid by."""

    opened: table.TableOpened | None = None
    """What governs it."""
    result: rules.Result | None = None
    winnings: int = 0
    """All that its bets won."""
    bets: dict[str, BetRecord] = field(default_factory=dict)
    closed: bool = False


class MoneyAuditor:
    """Follows every minor unit. `balances`: by ("cash" or "reserved", partner, account)."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.balances: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self.rounds: defaultdict[str, RoundMoney] = defaultdict(RoundMoney)
        self.settled_bets = 0
        self._opened: dict[tuple[str, int], table.TableOpened] = {}
        self._moved: dict[tuple[str, str, str], Place] = {}
        """By (what, partner, request id): where it moved money."""
        self._blocked: set[Owner] = set()
        self._settled: dict[tuple[str, Owner], settlement.BetsSettled] = {}

    # ---- the ledger ----------------------------------------------------------------------------

    def post(self, place: Place, *legs: tuple[str, str, str, int]) -> None:
        """A journal entry: its legs sum to zero and overdraw nothing (invariant 1)."""
        self.findings.check(sum(leg[3] for leg in legs) == 0, place, f"unbalanced: {legs}")
        for kind, partner, account, minor in legs:
            self.balances[kind, partner, account] += minor
        for kind, partner, account, _ in legs:
            if kind in ("cash", "reserved"):
                balance = self.balances[kind, partner, account]
                self.findings.check(
                    balance >= 0, place, f"{kind} of {partner}/{account} falls to {balance}"
                )

    def _once(self, place: Place, what: str, partner: str, request_id: str) -> None:
        """A request id moves money once (invariant 7)."""
        first = self._moved.setdefault((what, partner, request_id), place)
        self.findings.check(
            first == place, place, f"{what} {request_id} of {partner} was done at {first} already"
        )

    def _in_time(self, place: Place, request_id: str, time_us: int) -> None:
        """An id is good for 24 hours, and from a minute before its own time on."""
        made_us = int(request_id[:8] + request_id[9:13], 16) * 1000
        self.findings.check(
            -AHEAD_US <= time_us - made_us <= KEPT_US + AHEAD_US,
            place,
            f"{request_id} moves money {(time_us - made_us) / 1e6:.0f} s after it was made",
        )

    def _not_blocked(self, place: Place, partner: str, account_id: str) -> None:
        self.findings.check(
            (partner, account_id) not in self._blocked,
            place,
            f"{partner}/{account_id} is blocked, but takes bets or money",
        )

    # ---- events --------------------------------------------------------------------------------

    def see(self, fact: Fact) -> None:
        """Take the next event."""
        body, place, partner = fact.body, fact.place, fact.partner
        match body:
            case table.TableOpened():
                self._opened[body.spec.table_id, body.revision] = body
            case table.RoundOpened():
                self.rounds[body.round_id].opened = self._opened.get((body.table_id, body.revision))
            case table.BetsPlaced():
                self._once(place, f"bets in {body.round_id}", partner, body.request_id)
                self._new_bets(place, (partner, body.account_id), body.round_id, body.bets)
            case table.ActionTaken():
                if body.HasField("extra"):
                    owner = (body.partner_id, body.account_id)
                    self._new_bets(place, owner, body.round_id, [body.extra])
            case limits.BetsRefused():
                for bet_id in body.bet_ids:
                    self._off(place, body.round_id, bet_id)
            case wallet.StakeDeclined():
                for bet in body.bets:
                    self._off(place, body.round_id, bet.bet_id)
            case wallet.StakeReserved():
                self._reserved(place, partner, body)
            case wallet.StakeReturned():
                self._returned(place, body)
            case table.ResultAccepted():
                self.rounds[body.round_id].result = body.result
            case settlement.BetsSettled():
                self._bets_settled(place, body)
            case wallet.PayoutPosted():
                self._paid(place, body)
            case wallet.AccountBlocked():
                self._blocked.add((partner, body.account_id))
            case wallet.AccountUnblocked():
                self._blocked.discard((partner, body.account_id))
            case wallet.FundsDeposited():
                self._not_blocked(place, partner, body.account_id)
                self._in_time(place, body.request_id, fact.time_us)
                self._once(place, "deposit", partner, body.request_id)
                self.post(
                    place,
                    ("external", partner, "", -body.amount_minor),
                    ("cash", partner, body.account_id, body.amount_minor),
                )
            case wallet.FundsWithdrawn():
                self._in_time(place, body.request_id, fact.time_us)
                self._once(place, "withdrawal of funds", partner, body.request_id)
                self.post(
                    place,
                    ("cash", partner, body.account_id, -body.amount_minor),
                    ("external", partner, "", body.amount_minor),
                )
            case (
                seamless.DebitOrdered()
                | seamless.MovementConfirmed()
                | seamless.MovementWrittenOff()
            ):
                self._at_partner(place, body)
            case settlement.RoundSettled():
                self._exposed(place, body)
            case wallet.RoundPaid() | wallet.RoundReturned():
                self._round_over(place, body.round_id)
            case _:
                pass

    def _at_partner(
        self,
        place: Place,
        body: seamless.DebitOrdered | seamless.MovementConfirmed | seamless.MovementWrittenOff,
    ) -> None:
        """What a seamless partner is asked for, and what it owes no longer."""
        if isinstance(body, seamless.DebitOrdered):
            if body.reason != partner_wallet.DEBIT_REASON_CORRECTION:
                self._not_blocked(place, body.partner_id, body.account_id)
            return
        kind = "external" if isinstance(body, seamless.MovementConfirmed) else "written off"
        self.post(
            place,
            ("due", body.partner_id, "", -body.amount_minor),
            (kind, body.partner_id, "", body.amount_minor),
        )

    def _new_bets(
        self, place: Place, owner: Owner, round_id: str, placed: Iterable[bet_pb2.Bet]
    ) -> None:
        bets = self.rounds[round_id].bets
        for one in placed:
            self.findings.check(
                one.bet_id not in bets, place, f"bet id {one.bet_id} was given out twice"
            )
            bets[one.bet_id] = BetRecord(
                one.bet_id, owner, round_id, one.bet, one.position, one.stake_minor
            )

    def _bet(self, place: Place, round_id: str, bet_id: str) -> BetRecord | None:
        found = self.rounds[round_id].bets.get(bet_id)
        self.findings.check(found is not None, place, f"bet {bet_id} was never placed")
        return found

    def _off(self, place: Place, round_id: str, bet_id: str) -> None:
        """Refused or declined: no money has moved, and none will (invariant 3)."""
        bet = self._bet(place, round_id, bet_id)
        if bet is not None:
            self.findings.check(
                bet.reserved is None and bet.ended is None,
                place,
                f"bet {bet_id} is off, but was reserved at {bet.reserved}, ended at {bet.ended}",
            )
            bet.ended = place

    def _reserved(self, place: Place, partner: str, body: wallet.StakeReserved) -> None:
        if not body.transaction_ids:  # Else it was looked at when the partner was asked.
            self._not_blocked(place, partner, body.account_id)
        self._once(place, f"stakes in {body.round_id}", partner, body.request_id)
        for stake in body.bets:
            bet = self._bet(place, body.round_id, stake.bet_id)
            if bet is None:
                continue
            same = (bet.owner, bet.bet, bet.position, bet.stake) == (
                (partner, body.account_id), stake.bet, stake.position, stake.stake_minor,
            )  # fmt: skip
            self.findings.check(same, place, f"bet {bet.bet_id} is reserved otherwise than placed")
            self.findings.check(
                bet.reserved is None and bet.ended is None,
                place,
                f"bet {bet.bet_id} is reserved, but was at {bet.reserved}, ended at {bet.ended}",
            )
            bet.reserved = place
        total = sum(stake.stake_minor for stake in body.bets)
        # A seamless partner's accounts have no cash here.
        source = (
            ("external", partner, "", -total)
            if body.transaction_ids
            else ("cash", partner, body.account_id, -total)
        )
        self.post(place, source, ("reserved", partner, body.account_id, total))

    def _end(self, place: Place, bet: BetRecord, how: str) -> None:
        self.findings.check(
            bet.reserved is not None, place, f"bet {bet.bet_id} is {how}, but was never reserved"
        )
        self.findings.check(
            bet.ended is None, place, f"bet {bet.bet_id} is {how}, but ended at {bet.ended}"
        )
        bet.ended = place

    def _returned(self, place: Place, body: wallet.StakeReturned) -> None:
        for stake in body.bets:
            bet = self._bet(place, body.round_id, stake.bet_id)
            if bet is not None:
                self._end(place, bet, "returned")
                self.findings.check(
                    bet.stake == stake.stake_minor and bet.settled is None,
                    place,
                    f"bet {bet.bet_id} of {bet.stake}, settled at {bet.settled}, gets back "
                    f"{stake.stake_minor}",
                )
        total = sum(stake.stake_minor for stake in body.bets)
        back = (
            ("due", body.partner_id, "", total)
            if body.transaction_ids
            else ("cash", body.partner_id, body.account_id, total)
        )
        self.post(place, ("reserved", body.partner_id, body.account_id, -total), back)

    def _bets_settled(self, place: Place, body: settlement.BetsSettled) -> None:
        """Payouts by the rules in the round's own `TableOpened` (invariant 9)."""
        one = self.rounds[body.round_id]
        opened, result = one.opened, one.result
        if opened is None or result is None:
            self.findings.add(place, f"{body.round_id} is settled without rules or result")
            return
        rule_set = opened.spec.rule_set
        self.findings.check(body.rule_set_hash == rule_set.hash, place, "settled by other rules")
        owner = (body.partner_id, body.account_id)
        self.findings.check(
            (body.round_id, owner) not in self._settled, place, f"{owner} is settled twice"
        )
        self._settled[body.round_id, owner] = body
        for told in body.bets:
            bet = self._bet(place, body.round_id, told.bet_id)
            if bet is None:
                continue
            self.findings.check(
                bet.settled is None and bet.ended is None and bet.reserved is not None,
                place,
                f"bet {bet.bet_id} is settled; reserved at {bet.reserved}, settled at "
                f"{bet.settled}, ended at {bet.ended}",
            )
            bet.settled = place
            own = due(rule_set, result, bet.bet, bet.position, bet.stake)
            bet.payout = own.payout
            one.winnings += max(0, own.profit)
            told_all = (
                told.bet, told.position, told.stake_minor,
                told.outcome, told.profit_minor, told.payout_minor, told.commission_minor,
            )  # fmt: skip
            due_all = (bet.bet, bet.position, bet.stake, *own)
            self.findings.check(
                told_all == due_all and bet.owner == owner,
                place,
                f"bet {bet.bet_id} is settled as {told_all}, due is {due_all}",
            )
            self._line(place, rule_set, told)
            self.settled_bets += 1

    def _line(
        self, place: Place, rule_set: rule_set_pb2.RuleSet, told: settlement.SettledBet
    ) -> None:
        """A pay line is named where a bet won that has several, and is one of its own."""
        offer = next(offer for offer in rule_set.bets if offer.bet == told.bet)
        lines = [one.line for one in offer.lines] if told.outcome == settlement.OUTCOME_WON else []
        self.findings.check(
            told.line in lines or not (lines or told.line),
            place,
            f"bet {told.bet_id} won by the line {told.line!r} of {lines}",
        )

    def _exposed(self, place: Place, body: settlement.RoundSettled) -> None:
        """A round never wins more than the table's greatest exposure (rule LIM-4)."""
        one = self.rounds[body.round_id]
        allowed = one.opened.spec.restrictions.max_exposure_minor if one.opened else 0
        self.findings.check(
            not allowed or one.winnings <= allowed,
            place,
            f"{body.round_id} wins {one.winnings}, the table is exposed to {allowed} at most",
        )

    def _paid(self, place: Place, body: wallet.PayoutPosted) -> None:
        owner = (body.partner_id, body.account_id)
        told = self._settled.get((body.round_id, owner))
        on = [
            bet
            for bet in self.rounds[body.round_id].bets.values()
            if bet.owner == owner and bet.reserved is not None and bet.ended is None
        ]
        self.findings.check(told is not None, place, f"{owner} is paid without a settlement")
        for bet in on:
            self._end(place, bet, "paid")
        stake, payout = sum(bet.stake for bet in on), sum(bet.payout for bet in on)
        kept = sum(bet.commission_minor for bet in told.bets) if told is not None else 0
        self.findings.check(
            (body.stake_minor, body.payout_minor, body.commission_minor) == (stake, payout, kept),
            place,
            f"{owner} is paid {body.payout_minor} for {body.stake_minor}, due is {payout} for "
            f"{stake}",
        )
        self.post(
            place,
            ("reserved", *owner, -body.stake_minor),
            ("house", body.partner_id, "", body.stake_minor - body.payout_minor - kept),
            (
                ("due", body.partner_id, "", body.payout_minor)
                if body.due
                else ("cash", *owner, body.payout_minor)
            ),
            ("commission", body.partner_id, "", kept),
        )

    def _round_over(self, place: Place, round_id: str) -> None:
        """Every accepted bet was settled or returned, once (invariant 2)."""
        one = self.rounds[round_id]
        self.findings.check(not one.closed, place, f"{round_id} ends twice")
        one.closed = True
        for bet in one.bets.values():
            self.findings.check(
                bet.reserved is None or bet.ended is not None,
                place,
                f"{round_id} is over, bet {bet.bet_id} is not",
            )

    def finish(self, place: Place) -> None:
        """The log ends here: nothing is left open."""
        for round_id, one in self.rounds.items():
            for bet in one.bets.values():
                self.findings.check(
                    bet.ended is not None,
                    place,
                    f"bet {bet.bet_id} of {round_id} has no end; reserved at {bet.reserved}",
                )
        for (kind, partner, account), balance in self.balances.items():
            if kind == "reserved":
                self.findings.check(
                    not balance, place, f"{partner}/{account} still has {balance} reserved"
                )
            elif kind == "due":
                self.findings.check(not balance, place, f"{balance} is still due to {partner}")
