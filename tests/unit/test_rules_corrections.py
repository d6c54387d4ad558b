"""What a corrected card or number changes: whose the cards are, what is called, who wins."""

from __future__ import annotations

import random

import pytest
from google.protobuf.message import Message

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import events_pb2 as shoes
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import events_pb2 as table
from services.games import baccarat, catalogue
from services.games.baccarat import Side, next_draw
from services.games.cards import CARDS
from services.rules.domain.core import CORE as RULES
from services.rules.domain.state import RulesState
from tests.unit.deciding import Deciding
from tests.unit.floor_facts import (
    BANKER,
    FOUR,
    PLAYER,
    R1,
    S1,
    T,
    dealt,
    round_opened,
    sealed,
    spun,
    table_opened,
    voided,
)

NOBODY = rules.HAND_UNSPECIFIED
SUSPENDED = table.RoundSuspended(table_id=T, round_id=R1)
RESUMED = table.RoundResumed(table_id=T, round_id=R1)
FIRST = 8
"""Where the round's cards begin in the shoe."""


def called(*hands: rules.Hand.ValueType, before: int) -> rules.DrawCalled:
    return rules.DrawCalled(table_id=T, round_id=R1, shoe_id=S1, called_before=before, hands=hands)


def corrected(place: int, card: str) -> floor.CardCorrected:
    return floor.CardCorrected(table_id=T, shoe_id=S1, round_id=R1, index=FIRST + place, card=card)


def given_to(*hands: rules.Hand.ValueType) -> rules.HandsCorrected:
    return rules.HandsCorrected(
        table_id=T,
        round_id=R1,
        cards=[rules.CardInHand(index=FIRST + at, hand=hand) for at, hand in enumerate(hands)],
    )


RECALLED = rules.DrawRecalled(table_id=T, round_id=R1, shoe_id=S1)


def card(place: int, text: str, hand: rules.Hand.ValueType) -> shoes.CardsDealt:
    return dealt(FIRST + place, text, hand)


def round_of(*cards: str) -> Deciding[RulesState]:
    """A round of baccarat whose stakes are sealed, with these of its first four cards dealt."""
    log_ = Deciding(RULES).given(table_opened(), round_opened(), sealed())
    return log_.given(*(card(at, text, FOUR[at]) for at, text in enumerate(cards)))


def resolved(*cards: str, hands: tuple[rules.Hand.ValueType, ...]) -> rules.RoundResolved:
    player, banker = (
        [one for one, hand in zip(cards, hands, strict=True) if hand == wanted]
        for wanted in (PLAYER, BANKER)
    )
    totals = (baccarat.total(player), baccarat.total(banker))
    winner = (
        rules.BACCARAT_WINNER_TIE
        if totals[0] == totals[1]
        else rules.BACCARAT_WINNER_PLAYER
        if totals[0] > totals[1]
        else rules.BACCARAT_WINNER_BANKER
    )
    result = rules.BaccaratResult(
        player_cards=player,
        banker_cards=banker,
        player_total=totals[0],
        banker_total=totals[1],
        winner=winner,
    )
    return rules.RoundResolved(table_id=T, round_id=R1, result=rules.Result(baccarat=result))


def test_a_result_is_another_one() -> None:
    log_ = round_of("9S", "2S", "TS").given(SUSPENDED)
    log_.when(card(3, "3S", BANKER)).then(resolved("9S", "2S", "TS", "3S", hands=FOUR))
    log_.when(corrected(3, "7S")).then(resolved("9S", "2S", "TS", "7S", hands=FOUR))
    log_.when(RESUMED).then()


def test_a_call_that_is_not_asked_for_is_recalled() -> None:
    log_ = round_of("2S", "2H", "3S").given(card(3, "4S", BANKER), SUSPENDED)
    assert log_.state.tables[T].running is not None
    log_.when(corrected(2, "7S")).then(RECALLED, resolved("2S", "2H", "7S", "4S", hands=FOUR))
    log_.when(RESUMED).then()


