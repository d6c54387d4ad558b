"""What is told of a bet: each outcome with its pay and its probability, the return and the edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from sabot.rules.v1 import rule_set_pb2
from services.games.bets import Judged
from services.games.money import Verdict
from services.games.odds import after_commission
from services.games.rule_sets import commission_of, line_of

Counts = Mapping[Judged, int]
"""In how many of equally probable cases a bet meets each fate."""


class Outcome(NamedTuple):
    """One way for a bet to end."""

    name: str
    """`won`, `lost`, `pushed`, `half_lost`, or the pay line that won."""
    pays: Fraction
    """Profit to stake, after commission: lost is -1, pushed 0, half lost -1/2."""
    probability: Fraction


@dataclass(frozen=True, slots=True)
class BetOdds:
    """The odds of a bet, per unit of its stake."""

    bet: str
    """The offer's id; where odds differ by position, with the position: `total_4`."""
    kind: str
    """The offer's id."""
    positions: int
    """How many positions of the layout these odds hold for."""
    outcomes: tuple[Outcome, ...]

    @property
    def edge(self) -> Fraction:
        """What the house keeps of a stake in the long run."""
        return -sum((one.pays * one.probability for one in self.outcomes), Fraction(0))

    @property
    def rtp(self) -> Fraction:
        """What a stake returns in the long run, itself included."""
        return 1 - self.edge


class PayMissing(ValueError):
    """A bet can win by a line that its offer does not pay."""


_NAMES = {
    Verdict.WON: "won",
    Verdict.LOST: "lost",
    Verdict.PUSHED: "pushed",
    Verdict.HALF_LOST: "half_lost",
}
_PAYS = {
    Verdict.LOST: Fraction(-1),
    Verdict.PUSHED: Fraction(0),
    Verdict.HALF_LOST: Fraction(-1, 2),
}


def bet_odds(
    offer: rule_set_pb2.BetOffer, counts: Counts, bet: str = "", positions: int = 1
) -> BetOdds:
    """The odds of an offered bet. `counts` holds all cases there are. Raises PayMissing."""
    total = sum(counts.values())
    outcomes = [
        Outcome(_name(judged), _profit(offer, judged), Fraction(count, total))
        for judged, count in counts.items()
        if count
    ]
    outcomes.sort(key=lambda one: (-one.pays, one.name))
    return BetOdds(bet or offer.bet, offer.bet, positions, tuple(outcomes))


def by_position(
    offer: rule_set_pb2.BetOffer, counts: Iterable[tuple[str, Counts]]
) -> list[BetOdds]:
    """The odds of a bet that may lie in several positions: once, or where they differ, for each."""
    told = list(counts)
    if all(one == told[0][1] for _, one in told):
        return [bet_odds(offer, told[0][1], positions=len(told))]
    return [bet_odds(offer, one, bet=f"{offer.bet}_{position}") for position, one in told]


def text_of(fraction: Fraction) -> str:
    """As rule sets declare it and the command tells it: always `n/d`, in lowest terms."""
    return f"{fraction.numerator}/{fraction.denominator}"


def per_cent(fraction: Fraction, digits: int = 4) -> str:
    """To so many decimal digits, the nearest."""
    scaled = round(abs(fraction) * 10 ** (digits + 2))
    whole, rest = divmod(scaled, 10**digits)
    return f"{'-' if fraction < 0 else ''}{whole}.{rest:0{digits}}"


def _name(judged: Judged) -> str:
    return judged.line or _NAMES[judged.verdict]


def _profit(offer: rule_set_pb2.BetOffer, judged: Judged) -> Fraction:
    if judged.verdict is not Verdict.WON:
        return _PAYS[judged.verdict]
    pays = line_of(offer, judged.line)
    if pays is None or not pays.denominator:
        raise PayMissing(f"{offer.bet} pays nothing for {judged.line or 'a win'}")
    net = after_commission(pays, commission_of(offer))
    return Fraction(net.numerator, net.denominator)
