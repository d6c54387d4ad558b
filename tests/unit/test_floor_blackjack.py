"""Blackjack from the floor as the shoe sees it: the hole card is laid face down, looked at, and
turned over; early cards and cards out of turn; what is left of a round that is voided (BJ-2, BJ-4,
BJ-5, VIS-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import Message

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games import catalogue
from services.games.cards import pack
from services.kernel.errors import Refused
from services.kernel.snapshot import StateCodec
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.hole_on_floor import may_lie_face_down
from services.shoe.domain.state import Hole, ShoeState
from services.shoe.domain.wanted import wanted
from services.shoe.floor_servicer import _keep_face_down
from tests.unit.blackjack_facts import D, H, peek, reveal, seat_hand
from tests.unit.deciding import Deciding, Fact
from tests.unit.floor_facts import (
    DEVICE,
    MANUAL,
    PACKS,
    R1,
    S1,
    SCANNER,
    T,
    betting_closed,
    burn,
    burned,
    called,
    closed,
    correction,
    correction_rejected,
    cut_card,
    dealt,
    fault,
    held,
    load,
    register,
    rejected,
    remaining,
    resolved,
    round_opened,
    sealed,
    table_opened,
    tell,
    voided,
)
from tests.unit.floor_facts import card as open_card

SEAT, OTHER = seat_hand(1), seat_hand(4)
DEAL = (SEAT, D, SEAT, H)
HOLE = 3
"""The hole card's place where one seat is dealt."""
RECALLED = rules.DrawRecalled(table_id=T, shoe_id=S1, round_id=R1)


def card(text: str, index: int, round_id: str = R1, **more: Any) -> Fact:
    return open_card(text, round_id, index=index, **more)


def face_down(index: int = HOLE, round_id: str = R1, shoe_id: str = S1, table_id: str = T) -> Fact:
    return tell(
        floor.RecordFaceDown(
            table_id=table_id,
            shoe_id=shoe_id,
            round_id=round_id,
            index=index,
            source=DEVICE,
            device="scanner-1",
        ),
        actor=SCANNER,
    )


def look(yes: bool, round_id: str = R1, shoe_id: str = S1, table_id: str = T) -> Fact:
    return tell(
        floor.RecordPeek(
            table_id=table_id,
            shoe_id=shoe_id,
            round_id=round_id,
            blackjack=yes,
            source=MANUAL,
        ),
        actor="operator:dana",
    )


def hole_dealt() -> shoes.CardsDealt:
    return dealt(HOLE, "", H)


def checked(yes: bool) -> shoes.HoleChecked:
    return shoes.HoleChecked(
        table_id=T, shoe_id=S1, round_id=R1, blackjack=yes, source=MANUAL, device=""
    )


def ready() -> Deciding[ShoeState]:
    """A shoe of blackjack: nothing is shown, nothing burned (BJ-15)."""
    game = Deciding(SHOE, careful=False).given(table_opened(catalogue.blackjack()))
    game.given(*(register(one) for one in PACKS))
    game.when(load()).then_only(shoes.ShoeOpened, *[floor.ConsumableMoved] * 8)
    [opened, *_] = game.answers
    assert isinstance(opened, shoes.ShoeOpened)
    assert (opened.ready, opened.cut_at) == (True, 208)
    return game


def dealing() -> Deciding[ShoeState]:
    """One seat plays, its stakes are sealed, and the deal is called."""
    return ready().given(round_opened(), betting_closed(), sealed(), called(*DEAL))


def three_open(up_card: str = "AD") -> Deciding[ShoeState]:
    """The hole card is awaited."""
    return dealing().given(card("TS", 0), card(up_card, 1), card("9S", 2))


def laid(up_card: str = "AD") -> Deciding[ShoeState]:
    """It lies face down."""
    return three_open(up_card).given(face_down())


def hole_of(game: Deciding[ShoeState]) -> Hole:
    found = game.state.shoes[S1].hole
    assert found is not None
    return found


# ---- laid face down ----------------------------------------------------------------------------


def test_bj_2_the_deal_goes_round_and_the_hole_card_lies_face_down() -> None:
    game = dealing()
    game.when(card("TS", 0)).then(dealt(0, "TS", SEAT))
    game.when(card("AD", 1)).then(dealt(1, "AD", D))
    game.when(card("9S", 2)).then(dealt(2, "9S", SEAT))
    game.when(face_down()).then(hole_dealt())
    shoe = game.state.shoes[S1]
    assert (shoe.gone, sorted(shoe.opened), shoe.call) == (4, [0, 1, 2], None)
    assert wanted(game.state) == []  # The custodian opens nothing here.


