"""The shoe core: every input and answer that it folds, accepted and ignored."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoe
from services.shoe.domain.core import CORE
from services.shoe.domain.state import ShoeState, Standing
from services.shoe.domain.wanted import CardsWanted, RevealWanted, SealWanted, wanted
from tests.unit.deciding import Deciding
from tests.unit.shoe_facts import (
    BANKER,
    FOUR,
    PACK,
    PLAYER,
    S1,
    SEVEN_FIRST,
    TABLE_CLOSED,
    T,
    burned,
    called,
    cards,
    closed,
    commitments,
    dealt,
    opening,
    order_with,
    play,
    ready,
    round_opened,
    seal,
    shoe_closed,
    shoe_opened,
    table_opened,
    voided,
)

FIRST = 8
"""The first card after a seven and its burn."""
ALREADY = log.InputIgnored(reason=log.IGNORED_REASON_ALREADY_DONE)
CONTRADICTS = log.InputIgnored(reason=log.IGNORED_REASON_CONTRADICTS)
SECOND = log.InputIgnored(reason=log.IGNORED_REASON_SECOND_DRAW)
NOT_NOW = log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW)
UNKNOWN = log.InputIgnored(reason=log.IGNORED_REASON_UNKNOWN)
IMPOSSIBLE = log.InputIgnored(reason=log.IGNORED_REASON_IMPOSSIBLE)
REVERSED = tuple(reversed(SEVEN_FIRST))


# ---- seals -------------------------------------------------------------------------------------


def test_the_first_seal_stands() -> None:
    game = Deciding(CORE).given(table_opened()).when(seal()).then(shoe_opened())
    game.when(seal(REVERSED)).then(SECOND)
    game.when(seal()).then(ALREADY)


def test_a_seal_that_is_not_awaited() -> None:
    Deciding(CORE).when(seal()).then(UNKNOWN)
    game = Deciding(CORE).given(table_opened())
    game.when(seal(number=2)).then(NOT_NOW)
    game.when(seal(number=0)).then(NOT_NOW)
    other = seal()
    other.decks = 6
    game.when(other).then(NOT_NOW)
    game.given(TABLE_CLOSED).when(seal()).then(NOT_NOW)
    game.given(table_opened()).when(seal()).then(shoe_opened())


@pytest.mark.parametrize("field", ["commitments", "sealed_order", "key_id", "shoe_id"])
def test_a_malformed_seal(field: str) -> None:
    wrong = seal()
    match field:
        case "commitments":
            wrong.commitments = wrong.commitments[:-1]
        case "sealed_order":
            wrong.sealed_order = b""
        case "key_id":
            wrong.key_id = ""
        case _:
            wrong.shoe_id = "t1-s2"
    game = Deciding(CORE).given(table_opened()).when(wrong).then(IMPOSSIBLE)
    game.when(seal()).then(shoe_opened())


def test_a_seal_whose_decision_failed_keeps_its_place() -> None:
    game = Deciding(CORE).given(table_opened())
    body = seal()
    first = Deciding(CORE).given(table_opened()).given(body).last
    game.core.evolve(game.state, first)
    assert wanted(game.state) == []
    game.sequence += 1
    game.when(seal(REVERSED)).then(SECOND)
    game.retry(first).then(shoe_opened())
    assert game.state.shoes[S1].commitments == body.commitments


# ---- the shown card ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "face_down", "left"),
    [("AS", 1, 414), ("7H", 7, 408), ("TD", 10, 405), ("QC", 10, 405), ("9S", 9, 406)],
)
def test_bac_2_the_shown_card_says_how_many_are_burned(
    shown: str, face_down: int, left: int
) -> None:
    order = order_with(shown)
    game = Deciding(CORE).given(table_opened(), seal(order)).when(opening(order, 0, 1))
    game.then(burned(order, 0, 1, shoe.BURN_REASON_SHOE_START, face_down))
    one = game.state.shoes[S1]
    assert one.cards - one.gone == left
    assert one.standing is Standing.READY


def test_before_the_shown_card_nothing_else_is_opened() -> None:
    game = Deciding(CORE).given(table_opened(), seal())
    game.when(opening(REVERSED, 0, 1)).then(IMPOSSIBLE)
    game.when(opening(SEVEN_FIRST, 0, 2)).then(IMPOSSIBLE)
    game.when(opening(SEVEN_FIRST, 0, 1, "t1-1")).then(IMPOSSIBLE)
    game.when(opening(SEVEN_FIRST, 1, 1)).then(IMPOSSIBLE)
    game.when(opening(SEVEN_FIRST, 0, 1)).then_only(shoe.CardsBurned)
    game.when(opening(SEVEN_FIRST, 0, 1)).then(ALREADY)


# ---- cards by call -----------------------------------------------------------------------------


def test_called_cards_are_dealt_in_order() -> None:
    game = ready().given(round_opened(1)).when(called(1)).then()
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then(dealt(SEVEN_FIRST, FIRST, "t1-1"))
    game.given(called(1, (BANKER,), before=4))
    game.when(opening(SEVEN_FIRST, FIRST + 4, 1, "t1-1")).then(
        dealt(SEVEN_FIRST, FIRST + 4, "t1-1", (BANKER,))
    )
    game.when(closed(1)).then()


def test_a_card_told_twice() -> None:
    game = ready().given(round_opened(1), called(1), opening(SEVEN_FIRST, FIRST, 4, "t1-1"))
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then(ALREADY)
    other = opening(SEVEN_FIRST, FIRST, 4, "t1-1")
    other.cards[2].card = "2S"
    game.when(other).then(CONTRADICTS)
    other = opening(SEVEN_FIRST, FIRST, 4, "t1-1")
    other.cards[2].salt = bytes(16)
    game.when(other).then(CONTRADICTS)


def test_cards_that_cannot_be() -> None:
    wrong: list[shoe.OpenCards] = [
        opening(REVERSED, FIRST, 4, "t1-1"),  # no such card there
        opening(SEVEN_FIRST, FIRST + 1, 4, "t1-1"),  # one left out
        opening(SEVEN_FIRST, FIRST, 0, "t1-1"),
    ]
    for field, value in (("index", 999), ("card", "XX"), ("salt", b"")):
        one = opening(SEVEN_FIRST, FIRST, 4, "t1-1")
        setattr(one.cards[3], field, value)
        wrong.append(one)
    swapped = opening(SEVEN_FIRST, FIRST, 4, "t1-1")
    swapped.cards[0].CopyFrom(cards(SEVEN_FIRST, FIRST + 1, 1)[0])
    swapped.cards[1].CopyFrom(cards(SEVEN_FIRST, FIRST, 1)[0])
    wrong.append(swapped)
    for one in wrong:
        game = ready().given(round_opened(1), called(1)).when(one).then(IMPOSSIBLE)
        assert game.state.shoes[S1].gone == FIRST
        game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then_only(shoe.CardsDealt)


def test_no_card_comes_more_often_than_there_are_decks() -> None:
    """A sealer that committed to a ninth ace of spades is found out when it is opened."""
    cheat = ("AS", "2H", *["AS"] * 8, *PACK[10:])
    game = ready(cheat).given(round_opened(1), called(1))
    game.when(opening(cheat, 2, 4, "t1-1")).then_only(shoe.CardsDealt)
    game.given(called(1, FOUR, before=4))
    game.when(opening(cheat, 6, 4, "t1-1")).then(IMPOSSIBLE)


def test_cards_of_shoes_that_are_not_here() -> None:
    game = ready().given(round_opened(1), called(1))
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1", "t1-s2")).then(UNKNOWN)
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1", "t1-sx")).then(UNKNOWN)
    elsewhere = opening(SEVEN_FIRST, FIRST, 4, "t1-1")
    elsewhere.table_id = "t9"
    game.when(elsewhere).then(UNKNOWN)


def test_a_call_of_a_round_that_does_not_run_is_none() -> None:
    game = ready().when(called(1)).then()
    game.given(round_opened(1), voided(1)).when(called(1)).then()
    assert wanted(game.state) == []


# ---- voided rounds -----------------------------------------------------------------------------


def test_cards_opened_for_a_voided_round_are_burned() -> None:
    game = ready().given(round_opened(1), called(1), voided(1))
    assert wanted(game.state) == []
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then(
        burned(SEVEN_FIRST, FIRST, 4, shoe.BURN_REASON_ROUND_OVER)
    )
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then(ALREADY)
    game.given(closed(1), round_opened(2), called(2))
    game.when(opening(SEVEN_FIRST, FIRST + 4, 4, "t1-2")).then(
        dealt(SEVEN_FIRST, FIRST + 4, "t1-2")
    )


def test_cards_of_a_voided_round_that_come_after_the_next_one_called() -> None:
    """The late ones are burned; what was meant to be the next round's first four is out as well."""
    game = ready().given(round_opened(1), called(1), voided(1), closed(1))
    game.given(round_opened(2), called(2))
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then(
        burned(SEVEN_FIRST, FIRST, 4, shoe.BURN_REASON_ROUND_OVER)
    )
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-2")).then(ALREADY)
    assert [
        (one.first, one.count) for one in wanted(game.state) if isinstance(one, CardsWanted)
    ] == [(FIRST + 4, 4)]
    game.when(opening(SEVEN_FIRST, FIRST + 4, 4, "t1-2")).then_only(shoe.CardsDealt)


