"""What a test found, and the verdict over all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, pi, sqrt

from services.rng.tails import both, chi_square_tails, normal_tails, poisson_tails

CONFIDENCE = 0.99
"""A perfect source passes all tests together at least so often."""
LEAST_EXPECTED = 10.0
"""Below so many expected hits of a category chi-square is a poor approximation in the far tails;
five are usual, but hundredths of a per cent are judged here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One test: what it measured and how likely that is of chance."""

    name: str
    """`shuffle.neighbours`: of what, and what was looked at."""
    about: str
    """In a few words."""
    statistic: float
    freedom: int | None
    """Degrees of freedom of chi-square; None: the statistic is of another kind."""
    p: float
    """The chance of something at least as strange: of both kinds, too uneven and too even, unless
    only one of them is possible."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All tests, judged together."""

    findings: tuple[Finding, ...]
    adjusted: tuple[float, ...]
    """For each, by Holm: fails if it is not above 1 - CONFIDENCE."""

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Those that no perfect source would show, at this confidence."""
        return tuple(
            finding
            for finding, adjusted in zip(self.findings, self.adjusted, strict=True)
            if adjusted <= 1 - CONFIDENCE
        )

    @property
    def passed(self) -> bool:
        return not self.failed


def judged(findings: Sequence[Finding]) -> Verdict:
    """Judge all p-values together by Holm's step-down rule (Holm 1979).

    Some tests of a report look at the same numbers, so they depend on one another. Holm's bound
    holds whatever the dependence is; Šidák's, a hair sharper, would ask for independence.
    """
    in_order = sorted(range(len(findings)), key=lambda at: findings[at].p)
    adjusted = [0.0] * len(findings)
    least = 0.0
    for rank, at in enumerate(in_order):
        least = max(least, min(1.0, (len(findings) - rank) * findings[at].p))
        adjusted[at] = least
    return Verdict(tuple(findings), tuple(adjusted))


# ---- kinds of statistics -----------------------------------------------------------------------


def chi_square(name: str, about: str, statistic: float, freedom: int) -> Finding:
    """A statistic that is chi-square for a perfect source."""
    return Finding(name, about, statistic, freedom, both(chi_square_tails(statistic, freedom)))


def score(name: str, about: str, total: float, mean: float, variance: float) -> Finding:
    """A sum that is normal for a perfect source, by the central limit theorem; told as its distance
    from the mean in standard deviations."""
    away = (total - mean) / sqrt(variance)
    return Finding(name, about, away, None, both(normal_tails(away)))


def rare_events(name: str, about: str, count: int, mean: float) -> Finding:
    """A count that is Poisson for a perfect source."""
    return Finding(name, about, count, None, both(poisson_tails(count, mean)))


def never(name: str, about: str, count: int, mean: float) -> Finding:
    """A count of what hardly ever happens: one or more come with a chance of at most `mean`."""
    return Finding(name, about, count, None, min(1.0, mean) if count else 1.0)


def fitted(name: str, about: str, counts: Sequence[int], chances: Sequence[float]) -> Finding:
    """Pearson's chi-square of counts against their chances, which sum to 1; categories of which too
    few are expected are put together with their neighbours."""
    total = sum(counts)
    pairs = _together(
        [(count, total * chance) for count, chance in zip(counts, chances, strict=True)]
    )
    statistic, freedom = pearson(pairs), len(pairs) - 1
    lower, upper = chi_square_tails(statistic, freedom)
    p = both((max(lower, _likeliest(pairs)), upper))
    return Finding(name, about, statistic, freedom, p)


def _likeliest(pairs: Sequence[tuple[int, float]]) -> float:
    """The chance of the likeliest counts of all (Stirling). Nothing that is as even as it can be is
    rarer, however small its chi-square: with few counts that is no small chance."""
    expected = [each for _, each in pairs]
    in_all = log(2 * pi * sum(expected)) / 2
    return exp(in_all - sum(log(2 * pi * each) / 2 for each in expected))


def pearson(pairs: Iterable[tuple[int, float]]) -> float:
    """Sum of (count - expected)² / expected."""
    return sum((count - expected) ** 2 / expected for count, expected in pairs)


def _together(pairs: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    merged: list[tuple[int, float]] = []
    count, expected = 0, 0.0
    for more, more_expected in pairs:
        count, expected = count + more, expected + more_expected
        if expected >= LEAST_EXPECTED:
            merged.append((count, expected))
            count, expected = 0, 0.0
    if merged:
        last, last_expected = merged.pop()
        merged.append((last + count, last_expected + expected))
    else:
        merged.append((count, expected))
    if len(merged) < 2:
        raise TooFew(f"too few numbers: {expected:.1f} expected hits cannot be told apart")
    return merged


class TooFew(ValueError):
    """The sample is too small for a test."""
