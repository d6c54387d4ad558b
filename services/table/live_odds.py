"""Exact odds at what is left of the shoe at a table, for operators (rule VIS-4)."""

from __future__ import annotations

from dataclasses import dataclass

from sabot.rules.v1 import rule_set_pb2
from services.games.cards import CARDS_PER_DECK
from services.odds.compositions import Composition, fresh
from services.odds.enumeration import has_cards, odds_of
from services.odds.outcomes import BetOdds
from services.table.domain.state import Table


@dataclass(frozen=True, slots=True)
class Left:
    """What odds depend on, as it stands at one moment."""

    rule_set: rule_set_pb2.RuleSet
    unseen: Composition | None
    """None: the game has no cards."""

    @property
    def unseen_cards(self) -> int:
        """Cards that nobody has seen."""
        return 0 if self.unseen is None else self.unseen.total

    def odds(self) -> tuple[BetOdds, ...]:
        """The odds of every bet: milliseconds, for blackjack tenths of a second. Raises
        TooFewCards."""
        return odds_of(self.rule_set, self.unseen)


def left_at(table: Table) -> Left:
    """What is left at a table. Raises CardImpossible where more was seen of a card than there is,
    which a shoe's census tells of, too."""
    rule_set = table.spec.rule_set
    if not has_cards(rule_set):
        return Left(rule_set, None)
    decks = table.shoe_cards // CARDS_PER_DECK or rule_set.decks
    return Left(rule_set, fresh(decks).without(table.seen.values()))
