"""Blackjack with every core at its own pace: bets, withdrawals, actions, timers that are early or
come twice, suspensions, voids and other rules for the table, in any order. Whatever comes of it,
each stake is settled or returned once, the money adds up, and no round is stuck (invariants 2, 4).
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import bet_pb2, spec_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import catalogue
from services.games.blackjack import Peek
from services.kernel.key_file import KEY_BYTES, KeyRing
from services.shoe.custodian import AGAIN_US, Custodian
from services.table.domain.state import Round, Table
from services.table.domain.timers import timers_wanted
from tests.fleet.small_cell import seeded_generator
from tests.unit.cores_together import Together
from tests.unit.deciding import request_id

T = "t1"
WHO = (("north", "ann"), ("north", "ben"), ("south", "ann"))
KINDS = ("main", "main", "main", "perfect_pairs", "21_plus_3")
MOST, MOST_WON = 50, 1_000
"""The maximum of a place, and the table's greatest exposure."""
ROUNDS = 60


class Played(Together):
    """A table of blackjack and whatever happens at it. `seed`: of all that is left to chance."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.numbers = itertools.count(1)
        self.funds = {who: self.chance.choice((20, 40, 1_000)) for who in WHO}
        keys = KeyRing({"k1": bytes(KEY_BYTES)}, "k1")
        self.custodian = Custodian("c1", keys, seeded_generator(seed))
        self.polled_us = 0
        self.rule()
        for (partner, account), minor in self.funds.items():
            who: dict[str, Any] = {"account_id": account, "currency_code": "EUR"}
            self.ask("wallet", wallet.OpenAccount(**who), partner)
            self.ask("wallet", wallet.Deposit(**who, amount_minor=minor), partner)

    def running(self) -> Round | None:
        """The round that runs, as far as the table has read."""
        one: Table | None = self.state("table").tables.get(T)
        return None if one is None else one.running

    def ask(self, service: str, body: Any, partner: str = "") -> None:
        """With a request id of its own; now and then it comes twice."""
        fields = body.DESCRIPTOR.fields_by_name
        body.request_id = request_id(next(self.numbers))
        body.request_hash = body.request_id.encode()
        if "table_id" in fields:
            body.table_id = T
        if "round_id" in fields:
            running = self.running()
            body.round_id = f"{T}-1" if running is None else running.round_id
        for _ in range(self.chance.choice((1,) * 9 + (2,))):
            self.tell(service, body, partner=partner)

    def rule(self) -> None:
        """Other rules for the table; few decks, so that shoes end."""
        rule_set = catalogue.blackjack(
            peek=self.chance.choice(list(Peek)),
            doubles=self.chance.random() < 0.8,
            one_card_on_split_aces=self.chance.random() < 0.5,
            decks=self.chance.choice((3, 3, 8)),
            cut_depth=137,
        )
        limit = {"min_minor": 1, "max_minor": MOST, "step_minor": 1}
        spec = spec_pb2.TableSpec(
            table_id=T,
            currency_code="EUR",
            rule_set=rule_set,
            limits=[spec_pb2.BetLimit(bet=offer.bet, **limit) for offer in rule_set.bets],
            pacing=spec_pb2.Pacing(),
            timeout_policy=spec_pb2.TIMEOUT_POLICY_BASIC_STRATEGY,
            restrictions=spec_pb2.Restrictions(max_exposure_minor=MOST_WON),
        )
        self.ask("table", table.OpenTable(spec=spec))

    # ---- what may happen -----------------------------------------------------------------------

    def deal(self) -> None:
        self.polled_us += AGAIN_US
        for body in self.custodian.poll(self.state("shoe"), self.polled_us, leading=True):
            self.tell("shoe", body)

    def time_out(self) -> None:
        for timer in timers_wanted(self.state("table")):
            self.tell("table", timer.body)

    def place(self) -> None:
        partner, account = self.chance.choice(WHO)
        bets = [
            bet_pb2.Bet(
                bet=self.chance.choice(KINDS),
                position=str(self.chance.randint(1, 2)),
                stake_minor=self.chance.choice((1, 3, 10, 20)),
            )
            for _ in range(self.chance.randint(1, 3))
        ]
        body = table.PlaceBets(account_id=account, currency_code="EUR", bets=bets)
        self.ask("table", body, partner)

    def withdraw(self) -> None:
        """One bet, or all that are on."""
        partner, account = self.chance.choice(WHO)
        body = table.WithdrawBets(account_id=account)
        running = self.running()
        bets = None if running is None else running.accounts.get((partner, account))
        if bets is not None and bets.live and self.chance.random() < 0.7:
            body.bet_ids.append(self.chance.choice(list(bets.live)))
        self.ask("table", body, partner)

    def act(self) -> None:
        """What the open turn allows, or another seat's turn, by its owner."""
        running = self.running()
        turn = None if running is None else running.turn
        if running is None or turn is None:
            return
        seat = turn.seat or self.chance.choice([*turn.offered, 1])
        held = running.seats.get(seat)
        partner, account = WHO[0] if held is None else (held.partner, held.account_id)
        action = rules.Action.ValueType(self.chance.choice(turn.actions))
        body = table.Act(account_id=account, seat=seat, turn=turn.number, action=action)
        if action == rules.ACTION_DOUBLE:
            body.extra_minor = self.chance.choice((1, turn.max_double_minor))
        self.ask("table", body, partner)

    def order(self, kind: type[Any]) -> None:
        self.ask("table", kind())

    def play(self) -> None:
        """A round, from its opening until its money is home."""
        while self.running() is None:
            self.rule()
            self.ask("table", table.OpenRound(source=table.SOURCE_OPERATOR))
            self.settle()
            self.deal()
            self.settle()
        for _ in range(self.chance.randint(1, 8)):
            self.place()
            self.stir(self.chance.randint(0, 8))
            if self.chance.random() < 0.3:
                self.withdraw()
        self.ask("table", table.CloseBetting(source=table.SOURCE_OPERATOR))
        events = (
            [self.act] * 8 + [self.deal] * 8 + [self.time_out] * 3 + [self.place, self.withdraw]
        )
        orders = (table.SuspendRound, table.ResumeRound, table.CloseTable)
        for _ in range(self.chance.randint(20, 60)):
            self.chance.choice(events)()
            if self.chance.random() < 0.08:
                self.order(self.chance.choice(orders))
            if self.chance.random() < 0.005:
                self.order(table.VoidRound)
            self.stir(self.chance.choice((0, 1, 2, 3, 5, 100, 100)))
        for _ in range(200):
            self.settle()
            running = self.running()
            if running is None:
                return
            if running.suspended:
                self.order(table.ResumeRound)
            self.deal()
            self.time_out()
        raise AssertionError(f"the round is stuck: {self.running()}")


