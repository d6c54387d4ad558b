"""An auditor's own simple ledger over a whole log: it knows neither the cores nor how they decide.

It follows the money and the cards event by event and says, in words, which of the invariants of the
architecture (§7) does not hold. Payouts and winners it works out for itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sabot.limits.v1 import events_pb2 as limits
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.events import event_types
from services.kernel.event import Event
from services.kernel.log import Log
from services.kernel.reader import LogReader
from services.kernel.recovery import entries_until

Account = tuple[str, str]
"""Partner and account."""
RULES_STOOD_FOR = {"player": (1, 1), "banker": (19, 20), "tie": (8, 1)}
"""What each bet wins per stake, by the only rule set there is."""
ABOUT_A_REPEAT = (table.REFUSAL_REQUEST_ID_REUSED, table.REFUSAL_REQUEST_EXPIRED)
"""These say nothing of the first request with that id."""
WINNERS = {
    rules.BACCARAT_WINNER_PLAYER: "player",
    rules.BACCARAT_WINNER_BANKER: "banker",
    rules.BACCARAT_WINNER_TIE: "tie",
}


async def read_events(log: Log) -> list[Event]:
    """Everything that stands in a log now."""
    last = (await log.info(wait_s=30.0)).last_sequence
    found: list[Event] = []
    async for entries in entries_until(log, LogReader(log.cell, event_types()), last):
        for entry in entries:
            found += entry.events
    return found


@dataclass
class RoundFacts:
    """A round as the log tells it."""

    rule_set_hash: bytes
    requests: set[tuple[str, str]] = field(default_factory=set)
    hands: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    winner: str = ""
    paid: int = 0
    returned: int = 0
    voided: bool = False
    sealed: bool = False


class Ledger:
    """Fold events in log order, then read `wrong`."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.wrong: list[str] = []
        self.available: Counter[Account] = Counter()
        self.reserved: Counter[Account] = Counter()
        self.house = 0
        self.outside = 0
        """What all accounts paid in and have not paid out."""
        self.rounds: dict[str, RoundFacts] = {}
        self.stakes: dict[str, tuple[Account, str, int]] = {}
        """Account, kind and stake of every bet that was reserved."""
        self.ends: Counter[str] = Counter()
        self.due: Counter[tuple[Account, str]] = Counter()
        """What settlement has ordered to be paid in a round and wallet has not paid."""
        self.moved: Counter[tuple[str, ...]] = Counter()
        """How often a request id moved money."""
        self.once: Counter[tuple[str, ...]] = Counter()
        """What must happen once at most."""
        self.reserved_requests: set[tuple[str, str, str]] = set()
        self.table_rules: dict[tuple[str, int], bytes] = {}
        self.commitments: dict[str, bytes] = {}
        self.opened: dict[tuple[str, int], str] = {}
        for event in events:
            self.fold(event)

    def fold(self, event: Event) -> None:
        handler = _HANDLERS.get(type(event.body))
        if handler is not None:
            handler(self, event, event.body)

    def _once(self, *what: str) -> None:
        self.once[what] += 1
        if self.once[what] > 1:
            self.wrong.append(f"4: twice: {' '.join(what)}")

    def _move(self, event: Event, minor: int, account: Account, to: str) -> None:
        if minor < 0:
            self.wrong.append(f"1: {minor} moved at {event.position}")
        if self.available[account] < 0 or self.reserved[account] < 0:
            self.wrong.append(f"1: {account} below zero after {to} at {event.position}")

    # ---- money ---------------------------------------------------------------------------------

    def deposited(self, event: Event, body: wallet.FundsDeposited) -> None:
        account = (event.partner, body.account_id)
        self.moved["deposit", event.partner, body.request_id] += 1
        self.available[account] += body.amount_minor
        self.outside -= body.amount_minor
        self._move(event, body.amount_minor, account, "a deposit")

    def withdrawn(self, event: Event, body: wallet.FundsWithdrawn) -> None:
        account = (event.partner, body.account_id)
        self.moved["withdrawal", event.partner, body.request_id] += 1
        self.available[account] -= body.amount_minor
        self.outside += body.amount_minor
        self._move(event, body.amount_minor, account, "a withdrawal")

    def stake_reserved(self, event: Event, body: wallet.StakeReserved) -> None:
        account = (event.partner, body.account_id)
        facts = self.rounds[body.round_id]
        if facts.sealed:
            self.wrong.append(f"2: a stake after the seal of {body.round_id} at {event.position}")
        self.moved["bet", event.partner, body.round_id, body.request_id] += 1
        self.reserved_requests.add((event.partner, body.round_id, body.request_id))
        for bet in body.bets:
            self._once("bet reserved", bet.bet_id)
            self.stakes[bet.bet_id] = (account, bet.bet, bet.stake_minor)
            if body.transaction_ids:  # It came from the partner's own wallet.
                self.outside -= bet.stake_minor
            else:
                self.available[account] -= bet.stake_minor
            self.reserved[account] += bet.stake_minor
            self._move(event, bet.stake_minor, account, "a stake")

    def refused(
        self,
        event: Event,
        body: wallet.StakeDeclined | limits.BetsRefused | table.BetsRejected,
    ) -> None:
        if getattr(body, "refusal", None) in ABOUT_A_REPEAT:
            return
        if (event.partner, body.round_id, body.request_id) in self.reserved_requests:
            self.wrong.append(f"3: refused although money moved: {body.request_id}")

    def stake_returned(self, event: Event, body: wallet.StakeReturned) -> None:
        account = (body.partner_id or event.partner, body.account_id)
        for bet in body.bets:
            self._end(event, bet.bet_id, account, bet.stake_minor)
            self.reserved[account] -= bet.stake_minor
            if body.transaction_ids:
                self.outside += bet.stake_minor
            else:
                self.available[account] += bet.stake_minor
            self._move(event, bet.stake_minor, account, "a return")

    def bets_settled(self, event: Event, body: settlement.BetsSettled) -> None:
        account = (body.partner_id, body.account_id)
        facts = self.rounds[body.round_id]
        if body.rule_set_hash != facts.rule_set_hash:
            self.wrong.append(f"9: {body.round_id} was settled by other rules than it opened with")
        for bet in body.bets:
            self._end(event, bet.bet_id, account, bet.stake_minor)
            payout = _payout(bet.bet, bet.stake_minor, facts.winner)
            if bet.payout_minor != payout:
                self.wrong.append(f"9: {bet.bet_id} is paid {bet.payout_minor}, not {payout}")
            self.due[account, body.round_id] += bet.payout_minor

    def _end(self, event: Event, bet_id: str, account: Account, stake: int) -> None:
        self.ends[bet_id] += 1
        known = self.stakes.get(bet_id)
        if known is None or (known[0], known[2]) != (account, stake):
            self.wrong.append(f"2: {bet_id} ends at {event.position} and was {known}")
        if self.ends[bet_id] > 1:
            self.wrong.append(f"2: {bet_id} ends a second time at {event.position}")

    def payout_posted(self, event: Event, body: wallet.PayoutPosted) -> None:
        account = (body.partner_id, body.account_id)
        self._once("payout", body.round_id, *account)
        if self.due.pop((account, body.round_id), None) != body.payout_minor:
            self.wrong.append(f"4: {body.payout_minor} paid at {event.position} was not ordered")
        self.reserved[account] -= body.stake_minor
        if body.due:
            self.outside += body.payout_minor
        else:
            self.available[account] += body.payout_minor
        self.house += body.stake_minor - body.payout_minor
        self._move(event, body.payout_minor, account, "a payout")

    # ---- rounds and cards ----------------------------------------------------------------------

    def table_opened(self, event: Event, body: table.TableOpened) -> None:
        del event
        self.table_rules[body.spec.table_id, body.revision] = body.spec.rule_set.hash

    def round_opened(self, event: Event, body: table.RoundOpened) -> None:
        del event
        self._once("round opened", body.round_id)
        self._once("round number", body.table_id, str(body.number))
        self.rounds[body.round_id] = RoundFacts(self.table_rules[body.table_id, body.revision])

    def round_event(self, event: Event, body: Any) -> None:
        self._once(type(body).__name__, body.round_id)
        facts = self.rounds[body.round_id]
        match body:
            case wallet.StakesSealed():
                facts.sealed = True
            case table.ResultAccepted():
                facts.winner = WINNERS[body.result.baccarat.winner]
                if facts.winner != _winner(facts.hands):
                    self.wrong.append(f"4: {body.round_id}: the cards say {_winner(facts.hands)}")
            case table.RoundVoided():
                facts.voided = True
            case wallet.RoundPaid():
                facts.paid += 1
            case wallet.RoundReturned():
                facts.returned += 1
            case _:
                pass
        if facts.paid and (facts.returned or facts.voided):
            self.wrong.append(f"4: {body.round_id} is paid and voided at {event.position}")

    def shoe_sealed(self, event: Event, body: shoe.SealShoe) -> None:
        del event
        self.commitments.setdefault(body.shoe_id, body.commitments)  # the first stands

    def cards_opened(self, event: Event, body: shoe.OpenCards | shoe.RevealShoe) -> None:
        for card in body.cards:
            facts = card.salt + body.shoe_id.encode() + card.index.to_bytes(4, "big")
            digest = hashlib.sha256(facts + card.card.encode()).digest()
            at = card.index * 32
            if self.commitments[body.shoe_id][at : at + 32] != digest:
                self.wrong.append(f"8: card {card.index} at {event.position} is not the committed")
            self.opened[body.shoe_id, card.index] = card.card

    def cards_dealt(self, event: Event, body: shoe.CardsDealt) -> None:
        facts = self.rounds[body.round_id]
        if not facts.sealed:
            self.wrong.append(f"4: dealt before the seal at {event.position}")
        for card in body.cards:
            self._once("card", body.shoe_id, str(card.index))
            if self.opened.get((body.shoe_id, card.index)) != card.card:
                self.wrong.append(f"8: {card.card} dealt at {event.position} was not opened")
            facts.hands[card.hand].append(card.card)

    # ---- at the end ----------------------------------------------------------------------------

    def at_rest(self) -> list[str]:
        """What is wrong once every round is over and nothing is under way."""
        wrong = list(self.wrong)
        cash = sum(self.available.values()) + sum(self.reserved.values())
        if cash + self.house + self.outside:
            wrong.append(f"1: all accounts come to {cash + self.house + self.outside}")
        wrong += [
            f"1: {minor} still reserved of {a}" for a, minor in self.reserved.items() if minor
        ]
        wrong += [f"2: {bet_id} has no end" for bet_id in self.stakes if not self.ends[bet_id]]
        wrong += [f"2: {minor} of {account} never paid" for account, minor in self.due.items()]
        wrong += [f"7: {what} moved money {n} times" for what, n in self.moved.items() if n > 1]
        for round_id, facts in self.rounds.items():
            if facts.paid + facts.returned != 1:
                wrong.append(f"4: {round_id} ended {facts.paid + facts.returned} times")
        return wrong

    def denies(self, partner: str, told: Mapping[str, tuple[str, str, int]]) -> list[str]:
        """Bets that a partner was told were on, round, account and stake by id, and that do not
        stand in the log so."""
        wrong = []
        for bet_id, (round_id, account_id, stake) in told.items():
            known = self.stakes.get(bet_id)
            if known is None or (known[0], known[2]) != ((partner, account_id), stake):
                wrong.append(f"2: {bet_id} of {round_id} was acknowledged; the log has {known}")
        return wrong


