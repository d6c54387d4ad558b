"""A shoe on the floor: filled with packs, its cards told one by one (BAC-2, BAC-3)."""

from __future__ import annotations

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.games import catalogue
from services.games.cards import CARDS
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.state import Standing
from services.shoe.domain.wanted import wanted
from tests.unit import shoe_facts
from tests.unit.deciding import START_US, Deciding, request_id
from tests.unit.floor_facts import (
    BANKER,
    FOUR,
    MANUAL,
    PACKS,
    PLAYER,
    R1,
    R2,
    S1,
    S2,
    T,
    burn,
    burned,
    called,
    card,
    closed,
    correction,
    correction_rejected,
    cut_card,
    dealing,
    dealt,
    fault,
    held,
    load,
    loaded,
    packed,
    ready,
    register,
    rejected,
    resolved,
    round_opened,
    sealed,
    table_opened,
    voided,
)

EARLY = floor.FLOOR_FAULT_EARLY_OUTCOME


# ---- the shoe ----------------------------------------------------------------------------------


def test_packs_become_a_shoe_without_seal_or_commitments() -> None:
    opened = shoes.ShoeOpened(table_id=T, shoe_id=S1, number=1, cards=416, cut_at=409, packs=PACKS)
    moved = [
        floor.ConsumableMoved(
            consumable_id=pack,
            kind=floor.CONSUMABLE_KIND_CARDS,
            movement=floor.MOVEMENT_PUT_INTO_USE,
            table_id=T,
            shoe_id=S1,
        )
        for pack in PACKS
    ]
    packed().when(load()).then(opened, *moved)


def test_nothing_is_asked_of_the_custodian_for_a_table_on_the_floor() -> None:
    for at in (packed(), loaded(), ready(), dealing(), dealing().given(voided(), closed())):
        assert wanted(at.state) == []


def test_a_seal_is_nothing_to_a_table_on_the_floor() -> None:
    packed().when(shoe_facts.seal()).then(log.InputIgnored(reason=log.IGNORED_REASON_NOT_NOW))


def test_dt_2_a_game_without_a_burn_begins_at_once() -> None:
    log_ = Deciding(SHOE).given(table_opened(catalogue.dragon_tiger()))
    log_.given(*(register(pack) for pack in PACKS)).when(load())
    opened = log_.answers[0]
    assert isinstance(opened, shoes.ShoeOpened)
    assert opened.ready
    assert log_.state.shoes[S1].standing is Standing.READY


@pytest.mark.parametrize(
    ("first", "down"), [("AS", 1), ("7H", 7), ("TD", 10), ("JC", 10), ("KS", 10)]
)
def test_bac_2_the_first_card_says_how_many_are_burned(first: str, down: int) -> None:
    log_ = loaded()
    log_.when(card(first, "")).then(
        floor.FirstCardShown(
            table_id=T,
            shoe_id=S1,
            card=first,
            burn=down,
            source=shoes.CARD_SOURCE_DEVICE,
            device="scanner-1",
        )
    )
    for wrong in {1, 7, 10, 9} - {down}:
        told = burn(wrong)
        log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NO_BURN))
    early = card("2S", "")
    log_.when(early).then(rejected(early, floor.FLOOR_REFUSAL_BURN_AWAITED))
    log_.when(burn(down)).then(
        burned(0, first, reason=shoes.BURN_REASON_SHOE_START, face_down=down, source=MANUAL)
    )
    assert log_.state.shoes[S1].gone == down + 1
    assert log_.state.shoes[S1].standing is Standing.READY


def test_bac_2_a_shoe_is_not_burned_before_its_first_card_nor_twice() -> None:
    for log_ in (loaded(), ready()):
        told = burn(7)
        log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NO_BURN))


# ---- cards -------------------------------------------------------------------------------------


def test_cards_go_one_by_one_to_the_hands_that_were_called() -> None:
    log_ = dealing()
    for at, (text, hand) in enumerate(zip(("2S", "3S", "4S", "5S"), FOUR, strict=True)):
        source = shoes.CARD_SOURCE_DEVICE if at % 2 else MANUAL
        log_.when(card(text, source=source)).then(dealt(8 + at, text, hand, source=source))
    assert log_.state.shoes[S1].call is None
    log_.given(called(PLAYER, before=4)).when(card("6S")).then(dealt(12, "6S", PLAYER))
    log_.given(called(BANKER, before=5)).when(card("7S")).then(dealt(13, "7S", BANKER))


