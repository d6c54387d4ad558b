"""What is known of shoes, rounds and consumables on the floor, beyond what virtual ones have."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from sabot.shoe.v1 import floor_events_pb2 as floor

MAX_CONSUMABLES = 20_000
"""Consumables kept that are not destroyed: 500 tables with forty each."""
MAX_DESTROYED = 20_000
"""Ids of destroyed ones kept, so that they are refused as such; then the oldest are forgotten."""
MAX_HELD = 6
"""Cards that may wait for their call: no round that is dealt from the floor takes more."""


@dataclass(slots=True)
class FloorShoe:
    """A shoe that was filled by hand."""

    packs: list[str]
    """The consumables in it, by id."""
    held: list[floor.OutcomeHeld] = field(default_factory=list[floor.OutcomeHeld])
    """Cards that came before their call, in order; they have left the shoe."""
    round_from: int = 0
    """How many cards had left it when the running round opened."""
    up_at: int | None = None
    """Blackjack: the place of the dealer's open card in the running round."""
    dealers: int = 0
    """Blackjack: the dealer's cards in the running round, but for a hole card."""
    counted: dict[str, int] = field(default_factory=dict[str, int])
    """Once it is over and a part of it was scanned: all cards seen, by card."""


@dataclass(slots=True)
class FloorRound:
    """The running round, as far as what the floor tells is judged by it."""

    sealed: bool = False
    """Whether every stake is certain: an outcome before that is early."""
    resolved: bool = False
    """Whether rules have a result: further cards are called by nobody."""
    cut_off_us: int = 0
    """When betting closed, where a device told it; 0: it did not."""
    early: floor.OutcomeHeld | None = None
    """A spin or a roll that came before its call."""


class Whereabouts(IntEnum):
    """Where a consumable is."""

    STORED = 1
    IN_USE = 2


@dataclass(slots=True)
class Consumable:
    """A pack of cards, a wheel or a set of dice, from its receipt to its destruction."""

    kind: int
    """`sabot.shoe.v1.ConsumableKind`."""
    decks: int
    where: Whereabouts = Whereabouts.STORED
    table_id: str = ""
    """Where it is in use."""
    shoe_id: str = ""
    """The shoe that it was last put into."""
    rejected: bool = False
    """Whether it must be found right before it is used again."""
