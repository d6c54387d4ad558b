"""Exact limits of confidence: against sums of the binomial itself, and against known odds."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from math import comb

import pytest

from services.odds.tally import LEVEL, band, clopper_pearson


def at_least(successes: int, samples: int, probability: float) -> float:
    return sum(
        comb(samples, k) * probability**k * (1 - probability) ** (samples - k)
        for k in range(successes, samples + 1)
    )


@pytest.mark.parametrize(
    ("successes", "samples"), [(1, 10), (5, 10), (9, 10), (3, 200), (120, 200), (199, 200)]
)
def test_limits_are_where_the_binomials_tails_are_as_said(successes: int, samples: int) -> None:
    low, high = clopper_pearson(successes, samples, 0.99)
    assert at_least(successes, samples, low) == pytest.approx(0.005, rel=1e-9)
    assert 1 - at_least(successes + 1, samples, high) == pytest.approx(0.005, rel=1e-9)


def test_none_and_all_have_the_limits_of_the_textbook() -> None:
    assert clopper_pearson(0, 50, 0.95) == pytest.approx((0.0, 1 - 0.025 ** (1 / 50)))
    assert clopper_pearson(50, 50, 0.95) == pytest.approx((0.025 ** (1 / 50), 1.0))


def test_limits_of_many_samples_come_to_an_end() -> None:
    low, high = clopper_pearson(450_000, 1_000_000, 0.99)
    assert 0.448 < low < 0.45 < high < 0.452


RETURNS = {"lost": Fraction(0), "pushed": Fraction(1), "won": Fraction(2)}


def test_a_band_holds_what_was_observed_and_nothing_without_samples() -> None:
    found = band({"won": 45, "lost": 46, "pushed": 9}, RETURNS)
    assert found is not None
    assert found.observed == pytest.approx(0.99)
    assert 0.5 < found.low < found.observed < found.high < 1.5
    assert band({}, RETURNS) is None
    assert band({"elsewhere": 1}, RETURNS) is None


def test_bands_miss_the_true_return_as_seldom_as_they_say() -> None:
    """1,000 runs of 60 samples of Player: with 99 % a miss in ten is seen about once in ages."""
    chance = random.Random(2)
    fates = ("won", "lost", "pushed")
    weights = (0.4462, 0.4586, 0.0952)
    true = 2 * 0.4462 + 0.0952
    drawn = (Counter(chance.choices(fates, weights, k=60)) for _ in range(1000))
    missed = 0
    for counts, times in Counter(frozenset(one.items()) for one in drawn).items():
        found = band(dict(counts), RETURNS)
        assert found is not None
        missed += times * (not found.low <= true <= found.high)
    assert missed <= 1000 * (1 - LEVEL)


def test_with_many_samples_a_band_tells_a_wrong_paytable() -> None:
    """A tie that were dealt at 12 % instead of 9.5 %."""
    returns = {"lost": Fraction(0), "won": Fraction(9)}
    found = band({"won": 12_000, "lost": 88_000}, returns)
    assert found is not None
    assert found.low > 1 - 0.143596
