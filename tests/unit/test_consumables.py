"""Packs, wheels and dice from their receipt to their destruction, and the count of a shoe."""

from __future__ import annotations

from collections import Counter

import pytest

from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from services.games.cards import pack
from services.shoe.domain import consumables
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.floor_state import Whereabouts
from services.shoe.domain.state import ShoeState
from tests.unit import shoe_facts
from tests.unit.deciding import Deciding
from tests.unit.floor_facts import (
    PACKS,
    S1,
    S2,
    T,
    burn,
    card,
    closed,
    cut_card,
    dealing,
    fault,
    load,
    loaded,
    move,
    packed,
    register,
    rejected,
    remaining,
    table_opened,
    voided,
)

CARDS, WHEEL, DICE = (
    floor.CONSUMABLE_KIND_CARDS,
    floor.CONSUMABLE_KIND_WHEEL,
    floor.CONSUMABLE_KIND_DICE,
)
USE, OUT, INSPECTED, REJECTED, DESTROYED = (
    floor.MOVEMENT_PUT_INTO_USE,
    floor.MOVEMENT_TAKEN_OUT,
    floor.MOVEMENT_INSPECTED,
    floor.MOVEMENT_REJECTED,
    floor.MOVEMENT_DESTROYED,
)


def stored() -> Deciding[ShoeState]:
    return Deciding(SHOE).given(table_opened(), register("wheel-7", WHEEL, 0))


def moved(
    movement: floor.Movement.ValueType,
    table_id: str = "",
    consumable_id: str = "wheel-7",
    kind: floor.ConsumableKind.ValueType = WHEEL,
) -> floor.ConsumableMoved:
    return floor.ConsumableMoved(
        consumable_id=consumable_id,
        kind=kind,
        movement=movement,
        table_id=table_id,
        reason="as planned",
    )


def over() -> Deciding[ShoeState]:
    """A shoe whose last round is over: a 7, seven burned, four dealt; it is not counted."""
    log_ = dealing().given(*(card(text) for text in ("2S", "3S", "4S", "5S")))
    return log_.given(cut_card(), voided(), closed())


# ---- what is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "decks"), [(CARDS, 8), (WHEEL, 0), (DICE, 0)])
def test_a_consumable_is_known_from_its_receipt(
    kind: floor.ConsumableKind.ValueType, decks: int
) -> None:
    log_ = Deciding(SHOE)
    log_.when(register("a-1", kind, decks)).then(
        floor.ConsumableRegistered(consumable_id="a-1", kind=kind, decks=decks, remark="lot 7")
    )
    again = register("a-1", kind, decks)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_KNOWN_CONSUMABLE))


def test_cards_have_decks_and_nothing_else_has() -> None:
    for told in (register("a-1", CARDS, 0), register("a-1", WHEEL, 1), register("a-1", DICE, 1)):
        Deciding(SHOE).when(told).then(rejected(told, floor.FLOOR_REFUSAL_WRONG_DECKS))


def test_a_wheel_is_used_taken_out_inspected_and_destroyed() -> None:
    log_ = stored()
    log_.when(move("wheel-7", USE, T)).then(moved(USE, T))
    assert log_.state.consumables["wheel-7"].where is Whereabouts.IN_USE
    again = move("wheel-7", USE, T)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_IN_USE))
    log_.when(move("wheel-7", INSPECTED)).then(moved(INSPECTED, T))
    log_.when(move("wheel-7", OUT)).then(moved(OUT, T))
    again = move("wheel-7", OUT)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_NOT_IN_USE))
    log_.when(move("wheel-7", DESTROYED)).then(moved(DESTROYED))
    assert log_.state.consumables == {}
    for told in (move("wheel-7", INSPECTED), register("wheel-7", WHEEL, 0)):
        log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_DESTROYED))