def test_vis_3_nothing_that_lays_a_card_face_down_can_say_what_it_is() -> None:
    assert "card" not in " ".join(floor.RecordFaceDown.DESCRIPTOR.fields_by_name)
    game = three_open()
    for text in ("KD", "5H"):
        told = card(text, HOLE)
        game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_FACE_DOWN))
    game.when(face_down()).then(hole_dealt())


def test_a_face_down_card_is_refused_in_order() -> None:
    game = laid().given(peek("AD"))
    for told, refusal in (
        (face_down(table_id="t9"), floor.FLOOR_REFUSAL_UNKNOWN_TABLE),
        (face_down(shoe_id="t1-s9"), floor.FLOOR_REFUSAL_UNKNOWN_SHOE),
        (face_down(), floor.FLOOR_REFUSAL_ALREADY_RECORDED),
        (face_down(2), floor.FLOOR_REFUSAL_OUT_OF_ORDER),
        (face_down(5), floor.FLOOR_REFUSAL_OUT_OF_ORDER),
        (face_down(4), floor.FLOOR_REFUSAL_NOT_FACE_DOWN),
    ):
        game.when(told).then(rejected(told, refusal))
    game = three_open()
    told = face_down(round_id="t1-9")
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NOT_FACE_DOWN))
    game = dealing()
    told = face_down(0)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NOT_FACE_DOWN))
    game = ready()
    game.state.shoes[S1].gone = 416
    told = face_down(416)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_SHOE_EMPTY))


def test_a_face_down_card_told_again_is_a_repeat() -> None:
    game = three_open()
    told = face_down()
    game.given(told)
    game.when(told).then_only(log.RequestRepeated)


def test_at_baccarat_no_card_lies_face_down() -> None:
    game = Deciding(SHOE, careful=False).given(table_opened())
    game.given(*(register(one) for one in PACKS), load(), open_card("AS", ""), burn(1))
    game.given(round_opened(), betting_closed(), sealed(), called())
    told = face_down(2)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NOT_FACE_DOWN))
    told = look(True)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_LOOK_NOT_CALLED))


# ---- looked at ---------------------------------------------------------------------------------


def test_bj_4_a_look_tells_yes_or_no_and_who_looked() -> None:
    game = laid().given(peek("AD"))
    game.when(look(False)).then(checked(False))
    assert (hole_of(game).blackjack, HOLE in game.state.shoes[S1].opened) == (False, False)


def test_a_look_is_refused_in_order() -> None:
    game = laid()
    for told, refusal in (
        (look(True, table_id="t9"), floor.FLOOR_REFUSAL_UNKNOWN_TABLE),
        (look(True, shoe_id="t1-s9"), floor.FLOOR_REFUSAL_UNKNOWN_SHOE),
        (look(True, round_id="t1-9"), floor.FLOOR_REFUSAL_LOOK_NOT_CALLED),
        (look(True), floor.FLOOR_REFUSAL_LOOK_NOT_CALLED),
    ):
        game.when(told).then(rejected(told, refusal))
    game.given(peek("AD"), look(True))
    told = look(True)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    game.given(voided())
    told = look(True)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_LOOK_NOT_CALLED))


def test_a_second_look_that_says_otherwise_is_a_fault_and_the_first_stands() -> None:
    game = laid().given(peek("AD"), look(False))
    game.when(look(True)).then(
        fault(
            floor.FLOOR_FAULT_CONTRADICTION,
            "blackjack",
            before="no blackjack",
            source=MANUAL,
            device="",
        )
    )
    assert not hole_of(game).blackjack


def test_a_custodian_does_not_look_at_a_card_on_the_floor() -> None:
    game = laid().given(peek("AD"))
    body = shoes.CheckHole(
        table_id=T, shoe_id=S1, round_id=R1, index=HOLE, source=shoes.CARD_SOURCE_VIRTUAL
    )
    game.when(body).then(log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW))


# ---- turned over -------------------------------------------------------------------------------


