"""Every bet of baccarat (rules BAC-20 to BAC-37) at any composition of the shoe.

Most bets ask for the totals and the numbers of cards alone, so their deals are counted by the ten
values a card may have. Pairs ask for the first two cards' ranks and suits: they are counted by how
those of each hand relate. Either way representative cards are judged by settlement's own functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, product

import numpy as np

from services.games import baccarat_bets
from services.games.baccarat import MAX_CARDS, Side, next_draw, value
from services.games.bets import Judged
from services.games.cards import CARDS, RANKS, SUITS, rank_of
from services.odds.compositions import Composition
from services.odds.deals import Column, Deals, Whole

PAIR_BETS = ("player_pair", "banker_pair", "either_pair", "perfect_pair")
"""The bets on ranks and suits: two cards of one value may be of different ranks."""
TOTAL_BETS = tuple(bet for bet in baccarat_bets.JUDGES if bet not in PAIR_BETS)
VALUES = 10
_ANY = VALUES
"""In a row: a card that the round does not take."""
_CARD = {value(rank + SUITS[0]): rank + SUITS[0] for rank in RANKS}
"""A card of each value."""

Thirds = tuple[int, int]
"""The values of Player's and Banker's third card, `_ANY` where a hand stands."""


def counts(composition: Composition) -> dict[str, dict[Judged, int]]:
    """In how many deals each bet of `JUDGES` meets each fate. Raises TooFewCards."""
    composition.at_least(MAX_CARDS, "a round of baccarat")
    by_value = [0] * VALUES
    for card, copies in zip(CARDS, composition.counts, strict=True):
        by_value[value(card)] += copies
    return {**_by_totals().at(by_value), **_pairs(composition)}


# ---- by totals ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _by_totals() -> Deals:
    """The rows are sets of values: 715 of four cards, 2,002 of five, 5,005 of six."""
    cards, ends, orders = _all_deals()
    # A set of values as one number: its digits, ascending, to the base of eleven.
    base = (_ANY + 1) ** np.arange(MAX_CARDS)[::-1]
    keys, row_of = np.unique(np.sort(cards, axis=1) @ base, return_inverse=True)
    rows = keys[:, None] // base % (_ANY + 1)
    columns = []
    for bet in TOTAL_BETS:
        judged = [_judged(bet, end) for end in range(_ENDS)]
        fates = tuple(dict.fromkeys(judged))
        fate_of = np.array([fates.index(one) for one in judged])
        counted = np.zeros((len(rows), len(fates)), dtype=np.int64)
        np.add.at(counted, (row_of, fate_of[ends]), orders)
        columns.append(Column(bet, fates, counted))
    return Deals(VALUES, rows, columns)


def _all_deals() -> tuple[Whole, Whole, Whole]:
    """Every deal by values, the two first cards of a hand in ascending order: the cards, the end
    it comes to (see `_end`), and in how many orders those first cards may fall."""
    hands: dict[int, list[tuple[int, int]]] = {points: [] for points in range(VALUES)}
    for low, high in combinations_with_replacement(range(VALUES), 2):
        hands[(low + high) % 10].append((low, high))
    cards, ends = [], []
    for player, banker in product(range(VALUES), repeat=2):
        for thirds in _thirds(player, banker):
            firsts = [(*one, *other) for one in hands[player] for other in hands[banker]]
            cards.append(np.column_stack([firsts, np.tile(thirds, (len(firsts), 1))]))
            ends.append(np.full(len(firsts), _end(player, banker, thirds)))
    all_cards = np.vstack(cards)
    unequal = (all_cards[:, 0] != all_cards[:, 1]) * 1 + (all_cards[:, 2] != all_cards[:, 3])
    return all_cards, np.concatenate(ends), 2**unequal


def _thirds(player: int, banker: int) -> Iterator[Thirds]:
    """The third cards that may follow two totals, by the rule of the draw itself."""
    hands = {Side.PLAYER: [_CARD[0], _CARD[player]], Side.BANKER: [_CARD[0], _CARD[banker]]}
    draw = next_draw(hands[Side.PLAYER], hands[Side.BANKER])
    if not draw:
        yield _ANY, _ANY
    elif draw == (Side.BANKER,):
        yield from ((_ANY, third) for third in range(VALUES))
    else:
        for third in range(VALUES):
            drew = [*hands[Side.PLAYER], _CARD[third]]
            answer = range(VALUES) if next_draw(drew, hands[Side.BANKER]) else (_ANY,)
            yield from ((third, other) for other in answer)


_ENDS = VALUES * VALUES * 4
"""How a round may end: both totals, and for both hands whether they drew."""


def _end(player: int, banker: int, thirds: Thirds) -> int:
    """The number of an end, from the totals of the first cards."""
    drawn = [third % _ANY for third in thirds]
    totals = (player + drawn[0]) % 10 * VALUES + (banker + drawn[1]) % 10
    return totals * 4 + (thirds[0] != _ANY) * 2 + (thirds[1] != _ANY)


def _judged(bet: str, end: int) -> Judged:
    """A bet's fate at an end, by cards that represent it."""
    totals, drew = divmod(end, 4)
    hands = [
        [_CARD[0], *([_CARD[0]] if third else []), _CARD[points]]
        for points, third in zip(divmod(totals, VALUES), divmod(drew, 2), strict=True)
    ]
    return baccarat_bets.judge(bet, baccarat_bets.dealt(*hands))