def test_what_was_rejected_must_be_found_right_first() -> None:
    log_ = stored().given(move("wheel-7", USE, T))
    log_.when(move("wheel-7", REJECTED)).then(moved(REJECTED, T))
    assert log_.state.consumables["wheel-7"].where is Whereabouts.STORED
    told = move("wheel-7", USE, T)
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NOT_INSPECTED))
    log_.given(move("wheel-7", INSPECTED)).when(move("wheel-7", USE, T)).then(moved(USE, T))


def test_only_what_is_known_is_moved_to_a_table_that_is() -> None:
    told = move("none", OUT)
    stored().when(told).then(rejected(told, floor.FLOOR_REFUSAL_UNKNOWN_CONSUMABLE))
    told = move("wheel-7", USE, "t9")
    stored().when(told).then(rejected(told, floor.FLOOR_REFUSAL_UNKNOWN_TABLE))


def test_no_more_are_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumables, "MAX_CONSUMABLES", 1)
    monkeypatch.setattr(consumables, "MAX_DESTROYED", 1)
    log_ = stored()
    told = register("a-1", DICE, 0)
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_TOO_MANY_CONSUMABLES))
    log_.given(move("wheel-7", DESTROYED), register("a-1", DICE, 0), move("a-1", DESTROYED))
    assert list(log_.state.destroyed) == ["a-1"]


# ---- packs in shoes ----------------------------------------------------------------------------


def test_a_pack_in_a_shoe_that_deals_is_left_alone() -> None:
    for movement in (USE, OUT, INSPECTED, REJECTED, DESTROYED):
        told = move(PACKS[0], movement, T if movement == USE else "")
        loaded().when(told).then(rejected(told, floor.FLOOR_REFUSAL_IN_USE))


def test_packs_are_used_again_at_their_table_once_the_shoe_is_over() -> None:
    log_ = over()
    log_.when(load(2))
    opened = log_.answers[0]
    assert isinstance(opened, shoes.ShoeOpened)
    assert opened.shoe_id == S2
    assert list(log_.state.shoes) == [S2]  # The one before was never counted.


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ((), floor.FLOOR_REFUSAL_UNKNOWN_CONSUMABLE),
        (
            (register("new", CARDS, 1), move("new", DESTROYED)),
            floor.FLOOR_REFUSAL_DESTROYED,
        ),
        ((register("new", DICE, 0),), floor.FLOOR_REFUSAL_WRONG_KIND),
        (
            (register("new", CARDS, 1), move("new", REJECTED)),
            floor.FLOOR_REFUSAL_NOT_INSPECTED,
        ),
        (
            (table_opened(table_id="t2"), register("new", CARDS, 1), move("new", USE, "t2")),
            floor.FLOOR_REFUSAL_IN_USE,
        ),
    ],
)
def test_a_shoe_is_not_filled_with_a_pack_that_may_not_be_used(
    change: tuple[object, ...], refusal: floor.FloorRefusal.ValueType
) -> None:
    log_ = packed().given(*change)  # type: ignore[arg-type] # facts
    told = load(packs=(*PACKS[:7], "new"))
    log_.when(told).then(
        floor.FloorRejected(
            request_id=told.body.request_id,  # type: ignore[attr-defined] # a LoadShoe
            table_id=T,
            consumable_id="new",
            refusal=refusal,
        )
    )


def test_a_pack_in_another_tables_shoe_is_in_use() -> None:
    log_ = loaded().given(table_opened(table_id="t2"))
    told = load(table_id="t2")
    log_.when(told)
    [answer] = log_.answers
    assert isinstance(answer, floor.FloorRejected)
    assert (answer.consumable_id, answer.refusal) == (PACKS[0], floor.FLOOR_REFUSAL_IN_USE)


def test_a_pack_may_wait_at_its_table_before_it_is_put_into_the_shoe() -> None:
    log_ = packed().given(move(PACKS[0], USE, T))
    log_.when(load())
    assert isinstance(log_.answers[0], shoes.ShoeOpened)
    assert log_.state.consumables[PACKS[0]].shoe_id == S1


# ---- the count ---------------------------------------------------------------------------------

LEFT = Counter(pack(8)) - Counter(("7H", "2S", "3S", "4S", "5S"))
"""What was burned face down, and what was left."""