def test_bj_5_it_is_turned_over_when_that_is_called_and_no_card_leaves() -> None:
    game = laid("6D").given(reveal("6D"))
    game.when(card("KD", HOLE, source=MANUAL)).then(dealt(HOLE, "KD", H, source=MANUAL))
    shoe = game.state.shoes[S1]
    assert (shoe.gone, shoe.opened[HOLE].shown) == (4, True)
    told = card("KD", HOLE)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    game.when(card("QD", HOLE)).then(fault(floor.FLOOR_FAULT_CONTRADICTION, "QD", before="KD"))
    game.given(called(D, before=4))
    game.when(card("5H", 4)).then(dealt(4, "5H", D))


def test_vis_3_before_its_time_it_is_not_named() -> None:
    for game in (laid(), laid().given(peek("AD")), laid().given(peek("AD"), look(True))):
        told = card("KD", HOLE)
        game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_FACE_DOWN))
        assert HOLE not in game.state.shoes[S1].opened


def test_a_card_of_another_round_does_not_turn_it_over() -> None:
    game = laid("6D").given(reveal("6D"))
    told = card("KD", HOLE, round_id="t1-9")
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_FACE_DOWN))


@pytest.mark.parametrize(
    ("up_card", "looked", "turned", "right"),
    [("AD", False, "KD", "5D"), ("AD", True, "5D", "TD"), ("KD", False, "AS", "9S")],
)
def test_bj_4_a_card_that_contradicts_the_look_is_a_fault_and_can_be_told_again(
    up_card: str, looked: bool, turned: str, right: str
) -> None:
    game = laid(up_card).given(peek(up_card), look(looked), reveal(up_card))
    before = "blackjack" if looked else "no blackjack"
    game.when(card(turned, HOLE)).then(
        fault(floor.FLOOR_FAULT_CONTRADICTION, turned, before=before)
    )
    assert not hole_of(game).opened
    game.when(card(right, HOLE)).then(dealt(HOLE, right, H))


def test_a_card_that_fits_the_look_is_dealt() -> None:
    for looked, turned in ((True, "QH"), (False, "9H")):
        game = laid().given(peek("AD"), look(looked), reveal("AD"))
        game.when(card(turned, HOLE)).then(dealt(HOLE, turned, H))


def test_the_hole_card_counts_from_its_revealing() -> None:
    game = laid("6D").given(burn(0, *["KD"] * 8, reason=shoes.BURN_REASON_DROPPED))
    game.given(reveal("6D"))
    game.when(card("KD", HOLE)).then(fault(floor.FLOOR_FAULT_IMPOSSIBLE_CARD, "KD"))
    game.when(card("QD", HOLE)).then(dealt(HOLE, "QD", H))
    game.given(burn(0, *["QD"] * 7, reason=shoes.BURN_REASON_DROPPED), called(D, before=4))
    index = game.state.shoes[S1].gone
    game.when(card("QD", index)).then(fault(floor.FLOOR_FAULT_IMPOSSIBLE_CARD, "QD"))


# ---- places ------------------------------------------------------------------------------------


def test_a_card_names_its_round_and_its_place() -> None:
    game = dealing()
    for told in (open_card("TS", ""), open_card("TS"), open_card("TS", "", index=0)):
        game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_PLACE_NOT_NAMED))


def test_cards_go_to_the_hands_of_a_split_as_they_are_called() -> None:
    game = laid("6D").given(called(seat_hand(1), seat_hand(1, 2), before=4))
    game.when(card("2H", 4)).then(dealt(4, "2H", seat_hand(1)))
    game.when(card("3H", 5)).then(dealt(5, "3H", seat_hand(1, 2)))


def test_a_second_reading_of_a_card_must_agree() -> None:
    game = laid()
    told = card("TS", 0)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    game.when(card("TC", 0)).then(fault(floor.FLOOR_FAULT_CONTRADICTION, "TC", before="TS"))
    told = card("TC", 6)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_OUT_OF_ORDER))


# ---- early, and out of turn --------------------------------------------------------------------


def test_early_cards_are_held_as_long_as_they_cannot_be_the_hole_card() -> None:
    game = ready().given(round_opened())
    for index, text in enumerate(("TS", "AD", "9S")):
        game.when(card(text, index)).then_only(floor.FloorFaultFound, floor.OutcomeHeld)
        [found, kept] = game.answers
        assert isinstance(found, floor.FloorFaultFound)
        assert found.fault == floor.FLOOR_FAULT_EARLY_OUTCOME
        assert kept == held(index, text)
    told = card("KD", 3)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_FACE_DOWN))
    game.given(betting_closed(), sealed())
    game.when(called(*DEAL)).then(dealt(0, "TS", SEAT), dealt(1, "AD", D), dealt(2, "9S", SEAT))
    game.when(face_down()).then(hole_dealt())