def test_whatever_is_opened_has_left_the_shoe() -> None:
    """A third card came late and was burned; behind it, three more are known already."""
    game = ready().given(round_opened(1), called(1), opening(SEVEN_FIRST, FIRST, 4, "t1-1"))
    game.given(called(1, (PLAYER,), before=4), voided(1), closed(1), round_opened(2), called(2))
    game.when(opening(SEVEN_FIRST, FIRST + 4, 1, "t1-1")).then(
        burned(SEVEN_FIRST, FIRST + 4, 1, shoe.BURN_REASON_ROUND_OVER)
    )
    game.when(opening(SEVEN_FIRST, FIRST + 4, 4, "t1-2")).then(
        burned(SEVEN_FIRST, FIRST + 5, 3, shoe.BURN_REASON_NOT_CALLED)
    )
    game.when(opening(SEVEN_FIRST, FIRST + 8, 4, "t1-2")).then(
        dealt(SEVEN_FIRST, FIRST + 8, "t1-2")
    )


def test_vis_3_dealt_cards_are_told_from_burned_ones() -> None:
    """Only the shown card, and what was dealt before a round was voided, ever lay open."""
    game = ready().given(round_opened(1), called(1), opening(SEVEN_FIRST, FIRST, 4, "t1-1"))
    game.given(called(1, (PLAYER,), before=4), voided(1), closed(1), round_opened(2), called(2))
    game.given(opening(SEVEN_FIRST, FIRST + 4, 1, "t1-1"))  # too late: burned
    game.given(opening(SEVEN_FIRST, FIRST + 4, 4, "t1-2"))  # not called: burned
    game.when(opening(SEVEN_FIRST, FIRST + 20, 4, "t1-2")).then(IMPOSSIBLE)  # out of order
    game.given(opening(SEVEN_FIRST, FIRST + 8, 4, "t1-2"))
    opened = game.state.shoes[S1].opened
    assert len(opened) == 17
    assert sorted(index for index, card in opened.items() if card.shown) == [
        0,
        *range(FIRST, FIRST + 4),
        *range(FIRST + 8, FIRST + 12),
    ]


