"""Odds as two whole numbers: profit per stake."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple


class Odds(NamedTuple):
    """Profit `numerator` on a stake of `denominator`: 8 to 1 is `(8, 1)`, 1 to 2 is `(1, 2)`."""

    numerator: int
    denominator: int

    def __str__(self) -> str:
        return f"{self.numerator}:{self.denominator}"


EVENS = Odds(1, 1)
NO_COMMISSION = Odds(0, 1)


def after_commission(pays: Odds, commission: Odds) -> Odds:
    """What a win pays once the commission on the winnings is kept: 1:1 less 1/20 is 19:20."""
    numerator = pays.numerator * (commission.denominator - commission.numerator)
    denominator = pays.denominator * commission.denominator
    common = gcd(numerator, denominator)
    return Odds(numerator // common, denominator // common)


def whole_step(pays: Odds, commission: Odds = NO_COMMISSION) -> int:
    """The least stake, in minor units, whose multiples all have a whole profit (rule MON-4)."""
    return after_commission(pays, commission).denominator