def test_early_cards_of_a_voided_round_are_burned() -> None:
    game = ready().given(round_opened(), card("TS", 0), card("AD", 1))
    game.when(voided()).then(burned(0, "TS", "AD", reason=shoes.BURN_REASON_ROUND_OVER))


def test_a_card_while_seats_may_act_is_told_and_held_and_the_next_call_takes_it() -> None:
    game = laid("6D")
    game.when(card("5C", 4)).then(fault(floor.FLOOR_FAULT_CARD_OUT_OF_TURN, "5C"), held(4, "5C"))
    game.when(called(SEAT, before=4)).then(dealt(4, "5C", SEAT))


def test_a_card_behind_the_last_action_is_held_without_a_fault() -> None:
    game = laid("6D").given(reveal("6D"))
    game.when(card("5C", 4)).then(held(4, "5C"))
    game.given(card("KD", HOLE))
    game.when(called(D, before=4)).then(dealt(4, "5C", D))


def test_what_no_call_takes_is_burned_with_the_result() -> None:
    game = laid("6D").given(reveal("6D"), card("5C", 4), card("KD", HOLE))
    game.when(resolved()).then(burned(4, "5C", reason=shoes.BURN_REASON_NOT_CALLED))
    game.when(card("5D", 5)).then(burned(5, "5D", reason=shoes.BURN_REASON_NOT_CALLED))


# ---- the end of a round, and of a shoe ---------------------------------------------------------


@pytest.mark.parametrize("end", [voided, closed])
def test_a_round_that_ends_before_leaves_a_card_that_nobody_knows(
    end: Callable[[], Message],
) -> None:
    game = laid("6D").given(end())
    shoe = game.state.shoes[S1]
    assert (shoe.hole, shoe.gone, HOLE in shoe.opened) == (None, 4, False)
    told = card("KD", HOLE)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_OUT_OF_ORDER))
    assert HOLE not in shoe.opened


def test_the_count_of_the_shoe_finds_it() -> None:
    game = laid("6D").given(voided(), cut_card(), closed())
    left = list(pack(8))
    for text in ("TS", "6D", "9S"):
        left.remove(text)
    game.when(remaining(*left)).then_only(floor.ShoeCensus)
    [census] = game.answers
    assert isinstance(census, floor.ShoeCensus)
    assert (census.complete, census.seen) == (True, 416)


# ---- corrections -------------------------------------------------------------------------------


def test_a_card_that_lies_face_down_is_not_corrected() -> None:
    game = laid("6D")
    game.when(correction(HOLE, "KD")).then(
        correction_rejected(floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT)
    )
    game.given(reveal("6D"), card("KD", HOLE))
    game.when(correction(HOLE, "QD")).then_only(floor.CardCorrected)


def test_a_look_is_held_against_the_corrected_open_card() -> None:
    game = laid("AD").given(peek("AD"), look(False))
    game.when(correction(1, "9D")).then_only(floor.CardCorrected)
    game.given(reveal("AD"))
    game.when(card("KD", HOLE)).then(dealt(HOLE, "KD", H))


def test_what_is_recalled_is_not_awaited_any_more() -> None:
    game = laid("AD").given(peek("AD"), RECALLED)
    told = look(False)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_LOOK_NOT_CALLED))
    game.given(reveal("9D"), RECALLED)
    told = card("KD", HOLE)
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_FACE_DOWN))
    game.given(reveal("9D"))
    game.when(card("KD", HOLE)).then(dealt(HOLE, "KD", H))


# ---- before the log ----------------------------------------------------------------------------


def hidden(game: Deciding[ShoeState], fact: Fact) -> bool:
    body: Any = fact.body
    return may_lie_face_down(game.state, body)


