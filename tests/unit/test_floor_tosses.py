"""Spins and rolls that the floor tells (ROU-6, ROU-7, SIC-1)."""

from __future__ import annotations

from typing import Any

import pytest

from sabot.log.v1 import entry_pb2
from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from services.games import catalogue
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.state import MAX_ENDED, ShoeState
from services.shoe.domain.wanted import wanted
from tests.unit.deciding import START_US, Deciding, Fact, request_id
from tests.unit.floor_facts import (
    MANUAL,
    R1,
    R2,
    T,
    closed,
    correction_rejected,
    fault,
    invalidated,
    no_spin,
    outcome_correction,
    rejected,
    roll,
    roll_called,
    round_opened,
    sealed,
    spin,
    spin_called,
    spun,
    table_opened,
    voided,
)

EARLY = floor.FLOOR_FAULT_EARLY_OUTCOME
NOT_CALLED = floor.FLOOR_REFUSAL_NOT_CALLED
WITH = shoes.SPIN_DIRECTION_WITH


def wheel() -> Deciding[ShoeState]:
    return Deciding(SHOE).given(table_opened(catalogue.roulette()), round_opened(shoe_id=""))


def called_spin() -> Deciding[ShoeState]:
    return wheel().given(sealed(), spin_called())


def dice() -> Deciding[ShoeState]:
    return Deciding(SHOE).given(table_opened(catalogue.sicbo()), round_opened(shoe_id=""))


def called_roll() -> Deciding[ShoeState]:
    return dice().given(sealed(), roll_called())


def rolled(*numbers: int, attempt: int = 1) -> shoes.DiceRolled:
    return shoes.DiceRolled(table_id=T, round_id=R1, attempt=attempt, dice=numbers, source=MANUAL)


def fault_of_wheel(
    what: floor.FloorFault.ValueType, told: str, *, before: str = "", happened_us: int = 0
) -> floor.FloorFaultFound:
    return fault(what, told, before=before, happened_us=happened_us, shoe_id="", device="wheel-7")


def held(
    number: int,
    invalid: shoes.InvalidReason.ValueType = shoes.INVALID_REASON_UNSPECIFIED,
) -> floor.OutcomeHeld:
    return floor.OutcomeHeld(
        table_id=T,
        round_id=R1,
        attempt=1,
        numbers=[number],
        invalid=invalid,
        source=shoes.CARD_SOURCE_DEVICE,
        device="wheel-7",
    )


# ---- called ------------------------------------------------------------------------------------


def test_a_called_spin_waits_for_the_floor_and_says_where_it_comes_from() -> None:
    log_ = called_spin()
    assert wanted(log_.state) == []
    log_.when(spin(17)).then(spun(17))
    called_spin().when(spin(0, source=MANUAL)).then(spun(0, source=MANUAL))


def test_sic_1_a_called_roll_is_told() -> None:
    called_roll().when(roll(6, 1, 6)).then(rolled(6, 1, 6))


@pytest.mark.parametrize(
    ("turns", "direction", "reason"),
    [
        (2, shoes.SPIN_DIRECTION_AGAINST, shoes.INVALID_REASON_TOO_FEW_TURNS),
        (0, shoes.SPIN_DIRECTION_AGAINST, shoes.INVALID_REASON_TOO_FEW_TURNS),
        (9, WITH, shoes.INVALID_REASON_WRONG_DIRECTION),
    ],
)
def test_rou_6_an_invalid_spin_is_told_as_such_and_another_is_called(
    turns: int, direction: shoes.SpinDirection.ValueType, reason: shoes.InvalidReason.ValueType
) -> None:
    log_ = called_spin()
    log_.when(spin(12, turns=turns, direction=direction)).then(invalidated(reason))
    again = spin(12)
    log_.when(again).then(rejected(again, NOT_CALLED))
    log_.given(spin_called(2)).when(spin(7, attempt=2)).then(spun(7, attempt=2))


def test_rou_6_three_turns_against_the_wheel_are_enough() -> None:
    called_spin().when(spin(12, turns=3)).then(spun(12))


def test_a_second_reading_must_agree() -> None:
    log_ = called_spin().given(spin(12))
    again = spin(12, source=MANUAL)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    log_.when(spin(13)).then(fault_of_wheel(floor.FLOOR_FAULT_CONTRADICTION, "13", before="12"))
    log_ = called_roll().given(roll(1, 2, 3))
    log_.when(roll(1, 2, 4))
    told = log_.answers[0]
    assert isinstance(told, floor.FloorFaultFound)
    assert (told.told, told.told_before) == ("1-2-4", "1-2-3")


def test_what_is_not_called_is_refused() -> None:
    other = spin(1, attempt=2)
    called_spin().when(other).then(rejected(other, NOT_CALLED))
    for log_, told in (
        (called_spin(), spin(1, round_id=R2)),
        (called_spin().given(voided()), spin(1)),
        (called_spin().given(voided(), closed()), spin(1)),
        (called_spin(), roll(1, 2, 3)),
        (called_roll(), spin(1)),
        (wheel(), spin(1, attempt=2)),
    ):
        log_.when(told).then(rejected(told, NOT_CALLED))


