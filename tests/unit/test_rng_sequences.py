"""Tests of sequences: known examples, chances counted out, and what each of them finds."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from math import comb, factorial

import pytest

from services.rng.findings import TooFew
from services.rng.games import HALF, TOTALS, dice_findings, total_chances, wheel_findings
from services.rng.sequences import (
    LAGS,
    birthdays,
    coupon_chances,
    coupons,
    frequencies,
    median_runs,
    overlaps,
    recurrence,
    repeats,
    rise_chances,
    rising_runs,
    serial_correlation,
)


def bits(text: str) -> bytes:
    return bytes(int(one) for one in text)


def spins(count: int, seed: int = 1, kinds: int = 37) -> bytes:
    return bytes(random.Random(seed).choices(range(kinds), k=count))


def test_overlaps_are_those_of_the_example_in_sp_800_22() -> None:
    """Section 2.11.4: of 0011011101, ψ²₃ is 2.8 and ψ²₂ is 1.2, ψ²₁ is 0.4."""
    stream = bits("0011011101")
    assert overlaps("", stream, 2, 3).statistic == pytest.approx(2.8 - 1.2)
    assert overlaps("", stream, 2, 2).statistic == pytest.approx(1.2 - 0.4)
    assert overlaps("", stream, 2, 3).freedom == 4
    assert overlaps("", stream, 37, 2).freedom == 1_332


def test_a_sequence_that_holds_every_pair_once_is_perfectly_even() -> None:
    """A de Bruijn sequence; so even that it is suspicious."""
    stream = bits("0011")
    assert overlaps("", stream, 2, 2).statistic == 0
    long = bytes(de_bruijn(37))
    assert len(long) == 37 * 37
    found = overlaps("", long, 37, 2)
    assert found.statistic == pytest.approx(0, abs=1e-6)
    assert found.p < 1e-12


def de_bruijn(kinds: int) -> list[int]:
    """Each pair once: 0 0 1 0 2 … 1 1 2 1 3 …"""
    stream: list[int] = []
    for low in range(kinds):
        stream.append(low)
        for high in range(low + 1, kinds):
            stream += [low, high]
    return stream


@pytest.mark.parametrize(("kinds", "length"), [(2, 4), (3, 4), (4, 3)])
def test_the_moments_of_the_serial_correlation_are_those_of_all_sequences(
    kinds: int, length: int
) -> None:
    chances = dict.fromkeys(range(kinds), 1 / kinds)
    scores = [
        serial_correlation("", list(values), chances).statistic
        for values in product(range(kinds), repeat=length)
    ]
    assert sum(scores) / len(scores) == pytest.approx(0, abs=1e-9)
    assert sum(score**2 for score in scores) / len(scores) == pytest.approx(1)


def test_outcomes_that_come_again_are_independent_in_twos() -> None:
    """Which makes their squared scores, summed, chi-square: for lags 1, 2 and 3 of all sequences of
    five outcomes of three kinds."""
    sums: Counter[tuple[int, int]] = Counter()
    for values in product(range(3), repeat=5):
        away = [
            sum(3 * (values[at] == values[at + lag]) - 1 for at in range(5 - lag))
            for lag in (1, 2, 3)
        ]
        for one in range(3):
            for other in range(3):
                sums[one, other] += away[one] * away[other]
    variances = [3**5 * 9 * Fraction(2, 9) * (5 - lag) for lag in (1, 2, 3)]
    for one in range(3):
        for other in range(3):
            assert sums[one, other] == (variances[one] if one == other else 0)


def test_a_period_is_found_by_what_comes_again() -> None:
    assert recurrence("", spins(LAGS) * 100, 37).p < 1e-12
    assert recurrence("", spins(5_000), 37).p > 0.001


@pytest.mark.parametrize("kinds", [2, 6, 37])
def test_equally_likely_outcomes_rise_once_in_all_their_orders(kinds: int) -> None:
    exact = [comb(kinds, length) / kinds**length for length in range(1, kinds + 1)]
    assert rise_chances([1 / kinds] * kinds) == pytest.approx(exact)


def test_unequal_outcomes_rise_as_often_as_they_are_counted_to() -> None:
    chances = total_chances()
    rises: Counter[int] = Counter()
    for totals in product(TOTALS, repeat=3):
        weight = 1
        for total in totals:
            weight *= round(216 * chances[total])
        for length in (1, 2, 3):
            if all(a < b for a, b in pairwise(totals[:length])):
                rises[length] += weight
    exact = [rises[length] / 216**3 for length in (1, 2, 3)]
    assert rise_chances(list(chances.values()))[:3] == pytest.approx(exact)


def test_the_number_that_ends_a_rising_run_is_left_out() -> None:
    """Of 1 0 1 0 … each run is a 1, of 0 1 1 0 1 1 … each is 0 1; of two coins 1/4 rise."""
    ones = rising_runs("", bits("10" * 100), [0.5, 0.5])
    assert ones.statistic == pytest.approx((100 - 75) ** 2 / 75 + (0 - 25) ** 2 / 25)
    twos = rising_runs("", bits("011" * 100), [0.5, 0.5])
    assert twos.statistic == pytest.approx((0 - 75) ** 2 / 75 + (100 - 25) ** 2 / 25)
    assert rising_runs("", bytes(range(37)) * 200, [1 / 37] * 37).p < 1e-12


def test_runs_about_the_median() -> None:
    assert median_runs("", [True, False] * 50).statistic == pytest.approx((99 - 49.5) / 99**0.5 * 2)
    assert median_runs("", [True] * 50 + [False] * 50).p < 1e-12


@pytest.mark.parametrize("kinds", [2, 3, 6])
def test_how_long_it_takes_until_all_have_come(kinds: int) -> None:
    """kinds!/kindsⁿ times the ways to part n - 1 outcomes among the kinds but one (Knuth)."""

    def parted(outcomes: int, sets: int) -> int:
        ways = 0
        for gone in range(sets + 1):
            sign = -1 if gone % 2 else 1
            ways += sign * comb(sets, gone) * int((sets - gone) ** outcomes)
        return ways // factorial(sets)

    exact = [
        factorial(kinds) * parted(length - 1, kinds - 1) / kinds**length
        for length in range(kinds, 30)
    ]
    chances = coupon_chances(kinds, 29)
    assert list(chances[:-1]) == pytest.approx(exact)
    assert sum(chances) == pytest.approx(1)


def test_coupons_of_a_wheel_take_as_long_as_they_must() -> None:
    """37 times the sum of 1/n up to 37, 155.5 spins in the mean."""
    chances = coupon_chances(37, 4_000)
    mean = sum(length * chance for length, chance in enumerate(chances, start=37))
    assert mean == pytest.approx(float(37 * sum(Fraction(1, n) for n in range(1, 38))))
    assert coupons("", bytes(range(37)) * 1_000, 37).p < 1e-12


def test_a_stretch_that_came_before() -> None:
    stream = spins(5_000)
    assert repeats("", stream, 37).statistic == 0
    again = repeats("", stream + stream[1_000:1_100], 37)
    assert again.statistic > 80
    assert again.p < 1e-6


def test_equal_words() -> None:
    stream = spins(6_000)
    words = Counter(stream[start : start + 3] for start in range(0, 6_000, 3))
    found = birthdays("", stream, 37)
    assert found.statistic == sum(comb(count, 2) for count in words.values())
    assert found.about == "equal words of 3"
    assert birthdays("", stream[:3_000] * 2, 37).p < 1e-12, "too many"
    assert birthdays("", bytes(de_bruijn(37) * 3), 37).p < 1e-6, "too few"


def test_too_little_is_no_test() -> None:
    with pytest.raises(TooFew):
        frequencies("", spins(10), [1 / 37] * 37)
    with pytest.raises(TooFew):
        coupons("", spins(1_000), 37)


def test_the_totals_of_three_dice() -> None:
    chances = total_chances()
    assert [round(216 * chances[total]) for total in TOTALS] == [
        1, 3, 6, 10, 15, 21, 25, 27, 27, 25, 21, 15, 10, 6, 3, 1,
    ]  # fmt: skip
    assert sum(chance for total, chance in chances.items() if total <= HALF) == pytest.approx(0.5)


def test_every_test_has_a_name_of_its_own() -> None:
    names = [
        one.name for one in (*wheel_findings(spins(6_000)), *dice_findings(spins(18_000, 2, 6)))
    ]
    assert len(set(names)) == len(names) == 22
    assert {name.partition(".")[0] for name in names} == {"wheel", "dice"}