# ---- by ranks and suits ------------------------------------------------------------------------

_APART, _PAIR, _PERFECT = ("2S", "3S"), ("2S", "2H"), ("2S", "2S")
"""Two cards of different ranks, of one rank in two suits, of one rank and suit; for Banker, too:
no bet compares one hand with the other."""


def _pairs(composition: Composition) -> dict[str, dict[Judged, int]]:
    """Over the four first cards, by how the two of each hand relate."""
    deals = _related(composition)
    found: dict[str, dict[Judged, int]] = {}
    for bet in PAIR_BETS:
        fates: dict[Judged, int] = {}
        for (player, banker), count in deals.items():
            judged = baccarat_bets.judge(bet, baccarat_bets.dealt(player, banker))
            fates[judged] = fates.get(judged, 0) + count
        found[bet] = fates
    return found


def _related(composition: Composition) -> dict[tuple[tuple[str, str], tuple[str, str]], int]:
    """Deals of four cards by the relation of Player's two and of Banker's two.

    Two hands are both of one rank either by two ranks, or by four cards of one rank; so it is with
    cards of one rank and suit."""
    of_rank = dict.fromkeys(RANKS, 0)
    for card, copies in zip(CARDS, composition.counts, strict=True):
        of_rank[rank_of(card)] += copies
    rest = _two(composition.total - 2)
    pair = sum(map(_two, of_rank.values()))
    perfect = sum(map(_two, composition.counts))
    both_pair = _both(of_rank.values())
    both_perfect = _both(composition.counts)
    # A perfect pair in one hand and a pair in the other: of another rank, or of this one's rest.
    pair_and_perfect = sum(
        _two(copies) * (pair - _two(of_rank[rank_of(card)]) + _two(of_rank[rank_of(card)] - 2))
        for card, copies in zip(CARDS, composition.counts, strict=True)
    )
    only_one = pair * rest - both_pair
    only_one_perfect = perfect * rest - pair_and_perfect
    deals = {
        (_PERFECT, _PERFECT): both_perfect,
        (_PERFECT, _PAIR): pair_and_perfect - both_perfect,
        (_PAIR, _PAIR): both_pair - 2 * pair_and_perfect + both_perfect,
        (_PERFECT, _APART): only_one_perfect,
        (_PAIR, _APART): only_one - only_one_perfect,
        (_APART, _APART): (_two(composition.total) - pair) * rest - only_one,
    }
    return deals | {(banker, player): count for (player, banker), count in deals.items()}


def _both(kinds: Collection[int]) -> int:
    """Deals in which the two cards of either hand are of one kind."""
    pairs = sum(map(_two, kinds))
    return sum(_two(copies) * (pairs - _two(copies)) + _four(copies) for copies in kinds)


def _two(copies: int) -> int:
    """Orders of two out of so many."""
    return copies * (copies - 1)


def _four(copies: int) -> int:
    """Orders of four out of so many."""
    return copies * (copies - 1) * (copies - 2) * (copies - 3)