def test_a_call_for_the_other_hand_is_recalled_and_made_anew_when_the_round_goes_on() -> None:
    log_ = round_of("2S", "2H", "3S", "2C").given(SUSPENDED)
    log_.when(corrected(2, "4S")).then(RECALLED)  # Player stands on 6: Banker's call, later.
    log_.when(RESUMED).then(called(BANKER, before=4))


def test_a_call_that_is_still_asked_for_stands() -> None:
    log_ = round_of("2S", "2H", "3S", "2C").given(SUSPENDED)
    log_.when(corrected(2, "2D")).then()
    log_.when(RESUMED).then()
    log_.when(card(4, "5S", PLAYER)).then(called(BANKER, before=5))


def test_the_first_four_are_called_whatever_they_are() -> None:
    log_ = round_of("2S", "2H").given(SUSPENDED)
    log_.when(corrected(0, "9S")).then()
    log_.when(card(2, "TS", PLAYER)).then()
    log_.when(card(3, "3S", BANKER)).then(resolved("9S", "2H", "TS", "3S", hands=FOUR))


def test_a_third_card_belongs_to_the_other_side() -> None:
    """Player drew on a misread 5; it is a 6: Player stands, and the fifth card is Banker's."""
    log_ = round_of("2S", "2H", "3S", "2C").given(SUSPENDED, card(4, "TS", PLAYER))
    hands = (*FOUR, BANKER)
    log_.when(corrected(2, "4S")).then(
        given_to(*hands), resolved("2S", "2H", "4S", "2C", "TS", hands=hands)
    )


def test_a_card_drawn_in_error_is_not_played() -> None:
    log_ = round_of("2S", "2H", "3S", "2C").given(card(4, "9S", PLAYER), SUSPENDED)
    log_.given(card(5, "5S", BANKER))
    hands = (*FOUR, NOBODY, NOBODY)
    log_.when(corrected(2, "7S")).then(
        given_to(*hands), resolved("2S", "2H", "7S", "2C", "9S", "5S", hands=hands)
    )


def test_a_card_that_was_dealt_before_its_recall_was_known_is_put_where_it_belongs() -> None:
    log_ = round_of("2S", "2H", "3S", "2C").given(SUSPENDED)
    log_.when(corrected(2, "7S")).then(RECALLED, resolved("2S", "2H", "7S", "2C", hands=FOUR))
    log_.when(card(4, "9S", PLAYER)).then(given_to(*FOUR, NOBODY))
    log_.when(RESUMED).then()


def test_a_card_of_no_hand_stays_aside_when_the_round_is_corrected_back() -> None:
    log_ = round_of("2S", "2H", "3S", "2C").given(SUSPENDED, corrected(2, "7S"))
    log_.given(card(4, "5S", PLAYER))
    hands = (*FOUR, PLAYER)
    log_.when(corrected(2, "3S")).then(given_to(*hands))
    log_.when(RESUMED).then(called(BANKER, before=5))


def test_a_correction_of_what_the_round_does_not_have_changes_nothing() -> None:
    log_ = round_of("9S", "2S", "TS", "3S")
    log_.when(corrected(7, "7S")).then()
    log_.given(voided()).when(corrected(0, "8S")).then()
    Deciding(RULES).when(corrected(0, "8S")).then()


@pytest.mark.parametrize(
    ("rule_set", "hands"),
    [
        (catalogue.dragon_tiger(), (rules.HAND_DRAGON, rules.HAND_TIGER)),
        (catalogue.football_studio(), (rules.HAND_HOME, rules.HAND_AWAY)),
    ],
)
def test_dt_2_fs_1_a_card_of_two_is_another_one(
    rule_set: object, hands: tuple[rules.Hand.ValueType, ...]
) -> None:
    log_ = Deciding(RULES).given(table_opened(rule_set), round_opened(), sealed())  # type: ignore[arg-type] # a rule set
    log_.given(SUSPENDED, card(0, "KS", hands[0]))
    log_.when(corrected(0, "2S")).then()
    log_.when(card(1, "3S", hands[1]))
    [told] = log_.answers
    assert isinstance(told, rules.RoundResolved)
    assert "2S" in str(told.result)
    log_.when(corrected(1, "4S"))
    [told] = log_.answers
    assert isinstance(told, rules.RoundResolved)
    assert "4S" in str(told.result)


