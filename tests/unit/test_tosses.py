"""Wheels, dice and two cards: from the call to the result (ROU-6, ROU-7, SIC-1, DT-2, FS-1)."""

from __future__ import annotations

import pytest

from sabot.log.v1 import events_pb2 as log
from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import spec_pb2
from sabot.wallet.v1 import events_pb2 as wallet
from services.games import catalogue, roulette, sicbo
from services.kernel.event import UNLOGGED
from services.rules.domain.core import CORE as RULES
from services.shoe.domain.core import CORE as SHOE
from services.shoe.domain.state import ShoeState, TossKind
from services.shoe.domain.wanted import TossWanted, wanted
from services.shoe.tossing import drawn_dice, drawn_number, tossed
from tests.unit.deciding import Deciding

T, R1, R2 = "w1", "w1-1", "w1-2"
FLOOR = spec_pb2.OUTCOME_ORIGIN_FLOOR
VIRTUAL = spec_pb2.OUTCOME_ORIGIN_VIRTUAL
DRAWN, DEVICE = shoes.CARD_SOURCE_VIRTUAL, shoes.CARD_SOURCE_DEVICE


def opened(
    rule_set: rule_set_pb2.RuleSet, origin: spec_pb2.OutcomeOrigin.ValueType = VIRTUAL
) -> table.TableOpened:
    spec = spec_pb2.TableSpec(table_id=T, currency_code="EUR", rule_set=rule_set, origin=origin)
    return table.TableOpened(spec=spec, revision=1)


def round_opened(round_id: str = R1, shoe_id: str = "") -> table.RoundOpened:
    return table.RoundOpened(table_id=T, round_id=round_id, number=1, shoe_id=shoe_id)


def sealed() -> wallet.StakesSealed:
    return wallet.StakesSealed(table_id=T, round_id=R1)


def spin_called(attempt: int = 1) -> rules.SpinCalled:
    return rules.SpinCalled(table_id=T, round_id=R1, attempt=attempt)


def roll_called() -> rules.RollCalled:
    return rules.RollCalled(table_id=T, round_id=R1, attempt=1)


def spin(
    number: int,
    source: shoes.CardSource.ValueType = DRAWN,
    *,
    attempt: int = 1,
    round_id: str = R1,
    turns: int = 0,
    direction: shoes.SpinDirection.ValueType = shoes.SPIN_DIRECTION_UNSPECIFIED,
) -> shoes.RecordSpin:
    return shoes.RecordSpin(
        table_id=T,
        round_id=round_id,
        attempt=attempt,
        number=number,
        turns=turns,
        direction=direction,
        source=source,
    )


def spun(
    number: int, source: shoes.CardSource.ValueType = DRAWN, attempt: int = 1
) -> shoes.WheelSpun:
    return shoes.WheelSpun(table_id=T, round_id=R1, attempt=attempt, number=number, source=source)


def roll(*dice: int, source: shoes.CardSource.ValueType = DRAWN) -> shoes.RecordDice:
    return shoes.RecordDice(table_id=T, round_id=R1, attempt=1, dice=dice, source=source)


def rolled(*dice: int) -> shoes.DiceRolled:
    return shoes.DiceRolled(table_id=T, round_id=R1, attempt=1, dice=dice, source=DRAWN)


def invalidated(reason: shoes.InvalidReason.ValueType) -> shoes.SpinInvalidated:
    return shoes.SpinInvalidated(table_id=T, round_id=R1, attempt=1, reason=reason)


def resolved(result: rules.Result) -> rules.RoundResolved:
    return rules.RoundResolved(table_id=T, round_id=R1, result=result)


def ignored(reason: log.IgnoredReason.ValueType) -> log.InputIgnored:
    return log.InputIgnored(reason=reason)


def suspended() -> table.RoundSuspended:
    return table.RoundSuspended(table_id=T, round_id=R1)


def resumed() -> table.RoundResumed:
    return table.RoundResumed(table_id=T, round_id=R1)


def voided() -> table.RoundVoided:
    return table.RoundVoided(table_id=T, round_id=R1)


# ---- rules -------------------------------------------------------------------------------------


def test_rou_7_the_wheel_is_spun_once_the_stakes_are_sealed() -> None:
    played = Deciding(RULES).given(opened(catalogue.roulette()), round_opened())
    played.when(sealed()).then(spin_called())
    played.when(spun(17)).then(resolved(rules.Result(roulette=rules.RouletteResult(number=17))))


