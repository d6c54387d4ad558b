"""Exact odds of blackjack: published figures, every order of small packs, and the best strategy."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabot.rules.v1 import rule_set_pb2
from services.games.bets import Judged, pays_of
from services.games.blackjack import (
    HOLE,
    Action,
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
    act,
    is_blackjack,
    next_step,
    open_hole,
    take_card,
    total,
    value,
)
from services.games.blackjack_bets import PAYS, Decided, DecidedSeat, judge, twenty_one_plus_3
from services.games.blackjack_result import options_of
from services.games.cards import CARDS
from services.games.money import Verdict
from services.odds.blackjack_basic import Strategy, basic
from services.odds.blackjack_hands import by_value
from services.odds.blackjack_main import USUAL, main_odds, strategy
from services.odds.blackjack_strategy import MainPays, best_strategy
from services.odds.compositions import TooFewCards, fresh
from services.odds.declared import edges, faults
from services.odds.enumeration import odds_of
from services.odds.outcomes import PayMissing, per_cent, text_of
from services.odds.residues import joined, primes_for
from tests.unit import odds_facts as facts

PEEKS = {
    Peek.ACE_ONLY: rule_set_pb2.PEEK_ACE_ONLY,
    Peek.BOTH: rule_set_pb2.PEEK_BOTH,
    Peek.NONE: rule_set_pb2.PEEK_NONE,
}


def blackjack(
    peek: Peek = Peek.ACE_ONLY, *, decks: int = 8, doubles: bool = True, one_card: bool = True
) -> rule_set_pb2.RuleSet:
    return rule_set_pb2.RuleSet(
        game=rule_set_pb2.GAME_BLACKJACK,
        decks=decks,
        bets=facts.offers(PAYS),
        blackjack=rule_set_pb2.BlackjackOptions(
            peek=PEEKS[peek], doubles=doubles, one_card_on_split_aces=one_card
        ),
    )


# ---- published figures -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bet", "edge"),
    [("perfect_pairs", "4.0964"), ("21_plus_3", "3.7039"), ("insurance", "7.4699")],
)
def test_published_edges_of_the_side_bets(bet: str, edge: str) -> None:
    assert per_cent(facts.by_bet(odds_of(blackjack()))[bet].edge) == edge


@pytest.mark.parametrize(
    ("peek", "published", "edge"),
    [
        (Peek.BOTH, "0.609", "0.609103"),
        (Peek.ACE_ONLY, "0.710", "0.709682"),
        (Peek.NONE, "0.718", "0.717718"),
    ],
)
def test_published_edges_of_the_main_bet(peek: Peek, published: str, edge: str) -> None:
    found = main_odds(blackjack(peek))
    assert abs(100 * found.edge - Fraction(published)) < Fraction("0.002")
    assert per_cent(found.edge, digits=6) == edge
    assert sum(one.probability for one in found.outcomes) == 1


def test_the_outcomes_of_a_main_bet() -> None:
    pays = {one.name: one.pays for one in main_odds(blackjack()).outcomes}
    split = pays.pop("split")
    assert 0 < split < 2
    assert pays == {
        "doubled_won": 2,
        "blackjack": Fraction(3, 2),
        "win": 1,
        "pushed": 0,
        "doubled_pushed": 0,
        "lost": -1,
        "doubled_lost": -2,
    }


def test_every_bet_that_is_placed_has_odds_and_further_stakes_are_the_main_bets() -> None:
    told = odds_of(blackjack())
    assert [one.bet for one in told] == ["21_plus_3", "insurance", "main", "perfect_pairs"]
    assert [one.positions for one in told] == [7] * 4
    declared = edges(blackjack())
    assert declared == {one.bet: one.edge for one in told}
    rule_set = blackjack()
    rule_set.bets[3].edge = text_of(declared["main"])
    assert rule_set.bets[3].bet == "main"
    assert faults(rule_set) == []
    rule_set.bets[3].edge = "7/1000"
    assert faults(rule_set)


# ---- every order of a small pack ---------------------------------------------------------------

STAKE_MINOR = 2
"""Even, so that insurance and 3:2 are whole."""


class CardsMissing(Exception):
    """The round goes on behind the cards that are told."""


def profit(cards: list[str], strategy: Strategy, options: Options) -> tuple[str, Fraction]:
    """A round of one seat from the front of these cards, by the machine that deals live rounds:
    how it ended, and the profit per first stake. Raises CardsMissing."""
    left = iter(cards)
    round_ = Round(options, {1: Seat(STAKE_MINOR)})
    hole = ""
    while not isinstance(step := next_step(round_), Over):
        match step:
            case Draw(spots):
                for spot in spots:
                    card = next(left, None)
                    if card is None:
                        raise CardsMissing
                    hole = card if spot == HOLE else hole
                    take_card(round_, spot, card)
            case OfferInsurance():
                round_.insurance_over = True
            case LookAtHole():
                round_.peeked = is_blackjack([*round_.dealer, hole])
            case Turn():
                act(round_, step.spot, chosen(round_, step, strategy))
            case RevealHole():
                open_hole(round_, hole)
    hands = round_.seats[1].hands
    seat = DecidedSeat(tuple(tuple(hand.cards) for hand in hands), hands[0].doubled)
    decided = Decided({1: seat}, tuple(round_.dealer))
    bets = ["main", *(["split"] if seat.is_split else []), *(["double"] if seat.doubled else [])]
    judged = {bet: judge(bet, decided, "1") for bet in bets}
    return ended(judged), sum((brought(bet, one) for bet, one in judged.items()), Fraction(0))


def chosen(round_: Round, turn: Turn, strategy: Strategy) -> Action:
    up = value(round_.dealer[0]) - 1
    hand = round_.seats[1].hands[turn.spot.hand - 1]
    points, soft = total(hand.cards)
    if Action.SPLIT in turn.actions and strategy.splits[up, value(hand.cards[0]) - 1]:
        return Action.SPLIT
    if Action.DOUBLE in turn.actions and strategy.doubles[up, int(soft), points]:
        return Action.DOUBLE
    return Action.HIT if strategy.hits[up, int(soft), points] else Action.STAND


def ended(judged: Mapping[str, Judged]) -> str:
    """As the odds name it."""
    if "split" in judged:
        return "split"
    word = judged["main"].verdict.name.lower()
    return f"doubled_{word}" if "double" in judged else judged["main"].line or word


def brought(bet: str, judged: Judged) -> Fraction:
    if judged.verdict is Verdict.WON:
        return Fraction(*pays_of(PAYS[bet], judged.line))
    return Fraction(-1 if judged.verdict is Verdict.LOST else 0)


def every_order(
    left: Counter[str], strategy: Strategy, options: Options, told: list[str], chance: Fraction
) -> Iterator[tuple[str, Fraction, Fraction]]:
    """How each order of a pack ends, its profit and its chance; no further than a round looks."""
    try:
        yield *profit(told, strategy, options), chance
    except CardsMissing:
        cards = left.total()
        for card, copies in list(left.items()):
            if copies:
                left[card] -= 1
                onward = chance * Fraction(copies, cards)
                yield from every_order(left, strategy, options, [*told, card], onward)
                left[card] += 1


PACKS = [
    "AS AS TS TS TS TS 8S 8S 8S 3S 3S 9S",
    "AS AS AS 7S 7S 7S TS TS TS TS 9S 9S",
    "5S 5S 6S 6S TS TS TS TS 9S 9S 9S AS",
]
"""Cards of one value are alike. With pairs, doubles, and blackjacks on either side."""


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize(
    "options",
    [*(Options(peek=peek) for peek in Peek), Options(doubles=False, one_card_on_split_aces=False)],
    ids=["ace_only", "both", "none", "plain"],
)
def test_the_main_bet_of_a_small_pack_is_what_playing_its_orders_gives(
    pack: str, options: Options
) -> None:
    rule_set = blackjack(
        options.peek, doubles=options.doubles, one_card=options.one_card_on_split_aces
    )
    assert options_of(rule_set) == options
    table = strategy(8, options, USUAL)
    cards = pack.split()
    chances: defaultdict[str, Fraction] = defaultdict(Fraction)
    profits: defaultdict[str, Fraction] = defaultdict(Fraction)
    alike = Counter({card: cards.count(card) for card in cards})
    for name, won, chance in every_order(alike, table, options, [], Fraction(1)):
        chances[name] += chance
        profits[name] += won * chance
    found = main_odds(rule_set, facts.of_cards(cards)).outcomes
    assert {one.name: one.probability for one in found} == dict(chances)
    assert {one.name: one.pays * one.probability for one in found} == dict(profits)


@pytest.mark.parametrize("text", ["AS AH AS KS TD", "2S 2S 2S 3S 4S 2H", "QS KS AS AS AD 7C"])
def test_the_side_bets_of_a_small_pack_are_what_counting_its_orders_gives(text: str) -> None:
    cards = text.split()
    found: dict[str, Counter[Judged]] = {
        bet: Counter() for bet in ("perfect_pairs", "21_plus_3", "insurance")
    }
    for first, second, up, hole in permutations(cards, 4):
        decided = Decided({1: DecidedSeat(((first, second),))}, (up, hole))
        for bet, fates in found.items():
            if bet != "insurance" or up[0] == "A":
                fates[judge(bet, decided, "1")] += 1
    rule_set = blackjack()
    for place in reversed(range(len(rule_set.bets))):
        if rule_set.bets[place].bet not in found:
            del rule_set.bets[place]
    for one in odds_of(rule_set, facts.of_cards(cards)):
        fates = found.pop(one.bet)
        assert {outcome.name: outcome.probability for outcome in one.outcomes} == {
            named(fate): Fraction(count, fates.total()) for fate, count in fates.items()
        }
    # Where no ace is left insurance is never offered.
    assert all(not fates for fates in found.values())


def named(judged: Judged) -> str:
    return judged.line or judged.verdict.name.lower()


def test_21_plus_3_does_not_ask_which_card_is_the_dealers() -> None:
    for place, one in enumerate(CARDS):
        for other in CARDS[place::3]:
            for third in CARDS[place::7]:
                fates = {twenty_one_plus_3(*order) for order in permutations((one, other, third))}
                assert len(fates) == 1


# ---- any composition ---------------------------------------------------------------------------


def test_a_return_of_the_main_bet_is_the_mean_behind_the_next_card() -> None:
    kinds = {"AS": 9, "5S": 11, "6S": 6, "8S": 10, "TS": 24}
    composition = facts.of_cards([card for card, copies in kinds.items() for _ in range(copies)])
    rule_set = blackjack()
    behind = sum(
        main_odds(rule_set, composition.without([card])).rtp * copies
        for card, copies in kinds.items()
    )
    assert behind / 60 == main_odds(rule_set, composition).rtp


def test_a_pack_that_a_round_may_exhaust_has_no_odds() -> None:
    few = facts.of_cards([*["AS", "AS", "AS", "AS"], *["2S"] * 20])
    with pytest.raises(TooFewCards, match="a round of blackjack may take 27 cards, 24 are left"):
        main_odds(blackjack(), few)
    with pytest.raises(TooFewCards, match="the first deal of blackjack may take 3 cards"):
        odds_of(blackjack(), facts.of_cards(["AS", "AS"]))


def test_a_main_bet_without_its_further_stakes_pay_is_refused() -> None:
    rule_set = blackjack()
    [place] = [place for place, one in enumerate(rule_set.bets) if one.bet == "split"]
    del rule_set.bets[place]
    with pytest.raises(PayMissing, match="split pays nothing"):
        main_odds(rule_set)


# ---- the best strategy -------------------------------------------------------------------------


@pytest.mark.parametrize("peek", list(Peek))
def test_bj_12_basic_strategy_is_the_best_that_looks_at_totals_alone(peek: Peek) -> None:
    found = best_strategy(by_value(fresh(8)), Options(peek=peek), MainPays(1.5, 1, 1, 1))
    known = basic(peek)
    assert np.array_equal(found.hits, known.hits)
    assert np.array_equal(found.doubles, known.doubles)
    assert np.array_equal(found.splits, known.splits)


def test_less_to_choose_from_is_worth_less() -> None:
    usual = main_odds(blackjack()).edge
    plain = main_odds(blackjack(doubles=False))
    assert plain.edge > usual + Fraction(1, 100)
    assert not any(one.name.startswith("doubled") for one in plain.outcomes)
    assert main_odds(blackjack(one_card=False)).edge < usual
    # Fewer decks are better for those who choose.
    assert main_odds(blackjack(decks=1)).edge < usual - Fraction(4, 1000)


# ---- numbers over primes -----------------------------------------------------------------------


@given(st.integers(-(10**60), 10**60))
def test_a_number_is_what_it_leaves_over_enough_primes(number: int) -> None:
    primes = primes_for(10**60)
    assert joined([number % prime for prime in primes], primes) == number


def test_the_primes_are_primes() -> None:
    """By dividing, not by the test that found them."""
    for prime in primes_for(10**60):
        assert 2**30 < prime < 2**31
        assert all(prime % divisor for divisor in range(2, 47_000))