# ---- the end of a shoe -------------------------------------------------------------------------


def near_the_end(gone: int, cut_depth: int = 7, after: int = 0) -> tuple[Deciding[ShoeState], int]:
    """A shoe of which so many cards are gone, and the number of its next round."""
    game = ready(SEVEN_FIRST, cut_depth, after)
    number = 1
    while game.state.shoes[S1].gone < gone:
        left = gone - game.state.shoes[S1].gone
        play(game, number, SEVEN_FIRST, next(one for one in (4, 5, 6) if _fits(left - one)))
        number += 1
    assert game.state.shoes[S1].gone == gone
    return game, number


def _fits(left: int) -> bool:
    return left == 0 or left >= 8 or left in (4, 5, 6)


def last_round(game: Deciding[ShoeState], number: int, cards_in_it: int) -> Sequence[Message]:
    play(game, number, SEVEN_FIRST, cards_in_it)
    return game.answers


def test_rng_03_a_round_that_ends_before_the_cut_card_is_not_the_last() -> None:
    game, number = near_the_end(404)
    assert last_round(game, number, 4) == []  # 408 gone: another round
    assert last_round(game, number + 1, 6) == [shoe_closed(2)]  # 414 gone, 2 undealt


def test_rng_03_a_round_that_ends_exactly_at_the_cut_card_is_not_the_last() -> None:
    game, number = near_the_end(409)
    assert last_round(game, number, 4) == [shoe_closed(2)]