def test_what_cannot_be_is_refused_and_the_round_goes_on() -> None:
    log_ = called_spin()
    told = spin(37)
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_IMPOSSIBLE))
    log_.when(spin(36)).then(spun(36))
    for numbers in ((1, 2), (1, 2, 7), (0, 1, 2), (1, 2, 3, 4)):
        told = roll(*numbers)
        called_roll().when(told).then(rejected(told, floor.FLOOR_REFUSAL_IMPOSSIBLE))


def test_drawn_outcomes_are_not_told() -> None:
    virtual = Deciding(SHOE).given(
        table_opened(catalogue.roulette(), spec_pb2.OUTCOME_ORIGIN_VIRTUAL),
        round_opened(shoe_id=""),
        sealed(),
        spin_called(),
    )
    for told in (spin(1), no_spin()):
        virtual.when(told).then(rejected(told, floor.FLOOR_REFUSAL_NOT_ON_FLOOR))
        Deciding(SHOE).when(told).then(rejected(told, floor.FLOOR_REFUSAL_UNKNOWN_TABLE))


def test_a_repeat_of_a_refused_spin_stays_refused_once_it_is_called() -> None:
    log_ = wheel().given(sealed())
    told = spin(5, attempt=2, request=7)
    log_.when(told).then(rejected(told, NOT_CALLED))
    first = log_.last.position
    log_.given(spin_called(1), spin(3, turns=1), spin_called(2))
    log_.when(spin(5, attempt=2, request=7)).then(
        log.RequestRepeated(
            request_id=request_id(7),
            first=entry_pb2.Position(segment=1, sequence=first.sequence, index=0),
        )
    )
    toss = log_.state.tables[T].toss
    assert toss is not None
    assert toss.numbers == []
    log_.when(spin(6, attempt=2)).then(spun(6, attempt=2))


# ---- before it is called -----------------------------------------------------------------------


def test_a_spin_before_the_stakes_are_sealed_is_early_and_held_for_its_call() -> None:
    log_ = wheel()
    log_.when(spin(17, at_us=900)).then(
        fault_of_wheel(EARLY, "17", happened_us=START_US + 900),
        held(17),
    )
    again = spin(17)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    log_.when(spin(18)).then(fault_of_wheel(floor.FLOOR_FAULT_CONTRADICTION, "18", before="17"))
    log_.given(sealed()).when(spin_called()).then(spun(17))


def test_a_spin_between_seal_and_call_is_held_without_a_fault() -> None:
    log_ = wheel().given(sealed())
    log_.when(spin(17)).then(held(17))
    log_.when(spin_called()).then(spun(17))


def test_an_early_spin_that_does_not_count_is_spun_again() -> None:
    log_ = wheel().given(sealed())
    log_.when(spin(17, turns=1)).then(held(17, shoes.INVALID_REASON_TOO_FEW_TURNS))
    log_.when(spin_called()).then(invalidated(shoes.INVALID_REASON_TOO_FEW_TURNS))
    log_.when(spin_called(2)).then()
    log_.when(spin(18, attempt=2)).then(spun(18, attempt=2))


def test_a_call_that_crossed_the_end_of_its_round_takes_nothing_that_is_held() -> None:
    log_ = wheel().given(sealed(), spin(17, turns=1))
    log_.when(spin_called()).then(invalidated(shoes.INVALID_REASON_TOO_FEW_TURNS))
    log_.given(voided()).when(spin_called(2)).then()


def test_an_early_roll_is_held_too_and_goes_with_its_round() -> None:
    log_ = dice().given(sealed())
    log_.when(roll(1, 2, 3))
    assert isinstance(log_.answers[0], floor.OutcomeHeld)
    log_.when(roll_called()).then(rolled(1, 2, 3))
    log_ = dice().given(roll(1, 2, 3), voided(), closed(), round_opened(2, shoe_id=""))
    assert log_.state.tables[T].at_floor.early is None


def test_a_spin_that_a_device_saw_before_betting_closed_is_early() -> None:
    log_ = wheel().given(
        table.BettingClosed(table_id=T, round_id=R1, cut_off_us=START_US + 500), sealed()
    )
    log_.given(spin_called()).when(spin(17, at_us=499)).then(
        fault_of_wheel(EARLY, "17", happened_us=START_US + 499),
        spun(17),
    )


# ---- declared invalid --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_", "call", "told"),
    [
        (called_spin(), spin_called(2), spin(7, attempt=2)),
        (called_roll(), roll_called(2), roll(1, 1, 2, attempt=2)),
    ],
)
def test_a_dealer_declares_that_it_does_not_count(
    log_: Deciding[ShoeState], call: Fact, told: Fact
) -> None:
    log_.when(no_spin()).then(invalidated(shoes.INVALID_REASON_DECLARED))
    again = no_spin()
    log_.when(again).then(rejected(again, NOT_CALLED))
    log_.given(call).when(told)
    assert type(log_.answers[0]) in {shoes.WheelSpun, shoes.DiceRolled}