@pytest.mark.parametrize("seed", range(12))
def test_every_stake_is_settled_or_returned_once_whatever_comes_when(seed: int) -> None:
    cell = Played(seed)
    for _ in range(ROUNDS):
        cell.play()
    assert not cell.said(log.InputFailed)
    assert not cell.state("limits").books
    assert not cell.state("wallet").rounds
    owners: dict[str, tuple[str, str]] = {}
    for event in cell.log:
        if isinstance(event.body, wallet.StakeReserved):
            for bet in event.body.bets:
                assert bet.bet_id not in owners
                owners[bet.bet_id] = (event.partner, event.body.account_id)
    back = [bet.bet_id for one in cell.said(wallet.StakeReturned) for bet in one.bets]
    paid = [bet for one in cell.said(settlement.BetsSettled) for bet in one.bets]
    assert sorted([*back, *(bet.bet_id for bet in paid)]) == sorted(owners)
    gains: Counter[tuple[str, str]] = Counter()
    won: Counter[str] = Counter()
    for bet in paid:
        gains[owners[bet.bet_id]] += bet.profit_minor
        won[bet.bet_id.split(".")[0]] += max(bet.profit_minor, 0)
    for who, minor in cell.funds.items():
        account = cell.state("wallet").accounts[who]
        assert (account.available_minor, account.reserved_minor) == (minor + gains[who], 0)
    assert max(won.values(), default=0) <= MOST_WON


@pytest.mark.parametrize("seed", range(12, 18))
def test_a_seat_has_one_owner_and_no_card_is_dealt_twice(seed: int) -> None:
    """BJ-11, invariant 8; and a seat is insured, doubled or split once."""
    cell = Played(seed)
    for _ in range(ROUNDS):
        cell.play()
    at_seat: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    further: list[tuple[str, str, bool]] = []
    for event in cell.log:
        body = event.body
        if isinstance(body, wallet.StakeReserved):
            for bet in body.bets:
                place = (body.round_id, bet.position)
                at_seat.setdefault(place, {})[bet.bet_id] = (event.partner, body.account_id)
                if body.stage:
                    further.append((*place, bet.bet == "insurance"))
        elif isinstance(body, wallet.StakeReturned):
            for bet in body.bets:
                at_seat[body.round_id, bet.position].pop(bet.bet_id)
        elif isinstance(body, wallet.StakesSealed):
            for (round_id, _), held in at_seat.items():
                assert round_id != body.round_id or len(frozenset(held.values())) <= 1
    assert len(further) == len(frozenset(further))
    places = [
        (one.shoe_id, card.index, card.hand == rules.HAND_HOLE and bool(card.card))
        for one in cell.said(shoes.CardsDealt)
        for card in one.cards
    ]
    assert places
    assert len(places) == len(frozenset(places))
