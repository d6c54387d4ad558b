"""A misread card at blackjack: what stands as it was dealt, what is asked anew, and what cannot
have been played."""

from __future__ import annotations

import random

import pytest

from sabot.rules.v1 import events_pb2 as rules
from sabot.shoe.v1 import floor_events_pb2 as floor
from sabot.table.v1 import spec_pb2
from services.games import blackjack as game_of
from services.games.blackjack import (
    DEALER,
    HOLE,
    Draw,
    LookAtHole,
    OfferInsurance,
    Options,
    Over,
    Peek,
    RevealHole,
    Round,
    Seat,
    Turn,
    is_blackjack,
)
from services.games.cards import CARDS
from services.games.catalogue import blackjack
from services.kernel.snapshot import StateCodec
from services.rules.domain.blackjack_plays import Kind, Play, play_again
from services.rules.domain.core import CORE
from services.rules.domain.state import RulesState
from tests.unit.blackjack_facts import (
    ANN,
    BEN,
    DOUBLE,
    HIT,
    INSURANCE,
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
from tests.unit.table_facts import S1, resumed, suspended, voided

SEAT_2, SEAT_5, SEAT_2_SPLIT = seat_hand(2), seat_hand(5), seat_hand(2, 2)
NOBODY = rules.HAND_UNSPECIFIED
FIRST_TWO = (HIT, STAND, DOUBLE)


def corrected(index: int, card: str) -> floor.CardCorrected:
    return floor.CardCorrected(shoe_id=S1, index=index, card=card, **PLACE)


def given_to(*hands: int) -> rules.HandsCorrected:
    return rules.HandsCorrected(
        cards=[
            rules.CardInHand(index=place, hand=rules.Hand.ValueType(one))
            for place, one in enumerate(hands)
        ],
        **PLACE,
    )


def recalled(number: int = 0) -> rules.DrawRecalled:
    return rules.DrawRecalled(shoe_id=S1, turn=number, **PLACE)


def contradicted(why: str) -> rules.PlayContradicted:
    return rules.PlayContradicted(why=why, **PLACE)


def one_seat(peeks: Peek = Peek.ACE_ONLY, side_bets: bool = False) -> Deciding[RulesState]:
    """100 at seat 2."""
    log_ = Deciding(CORE).given(opened(blackjack(peek=peeks)), round_opened())
    more = [bet("b2", "perfect_pairs", 10, 2), bet("b3", "21_plus_3", 10, 2)] if side_bets else []
    return log_.given(reserved(ANN, bet("b1", "main", 100, 2), *more), sealed())


def first_deal(
    seat: str, up_card: str, peeks: Peek = Peek.ACE_ONLY, side_bets: bool = False
) -> Deciding[RulesState]:
    """Places 0 to 3: the seat's first card, the dealer's, the seat's second, the hole card."""
    first, second = seat.split()
    return one_seat(peeks, side_bets).given(
        dealt(0, (first, SEAT_2)), dealt(1, (up_card, D)), dealt(2, (second, SEAT_2)),
        dealt(3, ("", H)),
    )  # fmt: skip


DEAL = (SEAT_2, D, SEAT_2, H)

# ---- the turn that is open ---------------------------------------------------------------------


def test_a_turn_that_is_another_one_is_recalled_and_called_anew_when_the_round_goes_on() -> None:
    log_ = first_deal("7S 8C", "9C").given(suspended())
    log_.when(corrected(2, "7C")).then(recalled(1), given_to(*DEAL))  # A pair may be split.
    log_.when(resumed()).then(turn(2, 2, (*FIRST_TWO, SPLIT), stake=100, advice=HIT))


def test_a_turn_that_is_the_same_stays_open() -> None:
    log_ = first_deal("7S 8C", "9C").given(suspended())
    log_.when(corrected(2, "8D")).then(given_to(*DEAL))
    log_.when(resumed()).then()
    log_.when(taken(1, 2, STAND)).then(reveal("9C"))


def test_a_hand_that_takes_no_action_with_the_right_card_has_no_turn() -> None:
    log_ = first_deal("AS 8C", "9C").given(suspended())
    log_.when(corrected(2, "KC")).then(recalled(1), given_to(*DEAL))
    log_.when(resumed()).then(reveal("9C"))
    log_.when(dealt(3, ("8D", H))).then(resolved("9C 8D", (2, [hand("AS KC")])))


def test_a_card_is_corrected_while_the_deal_still_goes_on() -> None:
    log_ = one_seat().given(dealt(0, ("7S", SEAT_2)), dealt(1, ("9C", D)), suspended())
    log_.when(corrected(0, "8S")).then(given_to(SEAT_2, D))
    log_.when(dealt(2, ("8C", SEAT_2))).then()
    log_.when(dealt(3, ("", H))).then()
    log_.when(resumed()).then(turn(1, 2, (*FIRST_TWO, SPLIT), stake=100, advice=HIT))


def test_a_card_that_is_held_is_of_no_hand_yet() -> None:
    log_ = first_deal("7S 8C", "9C").given(suspended())
    log_.when(corrected(4, "2D")).then(given_to(*DEAL))
    log_.when(resumed()).then()


# ---- what was played stands as it was dealt ----------------------------------------------------


def test_a_hit_that_was_allowed_stands() -> None:
    log_ = first_deal("7S 8C", "9C").given(taken(1, 2, HIT), dealt(4, ("2H", SEAT_2)))
    log_.given(suspended())
    log_.when(corrected(2, "9H")).then(given_to(*DEAL, SEAT_2))  # 15 was 16: now 18, not 17.
    log_.when(taken(2, 2, STAND)).then()
    log_.when(resumed()).then(reveal("9C"))
    log_.when(dealt(3, ("8D", H))).then(resolved("9C 8D", (2, [hand("7S 9H 2H")])))


def test_a_card_in_a_split_hand_is_another_one() -> None:
    split = bet("b9", "split", 100, 2)
    log_ = first_deal("8S 8C", "9C").given(taken(1, 2, SPLIT, extra=split))
    log_.when(reserved(ANN, split, stage=PLAY)).then(drawn(4, SEAT_2, SEAT_2_SPLIT))
    log_.given(dealt(4, ("2S", SEAT_2)), dealt(5, ("3S", SEAT_2_SPLIT)), taken(2, 2, STAND))
    log_.given(taken(3, 2, HIT, hand=2), dealt(6, ("KD", SEAT_2_SPLIT)))  # 21: it stands by itself.
    log_.given(suspended())
    log_.when(corrected(6, "5D")).then_only(rules.DrawRecalled, rules.HandsCorrected)
    log_.when(resumed()).then(turn(4, 2, hand=2, advice=HIT))
    log_.given(taken(4, 2, STAND, hand=2))
    log_.when(dealt(3, ("8D", H))).then(
        resolved("9C 8D", (2, [hand("8S 2S", split=True), hand("8C 3S 5D", split=True)]))
    )


def test_a_double_stands_with_the_right_card() -> None:
    double = bet("b9", "double", 40, 2)
    log_ = first_deal("5S 6C", "9C").given(taken(1, 2, DOUBLE, extra=double))
    log_.given(reserved(ANN, double, stage=PLAY), dealt(4, ("TH", SEAT_2)), suspended())
    log_.when(corrected(4, "2H")).then(given_to(*DEAL, SEAT_2))  # The reveal stays called.
    log_.when(resumed()).then()
    log_.when(dealt(3, ("8D", H))).then(resolved("9C 8D", (2, [hand("5S 6C 2H", doubled=True)])))


def test_a_result_is_given_anew() -> None:
    log_ = first_deal("TS 8C", "9C").given(taken(1, 2, STAND), suspended())
    log_.when(dealt(3, ("8D", H))).then(resolved("9C 8D", (2, [hand("TS 8C")])))
    log_.when(corrected(3, "TD")).then(given_to(*DEAL), resolved("9C TD", (2, [hand("TS 8C")])))
    log_.when(resumed()).then()


# ---- the dealer --------------------------------------------------------------------------------


def test_the_dealer_draws_where_the_right_card_asks_for_it() -> None:
    log_ = first_deal("TS 8C", "9C").given(taken(1, 2, STAND), suspended())
    log_.given(dealt(3, ("8D", H)))
    log_.when(corrected(3, "5D")).then(given_to(*DEAL))
    log_.when(resumed()).then(drawn(4, D))
    log_.when(dealt(4, ("7H", D))).then(resolved("9C 5D 7H", (2, [hand("TS 8C")])))


def test_a_card_that_the_dealer_need_not_have_drawn_is_not_played() -> None:
    log_ = first_deal("TS 8C", "9C").given(taken(1, 2, STAND), dealt(3, ("5D", H)), suspended())
    log_.when(dealt(4, ("7H", D))).then(resolved("9C 5D 7H", (2, [hand("TS 8C")])))
    log_.when(corrected(3, "8D")).then(
        given_to(*DEAL, NOBODY), resolved("9C 8D", (2, [hand("TS 8C")]))
    )
    log_.when(corrected(3, "6D")).then(  # And is played again, where it was not an eight either.
        given_to(*DEAL, D), resolved("9C 6D 7H", (2, [hand("TS 8C")]))
    )


def test_a_draw_of_the_dealer_is_recalled_and_a_card_that_crosses_it_is_not_played() -> None:
    log_ = first_deal("TS 8C", "9C").given(taken(1, 2, STAND))
    log_.when(dealt(3, ("5D", H))).then(drawn(4, D))
    log_.given(suspended())
    log_.when(corrected(3, "8D")).then(
        recalled(), given_to(*DEAL), resolved("9C 8D", (2, [hand("TS 8C")]))
    )
    log_.when(dealt(4, ("7H", D))).then(given_to(*DEAL, NOBODY))


# ---- insurance and looks -----------------------------------------------------------------------


def test_an_offer_that_nobody_took_is_recalled() -> None:
    log_ = first_deal("TS 8C", "AC").given(suspended())
    log_.when(corrected(1, "9C")).then(recalled(1), given_to(*DEAL))
    log_.when(resumed()).then(turn(2, 2, FIRST_TWO, stake=100))


def test_an_offer_is_made_where_the_right_card_is_an_ace() -> None:
    log_ = first_deal("TS 8C", "9C").given(suspended())
    log_.when(corrected(1, "AC")).then(recalled(1), given_to(*DEAL))
    log_.when(resumed()).then(offered(2, 2))
    log_.when(sealed(INSURANCE)).then(peek("AC"))


def test_an_offer_that_is_open_stays_open() -> None:
    log_ = first_deal("TS 8C", "AC").given(suspended())
    log_.when(corrected(2, "7C")).then(given_to(*DEAL))
    log_.when(resumed()).then()
    log_.when(sealed(INSURANCE)).then(peek("AC"))


def test_the_end_of_a_recalled_offer_answers_nothing_else() -> None:
    """Its seal was on its way as the up card was corrected."""
    log_ = first_deal("TS 8C", "AC").given(suspended())
    log_.given(corrected(1, "9C"), resumed())
    log_.when(sealed(INSURANCE)).then()
    log_.when(taken(2, 2, STAND)).then(reveal("9C"))


def test_insurance_that_was_taken_needs_an_ace() -> None:
    insurance = bet("b9", "insurance", 50, 2)
    log_ = first_deal("TS 8C", "AC").given(reserved(ANN, insurance, stage=INSURANCE))
    log_.given(sealed(INSURANCE), suspended())
    log_.when(corrected(1, "9C")).then(
        recalled(), contradicted("insurance was taken when none was to be offered")
    )
    log_.when(resumed()).then()
    log_.given(suspended())
    log_.when(corrected(1, "AD")).then(given_to(*DEAL))
    log_.when(resumed()).then(peek("AD"))


def test_insurance_that_is_reserved_behind_the_correction_is_found() -> None:
    log_ = first_deal("TS 8C", "AC").given(suspended(), corrected(1, "9C"), resumed())
    insurance = bet("b9", "insurance", 50, 2)
    log_.given(reserved(ANN, insurance, stage=INSURANCE))
    log_.when(sealed(INSURANCE)).then_only(rules.DrawRecalled, rules.PlayContradicted)


def test_a_look_is_called_at_the_right_card_and_recalled_at_another() -> None:
    log_ = first_deal("TS 8C", "AC", Peek.BOTH).given(sealed(INSURANCE), suspended())
    log_.when(corrected(1, "KC")).then(recalled(), given_to(*DEAL))
    log_.when(resumed()).then(peek("KC"))
    log_.given(suspended())
    log_.when(corrected(1, "9C")).then(recalled(), given_to(*DEAL))
    log_.when(resumed()).then(turn(2, 2, FIRST_TWO, stake=100))


def test_a_look_that_no_rule_asked_for_cannot_have_been() -> None:
    log_ = first_deal("TS 8C", "AC").given(sealed(INSURANCE), hole_checked(False), suspended())
    log_.when(corrected(1, "KC")).then(
        recalled(2), contradicted("the hole card was looked at when it was not to be")
    )


def test_a_hole_card_that_contradicts_the_look_cannot_be() -> None:
    log_ = first_deal("TS 8C", "AC").given(sealed(INSURANCE), hole_checked(False))
    log_.given(taken(2, 2, STAND), suspended(), dealt(3, ("7D", H)))
    log_.when(corrected(3, "KD")).then(
        contradicted("the hole card KD is not what the look at it told")
    )


# ---- what cannot have been played --------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "card", "why"),
    [
        (2, "AS", "seat 2 acted and had no turn"),  # Ten and ace: a blackjack takes no action.
        (0, "9S", ""),
    ],
)
def test_a_hit_on_a_hand_that_takes_none(index: int, card: str, why: str) -> None:
    log_ = first_deal("TS 3C", "9C").given(taken(1, 2, HIT), dealt(4, ("5H", SEAT_2)))
    log_.given(suspended())
    if why:
        log_.when(corrected(index, card)).then(recalled(2), contradicted(why))
    else:
        log_.when(corrected(index, card)).then(given_to(*DEAL, SEAT_2))


