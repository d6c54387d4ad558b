"""The tests of a wheel and of three dice, put together of tests of sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from services.rng.findings import Finding, chi_square, fitted
from services.rng.sequences import (
    birthdays,
    coupons,
    frequencies,
    median_runs,
    overlaps,
    recurrence,
    repeats,
    rising_runs,
    serial_correlation,
)

POCKETS = 37
FACES = 6
DICE = 3
LEAST_OUTCOMES = 5_000
"""With fewer, some tests have too little to count."""
TOTALS = range(DICE, DICE * FACES + 1)
HALF = 10
"""Totals up to this are as likely as those above."""


def total_chances() -> dict[int, float]:
    """The chance of each total of three dice: of 216 rolls."""
    ways = Counter(
        one + two + three
        for one in range(1, FACES + 1)
        for two in range(1, FACES + 1)
        for three in range(1, FACES + 1)
    )
    return {total: ways[total] / FACES**DICE for total in TOTALS}


def wheel_findings(spins: bytes) -> list[Finding]:
    """The tests of spins: pockets, each equally likely."""
    chances = dict.fromkeys(range(POCKETS), 1 / POCKETS)
    middle = POCKETS // 2
    return [
        frequencies("wheel.pockets", spins, list(chances.values())),
        overlaps("wheel.overlaps", spins, POCKETS, 2),
        serial_correlation("wheel.correlation", spins, chances),
        recurrence("wheel.recurrence", spins, POCKETS),
        rising_runs("wheel.rising", spins, list(chances.values())),
        median_runs("wheel.median", [spin > middle for spin in spins if spin != middle]),
        coupons("wheel.coupons", spins, POCKETS),
        repeats("wheel.repeats", spins, POCKETS),
        birthdays("wheel.birthdays", spins, POCKETS),
    ]


def dice_findings(faces: bytes) -> list[Finding]:
    """The tests of rolls of three dice. `faces`: 0 to 5, the three of a roll in a row."""
    dice = [faces[die::DICE] for die in range(DICE)]
    rolls = bytes(
        one * FACES**2 + two * FACES + three for one, two, three in zip(*dice, strict=True)
    )
    totals = [DICE + sum(roll) for roll in zip(*dice, strict=True)]
    chances = total_chances()
    return [
        _faces(dice),
        frequencies("dice.rolls", rolls, [1 / FACES**DICE] * FACES**DICE),
        _totals(totals, chances),
        _equal(dice),
        _correlated(dice),
        overlaps("dice.overlaps", faces, FACES, 3),
        serial_correlation("dice.correlation", totals, chances),
        recurrence("dice.recurrence", faces, FACES),
        rising_runs("dice.rising", totals, list(chances.values())),
        median_runs("dice.median", [total > HALF for total in totals]),
        coupons("dice.coupons", faces, FACES),
        repeats("dice.repeats", rolls, FACES**DICE),
        birthdays("dice.birthdays", rolls, FACES**DICE),
    ]


def _faces(dice: Sequence[bytes]) -> Finding:
    """How often each die showed each face. Freedom: 3 · 5."""
    each = [frequencies("", die, [1 / FACES] * FACES) for die in dice]
    statistic = sum(finding.statistic for finding in each)
    return chi_square("dice.faces", "each face of each die", statistic, DICE * (FACES - 1))


def _totals(totals: Sequence[int], chances: dict[int, float]) -> Finding:
    """How often each total came. Freedom: 15."""
    counts = Counter(totals)
    return fitted(
        "dice.totals", "each total", [counts[total] for total in TOTALS], list(chances.values())
    )


def _equal(dice: Sequence[bytes]) -> Finding:
    """Interplay in a roll: how often two of the dice are equal, for each two. The three are
    binomial with chance 1/6 and independent in twos. Freedom: 3."""
    chance, statistic = 1 / FACES, 0.0
    for one, other in _twos(dice):
        equal = sum(a == b for a, b in zip(one, other, strict=True))
        rolls = len(one)
        statistic += (equal - rolls * chance) ** 2 / (rolls * chance * (1 - chance))
    return chi_square("dice.equal", "two dice of a roll equal", statistic, DICE)


def _correlated(dice: Sequence[bytes]) -> Finding:
    """Interplay in a roll: the correlation of each two dice; squared scores, uncorrelated. Freedom:
    3."""
    mean, statistic = (FACES - 1) / 2, 0.0
    variance = (FACES * FACES - 1) / 12
    for one, other in _twos(dice):
        products = sum((a - mean) * (b - mean) for a, b in zip(one, other, strict=True))
        statistic += products**2 / (len(one) * variance**2)
    return chi_square("dice.interplay", "correlation of two dice of a roll", statistic, DICE)


def _twos(dice: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    return [(dice[0], dice[1]), (dice[0], dice[2]), (dice[1], dice[2])]
