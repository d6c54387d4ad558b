"""Tests of shuffles: their moments are those of all orders of small packs, gone through one by
one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise, permutations
from math import factorial

import pytest

from services.rng import shuffles
from services.rng.findings import TooFew
from services.rng.plot import block_scores
from services.rng.shuffles import (
    Shuffles,
    coupon_chances,
    distance_variance,
    half_moments,
    pair_variance,
    product_moments,
)

Order = tuple[int, ...]


def circular(order: Order) -> Iterable[tuple[int, int]]:
    return zip(order, (*order[1:], order[0]), strict=True)


def moments(size: int, statistic: Callable[[Order], int]) -> tuple[Fraction, Fraction]:
    """Mean and variance over all orders."""
    values = [statistic(order) for order in permutations(range(size))]
    mean = Fraction(sum(values), len(values))
    return mean, Fraction(sum(value * value for value in values), len(values)) - mean * mean


def total_variance(size: int, counts: Callable[[Order], Counter[tuple[int, ...]]]) -> Fraction:
    """The sum over all that is counted of the variance of its count."""
    squares, sums = 0, Counter[tuple[int, ...]]()
    for order in permutations(range(size)):
        counted = counts(order)
        sums.update(counted)
        squares += sum(count * count for count in counted.values())
    orders = factorial(size)
    return Fraction(squares, orders) - sum(Fraction(total, orders) ** 2 for total in sums.values())


@pytest.mark.parametrize("size", [4, 5, 6, 7])
def test_how_much_distances_of_neighbours_vary(size: int) -> None:
    def distances(order: Order) -> Counter[tuple[int, ...]]:
        return Counter(((after - one) % size,) for one, after in circular(order))

    assert distance_variance(size) == pytest.approx(float(total_variance(size, distances)))


@pytest.mark.parametrize(("size", "kinds"), [(4, 2), (6, 2), (6, 3), (8, 2), (8, 4)])
def test_how_much_pairs_of_values_vary(size: int, kinds: int) -> None:
    def pairs(order: Order) -> Counter[tuple[int, ...]]:
        return Counter((one % kinds, after % kinds) for one, after in circular(order))

    assert pair_variance(size, kinds) == pytest.approx(float(total_variance(size, pairs)))


@pytest.mark.parametrize("size", [4, 5, 6, 7])
def test_the_moments_of_sums_are_those_of_all_orders(size: int) -> None:
    middle = [2 * place - (size - 1) for place in range(size)]
    half = size // 2
    squares = sum(x * x for x in middle)
    exact = {
        "products": moments(
            size, lambda order: sum(middle[a] * middle[b] for a, b in circular(order))
        ),
        "rises": moments(size, lambda order: sum(a < b for a, b in pairwise(order))),
        "turns": moments(
            size,
            lambda order: sum(
                (a < b) != (b < c) for a, b, c in zip(order, order[1:], order[2:], strict=False)
            ),
        ),
        "changes": moments(
            size, lambda order: sum((a < half) != (b < half) for a, b in pairwise(order))
        ),
        "likeness": moments(
            size, lambda order: sum(middle[a] * middle[b] for a, b in enumerate(order))
        ),
        "unmoved": moments(size, lambda order: sum(a == b for a, b in enumerate(order))),
    }
    said = {
        "products": product_moments(middle),
        "rises": ((size - 1) / 2, (size + 1) / 12),
        "turns": (2 * (size - 2) / 3, (16 * size - 29) / 90),
        "changes": half_moments(size),
        "likeness": (0, squares**2 / (size - 1)),
        "unmoved": (1, 1),
    }
    for name, (mean, variance) in exact.items():
        assert list(said[name]) == pytest.approx([float(mean), float(variance)]), name


def test_the_positions_of_two_orders_have_the_mean_and_variance_of_chi_square() -> None:
    """Over all pairs of orders of four: mean (n - 1)², and variance 2(n - 1)² but for the part
    (orders - 1)/orders."""
    size = 4
    statistics = []
    orders = list(permutations(range(size)))
    for one in orders:
        for other in orders:
            cells = Counter([*enumerate(one), *enumerate(other)])
            squares = sum(count * count for count in cells.values())
            statistics.append(Fraction(size - 1, 2) * (squares - 4))
    mean = sum(statistics) / len(statistics)
    variance = sum(x * x for x in statistics) / len(statistics) - mean * mean
    assert (mean, variance) == (9, 2 * 9 * Fraction(1, 2))


@pytest.mark.parametrize(("size", "kinds"), [(4, 2), (6, 2), (6, 3), (8, 4)])
def test_when_all_values_have_come(size: int, kinds: int) -> None:
    ends: Counter[int] = Counter()
    for order in permutations(range(size)):
        seen: set[int] = set()
        for cards, place in enumerate(order, start=1):
            seen.add(place % kinds)
            if len(seen) == kinds:
                ends[cards] += 1
                break
    exact = [ends[cards] / factorial(size) for cards in range(1, size + 1)]
    assert list(coupon_chances(size, kinds)) == pytest.approx(exact, abs=1e-12)


def test_all_orders_once_are_exactly_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is summed is what its moments speak of: over all orders every sum is its mean."""
    monkeypatch.setattr(shuffles, "LEAST_ORDERS", 1)
    size = 6
    orders = list(permutations(range(size)))
    counted = Shuffles([place % 3 for place in range(size)], len(orders))
    for order in orders:
        counted.add(order)
    found = {finding.name.removeprefix("shuffle."): finding for finding in counted.findings()}
    for even in (
        "positions",
        "values",
        "neighbours",
        "pairs",
        "correlation",
        "rising",
        "turning",
        "median",
        "coupons",
    ):
        assert found[even].statistic == pytest.approx(0, abs=1e-9), even
    assert found["unmoved"].statistic == len(orders)
    assert found["greatest"].statistic == len(orders) / size
    assert found["repeats"].statistic == 0
    assert set(counted.cells) == {factorial(size - 1)}
    assert block_scores(counted.cells, size, len(orders)) == [[0.0] * size] * size


def test_one_shoe_and_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffles, "LEAST_ORDERS", 1)
    counted = Shuffles([0, 1] * 3, 2)
    counted.add([0, 1, 2, 3, 4, 5])
    counted.add([0, 1, 2, 5, 4, 3])
    assert counted._agreements == 4
    assert counted._likeness == (25 + 9 + 1) + (5 + 9 + 5)
    assert counted._again == 0
    counted.add([0, 1, 2, 3, 4, 5])
    assert counted._again == 1
    assert counted._words == {(0, 1, 2): 3, (3, 4, 5): 2, (5, 4, 3): 1}


def test_too_few_orders_are_refused() -> None:
    with pytest.raises(TooFew):
        Shuffles([0, 1] * 26, 99)


def test_an_order_of_other_cards_is_none() -> None:
    counted = Shuffles([0, 1] * 26, 100)
    with pytest.raises(ValueError, match="no order"):
        counted.add([0] * 52)


def test_blocks_of_the_heat_map_are_scaled_to_one() -> None:
    """Of a perfect source, scores have variance one, whatever a block's size."""
    chance = random.Random(1)
    size, orders = 104, 2_000
    cells = [0] * (size * size)
    for _ in range(orders):
        for position, place in enumerate(chance.sample(range(size), size)):
            cells[position * size + place] += 1
    scores = [score for line in block_scores(cells, size, orders) for score in line]
    assert len(scores) == 52 * 52
    assert sum(score * score for score in scores) / len(scores) == pytest.approx(1, abs=0.08)