def _winner(hands: Mapping[int, list[str]]) -> str:
    def total(hand: int) -> int:
        return sum(
            int(card[0]) if card[0] in "23456789" else card[0] == "A" for card in hands[hand]
        )

    player, banker = total(rules.HAND_PLAYER) % 10, total(rules.HAND_BANKER) % 10
    if player == banker:
        return "tie"
    return "player" if player > banker else "banker"


def _payout(bet: str, stake: int, winner: str) -> int:
    """What a bet pays back: a tie pushes the sides. Stakes here are whole multiples of 20."""
    if bet == winner:
        numerator, denominator = RULES_STOOD_FOR[bet]
        return stake + stake * numerator // denominator
    return stake if winner == "tie" else 0


_HANDLERS: Mapping[type, Any] = {
    wallet.FundsDeposited: Ledger.deposited,
    wallet.FundsWithdrawn: Ledger.withdrawn,
    wallet.StakeReserved: Ledger.stake_reserved,
    wallet.StakeDeclined: Ledger.refused,
    limits.BetsRefused: Ledger.refused,
    table.BetsRejected: Ledger.refused,
    wallet.StakeReturned: Ledger.stake_returned,
    settlement.BetsSettled: Ledger.bets_settled,
    wallet.PayoutPosted: Ledger.payout_posted,
    table.TableOpened: Ledger.table_opened,
    table.RoundOpened: Ledger.round_opened,
    shoe.SealShoe: Ledger.shoe_sealed,
    shoe.OpenCards: Ledger.cards_opened,
    shoe.RevealShoe: Ledger.cards_opened,
    shoe.CardsDealt: Ledger.cards_dealt,
} | dict.fromkeys(
    (
        table.BettingClosed,
        table.ResultAccepted,
        table.RoundVoided,
        table.RoundClosed,
        limits.BookClosed,
        limits.BookVoided,
        rules.RoundResolved,
        settlement.RoundSettled,
        wallet.StakesSealed,
        wallet.RoundPaid,
        wallet.RoundReturned,
    ),
    Ledger.round_event,
)