def test_a_split_of_two_values_cannot_have_been() -> None:
    split = bet("b9", "split", 100, 2)
    log_ = first_deal("8S 8C", "9C").given(taken(1, 2, SPLIT, extra=split))
    log_.given(reserved(ANN, split, stage=PLAY), suspended())
    log_.when(corrected(2, "7C")).then(recalled(), contradicted("seat 2, hand 1 may not split"))
    log_.when(dealt(4, ("2S", SEAT_2))).then()
    log_.when(resumed()).then()


def test_a_turn_that_was_passed_over_cannot_be_given_back() -> None:
    """A bust that was none, and the hole card lies open already."""
    log_ = first_deal("TS 6C", "9C").given(taken(1, 2, HIT), dealt(4, ("KH", SEAT_2)))
    log_.given(suspended(), dealt(3, ("8D", H)))
    log_.when(corrected(4, "4H")).then(
        contradicted("the hole card was turned over before its time")
    )
    log_.when(corrected(4, "QH")).then(
        given_to(*DEAL, SEAT_2), resolved("9C 8D", (2, [hand("TS 6C QH")]))
    )


def test_while_the_hole_card_is_only_called_the_turn_is_given_back() -> None:
    log_ = first_deal("TS 6C", "9C").given(taken(1, 2, HIT), dealt(4, ("KH", SEAT_2)))
    log_.given(suspended())
    log_.when(corrected(4, "4H")).then(recalled(), given_to(*DEAL, SEAT_2))
    log_.when(resumed()).then(turn(2, 2))
    log_.when(taken(2, 2, STAND)).then(reveal("9C"))


