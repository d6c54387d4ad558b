"""Rules: a round of blackjack, call by call (rules BJ-2 to BJ-7, BJ-13, BJ-14)."""

from __future__ import annotations

import pytest

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import events_pb2 as table
from sabot.wallet.v1 import events_pb2 as wallet
from services.games.blackjack import Peek
from services.games.catalogue import blackjack
from services.kernel.event import InvariantViolated
from services.rules.domain.blackjack import spot_of
from services.rules.domain.core import CORE
from services.rules.domain.state import RulesState
from tests.unit.blackjack_facts import (
    ANN,
    BEN,
    DECLINE,
    DOUBLE,
    HIT,
    INSURANCE,
    INSURE,
    PLACE,
    PLAY,
    SPLIT,
    STAND,
    D,
    H,
    bet,
    dealt,
    drawn,
    hand,
    hole_checked,
    offered,
    opened,
    peek,
    reserved,
    resolved,
    reveal,
    round_opened,
    sealed,
    seat_hand,
    side_bet,
    taken,
    turn,
)
from tests.unit.deciding import Deciding
from tests.unit.table_facts import resumed, suspended, voided

SEAT_2, SEAT_5, SEAT_2_SPLIT = seat_hand(2), seat_hand(5), seat_hand(2, 2)
FIRST_TWO = (HIT, STAND, DOUBLE)


def betting(rule_set: rule_set_pb2.RuleSet | None = None) -> Deciding[RulesState]:
    return Deciding(CORE).given(opened(rule_set), round_opened())


def one_seat(rule_set: rule_set_pb2.RuleSet | None = None) -> Deciding[RulesState]:
    """100 at seat 2; the deal is called."""
    game = betting(rule_set).given(reserved(ANN, bet("b1", "main", 100, 2)))
    return game.when(sealed()).then(drawn(0, SEAT_2, D, SEAT_2, H))


def first_deal(
    seat: str, up_card: str, rule_set: rule_set_pb2.RuleSet | None = None
) -> Deciding[RulesState]:
    """Seat 2's two cards, the dealer's first, and the hole card face down."""
    first, second = seat.split()
    game = one_seat(rule_set)
    return game.when(dealt(0, (first, SEAT_2), (up_card, D), (second, SEAT_2), ("", H)))


def test_bj_2_only_seats_with_a_reserved_main_bet_are_dealt_in_order() -> None:
    """What was taken back, or declined, is dealt nothing."""
    game = betting().given(
        reserved(BEN, bet("b1", "main", 100, 5)),
        reserved(ANN, bet("b2", "main", 100, 2)),
        reserved(BEN, bet("b3", "main", 100, 3)),
        wallet.StakeReturned(
            account_id=BEN, bets=[bet("b3", "main", 100, 3)], partner_id="acme", **PLACE
        ),
    )
    game.when(sealed()).then(drawn(0, SEAT_2, SEAT_5, D, SEAT_2, SEAT_5, H))


def test_bj_14_without_a_main_bet_nothing_is_dealt() -> None:
    betting().when(sealed()).then(resolved(""))


def test_bj_13_side_bets_are_told_with_the_deal() -> None:
    game = betting().given(
        reserved(ANN, bet("b1", "main", 100, 2), bet("b2", "perfect_pairs", 5, 2)),
        reserved(ANN, bet("b3", "perfect_pairs", 5, 2), bet("b4", "21_plus_3", 5, 2)),
        sealed(),
    )
    game.when(dealt(0, ("7S", SEAT_2), ("9C", D), ("7C", SEAT_2), ("", H))).then(
        side_bet(2, "21_plus_3", ""),
        side_bet(2, "perfect_pairs", "coloured"),
        turn(1, 2, (*FIRST_TWO, SPLIT), stake=100, advice=HIT),
    )


def test_bj_13_cards_that_come_one_by_one_are_waited_for() -> None:
    game = one_seat().when(dealt(0, ("7S", SEAT_2), ("9C", D))).then()
    game.when(dealt(2, ("8C", SEAT_2))).then()
    game.when(dealt(3, ("", H))).then(turn(1, 2, FIRST_TWO, stake=100, advice=HIT))


def test_bj_5_hits_until_21_then_the_dealer_draws() -> None:
    game = first_deal("7S 8C", "9C")
    game.when(taken(1, 2, HIT)).then(drawn(4, SEAT_2))
    game.when(dealt(4, ("2H", SEAT_2))).then(turn(2, 2))
    game.when(taken(2, 2, HIT)).then(drawn(5, SEAT_2))
    game.when(dealt(5, ("4H", SEAT_2))).then(reveal("9C"))
    game.when(dealt(3, ("3D", H))).then(drawn(6, D))
    game.when(dealt(6, ("4D", D))).then(drawn(7, D))
    game.when(dealt(7, ("TD", D))).then(resolved("9C 3D 4D TD", (2, [hand("7S 8C 2H 4H")])))


