"""The main bet of blackjack: what a seat that plays the best fixed strategy comes to, exactly.

One seat, a double always for the full first stake, no insurance; the house edge is per unit of the
first stake. Every order of the pack is as probable as another, so what counts is how many orders
lead to which hand of the seat and which end of the dealer. Other seats change nothing: the cards
that come to a hand are no better or worse for those that came elsewhere before. For the same reason
the two hands of a split are worth the same, each as if alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import perm
from typing import NamedTuple

import numpy as np

from sabot.rules.v1 import rule_set_pb2
from services.games.bets import LOST, Judged
from services.games.blackjack import BEST, DEALER_STANDS, SEATS, Options, peeks
from services.games.blackjack_bets import judged_hand
from services.games.blackjack_result import options_of
from services.games.money import Verdict
from services.games.rule_sets import line_of
from services.odds.blackjack_basic import DECKS, Strategy, basic
from services.odds.blackjack_dealer import ENDS, levels, orders
from services.odds.blackjack_hands import ACE, BUST, CARD_OF, TEN, VALUES, Held, by_value, hands
from services.odds.blackjack_plays import Played, Plays, Seat, Staked
from services.odds.blackjack_strategy import MainPays, best_strategy
from services.odds.compositions import Composition, fresh
from services.odds.deals import Whole
from services.odds.outcomes import BetOdds, Outcome, PayMissing
from services.odds.residues import joined, primes_for

MOST_HANDS = 3
"""Both of a split, and the dealer's."""

Fate = tuple[Played, Judged]


class Pays(NamedTuple):
    """What is paid, profit to stake."""

    blackjack: Fraction
    win: Fraction
    double: Fraction
    split: Fraction


USUAL = Pays(Fraction(3, 2), Fraction(1), Fraction(1), Fraction(1))


def main_odds(rule_set: rule_set_pb2.RuleSet, composition: Composition | None = None) -> BetOdds:
    """The odds of a main bet that plays what is best in a fresh shoe; at another composition it
    plays the same. A split is one outcome, with the mean of what both hands bring.

    Raises TooFewCards, PayMissing."""
    left = composition or fresh(rule_set.decks)
    held = by_value(left)
    left.at_least(_most_cards(held), "a round of blackjack")
    options, pays = options_of(rule_set), _pays(rule_set)
    counted = _counted(held, rule_set.decks, options, pays)
    return BetOdds("main", "main", SEATS, _outcomes(counted, pays))


@lru_cache(maxsize=64)
def _counted(held: Held, decks: int, options: Options, pays: Pays) -> Counter[Fate]:
    return count_orders(held, strategy(decks, options, pays), options)


def strategy(decks: int, options: Options, pays: Pays) -> Strategy:
    """The best one in a fresh shoe: known for the usual rules, else searched."""
    if (decks, options, pays) == (DECKS, Options(peek=options.peek), USUAL):
        return basic(options.peek)
    return best_strategy(by_value(fresh(decks)), options, MainPays(*map(float, pays)))


def _pays(rule_set: rule_set_pb2.RuleSet) -> Pays:
    offers = {offer.bet: offer for offer in rule_set.bets}

    def paid(bet: str, line: str = "") -> Fraction:
        found = line_of(offers[bet], line) if bet in offers else None
        if found is None:
            raise PayMissing(f"{bet} pays nothing for {line or 'a win'}")
        return Fraction(*found)

    return Pays(paid("main", "blackjack"), paid("main", "win"), paid("double"), paid("split"))