def test_a_voided_round_is_not_corrected() -> None:
    log_ = first_deal("TS 6C", "9C").given(voided())
    log_.when(corrected(0, "9S")).then()


# ---- side bets ---------------------------------------------------------------------------------


def test_side_bets_are_decided_anew_also_behind_a_split() -> None:
    log_ = first_deal("7S 7C", "9C", side_bets=True)
    assert [one for one in log_.answers if isinstance(one, rules.SideBetDecided)] == []
    split = bet("b9", "split", 100, 2)
    log_.given(taken(1, 2, SPLIT, extra=split), reserved(ANN, split, stage=PLAY))
    log_.given(dealt(4, ("2S", SEAT_2)), dealt(5, ("3S", SEAT_2_SPLIT)), suspended())
    log_.when(corrected(0, "7D")).then(
        given_to(*DEAL, SEAT_2, SEAT_2_SPLIT), side_bet(2, "perfect_pairs", "mixed")
    )
    log_.when(corrected(2, "7D")).then(
        given_to(*DEAL, SEAT_2, SEAT_2_SPLIT), side_bet(2, "perfect_pairs", "perfect")
    )


# ---- played again ------------------------------------------------------------------------------


def _plays(chance: random.Random, options: Options) -> tuple[Round, list[Play], bool]:
    """A round by chance, and all that happened in it."""
    seats = sorted(chance.sample(range(1, 8), chance.randint(1, 3)))
    one = Round(options, {seat: Seat(100) for seat in seats})
    cards = iter(chance.choices(CARDS, k=140))
    plays: list[Play] = []
    hole, place, insured = "", 0, False
    while not isinstance(step := game_of.next_step(one), Over):
        match step:
            case Draw():
                for spot in step.spots:
                    card = next(cards)
                    hole = card if spot == HOLE else hole
                    shown = "" if spot == HOLE else card
                    plays.append(Play(Kind.CARD, spot, shown, place))
                    game_of.take_card(one, spot, shown)
                    place += 1
            case OfferInsurance():
                insured = chance.random() < 0.5
                plays.append(Play(Kind.INSURED))
                one.insurance_over = True
            case LookAtHole():
                one.peeked = is_blackjack((one.dealer[0], hole))
                plays.append(Play(Kind.LOOK, blackjack=one.peeked))
            case RevealHole():
                plays.append(Play(Kind.TURNED, HOLE, hole, place))
                game_of.open_hole(one, hole)
            case Turn():
                action = chance.choice(step.actions)
                plays.append(Play(Kind.ACTION, step.spot, action=action))
                game_of.act(one, step.spot, action)
    return one, plays, insured


