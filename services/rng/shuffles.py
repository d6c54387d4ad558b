"""Tests of shuffled packs: whole orders of the same cards, each order equally likely.

Within an order nothing is independent, since a card that has come cannot come again. So each
statistic here is a sum over orders, which are independent of one another, and the mean and variance
of its terms are exact for a random permutation; tests prove them by going through every order of
small packs. Orders are of `places`: where each card lay in the unshuffled pack.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import comb, factorial, perm
from operator import eq, lt, mul, ne

from services.rng.findings import (
    Finding,
    TooFew,
    chi_square,
    fitted,
    never,
    rare_events,
    score,
)
from services.rng.tails import binomial_tails

LEAST_ORDERS = 100
"""With fewer, sums over orders are not yet as normal as is taken for granted."""
WORD = 3
"""Successive cards of a word that is looked for again: 416 cards have 71 million such words."""
WORDS = 200_000
"""Words kept in memory, at most."""
DIGEST = 16
"""Bytes that an order is remembered by."""


class Shuffles:
    """Counts orders as they come; then `findings`.

    - values: of each place the value of its card, from 0; of every value there are as many cards.
    - orders: how many will come.
    """

    def __init__(self, values: Sequence[int], orders: int) -> None:
        if orders < LEAST_ORDERS:
            raise TooFew(f"{orders} orders are too few, {LEAST_ORDERS} are needed")
        cards = self.cards = len(values)
        self.orders = 0
        self.cells = [0] * (cards * cards)
        """How often each place came at each position, by `position * cards + place`."""
        self._values = list(values)
        self._kinds = max(values) + 1
        self._rows = [position * cards for position in range(cards)]
        self._middle = [2 * place - (cards - 1) for place in range(cards)]
        """Twice the distance from the middle of the pack: whole numbers that sum to 0."""
        self._distances = [0] * cards
        self._pairs = [0] * (self._kinds * self._kinds)
        self._products = self._rises = self._turns = self._changes = 0
        self._until_all: Counter[int] = Counter()
        self._before: list[int] = []
        self._agreements = self._likeness = 0
        self._seen: set[bytes] = set()
        self._again = 0
        self._words: Counter[tuple[int, ...]] = Counter()
        self._words_each = max(1, min(cards // WORD, WORDS // orders))

    def add(self, order: Sequence[int]) -> None:
        """Count an order."""
        self.orders += 1
        cells = self.cells
        for row, place in zip(self._rows, order, strict=True):
            cells[row + place] += 1
        self._count_neighbours(order)
        self._count_runs(order)
        self._count_against_the_one_before(order)
        self._look_for(order)

    def findings(self) -> list[Finding]:
        """What all tests found."""
        return [
            self._positions(),
            self._value_positions(),
            self._greatest_cell(),
            self._unmoved(),
            self._neighbours(),
            self._value_pairs(),
            self._correlation(),
            self._rising(),
            self._turning(),
            self._median(),
            self._coupons(),
            self._agreeing(),
            self._alike(),
            self._repeated(),
            self._birthdays(),
        ]

    # ---- positions -----------------------------------------------------------------------------

    def _positions(self) -> Finding:
        """Each card at each position. The covariance of a permutation matrix is the product of two
        centring projections over cards - 1, so (cards - 1)/orders · Σ (count - orders/cards)² is
        chi-square. Freedom: (cards - 1)²."""
        cards, orders = self.cards, self.orders
        squares = sum(count * count for count in self.cells) - orders * orders
        return chi_square(
            "shuffle.positions",
            "each card at each position",
            (cards - 1) / orders * squares,
            (cards - 1) ** 2,
        )

    def _value_positions(self) -> Finding:
        """Each value at each position: the same with the cards of a value, m of them, put together,
        each square divided by m. Freedom: (cards - 1)·(values - 1)."""
        cards, orders, kinds = self.cards, self.orders, self._kinds
        squares = 0
        for row in self._rows:
            counts = [0] * kinds
            for value, count in zip(self._values, self.cells[row : row + cards], strict=True):
                counts[value] += count
            squares += sum(count * count for count in counts)
        of_each = cards / kinds
        uneven = squares / of_each - orders * orders
        return chi_square(
            "shuffle.values",
            "each value at each position",
            (cards - 1) / orders * uneven,
            (cards - 1) * (kinds - 1),
        )

    def _greatest_cell(self) -> Finding:
        """How often the most frequent card at one position came there. Each count is binomial; that
        the greatest of all is so great has at most the sum of their chances (Bonferroni)."""
        greatest = max(self.cells)
        chance = binomial_tails(greatest, self.orders, 1 / self.cards)[1]
        return Finding(
            "shuffle.greatest",
            "the most frequent card at a position",
            greatest,
            None,
            min(1.0, chance * self.cards**2),
        )

    def _unmoved(self) -> Finding:
        """Cards that lie where they lay in the unshuffled pack: the number of fixed points of a
        random permutation is Poisson with mean 1, but for one part in cards! (Montmort 1708)."""
        unmoved = sum(self.cells[row + place] for place, row in enumerate(self._rows))
        return rare_events("shuffle.unmoved", "cards in their old place", unmoved, self.orders)

    # ---- neighbours ----------------------------------------------------------------------------

    def _count_neighbours(self, order: Sequence[int]) -> None:
        after = [*order[1:], order[0]]
        distances = self._distances
        for one, other in zip(order, after, strict=True):
            distances[other - one] += 1  # below 0 from the end: modulo cards
        values = [self._values[place] for place in order]
        pairs, kinds = self._pairs, self._kinds
        for value, other in zip(values, [*values[1:], values[0]], strict=True):
            pairs[value * kinds + other] += 1
        self._until_all[_until_all(values, kinds)] += 1
        middle = self._middle
        self._products += sum(
            map(mul, map(middle.__getitem__, order), map(middle.__getitem__, after))
        )

    def _neighbours(self) -> Finding:
        """How far apart in the unshuffled pack two successive cards lay, modulo cards, the last
        card followed by the first. Riffles that are too few leave neighbours together. The sum of
        squares is scaled to its exact mean. Freedom: cards - 2, since all sum to cards."""
        cards, orders = self.cards, self.orders
        expected = orders * cards / (cards - 1)
        squares = sum((count - expected) ** 2 for count in self._distances[1:])
        scale = (cards - 2) / (orders * distance_variance(cards))
        return chi_square(
            "shuffle.neighbours", "how far apart neighbours lay", squares * scale, cards - 2
        )

    def _value_pairs(self) -> Finding:
        """Which value follows which: overlapping pairs, the last card followed by the first, scaled
        to the exact mean. Each value comes as often as it must, so freedom is (values - 1)²."""
        cards, kinds = self.cards, self._kinds
        of_each = cards // kinds
        squares = 0.0
        for one in range(kinds):
            for other in range(kinds):
                others = of_each - (one == other)
                expected = self.orders * of_each * others / (cards - 1)
                squares += (self._pairs[one * kinds + other] - expected) ** 2
        freedom = (kinds - 1) ** 2
        scale = freedom / (self.orders * pair_variance(cards, kinds))
        return chi_square("shuffle.pairs", "which value follows which", squares * scale, freedom)

    def _correlation(self) -> Finding:
        """Whether a card from the bottom is followed by one from the bottom: the circular serial
        correlation of places (Wald and Wolfowitz 1943)."""
        mean, variance = product_moments(self._middle)
        return score(
            "shuffle.correlation",
            "correlation of neighbours",
            self._products,
            self.orders * mean,
            self.orders * variance,
        )

    # ---- runs and coupons ----------------------------------------------------------------------

    def _count_runs(self, order: Sequence[int]) -> None:
        rising = list(map(lt, order, order[1:]))
        self._rises += sum(rising)
        self._turns += sum(map(ne, rising, rising[1:]))
        half = self.cards // 2
        above = [place >= half for place in order]
        self._changes += sum(map(ne, above, above[1:]))

    def _rising(self) -> Finding:
        """Rising runs: the number of cards that lay behind the one before them is Eulerian, with
        mean (cards - 1)/2 and variance (cards + 1)/12 (Knuth 3, section 5.1.3)."""
        cards, orders = self.cards, self.orders
        return score(
            "shuffle.rising",
            "rising runs",
            self._rises,
            orders * (cards - 1) / 2,
            orders * (cards + 1) / 12,
        )

    def _turning(self) -> Finding:
        """Runs up and down: turning points have mean 2(cards - 2)/3 and variance (16 cards - 29)/90
        (Bienaymé 1874)."""
        cards, orders = self.cards, self.orders
        return score(
            "shuffle.turning",
            "runs up and down",
            self._turns,
            orders * 2 * (cards - 2) / 3,
            orders * (16 * cards - 29) / 90,
        )

    def _median(self) -> Finding:
        """Runs of cards of the lower and the upper half of the pack (Wald and Wolfowitz 1940)."""
        mean, variance = half_moments(self.cards)
        return score(
            "shuffle.median",
            "runs of the lower and upper half",
            self._changes,
            self.orders * mean,
            self.orders * variance,
        )

    def _coupons(self) -> Finding:
        """How many cards until every value has come, from the top of each shoe (coupon collector,
        without replacement)."""
        chances = coupon_chances(self.cards, self._kinds)
        counts = [self._until_all[cards] for cards in range(1, self.cards + 1)]
        return fitted("shuffle.coupons", "how many until all values came", counts, chances)

    # ---- one order and the next ----------------------------------------------------------------

    def _count_against_the_one_before(self, order: Sequence[int]) -> None:
        middle, before = self._middle, self._before
        if before:
            self._agreements += sum(map(eq, order, before))
            self._likeness += sum(
                map(mul, map(middle.__getitem__, order), map(middle.__getitem__, before))
            )
        self._before = list(order)

    def _agreeing(self) -> Finding:
        """Cards at the same position as in the shoe before: fixed points again, of the permutation
        that leads from one order to the next; these permutations are independent too."""
        return rare_events(
            "shuffle.agreeing", "same card as in the shoe before", self._agreements, self.orders - 1
        )

    def _alike(self) -> Finding:
        """Rank correlation of each shoe with the one before (Spearman): Σ x·y over positions has
        mean 0 and variance (Σ x²)²/(cards - 1)."""
        squares = sum(x * x for x in self._middle)
        variance = (self.orders - 1) * squares * squares / (self.cards - 1)
        return score(
            "shuffle.alike", "correlation with the shoe before", self._likeness, 0.0, variance
        )

    def _look_for(self, order: Sequence[int]) -> None:
        known = blake2b(array("I", order).tobytes(), digest_size=DIGEST).digest()
        self._again += known in self._seen
        self._seen.add(known)
        ends = range(WORD, WORD * self._words_each + 1, WORD)
        self._words.update(tuple(order[end - WORD : end]) for end in ends)

    def _repeated(self) -> Finding:
        """Orders that came before. Two are the same once in cards!."""
        expected = comb(self.orders, 2) / factorial(self.cards)
        return never("shuffle.repeats", "orders that came before", self._again, expected)

    def _birthdays(self) -> Finding:
        """Equal words of successive cards in different shoes, the words from the top of each and
        not overlapping: pairs of words are equal once in cards·(cards - 1)·(cards - 2), nearly
        independent of one another, so the number of equal pairs is Poisson."""
        equal = sum(comb(count, 2) for count in self._words.values())
        expected = comb(self.orders, 2) * self._words_each**2 / perm(self.cards, WORD)
        return rare_events("shuffle.birthdays", f"equal words of {WORD} cards", equal, expected)


def _until_all(values: Sequence[int], kinds: int) -> int:
    """After how many cards every value has come."""
    missing = set(range(kinds))
    for cards, value in enumerate(values, start=1):
        missing.discard(value)
        if not missing:
            return cards
    raise ValueError("some value never came: this is no order of the pack")


# ---- exact moments of one random permutation ----------------------------------------------------


def distance_variance(cards: int) -> float:
    """The sum over all distances d of the variance of how often a card is followed by the one d
    places behind it. Two given pairs of successive positions both show d with chance
    1/((n-1)(n-2)); where 2d = n, two successive ones cannot, and two others do with
    1/((n-1)(n-3))."""
    n = cards
    usual = n / (n - 2) + n / (n - 1) - (n / (n - 1)) ** 2
    opposite = 2 * n / (n - 1) - (n / (n - 1)) ** 2
    return (n - 2) * usual + opposite if n % 2 == 0 else (n - 1) * usual


def pair_variance(cards: int, kinds: int) -> float:
    """The sum over all pairs of values of the variance of how often one follows the other, n cards
    of which m have each value. Of two pairs of successive positions: they are the same, overlap in
    one position, or are apart."""
    n, m, k = cards, cards // kinds, kinds
    overlapping = 2 * n * (m - 1) * (m - 2) / ((n - 1) * (n - 2))
    same = k * m * (m - 1) * (m - 2) * (m - 3)
    different = k * (k - 1) * (m * (m - 1)) ** 2
    apart = n * (n - 3) * (same + different) / perm(n, 4)
    expected = k * (m * (m - 1) / (n - 1)) ** 2 + k * (k - 1) * (m * m / (n - 1)) ** 2
    return n + overlapping + apart - expected


def product_moments(values: Sequence[int]) -> tuple[float, float]:
    """Mean and variance of Σ x·(next x), circular, over all orders of these values, which sum to 0
    and lie evenly about it."""
    n = len(values)
    squares, fourths = sum(x**2 for x in values), sum(x**4 for x in values)
    mean = -squares / (n - 1)
    variance = (
        (squares**2 - fourths) / (n - 1)
        + (squares**2 - 2 * fourths) / ((n - 1) * (n - 2))
        - squares**2 / (n - 1) ** 2
    )
    return mean, variance


def half_moments(cards: int) -> tuple[float, float]:
    """Mean and variance of the number of changes between the lower and the upper half."""
    lower = cards // 2
    twice = 2 * lower * (cards - lower)
    return twice / cards, twice * (twice - cards) / (cards * cards * (cards - 1))


@lru_cache(maxsize=8)
def coupon_chances(cards: int, kinds: int) -> tuple[float, ...]:
    """The chance that every value has come after exactly 1, 2, … cards: by inclusion and exclusion
    of the values that are missing, in whole numbers."""
    of_each = cards // kinds
    chances: list[float] = []
    missing_before = 1.0
    for drawn in range(1, cards + 1):
        ways = sum(
            (-1) ** (gone + 1) * comb(kinds, gone) * comb(cards - gone * of_each, drawn)
            for gone in range(1, kinds + 1)
        )
        missing = ways / comb(cards, drawn)
        chances.append(missing_before - missing)
        missing_before = missing
    return tuple(chances)
