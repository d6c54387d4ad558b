"""A build of settlement with another paytable, as a faulty release would have: the function that
looks up what a bet pays is changed, and nothing else. The audit beside it decides by the right one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from unittest import mock

from sabot.rules.v1 import rule_set_pb2
from services.games import rule_sets
from services.games.odds import Odds
from services.kernel.event import Answers, Core, Event
from services.settlement.domain import paying
from services.settlement.domain.core import CORE
from services.settlement.domain.state import SettlementState

Paytable = Callable[[str, str, Odds], Odds]
"""What a bet's line pays: bet, line, and what the rules say."""


def one_more(bet: str) -> Paytable:
    """A bet that pays one more than it must: 36 to 1 for a number, 2 to 1 for red."""

    def paytable(name: str, line: str, pays: Odds) -> Odds:
        del line
        more = pays._replace(numerator=pays.numerator + pays.denominator)
        return more if name == bet else pays

    return paytable


class PatchedBuild:
    """See the module."""

    def __init__(self, paytable: Paytable) -> None:
        self.runs = True
        """Whether this build decides, or the right one does that was put back."""
        self._paytable = paytable
        self.core: Core[SettlementState] = dataclasses.replace(CORE, decide=self._decide)

    def _decide(self, state: SettlementState, event: Event) -> Answers:
        if not self.runs:
            return CORE.decide(state, event)
        right = rule_sets.line_of

        def line_of(offer: rule_set_pb2.BetOffer, line: str) -> Odds | None:
            pays = right(offer, line)
            return None if pays is None else self._paytable(offer.bet, line, pays)

        with mock.patch.object(paying, "line_of", line_of):
            return CORE.decide(state, event)
