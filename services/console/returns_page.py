"""What every bet returned, against its exact return, within exact limits of confidence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from sabot.rules.v1 import rule_set_pb2
from services.console.web import Refusal, Visit, live, page
from services.odds.enumeration import odds_of
from services.odds.tally import BY_PLACE, LEVEL, Band, Tally, band, returns_of

AGAIN_S = 3.0
"""How often the page is brought up to date."""
MIDDLE, HALF = 1.0, 1.0
"""What a row's picture shows: returns from 0 to 2 per unit of the stake."""
DEPENDS_ON_PLAY = frozenset({"main", "double", "split", "insurance"})
"""Bets of blackjack whose return depends on how the seats were played: the exact one is that of the
best fixed strategy."""


@dataclass(frozen=True, slots=True)
class Row:
    """A bet."""

    bet: str
    tally: Tally
    exact: Fraction | None
    found: Band | None
    by_play: bool
    unknown: bool
    """Whether the rules do not know it, or what became of it."""

    @property
    def inside(self) -> bool:
        """Whether the exact return lies within the limits."""
        if self.unknown:
            return False
        if self.exact is None or self.found is None:
            return True
        return self.found.low <= float(self.exact) <= self.found.high

    def x(self, value: float) -> float:
        """Where a return is drawn, 0 to 200; those beyond twice the stake at the edge."""
        return min(max(value, 0.0), 2.0) * 100


@lru_cache(maxsize=64)
def _exact(raw: bytes) -> dict[str, Fraction]:
    """The exact return of every bet that has one, by bet and, where places differ, by place."""
    rule_set = rule_set_pb2.RuleSet.FromString(raw)
    found: dict[str, Fraction] = {}
    for offer in rule_set.bets:
        if offer.edge:
            found[offer.bet] = 1 - Fraction(offer.edge)
    if any(offer.bet in BY_PLACE for offer in rule_set.bets):
        found |= {one.bet: one.rtp for one in odds_of(rule_set)}
    return found


async def rows_of(visit: Visit, digest: bytes) -> list[Row]:
    """A rule set's bets that were settled, by name."""
    tallies = visit.desk.archive.history.tallies
    rule_set = tallies.rule_sets.get(digest)
    if rule_set is None:
        return []
    raw = rule_set.SerializeToString(deterministic=True)
    exact = await asyncio.to_thread(_exact, raw)
    offers = {offer.bet: offer for offer in rule_set.bets}
    rows = []
    for name, tally in sorted(tallies.tallies.get(digest, {}).items()):
        kind = name if name in offers else name.rpartition("_")[0]
        by_play = kind in DEPENDS_ON_PLAY and rule_set.game == rule_set_pb2.GAME_BLACKJACK
        # A bet or a fate that the rules do not know was recorded by another build: no chance gives
        # it, and audit has alarmed.
        returns = returns_of(rule_set, offers[kind]) if kind in offers else {}
        unknown = not tally.fates.keys() <= returns.keys()
        found = None if by_play else band(tally.fates, returns)
        rows.append(Row(name, tally, exact.get(name), found, by_play, unknown))
    return rows


async def _facts(visit: Visit) -> dict[str, Any]:
    tallies = visit.desk.archive.history.tallies
    known = {digest.hex()[:16]: digest for digest in tallies.tallies}
    asked = visit.query("rules") or next(iter(known), "")
    if asked and asked not in known:
        raise Refusal(404, "refused.rules", rules=asked[:16])
    sets = {
        short: tallies.rule_sets[digest]
        for short, digest in known.items()
        if digest in tallies.rule_sets
    }
    return {
        "sets": sets,
        "asked": asked,
        "rows": await rows_of(visit, known[asked]) if asked else [],
        "level": f"{LEVEL:.0%}",
        "sequence": visit.desk.archive.history.sequence,
    }


async def show(visit: Visit) -> Response:
    """The page."""
    return visit.page("returns.html", **await _facts(visit))


async def follow(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    """Its table, again and again."""
    while True:
        await asyncio.sleep(AGAIN_S)
        yield "returns", visit.render("part_returns.html", **await _facts(visit))


ROUTES = [Route("/returns", page(show)), Route("/returns/live", live(follow))]