def test_a_card_that_names_no_round_is_for_the_one_that_runs() -> None:
    dealing().when(card("2S", "")).then(dealt(8, "2S", PLAYER))


def test_a_card_must_be_the_next_one() -> None:
    log_ = dealing().given(card("2S", index=8))
    for told in (card("3S", index=10), card("3S", index=3)):
        log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_OUT_OF_ORDER))
    log_.when(card("3S", index=9)).then(dealt(9, "3S", BANKER))


def test_a_card_that_is_told_once_more_must_agree() -> None:
    log_ = dealing().given(card("2S"), card("3S"))
    again = card("2S", index=8, source=MANUAL)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    log_.when(card("2H", index=8)).then(fault(floor.FLOOR_FAULT_CONTRADICTION, "2H", before="2S"))
    assert log_.state.shoes[S1].opened[8].card == "2S"


def test_a_contradiction_about_a_round_that_is_over_stops_no_other() -> None:
    log_ = dealing().given(card("2S"), card("3S"), card("4S"), card("5S"), resolved(), closed())
    log_.when(card("2H", "", index=8)).then(
        fault(floor.FLOOR_FAULT_CONTRADICTION, "2H", before="2S", round_id="")
    )
    log_.given(round_opened(2)).when(card("2H", R2, index=8)).then(
        fault(floor.FLOOR_FAULT_CONTRADICTION, "2H", before="2S", round_id="")
    )


def test_what_is_no_card_is_refused() -> None:
    log_ = dealing()
    for text in ("", "1S", "10S", "XX", "S2"):
        told = card(text)
        log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_IMPOSSIBLE))


def test_a_ninth_copy_cannot_be_and_the_right_card_is_taken_in_its_place() -> None:
    log_ = dealing("KS")  # After a king ten are burned: the next card is the twelfth.
    log_.given(*(card("KS") for _ in range(4)))
    log_.given(called(PLAYER, before=4), card("KS"), called(BANKER, before=5), card("KS"))
    log_.given(resolved(), closed(), round_opened(2), sealed(2), called(number=2))
    log_.when(card("KS", R2)).then(dealt(17, "KS", PLAYER, R2))
    impossible = fault(floor.FLOOR_FAULT_IMPOSSIBLE_CARD, "KS", round_id=R2)
    log_.when(card("KS", R2)).then(impossible)
    log_.when(card("KS", R2)).then(impossible)
    log_.when(card("KH", R2)).then(dealt(18, "KH", BANKER, R2))


def test_a_card_before_the_stakes_are_sealed_is_early_and_held() -> None:
    log_ = ready().given(round_opened())
    log_.when(card("2S", at_us=777)).then(
        fault(EARLY, "2S", happened_us=START_US + 777), held(8, "2S")
    )
    log_.when(card("3S"))
    told = log_.answers[0]
    assert isinstance(told, floor.FloorFaultFound)
    assert told.happened_us == log_.last.edge_us
    log_.given(sealed()).when(called()).then(dealt(8, "2S", PLAYER), dealt(9, "3S", BANKER))
    log_.when(card("4S")).then(dealt(10, "4S", PLAYER))


def test_a_card_between_seal_and_call_is_held_without_a_fault() -> None:
    log_ = ready().given(round_opened(), sealed())
    log_.when(card("2S")).then(held(8, "2S"))
    again = card("2S", index=8)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    log_.when(called()).then(dealt(8, "2S", PLAYER))


def test_cards_ahead_of_their_call_wait_for_it_and_what_no_call_takes_is_burned() -> None:
    log_ = ready().given(round_opened(), sealed())
    log_.given(*(card(text) for text in ("2S", "3S", "4S", "5S", "6S", "7S")))
    too_many = card("8S")
    log_.when(too_many).then(rejected(too_many, floor.FLOOR_REFUSAL_TOO_MANY_CARDS))
    log_.when(called()).then(*(dealt(8 + at, f"{2 + at}S", FOUR[at]) for at in range(4)))
    log_.when(called(PLAYER, before=4)).then(dealt(12, "6S", PLAYER))
    log_.when(resolved()).then(burned(13, "7S", reason=shoes.BURN_REASON_NOT_CALLED))
    log_.when(card("8S")).then(burned(14, "8S", reason=shoes.BURN_REASON_NOT_CALLED))
    assert log_.state.shoes[S1].gone == 15