def test_what_has_its_outcome_counts() -> None:
    log_ = called_spin().given(spin(12))
    told = no_spin()
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_OUTCOME_STANDS))


def test_nothing_is_declared_of_what_is_not_called() -> None:
    for log_, told in (
        (wheel(), no_spin()),
        (wheel().given(spin(1)), no_spin()),
        (called_spin(), no_spin(2)),
        (called_spin(), no_spin(round_id=R2)),
        (called_spin().given(voided()), no_spin()),
    ):
        log_.when(told).then(rejected(told, NOT_CALLED))


# ---- corrected ---------------------------------------------------------------------------------


def test_a_misread_spin_is_corrected() -> None:
    log_ = called_spin().given(spin(12))
    log_.when(outcome_correction(13)).then(
        floor.OutcomeCorrected(table_id=T, round_id=R1, attempt=1, numbers=[13], read_as=[12])
    )
    again = spin(13)
    log_.when(again).then(rejected(again, floor.FLOOR_REFUSAL_ALREADY_RECORDED))


def test_a_misread_roll_is_corrected() -> None:
    log_ = called_roll().given(roll(1, 2, 3))
    log_.when(outcome_correction(1, 2, 2)).then(
        floor.OutcomeCorrected(
            table_id=T, round_id=R1, attempt=1, numbers=[1, 2, 2], read_as=[1, 2, 3]
        )
    )


def test_only_an_outcome_that_stands_is_corrected_into_one_that_can_be() -> None:
    spun_once = called_spin().given(spin(12))
    for log_, told, refusal in (
        (called_spin(), outcome_correction(13), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (wheel(), outcome_correction(13), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (
            called_spin().given(spin(12, turns=1)),
            outcome_correction(13),
            floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT,
        ),
        (spun_once, outcome_correction(13, attempt=2), floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT),
        (spun_once, outcome_correction(37), floor.FLOOR_REFUSAL_IMPOSSIBLE),
        (spun_once, outcome_correction(1, 2, 3), floor.FLOOR_REFUSAL_IMPOSSIBLE),
        (spun_once, outcome_correction(12), floor.FLOOR_REFUSAL_ALREADY_RECORDED),
    ):
        log_.when(told).then(correction_rejected(refusal))


# ---- a reading behind the end of its round -----------------------------------------------------


def compared(fact: Fact) -> Fact:
    """As every edge tells it since it is compared."""
    body: Any = fact.body
    body.compared_when_over = True
    return fact


def test_a_spin_told_again_behind_the_end_of_its_round_must_agree() -> None:
    log_ = called_spin().given(spin(17), closed(), round_opened(2, shoe_id=""))
    told = compared(spin(17))
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    log_.when(compared(spin(18))).then(
        fault_of_wheel(floor.FLOOR_FAULT_CONTRADICTION, "18", before="17")
    )
    told = compared(spin(18, attempt=2))
    log_.when(told).then(rejected(told, NOT_CALLED))


def test_a_corrected_roll_is_what_later_readings_are_held_against() -> None:
    log_ = called_roll().given(roll(1, 2, 3), outcome_correction(1, 2, 4), closed())
    told = compared(roll(1, 2, 4))
    log_.when(told).then(rejected(told, floor.FLOOR_REFUSAL_ALREADY_RECORDED))
    log_.when(compared(roll(1, 2, 3))).then_only(floor.FloorFaultFound)


def test_inputs_from_before_are_not_compared_nor_what_was_voided() -> None:
    told = spin(18)
    called_spin().given(spin(17), closed()).when(told).then(rejected(told, NOT_CALLED))
    told = compared(spin(18))
    called_spin().given(spin(17), voided(), closed()).when(told).then(rejected(told, NOT_CALLED))
    called_spin().given(closed()).when(told).then(rejected(told, NOT_CALLED))


def test_a_table_remembers_so_many_rounds() -> None:
    log_ = wheel()
    for number in range(1, MAX_ENDED + 2):
        named = {"table_id": T, "round_id": f"{T}-{number}"}
        log_.given(round_opened(number, shoe_id=""), sealed(number))
        log_.given(rules.SpinCalled(**named, attempt=1), spin(17, round_id=f"{T}-{number}"))
        log_.given(closed(number))
    assert list(log_.state.tables[T].ended) == [f"{T}-{n}" for n in range(2, MAX_ENDED + 2)]
    told = compared(spin(18, round_id=R1))
    log_.when(told).then(rejected(told, NOT_CALLED))
    log_.when(compared(spin(18, round_id=R2))).then_only(floor.FloorFaultFound)
