"""Scenarios of faults that others had with blackjack, through a whole cell on stacked shoes: the
right credits, one debit a stake, and nothing paid too early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.catalogue import blackjack
from services.kernel.event import Event
from services.simulator.virtual_time import run_virtual
from tests.fleet.small_cell import SmallCell, memory_cell
from tests.fleet.stacked_shoe import stacked_generator

HIT, STAND = rules.ACTION_HIT, rules.ACTION_STAND
INSURE, DECLINE = rules.ACTION_INSURE, rules.ACTION_DECLINE_INSURANCE


class Played(NamedTuple):
    """What a round came to for the one account in it."""

    events: list[Event]
    outcomes: list[object]
    available_minor: int
    reserved_minor: int

    @property
    def credits(self) -> list[int]:
        """What was paid back."""
        paid = [event.body for event in self.events]
        return [one.payout_minor for one in paid if isinstance(one, wallet.PayoutPosted)]

    @property
    def debits(self) -> list[int]:
        """What was reserved, by event."""
        held = [event.body for event in self.events]
        return [
            sum(bet.stake_minor for bet in one.bets)
            for one in held
            if isinstance(one, wallet.StakeReserved)
        ]

    def place(self, kind: type[object]) -> int:
        """Where the last event of a kind stands."""
        return max(at for at, one in enumerate(self.events) if isinstance(one.body, kind))


def spec() -> spec_pb2.TableSpec:
    rule_set = blackjack()
    return spec_pb2.TableSpec(
        table_id="t1",
        currency_code="EUR",
        rule_set=rule_set,
        limits=[
            spec_pb2.BetLimit(bet=offer.bet, min_minor=1, max_minor=100_000, step_minor=1)
            for offer in rule_set.bets
        ],
        pacing=spec_pb2.Pacing(),
    )


def play(
    cards: str,
    main: int,
    actions: Sequence[tuple[rules.Action.ValueType, int]] = (),
    *,
    money: int = 10_000,
) -> Played:
    """One seat, dealt from a shoe that begins so. `actions`: with what is asked to be staked."""

    async def main_() -> Played:
        generator = stacked_generator([cards])
        events: list[Event] = []
        async with memory_cell(generator=generator) as (cell, _):
            await cell.open_account("ann", money)
            await cell.open_table(spec())
            round_id = await cell.open_round()
            cell.process.follow(events.extend)
            await cell.bet_at(round_id, "ann", ("main", 1, main))
            outcomes: list[object] = []

            async def act() -> None:
                close = table.CloseBetting(
                    table_id="t1", round_id=round_id, source=table.SOURCE_OPERATOR
                )
                await cell.order(close)
                outcomes.extend(
                    [await cell.act(round_id, "ann", 1, action, extra) for action, extra in actions]
                )

            await cell.over(round_id, act)
            return Played(events, outcomes, *balance(cell))

    return run_virtual(main_())


def balance(cell: SmallCell) -> tuple[int, int]:
    account = cell.process.state("wallet").accounts["acme", "ann"]
    return account.available_minor, account.reserved_minor


@pytest.mark.parametrize(
    ("cards", "actions", "credit"),
    [
        ("AS TD KS 9D", [], 2_500),  # A-K v 10-9
        ("AS AD KS QD", [DECLINE], 1_000),  # A-K v A-Q
        ("7S AD 7H KD", [DECLINE], 0),  # 7-7 v A-K: nobody draws against it
        ("7S KD 7H AD 7C", [HIT], 0),  # 7-7-7 v K-A that nobody looked at
        ("7S 5D 7H 6D 7C TD", [HIT], 1_000),  # 7-7-7 v 5-6-10
        ("TS KD QS JD", [STAND], 1_000),  # 10-Q v K-J
        ("TS TD 6S 6D 6H 7D", [HIT], 0),  # 10-6-6 v 10-6: the bust loses first
    ],
)
def test_bj_01_credits(cards: str, actions: list[rules.Action.ValueType], credit: int) -> None:
    played = play(cards, 1_000, [(action, 0) for action in actions])
    assert played.credits == [credit]
    assert played.debits == [1_000]
    assert (played.available_minor, played.reserved_minor) == (9_000 + credit, 0)


def test_bj_01_no_natural_is_paid_before_the_dealers_is_excluded() -> None:
    for cards in ("AS TD KS 9D", "AS AD KS 9D"):
        actions = [(DECLINE, 0)] if "AD" in cards else []
        played = play(cards, 1_000, actions)
        assert played.place(wallet.PayoutPosted) > played.place(shoe.CardsDealt)
        deals = [one.body for one in played.events if isinstance(one.body, shoe.CardsDealt)]
        assert deals[-1].cards[-1].hand == rules.HAND_HOLE
        assert deals[-1].cards[-1].card == "9D"


def test_bj_01_a_loss_takes_the_stake_once_and_a_push_gives_it_back() -> None:
    lost = play("TS TD 6S KD", 10_000, [(STAND, 0)])
    assert (lost.available_minor, lost.reserved_minor, lost.debits) == (0, 0, [10_000])
    pushed = play("TS TD KS KD", 10_000, [(STAND, 0)])
    assert (pushed.available_minor, pushed.reserved_minor) == (10_000, 0)
    assert pushed.debits == [10_000]


@pytest.mark.parametrize(
    ("cards", "main", "actions", "credit"),
    [
        ("TS AD 9S KD", 2_000, [INSURE], 3_000),  # V1
        ("AS AD QS KD", 2_000, [INSURE], 5_000),  # V2: 20.00 back and 30.00
        ("AS AD QS 9D", 2_000, [INSURE], 5_000),  # V3: the same as even money
        ("TS AD 9S KD", 25, [INSURE], 36),  # V4: 0.12 is insured
    ],
)
def test_bj_03_insurance(
    cards: str, main: int, actions: list[rules.Action.ValueType], credit: int
) -> None:
    played = play(cards, main, [(action, 0) for action in actions])
    assert played.credits == [credit]
    assert played.debits == [main, main // 2]
    assert played.available_minor == 10_000 - main - main // 2 + credit


def test_bj_03_another_amount_is_refused() -> None:
    """V4: 0.13 on a stake of 0.25."""
    played = play("TS AD 9S KD", 25, [(INSURE, 13), (DECLINE, 0)])
    refused = played.outcomes[0]
    assert isinstance(refused, table.ActionRejected)
    assert refused.refusal == table.REFUSAL_BAD_EXTRA_STAKE
    assert played.debits == [25]


def test_bj_03_no_insurance_at_a_ten_or_after_a_hit() -> None:
    """V5, V6: refused, and no debit."""
    ten = play("TS KD 9S AD", 1_000, [(INSURE, 0), (STAND, 0)])
    hit = play("2S AD 3S 9D 4S", 1_000, [(DECLINE, 0), (HIT, 0), (INSURE, 0), (STAND, 0)])
    for played, place in ((ten, 0), (hit, 2)):
        refused = played.outcomes[place]
        assert isinstance(refused, table.ActionRejected)
        assert refused.refusal == table.REFUSAL_ACTION_NOT_ALLOWED
        assert played.debits == [1_000]


def test_bj_05_the_dealer_counts_several_aces_and_stands_on_17() -> None:
    for cards, dealer in (
        ("TS KD 8S AD", ["KD", "AD"]),
        ("TS AD 8S 6D", ["AD", "6D"]),
        ("TS 4D 8S AD 7D 9D", ["4D", "AD", "7D", "9D"]),
    ):
        actions = [(DECLINE, 0), (STAND, 0)] if cards.split()[1] == "AD" else [(STAND, 0)]
        played = play(cards, 1_000, actions)
        [accepted] = [
            one.body for one in played.events if isinstance(one.body, table.ResultAccepted)
        ]
        assert list(accepted.result.blackjack.dealer_cards) == dealer
