"""The hole card of blackjack: it leaves the shoe face down, is looked at, and turned over (rules
BJ-2, BJ-4, BJ-5, BJ-15, VIS-3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from services.games.blackjack import is_blackjack
from services.kernel.key_file import KeyRing
from services.shoe.custodian import Custodian
from services.shoe.domain.commitments import root
from services.shoe.domain.core import CORE
from services.shoe.domain.state import ShoeState
from services.shoe.domain.wanted import CardsWanted, LookWanted, wanted
from services.shoe.generator import Generator
from tests.unit.blackjack_facts import D, H, opened, peek, reveal, seat_hand
from tests.unit.deciding import Deciding
from tests.unit.shoe_facts import (
    S1,
    T,
    called,
    card,
    closed,
    commitments,
    opening,
    order_with,
    round_opened,
    seal,
    voided,
)

R1 = f"{T}-1"
SEAT = seat_hand(1)
DEAL = (SEAT, D, SEAT, H)
ORDER = order_with("TS", "AC", "9S", "KD", "5H", "6H")
"""Seat 1: ten and nine; the dealer: an ace, and a king in the hole."""


def ready() -> Deciding[ShoeState]:
    """A shoe of blackjack: nothing is shown, nothing burned (BJ-15)."""
    game = Deciding(CORE).given(opened())
    return game.when(seal(ORDER)).then(
        shoe.ShoeOpened(
            table_id=T,
            shoe_id=S1,
            number=1,
            cards=416,
            cut_at=208,
            root=root(commitments(ORDER, S1)),
            ready=True,
        )
    )


def dealt() -> Deciding[ShoeState]:
    """The first four cards lie, the fourth face down."""
    game = ready().given(round_opened(1), called(1, DEAL))
    return game.when(opening(ORDER, 0, 3, R1))


def lies(*cards: tuple[int, str, int]) -> shoe.CardsDealt:
    """(place, card, hand)."""
    return shoe.CardsDealt(
        table_id=T,
        shoe_id=S1,
        round_id=R1,
        cards=[
            shoe.DealtCard(index=index, card=name, hand=rules.Hand.ValueType(hand))
            for index, name, hand in cards
        ],
        source=shoe.CARD_SOURCE_VIRTUAL,
    )


def look(yes: bool, index: int = 3, round_id: str = R1, shoe_id: str = S1) -> shoe.CheckHole:
    return shoe.CheckHole(
        table_id=T,
        shoe_id=shoe_id,
        round_id=round_id,
        index=index,
        blackjack=yes,
        source=shoe.CARD_SOURCE_VIRTUAL,
    )


def told(yes: bool) -> shoe.HoleChecked:
    return shoe.HoleChecked(
        table_id=T, shoe_id=S1, round_id=R1, blackjack=yes, source=shoe.CARD_SOURCE_VIRTUAL
    )


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


PEEKED, REVEALED = peek("AC"), reveal("AC")
HOLE_OPEN = lies((3, "KD", H))


def test_bj_2_the_hole_card_leaves_the_shoe_face_down() -> None:
    game = dealt().then(lies((0, "TS", SEAT), (1, "AC", D), (2, "9S", SEAT), (3, "", H)))
    standing = game.state.shoes[S1]
    assert standing.gone == 4
    assert 3 not in standing.opened
    assert wanted(game.state) == []


def test_vis_3_three_cards_are_asked_for_where_four_are_called() -> None:
    game = ready().given(round_opened(1), called(1, DEAL))
    [wish] = wanted(game.state)
    assert isinstance(wish, CardsWanted)
    assert (wish.first, wish.count) == (0, 3)
    game.when(opening(ORDER, 0, 4, R1)).then_only(shoe.CardsBurned)  # All four: not as called.


def test_bj_4_a_look_tells_yes_or_no_and_the_card_stays() -> None:
    game = dealt().given(PEEKED)
    [wish] = wanted(game.state)
    assert isinstance(wish, LookWanted)
    assert (wish.index, wish.up_card) == (3, "AC")
    game.when(look(True)).then(told(True))
    assert 3 not in game.state.shoes[S1].opened
    assert wanted(game.state) == []


def test_bj_5_the_hole_card_is_turned_over_and_no_card_leaves() -> None:
    game = dealt().given(PEEKED, look(True), REVEALED)
    [wish] = wanted(game.state)
    assert isinstance(wish, CardsWanted)
    assert (wish.first, wish.count) == (3, 1)
    game.when(opening(ORDER, 3, 1, R1)).then(HOLE_OPEN)
    assert game.state.shoes[S1].gone == 4
    assert game.state.shoes[S1].opened[3].shown
    assert wanted(game.state) == []
    game.given(called(1, (D,), before=4))
    game.when(opening(ORDER, 4, 1, R1)).then(lies((4, "5H", D)))


def test_a_second_look_agrees_or_contradicts() -> None:
    game = dealt().given(PEEKED, look(False))
    game.when(look(False)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    game.when(look(True)).then(ignored(log.IGNORED_REASON_CONTRADICTS))


def test_a_look_that_nobody_called_has_no_effect() -> None:
    game = dealt()
    game.when(look(True)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    game.given(PEEKED)
    for other in (look(True, index=4), look(True, round_id=f"{T}-2")):
        game.when(other).then(ignored(log.IGNORED_REASON_NOT_NOW))
    game.when(look(True, shoe_id="t1-s9")).then(ignored(log.IGNORED_REASON_UNKNOWN))
    game.when(look(False)).then(told(False))


def test_the_hole_card_opened_too_early_waits_for_its_call() -> None:
    game = dealt()
    game.when(opening(ORDER, 3, 1, R1)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    game.given(REVEALED).when(opening(ORDER, 3, 1, R1)).then(HOLE_OPEN)
    game.when(opening(ORDER, 3, 1, R1)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))


def test_another_card_in_place_of_the_hole_card_does_not_match() -> None:
    game = dealt().given(REVEALED)
    false = shoe.OpenCards(
        table_id=T, shoe_id=S1, round_id=R1, cards=[card(ORDER, 4)], source=shoe.CARD_SOURCE_VIRTUAL
    )
    false.cards[0].index = 3
    game.when(false).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))


def test_inc_2_the_hole_card_of_a_voided_round_is_never_opened() -> None:
    game = dealt().given(REVEALED, voided(1))
    assert wanted(game.state) == []
    game.when(opening(ORDER, 3, 1, R1)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    game.when(look(True)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    game.given(closed(1), round_opened(2), called(2, DEAL))
    [wish] = wanted(game.state)
    assert isinstance(wish, CardsWanted)
    assert (wish.first, wish.count) == (4, 3)


def test_a_call_for_a_hole_card_that_crossed_the_rounds_end_is_none() -> None:
    game = dealt().given(voided(1)).when(PEEKED).then()
    assert wanted(game.state) == []
    ready().when(PEEKED).then()


def test_bj_15_a_hole_card_behind_the_cut_card_makes_the_round_the_last() -> None:
    game = ready()
    standing = game.state.shoes[S1]
    standing.gone, standing.cut_at = 4, 7
    game.given(round_opened(1), called(1, DEAL))
    first = [shoe.Card(index=at, card=ORDER[at], salt=card(ORDER, at).salt) for at in (4, 5, 6)]
    game.when(
        shoe.OpenCards(
            table_id=T, shoe_id=S1, round_id=R1, cards=first, source=shoe.CARD_SOURCE_VIRTUAL
        )
    ).then_only(shoe.CardsDealt, shoe.CutCardReached)


# ---- the custodian -----------------------------------------------------------------------------


def seeded(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def shown(bodies: Sequence[object]) -> list[str]:
    return [one.card for body in bodies if isinstance(body, shoe.OpenCards) for one in body.cards]


@pytest.mark.parametrize("seed", range(20))
def test_the_custodian_deals_looks_and_turns_over(seed: int) -> None:
    keeper = Custodian("c1", KeyRing({"k1": bytes(range(32))}, "k1"), Generator(seeded(seed)))
    game: Deciding[ShoeState] = Deciding(CORE, careful=False).given(opened())
    game.given(*keeper.poll(game.state, 0, True))
    game.given(round_opened(1), called(1, DEAL))
    deal = keeper.poll(game.state, 0, True)
    assert len(shown(deal)) == 3
    game.given(*deal)
    up_card = shown(deal)[1]
    game.given(peek(up_card))
    [looked] = keeper.poll(game.state, 0, True)
    assert isinstance(looked, shoe.CheckHole)
    game.when(looked).then_only(shoe.HoleChecked)
    assert keeper.poll(game.state, 0, True) == []
    game.given(reveal(up_card))
    turned = keeper.poll(game.state, 0, True)
    [hole] = shown(turned)
    assert looked.blackjack == is_blackjack((up_card, hole))
    game.when(turned[0]).then_only(shoe.CardsDealt)
    assert keeper.poll(game.state, 0, True) == []