def test_what_is_held_is_burned_with_its_round() -> None:
    log_ = ready().given(round_opened(), sealed(), card("2S"), card("3S"))
    log_.when(voided()).then(burned(8, "2S", "3S", reason=shoes.BURN_REASON_ROUND_OVER))
    log_.when(card("4S")).then(burned(10, "4S", reason=shoes.BURN_REASON_ROUND_OVER))
    log_.given(closed()).when(card("5S")).then(
        burned(11, "5S", reason=shoes.BURN_REASON_ROUND_OVER)
    )
    log_.when(card("6S", "")).then(burned(12, "6S", reason=shoes.BURN_REASON_BETWEEN_ROUNDS))


def test_a_card_that_a_device_saw_before_betting_closed_is_early() -> None:
    log_ = ready().given(round_opened())
    log_.given(table.BettingClosed(table_id=T, round_id=R1, cut_off_us=START_US + 500))
    log_.given(sealed(), called())
    log_.when(card("2S", at_us=499)).then(
        fault(EARLY, "2S", happened_us=START_US + 499), dealt(8, "2S", PLAYER)
    )
    log_.when(card("3S", at_us=500)).then(dealt(9, "3S", BANKER))


def test_the_last_card_and_then_none() -> None:
    log_ = ready()
    shoe = log_.state.shoes[S1]
    shoe.gone = 414
    log_.given(round_opened(), sealed())
    log_.when(called()).then(shoes.ShoeRanOut(table_id=T, shoe_id=S1, round_id=R1))
    log_.given(voided(), card("2S"), card("3S"))
    told = card("4S")
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_SHOE_EMPTY))


# ---- burns and the cut card --------------------------------------------------------------------


def test_a_dropped_card_is_burned_for_its_reason_seen_or_not() -> None:
    log_ = dealing()
    log_.when(burn(0, "QS", reason=shoes.BURN_REASON_DROPPED)).then(
        burned(8, "QS", reason=shoes.BURN_REASON_DROPPED, source=MANUAL)
    )
    log_.when(burn(1, reason=shoes.BURN_REASON_PROCEDURE)).then(
        burned(0, reason=shoes.BURN_REASON_PROCEDURE, face_down=1, source=MANUAL)
    )
    log_.when(card("2S")).then(dealt(10, "2S", PLAYER))


def test_a_burn_is_face_down_or_seen_and_for_a_reason() -> None:
    log_ = dealing()
    for told in (
        burn(0, reason=shoes.BURN_REASON_DROPPED),
        burn(1, "QS", reason=shoes.BURN_REASON_DROPPED),
        burn(1, reason=shoes.BURN_REASON_NOT_CALLED),
        burn(0, *["QS"] * 11, reason=shoes.BURN_REASON_DROPPED),
    ):
        log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NO_BURN))
    told = burn(0, "1S", reason=shoes.BURN_REASON_DROPPED)
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_IMPOSSIBLE))


def test_a_card_of_another_round_waits_for_what_is_held() -> None:
    """It lies behind the held card, which the running round may still take."""
    log_ = ready().given(round_opened(), sealed(), card("2S"))
    told = card("9D", index=9, round_id="t1-7")
    assert isinstance(told.body, floor.RecordCard)
    told.body.waits_for_held = True
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_CARDS_HELD))
    log_.when(called()).then(dealt(8, "2S", PLAYER))


def test_a_burn_waits_for_what_is_held_and_for_cards() -> None:
    log_ = ready().given(round_opened(), sealed(), card("2S"))
    told = burn(1, reason=shoes.BURN_REASON_DROPPED)
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_CARDS_HELD))
    log_.given(called())
    log_.state.shoes[S1].gone = 413
    log_.when(burn(1, reason=shoes.BURN_REASON_DROPPED)).then(
        burned(0, reason=shoes.BURN_REASON_DROPPED, face_down=1, source=MANUAL),
        shoes.ShoeRanOut(table_id=T, shoe_id=S1, round_id=R1),
    )
    told = burn(3, reason=shoes.BURN_REASON_DROPPED)
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_SHOE_EMPTY))


