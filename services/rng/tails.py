"""How likely a statistic is at least, or at most, as great as it was found.

Each function gives both tails `(at most, at least)`: numbers that are too even are as suspicious as
numbers that are too uneven. Both are exact to some ten digits, far out too; tests hold them against
exact sums and printed tables.
"""

from __future__ import annotations

from math import erfc, exp, inf, lgamma, log, log1p, sqrt

PRECISION = 1e-16
"""Terms smaller than this part of the sum change nothing."""
MAX_TERMS = 100_000
"""More than any sum needs here: some thousands for 200,000 degrees of freedom."""
TINY = 1e-300
"""Stands for a zero that is divided by (Lentz's method)."""

Tails = tuple[float, float]
"""(at most, at least)"""


class NoConvergence(ArithmeticError):
    """A sum did not come to an end."""


def gamma_tails(shape: float, value: float) -> Tails:
    """The regularised incomplete gamma functions P and Q (Abramowitz and Stegun, 6.5.29, 6.5.31):
    a series below the mean, a continued fraction above it, so that the small tail is exact."""
    if value <= 0:
        return 0.0, 1.0
    front = exp(shape * log(value) - value - lgamma(shape))
    if value < shape + 1:
        lower = front * _series(shape, value)
        return lower, 1 - lower
    upper = front * _fraction(shape, value)
    return 1 - upper, upper


def _series(shape: float, value: float) -> float:
    term = total = 1 / shape
    for step in range(1, MAX_TERMS):
        term *= value / (shape + step)
        total += term
        if term < total * PRECISION:
            return total
    raise NoConvergence(f"gamma({shape}, {value})")


def _fraction(shape: float, value: float) -> float:
    """By Lentz's method, from the front."""
    b = value + 1 - shape
    c, d = inf, 1 / b
    total = d
    for step in range(1, MAX_TERMS):
        a = step * (shape - step)
        b += 2
        d = 1 / _not_zero(b + a * d)
        c = _not_zero(b + a / c)
        total *= c * d
        if abs(c * d - 1) < PRECISION * 10:
            return total
    raise NoConvergence(f"gamma({shape}, {value})")


def _not_zero(number: float) -> float:
    return number if abs(number) > TINY else TINY


def chi_square_tails(statistic: float, freedom: int) -> Tails:
    """Of chi-square with so many degrees of freedom."""
    return gamma_tails(freedom / 2, statistic / 2)


def normal_tails(score: float) -> Tails:
    """Of a normal variable with mean 0 and variance 1."""
    return erfc(-score / sqrt(2)) / 2, erfc(score / sqrt(2)) / 2


def poisson_tails(count: int, mean: float) -> Tails:
    """Of a Poisson variable."""
    at_least = gamma_tails(count, mean)[0] if count else 1.0
    return gamma_tails(count + 1, mean)[1], at_least


def binomial_tails(count: int, trials: int, chance: float) -> Tails:
    """Of a binomial variable, summed term by term. 0 < chance < 1."""
    at_least = _binomial_from(count, trials, chance)
    return _binomial_from(trials - count, trials, 1 - chance), at_least


def _binomial_from(count: int, trials: int, chance: float) -> float:
    """The chance of at least `count`."""
    if count <= 0:
        return 1.0
    if count < trials * chance:
        return 1 - _binomial_from(trials - count + 1, trials, 1 - chance)
    term = exp(
        lgamma(trials + 1)
        - lgamma(count + 1)
        - lgamma(trials - count + 1)
        + count * log(chance)
        + (trials - count) * log1p(-chance)
    )
    total = 0.0
    for hits in range(count, trials + 1):
        total += term
        if term <= total * PRECISION:
            break
        term *= (trials - hits) / (hits + 1) * chance / (1 - chance)
    return total


def both(tails: Tails) -> float:
    """The two-sided p-value: twice the smaller tail, at most 1."""
    return min(1.0, 2 * min(tails))