def test_bj_5_a_bust_ends_the_hand_and_the_hole_card_is_shown_all_the_same() -> None:
    game = first_deal("TS 6C", "9C").given(taken(1, 2, HIT))
    game.when(dealt(4, ("KH", SEAT_2))).then(reveal("9C"))
    game.when(dealt(3, ("3D", H))).then(resolved("9C 3D", (2, [hand("TS 6C KH")])))


def test_bj_6_a_double_takes_effect_with_its_stake() -> None:
    double = bet("b9", "double", 40, 2)
    game = first_deal("5S 6C", "9C")
    game.when(taken(1, 2, DOUBLE, extra=double)).then()
    game.when(reserved(ANN, double, stage=PLAY)).then(drawn(4, SEAT_2))
    game.when(dealt(4, ("TH", SEAT_2))).then(reveal("9C"))
    game.when(dealt(3, ("8D", H))).then(resolved("9C 8D", (2, [hand("5S 6C TH", doubled=True)])))


def test_bj_14_a_double_that_is_declined_leaves_hand_and_turn() -> None:
    """Nothing is told to rules of it; the same turn is answered otherwise."""
    game = first_deal("5S 6C", "9C")
    game.when(taken(1, 2, DOUBLE, extra=bet("b9", "double", 40, 2))).then()
    game.when(taken(1, 2, HIT)).then(drawn(4, SEAT_2))


def test_bj_7_a_split_gives_both_hands_a_card_and_plays_them_in_order() -> None:
    split = bet("b9", "split", 100, 2)
    game = first_deal("8S 8C", "9C")
    game.then(turn(1, 2, (*FIRST_TWO, SPLIT), stake=100, advice=HIT))
    game.given(taken(1, 2, SPLIT, extra=split))
    game.when(reserved(ANN, split, stage=PLAY)).then(drawn(4, SEAT_2, SEAT_2_SPLIT))
    game.when(dealt(4, ("3H", SEAT_2), ("TH", SEAT_2_SPLIT))).then(turn(2, 2, advice=HIT))
    game.when(taken(2, 2, STAND)).then(turn(3, 2, hand=2))
    game.when(taken(3, 2, STAND, hand=2)).then(reveal("9C"))
    game.when(dealt(3, ("8D", H))).then(
        resolved("9C 8D", (2, [hand("8S 3H", split=True), hand("8C TH", split=True)]))
    )


def test_bj_7_split_aces_get_one_card_each() -> None:
    split = bet("b9", "split", 100, 2)
    game = first_deal("AS AC", "9C").given(taken(1, 2, SPLIT, extra=split))
    game.given(reserved(ANN, split, stage=PLAY))
    game.when(dealt(4, ("3H", SEAT_2), ("TH", SEAT_2_SPLIT))).then(reveal("9C"))


def test_bj_13_a_blackjack_takes_no_action() -> None:
    game = first_deal("AS KC", "9C").then(reveal("9C"))
    game.when(dealt(3, ("3D", H))).then(resolved("9C 3D", (2, [hand("AS KC")])))


# ---- insurance and the hole card ---------------------------------------------------------------


def test_bj_3_insurance_is_offered_before_any_action_and_closed_by_its_seal() -> None:
    game = first_deal("TS 9C", "AC").then(offered(1, 2))
    insurance = bet("b9", "insurance", 50, 2)
    game.when(taken(1, 2, INSURE, extra=insurance)).then()
    game.when(reserved(ANN, insurance, stage=INSURANCE)).then()
    game.when(sealed(INSURANCE)).then(peek("AC"))
    game.when(hole_checked(False)).then(turn(2, 2, FIRST_TWO, stake=100))


def test_bj_3_a_main_bet_of_one_unit_is_offered_none() -> None:
    game = betting().given(reserved(ANN, bet("b1", "main", 1, 2)), sealed())
    game.when(dealt(0, ("TS", SEAT_2), ("AC", D), ("9C", SEAT_2), ("", H))).then(peek("AC"))


def test_bj_4_a_blackjack_found_by_a_peek_ends_the_round() -> None:
    game = first_deal("TS 9C", "AC").given(taken(1, 2, DECLINE), sealed(INSURANCE))
    game.when(hole_checked(True)).then(reveal("AC"))
    game.when(dealt(3, ("KD", H))).then(resolved("AC KD", (2, [hand("TS 9C")])))