def test_rou_7_zero_is_a_number_like_the_others() -> None:
    played = Deciding(RULES).given(opened(catalogue.roulette()), round_opened(), sealed())
    played.when(spun(0)).then(resolved(rules.Result(roulette=rules.RouletteResult(number=0))))


def test_rou_6_an_invalid_spin_is_spun_again() -> None:
    played = Deciding(RULES).given(opened(catalogue.roulette()), round_opened(), sealed())
    played.when(invalidated(shoes.INVALID_REASON_TOO_FEW_TURNS)).then(spin_called(2))
    played.when(spun(5, attempt=2)).then(
        resolved(rules.Result(roulette=rules.RouletteResult(number=5)))
    )


def test_rou_6_a_suspension_holds_the_next_spin() -> None:
    played = Deciding(RULES).given(opened(catalogue.roulette()), round_opened(), sealed())
    played.given(suspended())
    played.when(invalidated(shoes.INVALID_REASON_WRONG_DIRECTION)).then()
    played.when(resumed()).then(spin_called(2))


def test_sic_1_the_dice_are_rolled_once() -> None:
    played = Deciding(RULES).given(opened(catalogue.sicbo()), round_opened())
    played.when(sealed()).then(roll_called())
    played.when(rolled(6, 1, 6)).then(
        resolved(rules.Result(sicbo=rules.SicboResult(dice=[6, 1, 6])))
    )


def test_a_voided_round_is_called_nothing_more() -> None:
    played = Deciding(RULES).given(opened(catalogue.sicbo()), round_opened(), voided())
    played.when(sealed()).then()
    played.when(rolled(1, 2, 3)).then()


@pytest.mark.parametrize(
    ("rule_set", "hands", "result"),
    [
        (
            catalogue.dragon_tiger(),
            (rules.HAND_DRAGON, rules.HAND_TIGER),
            rules.Result(dragon_tiger=rules.DragonTigerResult(dragon_card="KS", tiger_card="2D")),
        ),
        (
            catalogue.football_studio(),
            (rules.HAND_HOME, rules.HAND_AWAY),
            rules.Result(
                football_studio=rules.FootballStudioResult(home_card="KS", away_card="2D")
            ),
        ),
    ],
)
def test_dt_2_fs_1_one_card_a_side(
    rule_set: rule_set_pb2.RuleSet,
    hands: tuple[rules.Hand.ValueType, ...],
    result: rules.Result,
) -> None:
    played = Deciding(RULES).given(opened(rule_set), round_opened(shoe_id="w1-s1"))
    played.when(sealed()).then(
        rules.DrawCalled(table_id=T, round_id=R1, shoe_id="w1-s1", called_before=0, hands=hands)
    )
    played.when(
        shoes.CardsDealt(
            table_id=T,
            shoe_id="w1-s1",
            round_id=R1,
            cards=[
                shoes.DealtCard(index=at, card=card, hand=hand)
                for at, (card, hand) in enumerate(zip(("KS", "2D"), hands, strict=True))
            ],
        )
    ).then(resolved(result))


# ---- shoe --------------------------------------------------------------------------------------


def wheel(
    origin: spec_pb2.OutcomeOrigin.ValueType = VIRTUAL,
) -> Deciding[ShoeState]:
    return Deciding(SHOE).given(opened(catalogue.roulette(), origin), round_opened())


def called_spin(origin: spec_pb2.OutcomeOrigin.ValueType = VIRTUAL) -> Deciding[ShoeState]:
    return wheel(origin).given(spin_called())


def called_roll() -> Deciding[ShoeState]:
    return Deciding(SHOE).given(opened(catalogue.sicbo()), round_opened(), roll_called())


def test_a_table_without_cards_asks_for_no_shoe() -> None:
    assert wanted(wheel().state) == []


def test_a_called_spin_is_wanted_until_it_has_come() -> None:
    log_ = called_spin()
    [wish] = wanted(log_.state)
    assert isinstance(wish, TossWanted)
    assert (wish.table_id, wish.round_id, wish.attempt, wish.kind) == (T, R1, 1, TossKind.SPIN)
    log_.when(spin(36)).then(spun(36))
    assert wanted(log_.state) == []


def test_nothing_is_drawn_for_a_voided_round_or_at_a_table_on_the_floor() -> None:
    assert wanted(called_spin().given(voided()).state) == []
    assert wanted(called_spin(FLOOR).state) == []


def test_of_two_draws_the_first_in_the_log_stands() -> None:
    log_ = called_spin()
    log_.when(spin(12)).then(spun(12))
    log_.when(spin(12)).then(ignored(log.IGNORED_REASON_SECOND_DRAW))
    log_.when(spin(13)).then(ignored(log.IGNORED_REASON_SECOND_DRAW))


