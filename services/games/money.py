"""Money in whole minor units, and how a fraction of one is decided (rule MON-1)."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from services.games.odds import NO_COMMISSION, Odds, after_commission

MAX_STAKE_MINOR = 1_000_000_000_000
"""The greatest stake and limit: far above any table's, and 500 of them at 1000:1 fit 63 bits."""


class Rounding(Enum):
    """What happens to a profit that is not a whole minor unit."""

    DOWN = 1
    """The floor of the signed profit: towards the house, whether it is a profit or a loss."""
    HALF_EVEN = 2
    """To the nearest, halves to the even one."""
    HALF_UP = 3
    """To the nearest, halves towards the bettor."""


class Verdict(Enum):
    """What became of a bet by the rules of its game."""

    WON = 1
    LOST = 2
    PUSHED = 3
    HALF_LOST = 4


class Settled(NamedTuple):
    """A bet's money, minor units."""

    profit_minor: int
    """Signed, after commission and rounding."""
    payout_minor: int
    """All that is paid back: stake plus profit."""
    commission_minor: int
    """What was kept from the winnings; the remainder of the rounding is part of it."""


def divided(numerator: int, denominator: int, rounding: Rounding) -> int:
    """`numerator / denominator` as a whole number; the denominator is positive."""
    match rounding:
        case Rounding.DOWN:
            return numerator // denominator
        case Rounding.HALF_UP:
            return (2 * numerator + denominator) // (2 * denominator)
        case Rounding.HALF_EVEN:
            floor, rest = divmod(numerator, denominator)
            up = 2 * rest > denominator or (2 * rest == denominator and floor % 2 == 1)
            return floor + 1 if up else floor


def settled(
    stake_minor: int,
    verdict: Verdict,
    pays: Odds,
    rounding: Rounding,
    commission: Odds = NO_COMMISSION,
) -> Settled:
    """A bet's money by its verdict: one division, whatever was won (rule MON-1).

    Where a commission is taken, `pays` is a whole number to one (see `rule_sets`), so that the
    commission is what the winnings before it are greater than the profit."""
    match verdict:
        case Verdict.WON:
            net = after_commission(pays, commission)
            profit = divided(stake_minor * net.numerator, net.denominator, rounding)
            kept = 0
            if commission.numerator:
                kept = stake_minor * pays.numerator // pays.denominator - profit
            return Settled(profit, stake_minor + profit, kept)
        case Verdict.LOST:
            return Settled(-stake_minor, 0, 0)
        case Verdict.PUSHED:
            return Settled(0, stake_minor, 0)
        case Verdict.HALF_LOST:
            profit = divided(-stake_minor, 2, rounding)
            return Settled(profit, stake_minor + profit, 0)