def test_rng_03_the_worst_case_ends_with_a_card_to_spare() -> None:
    game, number = near_the_end(409)
    assert last_round(game, number, 6) == [shoe_closed(2)]
    kept = game.state.shoes[S1]
    assert (kept.gone, kept.cards) == (415, 416)


def test_bac_3_the_cut_card_is_told_once() -> None:
    game, number = near_the_end(406)
    reached = shoe.CutCardReached(table_id=T, shoe_id=S1, round_id=f"t1-{number}", rounds_left=0)
    game.given(round_opened(number), called(number))
    game.when(opening(SEVEN_FIRST, 406, 4, f"t1-{number}")).then(
        dealt(SEVEN_FIRST, 406, f"t1-{number}"), reached
    )
    game.given(called(number, (PLAYER,), before=4))
    game.when(opening(SEVEN_FIRST, 410, 1, f"t1-{number}")).then_only(shoe.CardsDealt)
    game.when(closed(number)).then(shoe_closed(2))


def test_bac_3_one_round_may_follow_where_the_rules_say_so() -> None:
    game, number = near_the_end(402, cut_depth=12, after=1)
    assert last_round(game, number, 6) == []
    assert last_round(game, number + 1, 6) == [shoe_closed(2)]
    assert game.state.shoes[S1].gone == 414


def test_bac_3_a_voided_round_is_the_last_too() -> None:
    game, number = near_the_end(406)
    game.given(round_opened(number), called(number), voided(number))
    game.when(opening(SEVEN_FIRST, 406, 4, f"t1-{number}")).then_only(
        shoe.CardsBurned, shoe.CutCardReached
    )
    game.when(closed(number)).then(shoe_closed(2))


def test_bac_3_the_cut_card_burned_before_a_round_makes_that_the_last() -> None:
    game, number = near_the_end(406)
    game.given(round_opened(number), called(number), voided(number), closed(number))
    game.when(opening(SEVEN_FIRST, 406, 4, f"t1-{number}")).then(
        burned(SEVEN_FIRST, 406, 4, shoe.BURN_REASON_ROUND_OVER),
        shoe.CutCardReached(table_id=T, shoe_id=S1, round_id=f"t1-{number}", rounds_left=1),
    )
    game.given(round_opened(number + 1))
    game.when(closed(number + 1)).then(shoe_closed(2))


def test_bac_3_the_cut_card_burned_during_a_round_makes_that_the_last() -> None:
    game, number = near_the_end(406)
    game.given(round_opened(number), called(number), voided(number), closed(number))
    game.given(round_opened(number + 1))
    game.when(opening(SEVEN_FIRST, 406, 4, f"t1-{number}")).then(
        burned(SEVEN_FIRST, 406, 4, shoe.BURN_REASON_ROUND_OVER),
        shoe.CutCardReached(table_id=T, shoe_id=S1, round_id=f"t1-{number + 1}", rounds_left=0),
    )
    game.when(closed(number + 1)).then(shoe_closed(2))


def test_rng_03_a_shoe_that_runs_out_says_so_and_ends() -> None:
    game, number = near_the_end(409)
    ran_out = shoe.ShoeRanOut(table_id=T, shoe_id=S1, round_id=f"t1-{number}")
    game.given(round_opened(number), called(number))
    game.given(opening(SEVEN_FIRST, 409, 4, f"t1-{number}"))
    game.when(called(number, FOUR, before=4)).then(ran_out)
    assert wanted(game.state) == []
    game.given(voided(number))
    game.when(closed(number)).then(shoe_closed(2))


def test_rng_03_burned_cards_may_leave_too_few_for_a_call() -> None:
    game, number = near_the_end(408)
    game.given(round_opened(number), called(number), voided(number), closed(number))
    game.given(round_opened(number + 1), called(number + 1, (*FOUR, PLAYER)))
    game.when(opening(SEVEN_FIRST, 408, 4, f"t1-{number}")).then(
        burned(SEVEN_FIRST, 408, 4, shoe.BURN_REASON_ROUND_OVER),
        shoe.CutCardReached(table_id=T, shoe_id=S1, round_id=f"t1-{number + 1}", rounds_left=0),
        shoe.ShoeRanOut(table_id=T, shoe_id=S1, round_id=f"t1-{number + 1}"),
    )
    game.given(voided(number + 1))
    game.when(closed(number + 1)).then(shoe_closed(2))


