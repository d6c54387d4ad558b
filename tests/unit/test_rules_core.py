"""Rules: what is called when, what a suspension holds, and the result."""

from __future__ import annotations

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.rules.v1 import rule_set_pb2
from sabot.shoe.v1 import events_pb2 as shoe
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.kernel.event import InvariantViolated
from services.rules.domain.core import CORE
from services.rules.domain.state import RulesState
from tests.unit.deciding import Deciding
from tests.unit.table_facts import R1, R2, S1, T, opened, resumed, round_opened, suspended, voided

P, B = rules.HAND_PLAYER, rules.HAND_BANKER
FIRST = ("P8S", "B7H", "PKD", "BTC")
"""Player's natural 8 against 7."""


def betting() -> Deciding[RulesState]:
    return Deciding(CORE).given(opened(), round_opened())


def dealing() -> Deciding[RulesState]:
    """The first four cards are called."""
    return betting().given(sealed())


def sealed(round_id: str = R1) -> wallet.StakesSealed:
    return wallet.StakesSealed(table_id=T, round_id=round_id)


def called(before: int, *hands: rules.Hand.ValueType) -> rules.DrawCalled:
    return rules.DrawCalled(table_id=T, round_id=R1, shoe_id=S1, called_before=before, hands=hands)


FOUR_CALLED = called(0, P, B, P, B)


def dealt(*cards: str, round_id: str = R1) -> shoe.CardsDealt:
    """Cards with their hand before them, such as `P8S`."""
    return shoe.CardsDealt(
        table_id=T,
        shoe_id=S1,
        round_id=round_id,
        cards=[
            shoe.DealtCard(index=20 + place, card=card[1:], hand=P if card[0] == "P" else B)
            for place, card in enumerate(cards)
        ],
    )


def resolved(
    player: list[str],
    banker: list[str],
    totals: tuple[int, int],
    winner: rules.BaccaratWinner.ValueType,
) -> rules.RoundResolved:
    return rules.RoundResolved(
        table_id=T,
        round_id=R1,
        result=rules.Result(
            baccarat=rules.BaccaratResult(
                player_cards=player,
                banker_cards=banker,
                player_total=totals[0],
                banker_total=totals[1],
                winner=winner,
            )
        ),
    )


NATURAL = resolved(["8S", "KD"], ["7H", "TC"], (8, 7), rules.BACCARAT_WINNER_PLAYER)


def test_bac_4_the_first_four_are_called_once_the_stakes_are_sealed() -> None:
    betting().when(sealed()).then(FOUR_CALLED)


def test_nothing_is_called_twice_by_a_second_seal() -> None:
    dealing().when(sealed()).then()


def test_the_seal_of_another_round_calls_nothing() -> None:
    betting().when(sealed(R2)).then()


def test_bac_5_a_natural_ends_the_round() -> None:
    dealing().when(dealt(*FIRST)).then(NATURAL)


def test_cards_may_come_one_at_a_time() -> None:
    log_so_far = dealing()
    for card in FIRST[:3]:
        log_so_far.when(dealt(card)).then()
    log_so_far.when(dealt(FIRST[3])).then(NATURAL)


def test_third_cards_are_called_one_by_one_and_players_first() -> None:
    log_so_far = dealing()
    log_so_far.when(dealt("P2S", "B3H", "PTC", "BQC")).then(called(4, P))
    log_so_far.when(dealt("P7D")).then(called(5, B))
    log_so_far.when(dealt("B6D")).then(
        resolved(["2S", "TC", "7D"], ["3H", "QC", "6D"], (9, 9), rules.BACCARAT_WINNER_TIE)
    )


def test_bac_7_banker_alone_draws_where_player_stood() -> None:
    log_so_far = dealing()
    log_so_far.when(dealt("P6S", "B5H", "PTC", "BQC")).then(called(4, B))
    log_so_far.when(dealt("B2D")).then(
        resolved(["6S", "TC"], ["5H", "QC", "2D"], (6, 7), rules.BACCARAT_WINNER_BANKER)
    )


def test_a_suspension_before_the_seal_holds_the_first_four() -> None:
    log_so_far = betting().given(suspended())
    log_so_far.when(sealed()).then()
    log_so_far.when(resumed()).then(FOUR_CALLED)


def test_a_resumption_before_the_seal_releases_nothing() -> None:
    log_so_far = betting().given(suspended())
    log_so_far.when(resumed()).then()
    log_so_far.when(sealed()).then(FOUR_CALLED)


def test_a_suspension_takes_what_was_called_and_holds_the_next_call() -> None:
    log_so_far = dealing().given(suspended())
    log_so_far.when(dealt("P2S", "B3H", "PTC", "BQC")).then()
    log_so_far.when(resumed()).then(called(4, P))


def test_a_resumption_while_cards_are_under_way_releases_nothing() -> None:
    log_so_far = dealing().given(suspended())
    log_so_far.when(resumed()).then()
    log_so_far.when(dealt(*FIRST)).then(NATURAL)


def test_a_result_is_told_during_a_suspension_and_not_again_after_it() -> None:
    log_so_far = dealing().given(suspended())
    log_so_far.when(dealt(*FIRST)).then(NATURAL)
    log_so_far.when(resumed()).then()


def test_a_voided_round_has_no_call_and_no_result() -> None:
    log_so_far = betting().given(voided())
    log_so_far.when(sealed()).then()
    log_so_far = dealing().given(voided())
    log_so_far.when(dealt(*FIRST)).then()
    log_so_far = dealing().given(suspended(), dealt("P2S", "B3H", "PTC", "BQC"), voided())
    log_so_far.when(resumed()).then()


def test_a_closed_round_is_forgotten() -> None:
    log_so_far = dealing().given(dealt(*FIRST))
    log_so_far.given(table.RoundClosed(table_id=T, round_id=R1, end=table.ROUND_END_PAID))
    assert log_so_far.state.tables[T].running is None
    log_so_far.when(dealt("P2S")).then()
    log_so_far.given(opened(2), round_opened(2, revision=2))
    log_so_far.when(sealed(R2)).then_only(rules.DrawCalled)


def test_news_of_an_unknown_table_is_left_alone() -> None:
    nothing: Deciding[RulesState] = Deciding(CORE)
    for news in (sealed(), round_opened(), dealt("P2S"), resumed(), voided()):
        nothing.when(news).then()


def test_more_cards_than_were_called_is_a_bug_that_is_named() -> None:
    with pytest.raises(InvariantViolated, match="5 came, 4 called"):
        dealing().when(dealt(*FIRST, "P2S"))


def test_a_card_that_does_not_exist_is_a_bug_that_is_named() -> None:
    with pytest.raises(InvariantViolated, match="no such card"):
        dealing().when(dealt("P8S", "B1X", "PKD", "BTC"))


def test_a_game_without_rules_is_a_bug_that_is_named() -> None:
    strange = opened()
    strange.spec.rule_set.game = rule_set_pb2.GAME_UNSPECIFIED
    log_so_far = Deciding(CORE).given(strange, round_opened())
    with pytest.raises(InvariantViolated, match="game 0"):
        log_so_far.when(sealed())