def test_vis_3_an_edge_lets_no_card_into_the_log_that_may_lie_face_down() -> None:
    """Whatever it has read: what it knows of, and what it does not know of yet."""
    stages = [
        ready(),
        ready().given(round_opened()),
        ready().given(round_opened(), betting_closed(), sealed()),
        dealing(),
        dealing().given(card("TS", 0), card("AD", 1)),
        three_open(),
        laid(),
        laid().given(peek("AD"), look(False)),
    ]
    for game in stages:
        assert hidden(game, card("KD", HOLE))
    assert not hidden(laid().given(reveal("AD")), card("KD", HOLE))
    assert not hidden(laid().given(reveal("AD"), card("KD", HOLE)), card("KD", HOLE))
    assert hidden(laid().given(voided()), card("KD", HOLE))
    assert hidden(laid().given(closed()), card("KD", HOLE))


def test_an_edge_lets_every_card_pass_that_lies_open() -> None:
    before = ready().given(round_opened())
    for index in range(3):
        assert not hidden(before, card("5H", index))
        assert not hidden(dealing(), card("5H", index))
    assert hidden(before, card("5H", 5))  # With two seats that is the hole card.
    assert not hidden(dealing(), card("5H", 4))
    assert not hidden(laid(), card("5H", 0))
    assert not hidden(laid(), card("5H", 4))
    assert not hidden(laid().given(voided()), card("5H", 4))


def test_with_more_seats_the_hole_card_comes_later() -> None:
    game = ready().given(round_opened(), betting_closed(), sealed())
    game.given(called(SEAT, OTHER, D, SEAT, OTHER, H))
    assert [index for index in range(6) if hidden(game, card("5H", index))] == [5]
    game.given(card("2S", 0), card("2H", 1))
    assert [index for index in range(6) if hidden(game, card("5H", index))] == [5]


def test_an_edge_that_is_behind_takes_nothing_of_a_round_or_a_shoe_that_it_does_not_know() -> None:
    game = laid().given(closed())
    assert hidden(game, card("5H", 4, round_id="t1-2"))
    assert not hidden(game, card("5H", 4))  # Of a round that is over.
    assert hidden(game, card("5H", 4, round_id="t1-2", shoe_id="t1-s2"))
    assert not hidden(game, card("5H", 4, round_id="t1-1", shoe_id="t1-s0"))
    assert not hidden(game, card("5H", 4, table_id="t9"))


def test_at_baccarat_what_was_burned_face_down_is_not_named_either() -> None:
    game = Deciding(SHOE, careful=False).given(table_opened())
    game.given(*(register(one) for one in PACKS), load(), open_card("2S", ""), burn(2))
    assert [index for index in range(4) if hidden(game, card("5H", index, round_id=""))] == [1, 2]
    assert not hidden(game, open_card("5H", ""))


def test_the_caller_is_told_why() -> None:
    for game, fact, reason in (
        (three_open(), card("KD", HOLE), "CARD_FACE_DOWN"),
        (dealing(), open_card("KD"), "CARD_PLACE_NOT_NAMED"),
        (dealing(), open_card("KD", "", index=0), "CARD_PLACE_NOT_NAMED"),
    ):
        body: Any = fact.body
        with pytest.raises(Refused) as refused:
            _keep_face_down(game.state, body)
        assert refused.value.reason.name == reason


def test_its_state_is_a_snapshot() -> None:
    codec = StateCodec()
    for game in (laid(), laid().given(peek("AD"), look(False), reveal("AD"), card("9D", HOLE))):
        raw = codec.dumps(ShoeState, game.state)
        assert codec.loads(ShoeState, raw) == game.state


# ---- no hole card ------------------------------------------------------------------------------


def without_hole() -> Deciding[ShoeState]:
    """Where nobody looks, the deal ends with the seats' second cards."""
    game = ready().given(round_opened(), betting_closed(), sealed(), called(SEAT, D, SEAT))
    return game.given(card("TS", 0), card("6D", 1), card("9S", 2))


def test_without_a_hole_card_nothing_is_laid_face_down_and_the_next_card_is_open() -> None:
    game = without_hole()
    told = face_down()
    game.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NOT_FACE_DOWN))
    assert not hidden(game, card("5C", 3))
    game.when(called(D, before=3)).then()
    game.when(card("5C", 3)).then(dealt(3, "5C", D))


def test_without_a_hole_card_a_card_is_out_of_turn_until_the_dealers_second() -> None:
    game = without_hole()
    game.when(card("5C", 3)).then(fault(floor.FLOOR_FAULT_CARD_OUT_OF_TURN, "5C"), held(3, "5C"))
    game.when(called(D, before=3)).then(dealt(3, "5C", D))
    game.when(card("8C", 4)).then(held(4, "8C"))