@pytest.mark.parametrize("peeks", list(Peek))
def test_a_round_that_is_played_again_with_its_own_cards_is_the_same(peeks: Peek) -> None:
    chance = random.Random(7)
    for _ in range(300):
        options = Options(peeks, chance.random() < 0.8, chance.random() < 0.8)
        one, plays, insured = _plays(chance, options)
        mains = [(seat, 100) for seat in one.seats]
        again = play_again(options, mains, plays, insured=insured)
        assert (again.game, again.expected, again.unplayed) == (one, [], [])
        assert DEALER not in again.expected


def test_its_state_is_a_snapshot() -> None:
    log_ = first_deal("7S 8C", "AC", side_bets=True).given(suspended(), corrected(1, "9C"))
    codec = StateCodec()
    raw = codec.dumps(RulesState, log_.state)
    assert codec.loads(RulesState, raw) == log_.state


def test_two_seats_and_a_card_of_the_one_that_has_acted() -> None:
    log_ = Deciding(CORE).given(opened(), round_opened())
    log_.given(reserved(ANN, bet("b1", "main", 100, 2)), reserved(BEN, bet("b2", "main", 60, 5)))
    log_.given(sealed(), dealt(0, ("5S", SEAT_2), ("9D", SEAT_5), ("7C", D)))
    log_.given(dealt(3, ("6S", SEAT_2), ("9H", SEAT_5), ("", H)), taken(1, 2, HIT))
    log_.given(dealt(6, ("4D", SEAT_2)), taken(2, 2, STAND), suspended())
    everyone = (SEAT_2, SEAT_5, D, SEAT_2, SEAT_5, H, SEAT_2)
    log_.when(corrected(6, "5D")).then(given_to(*everyone))  # Seat 5's turn stays open.
    log_.when(resumed()).then()
    log_.when(taken(3, 5, STAND)).then(reveal("7C"))
    log_.when(dealt(5, ("TD", H))).then(
        resolved("7C TD", (2, [hand("5S 6S 5D")]), (5, [hand("9D 9H")]))
    )