def test_a_round_whose_shoe_is_gone_cannot_be_dealt() -> None:
    game = ready().given(TABLE_CLOSED, table_opened(), round_opened(1))
    game.when(called(1)).then(shoe.ShoeRanOut(table_id=T, shoe_id=S1, round_id="t1-1"))


# ---- tables ------------------------------------------------------------------------------------


def test_a_closing_table_ends_its_shoe() -> None:
    ready().when(TABLE_CLOSED).then(shoe_closed(0))
    running = ready().given(round_opened(1)).when(TABLE_CLOSED).then()
    running.when(closed(1)).then(shoe_closed(0))


def test_a_table_that_opens_again_asks_for_the_next_shoe() -> None:
    game = ready().given(TABLE_CLOSED, table_opened())
    wishes = [one for one in wanted(game.state) if isinstance(one, SealWanted)]
    assert [(one.shoe_id, one.number) for one in wishes] == [("t1-s2", 2)]


def test_new_rules_hold_from_the_next_shoe_on() -> None:
    game = ready().given(table_opened(cut_depth=14))
    assert game.state.shoes[S1].cut_at == 409
    assert wanted(game.state) == []
    game.given(TABLE_CLOSED, table_opened(cut_depth=14))
    game.when(seal(number=2)).then(shoe_opened(number=2, cut_at=402))


# ---- the whole shoe ----------------------------------------------------------------------------


def reveal(order: Sequence[str] = SEVEN_FIRST, shoe_id: str = S1) -> shoe.RevealShoe:
    return shoe.RevealShoe(table_id=T, shoe_id=shoe_id, cards=cards(order, 0, 416))


def test_a_shoe_that_is_over_is_laid_open() -> None:
    game = ready().when(reveal()).then(NOT_NOW)
    game.given(TABLE_CLOSED)
    game.when(reveal()).then(shoe.ShoeRevealed(table_id=T, shoe_id=S1))
    assert game.state.shoes == {}
    game.when(reveal()).then(ALREADY)
    game.when(reveal(shoe_id="t1-s2")).then(UNKNOWN)
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1")).then(NOT_NOW)


def test_a_shoe_that_does_not_match_is_not_revealed() -> None:
    game = ready().given(TABLE_CLOSED)
    short = reveal()
    del short.cards[415]
    twisted = reveal()
    twisted.cards[3].index = 4
    for wrong in (reveal(REVERSED), short, twisted):
        game.when(wrong).then(IMPOSSIBLE)
    assert [type(one) for one in wanted(game.state)] == [RevealWanted]


def test_a_shoe_must_hold_complete_decks() -> None:
    cheat = ("7H", *PACK[1:])
    assert commitments(cheat, S1) != commitments(PACK, S1)
    ready(cheat).given(TABLE_CLOSED).when(reveal(cheat)).then(IMPOSSIBLE)


# ---- what is wanted ----------------------------------------------------------------------------


def test_what_is_wanted_follows_from_the_state() -> None:
    game = Deciding(CORE)
    assert wanted(game.state) == []
    game.given(table_opened())
    opened_at = game.last.position
    assert wanted(game.state) == [SealWanted(T, S1, 1, 8, opened_at)]
    game.given(seal())
    assert wanted(game.state) == [CardsWanted(T, S1, "", 0, 1, game.last.position)]
    game.given(opening(SEVEN_FIRST, 0, 1))
    assert wanted(game.state) == []
    game.given(round_opened(1), called(1))
    assert wanted(game.state) == [CardsWanted(T, S1, "t1-1", FIRST, 4, game.last.position)]
    game.given(opening(SEVEN_FIRST, FIRST, 4, "t1-1"), TABLE_CLOSED, closed(1))
    assert wanted(game.state) == [RevealWanted(T, S1, game.last.position)]
    game.given(reveal())
    assert wanted(game.state) == []


def test_hands_are_kept_as_called() -> None:
    hands = (PLAYER, PLAYER, BANKER, PLAYER)
    game = ready().given(round_opened(1), called(1, hands))
    game.when(opening(SEVEN_FIRST, FIRST, 4, "t1-1"))
    answer = game.answers[0]
    assert isinstance(answer, shoe.CardsDealt)
    assert [one.hand for one in answer.cards] == list(hands)
    assert rules.Hand.Name(answer.cards[0].hand) == "HAND_PLAYER"
