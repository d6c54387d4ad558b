"""Tails of distributions, held against exact sums and printed tables."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, erfc, exp, pi, sqrt

import pytest

from services.rng.findings import Finding, TooFew, chi_square, fitted, judged, never
from services.rng.tails import (
    binomial_tails,
    both,
    chi_square_tails,
    gamma_tails,
    normal_tails,
    poisson_tails,
)

CLOSE = 1e-9


def exact_poisson(below: int, mean: Decimal) -> tuple[Decimal, Decimal]:
    """(chance of fewer than `below`, of at least so many), to sixty digits."""
    with localcontext() as context:
        context.prec = 60
        context.Emin, context.Emax = -(10**8), 10**8
        term = (-mean).exp()
        fewer = Decimal(0)
        for count in range(below):
            fewer += term
            term = term * mean / (count + 1)
        more, count = Decimal(0), below
        while term > more * Decimal("1e-40") or count < mean:
            more += term
            count += 1
            term = term * mean / count
        return fewer, more


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        (1, ["0.001", "0.5", "2", "30", "400"]),
        (2, ["0.1", "2", "25"]),
        (18, ["3", "17.9", "18.1", "19.5", "60"]),
        (666, ["500", "660", "700", "900"]),
        (86_112, ["84000", "86112", "87500"]),
    ],
)
def test_the_gamma_tails_are_those_of_poisson_sums(shape: int, values: list[str]) -> None:
    """For whole shapes: at most x of gamma is at least so many events at the mean x."""
    for value in values:
        fewer, more = exact_poisson(shape, Decimal(value))
        lower, upper = gamma_tails(shape, float(value))
        assert lower == pytest.approx(float(more), rel=CLOSE)
        assert upper == pytest.approx(float(fewer), rel=CLOSE)


@pytest.mark.parametrize("statistic", [0.01, 0.5, 1.0, 3.0, 3.9, 20.0, 60.0])
def test_chi_square_with_one_and_three_degrees_of_freedom(statistic: float) -> None:
    one = erfc(sqrt(statistic / 2))
    three = one + sqrt(2 * statistic / pi) * exp(-statistic / 2)
    assert chi_square_tails(statistic, 1)[1] == pytest.approx(one, rel=CLOSE)
    assert chi_square_tails(statistic, 3)[1] == pytest.approx(three, rel=CLOSE)


@pytest.mark.parametrize(
    ("freedom", "critical", "chance"),
    [
        (1, 3.841, 0.05),
        (4, 9.488, 0.05),
        (10, 18.307, 0.05),
        (30, 43.773, 0.05),
        (100, 124.342, 0.05),
        (1, 10.828, 0.001),
        (10, 29.588, 0.001),
        (100, 149.449, 0.001),
        (10, 3.940, 0.95),
        (100, 77.929, 0.95),
    ],
)
def test_chi_square_is_the_printed_table(freedom: int, critical: float, chance: float) -> None:
    assert chi_square_tails(critical, freedom)[1] == pytest.approx(chance, rel=1e-3)


@pytest.mark.parametrize(
    ("score", "chance"), [(1.959964, 0.025), (2.575829, 0.005), (3.290527, 0.0005), (0.0, 0.5)]
)
def test_the_normal_tails_are_the_printed_table(score: float, chance: float) -> None:
    assert normal_tails(score)[1] == pytest.approx(chance, rel=1e-5)
    assert normal_tails(-score)[0] == pytest.approx(chance, rel=1e-5)


@pytest.mark.parametrize("mean", ["0.01", "1", "7.5", "300"])
def test_the_poisson_tails_are_exact(mean: str) -> None:
    for count in (0, 1, 2, 7, 8, 40, 250, 300, 380):
        at_most, at_least = poisson_tails(count, float(mean))
        fewer, more = exact_poisson(count, Decimal(mean))
        assert at_least == pytest.approx(float(more), rel=CLOSE, abs=1e-300)
        assert at_most == pytest.approx(
            float(exact_poisson(count + 1, Decimal(mean))[0]), rel=CLOSE, abs=1e-300
        )
        assert float(fewer + more) == pytest.approx(1)


@pytest.mark.parametrize(("trials", "chance"), [(1, (1, 6)), (37, (1, 2)), (400, (1, 416))])
def test_the_binomial_tails_are_exact(trials: int, chance: tuple[int, int]) -> None:
    hit, of = chance
    ways = [comb(trials, k) * hit**k * (of - hit) ** (trials - k) for k in range(trials + 1)]
    for count in range(min(trials, 40) + 1):
        at_most, at_least = binomial_tails(count, trials, hit / of)
        assert at_most == pytest.approx(float(Fraction(sum(ways[: count + 1]), of**trials)))
        assert at_least == pytest.approx(float(Fraction(sum(ways[count:]), of**trials)), rel=1e-7)


def test_both_tails_count() -> None:
    assert both((0.01, 0.99)) == both((0.99, 0.01)) == 0.02
    assert both((0.6, 0.6)) == 1.0
    assert chi_square("", "", 900.0, 1_332).p < 1e-12, "too even"
    assert chi_square("", "", 1_900.0, 1_332).p < 1e-12, "too uneven"


def test_few_counts_that_are_as_even_as_can_be_prove_nothing() -> None:
    """Of three kinds among thirty, ten of each come once in 37 times, though chi-square is 0."""
    ways = Fraction(comb(30, 10) * comb(20, 10), 3**30)
    assert round(1 / ways) == 37
    assert fitted("", "", [10, 10, 10], [1 / 3] * 3).p == pytest.approx(float(2 * ways), rel=0.05)
    assert fitted("", "", [10_000] * 37, [1 / 37] * 37).p < 1e-12


def test_categories_that_are_hardly_expected_are_put_together() -> None:
    chances = [0.5, 0.3, 0.1, 0.05, 0.03, 0.02]
    found = fitted("", "", [50, 30, 10, 5, 3, 2], chances)
    assert found.freedom == 3
    assert found.statistic == pytest.approx(0)
    found = fitted("", "", [50, 30, 10, 0, 0, 10], chances)
    assert found.freedom == 3
    assert found.statistic == pytest.approx(0)
    with pytest.raises(TooFew):
        fitted("", "", [5, 5], [0.5, 0.5])


def test_what_never_happens() -> None:
    assert never("", "", 0, 1e-9).p == 1.0
    assert never("", "", 3, 1e-9).p == 1e-9


# ---- the verdict -------------------------------------------------------------------------------


def with_p(*chances: float) -> list[Finding]:
    return [Finding(f"test-{at}", "", 0.0, None, p) for at, p in enumerate(chances)]


def test_holm_adjusts_step_by_step() -> None:
    """Holm's own rule: the least p-value by the number of tests, the next by one less, never
    falling."""
    verdict = judged(with_p(0.04, 0.01, 0.03, 0.005))
    assert verdict.adjusted == pytest.approx((0.06, 0.03, 0.06, 0.02))
    assert verdict.passed
    assert judged(with_p(0.9, 0.8)).adjusted == (1.0, 1.0)


def test_the_verdict_is_on_all_tests_together() -> None:
    assert judged(with_p(0.009)).failed == tuple(with_p(0.009))
    assert judged(with_p(0.009, 0.5)).passed
    verdict = judged(with_p(0.004, 0.5, 0.002, 0.9))
    assert [finding.name for finding in verdict.failed] == ["test-2"]
    assert not verdict.passed
    verdict = judged(with_p(0.003, 0.5, 0.002, 0.9))
    assert [finding.name for finding in verdict.failed] == ["test-0", "test-2"]