def test_a_told_spin_must_agree_with_the_first() -> None:
    log_ = called_spin(FLOOR)

    def told(number: int) -> shoes.RecordSpin:
        return spin(number, DEVICE, turns=3, direction=shoes.SPIN_DIRECTION_AGAINST)

    log_.when(told(12)).then(spun(12, DEVICE))
    log_.when(told(12)).then(ignored(log.IGNORED_REASON_ALREADY_DONE))
    log_.when(told(13)).then(ignored(log.IGNORED_REASON_CONTRADICTS))


@pytest.mark.parametrize(
    ("turns", "direction", "reason"),
    [
        (2, shoes.SPIN_DIRECTION_AGAINST, shoes.INVALID_REASON_TOO_FEW_TURNS),
        (0, shoes.SPIN_DIRECTION_UNSPECIFIED, shoes.INVALID_REASON_TOO_FEW_TURNS),
        (9, shoes.SPIN_DIRECTION_WITH, shoes.INVALID_REASON_WRONG_DIRECTION),
    ],
)
def test_rou_6_too_few_turns_or_the_wrong_way_do_not_count(
    turns: int,
    direction: shoes.SpinDirection.ValueType,
    reason: shoes.InvalidReason.ValueType,
) -> None:
    log_ = called_spin(FLOOR)
    log_.when(spin(12, DEVICE, turns=turns, direction=direction)).then(invalidated(reason))
    log_.given(spin_called(2))
    again = spin(7, DEVICE, attempt=2, turns=4, direction=shoes.SPIN_DIRECTION_AGAINST)
    log_.when(again).then(spun(7, DEVICE, attempt=2))


def test_a_spin_that_was_not_called_is_not_taken() -> None:
    wheel().when(spin(1)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    called_spin().when(spin(1, attempt=2)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    called_spin().when(spin(1, round_id=R2)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    called_spin().given(voided()).when(spin(1)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    called_spin().when(roll(1, 1, 1)).then(ignored(log.IGNORED_REASON_NOT_NOW))
    Deciding(SHOE).when(spin(1)).then(ignored(log.IGNORED_REASON_UNKNOWN))


def test_what_cannot_be_is_not_taken() -> None:
    called_spin().when(spin(37)).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))
    for dice in ((1, 2), (1, 2, 7), (0, 1, 2), (1, 2, 3, 4)):
        called_roll().when(roll(*dice)).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))


def test_an_outcome_comes_from_where_the_table_has_it() -> None:
    called_spin().when(spin(1, DEVICE)).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))
    called_spin(FLOOR).when(spin(1, DRAWN)).then(ignored(log.IGNORED_REASON_IMPOSSIBLE))
    called_spin(FLOOR).when(spin(1, shoes.CARD_SOURCE_UNSPECIFIED)).then(
        ignored(log.IGNORED_REASON_IMPOSSIBLE)
    )


def test_sic_1_dice_lie_as_they_fell() -> None:
    called_roll().when(roll(5, 1, 3)).then(rolled(5, 1, 3))


# ---- drawing -----------------------------------------------------------------------------------


def test_rng_01_every_pocket_and_every_roll_is_as_likely() -> None:
    """Each number below the bound is another pocket, or another roll; the bound itself is uniform
    (`Generator.below`)."""
    assert [drawn_number(lambda _, at=at: at) for at in range(37)] == list(range(37))  # type: ignore[misc] # bound at once
    rolls = {drawn_dice(lambda _, at=at: at) for at in range(216)}  # type: ignore[misc] # the same
    assert len(rolls) == 216
    assert all(1 <= die <= 6 for dice in rolls for die in dice)
    for draws, pockets in ((drawn_number, 37), (drawn_dice, 216)):
        with pytest.raises(IndexError):
            draws(lambda bound: bound)
        assert draws(lambda bound: bound - 1) == draws(lambda _, last=pockets - 1: last)  # type: ignore[misc] # bound at once


@pytest.mark.parametrize("kind", list(TossKind))
def test_what_is_drawn_is_an_input_that_the_core_takes(kind: TossKind) -> None:
    wish = TossWanted(T, R1, 1, kind, UNLOGGED)
    told = tossed(wish, shoes.RecordSpin().asked_by, lambda _: 7)
    log_ = called_spin() if kind is TossKind.SPIN else called_roll()
    log_.when(told)
    toss = log_.state.tables[T].toss
    assert toss is not None
    assert toss.numbers in ([roulette.NUMBERS[7]], list(sicbo.ROLLS[7]))