def test_bj_4_both_looks_at_a_ten_too() -> None:
    game = first_deal("TS 9C", "KC", blackjack(peek=Peek.BOTH)).then(peek("KC"))
    game.when(hole_checked(False)).then(turn(1, 2, FIRST_TWO, stake=100))


def test_bj_4_none_looks_at_nothing() -> None:
    game = first_deal("TS 9C", "AC", blackjack(peek=Peek.NONE)).then(offered(1, 2))
    game.when(sealed(INSURANCE)).then(turn(2, 2, FIRST_TWO, stake=100))
    game.when(taken(2, 2, STAND)).then(reveal("AC"))
    game.when(dealt(3, ("KD", H))).then(resolved("AC KD", (2, [hand("TS 9C")])))


@pytest.mark.parametrize(("told", "hole"), [(True, "9D"), (False, "KD")])
def test_bj_4_a_hole_card_that_contradicts_the_peek_stops_the_round(told: bool, hole: str) -> None:
    game = first_deal("AS KC", "AC").given(sealed(INSURANCE))
    game.when(hole_checked(told)).then(reveal("AC"))
    with pytest.raises(InvariantViolated, match="not what the look"):
        game.when(dealt(3, (hole, H)))


# ---- what holds a round ------------------------------------------------------------------------


def test_a_suspension_holds_turns_and_calls_but_not_what_is_known() -> None:
    game = one_seat().given(suspended())
    game.when(dealt(0, ("7S", SEAT_2), ("9C", D), ("8C", SEAT_2), ("", H))).then()
    game.when(resumed()).then(turn(1, 2, FIRST_TWO, stake=100, advice=HIT))
    game.given(suspended()).when(resumed()).then()  # The turn is open already.
    double = bet("b9", "double", 40, 2)
    game.given(taken(1, 2, DOUBLE, extra=double), suspended())
    game.when(reserved(ANN, double, stage=PLAY)).then()
    game.when(resumed()).then(drawn(4, SEAT_2))


def test_side_bets_are_told_during_a_suspension_once() -> None:
    game = betting().given(
        reserved(ANN, bet("b1", "main", 100, 2), bet("b2", "perfect_pairs", 5, 2)), sealed()
    )
    game.given(suspended())
    game.when(dealt(0, ("7S", SEAT_2), ("9C", D), ("8C", SEAT_2), ("", H))).then(
        side_bet(2, "perfect_pairs", "")
    )
    game.when(resumed()).then(turn(1, 2, FIRST_TWO, stake=100, advice=HIT))


def test_a_voided_round_is_called_nothing_more() -> None:
    game = first_deal("7S 8C", "9C").given(voided())
    game.when(taken(1, 2, HIT)).then()
    game.when(reserved(ANN, bet("b9", "double", 40, 2), stage=PLAY)).then()


@pytest.mark.parametrize(
    "strange",
    [
        dealt(4, ("2S", seat_hand(3))),
        dealt(4, ("2S", SEAT_2)),
        dealt(4, ("1S", SEAT_2)),
        dealt(4, ("2S", 1)),
    ],
)
def test_a_card_that_cannot_be_stops_the_round(strange: object) -> None:
    game = first_deal("7S 8C", "9C")
    with pytest.raises(InvariantViolated):
        game.when(strange)  # type: ignore[arg-type]  # each is CardsDealt


def test_a_further_stake_out_of_turn_stops_the_round() -> None:
    game = first_deal("7S 8C", "9C")
    with pytest.raises(InvariantViolated, match="out of turn"):
        game.when(reserved(ANN, bet("b9", "double", 40, 3), stage=PLAY))
    with pytest.raises(InvariantViolated):  # And it stays so.
        game.when(taken(1, 2, STAND))


def test_a_late_action_of_an_earlier_turn_changes_nothing() -> None:
    game = first_deal("7S 8C", "9C").given(taken(1, 2, HIT), dealt(4, ("2H", SEAT_2)))
    game.when(taken(1, 2, STAND)).then()


def test_every_hand_has_its_number() -> None:
    spots = [spot_of(hand) for hand in range(30)]
    assert [spot for spot in spots if spot is not None] == [
        (0, 1),
        (0, 2),
        *((seat, 1) for seat in range(1, 8)),
        *((seat, 2) for seat in range(1, 8)),
    ]


def test_a_bet_at_a_table_of_another_game_is_nothing_to_rules() -> None:
    game: Deciding[RulesState] = Deciding(CORE)
    game.when(reserved(ANN, bet("b1", "main", 100, 2))).then()
    action = table.ActionTaken(turn=1, seat=1, action=HIT, **PLACE)
    game.when(action).then()