def test_a_ninth_copy_cannot_be_burned_either() -> None:
    log_ = dealing()
    told = burn(0, *["QS"] * 9, reason=shoes.BURN_REASON_DROPPED)
    log_.when(told).then(fault(floor.FLOOR_FAULT_IMPOSSIBLE_CARD, "QS", source=MANUAL, device=""))


def test_bac_3_the_dealers_entry_decides_where_the_cut_card_is() -> None:
    log_ = dealing()
    log_.state.shoes[S1].gone = 409  # By its depth it would be out.
    log_.when(card("2S")).then(dealt(409, "2S", PLAYER))
    log_.when(cut_card()).then(
        shoes.CutCardReached(table_id=T, shoe_id=S1, round_id=R1, rounds_left=0)
    )
    again = cut_card()
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_CUT_CARD_OUT))
    log_.given(card("3S"), card("4S"), card("5S"), resolved())
    log_.when(closed()).then(shoes.ShoeClosed(table_id=T, shoe_id=S1, next_number=2))


def test_bac_3_a_cut_card_between_two_rounds_leaves_one() -> None:
    log_ = dealing().given(voided(), closed())
    log_.when(cut_card()).then(
        shoes.CutCardReached(table_id=T, shoe_id=S1, round_id=R1, rounds_left=1)
    )
    log_.given(round_opened(2), voided(2))
    log_.when(closed(2)).then(shoes.ShoeClosed(table_id=T, shoe_id=S1, next_number=2))


def test_bac_3_a_cut_card_before_the_first_round_of_a_table_leaves_one() -> None:
    log_ = ready()
    log_.when(cut_card()).then(
        shoes.CutCardReached(table_id=T, shoe_id=S1, round_id="", rounds_left=1)
    )
    log_.given(round_opened(1), voided(1))
    log_.when(closed(1)).then(shoes.ShoeClosed(table_id=T, shoe_id=S1, next_number=2))


# ---- who may tell what, and when ---------------------------------------------------------------


def test_what_is_told_of_a_shoe_must_be_of_one_that_stands_on_the_floor() -> None:
    virtual = shoe_facts.ready()
    for make in (lambda s: card("2S", shoe_id=s), lambda s: burn(1, shoe_id=s), cut_card):
        for log_, shoe_id, refusal in (
            (Deciding(SHOE), S1, floor.FLOOR_REFUSAL_UNKNOWN_TABLE),
            (packed(), S1, floor.FLOOR_REFUSAL_UNKNOWN_SHOE),
            (ready(), S2, floor.FLOOR_REFUSAL_UNKNOWN_SHOE),
            (over(), S1, floor.FLOOR_REFUSAL_SHOE_OVER),
            (virtual, S1, floor.FLOOR_REFUSAL_NOT_ON_FLOOR),
        ):
            told = make(shoe_id)
            log_.when(told).then(rejected(told, refusal))


def over() -> Deciding[object]:
    """A shoe that is over and not counted."""
    return dealing().given(cut_card(), voided(), closed())  # type: ignore[return-value] # any state


def test_a_request_is_decided_once() -> None:
    log_ = dealing()
    log_.when(card("2S", number=5)).then(dealt(8, "2S", PLAYER))
    first = log_.last.position
    log_.when(card("2S", number=5)).then(
        log.RequestRepeated(
            request_id=request_id(5),
            first=entry_pb2.Position(segment=1, sequence=first.sequence, index=first.index),
        )
    )
    other = card("3S", number=5)
    log_.when(other).then(rejected(other, floor.FLOOR_REFUSAL_REQUEST_ID_REUSED))
    log_.when(card("3S")).then(dealt(9, "3S", BANKER))


def test_a_request_from_another_time_is_refused() -> None:
    log_ = dealing()
    for offset_us, refusal in (
        (61_000_000, floor.FLOOR_REFUSAL_REQUEST_ID_AHEAD),
        (-25 * 3_600_000_000, floor.FLOOR_REFUSAL_REQUEST_EXPIRED),
    ):
        told = card("2S")
        told.body.request_id = request_id(9, offset_us)  # type: ignore[attr-defined] # a RecordCard
        log_.when(told).then(rejected(told, refusal))


# ---- filling a shoe ----------------------------------------------------------------------------