def test_rou_7_a_misread_number_is_another_one() -> None:
    log_ = Deciding(RULES).given(table_opened(catalogue.roulette()), round_opened(shoe_id=""))
    log_.given(sealed(), SUSPENDED)
    log_.when(spun(12)).then(
        rules.RoundResolved(
            table_id=T,
            round_id=R1,
            result=rules.Result(roulette=rules.RouletteResult(number=12)),
        )
    )
    log_.when(
        floor.OutcomeCorrected(table_id=T, round_id=R1, attempt=1, numbers=[13], read_as=[12])
    ).then(
        rules.RoundResolved(
            table_id=T,
            round_id=R1,
            result=rules.Result(roulette=rules.RouletteResult(number=13)),
        )
    )
    log_.when(RESUMED).then()


# ---- whatever was misread, the round ends as the cards lie ------------------------------------


def straight(cards: list[str]) -> tuple[list[str], list[str]]:
    """The hands of a round that is dealt these cards without a mistake."""
    hands: dict[Side, list[str]] = {Side.PLAYER: [], Side.BANKER: []}
    left = iter(cards)
    while sides := next_draw(hands[Side.PLAYER], hands[Side.BANKER]):
        for side in sides:
            hands[side].append(next(left))
    return hands[Side.PLAYER], hands[Side.BANKER]


@pytest.mark.parametrize("seed", range(400))
def test_a_corrected_round_ends_as_the_cards_lie(seed: int) -> None:
    chance = random.Random(seed)
    lie = [chance.choice(CARDS) for _ in range(6)]
    read = list(lie)
    wrong = chance.randrange(6)
    read[wrong] = chance.choice([one for one in CARDS if one != lie[wrong]])
    stop = chance.randrange(wrong + 1, 7)  # The misread card is out by then.
    log_ = Deciding(RULES, careful=False).given(table_opened(), round_opened())
    log_.when(sealed())
    waiting: list[rules.Hand.ValueType] = []
    results: list[rules.BaccaratResult] = []
    out, is_suspended = 0, False

    def hear(answers: list[Message]) -> None:
        for body in answers:
            match body:
                case rules.DrawCalled():
                    waiting.extend(body.hands)
                case rules.DrawRecalled():
                    waiting.clear()
                case rules.RoundResolved():
                    results.append(body.result.baccarat)
                case _:
                    assert isinstance(body, rules.HandsCorrected)

    hear(log_.answers)
    while waiting and out < stop:
        if out == max(stop - 1, 0) and not is_suspended:
            log_.given(SUSPENDED)
            is_suspended = True
        log_.when(card(out, read[out], waiting.pop(0)))
        out += 1
        hear(log_.answers)
    if not is_suspended:
        log_.given(SUSPENDED)
    if wrong >= out:
        return  # The round was decided before the card that would have been misread.
    late = waiting[0] if waiting and chance.random() < 0.5 else None
    results.clear()
    log_.when(corrected(wrong, lie[wrong]))
    hear(log_.answers)
    if late is not None:  # Dealt before the recall was known.
        if waiting:
            waiting.pop(0)
        log_.when(card(out, lie[out], late))
        out += 1
        hear(log_.answers)
    log_.when(RESUMED)
    hear(log_.answers)
    while waiting:
        log_.when(card(out, lie[out], waiting.pop(0)))
        out += 1
        hear(log_.answers)
    last = results[-1]
    assert (list(last.player_cards), list(last.banker_cards)) == straight(lie)
