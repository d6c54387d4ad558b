"""What the table knows of a round whose outcomes are told from the floor, beyond other rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sabot.table.v1 import events_pb2 as table
from services.kernel.event import UNLOGGED, Position

WHOLE_SINCE = 2
"""The behaviour from which on a withdrawal is one answer, however much it takes back, and given
once: limits judge what it leaves (rule LIM-8); half of one may leave what the whole would not."""


class Noted(NamedTuple):
    """A withdrawal that takes effect as betting closes, if it was made in time."""

    partner: str
    account_id: str
    request_id: str
    bet_ids: tuple[str, ...]
    edge_us: int
    """When an edge took it."""


@dataclass(slots=True)
class FloorRound:
    """See the module."""

    opened_us: int
    """Log time of its opening: no call can have been made before."""
    edge_us: dict[str, int] = field(default_factory=dict[str, int])
    """By bet id: when an edge took the request that placed it."""
    noted: list[Noted] = field(default_factory=list[Noted])
    """In the order in which they were made: those that have not yet been asked for."""
    closing: table.BettingClose | None = None
    """While betting closes, in more steps than one: no bet is taken any more."""
    correcting: str = ""
    """The request id of a correction that the shoe has not answered, at blackjack rules; empty:
    none."""
    contradicted: bool = False
    """Blackjack: whether, with the corrected cards, what was played cannot have been."""
    corrected_at: Position = UNLOGGED
    """The last correction: a result that rules gave to anything before it does not count."""