def _most_cards(held: Held) -> int:
    """More than a round of one seat can take: no hand draws once its cards come to 21, so that all
    but the last card of each come to 20 at most."""
    points, cards = MOST_HANDS * (BEST - 1), MOST_HANDS
    for place, copies in enumerate(held):
        fit = min(copies, points // (place + 1))
        points -= fit * (place + 1)
        cards += fit
    return cards


def _outcomes(counted: Mapping[Fate, int], pays: Pays) -> tuple[Outcome, ...]:
    total = sum(counted.values())
    named: dict[str, tuple[Fraction, int]] = {}
    split, brought = 0, Fraction(0)
    for (manner, judged), count in counted.items():
        if manner is Played.SPLIT:
            split += count
            brought += count * _profit(judged, pays.win + pays.split, Fraction(2))
        elif manner is Played.DOUBLED:
            profit = _profit(judged, pays.win + pays.double, Fraction(2))
            named[f"doubled_{_word(judged)}"] = (profit, count)
        else:
            win = pays.blackjack if judged.line == "blackjack" else pays.win
            named[judged.line or _word(judged)] = (_profit(judged, win, Fraction(1)), count)
    if split:
        named["split"] = (brought / split, split)
    outcomes = [
        Outcome(name, profit, Fraction(count, total))
        for name, (profit, count) in named.items()
        if count
    ]
    return tuple(sorted(outcomes, key=lambda one: (-one.pays, one.name)))


def _word(judged: Judged) -> str:
    return judged.verdict.name.lower()


def _profit(judged: Judged, win: Fraction, stake: Fraction) -> Fraction:
    match judged.verdict:
        case Verdict.WON:
            return win
        case Verdict.PUSHED:
            return Fraction(0)
        case _:
            return -stake


# ---- counting ----------------------------------------------------------------------------------

_TEN, _SIX, _ACE = CARD_OF[TEN], CARD_OF[5], CARD_OF[ACE]
_DEALERS = (
    *((_TEN, CARD_OF[points - 11]) for points in range(DEALER_STANDS, BEST)),
    (_TEN, _SIX, CARD_OF[4]),
    (_ACE, _TEN),
    (_TEN, _SIX, _TEN),
)
"""Cards with which the dealer comes to each end, and at last over 21."""
_OVER = judged_hand((_TEN, _SIX, _TEN), _DEALERS[0], split=False)
"""What becomes of a hand over 21."""


def count_orders(copies: Held, strategy: Strategy, options: Options) -> Counter[Fate]:
    """In how many orders of a pack, as far as a round may look, a seat meets each fate. Of a split
    one hand is counted. A further stake that a peek saves counts as never made."""
    seats = {up: Seat(strategy, options, up) for up in range(VALUES) if copies[up]}
    plays = {
        up: [one for each in seat.plays() if len((one := each.within(copies)).ways)]
        for up, seat in seats.items()
    }
    furthest = max(
        int(one.gone.sum(axis=1).max()) + len(levels(up)) for up, of in plays.items() for one in of
    )
    orders_of = _Orders(copies, furthest)
    for up, of_up in plays.items():
        for one in of_up:
            if one.hand[0] == BUST:
                orders_of.add(one.manner, _OVER, orders_of.at(one.gone, one.ways).sum(axis=1))
            else:
                orders_of.add_stood(up, one)
        if peeks(options.peek, CARD_OF[up]):
            for staked in seats[up].staked():
                orders_of.save(up, staked)
    return orders_of.joined()


class _Orders:
    """A tally of orders by fate, over several primes. Arrays begin with the primes' axis."""

    def __init__(self, copies: Held, furthest: int) -> None:
        """`furthest`: how many cards may be looked at, if there are so many."""
        total = sum(copies)
        cards = min(furthest, total)
        self._copies = np.array(copies)
        self._primes = primes_for(perm(total, cards))
        self._moduli = np.array(self._primes)
        # In how many orders so many cards of a value fall.
        self._falling = self._over_primes(
            [[perm(of, taken) for taken in range(cards + 1)] for of in copies]
        )
        # In how many orders all others follow when so many are gone.
        self._others = self._over_primes(
            [perm(total - gone, cards - gone) for gone in range(cards + 1)]
            + [0] * (furthest - cards)
        )
        self._found: dict[Fate, Whole] = {}

    def _over_primes(self, numbers: Sequence[object]) -> Whole:
        exact = np.array(numbers, dtype=object)
        return np.array([exact % prime for prime in self._primes]).astype(np.int64)

    def before(self, gone: Whole, ways: Whole) -> Whole:
        """In how many orders the cards that are gone may fall: primes by rows."""
        moduli = self._moduli[:, None]
        found = np.broadcast_to(ways, (len(self._primes), len(ways))) % moduli
        for place in range(VALUES):
            found = found * self._falling[:, place, gone[:, place]] % moduli
        return np.asarray(found, dtype=np.int64)

    def at(self, gone: Whole, ways: Whole) -> Whole:
        """The same with all that may follow."""
        others = self._others[:, gone.sum(axis=1)]
        return np.asarray(self.before(gone, ways) * others % self._moduli[:, None], dtype=np.int64)

    def add(self, manner: Played, judged: Judged, count: Whole) -> None:
        fate = (manner, judged)
        self._found[fate] = (self._found.get(fate, 0) + count) % self._moduli

    def add_stood(self, up: int, plays: Plays) -> None:
        """Hands against every end of the dealer."""
        of, gone = hands(), plays.gone
        taken = gone.sum(axis=1)
        before = self.before(gone, plays.ways)
        ended = orders(up, self._copies - gone, taken, self._others, self._primes)
        ended = ended * before[:, None] % self._moduli[:, None, None]
        whole = before * self._others[:, taken] % self._moduli[:, None]
        over = whole - ended.sum(axis=1)
        natural = plays.hand == of.blackjack()
        for kind in np.unique(2 * of.points[plays.hand] + natural):
            rows = np.flatnonzero(2 * of.points[plays.hand] + natural == kind)
            cards = of.text(int(plays.hand[rows[0]]))
            for end, dealer in enumerate(_DEALERS):
                count = (ended[:, end, rows] if end < ENDS else over[:, rows]).sum(axis=1)
                judged = judged_hand(cards, dealer, split=plays.manner is Played.SPLIT)
                self.add(plays.manner, judged, count)

    def save(self, up: int, staked: Staked) -> None:
        """A peek finds a blackjack: the further stake was not made, the first one is lost."""
        if up not in {ACE, TEN}:
            return
        hole = TEN if up == ACE else ACE
        gone = staked.gone.copy()
        gone[:, hole] += 1
        count = self.at(gone, staked.ways).sum(axis=1)
        self.add(staked.manner, LOST, -count)
        self.add(Played.PLAINLY, LOST, count)

    def joined(self) -> Counter[Fate]:
        """The numbers themselves."""
        return Counter(
            {fate: joined(count.tolist(), self._primes) for fate, count in self._found.items()}
        )
