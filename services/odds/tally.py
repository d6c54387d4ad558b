"""What bets returned, against what they return in the mean, with exact limits of confidence.

All bets of a kind in one round end together, so a round is one sample of each kind: the fate of
the first bet of it that was settled, which was placed before anybody knew. Of n samples k met a
fate; Clopper and Pearson's limits hold for the fate's probability whatever it is. With the limits
of all m fates at 1 - a/m each, all hold at once with 1 - a, and the least and the greatest return
within them bound the bet's mean return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, lgamma, log, log1p

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlements
from services.games.odds import after_commission
from services.games.registry import may_lose_half
from services.games.rule_sets import commission_of, lines_of

LEVEL = 0.99
"""The confidence that all limits of a bet hold at once."""
MOST_OPEN_ROUNDS = 1000
HALVINGS = 60
"""Of the interval that a limit lies in: to the last bit of a float."""
_FATES = {
    settlements.OUTCOME_WON: "won",
    settlements.OUTCOME_LOST: "lost",
    settlements.OUTCOME_PUSHED: "pushed",
    settlements.OUTCOME_HALF_LOST: "half_lost",
}


@dataclass(slots=True)
class Tally:
    """What became of one kind of bet under one rule set."""

    samples: int = 0
    fates: dict[str, int] = field(default_factory=dict[str, int])
    bets: int = 0
    stakes_minor: int = 0
    payouts_minor: int = 0


@dataclass(frozen=True, slots=True)
class Band:
    """A mean return with its limits, per unit of the stake."""

    observed: float
    low: float
    high: float


@dataclass(slots=True)
class Tallies:
    """By rule set, then by bet."""

    rule_sets: dict[bytes, rule_set_pb2.RuleSet] = field(
        default_factory=dict[bytes, rule_set_pb2.RuleSet]
    )
    tallies: dict[bytes, dict[str, Tally]] = field(default_factory=dict[bytes, dict[str, Tally]])
    sampled: dict[str, dict[str, bool]] = field(default_factory=dict[str, dict[str, bool]])
    """By running round, the bets of which a sample was taken."""

    def know(self, rule_set: rule_set_pb2.RuleSet) -> None:
        """A table goes by these rules."""
        self.rule_sets[rule_set.hash] = rule_set

    def settled(self, body: settlements.BetsSettled) -> None:
        """An account's bets of a round are settled."""
        by_bet = self.tallies.setdefault(body.rule_set_hash, {})
        sampled = self.sampled.setdefault(body.round_id, {})
        while len(self.sampled) > MOST_OPEN_ROUNDS:
            self.sampled.pop(next(iter(self.sampled)))
        for bet in body.bets:
            name = f"{bet.bet}_{bet.position}" if bet.bet in BY_PLACE else bet.bet
            tally = by_bet.setdefault(name, Tally())
            tally.bets += 1
            tally.stakes_minor += bet.stake_minor
            tally.payouts_minor += bet.payout_minor
            if name not in sampled:
                sampled[name] = True
                tally.samples += 1
                # One that no round's settlement has, such as voided, is among no bet's returns.
                fate = bet.line or _FATES.get(bet.outcome, f"outcome_{bet.outcome}")
                tally.fates[fate] = tally.fates.get(fate, 0) + 1

    def over(self, round_id: str) -> None:
        """A round is over."""
        self.sampled.pop(round_id, None)


BY_PLACE = frozenset({"total"})
"""Kinds whose places differ in their odds: sic bo's totals."""


NEVER_PUSHES = frozenset({rule_set_pb2.GAME_ROULETTE, rule_set_pb2.GAME_SICBO})


def returns_of(rule_set: rule_set_pb2.RuleSet, offer: rule_set_pb2.BetOffer) -> dict[str, Fraction]:
    """What a unit of the stake comes back as, itself included, by each fate that a bet may meet."""
    commission = commission_of(offer)
    found = {"lost": Fraction(0)}
    if rule_set.game not in NEVER_PUSHES:
        found["pushed"] = Fraction(1)
    if may_lose_half(rule_set, offer.bet):
        found["half_lost"] = Fraction(1, 2)
    for line, pays in lines_of(offer).items():
        net = after_commission(pays, commission)
        found[line or "won"] = 1 + Fraction(net.numerator, net.denominator)
    return found


def band(
    fates: Mapping[str, int], returns: Mapping[str, Fraction], confidence: float = LEVEL
) -> Band | None:
    """A bet's mean return and its limits, which hold at once with `confidence`; None without
    samples, or where a fate is not among those that the bet may meet."""
    samples = sum(fates.values())
    if not samples or not fates.keys() <= returns.keys():
        return None
    level = 1 - (1 - confidence) / len(returns)
    limits = {fate: clopper_pearson(fates.get(fate, 0), samples, level) for fate in returns}
    observed = sum((returns[fate] * count for fate, count in fates.items()), Fraction(0)) / samples
    ordered = sorted(returns, key=lambda fate: (returns[fate], fate))
    return Band(
        float(observed),
        _extreme(limits, returns, ordered),
        _extreme(limits, returns, list(reversed(ordered))),
    )


def _extreme(
    limits: Mapping[str, tuple[float, float]],
    returns: Mapping[str, Fraction],
    first_to_last: list[str],
) -> float:
    """The mean return where what the lower limits leave goes to the first fates, as far as their
    upper limits let it."""
    left = 1 - sum(low for low, _ in limits.values())
    mean = 0.0
    for fate in first_to_last:
        low, high = limits[fate]
        more = min(left, high - low)
        left -= more
        mean += (low + more) * float(returns[fate])
    return mean


def clopper_pearson(successes: int, samples: int, level: float) -> tuple[float, float]:
    """The exact limits of a probability, of which so many of the samples were successes."""
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else _beta_point(tail, successes, samples - successes + 1)
    high = (
        1.0 if successes == samples else _beta_point(1 - tail, successes + 1, samples - successes)
    )
    return low, high


def _beta_point(probability: float, a: int, b: int) -> float:
    """Where the beta distribution's lower tail is this great, by halving."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _beta_below(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_below(x: float, a: int, b: int) -> float:
    """The regularised incomplete beta function I_x(a, b) (Abramowitz and Stegun, 26.5.8), by its
    continued fraction on the side where that converges."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_below(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return front * _fraction(x, a, b)


TINY = 1e-300
"""Stands for a zero that is divided by (Lentz's method)."""
MOST_TERMS = 100_000
"""About the square root of the samples are needed."""


def _fraction(x: float, a: int, b: int) -> float:
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return total


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