def cards_left(*without: str) -> list[str]:
    return list((LEFT - Counter(without)).elements())


def census(
    seen: int, missing: tuple[str, ...] = (), extra: tuple[str, ...] = (), *, over_: bool = True
) -> floor.ShoeCensus:
    return floor.ShoeCensus(
        table_id=T,
        shoe_id=S1,
        seen=seen,
        missing=missing,
        extra=extra,
        complete=not missing and not extra,
        over=over_,
    )


def to_inspect(why: str) -> list[floor.ConsumableMoved]:
    return [
        floor.ConsumableMoved(
            consumable_id=pack_,
            kind=CARDS,
            movement=REJECTED,
            shoe_id=S1,
            reason=why,
        )
        for pack_ in PACKS
    ]


def test_a_whole_shoe_is_whole() -> None:
    log_ = over()
    log_.when(remaining(*cards_left())).then(census(416))
    assert log_.state.shoes == {}
    assert not any(one.rejected for one in log_.state.consumables.values())
    again = remaining()
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_SHOE_OVER))


def test_missing_ranks_are_told_and_the_packs_must_be_inspected() -> None:
    log_ = over()
    log_.when(remaining(*cards_left("KD", "KD", "9C"))).then(
        census(413, missing=("KD", "KD", "9C")),
        fault(floor.FLOOR_FAULT_CENSUS, "3 missing, 0 too many", round_id="", device="s"),
        *to_inspect("3 missing, 0 too many"),
    )
    told = load(2)
    log_.when(told)
    [answer] = log_.answers
    assert isinstance(answer, floor.FloorRejected)
    assert answer.refusal == floor.FLOOR_REFUSAL_NOT_INSPECTED
    log_.given(*(move(one, INSPECTED) for one in PACKS)).when(load(2))
    assert isinstance(log_.answers[0], shoes.ShoeOpened)


def test_a_card_too_many_is_told() -> None:
    over().when(remaining(*cards_left("KD"), "AS")).then(
        census(416, missing=("KD",), extra=("AS",)),
        fault(floor.FLOOR_FAULT_CENSUS, "1 missing, 1 too many", round_id="", device="s"),
        *to_inspect("1 missing, 1 too many"),
    )


def test_a_shoe_is_counted_in_parts() -> None:
    log_ = over()
    cards = cards_left()
    log_.when(remaining(*cards[:200], last=False))
    [part] = log_.answers
    assert isinstance(part, floor.ShoeCensus)
    assert (part.seen, part.over, part.complete) == (205, False, False)
    assert Counter(part.missing) == Counter(cards[200:])
    log_.when(remaining(*cards[200:], last=False)).then(census(416))


def test_a_card_too_many_in_the_first_part_stays_one() -> None:
    log_ = over().given(remaining(*["AS"] * 9, last=False))
    log_.when(remaining(*cards_left(), last=False)).then(
        census(425, extra=("AS",) * 9, over_=False)
    )


def test_a_burned_card_that_was_seen_is_counted_once() -> None:
    log_ = dealing().given(burn(0, "QS", reason=shoes.BURN_REASON_DROPPED))
    log_.given(cut_card(), voided(), closed())
    left = Counter(pack(8)) - Counter(("7H", "QS"))
    log_.when(remaining(*left.elements())).then(census(416))


def test_only_a_shoe_on_the_floor_that_is_over_is_counted() -> None:
    for log_, told, refusal in (
        (Deciding(SHOE), remaining(), floor.FLOOR_REFUSAL_UNKNOWN_TABLE),
        (dealing(), remaining(), floor.FLOOR_REFUSAL_SHOE_RUNS),
        (over(), remaining(shoe_id=S2), floor.FLOOR_REFUSAL_UNKNOWN_SHOE),
        (over(), remaining("1S"), floor.FLOOR_REFUSAL_IMPOSSIBLE),
        (shoe_facts.ready(), remaining(), floor.FLOOR_REFUSAL_NOT_ON_FLOOR),
    ):
        log_.when(told).then(rejected(told, refusal))
