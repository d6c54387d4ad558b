"""What every kind of bet returns, held against its exact return: a game whose cards, wheel or dice
fall otherwise than its rules reckon with shows here even where every single answer follows from the
log.

What is looked at are the fates that bets met, each at what the rules say that it returns. What was
paid is not: another payment does not follow from the log, and `contesting` names it at once. A fate
that the rules do not know lies outside of every limit.

Samples, limits and their level are those of `services.odds.tally`; what was counted is kept in a
file, so that months count, not the time since the last start."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from sabot.rules.v1 import rule_set_pb2
from sabot.settlement.v1 import events_pb2 as settlement
from sabot.table.v1 import events_pb2 as table
from services.kernel.event import Event
from services.kernel.measures import Measure
from services.kernel.projections import ReadEvents
from services.kernel.telemetry import Metrics
from services.kernel.telemetry_names import RETURN_DEVIATION, RETURN_OUTSIDE
from services.odds.enumeration import odds_of
from services.odds.tally import BY_PLACE, Tallies, Tally, band, returns_of

CERTAIN = 1 - 1e-6
"""The confidence of the limits: with some hundred kinds of bets, each looked at some tens of times
in its life, chance alone raises an alarm about once in hundreds of lives."""
LOOK_AGAIN = 1.1
"""A bet is looked at again when it has so many times the samples: looks cost time, and each is one
more chance to be wrong by chance."""
LOOKS_AT_ONCE = 3
"""Bets looked at in one second, so that nothing else waits: each takes some milliseconds."""
KEEP_EVERY = 10_000
"""Entries between two writings of the file; what came since is read again at a start."""
BY_PLAY = frozenset({"main", "double", "split", "insurance"})
"""Bets of blackjack whose return is the players' doing."""