def test_a_shoe_is_filled_where_one_is_awaited() -> None:
    for log_, told, refusal in (
        (Deciding(SHOE), load(), floor.FLOOR_REFUSAL_UNKNOWN_TABLE),
        (
            Deciding(SHOE).given(table_opened(origin=spec_pb2.OUTCOME_ORIGIN_VIRTUAL)),
            load(),
            floor.FLOOR_REFUSAL_NOT_ON_FLOOR,
        ),
        (
            Deciding(SHOE).given(table_opened(catalogue.roulette())),
            load(),
            floor.FLOOR_REFUSAL_NOT_ON_FLOOR,
        ),
        (packed(), load(2), floor.FLOOR_REFUSAL_SHOE_NOT_AWAITED),
        (loaded(), load(), floor.FLOOR_REFUSAL_SHOE_NOT_AWAITED),
        (packed(), load(decks=6), floor.FLOOR_REFUSAL_WRONG_DECKS),
        (packed(), load(packs=PACKS[:7]), floor.FLOOR_REFUSAL_WRONG_DECKS),
        (packed(), load(packs=(*PACKS[:7], PACKS[0])), floor.FLOOR_REFUSAL_WRONG_DECKS),
    ):
        log_.when(told).then(rejected(told, refusal))


def test_a_shoe_is_over_at_its_closed_table_and_awaited_when_that_opens_again() -> None:
    log_ = ready().given(table.TableClosed(table_id=T))
    assert log_.state.shoes[S1].standing is Standing.CLOSED
    log_.given(table_opened()).when(load(2))
    assert isinstance(log_.answers[0], shoes.ShoeOpened)
    assert list(log_.state.shoes) == [S2]


# ---- corrections -------------------------------------------------------------------------------


def test_a_misread_card_of_the_running_round_is_corrected() -> None:
    log_ = dealing().given(card("2S"), card("3S"))
    log_.when(correction(9, "3H")).then(
        floor.CardCorrected(table_id=T, shoe_id=S1, round_id=R1, index=9, card="3H", read_as="3S")
    )
    assert log_.state.shoes[S1].opened[9].card == "3H"
    again = card("3H", index=9)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_ALREADY_RECORDED))


def test_a_held_card_is_corrected_before_its_call_takes_it() -> None:
    log_ = ready().given(round_opened(), sealed(), card("2S"))
    log_.when(correction(8, "2H")).then_only(floor.CardCorrected)
    log_.when(called()).then(dealt(8, "2H", PLAYER))


def test_only_what_was_dealt_in_the_running_round_is_corrected() -> None:
    log_ = dealing().given(card("2S"), burn(0, "QS", reason=shoes.BURN_REASON_DROPPED))
    for told, refusal in (
        (correction(0, "8H"), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (correction(3, "8H"), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (correction(9, "8H"), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (correction(10, "8H"), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (correction(8, "1S"), floor.FLOOR_REFUSAL_IMPOSSIBLE),
        (correction(8, "2S"), floor.FLOOR_REFUSAL_ALREADY_RECORDED),
    ):
        log_.when(told).then(correction_rejected(refusal))
    log_.given(voided()).when(correction(8, "8H")).then(
        correction_rejected(floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT)
    )


def test_a_correction_keeps_the_census() -> None:
    log_ = dealing("KS")
    log_.given(burn(0, *["KS"] * 7, reason=shoes.BURN_REASON_DROPPED), card("2S"))
    log_.when(correction(18, "KS")).then(correction_rejected(floor.FLOOR_REFUSAL_IMPOSSIBLE))
    log_.when(correction(18, "KH")).then_only(floor.CardCorrected)


def test_a_recalled_card_is_held_when_it_comes_all_the_same() -> None:
    from sabot.rules.v1 import events_pb2 as rules  # noqa: PLC0415 - for this test alone

    log_ = dealing().given(*(card(text) for text in ("2S", "3S", "4S", "5S")))
    log_.given(called(PLAYER, before=4), correction(8, "6S"))
    log_.given(rules.DrawRecalled(table_id=T, round_id=R1, shoe_id=S1))
    log_.when(card("9S")).then(held(12, "9S"))
    log_.when(called(BANKER, before=4)).then(dealt(12, "9S", BANKER))


def test_every_card_can_be_told() -> None:
    log_ = ready()
    log_.given(round_opened(), sealed())
    for text in CARDS:
        log_.given(called(PLAYER)).when(card(text))
        assert isinstance(log_.answers[0], shoes.CardsDealt)
