"""What every game says of its bets: where they may lie, and what became of them."""

from __future__ import annotations

from typing import NamedTuple

from services.games.money import Verdict
from services.games.odds import Odds


class Judged(NamedTuple):
    """A bet's fate by the rules of its game."""

    verdict: Verdict
    line: str = ""
    """The pay line that won, where the bet has several (`BetOffer.lines`); else empty."""


LOST = Judged(Verdict.LOST)
PUSHED = Judged(Verdict.PUSHED)
HALF_LOST = Judged(Verdict.HALF_LOST)
WON = Judged(Verdict.WON)


def won(yes: bool, line: str = "") -> Judged:
    """Won by this pay line, or lost."""
    return Judged(Verdict.WON, line) if yes else LOST


Pays = Odds | dict[str, Odds]
"""What a win pays: one odds, or one for each pay line, in ascending order of the lines' ids."""


def pays_of(pays: Pays, line: str) -> Odds:
    """What a win by this line pays."""
    return pays[line] if isinstance(pays, dict) else pays


class ResultUnusable(ValueError):
    """A result that nothing may be paid by: of another game, or at odds with itself."""
