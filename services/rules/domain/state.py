"""What rules knows: the game of each table, and what the round that runs there has come to."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.games.blackjack import Options
from services.rules.domain.blackjack import Blackjack


@dataclass(slots=True)
class Round:
    """The round that runs at a table."""

    round_id: str
    shoe_id: str
    sealed: bool = False
    """Whether every stake is reserved or declined: nothing is called before."""
    suspended: bool = False
    voided: bool = False
    called: int = 0
    """Cards called so far, or spins of a wheel, or rolls of dice."""
    taken: int = 0
    """How many of them have come, spins that do not count included."""
    cards: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The cards in dealing order, each with its `sabot.rules.v1.Hand`."""
    numbers: list[int] = field(default_factory=list[int])
    """What the wheel or the dice showed; empty until they have."""
    resolved: bool = False
    calling: list[int] = field(default_factory=list[int])
    """The hands of the last call for cards."""
    places: list[int] = field(default_factory=list[int])
    """Where each of the cards lay in the shoe."""
    corrected: bool = False
    """Whether a card was corrected: from then on the rules say anew whose each card is."""
    blackjack: Blackjack | None = None
    """What is known of it beyond that, where it is a round of blackjack."""

    def hand(self, hand: int) -> list[str]:
        """The cards of a hand."""
        return [card for where, card in self.cards if where == hand]


@dataclass(slots=True)
class Table:
    """A table."""

    game: int
    """`sabot.rules.v1.Game` of the rules in force."""
    options: Options | None = None
    """Where it is blackjack."""
    running: Round | None = None


@dataclass(slots=True)
class RulesState:
    """Everything the rules core remembers."""

    tables: dict[str, Table] = field(default_factory=dict[str, Table])


def running_round(state: RulesState, table_id: str, round_id: str) -> Round | None:
    """The round, if it runs at this table."""
    one = state.tables.get(table_id)
    if one is None or one.running is None or one.running.round_id != round_id:
        return None
    return one.running