# ---- no hole card ------------------------------------------------------------------------------


def without_hole(seat: str, up_card: str) -> Deciding[RulesState]:
    """On a floor where nobody looks: places 0 to 2."""
    first, second = seat.split()
    spec = opened(blackjack(peek=Peek.NONE))
    spec.spec.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
    log_ = Deciding(CORE).given(spec, round_opened())
    log_.given(
        reserved(ANN, bet("b1", "main", 100, 2), bet("b2", "21_plus_3", 10, 2)),
    )
    log_.when(sealed()).then(drawn(0, SEAT_2, D, SEAT_2))
    log_.given(dealt(0, (first, SEAT_2)))
    log_.when(dealt(1, (up_card, D))).then()
    return log_.when(dealt(2, (second, SEAT_2)))


def test_bj_4_on_a_floor_where_nobody_looks_the_dealers_second_card_is_a_later_one() -> None:
    log_ = without_hole("TS 8C", "9C")
    log_.then(side_bet(2, "21_plus_3", "straight"), turn(1, 2, FIRST_TWO, stake=100))
    log_.when(taken(1, 2, STAND)).then(drawn(3, D))
    log_.when(dealt(3, ("5D", D))).then(drawn(4, D))
    log_.when(dealt(4, ("7H", D))).then(resolved("9C 5D 7H", (2, [hand("TS 8C")])))


