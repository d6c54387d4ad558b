"""Blackjack by itself (rules BJ-1 to BJ-8, BJ-12, BJ-13): hands, actions, a round's course."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pytest

from sabot.rules.v1 import rule_set_pb2
from sabot.table.v1 import spec_pb2
from services.games import blackjack, catalogue
from services.games.blackjack import (
    DEALER,
    HOLE,
    Action,
    Draw,
    Hand,
    LookAtHole,
    NotPossible,
    OfferInsurance,
    Options,
    Over,
    Peek,
    RevealHole,
    Round,
    Seat,
    Spot,
    Step,
    Turn,
    act,
    insurance_minor,
    is_blackjack,
    legal_actions,
    next_step,
    open_hole,
    peeks,
    take_card,
    total,
)
from services.games.blackjack_result import decided_of, options_of, result_of
from services.games.blackjack_strategy import Advice, advice
from services.games.cards import CARDS, RANKS, pack
from services.games.rule_set_faults import rule_set_faults, table_faults
from services.games.rule_sets import named
from tests.unit.blackjack_facts import spec

DEFAULT = Options()
BOTH = Options(Peek.BOTH)
NONE = Options(Peek.NONE)


def cards(text: str) -> list[str]:
    """`A-T-9` as cards, all of one suit."""
    return [rank + "S" for rank in text.replace("10", "T").split("-")]


# ---- hands -------------------------------------------------------------------------------------


def test_bj_05_several_aces() -> None:
    """BJ-1: the totals of the scenario, with what counts as soft."""
    expected = {
        "A-A-A-6": (19, True),
        "A-4-7": (12, False),
        "A-A-10": (12, False),
        "A-A": (12, True),
        "A-6": (17, True),
        "A-6-10": (17, False),
        "A-9-A": (21, True),
    }
    assert {text: tuple(total(cards(text))) for text in expected} == expected


def test_bj_05_the_dealer_stands_on_every_17() -> None:
    """BJ-5: king and ace is 21 at once, a soft 17 stands, ace-4-7 is 12 and goes on."""
    assert total(cards("K-A")) == (21, True)
    assert not blackjack.dealer_draws(cards("K-A"))
    assert not blackjack.dealer_draws(cards("A-6"))
    assert blackjack.dealer_draws(cards("A-4-7"))
    assert total(cards("A-4-7-9")) == (21, False)
    assert not blackjack.dealer_draws(cards("A-4-7-9"))


def test_bj_1_every_hand_of_up_to_seven_cards_counts_its_aces_best() -> None:
    """Against trying 1 and 11 for each ace."""
    seen: set[tuple[int, bool]] = set()
    for size in range(1, 8):
        for ranks in combinations_with_replacement("A23456789T", size):
            hand = [rank + "H" for rank in ranks]
            each = [(1, 11) if rank == "A" else (blackjack.value(rank + "H"),) for rank in ranks]
            sums = {sum(choice) for choice in product(*each)}
            fits = [points for points in sums if points <= 21]
            best = max(fits) if fits else min(sums)
            assert total(hand) == (best, best != min(sums)), hand
            seen.add(total(hand))
    assert {(points, True) for points in range(11, 22)} <= seen
    assert {(points, False) for points in range(2, 31)} <= seen


def test_bj_1_only_ace_and_ten_value_dealt_first_are_a_blackjack() -> None:
    blackjacks = [
        (first, second) for first, second in product(CARDS, CARDS) if is_blackjack((first, second))
    ]
    assert len(blackjacks) == 2 * 4 * 16
    assert not any(is_blackjack(hand, split=True) for hand in blackjacks)
    assert not is_blackjack(cards("7-7-7"))


@pytest.mark.parametrize("up_rank", RANKS)
def test_bj_4_when_the_dealer_looks(up_rank: str) -> None:
    up = up_rank + "D"
    assert peeks(Peek.ACE_ONLY, up) == (up_rank == "A")
    assert peeks(Peek.BOTH, up) == (up_rank in "ATJQK")
    assert not peeks(Peek.NONE, up)


@pytest.mark.parametrize(("main", "half"), [(1, 0), (2, 1), (25, 12), (1001, 500)])
def test_bj_3_insurance_is_half_rounded_down(main: int, half: int) -> None:
    assert insurance_minor(main) == half


def test_bj_5_to_7_what_every_two_cards_may_do() -> None:
    """All 2,704 first hands: double always, split at equal values only, nothing with 21."""
    for pair in product(CARDS, CARDS):
        actions = legal_actions(Options(), Hand(list(pair)))
        if is_blackjack(pair):
            assert actions == ()
            continue
        values = [blackjack.value(card) for card in pair]
        splits = (Action.SPLIT,) if values[0] == values[1] else ()
        assert actions == (Action.HIT, Action.STAND, Action.DOUBLE, *splits)
        assert Action.DOUBLE not in legal_actions(Options(doubles=False), Hand(list(pair)))


def test_bj_7_after_a_split_a_hand_only_hits_or_stands() -> None:
    eights = Hand(cards("8-8"), split=True)
    assert legal_actions(Options(), eights) == (Action.HIT, Action.STAND)
    aces = Hand(cards("A-A"), split=True)
    assert legal_actions(Options(), aces) == ()
    assert legal_actions(Options(one_card_on_split_aces=False), aces) == (Action.HIT, Action.STAND)


# ---- basic strategy ----------------------------------------------------------------------------

CHANCES = {points: Fraction(1 if points < 10 else 4, 13) for points in range(1, 11)}
"""Of each value in an endless pack."""


def counted(points: int, soft: bool, card: int) -> tuple[int, bool]:
    """A total with one more card."""
    low = points - 10 * soft + card
    soft = (soft or card == 1) and low + 10 <= 21
    return low + 10 * soft, soft


@cache
def dealer_ends(points: int, soft: bool, first: bool) -> dict[int, Fraction]:
    """Where the dealer ends, 22 for bust; without the blackjacks behind an ace or ten."""
    if points >= 17:
        return {min(points, 22): Fraction(1)}
    ends: dict[int, Fraction] = {}
    for card, chance in CHANCES.items():
        if first and (points, card) in {(11, 10), (10, 1)}:
            continue
        for end, further in dealer_ends(*counted(points, soft, card), False).items():
            ends[end] = ends.get(end, Fraction(0)) + chance * further
    whole = sum(ends.values())
    return {end: chance / whole for end, chance in ends.items()}


def standing(points: int, up: int) -> Fraction:
    ends = dealer_ends(11 if up == 1 else up, up == 1, True)
    return sum(
        (
            chance * (1 if end > 21 or points > end else -(points < end))
            for end, chance in ends.items()
        ),
        Fraction(0),
    )


@cache
def hitting(points: int, soft: bool, up: int) -> Fraction:
    value = Fraction(0)
    for card, chance in CHANCES.items():
        after, after_soft = counted(points, soft, card)
        if after > 21:
            value -= chance
        else:
            value += chance * max(standing(after, up), hitting(after, after_soft, up))
    return value


@pytest.mark.parametrize("soft", [False, True])
def test_bj_12_the_advice_is_what_gains_most(soft: bool) -> None:
    """Every total against every first card of the dealer, exactly, for an endless pack."""
    for points in range(12 if soft else 4, 21):
        for up in range(1, 11):
            hits = hitting(points, soft, up) > standing(points, up)
            expected = Advice.HIT if hits else Advice.STAND
            assert advice(points, soft=soft, dealer=up) == expected, (points, soft, up)


# ---- the course of a round ---------------------------------------------------------------------


class Table:
    """A round that is dealt from a list of cards."""

    def __init__(self, shoe: str, *mains: int, options: Options = DEFAULT) -> None:
        self.one = Round(options, {seat: Seat(main) for seat, main in enumerate(mains, 1)})
        self.left = shoe.split()
        self.hole = ""

    def step(self) -> Step:
        """What comes next, after all that needs nobody: cards are dealt as they are asked for."""
        while isinstance(step := next_step(self.one), Draw):
            for spot in step.spots:
                card = self.left.pop(0)
                self.hole = card if spot == HOLE else self.hole
                take_card(self.one, spot, card)
        return step

    def insured(self) -> Table:
        assert isinstance(self.step(), OfferInsurance)
        self.one.insurance_over = True
        return self

    def looked(self) -> Table:
        assert isinstance(self.step(), LookAtHole)
        self.one.peeked = is_blackjack((self.one.dealer[0], self.hole))
        return self

    def does(self, seat: int, hand: int, action: Action) -> Table:
        step = self.step()
        assert isinstance(step, Turn)
        assert step.spot == Spot(seat, hand)
        assert action in step.actions
        act(self.one, step.spot, action)
        return self

    def revealed(self) -> Table:
        assert isinstance(self.step(), RevealHole)
        open_hole(self.one, self.hole)
        assert isinstance(self.step(), Over)
        assert not self.left
        return self


def test_bj_2_the_deal() -> None:
    one = Round(Options(), {2: Seat(10), 5: Seat(10)})
    assert next_step(one) == Draw((Spot(2, 1), Spot(5, 1), DEALER, Spot(2, 1), Spot(5, 1), HOLE))


def test_bj_14_nobody_bet() -> None:
    assert next_step(Round(Options(), {})) == Over()


def test_bj_3_insurance_is_offered_at_an_ace_to_every_seat_whose_half_is_something() -> None:
    """Also to a blackjack, and to nobody where no seat can."""
    table = Table("AH 9S 9D AC KH 8S 8D KC", 100, 1, 3)
    assert table.step() == OfferInsurance((1, 3), (50, 1))
    table.insured()
    assert table.step() == LookAtHole()
    poor = Table("9S AC 8S 9C", 1)
    assert poor.step() == LookAtHole()


def test_bj_3_no_insurance_at_a_ten() -> None:
    """BJ-03 V5: a king with an ace in the hole offers nothing."""
    assert isinstance(Table("9S KC 8S AC", 100).step(), Turn)


def test_bj_4_a_peeked_blackjack_ends_the_round() -> None:
    table = Table("9S AC 8S KC", 100).insured().looked()
    assert table.revealed().one.dealer == ["AC", "KC"]
    table = Table("9S KC 8S AC", 100, options=BOTH).looked()
    assert table.revealed().one.dealer == ["KC", "AC"]


def test_bj_4_without_a_peek_the_seats_play_against_the_blackjack() -> None:
    table = Table("8S AC 8D KC 3S TS", 100, options=NONE).insured()
    table.does(1, 1, Action.SPLIT).does(1, 1, Action.STAND).does(1, 2, Action.STAND)
    assert table.revealed().one.dealer == ["AC", "KC"]


def test_bj_13_seats_act_in_order_and_a_blackjack_does_not() -> None:
    table = Table("AS 9S 5D 7C KS 2S 6D TC KH 8H", 100, 100, 100)
    table.does(2, 1, Action.HIT)  # 21: it stands by itself (BJ-5)
    table.does(3, 1, Action.DOUBLE)
    table.revealed()
    assert table.one.seats[2].hands[0].cards == ["9S", "2S", "KH"]
    assert table.one.seats[3].hands[0].cards == ["5D", "6D", "8H"]


def test_bj_7_both_split_hands_get_their_card_at_once() -> None:
    table = Table("8S 6C 8D KC 3H TH 9H 5C", 100)
    table.does(1, 1, Action.SPLIT)
    step = table.step()
    assert step == Turn(Spot(1, 1), (Action.HIT, Action.STAND), 0, 0, Advice.HIT)
    assert [hand.cards for hand in table.one.seats[1].hands] == [["8S", "3H"], ["8D", "TH"]]
    table.does(1, 1, Action.HIT).does(1, 1, Action.STAND).does(1, 2, Action.STAND).revealed()
    assert [hand.cards for hand in table.one.seats[1].hands] == [["8S", "3H", "9H"], ["8D", "TH"]]


def test_bj_7_split_aces_get_one_card_each() -> None:
    table = Table("AS 6C AD KC 3H TH 5C", 100).does(1, 1, Action.SPLIT).revealed()
    assert [hand.cards for hand in table.one.seats[1].hands] == [["AS", "3H"], ["AD", "TH"]]
    free = Table("AS 6C AD KC 3H TH", 100, options=Options(one_card_on_split_aces=False))
    free.does(1, 1, Action.SPLIT).does(1, 1, Action.STAND)
    assert isinstance(free.step(), RevealHole)  # The second hand is 21.


def test_bj_5_the_dealer_draws_only_against_a_hand_that_is_neither_bust_nor_a_blackjack() -> None:
    bust = Table("TS 6C 6S 5C KH", 100).does(1, 1, Action.HIT).revealed()
    assert bust.one.dealer == ["6C", "5C"]
    natural = Table("AS 6C KS 5C", 100).revealed()
    assert natural.one.dealer == ["6C", "5C"]
    both = Table("AS TS 6C KS 6S 5C KH", 100, 100).does(2, 1, Action.HIT).revealed()
    assert both.one.dealer == ["6C", "5C"]
    split = Table("TS 6C KS 5C AH AD 2C 3C 4C", 100).does(1, 1, Action.SPLIT).revealed()
    assert split.one.dealer == ["6C", "5C", "2C", "3C", "4C"]


def test_bj_6_the_most_that_a_double_takes_is_the_first_stake() -> None:
    step = Table("5S 6C 6S 5C", 1234).step()
    assert isinstance(step, Turn)
    assert (step.max_double_minor, step.split_minor) == (1234, 0)
    pair = Table("5S 6C 5D 5C", 1234, options=Options(doubles=False)).step()
    assert isinstance(pair, Turn)
    assert (pair.max_double_minor, pair.split_minor) == (0, 1234)


def test_what_does_not_fit_is_refused() -> None:
    one = Table("TS 6C 6S 5C", 100)
    one.step()
    with pytest.raises(NotPossible):
        take_card(one.one, Spot(1, 1), "2S")
    with pytest.raises(NotPossible):
        take_card(one.one, Spot(2, 1), "2S")
    with pytest.raises(NotPossible):
        take_card(one.one, DEALER, "2S")
    with pytest.raises(NotPossible):
        take_card(one.one, HOLE, "")
    with pytest.raises(NotPossible):
        act(one.one, Spot(1, 1), Action.SPLIT)
    with pytest.raises(NotPossible):
        act(one.one, Spot(1, 2), Action.STAND)
    act(one.one, Spot(1, 1), Action.HIT)
    with pytest.raises(NotPossible):  # Its card is still to come.
        act(one.one, Spot(1, 1), Action.HIT)


def test_a_look_that_the_hole_card_contradicts_is_refused() -> None:
    for peeked, hole in ((True, "9C"), (False, "KC")):
        table = Table(f"9S AC 8S {hole}", 100).insured()
        table.step()
        table.one.peeked = peeked
        with pytest.raises(NotPossible):
            open_hole(table.one, hole)


@pytest.mark.parametrize("seed", range(300))
def test_every_round_comes_to_an_end_that_its_result_proves(seed: int) -> None:
    """Chance plays 1 to 7 seats by every option: the machine ends, and settlement's check of the
    result finds nothing wrong with it."""
    chance = random.Random(seed)
    shoe = list(pack(8))
    chance.shuffle(shoe)
    options = Options(chance.choice(list(Peek)), chance.random() < 0.8, chance.random() < 0.8)
    seats = sorted(chance.sample(range(1, 8), chance.randint(1, 7)))
    table = Table(" ".join(shoe), options=options)
    table.one.seats.update({seat: Seat(chance.choice([1, 2, 100])) for seat in seats})
    steps = 0
    while not isinstance(step := table.step(), Over):
        steps += 1
        assert steps < 200
        match step:
            case OfferInsurance():
                table.one.insurance_over = True
            case LookAtHole():
                table.one.peeked = is_blackjack((table.one.dealer[0], table.hole))
            case Turn():
                act(table.one, step.spot, chance.choice(step.actions))
            case _:
                open_hole(table.one, table.hole)
    decided = decided_of(result_of(table.one), options)
    assert list(decided.seats) == seats
    assert list(decided.dealer) == table.one.dealer


def test_bj_15_no_round_takes_more_cards_than_lie_behind_the_cut_card() -> None:
    """The cheapest cards of eight decks for so many points, and a last card for every hand."""
    points, used = 2 * blackjack.SEATS * 20 + 16, 2 * blackjack.SEATS + 1
    for value in range(1, 10):
        taken = min(32, points // value)
        used += taken
        points -= taken * value
        if taken < 32:
            break
    assert used == blackjack.MAX_ROUND_CARDS
    assert not rule_set_faults(catalogue.blackjack(cut_depth=used))
    assert rule_set_faults(catalogue.blackjack(cut_depth=used - 1)) == [
        "cut depth 136 is under 137"
    ]


def test_a_table_may_be_fed_from_the_floor_and_has_a_longest_time_for_an_action() -> None:
    of = spec()
    assert table_faults(of) == []
    of.origin = spec_pb2.OUTCOME_ORIGIN_FLOOR
    assert table_faults(of) == []
    of.pacing.action_ms = 600_001
    assert table_faults(of) == ["the time for an action is at most 600000 ms"]


def test_bj_4_a_table_says_when_the_dealer_peeks() -> None:
    for peek in Peek:
        assert not rule_set_faults(catalogue.blackjack(peek=peek))
        assert options_of(catalogue.blackjack(peek=peek)).peek is peek
    odd = catalogue.blackjack()
    odd.blackjack.peek = rule_set_pb2.PEEK_UNSPECIFIED
    assert rule_set_faults(named(odd)) == ["the peek is not one of ace only, both, none"]