class Returns:
    """See the module; a `services.kernel.host.CaughtUp`. `path`: its file, which one process of a
    name has."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = path
        self._tallies = Tallies()
        self._last = 0
        self._head = b""
        self._kept = 0
        self._exact: dict[bytes, dict[str, Fraction]] = {}
        self._looked: dict[tuple[bytes, str], int] = {}
        self._due: dict[tuple[bytes, str], None] = {}
        self._touched: set[bytes] = set()

    # ---- counting --------------------------------------------------------------------------------

    async def catch_up(self, read: ReadEvents) -> None:
        """Take what was settled since the file was written; all, where it is another log's."""
        self._load()
        if self._last and not await self._take(read, self._last - 1, (self._last, self._head)):
            self._forget()
        if not self._last:
            await self._take(read, 0, None)
        self._keep()

    async def _take(self, read: ReadEvents, after: int, first: tuple[int, bytes] | None) -> bool:
        begins = first is None
        entries = read(after)
        try:
            async for sequence, head, events in entries:
                if not begins and (sequence, head) != first:
                    return False
                begins = True
                self.feed(sequence, head, events)
        finally:
            await entries.aclose()  # type: ignore[attr-defined]  # an async generator
        return begins

    def feed(self, sequence: int, head: bytes, events: list[Event]) -> None:
        """The next entry of the log."""
        if sequence <= self._last:
            return
        for event in events:
            body = event.body
            if isinstance(body, settlement.BetsSettled):
                self._tallies.settled(body)
                self._touched.add(body.rule_set_hash)
            elif isinstance(body, table.TableOpened):
                self._tallies.know(body.spec.rule_set)
            elif isinstance(body, settlement.RoundSettled):
                self._tallies.over(body.round_id)
                self._ask_for_looks()
        self._last, self._head = sequence, head
        if sequence - self._kept >= KEEP_EVERY:
            self._keep()

    def _ask_for_looks(self) -> None:
        while self._touched:
            digest = self._touched.pop()
            for name, tally in self._tallies.tallies[digest].items():
                looked = self._looked.get((digest, name), 0)
                if tally.samples >= max(looked + 1, looked * LOOK_AGAIN):
                    self._due[digest, name] = None

    def close(self) -> None:
        """Keep what was counted."""
        self._keep()

    # ---- looking ---------------------------------------------------------------------------------

    def measure(self, metrics: Metrics) -> Measure:
        """Sets the gauges of bets with enough new samples, a few each time."""
        deviation = metrics.gauge(RETURN_DEVIATION)
        outside = metrics.gauge(RETURN_OUTSIDE)

        def measure(_now: float) -> None:
            for digest, name in list(self._due)[:LOOKS_AT_ONCE]:
                del self._due[digest, name]
                found = self._look(digest, name)
                if found is not None:
                    rules = self._tallies.rule_sets[digest]
                    labels = (f"{rules.rule_set_id}@{rules.version}", name)
                    if found[0] is not None:
                        deviation.labels(*labels).set(found[0])
                    outside.labels(*labels).set(found[1])

        return measure

    def _look(self, digest: bytes, name: str) -> tuple[float | None, bool] | None:
        """How far the bet's return lies from the exact one, and whether that is beyond chance; None
        where no enumeration gives one. What a fate returns that the rules do not know nobody can
        say, but no chance gives it."""
        rules = self._tallies.rule_sets.get(digest)
        if rules is None:
            return None
        tally = self._tallies.tallies.get(digest, {}).get(name)
        if tally is None:
            return None
        self._looked[digest, name] = tally.samples
        offers = {offer.bet: offer for offer in rules.bets}
        kind = name if name in offers else name.rpartition("_")[0]
        offer = offers.get(kind)
        if offer is None or (rules.game == rule_set_pb2.GAME_BLACKJACK and kind in BY_PLAY):
            return None
        returns = returns_of(rules, offer)
        if not tally.fates.keys() <= returns.keys():
            return None, True
        exact = self._exact_of(digest, rules).get(name)
        found = band(tally.fates, returns, CERTAIN)
        if exact is None or found is None:
            return None
        return found.observed - float(exact), not found.low <= float(exact) <= found.high

    def _exact_of(self, digest: bytes, rules: rule_set_pb2.RuleSet) -> dict[str, Fraction]:
        known = self._exact.get(digest)
        if known is None:
            known = {offer.bet: 1 - Fraction(offer.edge) for offer in rules.bets if offer.edge}
            if any(offer.bet in BY_PLACE for offer in rules.bets):
                known |= {one.bet: one.rtp for one in odds_of(rules)}
            self._exact[digest] = known
        return known

    # ---- the file --------------------------------------------------------------------------------

    def _keep(self) -> None:
        kept = {
            "last": self._last,
            "head": self._head.hex(),
            "rule_sets": [
                rules.SerializeToString(deterministic=True).hex()
                for rules in self._tallies.rule_sets.values()
            ],
            "tallies": {
                digest.hex(): {
                    name: [one.samples, one.bets, one.stakes_minor, one.payouts_minor, one.fates]
                    for name, one in bets.items()
                }
                for digest, bets in self._tallies.tallies.items()
            },
        }
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(kept))
        beside.replace(self._path)
        self._kept = self._last

    def _load(self) -> None:
        try:
            kept: dict[str, Any] = json.loads(self._path.read_text())
            for raw in kept["rule_sets"]:
                self._tallies.know(rule_set_pb2.RuleSet.FromString(bytes.fromhex(raw)))
            for digest, bets in kept["tallies"].items():
                for name, (samples, count, stakes, payouts, fates) in bets.items():
                    tally = Tally(samples, Counter(fates), count, stakes, payouts)
                    self._tallies.tallies.setdefault(bytes.fromhex(digest), {})[name] = tally
                    self._due[bytes.fromhex(digest), name] = None
            self._last, self._head = kept["last"], bytes.fromhex(kept["head"])
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):
            self._forget()  # A cache that cannot be read is made anew.

    def _forget(self) -> None:
        self._tallies, self._last, self._head = Tallies(), 0, b""
        # Bets of what is forgotten are due no more: nothing is known of them.
        self._looked, self._due, self._touched = {}, {}, set()