def test_bj_5_the_second_card_is_drawn_also_where_no_hand_is_left() -> None:
    log_ = without_hole("TS 6C", "9C").given(taken(1, 2, HIT))
    log_.when(dealt(3, ("KH", SEAT_2))).then(drawn(4, D))
    log_.when(dealt(4, ("3D", D))).then(resolved("9C 3D", (2, [hand("TS 6C KH")])))


def test_bj_3_at_an_ace_insurance_is_decided_by_the_later_card() -> None:
    log_ = without_hole("TS 8C", "AC")
    log_.then(side_bet(2, "21_plus_3", ""), offered(1, 2))
    log_.when(sealed(INSURANCE)).then(turn(2, 2, FIRST_TWO, stake=100))
    log_.when(taken(2, 2, STAND)).then(drawn(3, D))
    log_.when(dealt(3, ("KD", D))).then(resolved("AC KD", (2, [hand("TS 8C")])))


def test_the_later_card_is_corrected_like_any_other() -> None:
    log_ = without_hole("TS 8C", "9C").given(taken(1, 2, STAND), dealt(3, ("5D", D)), suspended())
    log_.when(corrected(3, "8D")).then(
        recalled(),
        given_to(SEAT_2, D, SEAT_2, D),
        resolved("9C 8D", (2, [hand("TS 8C")])),
    )


def test_a_virtual_table_where_nobody_looks_deals_a_hole_card() -> None:
    log_ = Deciding(CORE).given(opened(blackjack(peek=Peek.NONE)), round_opened())
    log_.given(reserved(ANN, bet("b1", "main", 100, 2)))
    log_.when(sealed()).then(drawn(0, SEAT_2, D, SEAT_2, H))
